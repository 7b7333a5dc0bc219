"""External agents from the command line; `tests/agents/test_qwen.py` tests a real one by `agents test`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.commandline import CommandLine


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A path with one agent."""
    program = tmp_path / "bin" / "qwen"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 0.24.4\n")
    program.chmod(0o700)
    return f"{program.parent}:/usr/bin:/bin"


def test_the_list_needs_no_gateway_and_says_what_to_do_next(alone: CommandLine, path: str) -> None:
    found = alone("agents", env={"PATH": path})
    assert "no gateway is running" in found.stderr
    first = found.stdout.splitlines()[1]
    assert first.split()[:4] == ["qwen", "Qwen", "Code", "0.24.4"]
    assert first.endswith("agents add qwen")
    assert "npm install -g opencode-ai" in found.stdout
    alone("agents", "add", "qwen", env={"PATH": path})
    assert alone("agents", env={"PATH": path}).stdout.splitlines()[1].endswith("agents test qwen")


def test_the_list_says_how_to_begin_when_nothing_is_installed(alone: CommandLine) -> None:
    found = alone("agents", env={"PATH": "/nowhere"})
    assert "None of them is installed." in found.stdout


def test_an_agent_becomes_a_profile(alone: CommandLine) -> None:
    assert "added mine" in alone.ok("agents", "add", "codex", "--profile", "mine", "--mode", "read-only")
    text = (alone.home / "config.toml").read_text()
    assert '[profiles.mine]\nagent = "codex"\nmode = "read-only"' in text
    again = alone("agents", "add", "codex", "--profile", "mine")
    assert (again.returncode, "exists already" in again.stderr) == (2, True)
    unknown = alone("agents", "add", "nobody")
    assert (unknown.returncode, "'claude'" in unknown.stderr) == (2, True)


def test_a_command_line_agent_without_an_adapter_is_offered_as_a_command(alone: CommandLine, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho codex-cli 0.169.0\n")
    program.chmod(0o700)
    env = {"PATH": f"{program.parent}:/usr/bin:/bin"}
    first = alone("agents", env=env).stdout.splitlines()[1]
    assert first.split()[:3] == ["codex", "Codex", "0.169.0"] and first.endswith("agents add codex --driver command")
    added = alone("agents", "add", "codex", "--driver", "command", env=env)
    assert "not found" not in added.stderr
    assert 'agent = "codex"\ndriver = "command"' in (alone.home / "config.toml").read_text()
    refused = alone("agents", "add", "codex", "--profile", "all", "--driver", "command", "--mode", "danger-full-access")
    assert (refused.returncode, "unrestricted = true" in refused.stderr) == (2, True)


def test_models_offers_an_installed_agent_if_there_is_no_model(alone: CommandLine, path: str) -> None:
    found = alone("models", env={"PATH": path})
    assert "agents add qwen" in found.stdout


def test_a_test_of_what_is_not_there_says_what_to_do(cli: CommandLine) -> None:
    nobody = cli("agents", "test", "nobody")
    assert (nobody.returncode, "There are: claude" in nobody.stderr) == (4, True)
    unused = cli("agents", "test", "kimi")
    assert "agents add kimi" in unused.stderr
    cli.ok("agents", "add", "vibe")
    missing = cli("agents", "test", "vibe")
    assert (missing.returncode, "pipx install mistral-vibe" in missing.stderr) == (1, True)
    cli.ok("profiles", "remove", "vibe")  # other tests share the gateway
