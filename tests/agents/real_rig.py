"""A real gateway with a real agent as its profile, and the loopback model."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.agents.loopback_model import LoopbackModel
from tests.agents.real_agents import RealAgent, starter
from tests.e2e.gateway import GatewayProcess
from tests.eventually import PATIENCE

GATEWAY = Path(__file__).with_name("agent_gateway.py")


@dataclass(frozen=True)
class RealRig:
    """A gateway whose only profile is the agent."""

    agent: RealAgent
    gateway: GatewayProcess
    model: LoopbackModel
    work: Path
    program: Path
    """How a person starts the agent in a terminal."""

    def run_outside(self, *arguments: str) -> str:
        """Run the agent without Holdfast, in the directory of its work; return what it printed."""
        command = [str(self.program), *arguments]
        done = subprocess.run(command, cwd=self.work, stdin=subprocess.DEVNULL, capture_output=True, check=True)
        return done.stdout.decode()

    def create(self, text: str) -> str:
        body = {"text": text, "profile": self.agent.name, "cwd": str(self.work)}
        return str(self.gateway.command("POST", "/v1/sessions", body)["session"])

    def restart_gateway(self) -> None:
        """After a kill -9, at the same address, as a gateway of a person does."""
        port = int(self.gateway.url.rpartition(":")[2])
        self.gateway.kill9()
        self.gateway.start(port)

    def kill_agent(self) -> None:
        """Without a goodbye, and all of its processes."""
        for row in self.gateway.get("/v1/tasks", state="running", kind="process")["tasks"]:
            with suppress(ProcessLookupError, TypeError):  # it has ended, or not begun
                os.killpg(row["pid"], signal.SIGKILL)


@contextmanager
def real_rig(agent: RealAgent, program: Path, directory: Path, *, driver: str = "acp") -> Iterator[RealRig]:
    """Start a gateway; at the end nothing is left running."""
    work, home = directory / "work", directory / "home"
    work.mkdir()
    home.mkdir(mode=0o700)
    timings = {"runtime.agent_ready": PATIENCE}
    with (
        LoopbackModel() as model,
        GatewayProcess(home, timings=timings, script=GATEWAY, arguments=(str(directory),)) as gateway,
    ):
        script = starter(agent, program, directory, model.url, driver=driver)
        profile = f'driver = "{driver}"\nagent = "{agent.name}"\nargv = ["{script}"]'
        (home / "config.toml").write_text(f"[profiles.{agent.name}]\n{profile}\n")
        rig = RealRig(agent, gateway.start(), model, work, script)
        try:
            yield rig
        finally:
            rig.kill_agent()
