"""The output: every byte, by offset, and which bytes were dropped."""

from __future__ import annotations

import asyncio
import hashlib
import random
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.processes.command import Ended
from holdfast.processes.identity import process, send
from holdfast.processes.keeper import BLOCK
from holdfast.processes.spool import OutputFile, Window
from holdfast.processes.supervisor import Limits
from tests.eventually import eventually
from tests.processes.rig import PYTHON, DirectLauncher, ProcessRig, code

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SLACK = 150 * MIB


def pieces(output: OutputFile, limit: int = MIB) -> list[Window]:
    found, offset = list[Window](), 0
    while (window := output.read(offset, limit)).next > offset:
        found.append(window)
        offset = window.next
    return found


async def test_binary_output_without_newlines(rig: ProcessRig) -> None:
    text = random.Random(1).randbytes(3_000_000).replace(b"\n", b"\0")
    (rig.cwd / "in").write_bytes(text)
    outcome, output = await rig.run(("cat", "in"))
    assert code(outcome) == 0
    assert output == text


async def test_windows_and_the_last_lines(rig: ProcessRig) -> None:
    running = await rig.start("seq 1 1000; printf end")
    await rig.supervisor.wait(running.id)
    output = rig.supervisor.output(running.id)
    assert output.read(2, 4) == Window(2, 0, b"2\n3\n", 3896)
    assert output.read(3896, 10) == Window(3896, 0, b"", 3896)
    assert output.read(10**9, 10).data == b""
    assert output.tail(3).data == b"999\n1000\nend"
    assert output.tail(3).offset == 3896 - 12
    assert output.tail(10**6).data[:4] == b"1\n2\n"
    assert output.tail(2, limit=6).data == b"00\nend", "no more than was asked for"
    assert output.tail(0).data == b""


async def test_stderr_apart(rig: ProcessRig) -> None:
    running = await rig.start("echo out; echo err >&2", stderr="apart")
    await rig.supervisor.wait(running.id)
    assert rig.supervisor.output(running.id).read(0, 99).data == b"out\n"
    assert rig.supervisor.output(running.id, "stderr").read(0, 99).data == b"err\n"


NUMBERED = """
import sys
for block in range(int(sys.argv[1])):
    sys.stdout.buffer.write(b"".join(b"%063d\\n" % (block * 16384 + line) for line in range(16384)))
"""
"""Blocks of one MiB; each line of 64 bytes says which one it is."""


def numbered(blocks: int) -> tuple[str, ...]:
    return (PYTHON, "-c", NUMBERED, str(blocks))


def check_numbered(found: list[Window]) -> None:
    for window in found:
        at = window.offset + window.dropped
        for start in range(-at % 64, len(window.data) - 63, 64):
            assert int(window.data[start : start + 64]) == (at + start) // 64


async def test_above_the_cap_the_middle_is_dropped_and_offsets_stay(rig: ProcessRig) -> None:
    running = await rig.start(numbered(40), head=64 * KIB, tail=256 * KIB)
    assert code(await rig.supervisor.wait(running.id)) == 0
    output = rig.supervisor.output(running.id)
    found = pieces(output)
    check_numbered(found)
    assert output.size() == 40 * MIB == found[-1].next == found[-1].size
    dropped = [window for window in found if window.dropped]
    assert [window.offset for window in dropped] == [64 * KIB]
    assert sum(len(window.data) for window in found) == 64 * KIB + 256 * KIB
    assert output.on_disk() < 2 * MIB
    inside = output.read(MIB, 64)
    assert inside.next == MIB + inside.dropped + 64
    assert output.tail(1).data == b"%063d\n" % (40 * 16384 - 1)


@pytest.mark.parametrize("tails", [1, 2, 3])
async def test_what_is_left_in_the_end_is_what_the_cap_says(rig: ProcessRig, tails: int) -> None:
    """While it runs there may be more. Also of an output just above the cap, and of what a daemon prints later."""
    head, tail = 64 * KIB, 256 * KIB
    daemon = f"(until [ -e go ]; do sleep 0.01; done; head -c {3 * tail} /dev/zero) &"
    running = await rig.start(f"{daemon} head -c {head + tails * tail + 1} /dev/zero", head=head, tail=tail)
    await rig.supervisor.wait(running.id)
    output = rig.supervisor.output(running.id)

    async def is_capped() -> bool:
        return sum(len(window.data) for window in pieces(output)) <= head + tail + BLOCK

    assert await is_capped()
    (rig.cwd / "go").touch()
    while output.size() != head + (tails + 3) * tail + 1:
        await asyncio.sleep(0.01)
    await eventually(is_capped)


async def test_a_window_never_shows_zeros_for_what_is_dropped_meanwhile(rig: ProcessRig) -> None:
    running = await rig.start(numbered(60), head=64 * KIB, tail=64 * KIB)
    output = rig.supervisor.output(running.id)
    dice = random.Random(2)
    while running.id in rig.supervisor.live():
        size = output.size()
        check_numbered([output.read(dice.randrange(size + 1) // 64 * 64, 64 * KIB)])
        await asyncio.sleep(0)
    check_numbered(pieces(output))


async def test_a_sparse_output_of_the_commands_own_is_shown_as_it_is(rig: ProcessRig) -> None:
    script = "import os; os.write(1, b'a'); os.ftruncate(1, 3_000_000); os.write(1, b'b')"
    outcome, output = await rig.run((PYTHON, "-c", script))
    assert code(outcome) == 0
    assert output == b"a" + bytes(2_999_999) + b"b"


async def test_a_command_that_truncates_its_own_output(rig: ProcessRig) -> None:
    """What it prints next belongs to the head, which is never dropped: also if it is being capped in that moment."""
    script = "head -c 9000000 /dev/zero; : > /proc/self/fd/1; echo new"
    outcome, output = await rig.run(script, head=4 * KIB, tail=64 * KIB)
    assert (code(outcome), output) == (0, b"new\n")


async def test_a_truncated_output_that_grows_again_is_dropped_from_its_head_on(rig: ProcessRig) -> None:
    """Else a window would show zeros for what is dropped. Here it grows while its keeper looks away."""
    prints, waits = "tr '\\0' x </dev/zero | head -c {}", "until [ -e {} ]; do sleep 0.01; done"
    script = f"{prints.format(MIB)}; {waits.format('go')}; : > /proc/self/fd/1; {prints.format(2 * MIB)}; touch done"
    running = await rig.start(f"{script}; {waits.format('end')}", head=4 * KIB, tail=64 * KIB)
    output, keeper = rig.supervisor.output(running.id), rig.claim(running.id).keeper

    async def is_capped() -> bool:
        return output.size() == MIB and output.on_disk() < 256 * KIB

    async def is_printed() -> bool:
        return (rig.cwd / "done").exists()

    await eventually(is_capped)
    send(keeper, signal.SIGSTOP)
    (rig.cwd / "go").touch()
    await eventually(is_printed)
    send(keeper, signal.SIGCONT)
    (rig.cwd / "end").touch()
    assert code(await rig.supervisor.wait(running.id)) == 0
    found = pieces(output)
    assert {byte for window in found for byte in window.data} == {ord("x")}
    assert [window.offset for window in found if window.dropped] == [4 * KIB]


async def test_discard_gives_back_what_was_consumed(rig: ProcessRig) -> None:
    running = await rig.start(numbered(4), head=0, tail=None)
    await rig.supervisor.wait(running.id)
    output = rig.supervisor.output(running.id)
    assert output.on_disk() >= 4 * MIB
    rig.supervisor.discard(running.id, before=3 * MIB + 5)
    assert output.on_disk() <= MIB + 8 * KIB
    assert output.read(0, 64) == Window(0, 3 * MIB, b"%063d\n" % (3 * 16384), 4 * MIB)
    rig.supervisor.discard(running.id, before=4 * MIB)
    assert output.read(0, 64) == Window(0, 4 * MIB, b"", 4 * MIB)


async def test_following_by_offset(rig: ProcessRig) -> None:
    """What comes while somebody follows: here it comes only because somebody does."""
    running = await rig.start("echo line one; until [ -e go ]; do sleep 0.01; done; echo line two")
    found = []
    async for window in rig.supervisor.follow(running.id, 5):
        found.append(window)
        (rig.cwd / "go").touch()
    assert b"".join(window.data for window in found) == rig.everything(running.id)[5:] == b"one\nline two\n"
    assert running.id not in rig.supervisor.live()


async def test_an_output_grows_without_its_keepers_and_is_capped(rig: ProcessRig) -> None:
    running = await rig.start(("sh", "-c", "while :; do head -c 1000000 /dev/zero; done"), head=0, tail=64 * KIB)
    rig.kill_keepers(running.id)
    await rig.keepers_gone(running.id)
    output = rig.supervisor.output(running.id)
    enough = output.size() + 300 * MIB

    async def capped() -> bool:
        return output.size() > enough and output.read(0, 1).dropped > output.size() - SLACK

    await eventually(capped)


@pytest.mark.parametrize("dead", ["keeper", "standby"])
async def test_an_output_is_capped_by_the_keeper_that_is_left(rig: ProcessRig, dead: str) -> None:
    """Before the command ends, and without a supervisor."""
    script = "until [ -e go ]; do sleep 0.01; done; head -c 4000000 /dev/zero; until [ -e end ]; do sleep 0.01; done"
    running = await rig.start(script, head=0, tail=64 * KIB)
    output = rig.supervisor.output(running.id)
    rig.kill_keepers(running.id, dead)
    await rig.keepers_gone(running.id, dead)
    await rig.supervisor.close()
    (rig.cwd / "go").touch()

    async def capped() -> bool:
        return output.size() == 4_000_000 and output.on_disk() <= 2 * 64 * KIB + 2 * BLOCK

    await eventually(capped)
    (rig.cwd / "end").touch()
    assert code(await (await rig.restart()).wait(running.id)) == 0


@pytest.fixture
def without_holes(tmp_path: Path) -> Iterator[Path]:
    """A file system that gives no blocks back from the middle of a file."""
    place = tmp_path / "without holes"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "ramfs", "ramfs", str(place)], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


async def test_where_nothing_can_be_dropped_the_output_stays_whole_and_the_end_is_recorded(
    without_holes: Path,
) -> None:
    rig = ProcessRig(without_holes, limits=Limits(free_bytes=0))
    script = "head -c 1000000 /dev/zero; echo; until [ -e end ]; do sleep 0.01; done; echo end; exit 3"
    running = await rig.start(script, head=4 * KIB, tail=64 * KIB)
    output = rig.supervisor.output(running.id)

    async def printed() -> bool:
        return output.size() == 1_000_001

    await eventually(printed)
    await rig.supervisor.close()
    (rig.cwd / "end").touch()
    supervisor = await rig.restart()
    assert code(await supervisor.wait(running.id)) == 3
    assert "keeper" in (rig.spool(running.id).path / "exit").read_text().split(), "the first of them was still there"
    assert b"".join(window.data for window in pieces(output)) == bytes(1_000_000) + b"\nend\n"
    await rig.close()


async def test_an_output_that_cannot_be_capped_does_not_keep_the_supervisor_from_reaping(without_holes: Path) -> None:
    rig = ProcessRig(without_holes, limits=Limits(free_bytes=0), launcher=DirectLauncher())
    running = await rig.start("head -c 1000000 /dev/zero; exec sleep 100", head=0, tail=64 * KIB)

    async def written() -> bool:
        return rig.supervisor.output(running.id).size() == 1_000_000

    await eventually(written)
    rig.kill_keepers(running.id)

    async def reaped() -> bool:
        return process(rig.claim(running.id).standby.pid) is None

    await eventually(reaped)
    await rig.close()


async def _flood(rig: ProcessRig, size: int) -> int:
    """Print so much as fast as it goes; the most that was on disk."""
    running = await rig.start(("head", "-c", str(size), "/dev/zero"))
    output, peak = rig.supervisor.output(running.id), 0
    while running.id in rig.supervisor.live():
        peak = max(peak, output.on_disk())
        await asyncio.sleep(0.005)
    outcome = await rig.supervisor.wait(running.id)
    assert isinstance(outcome, Ended)
    assert outcome.code == 0
    assert output.size() == size
    return peak


async def test_a_flood_does_not_fill_the_disk(rig: ProcessRig) -> None:
    peak = await _flood(rig, GIB)
    print(f"\n1 GiB printed, at most {peak / MIB:.0f} MiB on disk")
    assert peak <= 9 * MIB + SLACK


@pytest.mark.proof
async def test_a_flood_of_20_gb_does_not_fill_the_disk(rig: ProcessRig) -> None:
    peak = await _flood(rig, 20 * 10**9)
    print(f"\n20 GB printed, at most {peak / MIB:.0f} MiB on disk")
    assert peak <= 9 * MIB + SLACK


async def test_a_flood_after_a_long_silence(rig: ProcessRig) -> None:
    """The keeper sleeps without a timer meanwhile, and is woken by the first byte."""
    running = await rig.start("sleep 0.5; head -c 500000000 /dev/zero; echo; echo end")
    assert code(await rig.supervisor.wait(running.id)) == 0
    output = rig.supervisor.output(running.id)
    assert output.read(2 * MIB, 1).dropped > 0
    assert output.tail(1).data == b"end\n"


def test_an_output_that_was_never_written(tmp_path: Path) -> None:
    output = OutputFile(tmp_path / "none", 0)
    assert (output.size(), output.on_disk(), output.read(0, 9).data, output.tail(3).data) == (0, 0, b"", b"")


async def test_bytes_are_counted_by_somebody_else(rig: ProcessRig) -> None:
    """A copy through tee, made outside of us."""
    script = f'{PYTHON} -c "import os; [os.write(1, os.urandom(7919)) for _ in range(500)]" | tee copy'
    outcome, output = await rig.run(script)
    assert code(outcome) == 0
    copy = (rig.cwd / "copy").read_bytes()
    assert hashlib.sha256(output).digest() == hashlib.sha256(copy).digest()
    assert len(copy) == 7919 * 500
    assert (rig.cwd / "copy").stat().st_size == len(output)
