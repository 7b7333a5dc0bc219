"""Devices in SQLite: rows beside the log, written by the one writer in its group commit."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.domain.errors import NotFound
from holdfast.domain.events import session_stream
from holdfast.store.decisions import check_seen
from holdfast.store.device_store import DeviceRow, DeviceStore
from holdfast.store.reads import Fetch
from holdfast.store.sqlite.operations import Transaction
from holdfast.store.sqlite.writer import Writer


@dataclass(frozen=True, slots=True)
class DoAddCode:
    """Keep the hash of a code; throw old ones away."""

    hash: str
    expires_at: int
    at: int
    device: str

    def run(self, tx: Transaction) -> None:
        """Both in one go."""
        tx.run("delete_old_codes", {"at": self.at})
        tx.run("add_code", {"hash": self.hash, "expires_at": self.expires_at, "device": self.device})


@dataclass(frozen=True, slots=True)
class DoSignIn:
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
        tx.run("delete_codes_of", {"device": self.device})
        tx.run("delete_device", {"id": self.device})


@dataclass(frozen=True, slots=True)
class DoTouch:
    """A device was here."""

    device: str
    at: int

    def run(self, tx: Transaction) -> None:
        """It only grows."""
        tx.run("touch_device", {"id": self.device, "at": self.at})


@dataclass(frozen=True, slots=True)
class DoMarkSeen:
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
class DoMarkReviewed:
    """Somebody looked through what happened."""

    device: str
    at: int

    def run(self, tx: Transaction) -> int:
        """That moment; it never goes back."""
        found = tx.run("save_reviewed", {"device": self.device, "at": self.at}).fetchall()
        if not found:
            raise NotFound("There is no such device any more.")
        return int(found[0][0])


class SqliteDevices(DeviceStore):
    """The devices beside a SQLite log."""

    def __init__(self, writer: Writer, fetch: Fetch) -> None:
        super().__init__(fetch)
        self._writer = writer

    async def add_code(self, hash: str, *, expires_at: int, at: int, device: str = "") -> None:
        await self._writer.do(DoAddCode(hash, expires_at, at, device))

    async def sign_in(self, code: str, device: DeviceRow, *, revoked: frozenset[str] = frozenset()) -> bool:
        return await self._writer.do(DoSignIn(code, device, revoked))

    async def drop(self, device: str) -> None:
        await self._writer.do(DoDrop(device))

    async def touch(self, device: str, *, at: int) -> None:
        await self._writer.do(DoTouch(device, at))

    async def mark_seen(self, device: str, session: str, version: int, *, at: int) -> int:
        return await self._writer.do(DoMarkSeen(device, session, version, at))

    async def mark_reviewed(self, device: str, *, at: int) -> int:
        return await self._writer.do(DoMarkReviewed(device, at))
