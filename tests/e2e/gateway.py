"""A real gateway in a process of its own, on a home in a temporary directory: start it, kill it, ask it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from tests.e2e.fork_server import Child, fork_server
from tests.eventually import LONGEST_PAUSE, PATIENCE

SERVE = Path(__file__).with_name("serve.py")
LET_GO = {"runtime.demo_hang": 1.0}
"""With these timings the demo agent's `hang` is over in a second, and not in a day."""
UNHURRIED: dict[str, object] = {
    "gateway.unauthenticated": PATIENCE,
    "processes.window": 3.0,
    "processes.recent": 0.5,
    "processes.activity": 0.5,
    "store.search_delay": 0.05,
}
"""On a busy machine the head of a request may take longer than a stranger has; and no test waits for a whole minute."""
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients of loopback: to read the certificates of the system costs 27 ms of processor time a client."""
T = TypeVar("T")
Json = dict[str, Any]


class GatewayProcess:
    """One home and the gateway that runs on it, if any. Constructed once, started as often as one likes."""

    def __init__(
        self,
        home: Path,
        *,
        script: Path = SERVE,
        timings: Mapping[str, object] = {},
        arguments: tuple[str, ...] = (),
        log_next_to: Path | None = None,
        with_models: bool = False,
        open_files: int | None = None,
    ) -> None:
        """`timings` are those that differ, such as `{"gateway.heartbeat": 0.3}`."""
        self.home = home
        self.stderr_file = (log_next_to or home).with_suffix(".stderr")
        self.script = script
        self.arguments = arguments
        self._with_models = with_models
        self.timings = UNHURRIED | dict(timings)
        self.open_files = open_files
        self.default_port: int | None = None
        self.clock_seconds = 0.0
        """By how much its wall clock is wrong."""
        self._process: Child | None = None
        self._client: httpx.Client | None = None
        self._kept: socket.socket | None = None

    # --- life and death -------------------------------------------------------------------------

    def spawn(self, port: int | None = 0) -> Child:
        """Start a process and do not wait for anything."""
        options: Json = {"timings": self.timings, "open_files": self.open_files, "default_port": self.default_port}
        options |= {"clock_seconds": self.clock_seconds}
        arguments = [str(self.script), str(self.home), "" if port is None else str(port), json.dumps(options)]
        return fork_server(with_models=self._with_models).spawn([*arguments, *self.arguments], stderr=self.stderr_file)

    def start(self, port: int | None = 0) -> Self:
        """Start it and wait until it has written its address."""
        self.launch(port)
        return self.wait_until_up()

    def launch(self, port: int | None = 0) -> None:
        assert self._process is None, "it runs already"
        self._process = self.spawn(port)

    def wait_until_up(self) -> Self:
        process = self._running()

        def announced() -> bool:
            assert process.poll() is None, f"the gateway ended with {process.returncode}: {self.stderr}"
            return self.address.get("pid") == process.pid

        until(announced, "the gateway is up")
        self._free_port()
        limits = httpx.Limits(max_connections=64, max_keepalive_connections=64)
        self._client = httpx.Client(
            base_url=self.url,
            headers={"authorization": f"Bearer {self.token}"},
            limits=limits,
            timeout=2 * PATIENCE,
            verify=NO_TLS,
        )
        return self

    def kill9(self) -> None:
        """Without a goodbye."""
        process, url = self._running(), self.address.get("url", "")
        process.kill()
        process.wait(PATIENCE)
        self._keep_port(url)
        self._forget()

    def start_and_let_go(self) -> Self:
        """Start it so that a demo agent who was told to `hang` goes on."""
        self.timings |= LET_GO
        return self.start()

    def terminate(self, name: signal.Signals = signal.SIGTERM) -> int:
        """With a goodbye. Its exit code."""
        self._running().send_signal(name)
        return self.wait_for_end()

    def wait_for_end(self) -> int:
        """It ends by itself."""
        code = self._running().wait(PATIENCE)
        self._forget()
        return code

    def close(self) -> None:
        if self._process is not None:
            self.kill9()
        self._free_port()

    def _keep_port(self, url: str) -> None:
        """Until the next start, which may want the same one: other tests ask for free ports meanwhile."""
        self._free_port()
        self._kept = socket.socket()
        self._kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):  # somebody was quicker
            self._kept.bind(("127.0.0.1", int(url.rpartition(":")[2] or 0)))

    def _free_port(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _running(self) -> Child:
        assert self._process is not None, "it does not run"
        return self._process

    def _forget(self) -> None:
        self._process = None
        if self._client is not None:
            self._client.close()
            self._client = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- what it left in its home ---------------------------------------------------------------

    @property
    def address(self) -> Json:
        """Empty while nobody has written one."""
        try:
            found: Json = json.loads((self.home / "run" / "gateway.json").read_text())
        except (FileNotFoundError, ValueError):  # nobody needs it after a power cut
            return {}
        return found

    @property
    def url(self) -> str:
        return str(self.address["url"])

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def token(self) -> str:
        return (self.home / "run" / "token").read_text().strip()

    @property
    def stderr(self) -> str:
        return self.stderr_file.read_text()

    @property
    def log(self) -> list[Json]:
        return [json.loads(line) for line in (self.home / "logs" / "gateway.log").read_text().splitlines()]

    def rss(self) -> int:
        """Resident memory in bytes."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def followers(self) -> int:
        """How many follow a session or the whole log now."""
        lines = self.request("GET", "/metrics").text.splitlines()
        return int(float(next(line for line in lines if line.startswith("holdfast_followers ")).split()[1]))

    # --- asking ---------------------------------------------------------------------------------

    @property
    def client(self) -> httpx.Client:
        """With the bearer token, for the gateway that runs now."""
        assert self._client is not None, "it does not run"
        return self._client

    def request(
        self,
        method: str,
        path: str,
        *,
        json: object = None,
        key: str | None = None,
        headers: Mapping[str, str] = {},
        **more: Any,
    ) -> httpx.Response:
        """One request with the bearer token."""
        sent = dict(headers) | ({"idempotency-key": key} if key is not None else {})
        return self.client.request(method, path, json=json, headers=sent, **more)

    def get(self, path: str, **parameters: object) -> Any:
        """The JSON that is found there."""
        answer = self.request("GET", path, params={name: str(value) for name, value in parameters.items()})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def command(self, method: str, path: str, body: Json | None = None, *, key: str | None = None) -> Json:
        """A command that must be accepted."""
        answer = self.request(method, path, json=body, key=key)
        assert answer.status_code == 202, answer.text
        accepted: Json = answer.json()
        return accepted

    def create(self, text: str | None = None, *, cwd: Path | None = None, key: str | None = None) -> str:
        """A new session."""
        body = {"text": text} if text is not None else {}
        if cwd is not None:
            body["cwd"] = str(cwd)
        return str(self.command("POST", "/v1/sessions", body, key=key)["session"])

    def send(self, session: str, text: str, *, mode: str = "queue", key: str | None = None) -> Json:
        return self.command("POST", f"/v1/sessions/{session}/messages", {"text": text, "mode": mode}, key=key)

    def events(self, session: str, *, after: int = 0) -> list[Json]:
        """Every record of a session."""
        found: list[Json] = []
        while True:
            page = self.get(f"/v1/sessions/{session}/events", after=after)
            found += page["events"]
            after = page["cursor"]
            if not page["more"]:
                return found

    def whole_log(self) -> list[Json]:
        found: list[Json] = []
        page = self.get("/v1/events")
        while page["events"]:
            found += page["events"]
            page = self.get("/v1/events", after=page["cursor"])
        return found

    def session(self, session: str) -> Json:
        return dict(self.get(f"/v1/sessions/{session}")["session"])

    def why(self, session: str) -> list[Json]:
        return list(self.get(f"/v1/sessions/{session}/why")["sentences"])

    def until_state(self, session: str, state: str, *, seconds: float = PATIENCE) -> Json:
        return until(
            lambda: found if (found := self.session(session))["state"] == state else None,
            f"session {session} is {state}",
            seconds=seconds,
        )

    def until_event(self, session: str, kind: str, *, count: int = 1, seconds: float = PATIENCE) -> list[Json]:
        """All records, once there are that many of this kind."""
        return until(
            lambda: found if kinds(found := self.events(session)).count(kind) >= count else None,
            f"session {session} has {count} {kind}",
            seconds=seconds,
        )

    def until_ended(self, task: str) -> Json:
        """The task, once it is over."""
        return until(
            lambda: (
                found if (found := dict(self.get(f"/v1/tasks/{task}/wait", seconds=60)))["state"] != "running" else None
            ),
            f"task {task} is over",
        )

    def until_rest(self, session: str, *, seconds: float = PATIENCE) -> list[Json]:
        """All records, once there is nothing left to do."""
        self.until_state(session, "idle", seconds=seconds)
        return self.events(session)


def wait_for(gate: Path) -> str:
    """A shell that does nothing until the file is there, whoever makes it; and not for ever, should the test fail."""
    return f"for i in $(seq 9999); do [ -e {gate} ] && break; sleep 0.02; done"


def kinds(records: list[Json]) -> list[str]:
    return [record["event"]["kind"] for record in records]


def of_kind(records: list[Json], *wanted: str) -> list[Json]:
    """The events of these kinds, in order."""
    return [record["event"] for record in records if record["event"]["kind"] in wanted]


def check_whole(records: list[Json]) -> None:
    """Versions without a gap, seqs that only grow."""
    assert [record["version"] for record in records] == list(range(1, len(records) + 1))
    seqs = [record["seq"] for record in records]
    assert seqs == sorted(set(seqs))


def until(look: Callable[[], T | None], what: str, *, seconds: float = PATIENCE, pause: float = 0.01) -> T:
    """What `look` finds, as soon as it is true. The longer it takes, the more seldom it looks: each look is work."""
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}; last seen: {found!r}")
        time.sleep(pause)
        pause = max(pause, min(pause * 1.25, LONGEST_PAUSE))
