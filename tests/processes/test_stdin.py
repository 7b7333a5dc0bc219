"""The input of a command stays open when processes of ours die, and is closed when somebody asks for that."""

from __future__ import annotations

import signal

import pytest

from holdfast.domain.errors import Conflict, NotFound, Rejected
from tests.eventually import PATIENCE, eventually
from tests.forked_lives import ForkedLives
from tests.processes.rig import ProcessRig, code, fresh


async def test_write_and_close(rig: ProcessRig) -> None:
    running = await rig.start("cat; echo end", stdin="pipe")
    assert await rig.supervisor.write(running.id, b"one\n") == 4
    assert await rig.supervisor.write(running.id, b"two\n") == 4
    rig.supervisor.close_stdin(running.id)
    assert code(await rig.supervisor.wait(running.id)) == 0
    assert rig.everything(running.id) == b"one\ntwo\nend\n"


@pytest.mark.parametrize("victims", [("keeper",), ("standby",)], ids=str)
async def test_the_death_of_a_keeper_is_not_its_end(rig: ProcessRig, victims: tuple[str, ...]) -> None:
    running = await rig.start(("cat",), stdin="pipe")
    await rig.supervisor.write(running.id, b"one\n")
    rig.kill_keepers(running.id, *victims)
    await rig.keepers_gone(running.id, *victims)
    supervisor = await rig.restart()
    await supervisor.attach(running.id)
    await supervisor.write(running.id, b"two\n")
    supervisor.close_stdin(running.id)
    assert code(await supervisor.wait(running.id)) == 0
    assert rig.everything(running.id) == b"one\ntwo\n"


async def test_promise_3_the_death_of_the_supervisor_is_not_its_end(rig: ProcessRig) -> None:
    id = fresh()
    with ForkedLives("tests.processes.lives") as forked:
        life = forked.live("feed", kill_on="fed", root=str(rig.root), cwd=str(rig.cwd), id=id)
        assert life.status == -signal.SIGKILL
    await rig.supervisor.attach(id)
    await rig.supervisor.write(id, b"second life\n")
    rig.supervisor.close_stdin(id)
    assert code(await rig.supervisor.wait(id)) == 0
    assert rig.everything(id) == b"first life\nsecond life\n"


async def test_a_reader_that_does_not_read(rig: ProcessRig) -> None:
    running = await rig.start("sleep 1000", stdin="pipe")
    taken = await rig.supervisor.write(running.id, b"x" * (3 << 20), within=0.05)
    assert 0 < taken < 3 << 20
    assert await rig.supervisor.write(running.id, b"x", within=0) == 0


async def test_a_long_message_goes_through_while_it_is_read(rig: ProcessRig) -> None:
    running = await rig.start("wc -c", stdin="pipe")
    assert await rig.supervisor.write(running.id, b"x" * 5_000_000, within=PATIENCE) == 5_000_000
    rig.supervisor.close_stdin(running.id)
    await rig.supervisor.wait(running.id)
    assert rig.everything(running.id) == b"5000000\n"


async def test_refusals(rig: ProcessRig) -> None:
    silent = await rig.start(("sleep", "100"))
    with pytest.raises(Rejected, match="has no input"):
        await rig.supervisor.write(silent.id, b"x")
    with pytest.raises(Rejected, match="has no input"):
        rig.supervisor.close_stdin(silent.id)
    closed = await rig.start("cat; sleep 100", stdin="pipe")
    rig.supervisor.close_stdin(closed.id)
    rig.supervisor.close_stdin(closed.id)
    with pytest.raises(Conflict, match="was closed"):
        await rig.supervisor.write(closed.id, b"x")
    ended = await rig.start("true", stdin="pipe")
    await rig.supervisor.wait(ended.id)
    with pytest.raises(NotFound):
        await rig.supervisor.write(ended.id, b"x")


async def test_a_command_that_closed_its_input_itself(rig: ProcessRig) -> None:
    running = await rig.start("exec <&-; touch closed; sleep 100", stdin="pipe")

    async def closed() -> bool:
        return (rig.cwd / "closed").exists()

    await eventually(closed)
    assert await rig.supervisor.write(running.id, b"x") == 1, "its keeper holds the pipe: nobody gets SIGPIPE"
    assert rig.spool(running.id).stdin.exists()
