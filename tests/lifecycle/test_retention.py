"""What `[retention]` does to sessions: only unused ones are deleted, archived first, and each with its reason."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.domain.commands import ArchiveSession, CreateSession, PinSession, SendMessage, SessionCommand
from holdfast.domain.errors import Gone
from holdfast.domain.events import SYSTEM, session_stream
from holdfast.domain.events.actor import ServiceActor
from holdfast.domain.events.session import SessionArchived
from holdfast.domain.events.system import SessionDeleted
from holdfast.domain.events.task import TaskPruned
from holdfast.lifecycle.retention import Retention
from holdfast.profiles import Profiles
from holdfast.sessions import Caller
from holdfast.settings import RetentionSettings, Settings
from holdfast.store.contract import CommandKey
from holdfast.tasks.git_snapshots import GitSnapshots
from holdfast.tasks.log import TaskLog
from holdfast.tasks.prune import Pruning
from tests.actors import person
from tests.eventually import eventually
from tests.lifecycle.rig import DAY, LifecycleRig
from tests.rig import StoppedClock

OLD, PINNED, BUSY, ARCHIVED, NEW = (f"{number:016x}" for number in range(1, 6))


class RetentionProfiles(Profiles):
    """With rules that a test sets."""

    rules = RetentionSettings()

    @property
    def settings(self) -> Settings:
        return replace(super().settings, retention=self.rules)


class Attic:
    """Sessions of all kinds, nobody at work."""

    def __init__(self, rig: LifecycleRig) -> None:
        self.rig = rig
        self.profiles = RetentionProfiles(rig.profiles.path)
        self._ids = 0
        self.task_log = TaskLog(rig.store, rig.clock, GitSnapshots(rig.tasks.supervisor.root), rig.profiles)
        pruning = Pruning(rig.store, rig.tasks.supervisor, rig.clock)
        self.retention = Retention(
            rig.store, pruning=pruning, sessions=rig.sessions, profiles=self.profiles, clock=rig.clock
        )

    def caller(self) -> Caller:
        self._ids += 1
        return Caller(CommandKey(f"attic-{self._ids}", "d"), person("ann"))

    async def make(self, session: str) -> None:
        await self.rig.sessions.create(CreateSession(), session=session, profile="demo", cwd="/", caller=self.caller())

    async def tell(self, session: str, command: SessionCommand) -> None:
        await self.rig.sessions.execute(session, command, self.caller())

    async def fill(self) -> None:
        for session in (OLD, PINNED, BUSY, ARCHIVED):
            await self.make(session)
        await self.tell(PINNED, PinSession())
        await self.tell(BUSY, SendMessage(text="nobody has answered yet"))
        await self.tell(ARCHIVED, ArchiveSession())
        self.rig.passes(10 * DAY)
        await self.make(NEW)

    async def run(self, command: str, *, task: str) -> None:
        """A command that has ended."""
        await self.rig.background(command, task=task)

        async def ended() -> bool:
            return (await self.rig.store.task(task)).state != "running"

        await eventually(ended)

    async def goes(self) -> dict[str, list[object]]:
        return {rule: [row.id for row in rows] for rule, rows in (await self.retention.sessions()).items()}


@pytest.fixture
async def attic(tmp_path: Path) -> AsyncIterator[Attic]:
    rig = LifecycleRig(tmp_path, clock=StoppedClock(1_800_000_000_000))  # without a runner: what is queued stays so
    found = Attic(rig)
    await found.fill()
    yield found
    await rig.close()


async def test_without_a_rule_nothing_is_deleted(attic: Attic) -> None:
    assert await attic.goes() == {}
    assert await attic.retention.apply_to_sessions() == {}


async def test_what_nobody_used_is_archived_and_nothing_else(attic: Attic) -> None:
    attic.profiles.rules = RetentionSettings(sessions_archive_days=9)
    assert await attic.goes() == {"sessions_archive_days = 9": [OLD]}
    await attic.retention.apply_to_sessions()
    assert await attic.goes() == {}
    last = (await attic.rig.store.load(session_stream(OLD), after=0))[-1].event
    assert last == SessionArchived(by=ServiceActor(name="retention", rule="sessions_archive_days = 9"))


async def test_what_was_archived_long_ago_is_deleted_and_nothing_else(attic: Attic) -> None:
    attic.profiles.rules = RetentionSettings(sessions_delete_days=9)
    gone = await attic.retention.apply_to_sessions(asked_by=person("ann"))
    assert [row.id for row in gone["sessions_delete_days = 9"]] == [ARCHIVED]
    with pytest.raises(Gone):
        await attic.rig.store.session(ARCHIVED)
    deleted = [one.event for one in await attic.rig.store.load(SYSTEM, after=0)][-1]
    assert isinstance(deleted, SessionDeleted)
    assert (deleted.session, str(deleted.by)) == (
        ARCHIVED,
        "the retention rule sessions_delete_days = 9, applied by ann",
    )


async def test_a_session_that_was_just_archived_is_not_deleted_in_the_same_round(attic: Attic) -> None:
    attic.profiles.rules = RetentionSettings(sessions_archive_days=1, sessions_delete_days=1)
    await attic.retention.apply_to_sessions()
    assert (await attic.rig.store.session(OLD)).archived, "its days begin now"


async def test_a_command_that_runs_keeps_its_session(attic: Attic) -> None:
    await attic.rig.tasks.start()
    attic.profiles.rules = RetentionSettings(sessions_archive_days=1)
    await attic.rig.background("sleep 1000", task="00000000000000ff", session=OLD)
    attic.rig.passes(10 * DAY)
    assert OLD not in (await attic.goes()).get("sessions_archive_days = 1", [])
    await attic.rig.end_all()


async def test_a_task_that_has_outlived_its_rule_is_deleted_with_its_output(attic: Attic) -> None:
    rig, ended, pinned, recent = attic.rig, "00000000000000f1", "00000000000000f2", "00000000000000f3"
    await rig.tasks.start()
    await attic.run("echo old", task=ended)
    await attic.run("echo kept", task=pinned)
    await attic.task_log.pin(pinned, pinned=True, by=person("ann"))
    await attic.run("echo new", task=recent)
    root = rig.tasks.supervisor.root
    assert {path.name for path in root.iterdir()} >= {ended, pinned, recent}
    assert await attic.retention.apply() == {}, "without a rule everything is kept"
    attic.profiles.rules = RetentionSettings(tasks_count=1)
    gone = await attic.retention.apply()
    assert {rule: [task.ended.id for task in tasks] for rule, tasks in gone.items()} == {"tasks_count = 1": [ended]}
    with pytest.raises(Gone):
        await rig.store.task(ended)
    assert not (root / ended).exists()
    for kept in (pinned, recent):
        assert (await rig.store.task(kept)).state == "done" and (root / kept).exists()
    pruned = [one.event for one in await rig.store.load(SYSTEM, after=0)][-1]
    assert isinstance(pruned, TaskPruned)
    assert (pruned.task, pruned.by) == (ended, ServiceActor(name="retention", rule="tasks_count = 1"))
    assert await attic.retention.apply() == {}
