"""Gateways with labels on one PostgreSQL, and what tests of placement ask of them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.gateway import GatewayProcess, Json, until
from tests.postgres_server import shared_server

TIMINGS = {
    "store.lease": 2.0,
    "store.look": 0.2,
    "runtime.sweep": 1.0,
    "runtime.node_wait": 2.0,
    "tasks.retry": 0.1,
}
LABELS = {"a": ["linux"], "b": ["gpu", "linux"], "c": ["gpu"]}
MAX_RUNNING = 2
PATIENT = 120.0


def taken(node: GatewayProcess, path: str, body: Json) -> Json:
    """Send a command that is accepted; return the answer."""
    answer = node.request("POST", path, json=body)
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


@dataclass(slots=True)
class Nodes:
    """Three gateways; c is not started."""

    directory: Path
    a: GatewayProcess
    b: GatewayProcess
    c: GatewayProcess

    def add(self, at: GatewayProcess, /, **card: object) -> str:
        body = {"title": "t", "body": "sh pwd\ncomplete well", "profile": "demo"} | card
        return str(taken(at, "/v1/cards", body)["card"])

    def done(self, node: GatewayProcess, card: str) -> Json:
        """Wait until a card is done; return its last run."""
        found = until(
            lambda: (one := node.get(f"/v1/cards/{card}"))["card"]["status"] == "done" and one, "done", seconds=PATIENT
        )
        return dict(found["runs"][-1])

    def why(self, node: GatewayProcess, path: str) -> str:
        return " ".join(one["text"] for one in node.get(f"{path}/why")["sentences"])

    def wait_until_away(self, name: str) -> None:
        until(
            lambda: next(n for n in self.a.get("/v1/nodes")["nodes"] if n["name"] == name)["state"] == "ended",
            f"{name} is away",
            seconds=PATIENT,
        )


@contextmanager
def labelled_nodes(
    tmp_path: Path,
    *,
    settings: str = "",
    labels: Mapping[str, list[str]] = LABELS,
    timings: Mapping[str, object] = {},
) -> Iterator[Nodes]:
    """The gateways a and b, and c, which is not started. `labels` may give them other names."""
    name = f"p{secrets.token_hex(4)}"
    server = shared_server()
    server.sql(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
    (tmp_path / "shared").mkdir()
    with ExitStack() as closing:
        closing.callback(server.sql, f"DROP DATABASE {name} WITH (FORCE)")
        url = server.url(name)
        made = [closing.enter_context(_node(tmp_path, *node, url, settings, dict(timings))) for node in labels.items()]
        for node in made[:2]:
            node.start()
        yield Nodes(tmp_path, *made)


def _node(directory: Path, name: str, labels: list[str], url: str, settings: str, timings: Json) -> GatewayProcess:
    home = directory / name
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(
        f'[store]\nurl = "{url}"\n[node]\nname = "{name}"\nlabels = {json.dumps(labels)}\n'
        f'[cluster]\nshared = ["{directory}/shared"]\n[board]\nmax_running = {MAX_RUNNING}\n'
        '[profiles.demo]\nmodel = "demo"\ntools = { terminal = "allow" }\n'
        '[profiles.trainer]\nmodel = "demo"\nnodes = ["gpu"]\ntools = { terminal = "allow" }\n' + settings
    )
    return GatewayProcess(home, timings=TIMINGS | timings)


def new_session(at: GatewayProcess, /, directory: Path, text: str = "sh pwd", **given: object) -> str:
    body = {"text": text, "profile": "demo", "cwd": str(directory)} | given
    return str(taken(at, "/v1/sessions", body)["session"])


def answered(node: GatewayProcess, session: str, turn: int = 1) -> str:
    """Wait until a turn of a session is done; return the host."""
    found = until(
        lambda: (
            (one := node.get(f"/v1/sessions/{session}"))["session"]["turn"] >= turn
            and one["session"]["turn_state"] == "done"
            and one["session"]["state"] == "idle"
            and one
        ),
        "answered",
        seconds=PATIENT,
    )
    return str(found["session"]["host"])


def inbox_entry(node: GatewayProcess, kind: str, id: str) -> Json:
    return dict(
        until(
            lambda: next((e for e in node.get("/v1/inbox")["entries"] if (e["kind"], e["id"]) == (kind, id)), None),
            "in the inbox",
            seconds=PATIENT,
        )
    )
