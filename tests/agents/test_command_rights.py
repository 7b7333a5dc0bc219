"""What a command-line agent may do without asking: by the settings, and by who created its session."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.config import ConfigError
from holdfast.domain.events.parts import RightsLayer
from holdfast.domain.next_step import TurnLimits
from holdfast.domain.session import Session
from holdfast.models.demo import DemoModel
from holdfast.read_settings import load_settings
from holdfast.runtime.agents import Agent
from holdfast.runtime.drivers.command import rights_problem
from holdfast.runtime.external.configuration import external_command
from holdfast.settings import Policy, ProfileSettings
from holdfast.tasks.sandbox import SandboxPolicy


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        ('agent = "codex"\nmode = "danger-full-access"', "mode = 'danger-full-access' lets .* add sandbox = \"on\""),
        ('agent = "claude"\nmode = "yolo"', "modes of claude as a command are: acceptEdits, default, plan"),
        ('agent = "hermes"', '"command" is known for: claude, codex, qwen, opencode, gemini'),
        ('agent = "codex"\nargv = ["codex", "{prompt}"]', "argv is its program alone"),
        ('agent = "codex"\nresume_argv = ["codex"]', "argv is its program alone"),
        ('argv = ["my-agent", "{prompt}"]', "argv is a command that acts without asking.*unrestricted = true"),
        ('argv = ["my-agent", "{promt}"]\nunrestricted = true', "has {promt}; only {prompt} and {session}"),
        ('argv = ["a"]\nunrestricted = true\nmode = "x"', "write its flags into argv"),
        ('argv = ["a", "{session}"]\nresume_argv = ["a"]\nunrestricted = true', "resume_argv needs {session}"),
        ('argv = ["a"]\nresume_argv = ["a", "{session}"]\nunrestricted = true', "argv needs {session}"),
        ('agent = "codex"\n[profiles.x.tools]\nterminal = "deny"', "has a rule for 'terminal'.*asks nobody"),
        ("", 'driver = "command" needs an agent'),
    ],
)
def test_settings_that_are_refused(tmp_path: Path, profile: str, words: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f'[profiles.x]\ndriver = "command"\n{profile}\n')
    with pytest.raises(ConfigError, match=words):
        load_settings(file)


@pytest.mark.parametrize(
    "profile",
    [
        'driver = "command"\nagent = "codex"\nargv = ["/opt/codex"]',
        'driver = "command"\nagent = "codex"\nmode = "danger-full-access"\nsandbox = "on"',
        'driver = "command"\nagent = "codex"\nmode = "danger-full-access"\nunrestricted = true',
        'driver = "command"\nargv = ["a"]\nsandbox = "on"',
        'agent = "qwen"\nmode = "yolo"\nunrestricted = true',
    ],
)
def test_settings_that_are_taken(tmp_path: Path, profile: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"[profiles.x]\n{profile}\n")
    assert load_settings(file).profiles["x"].driver_name in ("acp", "command")


@pytest.mark.parametrize("more", ['agent = "qwen"\nmode = "yolo"', 'model = "demo"\nresume_argv = ["a"]'])
def test_other_drivers_are_checked_too(tmp_path: Path, more: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"[profiles.x]\n{more}\n")
    with pytest.raises(ConfigError):
        load_settings(file)


def agent_of(profile: ProfileSettings, *layers: RightsLayer) -> Agent:
    return Agent(
        DemoModel(),
        TurnLimits(),
        ancestors=layers,
        sandbox=SandboxPolicy(profile.sandbox),
        external=external_command("x", profile),
    )


def problem(profile: ProfileSettings, *layers: RightsLayer) -> str:
    agent, session = agent_of(profile, *layers), Session("0", profile="x", cwd="/")
    assert agent.external is not None
    found = rights_problem(agent, agent.external, session)
    return "" if found is None else found.message


def layer(sandbox: str = "auto", **rules: Policy) -> RightsLayer:
    return RightsLayer(profile="boss", rules=rules, mcp=[], paths=["/"], sandbox=sandbox, network=True)  # type: ignore[arg-type]


def test_it_is_checked_again_when_it_starts() -> None:
    full = ProfileSettings(driver="command", agent="codex", mode="danger-full-access")
    assert "nothing would limit it" in problem(full)
    assert not problem(ProfileSettings(driver="command", agent="codex", mode="danger-full-access", sandbox="on"))
    assert not problem(full, layer("on", write="allow", terminal="allow")), "its creator's sandbox is its own"


@pytest.mark.parametrize(
    ("mode", "rules", "refused"),
    [
        ("workspace-write", {"write": "allow", "terminal": "allow"}, False),
        ("workspace-write", {"write": "allow"}, True),
        ("workspace-write", {"write": "allow", "terminal": "deny"}, True),
        ("read-only", {}, False),
    ],
)
def test_it_does_nothing_that_its_creator_must_ask_for(mode: str, rules: dict[str, Policy], refused: bool) -> None:
    said = problem(ProfileSettings(driver="command", agent="codex", mode=mode), layer(**rules))
    assert bool(said) == refused and ("boss" in said) == refused
