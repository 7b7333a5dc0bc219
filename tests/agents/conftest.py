"""A gateway with the scripted agent, made by the test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.agents.life import AgentLife

Make = Callable[..., AgentLife]


@pytest.fixture
async def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Make]:
    memory = tmp_path / "memory"
    memory.mkdir()
    monkeypatch.setenv("SCRIPTED_HOME", str(memory))
    lives: list[AgentLife] = []

    def made(*flags: str, **more: object) -> AgentLife:
        lives.append(AgentLife(tmp_path, *flags, **more))  # type: ignore[arg-type]
        return lives[-1]

    yield made
    await lives[-1].end()
