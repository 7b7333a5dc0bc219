"""Devices in SQLite: rows beside the log, written by the one writer in its group commit.

Not in the log, since they are no facts about the work: who may look in, and how far each has read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from holdfast.domain.errors import NotFound
from holdfast.domain.events import session_stream
from holdfast.store.decisions import check_seen
from holdfast.store.device_contract import DeviceRow, SinceSummary
from holdfast.store.sqlite.fetch import Fetch
from holdfast.store.sqlite.operations import Transaction
from holdfast.store.sqlite.writer import Writer

STATES = ("done", "failed", "stopped", "lost")


@dataclass(frozen=True, slots=True)
class DoMint:
    """Keep the hash of a code; throw old ones away."""

    hash: str
    expires_at: int
    at: int
    device: str

    def run(self, tx: Transaction) -> None:
        """Both in one go."""
        tx.run("drop_old_codes", {"at": self.at})
        tx.run("mint_code", {"hash": self.hash, "expires_at": self.expires_at, "device": self.device})


@dataclass(frozen=True, slots=True)
class DoLogIn:
    """Use a code up for a device; either both or neither."""

    code: str
    device: DeviceRow
    revoked: frozenset[str]
    """Devices whose revocation is not in the database yet: it is written first."""

    def run(self, tx: Transaction) -> bool:
        """Whether the code was good."""
        device = self.device
        for id in self.revoked:
            DoDrop(id).run(tx)
        if not tx.run("use_code", {"hash": self.code, "at": device.seen_at}).fetchall():
            return False
        row = {"id": device.id, "hash": device.hash, "name": device.name, "at": device.seen_at}
        tx.run("add_device", row)
        return True


@dataclass(frozen=True, slots=True)
class DoDrop:
    """Delete a device with its cursors and the codes that it created."""

    device: str

    def run(self, tx: Transaction) -> None:
        """Both in one transaction."""
        tx.run("drop_codes_of", {"device": self.device})
        tx.run("drop_device", {"id": self.device})


@dataclass(frozen=True, slots=True)
class DoChange:
    """One named statement about devices."""

    query: str
    parameters: dict[str, object]

    def run(self, tx: Transaction) -> None:
        """Nothing to check."""
        tx.run(self.query, self.parameters)


@dataclass(frozen=True, slots=True)
class DoSeen:
    """Move a device's cursor forward."""

    device: str
    session: str
    version: int
    at: int

    def run(self, tx: Transaction) -> int:
        """Where it stands now: never before where it stood."""
        check_seen(tx, session_stream(self.session), self.version)
        where = {"device": self.device, "session": self.session}
        if not tx.run("save_last_session", where | {"at": self.at}).fetchall():
            raise NotFound("There is no such device any more.")
        return int(tx.run("save_cursor", where | {"version": self.version}).fetchone()[0])


@dataclass(frozen=True, slots=True)
class DoLook:
    """Somebody looked through what happened."""

    device: str
    at: int

    def run(self, tx: Transaction) -> int:
        """That moment; it never goes back."""
        found = tx.run("save_reviewed", {"device": self.device, "at": self.at}).fetchall()
        if not found:
            raise NotFound("There is no such device any more.")
        return int(found[0][0])


class SqliteDevices:
    """The `Devices` of `contract.py` beside a SQLite log."""

    def __init__(self, writer: Writer, fetch: Fetch) -> None:
        self._writer = writer
        self._values = fetch.values

    async def add_code(self, hash: str, *, expires_at: int, at: int, device: str = "") -> None:
        """Keep a one-time code, by its hash, with the device that created it."""
        await self._writer.do(DoMint(hash, expires_at, at, device))

    async def codes(self, *, at: int) -> dict[str, int]:
        """The hash of every code that can still be used, with the time when it expires."""
        return dict(await self._values("list_codes", {"at": at}))

    async def sign_in(self, code: str, device: DeviceRow, *, revoked: frozenset[str] = frozenset()) -> bool:
        """Use a code up and keep the device; False when the code is wrong, used, too old or of a revoked device."""
        return await self._writer.do(DoLogIn(code, device, revoked))

    async def drop(self, device: str) -> None:
        """Forget a device with its cursors and the codes that it created."""
        await self._writer.do(DoDrop(device))

    async def touch(self, device: str, *, at: int) -> None:
        """It was here."""
        await self._writer.do(DoChange("touch_device", {"id": device, "at": at}))

    async def all(self) -> list[DeviceRow]:
        """Every device, oldest first."""
        return [DeviceRow(*device) for device in await self._values("list_devices", {})]

    async def mark_seen(self, device: str, session: str, version: int, *, at: int) -> int:
        """Move its cursor forward, and remember that it looked there last. Where the cursor stands."""
        return await self._writer.do(DoSeen(device, session, version, at))

    async def last_session(self, device: str) -> str:
        """Where it looked last."""
        found = await self._values("last_session", {"device": device})
        return str(found[0][0]) if found else ""

    async def mark_reviewed(self, device: str, *, at: int) -> int:
        """Somebody looked through what happened. Since when that counts."""
        return await self._writer.do(DoLook(device, at))

    async def reviewed_at(self, device: str) -> int:
        """When somebody last did; before the first time, when the device came in."""
        found = await self._values("reviewed_at", {"device": device})
        return int(found[0][0]) if found else 0

    async def cursors(self, device: str) -> dict[str, int]:
        """How far it has read, by session."""
        return dict(await self._values("read_positions", {"device": device}))

    async def cursor(self, device: str, session: str) -> int:
        """How far it has read; of a session that it never opened, all from before it came in."""
        where: dict[str, object] = {"device": device, "session": session, "stream": session_stream(session)}
        ((version,),) = await self._values("read_position", where)
        return int(version)

    async def unread(self, device: str, sessions: list[str]) -> dict[str, int]:
        """How many finished texts of the agent it has not read, by session."""
        return dict(await self._values("count_unread", {"device": device, "sessions": json.dumps(sessions)}))

    async def since(self, session: str, *, after: int, upto: int) -> SinceSummary:
        """What happened in a session after a version, in numbers; what comes meanwhile is another time's."""
        where: dict[str, object] = {"session": session, "stream": session_stream(session), "after": after, "upto": upto}
        ((messages, first),) = await self._values("since_texts", where)
        ((tool_calls, questions, failures),) = await self._values("since_counts", where)
        tasks = dict(await self._values("since_tasks", where))
        since = await self._values("event_time", where | {"version": max(1, after)})
        return SinceSummary(
            messages=messages,
            first=first,
            since=since[0][0] if since else 0,
            tool_calls=tool_calls,
            questions=questions,
            failures=failures,
            tasks={state: tasks.get(state, 0) for state in STATES},
        )
