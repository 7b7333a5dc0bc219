"""A backup by pg_dump, made while a gateway writes, is a log up to some commit; a gateway continues from there."""

from __future__ import annotations

import asyncio
import secrets
import subprocess
from pathlib import Path

from holdfast.domain.events import decode
from holdfast.store.contract import CommandKey
from holdfast.store.postgres.check import check_server
from holdfast.store.postgres.connections import Database
from holdfast.store.postgres.store import open_store
from tests.postgres_server import shared_server
from tests.store.conformance import STREAM, A, let_in, said, session, versions, write


def run(program: str, *arguments: str) -> None:
    done = subprocess.run([str(shared_server().binaries / program), *arguments], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


async def test_a_dump_that_is_made_while_somebody_writes_is_restored_elsewhere(tmp_path: Path) -> None:
    server, names = shared_server(), [f"b{secrets.token_hex(4)}" for _ in range(2)]
    for name in names:
        server.sql(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
    first, second = (Database(server.url(name)) for name in names)
    dump = str(tmp_path / "holdfast.dump")
    store = await open_store(first, tmp_path)
    await session(store, A)
    await let_in(store, "d1")
    ended = asyncio.Event()

    async def keep_writing() -> int:
        number = 0
        while not ended.is_set() or number < 20:
            number += 1
            await write(store, STREAM, said(input=str(number)), command=CommandKey(str(number), "digest"))
        return number

    writing = asyncio.create_task(keep_writing())
    await asyncio.to_thread(run, "pg_dump", "--format=custom", f"--file={dump}", first.url)
    ended.set()
    written = await writing
    await store.close()
    await asyncio.to_thread(run, "pg_restore", "--exit-on-error", "--no-owner", f"--dbname={second.url}", dump)
    found = {finding.name: finding.ok for finding in check_server(second.url)}
    assert found["events"] and found["projections"]
    restored = await open_store(second, tmp_path)
    there = await versions(restored, STREAM)
    assert there == list(range(1, len(there) + 1)) and 1 <= len(there) <= written + 1
    assert [decode(line).seq for line in (await restored.read_all(after=0, limit=100_000)).lines] == there
    assert [row.id for row in await restored.devices.all()] == ["d1"]
    again = await write(restored, STREAM, said(), command=CommandKey(str(len(there)), "digest"))
    assert (again.version, again.duplicate) == (len(there) + 1, False), "the first command that is not in the backup"
    await restored.close()
    for name in names:
        server.sql(f"DROP DATABASE {name} WITH (FORCE)")
