"""What stands between the conversation and the prompt while something is going on, and the toolbar.

Drawn anew at every refresh; the screen changes only where it differs. Nothing here goes to the scrollback.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.cli.chat.blocks import Block, Remark, Spoke, Thought, gap
from holdfast.cli.chat.outbox import Letter
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
class Now:
    """All that the live part depends on."""

    view: View
    unsent: list[Letter]
    away_since: float | None
    thinking_open: bool
    last: Block | None
    """The last block above."""
    clock_ms: int
    monotonic: float
    choosing: str = ""
    """The question of the chat itself, if it asks one, or what it is about."""


def live_lines(now: Now, painter: Painter, rows: int) -> list[str]:
    """The lines above the prompt; what is spoken gives way when there is too much of everything."""
    asked = [*_choosing(now, painter), *_wait(now, painter)]
    waiting = [*_context(now, painter), *asked, *_queue(now, painter), *_unsent(now, painter)][: rows - 1]
    above = [*_speech(now, painter), *_calls(now, painter)]
    room = rows - len(waiting) - 1 if waiting else rows
    above = above[-room:] if room > 0 else []
    return [*above, *([""] if waiting else []), *waiting]


def _context(now: Now, painter: Painter) -> list[str]:
    """What is done about the context, and why a reset waits: one dim line each."""
    view, lines = now.view, []
    if view.compacting_since is not None:
        by = f" by {one_line(view.summary_model)}" if view.summary_model else ""
        lines.append(f"… making the context shorter{by} · {_seconds(now.clock_ms - view.compacting_since)}")
    if view.postponed:
        lines.append(view.postponed)
    return [painter.text(shorten(one_line(line), painter.columns), "dim") for line in lines]


def _speech(now: Now, painter: Painter) -> list[str]:
    """The piece being spoken, exactly as it will stand above when it is finished."""
    speech = now.view.speech
    rest = speech.rest
    if rest.markdown.strip():
        blank = gap(now.last, Spoke(rest.markdown, rest.joined))
        return [*([""] if blank else []), *_markdown(rest.markdown, painter)]
    if speech.thinking.strip():
        return _thinking(now, painter)
    asked_at = now.view.asked_at
    if asked_at is not None and now.clock_ms - asked_at >= SLOW_MS:
        waited = _seconds(now.clock_ms - asked_at)
        return ["", painter.text(f"… waiting for {one_line(now.view.model)} · {waited}", "dim")]
    return []


def _markdown(text: str, painter: Painter) -> list[str]:
    if len(text) <= MARKDOWN_LIMIT:
        return painter.markdown(text)
    return painter.markdown("…" + text[-MARKDOWN_LIMIT // 2 :])


def _thinking(now: Now, painter: Painter) -> list[str]:
    speech = now.view.speech
    blank = [""] if gap(now.last, Thought(0, "")) else []
    since = speech.thinking_ms
    head = f"✻ thinking… {_seconds(since)}" if since is not None else "✻ thinking…"
    hint = "" if now.thinking_open else " (Ctrl-T opens it)"
    lines = [*blank, painter.text(head + hint, "dim italic")]
    if now.thinking_open:
        drawn = painter.markdown(speech.thinking[-MARKDOWN_LIMIT // 4 :])[-THINKING_LINES:]
        lines += [f"  {line}" for line in drawn]
    return lines


def _calls(now: Now, painter: Painter) -> list[str]:
    running = now.view.running
    lines = [""] if running and gap(now.last, Remark("")) else []
    for numbered in running:
        call = numbered.call
        took = _seconds(now.clock_ms - (call.started_at or now.clock_ms))
        ending = f" · running · {took} · [{numbered.number}]"
        what = call_line(call.tool, call.arguments, painter.columns - len(ending) - 2)
        lines.append(painter.text("⚙ ", "yellow") + painter.text(what) + painter.text(ending, "dim"))
    return lines


def _choosing(now: Now, painter: Painter) -> list[str]:
    return [painter.text(shorten(now.choosing, painter.columns), "yellow")] if now.choosing else []


def _wait(now: Now, painter: Painter) -> list[str]:
    wait = now.view.wait
    if wait is None:
        return []
    words = shorten(waiting_line(wait, now.clock_ms), painter.columns)
    return [painter.text(words, "yellow")]


def waiting_line(wait: WaitItem, clock_ms: int) -> str:
    """What to do about it."""
    numbered = SEPARATOR.join(f"{number} {one_line(choice)}" for number, choice in enumerate(wait.choices, 1))
    match wait.purpose:
        case "approval":
            return f"it waits for your permission: {numbered}"
        case "question":
            return f"it waits for your answer: {numbered}, or your own words" if numbered else "type your answer"
        case "compaction":
            return f"it waits for your choice: {numbered}"
        case "retry":
            left = _seconds(max(0, (wait.until or clock_ms) - clock_ms))
            return f"it tries again in {left}; Ctrl-C stops it"
        case _:
            return "say something to let it go on, or /stop"


def _queue(now: Now, painter: Painter) -> list[str]:
    """Messages that no turn has taken; the one that is about to be taken looks as it will."""
    view = now.view
    waiting = list(view.queue.values())
    lines = []
    for place, queued in enumerate(waiting[:QUEUE_LINES], 1):
        lines.append(_queued(queued, place, painter) if view.turn is not None or place > 1 else _next(queued, painter))
    more = len(waiting) - QUEUE_LINES
    return [*lines, painter.text(f"  and {plural(more, 'more message')}", "dim")] if more > 0 else lines


def _queued(queued: QueuedItem, place: int, painter: Painter) -> str:
    how = "note" if isinstance(queued, NoteItem) else "queued" if queued.mode == "queue" else queued.mode
    head = f"{how} {place} "
    return painter.text(head, "cyan") + painter.text(shorten(one_line(queued.text), painter.columns - len(head)), "dim")


def _next(queued: QueuedItem, painter: Painter) -> str:
    if isinstance(queued, NoteItem):
        return painter.text("note ", "magenta") + painter.text(shorten(one_line(queued.text), painter.columns - 5))
    return painter.text(f"{MARK} ", "bold cyan") + painter.text(
        shorten(one_line(queued.text), painter.columns - 2), "bold"
    )


def _unsent(now: Now, painter: Painter) -> list[str]:
    late = [
        letter
        for letter in now.unsent
        if (now.away_since is not None or now.monotonic - letter.at > PATIENCE) and letter.id not in now.view.queue
    ]
    lines = []
    for letter in late[:QUEUE_LINES]:
        head = "not sent yet "
        words = shorten(one_line(letter.text), painter.columns - len(head))
        lines.append(painter.text(head, "yellow") + painter.text(words, "dim"))
    more = len(late) - QUEUE_LINES
    return [*lines, painter.text(f"  and {plural(more, 'more')}", "dim")] if more > 0 else lines


# --- the toolbar ----------------------------------------------------------------------------------


def toolbar(now: Now, columns: int) -> list[tuple[str, str]]:
    """Title, agent, state, cost and queue as styled texts that fit one line; the title gives way."""
    parts = [(style, text) for style, text in _facts(now) if text]
    taken = sum(width(text) for _, text in parts) + len(SEPARATOR) * len(parts)
    title = one_line(now.view.title) or ("new session" if not now.view.session else "untitled")
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


def _facts(now: Now) -> list[tuple[str, str]]:
    view = now.view
    if now.away_since is not None:
        return [("class:warning", f"gateway away, waiting… {_away(now)}")]
    return [
        ("class:warning", f"card {view.card}: words are comments" if view.card else ""),
        ("", agent(view)),
        (f"class:state.{view.state}", state(view, now.clock_ms)),
        ("", cost(view)),
        ("class:state.queued", f"{len(view.queue)} queued" if view.turn is not None and view.queue else ""),
    ]


def _away(now: Now) -> str:
    since = int((now.monotonic - (now.away_since or now.monotonic)) * 1000)
    kept = f"{SEPARATOR}{len(now.unsent)} kept" if now.unsent else ""
    start = f"{SEPARATOR}/start starts one" if since > 5_000 else ""
    return f"{_seconds(since)}{kept}{start}"


def agent(view: View) -> str:
    """The profile, and the model when its name says more."""
    profile, model = one_line(view.profile), one_line(view.model)
    return shorten(profile if model in ("", profile) else f"{profile}/{model}", 40)


def state(view: View, clock_ms: int) -> str:
    """What it is doing, and for how long."""
    turn = view.turn
    if turn is None and view.state == "compacting" and view.compacting_since is not None:
        return f"compacting {_seconds(clock_ms - view.compacting_since)}"
    if turn is None:
        return view.state
    word = "stopping" if view.is_stopping else view.state
    return f"{word} {_seconds(clock_ms - turn.started_at)}"


def cost(view: View) -> str:
    """What the last turn has cost."""
    if not view.cost.tokens:
        return ""
    dollars = "" if view.cost.dollars is None else f" ${view.cost.dollars:.4f}"
    return f"{plural(view.cost.tokens, 'token')}{dollars}"


def _seconds(ms: int) -> str:
    """Whole seconds: what changes more often than that cannot be read."""
    return duration(ms) if ms >= 60_000 else f"{max(0, ms) // 1000} s"
