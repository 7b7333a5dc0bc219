"""What each event does to the projections: a name of a query and its parameters, nothing else.

The writer runs these in the transaction of the append; `doctor --rebuild` runs them over the whole log.
"""

from __future__ import annotations

import json
from typing import assert_never

import msgspec

from holdfast.domain.chapter import INTERRUPTED
from holdfast.domain.events import Record, session_stream, task_stream
from holdfast.domain.events.actor import Actor, is_person
from holdfast.domain.events.card import BoardEvent
from holdfast.domain.events.chapter import (
    ChapterOpened,
    ChapterRejoined,
    ResetPolicySet,
    ResetPostponed,
    SummaryFailed,
    SummaryRequested,
    SummaryStarted,
    SummaryWritten,
)
from holdfast.domain.events.parts import Delegated, Forked
from holdfast.domain.events.session import (
    AgentChosen,
    DriverOutputRead,
    FailureDismissed,
    InputReceived,
    InputRevised,
    InputsJoined,
    InputWithdrawn,
    ModelFailed,
    ModelInterrupted,
    ModelRequested,
    ModelResponded,
    NoteReceived,
    RunBound,
    RunReleased,
    SessionArchived,
    SessionCreated,
    SessionPinned,
    SessionRenamed,
    SessionRestored,
    StopRequested,
    ToolCallFinished,
    ToolCallStarted,
    TurnBackgrounded,
    TurnFinished,
    TurnResumed,
    TurnStarted,
    TurnSuspended,
    TurnUndone,
    WaitAnswered,
    WaitOpened,
)
from holdfast.domain.events.system import GatewayStarted, GatewayStopped, SessionDeleted, StaleListed
from holdfast.domain.events.task import (
    CommandExited,
    CommandKilled,
    ProcessStarted,
    TaskBackgrounded,
    TaskEvent,
    TaskFinished,
    TaskLifetimeSet,
    TaskPinned,
    TaskPruned,
    TaskResumed,
    TaskStarted,
    TaskStopRequested,
)
from holdfast.domain.session_rules import title_from
from holdfast.domain.task import end_evidence
from holdfast.store.card_projections import Change, of_board, of_card

REBUILT = (
    "clear_sessions",
    "clear_turns",
    "clear_waits",
    "clear_tasks",
    "clear_spoken",
    "clear_deleted",
    "clear_boards",
    "clear_cards",
    "clear_card_links",
    "clear_runs",
)
PREVIEW = 120
WANTED, TRYING = 1, 2
"""A person asked for a shorter context; somebody is at it. Both may be true."""


def project(record: Record) -> list[Change]:
    """The changes of one event, in order."""
    session = record.stream.partition("/")[2]
    base: dict[str, object] = {"session": session, "version": record.version, "at": record.at}
    match record.event:
        case ModelResponded() as e:
            usage = e.usage
            said = {"count": 1 if e.text else 0, "preview": _preview(e.text)}
            cost = {
                "session": session,
                "turn": e.turn,
                "step": e.step,
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "cost": usage.cost,
            }
            spoken = [("add_spoken", base)] if e.text.strip() else []
            return [
                *spoken,
                ("agent_said", base | said),
                ("turn_step", cost),
            ]
        case InputReceived() as e:
            said = {"title": title_from(e.text), "by_person": is_person(e.by)}
            return [("input_received", base | said)]
        case TurnStarted() as e:
            turn = base | {"turn": e.turn}
            return [
                ("start_turn", turn),
                ("session_turn", turn | {"state": "running"}),
                ("inputs_taken", base | {"count": len(e.inputs), "by_person": e.by_person}),
            ]
        case InputsJoined() as e:
            return [("inputs_taken", base | {"count": len(e.inputs), "by_person": e.by_person})]
        case TurnSuspended() as e:
            return _turn_state(base, e.turn, "suspended", reason=e.reason)
        case TurnResumed() as e:
            return _turn_state(base, e.turn, "running", resumed=1)
        case WaitOpened() as e:
            wait = base | {
                "turn": e.turn,
                "wait": e.wait,
                "purpose": e.purpose,
                "reason": e.reason,
                "call": e.call,
                "choices": json.dumps(e.choices),
                "pattern": e.pattern,
                "until": e.until,
                "shown": msgspec.json.encode(e.shown).decode(),
            }
            return [("open_wait", wait), *_turn_state(base, e.turn, "waiting", reason=e.reason)]
        case WaitAnswered() as e:
            answer = base | {"wait": e.wait, "answer": e.answer, "by": str(e.by)}
            return [("answer_wait", answer), *_turn_state(base, e.turn, "running"), *_acted(base, e.by)]
        case TurnFinished() as e:
            end = base | {"turn": e.turn, "state": e.outcome, "reason": e.reason}
            return [("finish_turn", end), ("close_waits", end), ("session_turn_over", end)]
        case SessionCreated() as e:
            ancestors = [] if e.rights is None else e.rights.ancestors
            match e.origin:
                case Forked(parent=parent):
                    came_from = {"parent": parent, "task": ""}
                case Delegated(task=task):
                    came_from = {"parent": "", "task": task}
                case _:
                    came_from = {"parent": "", "task": ""}
            born = {"title": e.title, "profile": e.profile, "cwd": e.cwd} | came_from
            return [("create_session", base | born | {"ancestors": json.dumps(ancestors)})]
        case AgentChosen() as e:
            return [("choose_agent", base | {"profile": e.profile, "model": e.model}), *_acted(base, e.by)]
        case SessionRenamed() as e:
            return [("rename_session", base | {"title": e.title})]
        case SessionArchived():
            return [("archive_session", base | {"archived": 1})]
        case SessionRestored():
            return [("archive_session", base | {"archived": 0})]
        case SessionPinned() as e:
            return [("pin_session", base | {"pinned": int(e.pinned)})]
        case InputWithdrawn() as e:
            return [("input_withdrawn", base), *_acted(base, e.by)]
        case TurnUndone() | FailureDismissed() as e:
            return [("touch_session", base), ("dismiss_failure", base | {"turn": e.turn}), *_acted(base, e.by)]
        case StopRequested() | InputRevised() as e:
            return [("touch_session", base), *_acted(base, e.by)]
        case SessionDeleted() as e:
            gone: dict[str, object] = {"session": e.session, "stream": session_stream(e.session), "at": record.at}
            steps = (
                "delete_events",
                "delete_spans",
                "delete_session",
                "delete_turns",
                "delete_waits",
                "delete_spoken",
                "forget_cursors",
                "forget_last_session",
                "delete_partials",
                "delete_lease",
                "bury_stream",
            )
            return [(step, gone) for step in steps]
        case (
            ModelRequested()
            | ModelInterrupted()
            | ModelFailed()
            | ToolCallStarted()
            | ToolCallFinished()
            | NoteReceived()
            | TurnBackgrounded()
            | ResetPostponed()
            | RunReleased()
            | DriverOutputRead()
        ):
            return [("touch_session", base)]
        case RunBound() as e:
            return [("bind_session", base | {"cwd": e.cwd})]
        case ResetPolicySet() as e:
            policy = msgspec.json.encode(e.policy).decode()
            return [("set_reset_policy", base | {"policy": policy}), *_acted(base, e.by)]
        case ChapterOpened() as e:
            return [("open_chapter", base | {"chapter": e.chapter, "by_person": e.rule == "person"})]
        case ChapterRejoined() as e:
            return [("rejoin_chapter", base | {"chapter": e.chapter, "since": e.since})]
        case SummaryRequested() as e:
            return [("session_compacting", base | {"still": WANTED, "more": WANTED}), *_acted(base, e.by)]
        case SummaryStarted():
            return [("session_compacting", base | {"still": WANTED, "more": TRYING})]
        case SummaryFailed() as e:
            still = WANTED if e.problem.code == INTERRUPTED else 0
            return [("session_compacting", base | {"still": still, "more": 0})]
        case SummaryWritten() as e:
            still = WANTED if e.source == "digest" else 0
            return [("session_compacting", base | {"still": still, "more": 0})]
        case GatewayStarted() | GatewayStopped() | StaleListed():
            return []
        case TaskPruned() as e:
            gone = {"task": e.task, "stream": task_stream(e.task), "at": record.at}
            return [(step, gone) for step in ("delete_events", "delete_spans", "delete_task", "bury_stream")]
        case event:
            name, base = session, {"version": record.version, "at": record.at}
            if isinstance(event, TaskEvent):
                return _of_task(event, base | {"task": name})
            if isinstance(event, BoardEvent):
                return of_board(event, base)
            return of_card(event, base | {"card": name})


def _of_task(event: TaskEvent, base: dict[str, object]) -> list[Change]:
    match event:
        case TaskStarted() as e:
            row = {
                "kind": e.task_kind,
                "title": e.title,
                "command": e.command,
                "argv": json.dumps(e.argv),
                "cwd": e.cwd,
                "by": str(e.by),
                "session": e.session,
                "call": e.call,
                "worker": e.worker,
                "foreground": int(e.foreground),
                "lifetime": e.lifetime,
                "until": e.until,
                "notify": int(e.notify),
                "left_by": e.left_by,
            }
            return [("start_task", base | row)]
        case ProcessStarted() as e:
            return [("task_process", base | {"pid": e.pid})]
        case TaskBackgrounded():
            return [("task_detached", base)]
        case TaskResumed():
            return [("task_continued", base)]
        case TaskLifetimeSet() as e:
            return [("task_kept", base | {"lifetime": e.lifetime})]
        case TaskStopRequested() as e:
            return [("task_stopping", base | {"by": str(e.by), "reason": e.reason})]
        case TaskPinned() as e:
            return [("pin_task", base | {"pinned": int(e.pinned)})]
        case TaskFinished() as e:
            end = {
                "state": e.outcome,
                "reason": e.reason,
                "exit_code": e.end.code if isinstance(e.end, CommandExited) else None,
                "signal": e.end.signal if isinstance(e.end, CommandKilled) else "",
                "evidence": end_evidence(e.end),
                "ended_at": e.ended_at,
                "output_bytes": e.output_bytes,
                "dropped_bytes": e.dropped_bytes,
                "preview": e.preview,
                "summary": e.summary,
                "files": None if e.files is None else json.dumps(e.files),
                "survivors": json.dumps(e.survivors),
            }
            return [("finish_task", base | end)]
        case _ as never:
            assert_never(never)


def _acted(base: dict[str, object], by: Actor) -> list[Change]:
    return [("person_acted", base)] if is_person(by) else []


def _turn_state(base: dict[str, object], turn: int, state: str, *, reason: str = "", resumed: int = 0) -> list[Change]:
    change = base | {"turn": turn, "state": state, "reason": reason, "resumed": resumed}
    return [("turn_state", change), ("session_turn", change)]


def _preview(text: str) -> str:
    words = " ".join(text[: 4 * PREVIEW].split())
    return words if len(words) <= PREVIEW else words[: PREVIEW - 1] + "…"
