"""What lines of real agents say (recorded with the loopback model), and what no line may do to a parser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.events.external_agent import AttachedBy
from holdfast.domain.events.parts import Usage
from holdfast.external_agent_files import SESSIONS
from holdfast.external_agents import CATALOGUE, OutputFormat
from holdfast.runtime.external.command.arguments import McpAddress, OwnSession, command_arguments
from holdfast.runtime.external.command.items import (
    Answered,
    CallBegun,
    CallEnded,
    Failed,
    Item,
    PlanStated,
    SessionNamed,
    TextAdded,
    TextWhole,
    TokensUsed,
)
from holdfast.runtime.external.command.reader import PARSERS
from holdfast.runtime.external.configuration import external_command
from holdfast.settings import ProfileSettings

SAMPLES = Path(__file__).parents[1] / "golden" / "command_agents"
FORMATS: list[OutputFormat] = ["claude", "qwen", "codex", "opencode", "gemini"]
ID = "11111111-2222-4333-8444-555555555555"


def items(format: OutputFormat) -> list[Item]:
    lines = (SAMPLES / f"{format}.jsonl").read_bytes().splitlines()
    return [item for line in lines for item in PARSERS[format](line)]


def of_kind(found: list[Item], *kinds: type) -> list[Item]:
    return [item for item in found if isinstance(item, kinds)]


def test_claude() -> None:
    found = items("claude")
    assert of_kind(found, SessionNamed) == [SessionNamed(ID, "2.1.326")] * 2
    assert [(call.tool, call.arguments.get("command")) for call in found if isinstance(call, CallBegun)] == [
        ("write", None),
        ("terminal", "echo hi there"),
    ]
    assert [(one.id, one.failed) for one in found if isinstance(one, CallEnded)] == [
        ("toolu_000001", False),
        ("toolu_000002", False),
    ]
    assert [one.output for one in found if isinstance(one, CallEnded)][1] == "hi there"
    assert of_kind(found, TextWhole) == [TextWhole("I remember: APPLE10")] * 2
    assert of_kind(found, TextAdded) == [TextAdded("I remember: "), TextAdded("APPLE10")]
    first, second = [one for one in found if isinstance(one, Answered)]
    assert first.usage is not None and (first.usage.input_tokens, first.usage.output_tokens) == (33, 21)
    assert second.usage is not None and second.usage.input_tokens == 11


def test_qwen() -> None:
    found = items("qwen")
    assert [one.version for one in found if isinstance(one, SessionNamed)] == ["0.24.4"]
    assert [(one.failed, "Exit Code: 1" in one.output) for one in found if isinstance(one, CallEnded)] == [
        (False, False),
        (True, True),
    ]
    assert [one.usage.input_tokens for one in found if isinstance(one, TokensUsed)] == [11, 11, 11]
    (answered,) = [one for one in found if isinstance(one, Answered)]
    assert answered.usage is None, "its total is of the whole session"


def test_codex() -> None:
    found = items("codex")
    (named,) = of_kind(found, SessionNamed)
    assert isinstance(named, SessionNamed) and named.id
    begun = [call for call in found if isinstance(call, CallBegun)]
    assert [call.id for call in begun] == ["item_1", "item_1", "item_2", "item_2", "item_3", "item_3"]
    assert begun[2].arguments == {"command": "echo hi there"}, "the shell around it is not shown"
    ended = [(one.output, one.failed, one.exit_code) for one in found if isinstance(one, CallEnded)]
    assert ended == [("", False, 0), ("hi there\n", False, 0), ("", True, 1)]
    (answered,) = [one for one in found if isinstance(one, Answered)]
    assert answered.total is not None and answered.total.input_tokens == 44


def test_opencode() -> None:
    found = items("opencode")
    assert len({one.id for one in found if isinstance(one, SessionNamed)}) == 1
    assert [call.tool for call in found if isinstance(call, CallBegun)] == ["write", "terminal", "write"]
    assert [one.exit_code for one in found if isinstance(one, CallEnded)] == [None, 0, None]
    assert len(of_kind(found, TokensUsed)) == 4 and len(of_kind(found, Answered)) == 1


def test_gemini() -> None:
    found = items("gemini")
    assert of_kind(found, SessionNamed) == [SessionNamed(ID)] * 2
    assert [call.tool for call in found if isinstance(call, CallBegun)] == ["write"]
    texts = "".join(one.text for one in found if isinstance(one, TextAdded))
    assert texts.endswith("I remember: APPLE10"), "what the person said is no part of the answer"
    assert len(of_kind(found, Answered)) == 2


@pytest.mark.parametrize(
    ("format", "line", "expected"),
    [
        ("codex", {"type": "turn.failed", "error": {"message": "no quota"}}, [Failed("no quota")]),
        ("codex", {"type": "error", "message": "Reconnecting… 1/5"}, []),
        ("claude", {"type": "result", "is_error": True, "result": "Not logged in"}, [Failed("Not logged in")]),
        ("claude", {"type": "result", "subtype": "error_max_turns", "errors": ["a", "b"]}, [Failed("a; b")]),
        ("gemini", {"type": "result", "status": "error", "error": {"message": "x"}}, [Failed("x")]),
        (
            "opencode",
            {
                "type": "step_finish",
                "part": {
                    "reason": "tool-calls",
                    "tokens": {"input": 1, "output": 20, "reasoning": 300, "cache": {"read": 4000, "write": 50_000}},
                },
            },
            [TokensUsed(Usage(input_tokens=54_001, output_tokens=320, cached_tokens=4000))],
        ),
        ("opencode", {"type": "error", "error": {"name": "E", "data": {"message": "x"}}}, [Failed("x")]),
        (
            "claude",
            {"type": "assistant", "parent_tool_use_id": "t", "message": {"content": [{"type": "text", "text": "x"}]}},
            [],
        ),
    ],
)
def test_ends_and_other_lines(format: OutputFormat, line: object, expected: list[Item]) -> None:
    assert PARSERS[format](json.dumps(line).encode()) == expected


def test_the_plan_and_the_changes_of_codex() -> None:
    todo = {"id": "i", "type": "todo_list", "items": [{"text": "a", "completed": True}, {"text": "b"}]}
    (plan,) = PARSERS["codex"](json.dumps({"type": "item.updated", "item": todo}).encode())
    assert isinstance(plan, PlanStated) and [one.state for one in plan.entries] == ["completed", "pending"]
    change = {"id": "i", "type": "file_change", "changes": [{"path": "/a", "kind": "update"}], "status": "completed"}
    begun, ended = PARSERS["codex"](json.dumps({"type": "item.completed", "item": change}).encode())
    assert isinstance(begun, CallBegun) and begun.tool == "write"
    assert isinstance(ended, CallEnded) and ended.files == ("/a",)


SAMPLE_LINES = {format: (SAMPLES / f"{format}.jsonl").read_bytes().splitlines() for format in FORMATS}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(data=st.data(), value=ANYTHING)
def test_no_line_breaks_a_parser(data: st.DataObject, value: object) -> None:
    """Neither bytes nor a real line in which any one value is another one."""
    format = data.draw(st.sampled_from(FORMATS))
    PARSERS[format](data.draw(st.binary(max_size=50)))
    line = json.loads(data.draw(st.sampled_from(SAMPLE_LINES[format])))
    place = line
    while True:
        keys = list(place) if isinstance(place, dict) else range(len(place))
        key = data.draw(st.sampled_from(list(keys)))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            place[key] = value
            break
        place = place[key]
    PARSERS[format](json.dumps(line).encode())


# --- command lines --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, agent in CATALOGUE.items() if agent.command is not None])
def test_every_command_line_has_no_marker_left(name: str) -> None:
    external = external_command(name, ProfileSettings(agent=name, driver="command"))
    assert external is not None and external.command is not None
    server = McpAddress("holdfast", "http://127.0.0.1:1/mcp", "TOKEN")
    ways: list[AttachedBy] = ["new", "resume", *(["fork"] if name in SESSIONS else [])]  # type: ignore[list-item]
    for how in ways:
        words = command_arguments(external, OwnSession(how, "SID", "ADOPTED"), prompt="--help", servers=(server,))
        assert words[0] == name and "--help" not in words, "the prompt is its standard input"
        assert not [word for word in words if word in ("{mode}", "{mcp}", "{session}", "{prompt}", "{adopted}")]
        assert ("SID" in words) == (how == "resume" or name in ("claude", "qwen", "gemini"))
        assert ("ADOPTED" in words) == (how == "fork")
        given = [word for word in words if "http://127.0.0.1:1/mcp" in word]
        assert bool(given) == bool(external.command.mcp)
        if name == "claude":
            headers = json.loads(given[0])["mcpServers"]["holdfast"]["headers"]
            assert headers == {"Authorization": "Bearer ${TOKEN}"}


def test_a_prompt_that_contains_placeholders_is_one_unchanged_argument() -> None:
    profile = ProfileSettings(driver="command", argv=["a", "x{prompt}y", "{session}"], unrestricted=True)
    external = external_command("mine", profile)
    assert external is not None
    words = command_arguments(external, OwnSession("new", "S"), prompt="{session} {prompt} $(x)")
    assert words == ["a", "x{session} {prompt} $(x)y", "S"]
