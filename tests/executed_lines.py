"""A plugin of pytest for `make mutants`: records which test executes which lines of the package, and how long it takes.

`-p tests.executed_lines` with EXECUTED_LINES=DIRECTORY in the environment; each process of pytest writes one file of
JSON lines there. Only tests that pass are recorded. Lines that are executed while a module is imported, or in other
processes, belong to no test.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

PACKAGE = str(Path(__file__).resolve().parent.parent / "src/holdfast") + "/"
executed: dict[str, set[int]] = defaultdict(set)
"""By module, of the test that is running."""
failed: set[str] = set()
file_names: dict[str, bool] = {}


def _call(frame: FrameType, event: str, argument: object) -> Any:
    name = frame.f_code.co_filename
    ours = file_names.get(name)
    if ours is None:
        ours = file_names[name] = name.startswith(PACKAGE)
    return _line if ours else None


def _line(frame: FrameType, event: str, argument: object) -> Any:
    if event == "line":
        executed[frame.f_code.co_filename].add(frame.f_lineno)
    return _line


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if not report.passed:
        failed.add(report.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    executed.clear()
    began = time.monotonic()
    threading.settrace(_call)
    sys.settrace(_call)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        threading.settrace(None)
        if item.nodeid not in failed:
            lines = {name.removeprefix(PACKAGE): sorted(numbers) for name, numbers in list(executed.items())}
            record = {"test": item.nodeid, "seconds": time.monotonic() - began, "lines": lines}
            with (Path(os.environ["EXECUTED_LINES"]) / f"{os.getpid()}.jsonl").open("a") as file:
                file.write(json.dumps(record) + "\n")
