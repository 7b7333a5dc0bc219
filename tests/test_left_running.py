"""A process that a test leaves running is found, and reported with the name of the test."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from tests.left_running import left_running


def test_a_process_that_is_left_is_reported_with_its_test(tmp_path: Path) -> None:
    keepers = str(tmp_path)  # and not those of other tests, which run beside this one
    began = time.clock_gettime(time.CLOCK_BOOTTIME) - 1
    with subprocess.Popen(["sleep", "600"], cwd=tmp_path) as process:
        (found,) = left_running(tmp_path, since=began, patience=0, keepers=keepers)
        later = left_running(tmp_path, since=began + 600, patience=0, keepers=keepers)
        process.kill()
    assert str(found) == f"process {process.pid} of {tmp_path.name}: sleep 600"
    assert later == [], "what was there before belongs to another run"
    assert left_running(tmp_path, since=began, keepers=keepers) == []
