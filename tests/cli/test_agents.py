"""External agents from the command line; `tests/agents/test_qwen.py` tests a real one by `agents test`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents.own_sessions import ID, agent, claude_file, person, said
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


def test_a_session_of_an_agent_is_chosen_from_a_list_and_a_profile_is_offered(
    alone: CommandLine, tmp_path: Path
) -> None:
    programs, home = tmp_path / "bin", tmp_path / "of-claude"
    programs.mkdir()
    (programs / "claude").write_text("#!/bin/sh\n")
    (programs / "claude").chmod(0o755)
    env = {"PATH": f"{programs}:/usr/bin:/bin", "CLAUDE_CONFIG_DIR": str(home)}
    none = alone("agents", "adopt", "claude", env=env)
    assert none.returncode == 4 and f"Claude Code has no sessions in {home}/projects" in none.stderr
    claude_file(home, tmp_path, person("Fix the \x1b[31mfailing test", 1), agent(2, said("Done.")))
    listed = alone("agents", "adopt", "claude", env=env)
    assert "failing test" in listed.stdout and ID[:8] in listed.stdout and "\x1b" not in listed.stdout
    assert "agents adopt claude ID" in listed.stderr, "nobody can be asked"
    with alone.terminal("agents", "adopt", "claude", columns=120, **env) as terminal:
        terminal.until("Which one?")
        terminal.type("none\n")
        terminal.until("Nothing was adopted.")
        assert terminal.wait() == 0
    refused = alone("agents", "adopt", "claude", ID, env=env)
    assert refused.returncode == 2 and "No profile uses Claude Code." in refused.stderr
    assert "agents add claude" in refused.stderr
    with alone.terminal("agents", "adopt", "claude", columns=120, **env) as terminal:
        terminal.until("Which one?")
        terminal.type("1\n")
        terminal.until("Add the profile claude")
        terminal.type("y\n")
        terminal.until("adopted from claude, 1 turn: Fix the")
        assert terminal.wait() == 0
    assert 'driver = "command"' in (alone.home / "config.toml").read_text(), "there is no adapter for the protocol"
    (session,) = alone.json("sessions")["sessions"]
    log = alone.ok("sessions", "log", session["id"])
    assert "Adopted by cli from claude. The turn above was imported from" in log
