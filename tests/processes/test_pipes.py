"""Commands that talk to a program through pipes: an input that is kept in a file, an output that is no file."""

from __future__ import annotations

import signal

import pytest

from holdfast.domain.errors import Rejected
from holdfast.processes.command import Ended
from holdfast.processes.identity import send
from tests.eventually import PATIENCE, eventually
from tests.processes.rig import PYTHON, ProcessRig, code

WORDS = b"".join(b"%d\n" % number for number in range(40_000))


async def test_a_file_is_the_input_and_remains(rig: ProcessRig) -> None:
    running = await rig.start("cat; echo end", stdin="file")
    assert await rig.supervisor.write(running.id, b"one\n") == 4
    assert await rig.supervisor.write(running.id, b"two\n") == 4
    rig.supervisor.close_stdin(running.id)
    assert code(await rig.supervisor.wait(running.id)) == 0
    assert rig.everything(running.id) == b"one\ntwo\nend\n"
    assert rig.supervisor.written(running.id) == b"one\ntwo\n"


async def test_the_input_arrives_while_it_stays_open(rig: ProcessRig) -> None:
    running = await rig.start("read a; echo got $a; read b; echo got $b", stdin="file")
    await rig.supervisor.write(running.id, b"one\n")

    async def heard() -> bool:
        return rig.everything(running.id) == b"got one\n"

    await eventually(heard)
    await rig.supervisor.write(running.id, b"two\n")
    assert code(await rig.supervisor.wait(running.id)) == 0
    assert rig.everything(running.id) == b"got one\ngot two\n"


async def test_input_that_is_not_read_yet_is_not_lost_by_closing(rig: ProcessRig) -> None:
    running = await rig.start("read first; sleep 0.3; wc -c", stdin="file")
    long = b"x" * (3 << 20)
    assert await rig.supervisor.write(running.id, b"\n" + long, within=PATIENCE) == len(long) + 1
    rig.supervisor.close_stdin(running.id)
    await rig.supervisor.wait(running.id)
    assert rig.everything(running.id) == b"%d\n" % len(long)


async def test_input_that_is_left_when_the_keeper_dies_is_moved_by_the_standby(rig: ProcessRig) -> None:
    go = rig.cwd / "go"
    running = await rig.start(f"until [ -e {go} ]; do sleep 0.05; done; wc -c", stdin="file")
    long = b"x" * (3 << 20)
    await rig.supervisor.write(running.id, long, within=PATIENCE)
    rig.supervisor.close_stdin(running.id)
    rig.kill_keepers(running.id, "keeper")
    await rig.keepers_gone(running.id, "keeper")
    go.touch()
    await rig.supervisor.wait(running.id)
    assert rig.everything(running.id) == b"%d\n" % len(long)


async def test_input_is_closed_after_the_keeper_died_and_before_the_standby_noticed(rig: ProcessRig) -> None:
    running = await rig.start("wc -c", stdin="file")
    claim = rig.claim(running.id)
    send(claim.standby, signal.SIGSTOP)
    rig.kill_keepers(running.id, "keeper")
    await rig.supervisor.write(running.id, WORDS)
    rig.supervisor.close_stdin(running.id)
    send(claim.standby, signal.SIGCONT)
    await rig.supervisor.wait(running.id)
    assert rig.everything(running.id) == b"%d\n" % len(WORDS)


@pytest.mark.parametrize("stdout", ["file", "pipe"])
async def test_promise_3_no_byte_is_lost_or_doubled_when_keepers_die(rig: ProcessRig, stdout: str) -> None:
    running = await rig.start(("cat",), stdin="file", stdout=stdout, tail=None)
    supervisor = rig.supervisor
    half = len(WORDS) // 2
    await supervisor.write(running.id, WORDS[:half])

    async def some() -> bool:
        return supervisor.output(running.id).size() > 0

    await eventually(some)
    rig.kill_keepers(running.id, "keeper")
    await supervisor.write(running.id, WORDS[half:])
    await rig.keepers_gone(running.id, "keeper")
    supervisor.close_stdin(running.id)
    assert code(await supervisor.wait(running.id)) == 0

    async def all_of_it() -> bool:
        return supervisor.output(running.id).size() >= len(WORDS)

    await eventually(all_of_it)
    assert rig.everything(running.id) == WORDS


async def test_the_output_may_be_a_pipe(rig: ProcessRig) -> None:
    program = "import os, stat; print('pipe' if stat.S_ISFIFO(os.fstat(1).st_mode) else 'file', flush=True)"
    _, output = await rig.run((PYTHON, "-c", program), stdout="pipe")
    assert output == b"pipe\n"
    _, output = await rig.run((PYTHON, "-c", program))
    assert output == b"file\n"


async def test_the_whole_output_is_there_when_the_end_is(rig: ProcessRig) -> None:
    end, output = await rig.run(f"head -c 3000000 /dev/zero | tr '\\0' y; exec {PYTHON} -c 'pass'", stdout="pipe")
    assert isinstance(end, Ended)
    assert len(output) == 3_000_000


async def test_a_frozen_keeper_delays_and_loses_nothing(rig: ProcessRig) -> None:
    running = await rig.start(("cat",), stdin="file", stdout="pipe")
    keeper = rig.claim(running.id).keeper
    send(keeper, signal.SIGSTOP)
    await rig.supervisor.write(running.id, WORDS)
    send(keeper, signal.SIGCONT)
    rig.supervisor.close_stdin(running.id)
    await rig.supervisor.wait(running.id)
    assert rig.everything(running.id) == WORDS


async def test_what_was_written_is_known_to_the_next_supervisor(rig: ProcessRig) -> None:
    running = await rig.start("sleep 100", stdin="file")
    await rig.supervisor.write(running.id, b"half a li")
    supervisor = await rig.restart()
    await supervisor.attach(running.id)
    assert supervisor.written(running.id) == b"half a li"
    silent = await rig.start(("sleep", "100"))
    with pytest.raises(Rejected, match="has no input"):
        rig.supervisor.written(silent.id)
