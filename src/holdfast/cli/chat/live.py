"""The live part between the conversation and the prompt, and the toolbar.

Drawn again at every refresh; the screen changes only where it differs. Nothing here goes to the scrollback.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.cli.chat.blocks import Block, NoticeBlock, ThinkingBlock, needs_blank_line
from holdfast.cli.chat.connection import OutgoingMessage
from holdfast.cli.chat.paint import MARK, Painter, call_line
from holdfast.cli.chat.view import View
from holdfast.cli.screen import duration, one_line, plural, shorten, width
from holdfast.domain.transcript_items import NoteItem, QueuedItem, WaitItem

QUEUE_LINES = 4
THINKING_LINES = 8
MARKDOWN_LIMIT = 8_000
PATIENCE = 0.7
"""How long a message may take before it is shown as not sent."""
SLOW_MS = 1_000
SEPARATOR = " · "


@dataclass(frozen=True, slots=True)
class LiveState:
    """Everything that the live part is drawn from."""

    view: View
    unsent: list[OutgoingMessage]
    away_since: float | None
    thinking_open: bool
    last: Block | None
    """The last printed block."""
    clock_ms: int
    monotonic: float
    choosing: str = ""
    """The question of the chat itself, or what it is busy with."""


def live_lines(live: LiveState, painter: Painter, rows: int) -> list[str]:
    """Draw the lines above the prompt; the streamed text is shortened if there is too little space."""
    asked = [*_choosing(live, painter), *_wait(live, painter)]
    waiting = [*_context(live, painter), *asked, *_queue(live, painter), *_unsent(live, painter)][: rows - 1]
    above = [*_speech(live, painter), *_calls(live, painter)]
    room = rows - len(waiting) - 1 if waiting else rows
    above = above[-room:] if room > 0 else []
    return [*above, *([""] if waiting else []), *waiting]


def _context(live: LiveState, painter: Painter) -> list[str]:
    """Draw a running summary and a postponed reset: one dim line each."""
    view, lines = live.view, []
    if view.compacting_since is not None:
        by = f" by {one_line(view.summary_model)}" if view.summary_model else ""
        lines.append(f"… making the context shorter{by} · {_seconds(live.clock_ms - view.compacting_since)}")
    if view.postponed:
        lines.append(view.postponed)
    return [painter.text(shorten(one_line(line), painter.columns), "dim") for line in lines]


def _speech(live: LiveState, painter: Painter) -> list[str]:
    """Draw the piece that is being streamed exactly as it will be printed."""
    answer_stream = live.view.answer_stream
    rest = answer_stream.rest
    if rest.markdown.strip():
        blank = needs_blank_line(live.last, rest)
        return [*([""] if blank else []), *_markdown(rest.markdown, painter)]
    if answer_stream.thinking.strip():
        return _thinking(live, painter)
    asked_at = live.view.asked_at
    if asked_at is not None and live.clock_ms - asked_at >= SLOW_MS:
        waited = _seconds(live.clock_ms - asked_at)
        return ["", painter.text(f"… waiting for {one_line(live.view.model)} · {waited}", "dim")]
    return []


def _markdown(text: str, painter: Painter) -> list[str]:
    if len(text) <= MARKDOWN_LIMIT:
        return painter.markdown(text)
    return painter.markdown("…" + text[-MARKDOWN_LIMIT // 2 :])


def _thinking(live: LiveState, painter: Painter) -> list[str]:
    answer_stream = live.view.answer_stream
    blank = [""] if needs_blank_line(live.last, ThinkingBlock(0, "")) else []
    since = answer_stream.thinking_ms
    head = f"✻ thinking… {_seconds(since)}" if since is not None else "✻ thinking…"
    hint = "" if live.thinking_open else " (Ctrl-T opens it)"
    lines = [*blank, painter.text(head + hint, "dim italic")]
    if live.thinking_open:
        drawn = painter.markdown(answer_stream.thinking[-MARKDOWN_LIMIT // 4 :])[-THINKING_LINES:]
        lines += [f"  {line}" for line in drawn]
    return lines


def _calls(live: LiveState, painter: Painter) -> list[str]:
    running = live.view.running
    lines = [""] if running and needs_blank_line(live.last, NoticeBlock("")) else []
    for block in running:
        call = block.call
        took = _seconds(live.clock_ms - (call.started_at or live.clock_ms))
        ending = f" · running · {took} · [{block.number}]"
        what = call_line(call.tool, call.arguments, painter.columns - len(ending) - 2)
        lines.append(painter.text("⚙ ", "yellow") + painter.text(what) + painter.text(ending, "dim"))
    return lines


def _choosing(live: LiveState, painter: Painter) -> list[str]:
    return [painter.text(shorten(live.choosing, painter.columns), "yellow")] if live.choosing else []


def _wait(live: LiveState, painter: Painter) -> list[str]:
    wait = live.view.wait
    if wait is None:
        return []
    words = shorten(wait_instruction(wait, live.clock_ms), painter.columns)
    return [painter.text(words, "yellow")]


def wait_instruction(wait: WaitItem, clock_ms: int) -> str:
    """Say how to answer."""
    numbered = SEPARATOR.join(f"{number} {one_line(choice)}" for number, choice in enumerate(wait.choices, 1))
    match wait.purpose:
        case "approval":
            return f"waits for your approval: {numbered}"
        case "question":
            return f"waits for your answer: {numbered}, or your own text" if numbered else "type your answer"
        case "quota" if wait.until is not None:
            return f"continues in {_seconds(max(0, wait.until - clock_ms))}: {numbered}"
        case "compaction" | "login" | "quota":
            return f"waits for your choice: {numbered}"
        case "retry":
            left = _seconds(max(0, (wait.until or clock_ms) - clock_ms))
            return f"tries again in {left}; Ctrl-C stops the turn"
        case _:
            return "send a message to continue the turn, or /stop it"


def _queue(live: LiveState, painter: Painter) -> list[str]:
    """Draw the queued messages; the next one to be taken looks as it will when printed."""
    view = live.view
    waiting = list(view.queue.values())
    lines = []
    for place, queued in enumerate(waiting[:QUEUE_LINES], 1):
        lines.append(_queued(queued, painter) if view.turn is not None or place > 1 else _next(queued, painter))
    more = len(waiting) - QUEUE_LINES
    return [*lines, painter.text(f"  and {plural(more, 'more message')}", "dim")] if more > 0 else lines


def _queued(queued: QueuedItem, painter: Painter) -> str:
    how = "note" if isinstance(queued, NoteItem) else "queued" if queued.mode == "queue" else queued.mode
    head = f"{how} {queued.version} "
    return painter.text(head, "cyan") + painter.text(shorten(one_line(queued.text), painter.columns - len(head)), "dim")


def _next(queued: QueuedItem, painter: Painter) -> str:
    if isinstance(queued, NoteItem):
        return painter.text("note ", "magenta") + painter.text(shorten(one_line(queued.text), painter.columns - 5))
    return painter.text(f"{MARK} ", "bold cyan") + painter.text(
        shorten(one_line(queued.text), painter.columns - 2), "bold"
    )


def _unsent(live: LiveState, painter: Painter) -> list[str]:
    late = [
        message
        for message in live.unsent
        if (live.away_since is not None or live.monotonic - message.at > PATIENCE) and message.id not in live.view.queue
    ]
    lines = []
    for message in late[:QUEUE_LINES]:
        head = "not sent yet "
        words = shorten(one_line(message.text), painter.columns - len(head))
        lines.append(painter.text(head, "yellow") + painter.text(words, "dim"))
    more = len(late) - QUEUE_LINES
    return [*lines, painter.text(f"  and {plural(more, 'more')}", "dim")] if more > 0 else lines


# --- the toolbar ----------------------------------------------------------------------------------


def toolbar(live: LiveState, columns: int) -> list[tuple[str, str]]:
    """Return title, agent, state, cost and queue as styled texts for one line; the title is shortened first."""
    parts = [(style, text) for style, text in _facts(live) if text]
    taken = sum(width(text) for _, text in parts) + len(SEPARATOR) * len(parts)
    title = one_line(live.view.title) or ("new session" if not live.view.session else "untitled")
    shown = [("", shorten(title, max(8, columns - taken - 1))), *parts]
    line: list[tuple[str, str]] = []
    room = columns - 1
    for index, (style, text) in enumerate(shown):
        piece = (SEPARATOR if index else "") + text
        if width(piece) > room:
            break
        room -= width(piece)
        line += [("class:toolbar", SEPARATOR)] if index else []
        line.append((f"class:toolbar {style}".strip(), text))
    return line


def _facts(live: LiveState) -> list[tuple[str, str]]:
    view = live.view
    if live.away_since is not None:
        return [("class:warning", f"gateway away, waiting… {_away(live)}")]
    return [
        ("class:warning", f"card {view.card}: messages become comments" if view.card else ""),
        ("", agent(view)),
        (f"class:state.{view.state}", state(view, live.clock_ms)),
        ("", cost(view)),
        ("class:state.queued", f"{len(view.queue)} queued" if view.turn is not None and view.queue else ""),
    ]


def _away(live: LiveState) -> str:
    since = int((live.monotonic - (live.away_since or live.monotonic)) * 1000)
    unsent = f"{SEPARATOR}{len(live.unsent)} not sent yet" if live.unsent else ""
    start = f"{SEPARATOR}/start starts one" if since > 5_000 else ""
    return f"{_seconds(since)}{unsent}{start}"


SHORT_MODES = {"ask": "asks first", "read": "read only"}


def agent(view: View) -> str:
    """The profile, the model when its name says more, and the mode if one was chosen."""
    profile, model, mode = one_line(view.profile), one_line(view.model), view.transcript.mode
    name = shorten(profile if model in ("", profile) else f"{profile}/{model}", 40)
    return name if mode == "profile" else f"{name}, {SHORT_MODES.get(mode, mode)}"


def state(view: View, clock_ms: int) -> str:
    """Describe the state, and for how long."""
    turn = view.turn
    if turn is None and view.state == "compacting" and view.compacting_since is not None:
        return f"compacting {_seconds(clock_ms - view.compacting_since)}"
    if turn is None:
        return view.state
    word = "stopping" if view.is_stopping else view.state
    return f"{word} {_seconds(clock_ms - turn.started_at)}"


def cost(view: View) -> str:
    """Describe the cost of the last turn."""
    if not view.cost.tokens:
        return ""
    dollars = "" if view.cost.dollars is None else f" ${view.cost.dollars:.4f}"
    return f"{plural(view.cost.tokens, 'token')}{dollars}"


def _seconds(ms: int) -> str:
    """Format whole seconds: faster changes cannot be read."""
    return duration(ms) if ms >= 60_000 else f"{max(0, ms) // 1000} s"
