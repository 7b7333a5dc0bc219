"""What a command gets, what it does not, and the reason when it cannot begin."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.domain.errors import Conflict, Rejected, Unavailable
from holdfast.processes.command import Ended, NeverStarted, Running
from holdfast.processes.supervisor import Limits, Supervisor
from tests.bubblewrap import BUBBLEWRAP, needs_bubblewrap
from tests.processes.late_keeper import late_keeper
from tests.processes.rig import ENV, PYTHON, ProcessRig, code, fresh


async def test_a_shell_text_and_an_argv(rig: ProcessRig) -> None:
    outcome, output = await rig.run("echo out; echo err >&2; exit 7")
    assert isinstance(outcome, Ended)
    assert (outcome.code, outcome.signal, outcome.by, output) == (7, None, "keeper", b"out\nerr\n")
    outcome, output = await rig.run(("printf", "%s|", "a b", "$HOME", ""))
    assert (code(outcome), output) == (0, b"a b|$HOME||")
    outcome, output = await rig.run("-x 2>/dev/null; echo a text is never an option")
    assert output == b"a text is never an option\n"


async def test_a_signal_is_not_an_exit_code(rig: ProcessRig) -> None:
    outcome, _ = await rig.run("kill -SEGV $$")
    assert isinstance(outcome, Ended)
    assert (outcome.code, outcome.signal) == (None, 11)
    outcome, _ = await rig.run("exit 139")
    assert code(outcome) == 139


def test_a_closed_directory_in_the_path_does_not_hide_that_a_command_is_missing(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    program = (
        "import os, sys; from holdfast.processes.keeper import execute; os.getuid() or os.setuid(65534);"
        "execute(['no-such-command'], {'PATH': sys.argv[1]})"
    )
    ran = subprocess.run(
        [PYTHON, "-c", program, f"{tmp_path}/closed:/usr/bin"], check=False, capture_output=True, text=True
    )
    assert "FileNotFoundError" in ran.stderr


@pytest.mark.parametrize(
    ("run", "more", "reason"),
    [
        (("no-such-command",), {}, "no-such-command: No such file or directory"),
        (("/etc/passwd",), {}, "/etc/passwd: Permission denied"),
        (("true",), {"cwd": Path("/no/such/place")}, "the working directory /no/such/place: No such file or directory"),
        (("echo", "x" * 1_000_000), {}, "echo: Argument list too long"),
        ("echo " + "x" * 1_000_000, {}, "Argument list too long"),
    ],
    ids=["not found", "not executable", "cwd missing", "argument too long", "text too long"],
)
async def test_what_cannot_begin_says_why_and_has_no_exit_code(
    rig: ProcessRig, run: str | tuple[str, ...], more: dict[str, Path], reason: str
) -> None:
    command = rig.command(run, **more)
    with pytest.raises(Rejected, match="could not start") as refused:
        await rig.supervisor.start(command)
    assert reason in refused.value.message
    supervisor = await rig.restart()
    found = await supervisor.attach(command.id)
    assert isinstance(found, NeverStarted)
    assert reason in found.reason


async def test_the_shell_saying_127_is_an_exit_code(rig: ProcessRig) -> None:
    outcome, output = await rig.run("no-such-command")
    assert code(outcome) == 127
    assert b"not found" in output


async def test_surroundings_are_those_of_a_user(rig: ProcessRig) -> None:
    script = "umask; pwd; env | grep -c HOLDFAST_TASK; cat /proc/$$/oom_score_adj; ls /proc/self/fd | wc -l"
    outcome, output = await rig.run(script, umask=0o027)
    assert code(outcome) == 0
    umask, cwd, tasks, oom, descriptors = output.decode().split()
    assert (umask, cwd, tasks, oom) == ("0027", str(rig.cwd), "1", "500")
    assert int(descriptors) == 4, "stdin, stdout, stderr and what ls opened"
    outcome, output = await rig.run("grep -E '^Sig(Blk|Ign)' /proc/$$/status")
    masks = [int(line.split()[1], 16) for line in output.decode().splitlines()]
    assert [mask & ~(0b11 << 31) for mask in masks] == [0, 0], "32 and 33 belong to the C library, which ignores them"
    outcome, output = await rig.run("yes | head -1; echo ${PIPESTATUS[0]}")
    assert output == b"y\n141\n", "SIGPIPE ends a writer, as in any shell"
    outcome, output = await rig.run("cat; echo end")
    assert output == b"end\n", "stdin is /dev/null"


async def test_it_has_a_session_of_its_own(rig: ProcessRig) -> None:
    running = await rig.start(("sleep", "100"))
    assert os.getsid(running.pid) == running.pid
    assert len({os.getsid(pid) for pid in (running.pid, rig.claim(running.id).keeper.pid, os.getpid())}) == 3


async def test_the_environment_is_never_on_disk(rig: ProcessRig) -> None:
    secret = fresh()
    running = await rig.start("sleep 100; echo $SECRET", env={**ENV, "SECRET": secret})
    spool = rig.spool(running.id).path
    assert stat.S_IMODE(spool.stat().st_mode) == 0o700
    for path in spool.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert secret.encode() not in path.read_bytes()
    for keeper in rig.claim(running.id).keepers:
        assert secret.encode() not in Path(f"/proc/{keeper.pid}/environ").read_bytes()
        assert secret.encode() not in Path(f"/proc/{keeper.pid}/cmdline").read_bytes()


async def test_an_id_is_used_once(rig: ProcessRig) -> None:
    command = rig.command("echo once >> ran")
    await rig.supervisor.start(command)
    with pytest.raises(Conflict):
        await rig.supervisor.start(command)
    await rig.supervisor.wait(command.id)
    assert (rig.cwd / "ran").read_text() == "once\n"


async def test_a_start_that_was_cancelled_can_be_repeated_once(rig: ProcessRig) -> None:
    command = rig.command("echo once >> ran")
    found = await rig.supervisor.attach(command.id)
    assert isinstance(found, NeverStarted) and found.cancelled
    await rig.supervisor.start(command)
    with pytest.raises(Conflict):
        await rig.supervisor.start(command)
    assert code(await rig.supervisor.wait(command.id)) == 0
    assert (rig.cwd / "ran").read_text() == "once\n"


@pytest.mark.parametrize("forked", [True, False], ids=["forked", "direct"])
async def test_promise_3_a_keeper_that_comes_late_does_not_run_a_command_that_was_started_again(
    rig: ProcessRig, monkeypatch: pytest.MonkeyPatch, forked: bool
) -> None:
    """It was stopped before it claimed its directory; that was put away meanwhile, and its claim was deleted first."""
    monkeypatch.setattr("holdfast.processes.spool._clear", lambda path: (path / "claim").unlink())
    command = rig.command("echo once >> ran")
    async with late_keeper(rig.root, command, place=rig.cwd, forked=forked) as keeper:
        await rig.supervisor.attach(command.id)
        await rig.supervisor.start(command)
        await rig.supervisor.wait(command.id)
        await keeper.go_on()
    assert (rig.cwd / "ran").read_text() == "once\n"


@pytest.mark.parametrize("sandbox", [(), pytest.param(BUBBLEWRAP, marks=needs_bubblewrap)], ids=["plain", "sandbox"])
async def test_promise_3_a_command_whose_keeper_came_late_is_started_again_once(
    rig: ProcessRig, sandbox: tuple[str, ...]
) -> None:
    """Its start was cancelled by a gateway that did not start it anew at once; its keeper gave up in the meantime."""
    command = rig.command("echo once; exit 7", sandbox=sandbox)
    async with late_keeper(rig.root, command, place=rig.cwd) as keeper:
        await rig.supervisor.attach(command.id)
        await keeper.go_on()
    supervisor = await rig.restart()
    found = await supervisor.attach(command.id)
    assert isinstance(found, NeverStarted) and found.cancelled, found
    await supervisor.start(command)
    with pytest.raises(Conflict):
        await supervisor.start(command)
    assert code(await supervisor.wait(command.id)) == 7
    assert rig.everything(command.id) == b"once\n"


@pytest.mark.parametrize("id", ["", "..", "../../etc", "a" * 7, "A" * 16, "a" * 65, "abcdefgh\n", "/etc/passwd"])
async def test_an_id_is_no_path(rig: ProcessRig, id: str) -> None:
    with pytest.raises(Rejected):
        await rig.supervisor.start(rig.command("true", id=id))
    for ask in (rig.supervisor.attach, rig.supervisor.remove, rig.supervisor.kill, rig.supervisor.wait):
        with pytest.raises(Rejected):
            await ask(id)


@pytest.mark.parametrize(
    "more",
    [{"run": ""}, {"run": ()}, {"run": ("a\0b",)}, {"cwd": Path("here")}, {"env": {"A=B": "x"}}, {"head": 100}],
    ids=str,
)
async def test_nonsense_is_refused_before_anything_happens(rig: ProcessRig, more: dict[str, object]) -> None:
    command = rig.command("true")
    with pytest.raises(Rejected):
        await rig.supervisor.start(replace(command, **more))  # type: ignore[arg-type]
    assert not list(rig.root.iterdir())


async def test_a_new_one_is_refused_where_it_would_endanger_the_others(tmp_path: Path) -> None:
    few = ProcessRig(tmp_path / "few", limits=Limits(live=1))
    await few.start(("sleep", "100"))
    with pytest.raises(Unavailable, match="1 commands are running"):
        await few.start("true")
    await few.close()
    full = Supervisor(tmp_path / "full", Limits(free_bytes=1 << 60))
    with pytest.raises(Unavailable, match="free on the disk"):
        await full.start(few.command("true"))
    await full.close()
    fat = ProcessRig(tmp_path / "fat", limits=Limits(spool_bytes=1 << 20))
    await fat.run(("head", "-c", "3000000", "/dev/zero"))
    await fat.supervisor.usage()
    with pytest.raises(Unavailable, match="outputs of all commands take"):
        await fat.start("true")
    await fat.close()


async def test_the_outputs_of_ended_commands_are_measured_once(
    rig: ProcessRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        await rig.run(("head", "-c", "8192", "/dev/zero"))
    first = await rig.supervisor.usage()
    scan, looks = os.scandir, list[object]()

    def scanning(path: Any) -> Any:
        looks.append(path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", scanning)
    running = await rig.start(("head", "-c", "8192", "/dev/zero"))
    await rig.supervisor.wait(running.id)
    assert (await rig.supervisor.usage()).spooled - first.spooled == 8192
    await rig.keepers_gone(running.id)
    await rig.supervisor.remove(running.id)
    assert (await rig.supervisor.usage()).spooled == first.spooled == 3 * 8192
    assert rig.root not in looks


async def test_a_caller_that_gives_up_leaves_no_half_start(rig: ProcessRig) -> None:
    command = rig.command("echo once >> ran; sleep 100")
    starting = asyncio.create_task(rig.supervisor.start(command))
    await asyncio.sleep(0)
    starting.cancel()
    found = await rig.supervisor.attach(command.id)
    assert isinstance(found, Running | NeverStarted)
    assert isinstance(found, Running) == (command.id in rig.supervisor.live())


async def test_a_big_environment_goes_through_memory(rig: ProcessRig) -> None:
    env = ENV | {f"V{number}": "x" * 100_000 for number in range(10)}
    outcome, output = await rig.run((PYTHON, "-c", "import os; print(len(os.environ['V9']))"), env=env)
    assert (code(outcome), output) == (0, b"100000\n")
