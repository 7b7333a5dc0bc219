"""The answer "always" changes config.toml, and nothing else waits for that."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from holdfast.edit_settings import SettingsChange, edit_file
from holdfast.gateway.routes import waits
from holdfast.gateway.state import Gateway
from holdfast.profiles import Profiles


async def test_rules_are_written_beside_the_event_loop_and_none_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[profiles.coder]\nmodel = "demo"\n')
    profiles, threads = Profiles(config), set[int]()

    def recorded(path: Path, change: SettingsChange) -> None:
        threads.add(threading.get_ident())
        edit_file(path, change)

    monkeypatch.setattr("holdfast.profiles.edit_file", recorded)
    at = cast(Gateway, SimpleNamespace(profiles=profiles))
    patterns = [f"terminal:make target{number}" for number in range(8)]
    assert await asyncio.gather(*(waits._keep(at, "coder", pattern, by="me") for pattern in patterns)) == [""] * 8
    assert threading.get_ident() not in threads
    assert profiles.settings.profiles["coder"].tools == dict.fromkeys(patterns, "allow")
