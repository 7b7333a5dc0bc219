"""The input of a command: nobody's death is its end, and its end is what somebody asked for."""

from __future__ import annotations

import signal

import pytest

from holdfast.domain.errors import Conflict, NotFound, Rejected
from tests.eventually import PATIENCE, eventually
from tests.processes.house import House, code, fresh
from tests.zygote import Zygote


async def test_write_and_close(house: House) -> None:
    running = await house.start("cat; echo end", stdin="pipe")
    assert await house.supervisor.write(running.id, b"one\n") == 4
    assert await house.supervisor.write(running.id, b"two\n") == 4
    house.supervisor.close_stdin(running.id)
    assert code(await house.supervisor.wait(running.id)) == 0
    assert house.everything(running.id) == b"one\ntwo\nend\n"


@pytest.mark.parametrize("victims", [("keeper",), ("standby",)], ids=str)
async def test_the_death_of_a_keeper_is_not_its_end(house: House, victims: tuple[str, ...]) -> None:
    running = await house.start(("cat",), stdin="pipe")
    await house.supervisor.write(running.id, b"one\n")
    house.kill_keepers(running.id, *victims)
    await house.keepers_gone(running.id, *victims)
    supervisor = await house.restart()
    await supervisor.attach(running.id)
    await supervisor.write(running.id, b"two\n")
    supervisor.close_stdin(running.id)
    assert code(await supervisor.wait(running.id)) == 0
    assert house.everything(running.id) == b"one\ntwo\n"


async def test_promise_3_the_death_of_the_supervisor_is_not_its_end(house: House) -> None:
    id = fresh()
    with Zygote("tests.processes.lives") as zygote:
        life = zygote.live("feed", kill_on="fed", root=str(house.root), cwd=str(house.cwd), id=id)
        assert life.status == -signal.SIGKILL
    await house.supervisor.attach(id)
    await house.supervisor.write(id, b"second life\n")
    house.supervisor.close_stdin(id)
    assert code(await house.supervisor.wait(id)) == 0
    assert house.everything(id) == b"first life\nsecond life\n"


async def test_a_reader_that_does_not_read(house: House) -> None:
    running = await house.start("sleep 1000", stdin="pipe")
    taken = await house.supervisor.write(running.id, b"x" * (3 << 20), within=0.05)
    assert 0 < taken < 3 << 20
    assert await house.supervisor.write(running.id, b"x", within=0) == 0


async def test_a_long_message_goes_through_while_it_is_read(house: House) -> None:
    running = await house.start("wc -c", stdin="pipe")
    assert await house.supervisor.write(running.id, b"x" * 5_000_000, within=PATIENCE) == 5_000_000
    house.supervisor.close_stdin(running.id)
    await house.supervisor.wait(running.id)
    assert house.everything(running.id) == b"5000000\n"


async def test_refusals(house: House) -> None:
    silent = await house.start(("sleep", "100"))
    with pytest.raises(Rejected, match="has no input"):
        await house.supervisor.write(silent.id, b"x")
    with pytest.raises(Rejected, match="has no input"):
        house.supervisor.close_stdin(silent.id)
    closed = await house.start("cat; sleep 100", stdin="pipe")
    house.supervisor.close_stdin(closed.id)
    house.supervisor.close_stdin(closed.id)
    with pytest.raises(Conflict, match="was closed"):
        await house.supervisor.write(closed.id, b"x")
    ended = await house.start("true", stdin="pipe")
    await house.supervisor.wait(ended.id)
    with pytest.raises(NotFound):
        await house.supervisor.write(ended.id, b"x")


async def test_one_that_closed_its_input_itself(house: House) -> None:
    running = await house.start("exec <&-; touch closed; sleep 100", stdin="pipe")

    async def closed() -> bool:
        return (house.cwd / "closed").exists()

    await eventually(closed)
    assert await house.supervisor.write(running.id, b"x") == 1, "its keeper holds the pipe: nobody gets SIGPIPE"
    assert house.spool(running.id).stdin.exists()
