"""The shared settings and keys in PostgreSQL: rows beside the log."""

from __future__ import annotations

from msgspec.structs import asdict

from holdfast.store.postgres.steps import Steps
from holdfast.store.postgres.writer import PostgresWriter
from holdfast.store.reads import Fetch
from holdfast.store.settings_store import SETTINGS, SettingsRow, SettingsStore


class PostgresSettings(SettingsStore):
    """The settings beside a log in PostgreSQL."""

    def __init__(self, writer: PostgresWriter, fetch: Fetch) -> None:
        self._writer = writer
        self._fetch = fetch

    async def newest(self) -> SettingsRow | None:
        found = await self._fetch.values("newest_settings")
        return SettingsRow(*found[0]) if found else None

    async def versions(self) -> list[SettingsRow]:
        return [SettingsRow(*row) for row in await self._fetch.values("settings_versions")]

    async def add(self, row: SettingsRow) -> bool:
        async def add(steps: Steps) -> bool:
            if not (await steps.run("add_settings", asdict(row))).rows:
                return False
            await steps.run("drop_old_settings", {"version": row.version})
            await steps.count_change(SETTINGS)
            return True

        return await self._writer.do_alone(add, repeatable=False)

    async def agree_on_key(self, name: str, key: bytes) -> bytes:
        await self._writer.do_alone(
            lambda steps: steps.run("add_shared_key", {"name": name, "key": key}), repeatable=True
        )
        found = await self.key(name)
        return key if found is None else found

    async def key(self, name: str) -> bytes | None:
        found = await self._fetch.values("shared_key", key_name=name)
        return bytes(found[0][0]) if found else None
