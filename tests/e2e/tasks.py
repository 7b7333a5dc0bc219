"""What the tests of tasks share: a home whose commands are ended with it, by their ids."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.e2e.gateway import GatewayProcess, Json, until
from tests.eventually import PATIENCE


@contextmanager
def home_with_commands(home: Path, **more: object) -> Iterator[GatewayProcess]:
    """A gateway, and at the end the end of every command that it ever started: they outlive it on purpose."""
    gateway = GatewayProcess(home, **more)  # type: ignore[arg-type]
    try:
        with gateway:
            yield gateway
    finally:
        end_commands(home)


def end_commands(home: Path) -> None:
    """Kill every command of this home; its keepers end with it."""
    for pid in marked(home):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def marked(home: Path) -> list[int]:
    """Every process that a task of this home started, by the mark in its environment."""
    ids = {path.name for path in (home / "tasks").glob("*") if path.is_dir()}
    found = []
    for path in Path("/proc").glob("[0-9]*") if ids else ():
        with suppress(OSError):
            for variable in (path / "environ").read_bytes().split(b"\0"):
                name, _, value = variable.partition(b"=")
                if name == b"HOLDFAST_TASK" and value.decode().partition(".")[0] in ids:
                    found.append(int(path.name))
    return found


def start(gateway: GatewayProcess, shell: str, *, cwd: Path, **more: object) -> str:
    body = {"shell": shell, "cwd": str(cwd)} | more
    return str(gateway.command("POST", "/v1/tasks", body)["task"])


def task(gateway: GatewayProcess, id: str) -> Json:
    return dict(gateway.get(f"/v1/tasks/{id}"))


def until_over(gateway: GatewayProcess, id: str, *, seconds: float = PATIENCE) -> Json:
    return until(
        lambda: found if (found := task(gateway, id))["state"] != "running" else None,
        f"task {id} is over",
        seconds=seconds,
    )


def tasks_of(gateway: GatewayProcess, session: str) -> list[Json]:
    return list(gateway.get("/v1/tasks", session=session, all=True)["tasks"])


def output(gateway: GatewayProcess, id: str) -> bytes:
    """All of it, as it was written."""
    data, offset = b"", 0
    while True:
        answer = gateway.request("GET", f"/v1/tasks/{id}/output", params={"offset": offset, "raw": "true"})
        assert answer.status_code == 200, answer.text
        data += answer.content
        offset = int(answer.headers["holdfast-next"])
        if offset >= int(answer.headers["holdfast-size"]):
            return data
