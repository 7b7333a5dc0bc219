"""One process owns the home."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.domain.errors import Conflict
from holdfast.store.home_lock import HomeLock

OWNER = """
import sys
from pathlib import Path
from holdfast.store.home_lock import HomeLock
lock = HomeLock(Path(sys.argv[1]))
print("mine", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path / "run" / "lock"


def test_a_second_owner_is_refused_with_the_pid_of_the_first_and_kill_9_frees_it(path: Path) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "mine\n"
        for _ in range(2):
            with pytest.raises(Conflict, match=rf"pid {owner.pid}\b"):
                HomeLock(path)
        owner.kill()
    HomeLock(path).release()


def test_it_is_taken_and_given_back(path: Path) -> None:
    lock = HomeLock(path)
    assert path.read_text() == f"{os.getpid()}\n"
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(Conflict):
        HomeLock(path)
    lock.release()
    lock.release()
    HomeLock(path).release()


def test_a_child_process_does_not_inherit_it(path: Path) -> None:
    lock = HomeLock(path)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        lock.release()
        HomeLock(path).release()
        child.kill()


def test_a_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic link"):
        HomeLock(path)
