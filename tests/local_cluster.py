"""`make cluster`: a PostgreSQL server and three gateways on this machine, to try what docs/cluster.md says.

The server is that of the tests. Everything is in a directory of its own, which is removed at the end. Ctrl-C ends it.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

from tests.postgres_server import own_server

NODES = ("a", "b", "c")
LABELS = {"a": ["linux"], "b": ["linux", "gpu"], "c": ["gpu"]}
SHARED = "work"
"""The directory that all nodes see: what is done there goes on elsewhere when its node is lost."""
PATIENCE_SECONDS = 120.0


def start(node: str, directory: Path, database: str) -> subprocess.Popen[bytes]:
    home = directory / node
    home.mkdir(mode=0o700)
    shared = directory / SHARED
    (home / "config.toml").write_text(
        f'[store]\nurl = "{database}"\n\n[node]\nname = "{node}"\nlabels = {json.dumps(LABELS[node])}\n\n'
        f'[cluster]\nshared = ["{shared}"]\n'
    )
    command = [sys.executable, "-P", "-m", "holdfast", "--home", str(home), "serve", "--port", "0", "--background"]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)


def address_of(home: Path, process: subprocess.Popen[bytes]) -> str:
    """Wait until a gateway has written its address."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            return str(json.loads((home / "run" / "gateway.json").read_text())["url"])
        except (FileNotFoundError, ValueError):
            time.sleep(0.05)
    raise SystemExit(f"The gateway in {home} did not start; {home}/logs/gateway.log says why.")


def sign_in_link(home: Path, url: str) -> str:
    token = (home / "run" / "token").read_text().strip()
    answer = httpx.post(f"{url}/v1/codes", headers={"authorization": f"Bearer {token}"}, timeout=PATIENCE_SECONDS)
    return f"{url}/#code={answer.raise_for_status().json()['code']}"


def explain(directory: Path, gateways: dict[str, subprocess.Popen[bytes]]) -> None:
    for node, process in gateways.items():
        url = address_of(directory / node, process)
        link = sign_in_link(directory / node, url)
        print(f"node {node}: {url}  pid {process.pid}\n  dashboard (works once, for 10 minutes): {link}")
    program = f"{Path(sys.executable).parent}/holdfast --home {directory}"
    print(
        "\nTry this in another terminal: begin something on a, watch it on b, kill a.\n"
        f"  cd {directory / SHARED}\n"
        f'  {program}/a run --detach --profile demo "slow 60 one two three four five six seven eight nine ten"\n'
        f"  {program}/b sessions log --follow ID\n"
        f"  kill -9 {gateways['a'].pid}\n"
        "Or let work run where it belongs: b and c have the label gpu.\n"
        f'  {program}/a card add --node gpu --profile demo "complete well"\n'
        f"Start a again: {program}/a restart\n\n"
        "Ctrl-C ends all of it and removes the directory.",
        flush=True,
    )


def main() -> None:
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.default_int_handler)
    directory = Path(tempfile.mkdtemp(prefix="holdfast-cluster-"))
    (directory / SHARED).mkdir()
    gateways: dict[str, subprocess.Popen[bytes]] = {}
    try:
        with own_server() as server:
            try:
                server.sql("CREATE DATABASE holdfast TEMPLATE template0 ENCODING 'UTF8'")
                for node in NODES:
                    gateways[node] = start(node, directory, server.url("holdfast"))
                explain(directory, gateways)
                signal.pause()
            except KeyboardInterrupt:
                print("\nending …", flush=True)
            finally:
                for process in gateways.values():
                    process.terminate()
                for process in gateways.values():
                    process.wait()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
