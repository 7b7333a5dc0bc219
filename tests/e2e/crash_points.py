"""A gateway that dies at its first write, at its second, and so on, until none is left: what the crash points share.

After every crash the next gateway finishes what the last one left; then it is the next write's turn to crash.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path

import httpx

from tests.e2e.crashing_gateway import CRASHED
from tests.e2e.gateway import GatewayProcess, Json
from tests.seed import new_seed

SCRIPT = Path(__file__).with_name("crashing_gateway.py")


class Client(ABC):
    """What one client wants. All of it can be said again, under the same ids."""

    first: str
    """The name of its first command, from which on the writes are counted."""

    def __init__(self, cwd: Path, number: int) -> None:
        self.cwd = cwd
        self.number = number
        self.session = ""

    @abstractmethod
    def tell(self, gateway: GatewayProcess) -> None:
        """Everything, until there is nothing left to do."""

    @abstractmethod
    def check(self, gateway: GatewayProcess) -> None:
        """All of it was done, and once."""

    def key(self, name: str) -> str:
        return f"{name}-of-{self.number:04}"

    def command(self, gateway: GatewayProcess, path: str, body: Json, name: str) -> Json:
        return gateway.command("POST", path, body, key=self.key(name))

    def is_at_rest(self, gateway: GatewayProcess) -> bool:
        """Also its worker has gone home, whose last write is no event."""
        state = gateway.session(self.session)["state"]
        return state == "idle" and self.session not in gateway.get("/v1/status")["working"]

    def crashed(self, gateway: GatewayProcess) -> bool:
        """Tell it everything; whether the gateway died meanwhile."""
        try:
            self.tell(gateway)
        except httpx.TransportError:
            assert gateway.wait_for_end() == CRASHED
            return True
        return False


def patient_home(directory: Path) -> Path:
    """A home where a turn may be resumed as often as it takes."""
    home = directory / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[resume]\nattempts = 1000\n")
    return home


def crash_at_every_write(
    opened: AbstractContextManager[GatewayProcess], new: Callable[[int], Client], *, when: str, every: int = 1
) -> int:
    """How many writes there were to crash at. With `every` only each third one, say: another third the next time."""
    left: Client | None = None
    begin = 1 + new_seed() % every
    with opened as gateway:
        for at in count(begin, every):
            client = new(at)
            gateway.arguments = (when, str(at), client.key(client.first))
            gateway.start()
            if left is not None:
                left.tell(gateway)
                left.check(gateway)
            if not client.crashed(gateway):
                client.check(gateway)
                return at - 1
            left = client
    raise AssertionError("it counts for ever")
