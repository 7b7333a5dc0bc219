"""The fold that every client shows a session with: real logs in, the expected items out.

The files in tests/golden/transcript are run by vitest too, for the dashboard's own fold. `--regenerate` writes the
items and the state that are expected, to be read as a diff; `tests/record_transcripts.py` records the logs anew.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from holdfast.domain.events import Record, session_stream
from holdfast.domain.events.external_agent import DriverOutputRead
from holdfast.domain.events.session import SessionEvent
from holdfast.domain.session import Session
from holdfast.domain.session_fold import evolve
from holdfast.domain.transcript import FOLDS, Transcript
from holdfast.domain.transcript_items import (
    AnyItem,
    ChapterItem,
    MessageItem,
    StepItem,
    SummaryItem,
    TurnEndItem,
    WaitItem,
)
from tests.records import record_json

GOLDEN = Path(__file__).parent.parent / "golden" / "transcript"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.json"))
Json = dict[str, Any]


def load(name: str) -> Json:
    found: Json = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    return found


def play(pieces: list[Json], transcript: Transcript | None = None) -> Transcript:
    transcript = transcript or Transcript()
    for piece in pieces:
        if "event" in piece:
            transcript.apply(msgspec.convert(piece, Record))
        else:
            transcript.apply_delta(**piece)
    return transcript


def records(name: str) -> list[Json]:
    return [piece for piece in load(name)["input"] if "event" in piece]


def record(kind: str, *, version: int, **fields: Any) -> Record:
    return msgspec.convert(record_json(kind, version=version, **fields), Record)


def said_at_once(item: AnyItem) -> AnyItem:
    """An item without what a later one says, too: that a turn or a reset was undone, and a digest replaced."""
    if isinstance(item, ChapterItem | TurnEndItem):
        item.undone = False
    if isinstance(item, SummaryItem):
        item.replaced = False
    return item


@pytest.mark.parametrize("name", NAMES)
def test_a_real_log_becomes_the_expected_items(name: str, request: pytest.FixtureRequest) -> None:
    golden = load(name)
    transcript = play(golden["input"])
    found = {"items": msgspec.to_builtins(transcript.items), "state": transcript.state}
    if request.config.getoption("--regenerate"):
        text = json.dumps({"input": golden["input"], **found}, indent=1, ensure_ascii=False)
        (GOLDEN / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        return
    assert found["items"] == golden["items"]
    assert found["state"] == golden["state"]


@pytest.mark.parametrize("name", NAMES)
def test_text_that_was_streamed_changes_nothing_in_the_end(name: str) -> None:
    assert play(records(name)).items == play(load(name)["input"]).items


@pytest.mark.parametrize("name", NAMES)
def test_the_state_is_that_of_the_rules_after_every_event(name: str) -> None:
    log = records(name)
    session, transcript = Session(log[0]["event"]["session"]), Transcript()
    for piece in log:
        record = msgspec.convert(piece, Record)
        session = evolve(session, record)
        transcript.apply(record)
        assert transcript.state == session.activity, record


@pytest.mark.parametrize("name", NAMES)
def test_items_stay_in_the_order_of_the_events_that_began_them(name: str) -> None:
    versions = [item.version for item in play(load(name)["input"]).items]
    assert versions == sorted(set(versions))


@pytest.mark.parametrize("name", NAMES)
def test_changes_contain_everything_that_a_client_needs(name: str) -> None:
    """A client that knows only the changes has the same items."""
    transcript, known = Transcript(), {}
    for piece in load(name)["input"]:
        changes = (
            transcript.apply(msgspec.convert(piece, Record)) if "event" in piece else transcript.apply_delta(**piece)
        )
        for change in changes:
            assert (change.kind == "added") == (change.item.version not in known)
            known[change.item.version] = change.item
            if change.kind == "removed":
                del known[change.item.version]
    assert [known[version] for version in sorted(known)] == transcript.items


@pytest.mark.parametrize("name", NAMES)
def test_a_fold_may_begin_anywhere_in_the_log(name: str) -> None:
    log = load(name)["input"]
    for start in range(len(log)):
        late = play(log[start:])
        assert late.version == len(records(name)) or not late.version


def test_directory_is_that_of_the_newest_run_that_has_one() -> None:
    transcript = play(load("plain-turn")["input"])
    version, began = transcript.version, transcript.cwd
    for offset, (given, expected) in enumerate([("", began), ("/w", "/w"), ("", "/w")], start=1):
        bound = record("RunBound", version=version + offset, card="c0ffee01", run=offset, cwd=given)
        transcript.apply(bound)
        assert (transcript.cwd, transcript.run) == (expected, offset)


def test_streamed_text_is_added_once_and_in_order() -> None:
    log = [piece for piece in load("crash")["input"] if "event" in piece]
    asked = next(index for index, piece in enumerate(log) if piece["event"]["kind"] == "ModelRequested")
    transcript = play(log[: asked + 1])
    transcript.apply_delta(1, 1, offset=0, text="one ")
    transcript.apply_delta(1, 1, offset=4, text="two ")
    transcript.apply_delta(1, 1, offset=0, text="one two thr")
    assert not transcript.apply_delta(1, 1, offset=0, text="one")
    assert not transcript.apply_delta(1, 1, offset=99, text="far ahead")
    assert not transcript.apply_delta(1, 2, offset=0, text="another step")
    assert transcript.live_step is not None
    assert transcript.live_step.text == "one two thr"


def test_a_step_that_was_asked_before_the_first_record_is_streamed_all_the_same() -> None:
    transcript = Transcript()
    (added,) = transcript.apply_delta(3, 2, offset=0, text="half of ")
    (grown,) = transcript.apply_delta(3, 2, offset=8, text="it")
    assert (added.kind, grown.kind) == ("added", "text")
    assert transcript.live_step is added.item
    assert transcript.live_step.text == "half of it"
    answered = record("ModelResponded", version=9, turn=3, step=2, text="half of it and more")
    assert [change.kind for change in transcript.apply(answered)] == ["updated"]
    assert not transcript.apply_delta(3, 2, offset=0, text="half of it and more")  # late: the event has it
    assert [item.text for item in transcript.items if isinstance(item, StepItem)] == ["half of it and more"]


def test_of_text_whose_beginning_is_missing_nothing_is_shown() -> None:
    transcript = Transcript()
    assert not transcript.apply_delta(3, 2, offset=4, text="the end")
    assert not transcript.items


@pytest.mark.parametrize("name", NAMES)
def test_settled_items_are_taken_once_and_as_they_are_in_the_end(name: str) -> None:
    transcript, taken = Transcript(), []
    for piece in records(name):
        transcript.apply(msgspec.convert(piece, Record))
        taken += copy.deepcopy(transcript.take_settled())
    assert [said_at_once(item) for item in [*taken, *transcript.items]] == [
        said_at_once(item) for item in play(records(name)).items
    ]
    assert len(transcript.items) <= 3


def test_what_is_not_over_is_not_settled() -> None:
    transcript = Transcript()
    calls = [{"call": "1.1.0", "tool": "read", "arguments": "{}"}]
    log = [
        record("TurnStarted", version=1, turn=1),
        record("ModelResponded", version=2, turn=1, step=1, text="one", calls=calls),
        record("InputReceived", version=3, input="i", text="later"),
        record("ToolCallFinished", version=4, turn=1, call="1.1.0", tool="read"),
        record("InputsJoined", version=5, turn=1, inputs=["i"]),
        record("StopRequested", version=6, turn=1),
    ]
    settled = []
    for one in log:
        transcript.apply(one)
        settled.append([item.version for item in transcript.take_settled()])
    assert settled == [[], [], [], [2], [], [3]]


def test_a_failed_model_call_keeps_what_it_said() -> None:
    step = next(item for item in play(load("failed-call")["input"]).items if isinstance(item, StepItem))
    assert step.state == "failed"
    assert step.text == "half of an answer"
    assert step.problem is not None


def test_messages_say_what_became_of_them() -> None:
    messages = [item for item in play(load("queue")["input"]).items if isinstance(item, MessageItem)]
    found = {message.text: message.state for message in messages}
    assert found["say first, reworded"] == "taken"
    assert found["say second"] == "withdrawn"
    assert found["say this joins"] == "joined"
    assert found["say instead"] == "taken"


def test_waits_say_who_answered_what() -> None:
    waits = [item for item in play(load("questions")["input"]).items if isinstance(item, WaitItem)]
    assert [wait.answer and (wait.answer.answer, str(wait.answer.by), wait.answer.note) for wait in waits] == [
        ("blue", "api", ""),
        ("allow", "api", ""),
        ("deny", "api", "not there"),
    ]


def test_commands_end_as_people_see_it() -> None:
    steps = [item for item in play(load("commands")["input"]).items if isinstance(item, StepItem)]
    calls = [call for step in steps for call in step.calls]
    assert [(call.state, call.exit_code) for call in calls[:3]] == [("done", 0), ("failed", 3), ("started", None)]
    assert calls[3].state == "stopped"


def test_an_undone_turn_is_marked() -> None:
    ends = [item for item in play(load("reset")["input"]).items if isinstance(item, TurnEndItem)]
    assert [end.undone for end in ends] == [False, False, True]


def test_every_event_of_a_session_is_shown_or_left_out_on_purpose() -> None:
    assert set(get_args(SessionEvent)) - set(FOLDS) == {DriverOutputRead}


def test_events_of_other_streams_are_no_items() -> None:
    events = Path(__file__).parent.parent / "golden" / "events"
    event = json.loads((events / "TaskFinished.json").read_text())
    transcript = Transcript()
    piece = {"seq": 1, "stream": session_stream("s"), "version": 1, "at": 0, "event": event}
    assert not transcript.apply(msgspec.convert(piece, Record))
