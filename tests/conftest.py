"""Options and fixtures of all tests, and settings that must not depend on how the suite is started."""

from __future__ import annotations

import gc
import os
import signal
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

gc.disable()  # until all modules are imported: that makes no garbage

pytest.register_assert_rewrite("tests.store.conformance")  # not a test module, but its assertions are explained too

settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")  # by default an example that takes 0.2 s is an error; busy machines are slower

# not below /tmp: a sandbox has its own, and agents of many tests read a file next to their workspace
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/var/tmp")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts background jobs so,
    signal.signal(signal.SIGINT, signal.default_int_handler)  # and the processes of tests would ignore Ctrl-C


BEGAN = time.clock_gettime(time.CLOCK_BOOTTIME)
LEFT_RUNNING = pytest.StashKey[list[str]]()
UMASK = os.umask(0o022)
os.umask(UMASK)


@pytest.fixture(autouse=True)
def same_umask() -> Iterator[None]:
    """Preparing a home sets the umask of the process, which here is also the process of the next test.

    It is restored before each test too: a fixture of the module may have prepared a home.
    """
    os.umask(UMASK)
    yield
    os.umask(UMASK)


@pytest.fixture(params=["sqlite", "postgres"])
def each_engine(request: pytest.FixtureRequest) -> None:
    """The rigs of the test open their stores on this engine."""
    from tests.engines import engines

    engines.name = request.param


@pytest.fixture(autouse=True)
def engine_of_rigs(request: pytest.FixtureRequest) -> Iterator[None]:
    """Set the engine of `--store`; after the test it is SQLite again, and the schemas are free."""
    asked = request.config.getoption("--store")
    if asked != "sqlite" or "each_engine" in request.fixturenames:  # other tests do not need it
        from tests.engines import engines

        engines.name = asked
        yield
        engines.name = "sqlite"
        engines.forget_all()
    else:
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--store", choices=("sqlite", "postgres"), default="sqlite", help="the engine of rigs")
    parser.addoption("--regenerate", action="store_true", help="rewrite the golden files, to be reviewed as a diff")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Modules that have only long versions are collected only for `-m proof`."""
    return True if collection_path.name.endswith("_at_length.py") and not is_proof(config) else None


def pytest_collection_finish() -> None:
    """Freeze the objects of all modules, so that the garbage collector does not scan them in each test."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)  # as in a gateway
    gc.enable()


def is_proof(config: pytest.Config) -> bool:
    return "proof" in config.getoption("-m")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The long versions run only with `-m proof`. Workers get the files in a mixed order: in alphabetical order all
    tests with a browser would compete at the end.
    """
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: zlib.crc32(item.location[0].encode()))
    if is_proof(config):
        return
    long = [item for item in items if item.get_closest_marker("proof") is not None]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail if a process of a test is still running when all tests and workers have ended."""
    if hasattr(session.config, "workerinput"):
        return
    from tests.left_running import left_running

    found = left_running(session.config._tmp_path_factory.getbasetemp(), since=BEGAN)  # type: ignore[attr-defined]
    if found:
        session.config.stash[LEFT_RUNNING] = [str(process) for process in found]
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if lines := config.stash.get(LEFT_RUNNING, []):
        terminalreporter.section("the tests left processes running", red=True)
        for line in lines:
            terminalreporter.line(line)
