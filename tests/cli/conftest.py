from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli.hints import use_home
from tests.cli.commandline import CommandLine, end_gateway, new_home
from tests.e2e.gateway import GatewayProcess


@pytest.fixture(autouse=True)
def no_home_named() -> None:
    """The home of the test before, if it called the command line in this process, is in no message of this one."""
    use_home(None)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """One gateway for all tests that do not mind company."""
    home = new_home(tmp_path_factory.mktemp("cli") / "home")
    with GatewayProcess(home) as gateway:
        yield gateway.start()


@pytest.fixture
def cli(shared: GatewayProcess) -> CommandLine:
    """The command line on the shared gateway."""
    return CommandLine(shared.home)


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    """A gateway of one's own, to be killed; also the one that the command line starts after it."""
    home = new_home(tmp_path / "home")
    with GatewayProcess(home) as gateway:
        yield gateway.start()
    end_gateway(home)


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[CommandLine]:
    """The command line on a home without a gateway."""
    home = new_home(tmp_path / "home")
    yield CommandLine(home)
    end_gateway(home)
