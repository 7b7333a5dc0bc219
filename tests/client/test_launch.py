"""Starting a gateway from a program."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import pytest

from holdfast.client import Client, StartFailed
from holdfast.client.launch import start, stop
from tests.cli.commandline import CommandLine, new_home


def gateways_of(home: Path) -> list[int]:
    found = []
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes().split(b"\0") if process.name.isdecimal() else []
        except OSError:
            continue
        if str(home).encode() in words and b"serve" in words:
            found.append(int(process.name))
    return found


def test_a_start_that_timed_out_leaves_no_process_behind(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home")
    with pytest.raises(StartFailed, match="did not answer within 0 s"):
        start(Client(home), seconds=0.0)
    assert gateways_of(home) == []


def test_a_gateway_that_is_still_starting_is_left_to_it(alone: CommandLine) -> None:
    """The first start of a new version may migrate the home for minutes."""
    frozen: list[int] = []

    class Freezing(Client):
        def healthy(self) -> None:
            while not frozen:
                with contextlib.suppress(OSError, ValueError):
                    pid = int((alone.home / "run" / "lock").read_text())
                    os.kill(pid, signal.SIGSTOP)
                    frozen.append(pid)

    with pytest.raises(StartFailed, match=r"is still starting after 1 s"):
        start(Freezing(alone.home), seconds=1.0)
    client = Client(alone.home)
    assert gateways_of(alone.home) == frozen
    os.kill(frozen[0], signal.SIGCONT)
    assert client.start_gateway().pid == frozen[0]
    stop(client)


def test_a_gateway_is_started_once_and_stopped(alone: CommandLine) -> None:
    client = Client(alone.home)
    address = client.start_gateway()
    assert client.start_gateway() == address
    assert gateways_of(alone.home) == [address.pid]
    assert stop(client).pid == address.pid
    assert gateways_of(alone.home) == []
