"""Every operation of a store and a whole turn, while Python watches who opens the database file.

Run by test_plain_open.py in a process of its own, because an audit hook stays for good. SQLite's own
opens are made in C and raise no audit event; any `open`, `os.open`, `Path.read_bytes` or `shutil.copy`
in Python does.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from holdfast.clock import SystemClock
from holdfast.config import Home
from holdfast.domain.commands import CreateSession
from holdfast.domain.events import session_stream
from holdfast.lifecycle import doctor
from holdfast.models.registry import ModelRegistry
from holdfast.profiles import Profiles
from holdfast.runtime.agents import Agents
from holdfast.runtime.runner import Runner
from holdfast.runtime.tools import file_tools
from holdfast.runtime.writer import StreamingTexts
from holdfast.sessions import Caller, Sessions
from holdfast.store.contract import CommandKey
from holdfast.store.home_lock import HomeLock
from holdfast.store.reads import SessionCursor
from holdfast.store.rows import PartialText
from holdfast.store.sqlite.store import SqliteStore
from holdfast.tasks.git_snapshots import GitSnapshots
from holdfast.tasks.log import TaskLog
from tests.actors import person


def watch(database: Path) -> None:
    """Reject every open of the database file, its log and its shared memory."""

    def reject(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
            path = os.fsdecode(arguments[0])
            if Path(path).absolute().name.startswith(database.name):
                print(f"a plain open of {path}", file=sys.stderr, flush=True)
                os._exit(7)

    sys.addaudithook(reject)


async def life(home: Home, id: str) -> None:
    """From the first open to the last close."""
    stream = session_stream(id)
    lock = HomeLock(home.lock)
    store, clock = SqliteStore(home.database), SystemClock()
    sessions, profiles = Sessions(store, clock), Profiles(home.config)
    runner = Runner(
        store,
        sessions=sessions,
        task_log=TaskLog(store, clock, GitSnapshots(home.tasks), profiles),
        streaming=StreamingTexts(store),
        agents=Agents(profiles, ModelRegistry(profiles), tools=file_tools()),
        clock=clock,
    )
    await runner.start()
    key = CommandKey(f"create {id}", "digest")
    create = CreateSession(text="say hi\nwrite a.txt hello\nread a.txt")
    with store.subscribe(stream) as changes:
        await sessions.create(create, session=id, profile="demo", cwd=str(home.path), caller=Caller(key, person("t")))
        while not await store.turns(id) or (await store.turns(id))[0].finished_at is None:
            await changes.wait()
            changes.drain()
    await runner.stop()
    lease = await store.claim(stream, holder="t")
    await store.save_partial(lease, PartialText(9, 9, "x", "", 1))
    assert await store.partial(stream) is not None
    assert await store.find_command(key) is not None
    assert (await store.read(stream, after=0, limit=100)).lines
    assert (await store.read_all(after=0, limit=100)).lines
    assert await store.load(stream, after=0)
    assert (await store.session(id[:4])).turn_state == "done"
    assert await store.sessions(archived=False, before=SessionCursor(), limit=10)
    assert not await store.unfinished_sessions()
    assert (await store.counts()).sessions
    while not await store.search("hello", limit=10):
        await asyncio.sleep(0.01)
    await sessions.delete(id, Caller(CommandKey(f"delete {id}", "digest"), person("t")))
    assert store.health.writable
    await store.close()
    lock.release()


async def main(home: Home, *, then: str) -> None:
    for id in ("a" * 16, "b" * 16):  # the second life finds a database and an index
        await life(home, id)
    assert doctor.examine(home)
    doctor.rebuild(home)
    if then == "open":
        home.database.read_bytes()
    if then == "os.open":
        os.close(os.open(home.database.with_name("holdfast.db-wal"), os.O_RDONLY | os.O_CREAT))


if __name__ == "__main__":
    the_home = Home(Path(sys.argv[1]))
    the_home.prepare()
    watch(the_home.database)
    asyncio.run(main(the_home, then=sys.argv[2]))
    print("done")
