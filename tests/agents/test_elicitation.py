"""Questions of an external agent: a form becomes questions that a person answers once, one after the other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.domain.commands import AnswerWait, StopTurn
from holdfast.domain.errors import Conflict
from holdfast.domain.events.session import ToolCallFinished, WaitAnswered, WaitOpened
from tests.agents.conftest import Make
from tests.agents.life import AgentLife, said
from tests.runtime.rig import ID

COLOURS = [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue", "description": "like the sea"}]
CLAUDE = {
    "message": "Which colour?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "question_0": {"type": "string", "title": "Colour", "oneOf": COLOURS},
            "question_0_custom": {"type": "string", "title": "Other"},
        },
    },
}


def form(properties: dict[str, Any], *, required: list[str] | None = None) -> str:
    schema = {"type": "object", "properties": properties, "required": required or []}
    return "!form " + json.dumps({"message": "Please say.", "requestedSchema": schema})


async def waits(life: AgentLife) -> list[WaitOpened]:
    return [event for event in await life.events() if isinstance(event, WaitOpened)]


async def answered(life: AgentLife) -> Any:
    """What the agent got."""
    return json.loads(said(await life.events())[-1])


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        ("Red", {"question_0": "r"}),
        ("2", {"question_0": "b"}),
        ("a light green", {"question_0_custom": "a light green"}),
        ("skip this question", {}),
    ],
)
async def test_a_question_with_options(make: Make, answer: str, content: dict[str, str]) -> None:
    life = make()
    await life.start("!say first", "!form " + json.dumps(CLAUDE))
    await life.answer(answer)
    await life.rest()
    (wait,) = await waits(life)
    assert wait.purpose == "question" and wait.choices == ["Red", "Blue", "skip this question", "decline to answer"]
    for words in ("Which colour?", "Blue: like the sea", "an answer of your own"):
        assert words in wait.reason
    assert await answered(life) == {"action": "accept", "content": content}
    assert said(await life.events())[0] == "first"


async def test_a_form_is_asked_field_by_field_over_restarts(make: Make) -> None:
    life = make()
    fields = {
        "name": {"type": "string", "title": "Your name"},
        "age": {"type": "integer", "title": "Age", "minimum": 1, "maximum": 150},
        "sure": {"type": "boolean", "title": "Sure?"},
        "tags": {"type": "array", "title": "Tags", "items": {"type": "string", "enum": ["a", "b", "c"]}},
        "ratio": {"type": "number"},
    }
    await life.start(form(fields, required=[*fields]))
    for answer in ("Ada", "many", "200", "36", "yes", "1, c", "0.5"):
        await life.rig.until_session(ID, lambda state: state.turn is not None and state.turn.wait is not None)
        await life.close()
        life = make()
        await life.start()
        await life.answer(answer)
    await life.rest()
    reasons = [wait.reason for wait in await waits(life)]
    assert reasons[2].startswith("'many' is no integer.") and reasons[3].startswith("200 is not between 1 and 150.")
    content = {"name": "Ada", "age": 36, "sure": True, "tags": ["a", "c"], "ratio": 0.5}
    assert await answered(life) == {"action": "accept", "content": content}
    assert len([event for event in await life.events() if isinstance(event, WaitAnswered)]) == 7


async def test_a_person_declines(make: Make) -> None:
    life = make()
    await life.start(form({"name": {"type": "string"}, "more": {"type": "string"}}))
    await life.answer("decline to answer")
    await life.rest()
    assert await answered(life) == {"action": "decline"}
    assert len(await waits(life)) == 1


async def test_a_form_without_fields_is_accepted_or_declined(make: Make) -> None:
    life = make()
    await life.start(form({}))
    await life.answer("accept")
    await life.rest()
    assert await answered(life) == {"action": "accept", "content": {}}


async def test_a_stop_cancels_the_question_and_an_answer_is_taken_once(make: Make) -> None:
    life = make()
    await life.start(form({"name": {"type": "string"}}), "!call x read y", "!hang")
    await life.answer("Ada")
    await life.until(ToolCallFinished)
    with pytest.raises(Conflict, match="answered this already"):
        command = AnswerWait(wait=(await waits(life))[0].wait, answer="Bob")
        await life.rig.sessions.execute(ID, command, life.rig.caller())
    await life.rig.sessions.execute(ID, StopTurn(), life.rig.caller())
    await life.rest()
    await life.say(form({"name": {"type": "string"}}))
    await life.until(WaitOpened, 2)
    await life.rig.sessions.execute(ID, StopTurn(), life.rig.caller())
    state = await life.rest(2)
    assert state.last_turn is not None and state.last_turn.outcome == "stopped"
    sent = next((life.rig.home / "tasks").glob("*/stdin")).read_bytes()
    assert sent.count(b'"action":"accept"') == 1 and sent.count(b'"action":"cancel"') == 1


@pytest.mark.parametrize(
    "params",
    [
        {"mode": "url", "message": "Open it", "url": "http://127.0.0.1:9", "elicitationId": "x"},
        {"message": "Meanwhile", "requestedSchema": {}, "_meta": {"codex": {"delivery": "async"}}},
        {"message": "Strange", "requestedSchema": {"properties": {"a": 7}}},
    ],
)
async def test_what_is_not_offered_is_refused(make: Make, params: dict[str, Any]) -> None:
    life = make()
    await life.start("!form " + json.dumps(params))
    await life.rest()
    assert said(await life.events()) == ["refused"] and not await waits(life)


async def test_an_agent_that_waits_for_a_while_only_is_answered_by_the_clock(make: Make) -> None:
    life = make()
    request = {"message": "Quick", "requestedSchema": {"properties": {"a": {}}}}
    await life.start("!form " + json.dumps(request | {"_meta": {"codex": {"autoResolutionMs": 1}}}))
    await life.rest()
    assert await answered(life) == {"action": "decline"}


async def test_a_secret_and_values_of_ours_are_said_to_be_stored(make: Make) -> None:
    life = make()
    await life.start(form({"key": {"type": "string", "_meta": {"codex": {"isSecret": True}}}}, required=["key"]))
    await life.until(WaitOpened)
    (wait,) = await waits(life)
    assert "stored in the log" in wait.reason and wait.choices == ["decline to answer"]


async def test_another_process_that_uses_the_same_ids_is_not_given_an_old_answer(make: Make, tmp_path: Path) -> None:
    life = make("quoted")
    await life.start(form({"a": {"title": "First"}}), f"!once {tmp_path / 'died'} die 1")
    await life.answer("one")
    await life.until(WaitOpened, 2)
    await life.answer("two")
    await life.rest()
    assert (await answered(life))["content"] == {"a": "two"}
