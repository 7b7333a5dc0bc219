"""A model server for the tests that need one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.provider.loopback import Loopback


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as loopback:
        yield loopback
