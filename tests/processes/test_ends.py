"""How an end is known, whoever was killed before; and that nothing is invented when it is not."""

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
from tests.processes.house import PYTHON, House, code, fresh

UNTIL = "until [ -e go ]; do sleep 0.01; done; echo done; exit 42"


async def test_promise_3_after_a_restart_it_is_found_alive_and_its_end_is_heard(house: House) -> None:
    running = await house.start(UNTIL)
    supervisor = await house.restart()
    assert await supervisor.attach(running.id) == running
    (house.cwd / "go").touch()
    outcome = await supervisor.wait(running.id)
    assert (code(outcome), house.everything(running.id)) == (42, b"done\n")


async def test_promise_3_an_end_that_nobody_saw(house: House) -> None:
    running = await house.start("exit 42")
    await house.supervisor.close()
    await house.keepers_gone(running.id)
    supervisor = await house.restart()
    assert code(await supervisor.attach(running.id)) == 42  # type: ignore[arg-type]
    assert code(await supervisor.wait(running.id)) == 42


async def test_files_of_a_keeper_that_called_its_standby_understudy_are_read(house: House) -> None:
    running = await house.start(UNTIL)
    house.kill_keepers(running.id, "keeper")
    path = house.spool(running.id).path
    (path / "old").write_text((path / "claim").read_text().replace("standby ", "understudy "))
    (path / "old").rename(path / "claim")  # the standby reads it, too
    supervisor = await house.restart()
    assert await supervisor.attach(running.id) == running
    (house.cwd / "go").touch()
    assert isinstance(outcome := await supervisor.wait(running.id), Ended)
    await house.keepers_gone(running.id)
    (path / "exit").write_text((path / "exit").read_text().replace("standby", "understudy"))
    assert await (await house.restart()).attach(running.id) == outcome


@pytest.mark.parametrize("victim", ["keeper", "standby"])
async def test_promise_3_one_of_the_keepers_is_killed(house: House, victim: str) -> None:
    running = await house.start(UNTIL)
    house.kill_keepers(running.id, victim)
    await house.keepers_gone(running.id, victim)
    (house.cwd / "go").touch()
    outcome = await house.supervisor.wait(running.id)
    assert isinstance(outcome, Ended)
    assert (outcome.code, outcome.by) == (42, "standby" if victim == "keeper" else "keeper")
    assert house.everything(running.id) == b"done\n"


async def test_both_keepers_are_killed_and_somebody_watched(house: House) -> None:
    running = await house.start(UNTIL)
    house.kill_keepers(running.id)
    await house.keepers_gone(running.id)
    (house.cwd / "go").touch()
    outcome = await house.supervisor.wait(running.id)
    assert isinstance(outcome, Ended | Lost), "by the zombie, or by the pidfd where the kernel keeps it"
    if isinstance(outcome, Ended):
        assert (outcome.code, outcome.finished_at) == (42, None)
        assert outcome.by in ("zombie", "pidfd")
    assert house.everything(running.id) == b"done\n"


async def test_promise_7_both_keepers_are_killed_and_nobody_watched(house: House) -> None:
    running = await house.start(UNTIL)
    claim = house.claim(running.id)
    await house.supervisor.close()
    house.kill_keepers(running.id)
    await house.keepers_gone(running.id)
    (house.cwd / "go").touch()

    async def gone() -> bool:
        return process(running.pid) is None

    await eventually(gone)
    supervisor = await house.restart()
    found = await supervisor.attach(running.id)
    assert isinstance(found, Lost)
    assert f"pid {running.pid} is gone" in found.evidence
    assert str(claim.keeper.pid) in found.evidence
    assert house.everything(running.id) == b"done\n", "the output is whole all the same"


async def test_both_keepers_are_killed_and_it_runs_on(house: House) -> None:
    running = await house.start(UNTIL)
    house.kill_keepers(running.id)
    supervisor = await house.restart()
    assert await supervisor.attach(running.id) == running
    assert not (await supervisor.kill(running.id, grace=0)).survivors


def edit_claim(house: House, id: str, name: str, value: str) -> None:
    path = house.spool(id).path / "claim"
    lines = [f"{name} {value}" if line.startswith(f"{name} ") else line for line in path.read_text().splitlines()]
    path.write_text("\n".join(lines) + "\n")


async def test_promise_7_after_a_reboot_it_is_lost_and_nobody_is_signalled(house: House) -> None:
    running = await house.start(("sleep", "100"))
    real = house.claim(running.id)
    await house.supervisor.close()
    edit_claim(house, running.id, "boot", "0" * 36)
    supervisor = await house.restart()
    found = await supervisor.attach(running.id)
    assert isinstance(found, Lost)
    assert "reboot" in found.evidence
    assert (await supervisor.kill(running.id)).asked == 0
    assert alive(real.command)
    edit_claim(house, running.id, "boot", real.boot)


async def test_after_a_reboot_a_record_is_still_a_record(house: House) -> None:
    running = await house.start("exit 3")
    await house.supervisor.wait(running.id)
    edit_claim(house, running.id, "boot", "0" * 36)
    supervisor = await house.restart()
    assert code(await supervisor.wait(running.id)) == 3


async def test_a_pid_that_is_used_again_is_somebody_else(house: House) -> None:
    """Both keepers dead, and another process has the number: it is not taken for ours and not signalled."""
    running = await house.start(("sleep", "100"))
    await house.supervisor.close()
    house.kill_keepers(running.id)
    await house.keepers_gone(running.id)
    send(house.claim(running.id).command, signal.SIGKILL)

    async def dead() -> bool:
        return not alive(house.claim(running.id).command)

    await eventually(dead)
    stranger = await asyncio.create_subprocess_exec("sleep", "100")
    began = process(stranger.pid)
    assert began is not None
    edit_claim(house, running.id, "pid", f"{stranger.pid} {began.start - 1}")
    supervisor = await house.restart()
    assert isinstance(await supervisor.attach(running.id), Lost)
    assert (await supervisor.kill(running.id, grace=0)).survivors == ()
    assert not send(Identity(stranger.pid, began.start - 1), signal.SIGKILL)
    assert stranger.returncode is None
    stranger.kill()
    await stranger.wait()


async def test_a_frozen_keeper_is_waited_for(house: House) -> None:
    running = await house.start(UNTIL)
    claim = house.claim(running.id)
    send(claim.keeper, signal.SIGSTOP)
    (house.cwd / "go").touch()

    async def zombie() -> bool:
        return not alive(claim.command)

    await eventually(zombie)
    waiting = asyncio.create_task(house.supervisor.wait(running.id))
    done, _ = await asyncio.wait({waiting}, timeout=0.2)
    assert not done
    send(claim.keeper, signal.SIGCONT)
    assert code(await waiting) == 42


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR2])
async def test_keepers_do_not_mind_signals(house: House, number: signal.Signals) -> None:
    running = await house.start(UNTIL)
    for keeper in house.claim(running.id).keepers:
        os.kill(keeper.pid, number)
    (house.cwd / "go").touch()
    outcome = await house.supervisor.wait(running.id)
    assert isinstance(outcome, Ended)
    assert (outcome.code, outcome.by) == (42, "keeper")


async def test_clocks_are_for_people(house: House) -> None:
    """Whatever the wall clock said at the start and at the end, the verdict is the same."""
    running = await house.start(UNTIL)
    edit_claim(house, running.id, "began", "99999999999.0")
    supervisor = await house.restart()
    assert isinstance(await supervisor.attach(running.id), Running)
    (house.cwd / "go").touch()
    assert code(await supervisor.wait(running.id)) == 42


async def test_what_a_command_leaves_behind_is_kept_and_can_be_killed(house: House) -> None:
    daemon = "env -i setsid sh -c 'touch left; while :; do sleep 0.05; done'"
    running = await house.start(f"{daemon} & until [ -e left ]; do sleep 0.01; done; exit 5")
    assert code(await house.supervisor.wait(running.id)) == 5
    claim = house.claim(running.id)
    assert alive(claim.keeper)
    supervisor = await house.restart()
    assert code(await supervisor.wait(running.id)) == 5
    assert "sh" in {member.name for member in await supervisor.members(running.id)}
    assert not (await supervisor.kill(running.id, grace=0)).survivors
    assert await supervisor.members(running.id) == ()
    await house.keepers_gone(running.id)


async def test_removing(house: House) -> None:
    running = await house.start(UNTIL)
    with pytest.raises(Conflict):
        await house.supervisor.remove(running.id)
    supervisor = await house.restart()
    with pytest.raises(Conflict):
        await supervisor.remove(running.id)
    (house.cwd / "go").touch()
    await supervisor.wait(running.id)
    await supervisor.remove(running.id)
    assert not list(house.root.iterdir())
    with pytest.raises(NotFound):
        await supervisor.remove(running.id)


async def test_a_removal_that_was_interrupted_is_finished_at_the_next_start(house: House) -> None:
    running = await house.start("echo")
    await house.supervisor.wait(running.id)
    path = house.spool(running.id).path
    path.rename(house.root / f".removed.{running.id}")
    await house.restart()
    assert not list(house.root.iterdir())


async def test_a_record_that_gets_its_name_while_it_is_removed_is_removed_too(house: House) -> None:
    """What a keeper does last, beside what a supervisor does first: the files are many, so most rounds meet."""
    for number in range(10):
        path = house.root / f".removed.{number:016x}"
        path.mkdir()
        for name in ("exit.pre", *(f"other{n}" for n in range(300))):
            (path / name).touch()

        def rename(path: Path = path) -> None:
            with suppress(FileNotFoundError):  # it was late
                while len(list(path.iterdir())) > 300:
                    pass
                (path / "exit.pre").rename(path / "exit")

        await asyncio.gather(asyncio.to_thread(rename), asyncio.to_thread(clear_removed, house.root))
        assert not path.exists()


async def test_a_link_in_place_of_a_directory_is_not_followed(house: House, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    id = "abcdef0123456789"
    (house.root / id).symlink_to(precious)
    with pytest.raises(OSError):
        await asyncio.to_thread(Spool(house.root, id).remove)
    assert (precious / "file").exists()
    for path in house.root.iterdir():
        path.unlink()


async def test_an_unreadable_claim_is_lost_with_its_evidence(house: House) -> None:
    id = "abcdef0123456789"
    spool = Spool(house.root, id)
    spool.path.mkdir()
    (spool.path / "claim").write_bytes(b"")
    found = await house.supervisor.attach(id)
    assert isinstance(found, Lost)
    assert "cannot be read" in found.evidence
    (spool.path / "claim").write_text("cancelled\n")
    assert isinstance(await house.supervisor.attach(id), NeverStarted)


@pytest.mark.parametrize("record", ["ended what 1.0 keeper", "ended 0 never keeper", "never x because", "\0\0\0"])
async def test_promise_7_a_damaged_record_of_an_end_is_lost_with_its_evidence(house: House, record: str) -> None:
    running = await house.start("exit 3")
    await house.supervisor.wait(running.id)
    await house.keepers_gone(running.id)
    (house.spool(running.id).path / "exit").write_text(record)
    found = await (await house.restart()).attach(running.id)
    assert isinstance(found, Lost) and "record" in found.evidence


@pytest.mark.parametrize("name", ["output.log", "exit", "exit.pre", "claim"])
@pytest.mark.parametrize("instead", ["pipe", "link"])
async def test_promise_7_what_a_command_puts_in_the_place_of_its_files_is_not_read(
    house: House, tmp_path: Path, name: str, instead: str
) -> None:
    """A pipe without a writer would be waited for without end, and a link would show the file of somebody else."""
    (tmp_path / "precious").write_text("precious")
    running = await house.start("read go; exit 0", stdin="pipe")
    file = house.spool(running.id).path / name
    file.unlink(missing_ok=True)
    os.mkfifo(file) if instead == "pipe" else file.symlink_to(tmp_path / "precious")
    await house.supervisor.write(running.id, b"go\n")
    async with asyncio.timeout(PATIENCE):
        outcome = await house.supervisor.wait(running.id)
        assert house.everything(running.id) == b""
        assert isinstance(await (await house.restart()).attach(running.id), Ended | Lost)
    assert isinstance(outcome, Ended | Lost)
    file.unlink(missing_ok=True)
    if name == "claim":
        house.spool(running.id).remove()


async def test_many_that_end_at_once(house: House) -> None:
    running = await asyncio.gather(*(house.start(f"exit {number}") for number in range(30)))
    ends = await asyncio.gather(*(house.supervisor.wait(one.id) for one in running))
    assert [code(outcome) for outcome in ends] == list(range(30))


async def test_two_wait_for_the_same(house: House) -> None:
    running = await house.start((PYTHON, "-c", "import time; time.sleep(0.2)"))
    impatient = asyncio.create_task(house.supervisor.wait(running.id))
    patient = asyncio.create_task(house.supervisor.wait(running.id))
    await asyncio.sleep(0.05)
    impatient.cancel()
    assert code(await patient) == 0


async def test_what_was_left_behind_ends_as_the_oldest_did_although_it_ended_before_it_was_taken_over(
    house: House,
) -> None:
    """The gateway was killed between the two."""
    running = await house.start("sleep 100 & echo $! > oldest; sleep 100 & echo $! > other")
    assert code(await house.supervisor.wait(running.id)) == 0
    oldest, other = (int((house.cwd / name).read_text()) for name in ("oldest", "other"))
    assert {one.pid for one in await house.supervisor.left_behind(running.id)} == {oldest, other}
    supervisor = await house.restart()
    os.kill(oldest, signal.SIGKILL)

    async def noted() -> bool:
        return (house.spool(running.id).path / "left").exists()

    await eventually(noted)
    left = fresh()
    await supervisor.take_over(left, running.id, oldest=oldest)
    assert isinstance(await supervisor.attach(left), Running)
    os.kill(other, signal.SIGTERM)
    outcome = await supervisor.wait(left)
    assert isinstance(outcome, Ended) and outcome.signal == signal.SIGKILL


async def test_what_was_left_behind_is_not_lost_while_its_keeper_is_about_to_note_its_end(house: House) -> None:
    running = await house.start("sleep 100 & echo $! > left.pid")
    await house.supervisor.wait(running.id)
    left, pid, keeper = fresh(), int((house.cwd / "left.pid").read_text()), house.claim(running.id).keeper
    await house.supervisor.take_over(left, running.id, oldest=pid)
    send(keeper, signal.SIGSTOP)
    os.kill(pid, signal.SIGKILL)

    async def dead() -> bool:
        found = process(pid)
        return found is not None and found.dead

    await eventually(dead)
    waiting = asyncio.create_task(house.supervisor.wait(left))
    await asyncio.wait({waiting}, timeout=0.2)
    send(keeper, signal.SIGCONT)
    outcome = await waiting
    assert isinstance(outcome, Ended) and outcome.signal == signal.SIGKILL
