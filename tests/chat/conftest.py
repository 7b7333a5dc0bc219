from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli.hints import use_home
from tests.cli.commandline import CommandLine, end_gateway, new_home
from tests.e2e.gateway import GatewayProcess

CAREFUL = '\n[profiles.careful]\nmodel = "demo"\n[profiles.careful.tools]\n"write" = "ask"\n'


@pytest.fixture(autouse=True)
def forget_home() -> Iterator[None]:
    """A chat in the process of the test has a home; the hints of later tests must not name it."""
    yield
    use_home(None)


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    """A gateway of one's own, with an agent that asks before it writes."""
    home = new_home(tmp_path / "home")
    with (home / "config.toml").open("a") as file:
        file.write(CAREFUL)
    with GatewayProcess(home) as gateway:
        yield gateway.start()


@pytest.fixture
def cli(gateway: GatewayProcess) -> CommandLine:
    """The command line on that gateway."""
    return CommandLine(gateway.home)


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[CommandLine]:
    """The command line on a home without a gateway."""
    home = new_home(tmp_path / "home")
    yield CommandLine(home)
    end_gateway(home)


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    """Where the agent works."""
    path = tmp_path / "project"
    path.mkdir()
    (path / "README.md").write_text("# Read me\n")
    return path
