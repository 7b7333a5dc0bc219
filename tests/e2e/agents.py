"""What the tests of agents share: a gateway whose model is a server on loopback, and a look at what was sent to it."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.e2e.gateway import GatewayProcess, Json, until
from tests.left_running import left_running
from tests.provider.loopback import Loopback, Wire

WIRES: list[Wire] = ["openai", "anthropic"]
CONFIG = """
default_profile = "tester"
[providers.loop]
wire = "{wire}"
base_url = "{url}"
[profiles.tester]
model = "loop:loopback"
instructions = "You are being tested."
[profiles.tester.tools]
"write" = "ask"
"edit" = "deny"
"""


def gateway_for(
    tmp_path: Path, server: Loopback, wire: Wire = "openai", *, with_models: bool = True, **more: Any
) -> GatewayProcess:
    """Its home, and beside it a directory to work in."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(CONFIG.format(wire=wire, url=server.base_url(wire)))
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "AGENTS.md").write_text("Be brief.")
    return GatewayProcess(home, with_models=with_models, **more)


def running_agents(gateway: GatewayProcess) -> list[int]:
    """The processes of external agents."""
    rows = gateway.get("/v1/tasks", state="running", kind="process")["tasks"]
    return [row["pid"] for row in rows if row["pid"] is not None]  # one of them may not have begun yet


def end_agents(gateway: GatewayProcess) -> None:
    """End the gateway, which would start them again, and then its external agents with their keepers."""
    gateway.kill9()
    while left := left_running(gateway.home.parent, since=0, patience=0, keepers=str(gateway.home)):
        for process in left:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)


def waiting(gateway: GatewayProcess) -> Json:
    """The one thing in the inbox."""
    found = until(lambda: gateway.get("/v1/inbox")["waits"], "something waits")
    assert len(found) == 1
    return dict(found[0])


def answer(gateway: GatewayProcess, wait: str, text: str) -> int:
    """The status that the answer gets."""
    return gateway.request("POST", "/v1/answers", json={"wait": wait, "answer": text}).status_code


def tool_results(body: Json, wire: Wire) -> list[str]:
    """The tool results of a request, as tool results and nothing else."""
    if wire == "openai":
        return [str(message["content"]) for message in body["messages"] if message["role"] == "tool"]
    parts = [
        part for message in body["messages"] if isinstance(message["content"], list) for part in message["content"]
    ]
    return [str(part["content"]) for part in parts if part["type"] == "tool_result"]
