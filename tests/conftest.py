"""What all tests share: the options of the suite, and what is the same however it is started."""

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

gc.disable()  # until all modules are imported: they make no garbage

pytest.register_assert_rewrite("tests.store.conformance")  # no test module, but its assertions explain themselves too

settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")  # by default an example that takes 0.2 s is an error, and machines are noisy

# a sandbox has a /tmp of its own, and many a test has its agent look at a file beside its workspace
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/var/tmp")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what runs in its background: nobody
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whom a test starts would hear its Ctrl-C


BEGAN = time.clock_gettime(time.CLOCK_BOOTTIME)
LEFT_RUNNING = pytest.StashKey[list[str]]()
UMASK = os.umask(0o022)
os.umask(UMASK)


@pytest.fixture(autouse=True)
def same_umask() -> Iterator[None]:
    """A home that is prepared closes what its process makes from then on; here that is the process of the next test.

    Also before the test: a fixture of a whole module may have prepared one.
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
    """After the test it is the usual one again, and its schemas are free."""
    asked = request.config.getoption("--store")
    if asked != "sqlite" or "each_engine" in request.fixturenames:  # other tests need no part of it
        from tests.engines import engines

        engines.name = asked
        yield
        engines.name = "sqlite"
        engines.forget_all()
    else:
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--store", choices=("sqlite", "postgres"), default="sqlite", help="the engine of rigs")
    parser.addoption("--regenerate", action="store_true", help="write the golden files anew, to be read as a diff")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Modules that have only long versions are not even collected."""
    return True if collection_path.name.endswith("_at_length.py") and not is_proof(config) else None


def pytest_collection_finish() -> None:
    """What the modules of all tests brought is not looked through again whenever a test makes garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)  # as in a gateway
    gc.enable()


def is_proof(config: pytest.Config) -> bool:
    return "proof" in config.getoption("-m")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The long versions run only when somebody says `-m proof`. Several workers run the files in a mixed order: in that
    of the directories all tests with a browser would compete in the end, and those that wait would run before.
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
