"""How an end is known, whichever process was killed before; nothing is invented when it is not."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.domain.errors import Conflict, NotFound
from holdfast.processes.command import Ended, Lost, NeverStarted, Running
from holdfast.processes.identity import Identity, alive, process, send
from holdfast.processes.spool import Spool, clear_removed
from tests.eventually import PATIENCE, eventually
from tests.processes.rig import PYTHON, ProcessRig, code, fresh

UNTIL = "until [ -e go ]; do sleep 0.01; done; echo done; exit 42"


async def test_promise_3_after_a_restart_it_is_found_alive_and_its_end_is_observed(rig: ProcessRig) -> None:
    running = await rig.start(UNTIL)
    supervisor = await rig.restart()
    assert await supervisor.attach(running.id) == running
    (rig.cwd / "go").touch()
    outcome = await supervisor.wait(running.id)
    assert (code(outcome), rig.everything(running.id)) == (42, b"done\n")


async def test_promise_3_an_end_that_nobody_saw(rig: ProcessRig) -> None:
    running = await rig.start("exit 42")
    await rig.supervisor.close()
    await rig.keepers_gone(running.id)
    supervisor = await rig.restart()
    assert code(await supervisor.attach(running.id)) == 42  # type: ignore[arg-type]
    assert code(await supervisor.wait(running.id)) == 42


async def test_files_of_a_keeper_that_called_its_standby_understudy_are_read(rig: ProcessRig) -> None:
    running = await rig.start(UNTIL)
    rig.kill_keepers(running.id, "keeper")
    path = rig.spool(running.id).path
    (path / "old").write_text((path / "claim").read_text().replace("standby ", "understudy "))
    (path / "old").rename(path / "claim")  # the standby reads it, too
    supervisor = await rig.restart()
    assert await supervisor.attach(running.id) == running
    (rig.cwd / "go").touch()
    assert isinstance(outcome := await supervisor.wait(running.id), Ended)
    await rig.keepers_gone(running.id)
    (path / "exit").write_text((path / "exit").read_text().replace("standby", "understudy"))
    assert await (await rig.restart()).attach(running.id) == outcome


@pytest.mark.parametrize("victim", ["keeper", "standby"])
async def test_promise_3_one_of_the_keepers_is_killed(rig: ProcessRig, victim: str) -> None:
    running = await rig.start(UNTIL)
    rig.kill_keepers(running.id, victim)
    await rig.keepers_gone(running.id, victim)
    (rig.cwd / "go").touch()
    outcome = await rig.supervisor.wait(running.id)
    assert isinstance(outcome, Ended)
    assert (outcome.code, outcome.by) == (42, "standby" if victim == "keeper" else "keeper")
    assert rig.everything(running.id) == b"done\n"


async def test_both_keepers_are_killed_and_somebody_watched(rig: ProcessRig) -> None:
    running = await rig.start(UNTIL)
    rig.kill_keepers(running.id)
    await rig.keepers_gone(running.id)
    (rig.cwd / "go").touch()
    outcome = await rig.supervisor.wait(running.id)
    assert isinstance(outcome, Ended | Lost), "by the zombie, or by the pidfd where the kernel keeps it"
    if isinstance(outcome, Ended):
        assert (outcome.code, outcome.finished_at) == (42, None)
        assert outcome.by in ("zombie", "pidfd")
    assert rig.everything(running.id) == b"done\n"


async def test_promise_7_both_keepers_are_killed_and_nobody_watched(rig: ProcessRig) -> None:
    running = await rig.start(UNTIL)
    claim = rig.claim(running.id)
    await rig.supervisor.close()
    rig.kill_keepers(running.id)
    await rig.keepers_gone(running.id)
    (rig.cwd / "go").touch()

    async def gone() -> bool:
        return process(running.pid) is None

    await eventually(gone)
    supervisor = await rig.restart()
    found = await supervisor.attach(running.id)
    assert isinstance(found, Lost)
    assert f"pid {running.pid} is gone" in found.evidence
    assert str(claim.keeper.pid) in found.evidence
    assert rig.everything(running.id) == b"done\n", "the output is whole all the same"


async def test_both_keepers_are_killed_and_it_runs_on(rig: ProcessRig) -> None:
    running = await rig.start(UNTIL)
    rig.kill_keepers(running.id)
    supervisor = await rig.restart()
    assert await supervisor.attach(running.id) == running
    assert not (await supervisor.kill(running.id, grace=0)).survivors


def edit_claim(rig: ProcessRig, id: str, name: str, value: str) -> None:
    path = rig.spool(id).path / "claim"
    lines = [f"{name} {value}" if line.startswith(f"{name} ") else line for line in path.read_text().splitlines()]
    path.write_text("\n".join(lines) + "\n")


async def test_promise_7_after_a_reboot_it_is_lost_and_nobody_is_signalled(rig: ProcessRig) -> None:
    running = await rig.start(("sleep", "100"))
    real = rig.claim(running.id)
    await rig.supervisor.close()
    edit_claim(rig, running.id, "boot", "0" * 36)
    supervisor = await rig.restart()
    found = await supervisor.attach(running.id)
    assert isinstance(found, Lost)
    assert "reboot" in found.evidence
    assert (await supervisor.kill(running.id)).asked == 0
    assert alive(real.command)
    edit_claim(rig, running.id, "boot", real.boot)


async def test_after_a_reboot_a_record_is_still_a_record(rig: ProcessRig) -> None:
    running = await rig.start("exit 3")
    await rig.supervisor.wait(running.id)
    edit_claim(rig, running.id, "boot", "0" * 36)
    supervisor = await rig.restart()
    assert code(await supervisor.wait(running.id)) == 3


async def test_a_pid_that_is_used_again_is_somebody_else(rig: ProcessRig) -> None:
    """Both keepers dead, and another process has the number: it is not taken for ours and not signalled."""
    running = await rig.start(("sleep", "100"))
    await rig.supervisor.close()
    rig.kill_keepers(running.id)
    await rig.keepers_gone(running.id)
    send(rig.claim(running.id).command, signal.SIGKILL)

    async def dead() -> bool:
        return not alive(rig.claim(running.id).command)

    await eventually(dead)
    stranger = await asyncio.create_subprocess_exec("sleep", "100")
    began = process(stranger.pid)
    assert began is not None
    edit_claim(rig, running.id, "pid", f"{stranger.pid} {began.start - 1}")
    supervisor = await rig.restart()
    assert isinstance(await supervisor.attach(running.id), Lost)
    assert (await supervisor.kill(running.id, grace=0)).survivors == ()
    assert not send(Identity(stranger.pid, began.start - 1), signal.SIGKILL)
    assert stranger.returncode is None
    stranger.kill()
    await stranger.wait()


async def test_a_frozen_keeper_is_waited_for(rig: ProcessRig) -> None:
    running = await rig.start(UNTIL)
    claim = rig.claim(running.id)
    send(claim.keeper, signal.SIGSTOP)
    (rig.cwd / "go").touch()

    async def zombie() -> bool:
        return not alive(claim.command)

    await eventually(zombie)
    waiting = asyncio.create_task(rig.supervisor.wait(running.id))
    done, _ = await asyncio.wait({waiting}, timeout=0.2)
    assert not done
    send(claim.keeper, signal.SIGCONT)
    assert code(await waiting) == 42


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR2])
async def test_keepers_do_not_mind_signals(rig: ProcessRig, number: signal.Signals) -> None:
    running = await rig.start(UNTIL)
    for keeper in rig.claim(running.id).keepers:
        os.kill(keeper.pid, number)
    (rig.cwd / "go").touch()
    outcome = await rig.supervisor.wait(running.id)
    assert isinstance(outcome, Ended)
    assert (outcome.code, outcome.by) == (42, "keeper")


async def test_clocks_are_for_people(rig: ProcessRig) -> None:
    """Whatever the wall clock said at the start and at the end, the verdict is the same."""
    running = await rig.start(UNTIL)
    edit_claim(rig, running.id, "began", "99999999999.0")
    supervisor = await rig.restart()
    assert isinstance(await supervisor.attach(running.id), Running)
    (rig.cwd / "go").touch()
    assert code(await supervisor.wait(running.id)) == 42


async def test_what_a_command_leaves_behind_is_kept_and_can_be_killed(rig: ProcessRig) -> None:
    daemon = "env -i setsid sh -c 'touch left; while :; do sleep 0.05; done'"
    running = await rig.start(f"{daemon} & until [ -e left ]; do sleep 0.01; done; exit 5")
    assert code(await rig.supervisor.wait(running.id)) == 5
    claim = rig.claim(running.id)
    assert alive(claim.keeper)
    supervisor = await rig.restart()
    assert code(await supervisor.wait(running.id)) == 5
    assert "sh" in {member.name for member in await supervisor.members(running.id)}
    assert not (await supervisor.kill(running.id, grace=0)).survivors
    assert await supervisor.members(running.id) == ()
    await rig.keepers_gone(running.id)


async def test_removing(rig: ProcessRig) -> None:
    running = await rig.start(UNTIL)
    with pytest.raises(Conflict):
        await rig.supervisor.remove(running.id)
    supervisor = await rig.restart()
    with pytest.raises(Conflict):
        await supervisor.remove(running.id)
    (rig.cwd / "go").touch()
    await supervisor.wait(running.id)
    await supervisor.remove(running.id)
    assert not list(rig.root.iterdir())
    with pytest.raises(NotFound):
        await supervisor.remove(running.id)


async def test_a_removal_that_was_interrupted_is_finished_at_the_next_start(rig: ProcessRig) -> None:
    running = await rig.start("echo")
    await rig.supervisor.wait(running.id)
    path = rig.spool(running.id).path
    path.rename(rig.root / f".removed.{running.id}")
    await rig.restart()
    assert not list(rig.root.iterdir())


async def test_a_record_that_gets_its_name_while_it_is_removed_is_removed_too(rig: ProcessRig) -> None:
    """What a keeper does last, beside what a supervisor does first: the files are many, so most rounds meet."""
    for number in range(10):
        path = rig.root / f".removed.{number:016x}"
        path.mkdir()
        for name in ("exit.pre", *(f"other{n}" for n in range(300))):
            (path / name).touch()

        def rename(path: Path = path) -> None:
            with suppress(FileNotFoundError):  # it was late
                while len(list(path.iterdir())) > 300:
                    pass
                (path / "exit.pre").rename(path / "exit")

        await asyncio.gather(asyncio.to_thread(rename), asyncio.to_thread(clear_removed, rig.root))
        assert not path.exists()


async def test_a_link_in_place_of_a_directory_is_not_followed(rig: ProcessRig, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    id = "abcdef0123456789"
    (rig.root / id).symlink_to(precious)
    with pytest.raises(OSError):
        await asyncio.to_thread(Spool(rig.root, id).remove)
    assert (precious / "file").exists()
    for path in rig.root.iterdir():
        path.unlink()


async def test_an_unreadable_claim_is_lost_with_its_evidence(rig: ProcessRig) -> None:
    id = "abcdef0123456789"
    spool = Spool(rig.root, id)
    spool.path.mkdir()
    (spool.path / "claim").write_bytes(b"")
    found = await rig.supervisor.attach(id)
    assert isinstance(found, Lost)
    assert "cannot be read" in found.evidence
    (spool.path / "claim").write_text("cancelled\n")
    assert isinstance(await rig.supervisor.attach(id), NeverStarted)


@pytest.mark.parametrize("record", ["ended what 1.0 keeper", "ended 0 never keeper", "never x because", "\0\0\0"])
async def test_promise_7_a_damaged_record_of_an_end_is_lost_with_its_evidence(rig: ProcessRig, record: str) -> None:
    running = await rig.start("exit 3")
    await rig.supervisor.wait(running.id)
    await rig.keepers_gone(running.id)
    (rig.spool(running.id).path / "exit").write_text(record)
    found = await (await rig.restart()).attach(running.id)
    assert isinstance(found, Lost) and "record" in found.evidence


@pytest.mark.parametrize("name", ["output.log", "exit", "exit.pre", "claim"])
@pytest.mark.parametrize("instead", ["pipe", "link"])
async def test_promise_7_what_a_command_puts_in_the_place_of_its_files_is_not_read(
    rig: ProcessRig, tmp_path: Path, name: str, instead: str
) -> None:
    """A pipe without a writer would be waited for without end, and a link would show the file of somebody else."""
    (tmp_path / "precious").write_text("precious")
    running = await rig.start("read go; exit 0", stdin="pipe")
    file = rig.spool(running.id).path / name
    file.unlink(missing_ok=True)
    os.mkfifo(file) if instead == "pipe" else file.symlink_to(tmp_path / "precious")
    await rig.supervisor.write(running.id, b"go\n")
    async with asyncio.timeout(PATIENCE):
        outcome = await rig.supervisor.wait(running.id)
        assert rig.everything(running.id) == b""
        assert isinstance(await (await rig.restart()).attach(running.id), Ended | Lost)
    assert isinstance(outcome, Ended | Lost)
    file.unlink(missing_ok=True)
    if name == "claim":
        rig.spool(running.id).remove()


async def test_many_that_end_at_once(rig: ProcessRig) -> None:
    running = await asyncio.gather(*(rig.start(f"exit {number}") for number in range(30)))
    ends = await asyncio.gather(*(rig.supervisor.wait(one.id) for one in running))
    assert [code(outcome) for outcome in ends] == list(range(30))


async def test_two_wait_for_the_same(rig: ProcessRig) -> None:
    running = await rig.start((PYTHON, "-c", "import time; time.sleep(0.2)"))
    impatient = asyncio.create_task(rig.supervisor.wait(running.id))
    patient = asyncio.create_task(rig.supervisor.wait(running.id))
    await asyncio.sleep(0.05)
    impatient.cancel()
    assert code(await patient) == 0


async def test_what_was_left_behind_ends_as_the_oldest_did_although_it_ended_before_it_was_taken_over(
    rig: ProcessRig,
) -> None:
    """The gateway was killed between the two."""
    running = await rig.start("sleep 100 & echo $! > oldest; sleep 100 & echo $! > other")
    assert code(await rig.supervisor.wait(running.id)) == 0
    oldest, other = (int((rig.cwd / name).read_text()) for name in ("oldest", "other"))
    assert {one.pid for one in await rig.supervisor.left_behind(running.id)} == {oldest, other}
    supervisor = await rig.restart()
    os.kill(oldest, signal.SIGKILL)

    async def noted() -> bool:
        return (rig.spool(running.id).path / "left").exists()

    await eventually(noted)
    left = fresh()
    await supervisor.take_over(left, running.id, oldest=oldest)
    assert isinstance(await supervisor.attach(left), Running)
    os.kill(other, signal.SIGTERM)
    outcome = await supervisor.wait(left)
    assert isinstance(outcome, Ended) and outcome.signal == signal.SIGKILL


async def test_what_was_left_behind_is_not_lost_while_its_keeper_is_about_to_note_its_end(rig: ProcessRig) -> None:
    running = await rig.start("sleep 100 & echo $! > left.pid")
    await rig.supervisor.wait(running.id)
    left, pid, keeper = fresh(), int((rig.cwd / "left.pid").read_text()), rig.claim(running.id).keeper
    await rig.supervisor.take_over(left, running.id, oldest=pid)
    send(keeper, signal.SIGSTOP)
    os.kill(pid, signal.SIGKILL)

    async def dead() -> bool:
        found = process(pid)
        return found is not None and found.dead

    await eventually(dead)
    waiting = asyncio.create_task(rig.supervisor.wait(left))
    await asyncio.wait({waiting}, timeout=0.2)
    send(keeper, signal.SIGCONT)
    outcome = await waiting
    assert isinstance(outcome, Ended) and outcome.signal == signal.SIGKILL


async def test_what_was_left_behind_without_keepers_has_ended_when_the_last_of_it_has(rig: ProcessRig) -> None:
    running = await rig.start("sleep 100 & echo $! > oldest; sleep 100 & echo $! > other")
    await rig.supervisor.wait(running.id)
    oldest, other = (int((rig.cwd / name).read_text()) for name in ("oldest", "other"))
    left = fresh()
    await rig.supervisor.take_over(left, running.id, oldest=oldest)
    rig.kill_keepers(running.id)
    await rig.keepers_gone(running.id)
    waiting = asyncio.create_task(rig.supervisor.wait(left))
    os.kill(oldest, signal.SIGKILL)
    await asyncio.wait({waiting}, timeout=0.2)
    os.kill(other, signal.SIGKILL)
    outcome = await waiting
    assert isinstance(outcome, Lost) and "nobody recorded" in outcome.evidence
