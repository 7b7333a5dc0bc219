"""Migration 8: the events of version 0.1 in the shape that they have had since.

Frozen: it knows the JSON of then and of now, and nothing of the code. `rewrite_events.py` applies it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]

NEW_KINDS = {
    "TurnDetached": "TurnBackgrounded",
    "TaskDetached": "TaskBackgrounded",
    "TaskContinued": "TaskResumed",
    "TaskKept": "TaskLifetimeSet",
    "RunNudged": "RunReminded",
    "RunNoted": "RunHeartbeat",
    "WorkerBound": "RunBound",
    "WorkerReleased": "RunReleased",
    "CompactionRequested": "SummaryRequested",
    "CompactionStarted": "SummaryStarted",
    "ContextCompacted": "SummaryWritten",
    "CompactionFailed": "SummaryFailed",
}
NEW_FIELDS = {
    "CompactionStarted": {"covers": "covers_turn"},
    "ContextCompacted": {"covers": "covers_turn"},
    "CompactionFailed": {"covers": "covers_turn", "again_at": "retry_at"},
    "TaskStarted": {"of": "task_kind"},
    "CardBlocked": {"of": "block_kind"},
    "RunStarted": {"resumes": "resumed_run", "found": "workspace_state", "fresh_because": "fresh_reason"},
    "RunFinished": {"counts": "uses_attempt", "again_at": "retry_at", "unheard": "unread_comments"},
}
ADDED: dict[str, Json] = {
    "SessionCreated": {"driver": "builtin", "node": "local"},
    "InputReceived": {"source": "message", "ref": ""},
    "WaitAnswered": {"grant": None},
    "TurnSuspended": {"interruption": "shutdown"},
    "CompactionRequested": {"purpose": "compaction"},
    "CompactionStarted": {"purpose": "compaction", "covers_step": 0},
    "ContextCompacted": {"purpose": "compaction", "covers_step": 0},
    "CompactionFailed": {"purpose": "compaction", "covers_step": 0},
    "TaskStarted": {"node": "local"},
    "RunStarted": {"node": "local"},
}
PROBLEM_CODES = frozenset(
    (
        "network",
        "provider_down",
        "rate_limit",
        "quota",
        "bad_answer",
        "no_answer",
        "cut_by_length",
        "context_too_long",
        "refused",
        "rejected",
        "wrong_key",
        "no_key",
        "unknown_model",
        "unknown_profile",
        "step_limit",
        "token_limit",
        "time_limit",
        "summary_empty",
        "summary_timeout",
        "interrupted",
        "demo_failed",
        "demo_crashed",
        "internal",
    )
)
SERVICES = {f"the {name}": name for name in ("clock", "runtime", "reset clock", "board")}
SCOPES = {"call": "call", "session": "session", "always": "profile"}
NEVER_STARTED = "never started: "
SHUT_DOWN = "the gateway was shut down"


def new_shape(event: Json) -> Json:
    """An event of version 0.1 as it is stored now. KeyError, TypeError or ValueError when it is none."""
    kind = event["kind"]
    fields = NEW_FIELDS.get(kind, {})
    new = {fields.get(name, name): value for name, value in event.items()}
    new |= ADDED.get(kind, {}) | {"kind": NEW_KINDS.get(kind, kind)}
    if "by" in new:
        new["by"] = actor(new["by"])
    if isinstance(new.get("problem"), dict) and new["problem"]["code"] not in PROBLEM_CODES:
        new["problem"] = new["problem"] | {"code": "internal"}
    if isinstance(new.get("usage"), dict):
        used = new["usage"]["input_tokens"] + new["usage"]["output_tokens"]
        new["usage"] = new["usage"] | {"cached_tokens": 0, "context_tokens": used}
    change = CHANGES.get(kind)
    return new if change is None else change(new)


def actor(by: str) -> Json:
    """Who did it, from the words that were stored."""
    if by in SERVICES:
        return {"type": "service", "name": SERVICES[by], "rule": "", "asked_by": None}
    if found := re.fullmatch(r"the retention rule (.*?)(?:, applied by (.*))?", by):
        asked = actor(found[2]) if found[2] else None
        return {"type": "service", "name": "retention", "rule": found[1], "asked_by": asked}
    if found := re.fullmatch(r"the agent of session (\S+)", by):
        return {"type": "agent", "session": found[1], "call": ""}
    if found := re.fullmatch(r"run (\d+) of card (\S+)", by):
        return {"type": "run", "card": found[2], "run": int(found[1])}
    if found := re.fullmatch(r"task (\S+)", by):
        return {"type": "task", "task": found[1]}
    return {"type": "person", "client": by, "device": ""}


def _session_created(event: Json) -> Json:
    parent, version = event.pop("parent", ""), event.pop("parent_version", 0)
    task, workspace = event.pop("task", ""), event.pop("workspace_of", "")
    if parent:
        origin = {"type": "forked", "parent": parent, "version": version, "workspace_of": workspace}
    elif task:
        origin = {"type": "delegated", "task": task}
    else:
        by_board = event["by"].get("name") == "board"
        origin = {"type": "for_run" if by_board else "started"}
    return event | {"origin": origin}


def _input_received(event: Json) -> Json:
    input, by, text = event["input"], event["by"], event["text"]
    first, _, rest = input.partition("-")
    if by["type"] == "task":
        return event | {"source": "task", "ref": by["task"]}
    if first == "comment" and re.match(r"\[.* wrote:]\n", text):
        return event | {"source": "comment", "ref": rest}
    if by.get("name") == "board" and first in ("run", "nudge"):
        return event | {"source": "run" if first == "run" else "reminder", "ref": rest.rpartition("-")[0]}
    return event


def _wait_answered(event: Json) -> Json:
    rule, answer = event.pop("pattern", ""), event["answer"]
    approved = answer in SCOPES and (rule or event.get("call_digest"))
    return event | {"grant": {"scope": SCOPES[answer], "rule": rule}} if approved else event


def _turn_resumed(event: Json) -> Json:
    reason = event.pop("cause")
    return event | {"interruption": "shutdown" if reason == SHUT_DOWN else "crash", "reason": reason}


def _model_responded(event: Json) -> Json:
    reason = event.pop("finish")
    return event | {"finish_reason": reason if reason in ("stop", "length", "tool_calls") else "other"}


def _task_finished(event: Json) -> Json:
    code, signal = event.pop("exit_code", None), event.pop("signal", "")
    evidence, reason = event.pop("evidence", ""), event["reason"]
    if found := re.fullmatch(r"turn (\d+) of session (\S+)", evidence):
        end = {"type": "turn_ended", "session": found[2], "turn": int(found[1])}
    elif found := re.fullmatch(r"run (\d+) of card (\S+)", evidence):
        end = {"type": "run_ended", "card": found[2], "run": int(found[1])}
    elif signal:
        end = {"type": "killed", "signal": signal, "evidence": evidence}
    elif code is not None:
        end = {"type": "exited", "code": code, "evidence": evidence}
    elif event["outcome"] != "lost" and reason.startswith(NEVER_STARTED):
        end = {"type": "never_started", "cause": reason.removeprefix(NEVER_STARTED), "hint": evidence}
    else:
        end = {"type": "lost", "evidence": evidence or reason}
    return event | {"end": end}


CHANGES: dict[str, Callable[[Json], Json]] = {
    "SessionCreated": _session_created,
    "InputReceived": _input_received,
    "WaitAnswered": _wait_answered,
    "TurnResumed": _turn_resumed,
    "ModelResponded": _model_responded,
    "TaskFinished": _task_finished,
}
