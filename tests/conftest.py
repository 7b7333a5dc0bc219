"""Shared by all rooms, and kept tiny: the two ways in which a run of the suite can be asked for more."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")  # by default an example that takes 0.2 s is an error, and machines are noisy


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regenerate", action="store_true", help="write the golden files anew, to be read as a diff")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The long versions run only when somebody says `-m proof`."""
    if "proof" in config.getoption("-m"):
        return
    long = [item for item in items if item.get_closest_marker("proof") is not None]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]
