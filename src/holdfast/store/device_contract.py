"""The part of the store's contract that is about browsers: who may look in, and how far each has read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """A browser that was let in. `hash` is that of its cookie, which itself is kept nowhere."""

    id: str
    hash: str = field(repr=False)
    name: str
    created_at: int
    seen_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SinceSummary:
    """What happened in a session after a version, in numbers."""

    messages: int
    first: int | None
    since: int
    tool_calls: int
    questions: int
    failures: int
    tasks: dict[str, int]


class DeviceStore(Protocol):
    """Beside the log: who may look in from a browser, and how far each has read."""

    async def add_code(self, hash: str, *, expires_at: int, at: int, device: str = "") -> None:
        """Keep a one-time code, by its hash, with the device that created it; the owner's token is none."""
        ...

    async def codes(self, *, at: int) -> dict[str, int]:
        """The hash of every code that can still be used, with the time when it expires."""
        ...

    async def sign_in(self, code: str, device: DeviceRow, *, revoked: frozenset[str] = frozenset()) -> bool:
        """Use a code up and keep the device; False when the code is wrong, used, too old or of a revoked device.

        `revoked` are devices whose revocation could not be written yet; it is written first.
        """
        ...

    async def drop(self, device: str) -> None:
        """Forget a device with its cursors and the codes that it created."""
        ...

    async def touch(self, device: str, *, at: int) -> None:
        """It was here."""
        ...

    async def all(self) -> list[DeviceRow]:
        """Every device, oldest first."""
        ...

    async def mark_seen(self, device: str, session: str, version: int, *, at: int) -> int:
        """Move its cursor forward, and remember that it looked there last. Where the cursor stands."""
        ...

    async def last_session(self, device: str) -> str:
        """Where it looked last."""
        ...

    async def mark_reviewed(self, device: str, *, at: int) -> int:
        """Somebody looked through what happened. Since when that counts."""
        ...

    async def reviewed_at(self, device: str) -> int:
        """When somebody last did; before the first time, when the device came in."""
        ...

    async def cursors(self, device: str) -> dict[str, int]:
        """How far it has read, by session."""
        ...

    async def cursor(self, device: str, session: str) -> int:
        """How far it has read; of a session that it never opened, all from before it came in."""
        ...

    async def unread(self, device: str, sessions: list[str]) -> dict[str, int]:
        """How many finished texts of the agent it has not read, by session."""
        ...

    async def since(self, session: str, *, after: int, upto: int) -> SinceSummary:
        """What happened in a session after a version and up to another, in numbers."""
        ...
