"""Events of version 0.1 get the shape of today, and none of their content is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from holdfast.domain.events import AnyEvent
from holdfast.domain.events.actor import AgentActor, PersonActor, RunActor, ServiceActor, TaskActor
from holdfast.domain.events.parts import Delegated, Forked, ForRun, Grant, Started, Usage
from holdfast.domain.events.problem import HANDLING, Problem, ProblemCode
from holdfast.domain.events.session import (
    InputReceived,
    ModelFailed,
    ModelResponded,
    SessionCreated,
    TurnResumed,
    WaitAnswered,
)
from holdfast.domain.events.task import (
    CommandExited,
    CommandKilled,
    CommandLost,
    CommandNeverStarted,
    RunEnded,
    TaskFinished,
    TurnEnded,
)
from holdfast.store.sqlite.migrations.event_shapes import PROBLEM_CODES, actor, new_shape

OLD = Path(__file__).parents[1] / "homes" / "events-0.1"
CREATED = {"session": "s", "profile": "demo", "cwd": "/", "title": "t", "by": "cli", "rights": None}
SAID = {"input": "c1", "text": "hello", "mode": "queue", "by": "cli"}
FINISHED = {"task": "t", "outcome": "done", "reason": "r"}


def migrated(kind: str, **fields: Any) -> AnyEvent:
    event: AnyEvent = msgspec.convert(new_shape({"kind": kind} | fields), AnyEvent)
    return event


@pytest.mark.parametrize("path", sorted(OLD.glob("*.json")), ids=lambda path: path.stem)
def test_every_event_of_the_first_version_is_read_and_written_alike(path: Path) -> None:
    old = msgspec.json.decode(path.read_bytes())
    event = old["event"] if path.stem == "Record" else old
    new = new_shape(event)
    written = msgspec.to_builtins(msgspec.convert(new, AnyEvent))
    assert _known(written, new) == new, "fields that came later have defaults"


def _known(written: Any, old: Any) -> Any:
    """What is written now, without the fields that came later."""
    if not isinstance(old, dict):
        return written
    return {name: _known(written[name], value) for name, value in old.items()}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("cli", PersonActor(client="cli")),
        ("the clock", ServiceActor(name="clock")),
        ("the reset clock", ServiceActor(name="reset clock")),
        ("the retention rule tasks_days = 3", ServiceActor(name="retention", rule="tasks_days = 3")),
        (
            "the retention rule tasks_days = 3, applied by web",
            ServiceActor(name="retention", rule="tasks_days = 3", asked_by=PersonActor(client="web")),
        ),
        ("the agent of session 0a1b", AgentActor(session="0a1b")),
        ("run 2 of card 0a1b", RunActor(card="0a1b", run=2)),
        ("task 0a1b", TaskActor(task="0a1b")),
    ],
)
def test_actors_are_shown_as_before_the_migration(words: str, expected: object) -> None:
    found = msgspec.convert(actor(words), PersonActor | AgentActor | RunActor | TaskActor | ServiceActor)
    assert found == expected
    assert str(found) == words


def test_where_a_session_came_from() -> None:
    def origin(**fields: Any) -> object:
        event = migrated("SessionCreated", **CREATED | fields)
        assert isinstance(event, SessionCreated)
        return event.origin

    assert origin() == Started()
    assert origin(parent="p", parent_version=7, workspace_of="c") == Forked(parent="p", version=7, workspace_of="c")
    assert origin(task="t") == Delegated(task="t")
    assert origin(by="the board") == ForRun()


def test_what_an_input_is() -> None:
    def source(**fields: Any) -> tuple[str, str]:
        event = migrated("InputReceived", **SAID | fields)
        assert isinstance(event, InputReceived)
        return event.source, event.ref

    assert source() == ("message", "")
    assert source(input="task-0a1b-5", by="task 0a1b") == ("task", "0a1b")
    assert source(input="comment-c9-x", text="[ann wrote:]\nblue") == ("comment", "c9-x")
    assert source(input="comment-mine") == ("message", ""), "a client may call its message whatever it likes"
    assert source(input="run-0a1b2c3d-2", by="the board") == ("run", "0a1b2c3d")
    assert source(input="nudge-0a1b2c3d-2", by="the board") == ("reminder", "0a1b2c3d")


def test_how_a_task_ended() -> None:
    def end(**fields: Any) -> object:
        event = migrated("TaskFinished", **FINISHED | fields)
        assert isinstance(event, TaskFinished)
        return event.end

    seen = "recorded by its keeper"
    assert end(exit_code=0, signal="", evidence=seen) == CommandExited(code=0, evidence=seen)
    assert end(exit_code=None, signal="SIGKILL", evidence=seen) == CommandKilled(signal="SIGKILL", evidence=seen)
    assert end(outcome="lost", evidence="the machine was restarted") == CommandLost(
        evidence="the machine was restarted"
    )
    assert end(outcome="failed", reason="never started: no such directory") == CommandNeverStarted(
        cause="no such directory"
    )
    assert end(evidence="turn 3 of session 0a1b") == TurnEnded(session="0a1b", turn=3)
    assert end(evidence="run 2 of card 0a1b") == RunEnded(card="0a1b", run=2)


def test_what_an_approval_grants() -> None:
    def grant(**fields: Any) -> object:
        event = migrated("WaitAnswered", turn=1, wait="w", by="cli", **fields)
        assert isinstance(event, WaitAnswered)
        return event.grant

    assert grant(answer="allow", call_digest="d") is None
    assert grant(answer="call", call_digest="d") == Grant(scope="call")
    assert grant(answer="session", pattern="write:docs/*", call_digest="d") == Grant(
        scope="session", rule="write:docs/*"
    )
    assert grant(answer="always", pattern="write:docs/*") == Grant(scope="profile", rule="write:docs/*")
    assert grant(answer="call") is None, "a person answered a question with that word"


def test_an_unknown_value_becomes_the_closest_known_one() -> None:
    usage = {"input_tokens": 7, "output_tokens": 2, "cost": None}
    answer = {"turn": 1, "step": 1, "text": "x", "thinking": "", "calls": [], "usage": usage, "duration_ms": 1}
    event = migrated("ModelResponded", finish="end_turn", **answer)
    assert isinstance(event, ModelResponded)
    assert (event.finish_reason, event.usage) == ("other", Usage(input_tokens=7, output_tokens=2, context_tokens=9))
    failed = migrated("ModelFailed", turn=1, step=1, problem={"code": "odd", "message": "m"}, text="")
    assert isinstance(failed, ModelFailed)
    assert failed.problem == Problem(code="internal", message="m")
    left = migrated("TurnResumed", turn=1, attempt=0, cause="the gateway was shut down", away_ms=5)
    assert left == TurnResumed(
        turn=1, attempt=0, interruption="shutdown", reason="the gateway was shut down", away_ms=5
    )


def test_every_problem_has_a_code_and_every_code_a_handling() -> None:
    known = set(get_args(ProblemCode))
    assert known == set(HANDLING)
    assert known >= PROBLEM_CODES
