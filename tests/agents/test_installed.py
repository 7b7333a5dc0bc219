"""Which external agents are installed: programs on the path, asked for their versions without keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.external_agents import installed_agents
from holdfast.runtime.external.installed import list_agents
from holdfast.schemas.agents import KnownAgent
from holdfast.settings import ProfileSettings, Settings
from tests.eventually import PATIENCE

SETTINGS = Settings(profiles={"mine": ProfileSettings(agent="qwen"), "other": ProfileSettings()})


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def program(directory: Path, name: str, script: str) -> None:
    (directory / name).write_text(f"#!/bin/sh\n{script}\n")
    (directory / name).chmod(0o700)


async def listed(*, versions: bool = True, seconds: float = PATIENCE) -> dict[str, KnownAgent]:
    found = await list_agents(SETTINGS, versions=versions, seconds=seconds)
    return {agent.name: agent for agent in found.agents}


async def test_what_is_on_the_path_is_installed(path: Path) -> None:
    program(path, "qwen", "echo 0.24.4")
    found = await listed()
    assert (found["qwen"].program, found["qwen"].version) == (str(path / "qwen"), "0.24.4")
    assert (found["qwen"].profiles, found["codex"].profiles) == (["mine"], [])
    assert (found["codex"].program, found["codex"].version) == ("", "")
    assert "npm install" in found["codex"].install
    assert [agent.name for agent in installed_agents()] == ["qwen"]


async def test_without_versions_no_program_is_run(path: Path) -> None:
    program(path, "qwen", f"touch {path}/ran; echo 0.24.4")
    assert (await listed(versions=False))["qwen"].version == ""
    assert not (path / "ran").exists()


async def test_keys_are_not_given_and_only_a_version_is_taken(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1.2.3")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-1.2.3")
    program(
        path,
        "qwen",
        'echo "$OPENAI_API_KEY$ANTHROPIC_API_KEY"; printf "\\033]0;evil\\007qwen \\033[31mv2.10.0-beta.1\\033[0m\\n"',
    )
    program(path, "kimi", "echo nothing that looks like one")
    program(path, "gemini", "exit 3")
    found = await listed()
    assert found["qwen"].version == "2.10.0-beta.1"
    assert (found["kimi"].version, found["gemini"].version) == ("", "")


async def test_a_program_that_hangs_or_never_ends_its_output_is_ended(path: Path) -> None:
    program(path, "kimi", "yes 3.2.1")
    assert (await listed())["kimi"].version == "3.2.1"
    (path / "kimi").unlink()
    program(path, "qwen", f"echo $$ > {path}/pid; sleep 9999 & wait")
    assert (await listed(seconds=0.5))["qwen"].version == ""
    pid = path / "pid"
    assert not pid.exists() or not Path(f"/proc/{pid.read_text().strip()}").exists()
