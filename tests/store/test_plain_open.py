"""Nothing opens the database file but SQLite.

Closing any other handle on it drops the POSIX locks of the whole process; from then on another
connection's commits can vanish without an error.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.eventually import PATIENCE

ROOT = Path(__file__).parents[2]


def run(home: Path, then: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.store.all_operations", str(home), then]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_promise_1_nothing_opens_the_database_file_but_sqlite(tmp_path: Path) -> None:
    done = run(tmp_path / "home", "nothing")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@pytest.mark.parametrize("then", ["open", "os.open"])
def test_and_this_test_would_notice(tmp_path: Path, then: str) -> None:
    done = run(tmp_path / "home", then)
    assert done.returncode == 7
    assert "a plain open of" in done.stderr
