"""The tools `terminal`, `process` and `delegate` on real processes, without a gateway around them."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.clock import SystemClock
from holdfast.config import Home
from holdfast.domain.commands import CreateSession
from holdfast.domain.errors import Conflict, Corrupt
from holdfast.domain.events import session_stream
from holdfast.domain.events.session import NoteReceived, ToolCallFinished
from holdfast.domain.task import task_of_left
from holdfast.processes.identity import process
from holdfast.profiles import Profiles
from holdfast.runtime.tools.context import ToolContext
from holdfast.runtime.tools.terminal import command_tools
from holdfast.runtime.tools.tool import AnyTool, CommandEnd, ToolOutput, effect_of
from holdfast.schemas.tasks import TaskView
from holdfast.secrets import NO_SECRETS, Secrets
from holdfast.sessions import Caller
from holdfast.store.contract import Append, CommandKey, Write
from holdfast.timings import USUAL, TaskTimings, Timings
from tests.actors import person
from tests.eventually import PATIENCE, eventually
from tests.rig import GatewayRig

SESSION = "0123456789abcdef"
SECRET = "the-key-of-a-provider"


def alive(pid: int) -> bool:
    found = process(pid)
    return found is not None and not found.dead


KNOWN = Secrets({"KEY": SECRET})


class Desk(GatewayRig):
    """An agent's two tools, and the archive behind them."""

    def __init__(self, home: Home, cwd: Path, *, secrets: Secrets = KNOWN, timings: TaskTimings = USUAL.tasks) -> None:
        profiles = Profiles(home.config)
        profiles.secrets = secrets
        super().__init__(home.path, profiles, timings=Timings(tasks=timings))
        self.tools: dict[str, AnyTool] = {
            tool.name: tool for tool in command_tools(self.tasks, self.task_queries, self.clock, timings)
        }
        self.context = ToolContext(cwd, profile="demo", session=SESSION, other_sessions=True)
        self._calls = 0

    async def open(self) -> Desk:
        caller = Caller(CommandKey("create-it", "digest"), person("test"))
        await self.sessions.create(CreateSession(), session=SESSION, profile="demo", cwd="/", caller=caller)
        await self.tasks.start()
        while (
            not self.tasks._follower._next_sweep
        ):  # the first look at what runs; no turn is open for what we call here
            await asyncio.sleep(0)
        return self

    async def close(self) -> None:
        for row in await self.store.running_tasks():
            await self.tasks.supervisor.kill(row.id, grace=0)
        await super().close()

    async def call(self, tool: str, **arguments: object) -> ToolOutput:
        self._calls += 1
        return await self.call_as(f"1.{self._calls}.0", tool, **arguments)

    async def call_as(self, call: str, tool: str, **arguments: object) -> ToolOutput:
        context = replace(self.context, call=call)
        return await self.tools[tool].call(context, json.dumps(arguments))

    async def write_result(self, call: str, result: ToolOutput) -> None:
        """What a worker writes when a call has returned."""
        finished = ToolCallFinished(
            turn=1, call=call, tool="terminal", outcome="done", output=result.output, duration_ms=1, task=result.task
        )
        await self.store.append(Append((Write(session_stream(SESSION), (finished,)),), SystemClock().now()))

    async def notes(self) -> list[NoteReceived]:
        records = await self.store.load(session_stream(SESSION), after=0)
        return [record.event for record in records if isinstance(record.event, NoteReceived)]


@asynccontextmanager
async def opened(tmp_path: Path, timings: TaskTimings = USUAL.tasks) -> AsyncIterator[Desk]:
    home = Home(tmp_path / "home")
    home.prepare()
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    desk = Desk(home, cwd, timings=timings)
    try:
        yield await desk.open()
    finally:
        await desk.close()


@pytest.fixture
async def desk(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Desk]:
    async with opened(tmp_path, getattr(request, "param", USUAL.tasks)) as desk:
        yield desk


async def test_past_its_timeout_a_command_continues_in_the_background_and_is_reported_later(desk: Desk) -> None:
    command = "echo first; until [ -e go ]; do sleep 0.02; done; echo second > late"
    result, timeout = await desk.call("terminal", command=command, timeout=1), 10
    while "first" not in result.output:  # a busy machine needs some before the first word
        result, timeout = await desk.call("terminal", command=command, timeout=timeout), timeout * 2
    assert result.outcome == "done" and f"in the background as task {result.task}" in result.output
    assert result.output.endswith("So far it printed:\nfirst\n")
    row = await desk.task_queries.find(result.task)
    assert (row.state, row.foreground) == ("running", 0)
    assert not await desk.notes()
    (desk.context.cwd / "go").touch()
    await desk.task_queries.wait_ended(result.task)
    assert (desk.context.cwd / "late").read_text() == "second\n", "it was not killed"
    (note,) = [note for note in await desk.notes() if note.task == result.task]
    assert "ended as done: exit code 0" in note.text


async def test_the_same_call_again_finds_its_command_and_does_not_repeat_it(desk: Desk) -> None:
    first = await desk.call_as("1.1.0", "terminal", command="echo x >> ran; echo told; exit 5")
    second = await desk.call_as("1.1.0", "terminal", command="echo x >> ran; echo told; exit 5")
    other = await desk.call_as("1.1.1", "terminal", command="echo x >> ran; echo told; exit 5")
    assert first == second and first.task != other.task
    assert first.output == "told\n[failed: exit code 5]"
    assert (desk.context.cwd / "ran").read_text() == "x\nx\n"


async def test_a_call_says_how_its_command_ended(desk: Desk) -> None:
    assert (await desk.call("terminal", command="exit 3")).end == CommandEnd(exit_code=3)
    assert (await desk.call("terminal", command="kill -9 $$")).end == CommandEnd(signal="SIGKILL")
    call = asyncio.create_task(desk.call("terminal", command="exec sleep 60"))
    while not (running := await desk.task_queries.running(foreground=True)) or running[0].pid is None:
        await asyncio.sleep(0.01)
    await desk.task_queries.stop(await desk.task_queries.find(running[0].id), by=person("me"), reason="", force=True)
    assert (await call).end == CommandEnd(signal="SIGKILL", stopped=True)


async def test_a_person_waits_reads_writes_and_kills_through_process(desk: Desk) -> None:
    started = await desk.call("terminal", command="read a; echo got $a; sleep 60", background=True, stdin=True)
    written = await desk.call("process", action="write", task=started.task[:6], text="something\n")
    assert written.output == "It took 10 of 10 bytes."
    async with asyncio.timeout(PATIENCE):
        while "got something" not in (await desk.call("process", action="log", task=started.task)).output:
            await asyncio.sleep(0.02)
    polled = await desk.call("process", action="poll", task=started.task)
    assert polled.output.startswith(f"{started.task}, process, running")
    assert (await desk.call("process", action="wait", task=started.task, timeout=1)).output.startswith("It still runs")
    killed = await desk.call("process", action="kill", task=started.task)
    assert killed.output.startswith(f"stopped: stopped by the agent of session {SESSION}")
    assert (await desk.call("process", action="list")).output == "Nothing is running in the background."
    waited = await desk.call("process", action="wait", task=started.task)
    assert waited.output.startswith("got something\n[stopped: ")


@pytest.mark.parametrize("desk", [TaskTimings(kill=0)], indirect=True)
async def test_a_kill_waits_only_so_long_for_the_end(desk: Desk) -> None:
    started = await desk.call("terminal", command="trap '' TERM; sleep 60", background=True)
    killed = await desk.call("process", action="kill", task=started.task)
    assert (killed.outcome, killed.output) == (
        "done",
        "It was asked to end, but still runs after 0 s; `list` shows it.",
    )


@pytest.mark.parametrize("instead", ["pipe", "link"])
async def test_promise_7_an_output_that_is_replaced_while_it_is_read_is_not_shown(
    desk: Desk, tmp_path: Path, instead: str
) -> None:
    """A link would show somebody else's file, and a pipe would be waited for without end."""
    (tmp_path / "precious").write_text("precious")
    command = "echo mine; read go; exit 3"
    task = (await desk.call("terminal", command=command, background=True, stdin=True)).task
    row, output = await desk.task_queries.find(task), desk.tasks.supervisor.output(task)

    async def printed() -> bool:
        return (await desk.task_queries.window(row, offset=0, limit=100)).data == b"mine\n"

    await eventually(printed)
    output.path.unlink()
    os.mkfifo(output.path) if instead == "pipe" else output.path.symlink_to(tmp_path / "precious")
    async with asyncio.timeout(PATIENCE):
        for look in (
            desk.task_queries.window(row, offset=0, limit=100),
            desk.task_queries.tail(row, lines=1, limit=100),
        ):
            with pytest.raises(Corrupt, match="is no longer a regular file"):
                await look
        assert await desk.task_queries.search("precious", limit=10) == []
        logged = await desk.call("process", action="log", task=task)
        assert "output.log is no longer a regular file, so it is not shown" in logged.output
        await desk.call("process", action="write", task=task, text="go\n")
        row = await desk.task_queries.wait_ended(task)
        later = (await desk.call("terminal", command="echo la''ter", background=True)).task
        await desk.task_queries.wait_ended(later)  # what is still running is not searched in the index

        async def indexed() -> bool:
            return [hit.task for hit in await desk.task_queries.search("later", limit=10)] == [later]

        await eventually(indexed)  # so the index has read the end of the other command, too
        assert await desk.task_queries.search("precious", limit=10) == []
    assert (row.state, row.exit_code, row.output_bytes) == ("failed", 3, 0)
    assert "output.log is no longer a regular file" in row.evidence, "its end is known, its output is not"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"action": "log"}, "needs the id of a task"),
        ({"action": "kill", "task": "ffffffff"}, "There is no task ffffffff"),
        ({"action": "dance"}, "do not fit"),
        ({"action": "wait", "task": "ffff", "timeout": 0}, "do not fit"),
    ],
)
async def test_what_process_cannot_do_it_says(desk: Desk, arguments: dict[str, object], words: str) -> None:
    result = await desk.call("process", **arguments)
    assert (result.outcome, words in result.output) == ("failed", True), result


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"command": ""}, "do not fit"),
        ({"command": "true", "cwd": ".."}, "outside of the working directory"),
        ({"command": "true", "cwd": "missing"}, "not a directory"),
        ({"command": "true", "timeout": 0}, "do not fit"),
        ({"command": "true", "lifetime": "eternal"}, "do not fit"),
        ({"command": "tr\0ue"}, "NUL"),
    ],
)
async def test_what_terminal_cannot_do_it_says(desk: Desk, arguments: dict[str, object], words: str) -> None:
    result = await desk.call("terminal", **arguments)
    assert (result.outcome, words in result.output) == ("failed", True), result
    assert await desk.store.task_ids() == {}


async def test_what_may_be_done_after_a_crash_depends_on_the_action(desk: Desk) -> None:
    effects = {
        action: effect_of(desk.tools["process"], json.dumps({"action": action}))
        for action in ("list", "poll", "log", "wait", "kill", "write")
    }
    assert effects == dict.fromkeys(("list", "poll", "log", "wait"), "pure") | {"kill": "idempotent", "write": "unsafe"}
    assert effect_of(desk.tools["terminal"], '{"command": "true"}') == "keyed"


async def test_binary_output_and_output_without_an_end_of_line(desk: Desk) -> None:
    binary = await desk.call("terminal", command=r"printf '\377\376\000abc'")
    assert binary.output == "\ufffd\ufffdabc\n[done: exit code 0]"
    row = await desk.task_queries.find(binary.task)
    assert (await desk.task_queries.window(row, offset=0, limit=100)).data == b"\xff\xfe\x00abc", (
        "kept as it was written"
    )
    endless = await desk.call("terminal", command="head -c 200000 /dev/zero | tr '\\0' x")
    assert len(endless.output) < 40_000 and "of 200000 bytes left out" in endless.output


async def test_the_middle_of_a_very_long_output_is_dropped_and_said_to_be(desk: Desk) -> None:
    desk.context = replace(desk.context, kept_output=(4096, 8192))
    result = await desk.call("terminal", command="seq -f %019.0f 1 1000000", timeout=600)
    row = await desk.task_queries.find(result.task)
    assert row.output_bytes == 20_000_000
    window = await desk.task_queries.window(row, offset=4096, limit=100)
    assert window.dropped == row.dropped_bytes and window.dropped > 10_000_000
    assert result.output.startswith("0000000000000000001\n") and "0000000000001000000\n[done" in result.output
    assert "of 20000000 bytes left out" in result.output


SERVER = (
    "import socket, sys; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); s.accept()"
)


async def left_by(desk: Desk, task: str) -> TaskView:
    """What the command left behind, once somebody has seen what it does."""
    async with asyncio.timeout(PATIENCE):
        while True:
            (view,) = [one for one in await desk.task_queries.running() if one.left_by == task]
            if view.ports:
                return view
            await asyncio.sleep(0.05)


async def test_promise_7_what_a_command_left_behind_is_a_task_that_outlives_the_gateway_and_can_be_stopped(
    desk: Desk,
) -> None:
    started = await desk.call("terminal", command=f'{sys.executable} -c "{SERVER}" & sleep 0.1; echo over')
    assert started.end == CommandEnd(exit_code=0) and "over" in started.output
    view = await left_by(desk, started.task)
    assert f"[It left processes behind, which keep running as task {view.id}, pid {view.pid}.]" in started.output
    await desk.write_result("1.1.0", started)
    assert (view.kind, view.session, view.lifetime, view.foreground) == ("process", SESSION, "session", False)
    assert view.title.startswith("left by ") and alive(view.pid or 0)
    (port,) = view.ports
    listed = (await desk.call("process", action="list")).output
    assert f"pid {view.pid}" in listed and f"port {port}" in listed and "serving" in listed
    await desk.tasks.stop()
    await desk.store.close()
    again = Desk(Home(desk.context.cwd.parent / "home"), desk.context.cwd)
    vars(desk).update(vars(again))
    await again.tasks.start()
    assert (await left_by(desk, started.task)).pid == view.pid
    killed = await desk.call("process", action="kill", task=view.id)
    assert killed.output.startswith("stopped: stopped by the agent") and not alive(view.pid or 0)
    assert await desk.task_queries.running() == []
    async with asyncio.timeout(PATIENCE):
        while (desk.context.cwd.parent / "home" / "tasks" / started.task).exists():  # its output is in the log
            await asyncio.sleep(0.02)


async def test_what_a_command_left_behind_ends_by_itself_with_its_code(desk: Desk) -> None:
    os.mkfifo(desk.context.cwd / "go")
    started = await desk.call("terminal", command="(setsid sh -c 'read line <go; exit 3' &)", background=True)
    row = await desk.task_queries.wait_ended(started.task)
    (view,) = await desk.task_queries.running()
    assert (row.state, view.left_by, len(row.survivors)) == ("done", started.task, 1)
    (desk.context.cwd / "go").write_text("\n")
    ended = await desk.task_queries.wait_ended(view.id)
    assert (ended.state, ended.exit_code, ended.evidence) == ("failed", 3, "recorded by its keeper")
    assert [note.task for note in await desk.notes()] == [started.task, view.id]


async def test_promise_7_when_a_gateway_has_started_no_ended_command_is_called_running(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    desk = await Desk(home, tmp_path).open()
    tasks = [(await desk.call("terminal", command="sleep 0.1; exit 4", background=True)).task for _ in range(8)]
    await desk.tasks.stop()
    records = [home.tasks / task / "exit" for task in tasks]
    await eventually(lambda: asyncio.sleep(0, all(record.exists() for record in records)))
    await desk.store.close()
    again = Desk(home, tmp_path)
    await again.tasks.start()
    assert {(await again.store.task(task)).state for task in tasks} == {"failed"}
    await again.close()


async def test_stopping_a_command_that_has_ended_ends_what_it_left_behind(desk: Desk) -> None:
    started = await desk.call("terminal", command="sleep 60 & echo left", background=True)
    row = await desk.task_queries.wait_ended(started.task)
    (view,) = await desk.task_queries.running()
    await desk.task_queries.stop(row, by=person("me"), reason="", force=True)
    assert (await desk.task_queries.wait_ended(view.id)).state == "stopped"
    with pytest.raises(Conflict):
        await desk.task_queries.stop(row, by=person("me"), reason="", force=True)


async def test_a_stop_of_what_was_left_behind_is_not_lost_while_that_is_being_taken_over(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_over, reached, go = desk.tasks.supervisor.take_over, asyncio.Event(), asyncio.Event()

    async def slow(id: str, left_by: str, *, oldest: int | None) -> None:
        reached.set()
        await go.wait()
        await take_over(id, left_by, oldest=oldest)

    monkeypatch.setattr(desk.tasks.supervisor, "take_over", slow)
    started = await desk.call("terminal", command="sleep 60 & echo left", background=True)
    row = await desk.task_queries.wait_ended(started.task)
    await reached.wait()
    await desk.task_queries.stop(row, by=person("me"), reason="", force=True)
    while desk.tasks.signals.sending:  # it finds nobody
        await asyncio.sleep(0)
    go.set()
    assert (await desk.task_queries.wait_ended(task_of_left(started.task))).state == "stopped"


async def test_what_is_gone_in_a_moment_was_not_left_behind(desk: Desk) -> None:
    result = await desk.call("terminal", command="sleep 0.05 & echo over")
    assert result.output == "over\n[done: exit code 0]"
    assert len(await desk.store.task_ids()) == 1


@pytest.mark.parametrize("desk", [TaskTimings(sample_age=3600.0)], indirect=True)
async def test_promise_7_what_a_command_does_is_unknown_and_not_empty_until_somebody_has_looked(desk: Desk) -> None:
    """A look is shared for a while; what begins after it has not been seen."""
    first = await desk.call("terminal", command="sleep 60", background=True)
    view = await desk.task_queries.view(await desk.task_queries.find(first.task))
    assert view.activity == "unknown" and "observed for only" in view.activity_evidence
    second = await desk.call("terminal", command="sleep 60", background=True)
    view = await desk.task_queries.view(await desk.task_queries.find(second.task))
    assert (view.activity, view.activity_evidence) == ("unknown", "it started after the last sample")
    await desk.call("process", action="kill", task=second.task)
    assert (await desk.task_queries.view(await desk.task_queries.find(second.task))).activity == "", (
        "nor is it for what is over"
    )


async def test_a_known_secret_that_a_command_prints_is_in_no_event_and_its_output_stays_raw(desk: Desk) -> None:
    printing = {"command": f"echo so; printf %s-%s {SECRET[:7]} {SECRET[8:]}"}
    waited = await desk.call("terminal", **printing)
    left = await desk.call("terminal", **printing, background=True, notify=False)
    woken = await desk.call("terminal", **printing, background=True, notify=True)
    for task in (waited.task, left.task, woken.task):
        row = await desk.task_queries.wait_ended(task)
        assert row.preview == "so\n[hidden: the value of KEY]"
        assert (await desk.task_queries.window(row, offset=0, limit=100)).data == f"so\n{SECRET}".encode(), (
            "its own file"
        )
    log = b"\n".join((await desk.store.read_all(after=0, limit=100)).lines)
    assert log.count(b"Its output ends with: so\\n[hidden: the value of KEY]") == 2 and SECRET.encode() not in log


async def test_promise_6_an_output_that_only_its_file_has_outlives_the_next_start(tmp_path: Path) -> None:
    """Also when nobody knows any more that there was a secret in it."""
    async with opened(tmp_path) as desk:
        task = (await desk.call("terminal", command=f"printf %s-%s {SECRET[:7]} {SECRET[8:]}")).task
    home = Home(tmp_path / "home")
    again = Desk(home, desk.context.cwd, secrets=NO_SECRETS)
    await again.tasks.start()
    assert (
        await again.task_queries.window(await again.task_queries.find(task), offset=0, limit=100)
    ).data == SECRET.encode()
    await again.close()


@contextmanager
def opened_by_the_loop(directory: Path) -> Iterator[list[str]]:
    """The files in a directory that this very thread opens meanwhile, as the interpreter tells it."""
    found: list[str] = []
    loop, watching = threading.get_ident(), True

    def hear(event: str, arguments: tuple[object, ...]) -> None:
        if watching and event == "open" and threading.get_ident() == loop and str(directory) in str(arguments[0]):
            found.append(str(arguments[0]))

    sys.addaudithook(hear)  # there is no way to take one away
    yield found
    watching = False


async def test_the_files_of_a_task_are_not_read_on_the_loop(desk: Desk, tmp_path: Path) -> None:
    started = await desk.call("terminal", command="printf 'a \\033[31mNeedle\\033[0m in it'; sleep 60", background=True)
    row = await desk.task_queries.find(started.task)
    while not (await desk.task_queries.window(row, offset=0, limit=100)).data:
        await asyncio.sleep(0.02)
    with opened_by_the_loop(tmp_path / "home" / "tasks" / started.task) as opened:
        (view,) = await desk.task_queries.views([row])
        (hit,) = await desk.task_queries.search("needle", limit=5)
    assert (view.output_bytes, hit.task, hit.snippet) == (23, started.task, "a Needle in it")
    assert opened == []


async def test_the_end_of_a_command_is_not_read_on_the_loop(desk: Desk, tmp_path: Path) -> None:
    with opened_by_the_loop(tmp_path / "home" / "tasks") as opened:
        result = await desk.call("terminal", command="echo told")
        assert result.output == "told\n[done: exit code 0]"
    assert [name for name in opened if name.endswith("output.log")] == []
