"""The sentences for what happened in a session: the same words wherever it is shown.

tests/golden/sentences.json is run by vitest too, for the dashboard. `--regenerate` writes it, to be read as a diff.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from holdfast.domain.events.chapter import OnLiveProcess, ResetMode, ResetPolicy
from holdfast.domain.transcript_items import NoticeEvent, SummaryItem
from holdfast.domain.transcript_text import CONDITION, FORMATS, RESET_WORDS, SENTENCES, VALUE, notice_text, summary_text
from tests.domain.test_transcript import NAMES, load
from tests.records import event_json

GOLDEN = Path(__file__).parent.parent / "golden"
KINDS = {kind.__name__: kind for kind in get_args(NoticeEvent)}
Json = dict[str, Any]
PROBLEM = {"code": "summary_timeout", "message": "It took too long."}
EVENTS: list[Json] = [
    *(json.loads((GOLDEN / "events" / f"{name}.json").read_text()) for name in KINDS),
    *(item["event"] for name in NAMES for item in load(name)["items"] if item["item"] == "notice"),
    event_json("SessionPinned", pinned=False, by="cli"),
    event_json("AgentChosen", profile="writer", model="", by="web"),
    event_json("NodeChosen", node="gpu", by="web"),
    event_json("NodeChosen", node="", by="web"),
    event_json("ModeChosen", mode="ask", by="web"),
    event_json("ModeChosen", mode="profile", by="web"),
    event_json("TurnResumed", turn=1, attempt=0, reason="it was shut down.", away_ms=90_061_000),
    event_json("TurnResumed", turn=1, attempt=2, reason=" it crashed. ", away_ms=400_000_000),
    event_json("TurnResumed", turn=1, attempt=0, reason="it was shut down.", away_ms=999),
    event_json("TurnResumed", turn=1, attempt=0, reason="it was shut down.", away_ms=1_000),
    event_json("ResetPolicySet", policy={}, by="cli"),
    event_json("ResetPolicySet", policy={"mode": "idle", "idle_minutes": 90, "notify": False}, by="cli"),
    event_json(
        "ResetPostponed", rule="idle", due_at=5, until=None, blockers=[{"by": "turn", "reason": "turn 3 is open"}]
    ),
    event_json("ToolResultsTrimmed", results=1, keep=200, tokens_before=1_234_567, tokens_after=12, reason="[a] {b}."),
    event_json("SummaryRequested", instructions="", purpose="hand_over", by="cli"),
    event_json("SummaryRequested", instructions="keep {turn} and [x?y].", by="cli"),
    event_json("SummaryFailed", problem=PROBLEM, retry_at=7, purpose="hand_over"),
    event_json(
        "StopRequested",
        turn=2,
        by={"type": "service", "name": "retention", "rule": "r", "asked_by": {"type": "person", "client": "web"}},
    ),
    event_json("StopRequested", turn=2, by={"type": "agent", "session": "ab"}),
    event_json("StopRequested", turn=2, by={"type": "run", "card": "ab", "run": 3}),
    event_json("StopRequested", turn=2, by={"type": "run", "card": "ab", "run": 3, "card_number": 118}),
    event_json("RunBound", card="ab", run=3),
    event_json("RunReleased", card="ab", run=3),
    event_json("StopRequested", turn=2, by={"type": "task", "task": "ab"}),
]
SUMMARY = {"version": 4, "at": 5, "covers_turn": 3, "covers_step": 0, "model": "m", "reason": "it is too long."}
SUMMARIES: list[Json] = [
    {**SUMMARY, "state": "running"},
    {**SUMMARY, "state": "running", "covers_step": 2},
    {**SUMMARY, "state": "done", "source": "model", "tokens_before": 9_000, "tokens_after": 90},
    {**SUMMARY, "state": "done", "source": "digest", "tokens_before": 9_000, "tokens_after": 90},
    {**SUMMARY, "state": "failed", "attempt": 2, "problem": PROBLEM, "retry_at": 9},
    {**SUMMARY, "state": "failed", "attempt": 2, "problem": PROBLEM},
    {**SUMMARY, "state": "failed", "attempt": 2, "problem": PROBLEM | {"code": "interrupted"}},
]


def clock(at: int) -> str:
    return f"time {at}"


def notice(event: Json) -> str:
    return notice_text(msgspec.convert(event, KINDS[event["kind"]]), clock=clock)


def summary(item: Json) -> str:
    return summary_text(msgspec.convert({"item": "summary"} | item, SummaryItem), clock=clock)


def test_python_and_typescript_write_the_same_sentences(request: pytest.FixtureRequest) -> None:
    found = {
        "notices": [{"text": notice(event), "event": event} for event in EVENTS],
        "summaries": [{"text": summary(item), "item": item} for item in SUMMARIES],
    }
    path = GOLDEN / "sentences.json"
    if request.config.getoption("--regenerate"):
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert found == json.loads(path.read_text(encoding="utf-8"))


def test_every_notice_has_a_sentence() -> None:
    """A new kind that nobody words fails here."""
    assert set(SENTENCES) - set(KINDS) == {f"summary {state}" for state in ("running", "done", "failed", "interrupted")}
    for text in [*map(notice, EVENTS), *map(summary, SUMMARIES)]:
        assert text[0] not in " ." and text.endswith(".") and ".." not in text, text


@pytest.mark.parametrize("name", SENTENCES)
def test_a_sentence_is_made_of_what_its_source_has(name: str) -> None:
    fields = set(KINDS.get(name, SummaryItem).__struct_fields__)
    for found in [*VALUE.finditer(SENTENCES[name]), *CONDITION.finditer(SENTENCES[name])]:
        assert found["field"].split(".")[0] in fields
    assert {found["format"] or "" for found in VALUE.finditer(SENTENCES[name])} <= {*FORMATS, "time"}


def test_every_setting_of_a_reset_policy_has_a_text() -> None:
    choices: dict[str, tuple[str, ...]] = {
        "mode": get_args(ResetMode),
        "on_live_process": get_args(OnLiveProcess),
        "hand_over_note": ("true", "false"),
        "notify": ("true", "false"),
    }
    names = [field.name for field in msgspec.structs.fields(ResetPolicy)]
    wanted = [f"{name} {value}".strip() for name in names for value in choices.get(name, ("",))]
    assert sorted(RESET_WORDS) == sorted(wanted)
