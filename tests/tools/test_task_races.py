"""Two things that happen to a command at the same moment: neither its end nor its report is lost or doubled."""

from __future__ import annotations

import asyncio
import errno
import subprocess
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path

import msgspec
import pytest

from holdfast.clock import SystemClock
from holdfast.config import Home
from holdfast.domain.commands import ArchiveSession
from holdfast.domain.errors import Conflict, Unavailable
from holdfast.domain.events import SYSTEM, AnyEvent, session_stream, task_stream
from holdfast.domain.events.parts import Call, Usage
from holdfast.domain.events.session import (
    InputReceived,
    ModelRequested,
    ModelResponded,
    ToolCallFinished,
    ToolCallStarted,
    TurnFinished,
    TurnStarted,
)
from holdfast.domain.events.task import (
    ProcessStarted,
    TaskBackgrounded,
    TaskFinished,
    TaskPruned,
    TaskStarted,
    TaskStopRequested,
)
from holdfast.processes.command import CommandSpec, Running
from holdfast.sessions import Caller
from holdfast.store.contract import Append, Appended, CommandKey, Write
from holdfast.store.rows import TaskRow
from holdfast.tasks.git_snapshots import GitSnapshots
from holdfast.tasks.prune import Pruning, Rule
from holdfast.timings import USUAL, TaskTimings
from tests.actors import person
from tests.eventually import PATIENCE
from tests.processes.late_keeper import late_keeper
from tests.tools.test_terminal import SECRET, SESSION, Desk, opened

DAY_MS = 86_400_000


@pytest.fixture
async def desk(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Desk]:
    async with asyncio.timeout(PATIENCE), opened(tmp_path, getattr(request, "param", USUAL.tasks)) as desk:
        yield desk


async def of_task(desk: Desk, task: str, kind: type) -> list[AnyEvent]:
    records = await desk.store.load(task_stream(task), after=0)
    return [record.event for record in records if isinstance(record.event, kind)]


def ends(append: Append) -> str:
    """The task whose end is written here, if one is."""
    events = [event for write in append.writes for event in write.events]
    return next((event.task for event in events if isinstance(event, TaskFinished)), "")


def intent(desk: Desk, command: str = "true", *, until: int | None = None) -> TaskStarted:
    return TaskStarted(
        task="ab" * 8,
        task_kind="process",
        title="t",
        command=command,
        cwd=str(desk.context.cwd),
        by=person("me"),
        lifetime="persist" if until is None else "until",
        until=until,
    )


async def intended(desk: Desk) -> str:
    """A task whose intent is in the log, and nothing else."""
    started = intent(desk)
    await desk.tasks.task_log.start(started)
    return started.task


# --- ends -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("desk", [TaskTimings(stop_grace=3600.0)], indirect=True)
async def test_a_forced_stop_after_a_normal_one_does_not_lose_the_end(
    desk: Desk,
) -> None:
    stubborn = "(trap '' TERM; touch ready; sleep 60) & wait"
    task = (await desk.call("terminal", command=stubborn, background=True)).task
    while not (desk.context.cwd / "ready").exists():
        await asyncio.sleep(0.01)
    await desk.task_queries.stop(await desk.task_queries.find(task), by=person("me"), reason="", force=False)
    while desk.tasks.supervisor.live():  # the command is gone, what it left ignores us
        await asyncio.sleep(0.01)
    waiting = asyncio.create_task(desk.task_queries.wait_ended(task))
    await asyncio.sleep(0)
    await desk.task_queries.stop(await desk.task_queries.find(task), by=person("me"), reason="by force", force=True)
    assert (await waiting).state == "stopped"
    assert not await desk.tasks.supervisor.members(task)


@pytest.mark.parametrize("desk", [TaskTimings(retry=0.0)], indirect=True)
async def test_an_end_whose_commit_was_in_doubt_is_written_once_and_reported_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, doubts = desk.store.append, [Unavailable("The disk does not take writes.")]

    async def doubtful(wanted: Append) -> Appended:
        appended = await append(wanted)
        if ends(wanted) and doubts:
            raise doubts.pop()
        return appended

    monkeypatch.setattr(desk.store, "append", doubtful)
    task = (await desk.call("terminal", command="true", background=True)).task
    while task in desk.tasks._followed:
        await asyncio.sleep(0.01)
    assert not doubts and len(await of_task(desk, task, TaskFinished)) == 1
    assert len(await desk.notes()) == 1


async def test_a_command_that_ends_while_it_is_detached_is_reported(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, raced = desk.store.append, set[str]()

    async def racing(wanted: Append) -> Appended:
        task = ends(wanted)
        if task and task not in raced:
            raced.add(task)
            await desk.tasks.task_log.background(task, "it took too long")
        return await append(wanted)

    monkeypatch.setattr(desk.store, "append", racing)
    task = (await desk.call("terminal", command="echo told")).task
    (note,) = await desk.notes()
    assert note.task == task


async def test_a_command_that_ended_before_its_timeout_was_looked_at_has_ended(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gateway was away for longer than the timeout; its command was not."""
    first = await desk.call_as("1.1.0", "terminal", command="echo told; exit 5")
    later = SystemClock().now() + DAY_MS
    monkeypatch.setattr(SystemClock, "now", lambda _: later)
    again = await desk.call_as("1.1.0", "terminal", command="echo told; exit 5")
    assert again == first and again.output == "told\n[failed: exit code 5]"
    assert not await of_task(desk, first.task, TaskBackgrounded)


async def test_a_session_that_was_put_away_is_not_woken_by_the_end_that_this_caused(desk: Desk) -> None:
    task = (await desk.call("terminal", command="sleep 60", background=True, notify=True)).task
    await desk.sessions.execute(SESSION, ArchiveSession(), Caller(CommandKey("archive-it", "digest"), person("me")))
    row = await desk.task_queries.wait_ended(task)
    assert (row.state, row.stop_reason) == ("stopped", "its session was archived")
    records = await desk.store.load(session_stream(SESSION), after=0)
    assert not [record for record in records if isinstance(record.event, InputReceived)]
    assert [note.task for note in await desk.notes()] == [task]


@pytest.mark.parametrize("desk", [TaskTimings(retry=0.0)], indirect=True)
async def test_a_stop_that_the_disk_refused_is_tried_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    append, troubles = desk.store.append, [Unavailable("The disk does not take writes.")]

    async def full(wanted: Append) -> Appended:
        if troubles and any(isinstance(event, TaskStopRequested) for event in wanted.writes[0].events):
            raise troubles.pop()
        return await append(wanted)

    monkeypatch.setattr(desk.store, "append", full)
    started = await desk.call("terminal", command="sleep 60", background=True)
    assert started.end is not None
    assert started.end.running, "it is started, not done"
    task = started.task
    await desk.sessions.execute(SESSION, ArchiveSession(), Caller(CommandKey("archive-it", "digest"), person("me")))
    row = await desk.task_queries.wait_ended(task)
    assert (row.state, row.stop_reason, troubles) == ("stopped", "its session was archived", [])


@pytest.mark.parametrize("desk", [TaskTimings(clock=0.02)], indirect=True)
async def test_a_time_that_passed_while_the_machine_slept_is_noticed_soon_after(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of the loop stands still meanwhile, so a timer alone would come hours too late."""
    now = SystemClock().now()
    started = intent(desk, "sleep 60", until=now + DAY_MS)
    await desk.tasks.start_command(started)
    assert (await desk.task_queries.find(started.task)).stop_by == ""
    monkeypatch.setattr(SystemClock, "now", lambda _: now + DAY_MS)
    row = await desk.task_queries.wait_ended(started.task)
    assert (row.state, row.stop_reason) == ("stopped", "its time limit had passed")


async def test_the_timer_of_a_command_that_has_ended_is_dropped(desk: Desk) -> None:
    started = intent(desk, "sleep 60", until=SystemClock().now() + DAY_MS)
    await desk.tasks.start_command(started)
    (timer,) = (task for task in asyncio.all_tasks() if task.get_name() == f"the time of task {started.task}")
    await desk.task_queries.stop(await desk.task_queries.find(started.task), by=person("me"), reason="", force=True)
    await asyncio.wait({timer})
    assert timer.cancelled()


async def test_promise_7_a_command_whose_claim_is_damaged_is_lost_and_does_not_hide_the_others(desk: Desk) -> None:
    task = await intended(desk)
    directory = desk.context.cwd.parent / "home" / "tasks" / task
    directory.mkdir()
    (directory / "claim").write_text("what is this\n")
    assert [view.id for view in await desk.task_queries.running()] == [task]
    desk.tasks.follow_to_end(await desk.task_queries.find(task))
    row = await desk.task_queries.wait_ended(task)
    assert row.state == "lost" and "cannot be read" in row.reason


async def test_a_file_whose_name_is_no_text_does_not_keep_an_end_from_being_written(desk: Desk) -> None:
    subprocess.run(["git", "init", "-q", desk.context.cwd], check=True)
    task = (await desk.call("terminal", command=r"touch $(printf 'odd\377')", background=True)).task
    row = await desk.task_queries.wait_ended(task)
    assert (row.state, row.files) == ("done", ["odd\ufffd"])


# --- beginnings -------------------------------------------------------------------------------------


@pytest.mark.parametrize("lifetime", ["session", "persist"])
async def test_a_turn_that_is_stopped_while_its_command_starts_leaves_none_behind(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, lifetime: str
) -> None:
    start, reached, go = desk.tasks.supervisor.start, asyncio.Event(), asyncio.Event()

    async def slow(command: CommandSpec) -> Running:
        reached.set()
        await go.wait()
        return await start(command)

    monkeypatch.setattr(desk.tasks.supervisor, "start", slow)
    work = desk.call_as(await begin_turn(desk, 1), "terminal", command="sleep 60", lifetime=lifetime)
    call = asyncio.create_task(work)
    await reached.wait()
    call.cancel()
    await asyncio.wait({call})
    await end_turn(desk, 1)
    go.set()
    (task,) = await desk.store.task_ids()
    row = await desk.tasks.wait_ended(task)
    assert (row.state, row.stop_reason) == ("stopped", "its turn ended")


async def test_a_command_starts_also_when_nobody_can_remember_what_was_there_before(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", desk.context.cwd], check=True)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(Path, "write_text", full)
    task = (await desk.call("terminal", command="true", background=True)).task
    row = await desk.task_queries.wait_ended(task)
    assert (row.state, row.files) == ("done", None)


async def test_an_intent_that_nobody_carried_out_is_found_by_the_retry(desk: Desk) -> None:
    """Its commit was in doubt, and it had happened; whoever wrote it was told that it had not."""
    started = intent(desk)
    key = CommandKey("start-it", "digest")
    await desk.tasks.task_log.start(started, command=key)
    retry = msgspec.structs.replace(started, task="cd" * 8)
    assert (await desk.tasks.start_command(retry, command=key)).duplicate
    row = await desk.tasks.wait_ended(started.task)
    assert (row.state, row.reason) == ("done", "exit code 0")


@pytest.mark.parametrize("desk", [TaskTimings(retry=0.0)], indirect=True)
async def test_the_start_of_a_command_is_written_once_although_its_commit_was_in_doubt(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, in_doubt = desk.store.append, [True]

    async def told_wrongly(asked: Append) -> Appended:
        appended = await append(asked)
        if isinstance(asked.writes[0].events[0], ProcessStarted) and in_doubt:
            in_doubt.clear()
            raise Unavailable("the connection was lost in the middle of a commit")
        return appended

    monkeypatch.setattr(desk.store, "append", told_wrongly)
    waits = "until [ -e go ]; do sleep 0.02; done"
    task = (await desk.call("terminal", command=waits, background=True)).task
    await desk.tasks.wait_started(task)
    (desk.context.cwd / "go").touch()
    assert (await desk.tasks.wait_ended(task)).state == "done"
    assert len(await of_task(desk, task, ProcessStarted)) == 1


async def test_promise_7_a_command_that_began_before_that_was_written_is_said_to_run(desk: Desk) -> None:
    """We were killed between the two; it is found again with its pid."""
    task = await intended(desk)
    environment = {"PATH": "/usr/bin:/bin"}
    running = await desk.tasks.supervisor.start(
        CommandSpec(id=task, run="sleep 60", cwd=desk.context.cwd, env=environment)
    )
    with desk.store.subscribe(task_stream(task)) as changes:
        desk.tasks.follow_to_end(await desk.task_queries.find(task))
        await changes.wait()
    assert (await desk.task_queries.find(task)).pid == running.pid


async def test_promise_7_a_command_whose_directory_is_gone_is_lost_and_not_started_again(desk: Desk) -> None:
    task = await intended(desk)
    await desk.tasks.task_log.add(ProcessStarted(task=task, pid=1))
    desk.tasks.follow_to_end(await desk.task_queries.find(task))
    row = await desk.tasks.wait_ended(task)
    assert row.state == "lost" and "nothing in its directory says how it ended" in row.reason


async def test_a_call_whose_task_was_pruned_says_so_and_does_not_run_again(desk: Desk) -> None:
    await desk.call_as("1.1.0", "terminal", command="echo x >> ran")
    await Pruning(desk.store, desk.tasks.supervisor, SystemClock()).prune(Rule(), by=person("me"))
    again = await desk.call_as("1.1.0", "terminal", command="echo x >> ran")
    assert again.outcome == "failed" and "which was pruned" in again.output
    assert (desk.context.cwd / "ran").read_text() == "x\n"


async def test_what_is_no_task_of_ours_does_not_keep_the_gateway_from_starting(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    (home.tasks / "lost+found").mkdir(parents=True)
    async with opened(tmp_path) as desk:
        assert (await desk.call("terminal", command="true")).outcome == "done"
    assert (home.tasks / "lost+found").exists()


async def test_promise_6_files_of_a_pruned_task_are_deleted_by_the_next_gateway_and_no_others(tmp_path: Path) -> None:
    """A gateway may be killed between the prune and the deletion of the files."""
    home = Home(tmp_path / "home")
    home.prepare()
    first = await Desk(home, tmp_path).open()
    command = "printf 'with a \\033[1mcolour'"
    pruned, kept = [(await first.call("terminal", command=command, background=True)).task for _ in range(2)]
    for task in (pruned, kept):
        await first.task_queries.wait_ended(task)
    prune = TaskPruned(task=pruned, title="", state="done", bytes=0, by=person("me"))
    await first.store.append(Append((Write(SYSTEM, (prune,)),), SystemClock().now()))
    await first.tasks.stop()
    await first.store.close()
    assert (home.tasks / pruned).exists()
    second = Desk(home, tmp_path)
    await second.tasks.start()
    assert [(home.tasks / task).exists() for task in (pruned, kept)] == [False, True]
    await second.close()


async def test_what_was_remembered_of_tasks_that_are_over_is_cleared_at_the_next_start(tmp_path: Path) -> None:
    """A gateway may be killed between the end of a task and its last deed."""
    home = Home(tmp_path / "home")
    home.prepare()
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    first = await Desk(home, tmp_path).open()
    over = (await first.call("terminal", command="true", background=True)).task
    await first.task_queries.wait_ended(over)
    running = (await first.call("terminal", command="sleep 60", background=True)).task
    await first.tasks.stop()
    await first.store.close()
    changes = GitSnapshots(home.tasks)
    for task in (over, "ef" * 8):
        await changes.take(task, tmp_path)
    second = Desk(home, tmp_path)
    await second.tasks.start()
    assert changes.remembered() == {running}
    await second.close()


# --- commands and their turns -----------------------------------------------------------------------


async def write(desk: Desk, *events: AnyEvent) -> None:
    await desk.store.append(Append((Write(session_stream(SESSION), events),), SystemClock().now()))


async def begin_turn(desk: Desk, turn: int) -> str:
    """A turn that has asked for one command; the id of the call."""
    call = Call(call=f"{turn}.1.0", tool="terminal", arguments="{}")
    answer = ModelResponded(
        turn=turn, step=1, text="", thinking="", calls=[call], finish_reason="stop", usage=Usage(), duration_ms=0
    )
    asked = ModelRequested(turn=turn, step=1, attempt=1, model="m", context_version=1)
    await write(desk, TurnStarted(turn=turn, inputs=[], profile="demo"), asked, answer)
    await write(desk, ToolCallStarted(turn=turn, call=call.call, tool="terminal", effect="keyed"))
    return call.call


async def end_turn(desk: Desk, turn: int) -> None:
    call = f"{turn}.1.0"
    cut = ToolCallFinished(turn=turn, call=call, tool="terminal", outcome="failed", output="", duration_ms=0)
    await write(desk, cut, TurnFinished(turn=turn, outcome="stopped", reason="stopped by me"))


async def begun(desk: Desk) -> str:
    """The command that runs, once it does."""
    while not (rows := [row for row in await desk.store.running_tasks() if row.pid is not None]):
        await asyncio.sleep(0.01)
    return rows[-1].id


async def test_the_end_of_a_turn_that_is_noticed_late_does_not_end_the_command_of_the_next_turn(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    react, go, heard = desk.tasks._follower._handle, asyncio.Event(), asyncio.Event()

    async def late(stream: str, kinds: set[str]) -> None:
        await go.wait()
        await react(stream, kinds)
        if "TurnFinished" in kinds:
            heard.set()

    monkeypatch.setattr(desk.tasks._follower, "_handle", late)
    await begin_turn(desk, 1)
    await end_turn(desk, 1)
    call = asyncio.create_task(desk.call_as(await begin_turn(desk, 2), "terminal", command="sleep 60"))
    task = await begun(desk)
    while task not in desk.tasks._followed:
        await asyncio.sleep(0.01)
    go.set()
    await heard.wait()
    assert (await desk.task_queries.find(task)).stop_by == ""
    call.cancel()
    await end_turn(desk, 2)
    row = await desk.tasks.wait_ended(task)
    assert (row.state, row.stop_reason) == ("stopped", "its turn ended")


# --- commands that a killed gateway had accepted ----------------------------------------------------


class Killed:
    """A gateway that was killed when it had written the intent and not started the command."""

    def __init__(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        self.desk = desk
        self._patch = monkeypatch
        self._reached = asyncio.Event()
        monkeypatch.setattr(desk.tasks.supervisor, "start", self._start)

    async def _start(self, command: CommandSpec) -> Running:
        self._reached.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def accepts(self, work: Coroutine[None, None, object]) -> None:
        """Take a command, and be killed."""
        starting = asyncio.create_task(work)
        await self._reached.wait()
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)

    async def follow(self, *, not_before: int = 0) -> None:
        """The next gateway begins."""
        await self.desk.tasks.stop()
        await self.desk.store.close()
        self._patch.undo()
        while SystemClock().now() < not_before:
            await asyncio.sleep(0.01)
        again = Desk(Home(self.desk.context.cwd.parent / "home"), self.desk.context.cwd)
        vars(self.desk).update(vars(again))
        await again.tasks.start()


@pytest.fixture
def killed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Killed:
    return Killed(desk, monkeypatch)


async def test_promise_1_a_command_that_was_accepted_is_started_by_the_next_gateway(desk: Desk, killed: Killed) -> None:
    started = msgspec.structs.replace(intent(desk, "read a; echo $a $SECRET; echo x >> ran; pwd"), stdin=True)
    await killed.accepts(desk.tasks.start_command(started, env={"PATH": "/usr/bin:/bin", "SECRET": SECRET}))
    await killed.follow()
    await desk.tasks.wait_started(started.task)
    await desk.tasks.supervisor.write(started.task, b"given\n")
    row = await desk.tasks.wait_ended(started.task)
    assert (row.state, row.exit_code) == ("done", 0)
    output = (await desk.task_queries.window(row, offset=0, limit=1000)).data.decode()
    assert output == f"given {SECRET}\n{desk.context.cwd}\n"
    assert (desk.context.cwd / "ran").read_text() == "x\n"
    log = b"\n".join((await desk.store.read_all(after=0, limit=100)).lines)
    assert SECRET.encode() not in log
    kept = [path for path in (desk.context.cwd.parent / "home").rglob("*") if path.name == started.task]
    assert kept == [desk.context.cwd.parent / "home" / "tasks" / started.task], "its environment is gone"


async def test_promise_7_a_command_is_not_started_with_another_environment_than_its_own(
    desk: Desk, killed: Killed
) -> None:
    started = intent(desk, "echo x >> ran")
    await killed.accepts(desk.tasks.start_command(started, env={"PATH": "/usr/bin:/bin"}))
    (desk.context.cwd.parent / "home" / "tasks" / ".environments" / started.task).unlink()
    await killed.follow()
    row = await desk.tasks.wait_ended(started.task)
    assert row.state == "failed" and "its environment is lost" in row.reason
    assert not (desk.context.cwd / "ran").exists()


async def test_an_accepted_command_that_was_cancelled_is_not_started_by_the_next_gateway(
    desk: Desk, killed: Killed
) -> None:
    started = intent(desk, "echo x >> ran")
    await killed.accepts(desk.tasks.start_command(started))
    await desk.tasks.task_log.add(TaskStopRequested(task=started.task, by=person("ann"), reason="", force=False))
    await killed.follow()
    row = await desk.tasks.wait_ended(started.task)
    assert (row.state, row.reason) == ("stopped", "never started: stopped by ann")
    assert not (desk.context.cwd / "ran").exists()


async def test_an_accepted_command_whose_time_is_over_is_not_started(desk: Desk, killed: Killed) -> None:
    until = SystemClock().now() + 1_000
    started = intent(desk, "echo x >> ran", until=until)
    await killed.accepts(desk.tasks.start_command(started))
    await killed.follow(not_before=until)
    row = await desk.tasks.wait_ended(started.task)
    assert (row.state, row.reason) == ("stopped", "never started: its time limit had passed")


@pytest.mark.parametrize("background", [False, True])
async def test_the_command_of_a_call_begins_when_the_call_is_carried_out_again(
    desk: Desk, killed: Killed, background: bool
) -> None:
    call = await begin_turn(desk, 1)
    arguments = {"command": "echo x >> ran; exit 5", "background": background}
    await killed.accepts(desk.call_as(call, "terminal", **arguments))
    await killed.follow()
    (waiting,) = await desk.store.running_tasks()
    while desk.tasks._followed:
        await asyncio.sleep(0.01)
    assert not (desk.context.cwd / "ran").exists(), "its turn may wait for a person first"
    result = await desk.call_as(call, "terminal", **arguments)
    row = await desk.tasks.wait_ended(result.task)
    assert (row.id, row.exit_code) == (waiting.id, 5)
    assert (desk.context.cwd / "ran").read_text() == "x\n"


async def test_promise_3_the_command_of_a_call_runs_once_although_its_keeper_was_late(
    desk: Desk, killed: Killed, tmp_path: Path
) -> None:
    """The next gateway was faster than the keeper, which then recorded that nothing ran."""
    call, arguments = await begin_turn(desk, 1), {"command": "echo x >> ran; exit 5"}
    await killed.accepts(desk.call_as(call, "terminal", **arguments))
    (waiting,) = await desk.store.running_tasks()
    spec = desk.tasks.defaults.spec(await desk.tasks.task_log.started(waiting.id), None)
    async with late_keeper(desk.tasks.supervisor.root, spec, place=tmp_path) as keeper:
        await killed.follow()
        await keeper.go_on()
    result = await desk.call_as(call, "terminal", **arguments)
    assert (result.task, result.output) == (waiting.id, "[failed: exit code 5]")
    assert (desk.context.cwd / "ran").read_text() == "x\n"


@pytest.mark.parametrize("background", [False, True])
async def test_the_command_of_a_call_whose_turn_was_stopped_before_it_began_never_begins(
    desk: Desk, killed: Killed, background: bool
) -> None:
    call = await begin_turn(desk, 1)
    await killed.accepts(desk.call_as(call, "terminal", command="echo x >> ran", background=background))
    (waiting,) = await desk.store.running_tasks()
    await killed.follow()
    await end_turn(desk, 1)
    row = await desk.tasks.wait_ended(waiting.id)
    assert (row.state, "never started" in row.reason) == ("stopped", True), row.reason
    assert not (desk.context.cwd / "ran").exists()


# --- pruning ----------------------------------------------------------------------------------------


async def test_promise_6_a_prune_that_is_sent_twice_takes_nothing_the_second_time(desk: Desk) -> None:
    pruning, key = Pruning(desk.store, desk.tasks.supervisor, SystemClock()), CommandKey("prune-it", "digest")
    first = (await desk.call("terminal", command="echo one", background=True)).task
    await desk.task_queries.wait_ended(first)
    assert [one.ended.id for one in await pruning.prune(Rule(), by=person("me"), command=key)] == [first]
    second = (await desk.call("terminal", command="echo two", background=True)).task
    row = await desk.task_queries.wait_ended(second)
    with pytest.raises(Conflict, match="already carried out"):
        await pruning.prune(Rule(), by=person("me"), command=key)
    assert (await desk.task_queries.window(row, offset=0, limit=100)).data == b"two\n"


async def test_promise_6_what_is_pinned_while_a_prune_is_under_way_stays(desk: Desk) -> None:
    pruning = Pruning(desk.store, desk.tasks.supervisor, SystemClock())
    tasks = [(await desk.call("terminal", command="echo kept", background=True)).task for _ in range(2)]
    for task in tasks:
        await desk.task_queries.wait_ended(task)
    seen = await pruning.preview(Rule())
    await desk.tasks.task_log.pin(tasks[0], pinned=True, by=person("me"))
    assert [one.ended.id for one in await pruning.remove(seen, by=person("me"))] == [tasks[1]]
    assert [one.ended.id for one in await pruning.remove(seen, by=person("me"))] == [], "nor is anything pruned twice"
    kept = await desk.task_queries.find(tasks[0])
    assert (await desk.task_queries.window(kept, offset=0, limit=100)).data == b"kept\n"


async def test_every_column_is_read_only_of_the_tasks_that_a_prune_shows(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [(await desk.call("terminal", command=f"echo {n}", background=True)).task for n in range(3)]
    for task in tasks:
        await desk.task_queries.wait_ended(task)
    read, whole = desk.store.tasks_by_id, list[str]()

    async def reading(tasks: list[str]) -> dict[str, TaskRow]:
        whole.extend(tasks)
        return await read(tasks)

    monkeypatch.setattr(desk.store, "tasks_by_id", reading)
    pruning = Pruning(desk.store, desk.tasks.supervisor, SystemClock(), shown=1)
    seen = await pruning.preview(Rule())
    assert {one.ended.id for one in seen} == set(tasks) and whole == [seen[0].ended.id]
    assert [one.row is not None for one in seen] == [True, False, False]
    await pruning.remove(seen, by=person("me"))
    assert await desk.store.ended_tasks() == []
