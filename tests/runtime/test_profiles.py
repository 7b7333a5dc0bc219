"""Profiles and the agents that are made of them: what they may reach, and what must not be seen of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.domain.events.chapter import ResetPolicy
from holdfast.domain.events.parts import Call, EventRef
from holdfast.domain.reset import ResetRules
from holdfast.domain.session import OpenCall, Session, Turn
from holdfast.models.model import ModelError, ModelRequest
from holdfast.models.registry import ModelRegistry
from holdfast.profiles import Profiles
from holdfast.runtime.agents import Agents
from holdfast.runtime.tools import READ, file_tools

KEY = "sk-0123456789abcdef"
CONFIG = """
[providers.mine]
base_url = "http://127.0.0.1:1/v1"
api_key_env = "MINE_KEY"
[mcp.tracker]
url = "http://127.0.0.1:1/mcp"
bearer_env = "TRACKER_TOKEN"
[profiles.coder]
model = "mine:m"
cwd = "~/work"
also = ["~/shared", "~nobody-knows-me/x"]
"""


@pytest.fixture
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Profiles:
    """The home lies in the working directory, as for somebody who works in their home directory."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MINE_KEY", KEY)
    monkeypatch.setenv("TRACKER_TOKEN", "tracker-token")
    (tmp_path / "work" / ".holdfast" / "run").mkdir(parents=True)
    (tmp_path / "work" / ".holdfast" / "run" / "token").write_text("the owner's token")
    config = tmp_path / "work" / ".holdfast" / "config.toml"
    config.write_text(CONFIG)
    return Profiles(config)


@pytest.fixture
def agents(profiles: Profiles) -> Agents:
    return Agents(profiles, ModelRegistry(profiles), tools=file_tools())


def session(profile: str) -> Session:
    return Session("0", profile=profile, cwd="/")


async def test_a_tilde_is_the_home_of_the_user(agents: Agents, tmp_path: Path) -> None:
    context = (await agents.of(session("coder"))).tool_context(session("coder"))
    assert context.cwd == tmp_path / "work"
    assert context.also[0] == tmp_path / "shared"


async def test_the_home_of_holdfast_is_closed_to_tools(agents: Agents) -> None:
    """Its token opens every door, and its settings say what is allowed."""
    context = (await agents.of(session("coder"))).tool_context(session("coder"))
    for path in (".holdfast/run/token", ".holdfast/config.toml", "./.holdfast"):
        result = await READ.call(context, json.dumps({"path": path}))
        assert (result.outcome, "is closed to tools" in result.output) == ("failed", True)


@pytest.mark.parametrize("name", ["mine", "mine: ", "nowhere:m", ""])
async def test_a_model_that_does_not_exist_fails_and_says_which_there_are(profiles: Profiles, name: str) -> None:
    model = ModelRegistry(profiles).get(name)
    with pytest.raises(ModelError) as failed:
        await anext(model.stream(ModelRequest(1, "", [], [])))
    assert failed.value.problem.code == "unknown_model"
    assert failed.value.problem.message.startswith(f"{name!r} is not a model: write `demo` or PROVIDER:MODEL")
    assert "mine" in failed.value.problem.message


async def test_keys_are_not_in_the_output_of_a_tool(profiles: Profiles, agents: Agents) -> None:
    agent = await agents.of(session("coder"))
    assert agent.mask(f"KEY={KEY} tracker-token x") == (
        "KEY=[hidden: the value of MINE_KEY] [hidden: the value of TRACKER_TOKEN] x"
    )
    assert KEY not in repr(agent)
    assert profiles.mask(f"KEY={KEY}") == "KEY=[hidden: the value of MINE_KEY]"


async def test_a_profile_that_is_gone_allows_nothing(agents: Agents) -> None:
    """What it denied is not known any more."""
    assert (await agents.of(session("gone"))).rules == {"*": "deny"}


async def test_a_profile_that_is_gone_still_takes_away_what_a_killed_call_left(agents: Agents, tmp_path: Path) -> None:
    left = tmp_path / "work" / ".holdfast-0-1.1.0"
    left.write_text("half of it")
    cut = OpenCall(Call(call="1.1.0", tool="write", arguments='{"path": "a", "content": "b"}'), effect="idempotent")
    turn = Turn(1, EventRef(1, 0), EventRef(1, 0), "TurnStarted", open_calls={"1.1.0": cut})
    state = Session("0", profile="gone", cwd=str(tmp_path / "work"), turn=turn)
    await (await agents.of(state)).clean_up(state)
    assert not left.exists()


def test_a_reset_rule_is_the_sessions_then_the_profiles_then_everybodys(profiles: Profiles) -> None:
    profiles.path.write_text(
        CONFIG
        + "[profiles.coder.session_reset]\nidle_minutes = 5\nmax_postpone = '0s'\n"
        + "[session_reset]\nmode = 'daily'\nidle_minutes = 9\nat_hour = 3\n"
    )
    own = ResetPolicy(mode="idle")
    rules = profiles.reset_rules("coder", own)
    assert (rules.mode, rules.idle_ms, rules.at_hour) == ("idle", 300_000, 3)
    assert rules.max_postpone_ms == 0, "nothing may postpone is a rule too, and not the default"
    assert rules.process_max_age_ms == ResetRules().process_max_age_ms
    origins = profiles.reset_origins("coder", own)
    assert {name: origins[name] for name in ("mode", "idle_minutes", "at_hour", "notify")} == {
        "mode": "session",
        "idle_minutes": "profile",
        "at_hour": "config",
        "notify": "default",
    }
    assert profiles.reset_rules("demo", ResetPolicy()).mode == "daily"
