"""Servers that a test starts are closed after it, and nothing of them is left."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from holdfast.runtime.mcp.servers import McpServer, McpServers

from .calling import Children, Start


@pytest.fixture
def children() -> Children:
    return Children()


@pytest.fixture
async def start(children: Children) -> AsyncIterator[Start]:
    started: list[McpServers] = []

    def begin(*definitions: McpServer, call_seconds: float = 600.0) -> McpServers:
        started.append(McpServers(definitions, call_seconds=call_seconds))
        return started[-1]

    yield begin
    for servers in started:
        await servers.close()
    assert not children(), "no server outlives the gateway"
