from __future__ import annotations

import pytest

from holdfast.client import Client
from tests.cli.conftest import alone, gateway, shared
from tests.e2e.gateway import GatewayProcess

__all__ = ["alone", "gateway", "shared"]


@pytest.fixture
def client(shared: GatewayProcess) -> Client:
    return Client(shared.home)
