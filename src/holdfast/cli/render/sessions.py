"""Sessions as text: the list, one with its turns, what was found, what the model sees, and resets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.hints import program
from holdfast.cli.render.tasks import NOTHING_FOUND
from holdfast.cli.screen import (
    SHORT_ID,
    Column,
    age,
    ago,
    details,
    details_short,
    dim,
    duration,
    format_datetime,
    format_time,
    one_line,
    plural,
    shorten,
    table,
    terminal_width,
    unique_length,
    wrap,
)
from holdfast.domain.command import MODES
from holdfast.schemas.sessions import QueuedMessage, SearchPage, SessionDetail, SessionView, TurnView

if TYPE_CHECKING:  # they load all events
    from holdfast.domain.events.chapter import Blocker, ChapterOpened, Survivor
    from holdfast.schemas.chapters import ModelContext, ResetOutlook, RunningTaskView

Details = list[tuple[str, str]]
NOTE = 400
TEXT = Column("TEXT", flexible=True)
STATE = Column("STATE", states=True)
SESSIONS = (Column("ID"), STATE, Column("MSGS", right=True), Column("UPDATED"), Column("TITLE", flexible=True))
TURNS = (
    Column("TURN", right=True),
    STATE,
    Column("STARTED"),
    Column("TOOK", right=True),
    Column("STEPS", right=True),
    Column("RESUMES", right=True),
    Column("TOKENS", right=True),
    Column("REASON", flexible=True),
)
QUEUE = (Column("MESSAGE", right=True), Column("MODE"), Column("AT"), Column("BY"), TEXT)
HITS = (Column("SESSION"), Column("VERSION", right=True), Column("WHO"), Column("WHEN"), TEXT)
CONTEXT = (Column("TURN", right=True), Column("ROLE"), Column("CHARS", right=True), TEXT)
RUNNING = (
    Column("ID"),
    Column("KIND"),
    Column("PID", right=True),
    Column("ACTIVITY"),
    Column("AGE", right=True),
    Column("LIFETIME"),
    Column("WHAT", flexible=True),
)
RULES = (Column("SETTING"), Column("VALUE"), Column("FROM"))
ORIGINS = {"session": "this session", "config": "[session_reset]", "default": "the default"}
LIMIT_SOURCES = {
    "config": "set in config.toml",
    "window": "the model's window, less room for its answer",
    "default": "by default: the model's window is not known",
}


def sessions_table(sessions: list[SessionView]) -> str:
    """One line for each session."""
    length = unique_length([one.id for one in sessions])
    rows = [
        [one.id[:length], display_state(one), str(one.message_count), ago(one.updated_at), one.title]
        for one in sessions
    ]
    if any(one.host for one in sessions):
        rows = [[*row[:-1], one.host or "-", row[-1]] for row, one in zip(rows, sessions, strict=True)]
        return table((*SESSIONS[:-1], Column("HOST"), SESSIONS[-1]), rows)
    return table(SESSIONS, rows)


def display_state(session: SessionView) -> str:
    """Its state; when it rests, how its last turn ended."""
    return session.turn_state if session.state == "idle" and session.turn_state else session.state


def session_text(detail: SessionDetail, reset: ResetOutlook) -> str:
    """A session with its turns and its queue."""
    session = detail.session
    is_plain = reset.rules.mode == "none" and session.chapter == 1
    parts = [details_short([*_session_details(session, detail), *([] if is_plain else reset_details(reset))]), ""]
    if detail.turns:
        parts.append(table(TURNS, [_turn_cells(turn) for turn in detail.turns]))
    else:
        parts.append(f'No turns yet. Try: {program()} send {session.id} "say hello"')
    if detail.queue:
        parts += [
            "",
            dim("waiting in the queue"),
            table(QUEUE, [_queue_cells(message) for message in detail.queue]),
        ]
    return "\n".join(parts)


def _session_details(session: SessionView, detail: SessionDetail) -> Details:
    task = [("task", f"{session.task} ({program()} tasks show {session.task[:SHORT_ID]})")] if session.task else []
    return [
        ("session", session.id),
        ("title", session.title),
        ("state", display_state(session) + (", archived" if session.archived else "")),
        *task,
        ("profile", session.profile),
        *([("mode", MODES.get(detail.mode, detail.mode))] if detail.mode != "profile" else []),
        *([("node", _nodes(session, detail))] if session.host or detail.node else []),
        ("directory", session.cwd),
        ("created", format_datetime(session.created_at)),
        ("updated", format_datetime(session.updated_at)),
        ("holds", f"{plural(session.message_count, 'message')}, {plural(session.version, 'event')}"),
        *([("notifications", session.tell)] if session.tell != "default" else []),
    ]


def _nodes(session: SessionView, detail: SessionDetail) -> str:
    asks = f" (asks for {detail.node})" if detail.node else ""
    return f"{session.host or 'none yet'}{asks}"


def _turn_cells(turn: TurnView) -> list[str]:
    return [
        str(turn.turn),
        turn.state,
        format_time(turn.started_at),
        "" if turn.finished_at is None else duration(turn.finished_at - turn.started_at),
        str(turn.steps),
        str(turn.resumes),
        f"{turn.input_tokens + turn.output_tokens:,}",
        turn.reason,
    ]


def _queue_cells(message: QueuedMessage) -> list[str]:
    return [str(message.version), message.mode, format_time(message.at), message.by, message.text]


def search_table(found: SearchPage) -> str:
    """Where a text was said, and by whom."""
    if not found.hits:
        return NOTHING_FOUND
    length = unique_length([hit.session for hit in found.hits])
    rows = [
        [hit.session[:length], str(hit.version), "you" if hit.role == "user" else hit.role, ago(hit.at), hit.snippet]
        for hit in found.hits
    ]
    return table(HITS, rows)


# --- what the model sees --------------------------------------------------------------------------


def context_text(context: ModelContext) -> str:
    """The messages that the model sees, its tools, and how large that is."""
    rows = [["", "system", f"{len(context.instructions):,}", context.instructions]]
    rows += [[str(one.turn), one.role, f"{one.characters:,}", one.text] for one in context.messages]
    model = wrap(one_line(f"model {context.model}; tools: {', '.join(context.tools)}"), terminal_width())
    return "\n".join([table(CONTEXT, rows), *map(dim, model), *wrap(context_size(context), terminal_width())])


def context_size(context: ModelContext) -> str:
    """How large a context is, when it is summarised, and what takes the place of what it does not hold."""
    source = "summary" if context.summary == "model" else "digest"
    summary = "" if context.summary is None else f"; a {source} replaces the turns up to {context.covers}"
    how = f"counted by {one_line(context.model)}" if context.counted else "estimated"
    threshold = f"; summarised above {context.threshold:,}" if context.threshold else "; never summarised"
    limit = f", at most {context.limit:,} ({LIMIT_SOURCES[context.limit_source]})" if context.limit else ""
    return f"chapter {context.chapter}{summary}; {plural(context.tokens, 'token')} ({how}){threshold}{limit}"


# --- resets ---------------------------------------------------------------------------------------


def survivor_lines(opened: ChapterOpened) -> list[str]:
    """What a reset kept and what it stopped, and its note for the next chapter, indented."""
    from holdfast.domain.transcript_text import chapter_lines

    room = max(20, terminal_width() - 4)
    lines = [shorten(one_line(line), NOTE) for line in chapter_lines(opened)]
    return ["\n    ".join(wrap(f"  {line}", room)) for line in lines]


def reset_details(reset: ResetOutlook) -> Details:
    """Chapter, next reset, and what postpones it."""
    chapter = reset.chapter
    opened = "" if chapter.opened_at is None else f", opened {ago(chapter.opened_at)}: {chapter.reason}"
    rows = [("chapter", f"{chapter.number}{opened}"), ("reset", _next_reset(reset))]
    if reset.postponed is not None:
        from holdfast.domain.transcript_text import notice_text

        rows.append(("postponed", notice_text(reset.postponed, clock=format_time)))
    return rows


def _next_reset(reset: ResetOutlook) -> str:
    if reset.rules.mode == "none":
        return "never automatically (mode = none)"
    if reset.next_at is None:
        return "none: this chapter has no messages yet"
    if reset.postponed is not None:
        return f"was due at {format_datetime(reset.next_at)} ({reset.next_rule})"
    unless = ", unless there is user activity" if reset.next_rule == "idle" else ""
    return f"at {format_datetime(reset.next_at)} ({reset.next_rule}){unless}"


def policy_text(reset: ResetOutlook, *, session: SessionView) -> str:
    """When a session is reset, each setting with its origin, and the running commands."""
    parts = [details([("session", f"{session.id} “{session.title}”"), *reset_details(reset)])]
    parts += ["", table(RULES, _rule_cells(reset, session.profile))]
    if reset.running:
        parts += ["", dim("running in the background"), running_tasks_table(reset.running)]
    return "\n".join(parts)


def _rule_cells(reset: ResetOutlook, profile: str) -> list[list[str]]:
    rules = reset.rules
    values = {
        "mode": rules.mode,
        "idle_minutes": f"{rules.idle_ms // 60_000:,}",
        "at_hour": str(rules.at_hour),
        "timezone": rules.timezone or "this machine's own",
        "max_postpone": _span(rules.max_postpone_ms),
        "process_max_age": _span(rules.process_max_age_ms),
        "on_live_process": rules.on_live_process,
        "hand_over_note": _yes(rules.hand_over_note),
        "notify": _yes(rules.notify),
    }
    origins = ORIGINS | {"profile": f"profile {profile}"}
    return [[name, value, origins[reset.origins[name]]] for name, value in values.items()]


def running_tasks_table(tasks: list[RunningTaskView]) -> str:
    """The background tasks of a session."""
    rows = [
        [
            task.task[:SHORT_ID],
            task.kind,
            "" if task.pid is None else str(task.pid),
            task.activity or "at work",
            age(task.age_ms),
            task.lifetime,
            task.title,
        ]
        for task in tasks
    ]
    return table(RUNNING, rows)


def running_task(task: RunningTaskView) -> str:
    """A background task of a session in a few words."""
    return f"{task.task[:SHORT_ID]} {one_line(task.title)} ({task.activity or 'an agent'}, {age(task.age_ms)})"


def all_reset_details(reset: ResetOutlook, opened: ChapterOpened | None) -> str:
    """Everything that is known about the last and the next reset of a session, block by block."""
    blocks = [reset_details(reset)]
    if (late := reset.postponed) is not None:
        until = "as long as it takes" if late.until is None else format_datetime(late.until)
        blocks[0] += [
            ("due at", format_datetime(late.due_at)),
            ("at most until", until),
            ("checked again", format_datetime(late.next_check)),
        ]
        blocks += [_blocker_details(blocker) for blocker in late.blockers]
    if opened is not None:
        blocks += [_survivor_details("handed over", survivor) for survivor in opened.kept]
        blocks += [_survivor_details("stopped", survivor) for survivor in opened.stopped]
    parts = [details(block) for block in blocks]
    return "\n\n".join([*parts, *([running_tasks_table(reset.running)] if reset.running else [])])


def _blocker_details(blocker: Blocker) -> Details:
    rows = [("postponed by", str(blocker.by)), ("because", blocker.reason)]
    if blocker.task:
        rows += [
            ("task", blocker.task),
            ("pid", "not known" if blocker.pid is None else str(blocker.pid)),
            ("command", blocker.command),
            ("age", duration(blocker.age_ms or 0)),
            ("activity", blocker.activity),
            ("evidence", blocker.evidence or "not measured yet"),
        ]
    return rows


def _survivor_details(outcome: str, task: Survivor) -> Details:
    return [
        (outcome, f"{task.task} {task.title}"),
        ("pid", "none" if task.pid is None else str(task.pid)),
        ("age", duration(task.age_ms)),
        ("activity", task.activity or "an agent"),
        ("evidence", task.evidence or "none"),
        ("rule", task.rule),
    ]


def _span(ms: int) -> str:
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000)):
        if ms >= 2 * size and ms % size == 0:
            return f"{ms // size}{unit}"
    return f"{ms / 1000:g}s"


def _yes(value: bool) -> str:
    return "yes" if value else "no"
