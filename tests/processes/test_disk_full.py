"""A disk without a free block: the exit code is still recorded, and the command sees its own writes fail."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.domain.errors import Unavailable
from holdfast.processes.supervisor import Limits
from tests.processes.rig import ProcessRig, code

NO_FLOOR = Limits(free_bytes=0)


@pytest.fixture(params=["tmpfs", "ext4"])
def small(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A file system of 32 MiB."""
    place = tmp_path / "small"
    place.mkdir()
    if request.param == "tmpfs":
        mount = ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(place)]
    else:
        image = tmp_path / "image"
        image.touch()
        with image.open("r+b") as file:
            file.truncate(32 << 20)
        program = shutil.which(
            "mkfs.ext4", path=f"{os.environ['PATH']}:/usr/sbin:/sbin"
        )  # the PATH of a user has neither
        if program is None:
            pytest.skip("no ext4 can be made here: there is no mkfs.ext4")
        made = subprocess.run([program, "-q", "-m", "0", str(image)], capture_output=True, check=False)
        if made.returncode:
            pytest.skip(f"no ext4 can be made here: {made.stderr.decode().strip()}")
        mount = ["mount", "-o", "loop", str(image), str(place)]
    done = subprocess.run(mount, capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def fill(place: Path) -> None:
    """To the last block."""
    with (place / "ballast").open("wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue


async def test_promise_3_the_disk_is_full_when_it_ends(small: Path) -> None:
    rig = ProcessRig(small, limits=NO_FLOOR)
    running = await rig.start("until [ -e go ]; do sleep 0.01; done; echo nothing fits; exit 42")
    (small / "nearly").touch()
    fill(small)
    (small / "nearly").rename(small / "go")
    assert code(await rig.supervisor.wait(running.id)) == 42
    supervisor = await rig.restart()
    assert code(await supervisor.wait(running.id)) == 42
    await rig.keepers_gone(running.id)
    assert (rig.spool(running.id).path / "exit").exists()
    await rig.close()


async def test_the_disk_is_full_when_it_starts(small: Path) -> None:
    rig = ProcessRig(small, limits=NO_FLOOR)
    fill(small)
    command = rig.command("echo ran")
    with pytest.raises(Unavailable):
        await rig.supervisor.start(command)
    (small / "ballast").unlink()
    supervisor = await rig.restart()
    assert type(await supervisor.wait(command.id)).__name__ == "NeverStarted"
    await rig.close()


async def test_the_command_fills_the_disk_itself(small: Path) -> None:
    rig = ProcessRig(small, limits=NO_FLOOR)
    running = await rig.start(("head", "-c", "100000000", "/dev/zero"), tail=None)
    assert code(await rig.supervisor.wait(running.id)) == 1, "its own write failed"
    with pytest.raises(Unavailable, match="free on the disk"):
        rig.supervisor._limits = Limits()
        await rig.supervisor.usage()
        await rig.start("true")
    await rig.close()
