"""Devices: browsers that are signed in, and how far each has read. An engine adds the writes.

Not in the log, since they are no facts about the work.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import get_args

import msgspec

from holdfast.domain.events import session_stream
from holdfast.domain.events.task import TaskOutcome
from holdfast.store.reads import Fetch

DEVICES = "devices"
"""Followed like a stream: wakes up when another gateway has changed devices or codes, if there can be others."""


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """A browser that was let in. `hash` is that of its cookie, which itself is kept nowhere."""

    id: str
    hash: str = field(repr=False)
    name: str
    created_at: int
    seen_at: int


class PushRow(msgspec.Struct, frozen=True):
    """Where the browser of a device takes pushes, and which ones. Anyone who knows the endpoint can push there."""

    device: str
    endpoint: str
    p256dh: str
    auth: str
    kinds: list[str]
    when_absent: bool
    """Only what nobody looks at."""
    details: bool
    changed_at: int
    ended: str = ""
    """Why it takes no pushes any longer; then without endpoint and keys."""

    def __repr__(self) -> str:
        return f"PushRow({self.device})"


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


class DeviceStore(ABC):
    """The browsers that are signed in, and how far each has read. Stored beside the log."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    @abstractmethod
    async def add_code(self, hash: str, *, expires_at: int, at: int, device: str = "") -> None:
        """Keep a one-time code, by its hash, with the device that created it; the owner's token is none."""

    @abstractmethod
    async def sign_in(self, code: str, device: DeviceRow, *, revoked: frozenset[str] = frozenset()) -> bool:
        """Use a code up and keep the device; False when the code is wrong, used, too old or of a revoked device.

        `revoked` are devices whose revocation could not be written yet; it is written first.
        """

    @abstractmethod
    async def drop(self, device: str) -> None:
        """Delete a device with its read positions and the codes that it created."""

    @abstractmethod
    async def touch(self, device: str, *, at: int) -> None:
        """Record that the device made a request."""

    @abstractmethod
    async def rename(self, device: str, name: str) -> None:
        """Give the device another name."""

    @abstractmethod
    async def mark_seen(self, device: str, session: str, version: int, *, at: int) -> int:
        """Move its read position forward, and remember that it looked there last. Return the position."""

    @abstractmethod
    async def mark_reviewed(self, device: str, *, at: int) -> int:
        """Record that the user of the device has reviewed what happened. Return since when that counts."""

    @abstractmethod
    async def save_push(self, row: PushRow) -> None:
        """Keep the subscription of a device, its only one. NotFound if the device is no longer signed in.

        Another device with the same endpoint was the same browser, and loses it.
        """

    @abstractmethod
    async def end_push(self, row: PushRow) -> None:
        """Keep only why a subscription has ended, unless the device has another one by now."""

    @abstractmethod
    async def delete_push(self, device: str) -> None:
        """Delete the subscription of a device, if there is one."""

    async def pushes(self) -> list[PushRow]:
        """Every subscription, also those that have ended."""
        return await self._fetch.rows("list_pushes", PushRow)

    async def codes(self, *, at: int) -> dict[str, int]:
        """The hash of every code that can still be used, with the time when it expires."""
        return dict(await self._fetch.values("list_codes", at=at))

    async def all(self) -> list[DeviceRow]:
        """Every device, oldest first."""
        return [DeviceRow(*device) for device in await self._fetch.values("list_devices")]

    async def last_session(self, device: str) -> str:
        """Where it looked last."""
        found = await self._fetch.values("last_session", device=device)
        return str(found[0][0]) if found else ""

    async def reviewed_at(self, device: str) -> int:
        """When the owner of the device last did; before the first time, when it signed in."""
        found = await self._fetch.values("reviewed_at", device=device)
        return int(found[0][0]) if found else 0

    async def read_positions(self, device: str) -> dict[str, int]:
        """How far it has read, by session."""
        return dict(await self._fetch.values("read_positions", device=device))

    async def read_position(self, device: str, session: str) -> int:
        """How far it has read; of a session that it never opened, all from before it came in."""
        stream = session_stream(session)
        ((version,),) = await self._fetch.values("read_position", device=device, session=session, stream=stream)
        return int(version)

    async def unread(self, device: str, sessions: list[str]) -> dict[str, int]:
        """How many finished texts of the agent it has not read, by session."""
        found = await self._fetch.values("count_unread", device=device, sessions=sessions)
        return dict.fromkeys(sessions, 0) | dict(found)

    async def all_unread(self, device: str) -> dict[str, tuple[int, int]]:
        """How many sessions of the list have such texts, and how many texts that are, by the kind of session."""
        found = await self._fetch.values("count_all_unread", device=device)
        return {kind: (sessions, messages) for kind, sessions, messages in found}

    async def looked_at(self, device: str, session: str) -> int:
        """When it last looked at a session; 0 when that is not known."""
        found = await self._fetch.values("looked_at_session", device=device, session=session)
        return int(found[0][0]) if found else 0

    async def since(self, session: str, *, after: int, upto: int) -> SinceSummary:
        """What happened in a session after a version and up to another, in numbers."""
        within = {"stream": session_stream(session), "after": after, "upto": upto}
        ((messages, first),) = await self._fetch.values("since_texts", session=session, after=after, upto=upto)
        ((tool_calls, questions, failures),) = await self._fetch.values("since_counts", **within)
        tasks = dict(await self._fetch.values("since_tasks", **within))
        at = await self._fetch.values("event_time", stream=session_stream(session), version=max(1, after))
        return SinceSummary(
            messages=messages,
            first=first,
            since=at[0][0] if at else 0,
            tool_calls=tool_calls,
            questions=questions,
            failures=failures,
            tasks={state: tasks.get(state, 0) for state in get_args(TaskOutcome)},
        )
