"""A directory that does not answer stops its own turn and nothing else."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from holdfast.domain.events.session import Effect, ToolCallFinished, TurnFinished
from holdfast.models.model import ToolSpec
from holdfast.network_mounts import NetworkMounts
from holdfast.runtime.tools.context import ToolContext
from holdfast.runtime.tools.tool import ToolOutput
from holdfast.settings import Policy
from tests.runtime.rig import TOOLS, Rig, only, seen

LOCAL = "27 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n22 27 0:21 / /proc rw - proc proc rw\n"
NFS = "90 27 0:52 / /mnt/nfs rw,relatime shared:9 - nfs4 server:/export rw,vers=4.2\n"
OTHER = "fedcba9876543210"


def mounts(directory: Path, table: str) -> NetworkMounts:
    path = directory / "mountinfo"
    path.write_text(table)
    return NetworkMounts(path)


@pytest.mark.parametrize(
    ("table", "found"),
    [
        (LOCAL, False),
        (LOCAL + NFS, True),
        (LOCAL + "91 27 0:53 / /mnt/s rw - fuse.sshfs me@server:/ rw\n", True),
        (LOCAL + "92 27 0:54 / /run/user/1000/doc rw - fuse.portal portal rw\n", False),
        (LOCAL + "93 27 8:2 / /mnt/nfs4 rw - ext4 /dev/nfs rw\n", False),
        ("", False),
    ],
)
def test_mount_table_names_network_file_systems(tmp_path: Path, table: str, found: bool) -> None:
    assert mounts(tmp_path, table).found is found


def test_no_network_file_system_is_known_where_there_is_no_table(tmp_path: Path) -> None:
    assert not NetworkMounts(tmp_path / "none").found


@pytest.mark.parametrize(("table", "beside"), [(LOCAL, False), (LOCAL + NFS, True)])
async def test_work_gets_a_thread_only_where_it_may_hang(tmp_path: Path, table: str, beside: bool) -> None:
    found = mounts(tmp_path, table)
    assert (await found.run(threading.get_ident) != threading.get_ident()) is beside
    with pytest.raises(FileNotFoundError):
        await found.run((tmp_path / "none").read_text)


async def test_a_wait_for_work_that_hangs_can_be_cancelled(tmp_path: Path) -> None:
    go = threading.Event()
    waiting = asyncio.create_task(mounts(tmp_path, NFS).run(go.wait))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    go.set()


async def test_many_tools_that_hang_leave_the_shared_threads_free(tmp_path: Path) -> None:
    go, found = threading.Event(), mounts(tmp_path, NFS)
    hanging = [asyncio.create_task(found.run_in_thread(lambda _: go.wait())) for _ in range(100)]
    await asyncio.sleep(0)
    try:
        assert await asyncio.to_thread(lambda: "free") == "free"
    finally:
        go.set()
    assert await asyncio.gather(*hanging) == [True] * 100


@dataclass
class HangingTool:
    """Looks at a file that does not answer before `go`."""

    name: str = "look"
    effect: Effect = "pure"
    default_policy: Policy = "allow"
    spec: ToolSpec = field(default_factory=lambda: ToolSpec("look", "", {}))
    go: threading.Event = field(default_factory=threading.Event)
    began: threading.Event = field(default_factory=threading.Event)

    def subject(self, context: ToolContext, arguments: str) -> str:
        self.began.set()
        self.go.wait()
        return ""

    def clean_up(self, context: ToolContext, arguments: str) -> None:
        pass

    async def call(self, context: ToolContext, arguments: str) -> ToolOutput:
        return ToolOutput("seen")


async def test_directory_that_hangs_stops_no_other_session(tmp_path: Path) -> None:
    rig, tool = Rig(tmp_path), HangingTool()
    rig.agents.tools, rig.agents.mounts = [*TOOLS, tool], mounts(tmp_path, LOCAL + NFS)
    await rig.start()
    try:
        await rig.create("call look {}")
        await asyncio.to_thread(tool.began.wait)
        await rig.create("say hello", session=OTHER)
        await rig.until(seen(TurnFinished), session=OTHER)
        assert not only(await rig.records(), ToolCallFinished)
    finally:
        tool.go.set()
    [finished] = only(await rig.rest(), ToolCallFinished)
    assert isinstance(finished, ToolCallFinished) and finished.output == "seen"
    await rig.close()
