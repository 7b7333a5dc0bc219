"""The real port against the loopback server, on both wires."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from holdfast.models.provider import ProviderModel, warm_up
from tests.provider.asking import provider
from tests.provider.loopback import Loopback, Wire


@pytest.fixture(scope="session", autouse=True)
def warm() -> None:
    """So that no test pays for the import inside its own time limits."""
    warm_up()


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as server:
        yield server


@pytest.fixture(params=["openai", "anthropic"])
def wire(request: pytest.FixtureRequest) -> Wire:
    chosen: Wire = request.param
    return chosen


@pytest.fixture
async def model(server: Loopback, wire: Wire) -> AsyncIterator[ProviderModel]:
    model = ProviderModel(provider(server, wire), "loopback", idle_seconds=5)
    yield model
    await model.close()
