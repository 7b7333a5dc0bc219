"""Devices in SQLite: rows beside the log, written by the one writer in its group commit."""

from __future__ import annotations

from msgspec.json import encode
from msgspec.structs import asdict

from holdfast.domain.errors import NotFound
from holdfast.domain.events import session_stream
from holdfast.store.decisions import check_seen
from holdfast.store.device_store import DeviceRow, DeviceStore, PushRow
from holdfast.store.reads import Fetch
from holdfast.store.sqlite.operations import Transaction
from holdfast.store.sqlite.writer import Writer

GONE = "This device no longer exists."


class SqliteDevices(DeviceStore):
    """The devices beside a SQLite log. Each method is one operation, in one transaction."""

    def __init__(self, writer: Writer, fetch: Fetch) -> None:
        super().__init__(fetch)
        self._writer = writer

    async def add_code(self, hash: str, *, expires_at: int, at: int, device: str = "") -> None:
        def add(tx: Transaction) -> None:
            tx.run("delete_old_codes", {"at": at})
            tx.run("add_code", {"hash": hash, "expires_at": expires_at, "device": device})

        await self._writer.do(add)

    async def sign_in(self, code: str, device: DeviceRow, *, revoked: frozenset[str] = frozenset()) -> bool:
        def use_code(tx: Transaction) -> bool:
            for id in revoked:
                _drop(tx, id)
            if not tx.run("use_code", {"hash": code, "at": device.seen_at}).fetchall():
                return False
            tx.run("add_device", {"id": device.id, "hash": device.hash, "name": device.name, "at": device.seen_at})
            return True

        return await self._writer.do(use_code)

    async def drop(self, device: str) -> None:
        await self._writer.do(lambda tx: _drop(tx, device))

    async def touch(self, device: str, *, at: int) -> None:
        await self._writer.do(lambda tx: tx.run("touch_device", {"id": device, "at": at}))

    async def rename(self, device: str, name: str) -> None:
        await self._writer.do(lambda tx: tx.run("rename_device", {"id": device, "name": name}))

    async def mark_seen(self, device: str, session: str, version: int, *, at: int) -> int:
        def mark(tx: Transaction) -> int:
            check_seen(tx, session_stream(session), version)
            where = {"device": device, "session": session}
            if not tx.run("save_last_session", where | {"at": at}).fetchall():
                raise NotFound(GONE)
            return int(tx.run("save_cursor", where | {"version": version, "at": at}).fetchone()[0])

        return await self._writer.do(mark)

    async def mark_reviewed(self, device: str, *, at: int) -> int:
        def mark(tx: Transaction) -> int:
            found = tx.run("save_reviewed", {"device": device, "at": at}).fetchall()
            if not found:
                raise NotFound(GONE)
            return int(found[0][0])

        return await self._writer.do(mark)

    async def save_push(self, row: PushRow) -> None:
        def save(tx: Transaction) -> None:
            tx.run("release_endpoint", {"endpoint": row.endpoint, "device": row.device})
            if not tx.run("save_push", asdict(row) | {"kinds": encode(row.kinds).decode()}).fetchall():
                raise NotFound(GONE)

        await self._writer.do(save)

    async def end_push(self, row: PushRow) -> None:
        given = {"device": row.device, "endpoint": row.endpoint, "ended": row.ended, "changed_at": row.changed_at}
        await self._writer.do(lambda tx: tx.run("end_push", given))

    async def delete_push(self, device: str) -> None:
        await self._writer.do(lambda tx: tx.run("delete_push", {"device": device}))


def _drop(tx: Transaction, device: str) -> None:
    tx.run("delete_codes_of", {"device": device})
    tx.run("delete_device", {"id": device})
