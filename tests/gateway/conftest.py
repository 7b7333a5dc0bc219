"""One gateway for a whole file of tests that do not harm it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.gateway import GatewayProcess


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("gateway") / "home") as process:
        yield process.start()
