"""Devices in PostgreSQL: rows beside the log. Each method is one operation, in one transaction."""

from __future__ import annotations

from msgspec.json import encode
from msgspec.structs import asdict

from holdfast.domain.errors import NotFound
from holdfast.domain.events import session_stream
from holdfast.store.decisions import check_seen
from holdfast.store.device_store import DEVICES, DeviceRow, DeviceStore, PushRow
from holdfast.store.postgres.facts import Needs
from holdfast.store.postgres.steps import Steps
from holdfast.store.postgres.writer import PostgresWriter
from holdfast.store.reads import Fetch

GONE = "This device no longer exists."


class PostgresDevices(DeviceStore):
    """The devices beside a log in PostgreSQL."""

    def __init__(self, writer: PostgresWriter, fetch: Fetch) -> None:
        super().__init__(fetch)
        self._writer = writer

    async def add_code(self, hash: str, *, expires_at: int, at: int, device: str = "") -> None:
        async def add(steps: Steps) -> None:
            await steps.run("delete_old_codes", {"at": at})
            await steps.run("add_code", {"hash": hash, "expires_at": expires_at, "device": device})
            await steps.count_change(DEVICES)

        await self._writer.do_alone(add, repeatable=False)

    async def sign_in(self, code: str, device: DeviceRow, *, revoked: frozenset[str] = frozenset()) -> bool:
        async def use_code(steps: Steps) -> bool:
            for id in revoked:
                await _drop(steps, id)
            if not (await steps.run("use_code", {"hash": code, "at": device.seen_at})).rows:
                return False
            row = {"id": device.id, "hash": device.hash, "name": device.name, "at": device.seen_at}
            await steps.run("add_device", row)
            await steps.count_change(DEVICES)
            return True

        return await self._writer.do_alone(use_code, repeatable=False)

    async def drop(self, device: str) -> None:
        await self._writer.do_alone(lambda steps: _drop(steps, device), repeatable=True)

    async def touch(self, device: str, *, at: int) -> None:
        touched = {"id": device, "at": at}
        await self._writer.do_alone(lambda steps: steps.run("touch_device", touched), repeatable=True)

    async def rename(self, device: str, name: str) -> None:
        await self._change("rename_device", {"id": device, "name": name})

    async def mark_seen(self, device: str, session: str, version: int, *, at: int) -> int:
        async def mark(steps: Steps) -> int:
            stream = session_stream(session)
            check_seen(await steps.facts(Needs(streams={stream})), stream, version)
            where = {"device": device, "session": session}
            if not (await steps.run("save_last_session", where | {"at": at})).rows:
                raise NotFound(GONE)
            return int((await steps.run("save_cursor", where | {"version": version, "at": at})).rows[0][0])

        return await self._writer.do_alone(mark, repeatable=True)

    async def mark_reviewed(self, device: str, *, at: int) -> int:
        async def mark(steps: Steps) -> int:
            found = (await steps.run("save_reviewed", {"device": device, "at": at})).rows
            if not found:
                raise NotFound(GONE)
            return int(found[0][0])

        return await self._writer.do_alone(mark, repeatable=True)

    async def save_push(self, row: PushRow) -> None:
        async def save(steps: Steps) -> None:
            await steps.run("release_endpoint", {"endpoint": row.endpoint, "device": row.device})
            if not (await steps.run("save_push", asdict(row) | {"kinds": encode(row.kinds).decode()})).rows:
                raise NotFound(GONE)
            await steps.count_change(DEVICES)

        await self._writer.do_alone(save, repeatable=True)

    async def end_push(self, row: PushRow) -> None:
        given = {"device": row.device, "endpoint": row.endpoint, "ended": row.ended, "changed_at": row.changed_at}
        await self._change("end_push", given)

    async def delete_push(self, device: str) -> None:
        await self._change("delete_push", {"device": device})

    async def _change(self, query: str, parameters: dict[str, object]) -> None:
        async def change(steps: Steps) -> None:
            await steps.run(query, parameters)
            await steps.count_change(DEVICES)

        await self._writer.do_alone(change, repeatable=True)


async def _drop(steps: Steps, device: str) -> None:
    await steps.run("delete_codes_of", {"device": device})
    await steps.run("delete_device", {"id": device})
    await steps.count_change(DEVICES)
