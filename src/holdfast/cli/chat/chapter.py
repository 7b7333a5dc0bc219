"""Chapters in the chat: dividers where what the model sees changed, and what goes on about it now."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.cli import chapters
from holdfast.cli.actor import by
from holdfast.cli.chat.blocks import Block, Divider, Remark
from holdfast.cli.screen import ago, one_line, when
from holdfast.client.http import Json

UNDO = "/undo-reset brings the earlier context back"
UNKNOWN = "?"
SEES = {
    "": "everything as before",
    "digest": "a digest of the older turns",
    "model": "the last summary, and what came since",
    UNKNOWN: "what it saw before",
}


@dataclass(slots=True)
class Context:
    """What is known of the context of a session and not in the scrollback."""

    compacting: int | None = None
    """Since when it is being made shorter."""
    by: str = ""
    """The model that writes the summary."""
    postponed: str = ""
    """Why the next reset waits; only the latest reason counts."""
    summary: str = ""
    """What stands for older turns: nothing, a `digest`, a summary by a `model`, or UNKNOWN."""


def chapter_blocks(context: Context, event: Json, at: int) -> list[Block]:
    """What an event of a chapter looks like; nothing for any other."""
    match event["kind"]:
        case "ChapterOpened":
            context.postponed = context.summary = ""
            return [divider(event)]
        case "ChapterRejoined":
            context.postponed, context.summary = "", UNKNOWN
            number = event["chapter"]
            lines = ("the model sees the chapter before again, and what was said since",)
            return [Divider(f"chapter {number} undone by {by(event)}", lines)]
        case "ResetPostponed":
            context.postponed = chapters.postponed(event)
        case "ResetPolicySet":
            return [Remark(chapters.policy(event))]
        case "ToolResultsTrimmed":
            return [Remark(f"{chapters.results_trimmed(event)} ({event['reason']}); nothing is deleted")]
        case "SummaryRequested" if event.get("purpose") == "hand_over":
            context.compacting, context.by = at, ""
        case "SummaryRequested":
            context.compacting, context.by = at, ""
            wish = f": {one_line(event['instructions'])}" if event["instructions"] else ""
            return [Remark(f"{by(event)} wants the context made shorter{wish}")]
        case "SummaryStarted":
            context.compacting, context.by = at, event["model"]
        case "SummaryFailed":
            context.compacting = None
            if event.get("purpose") == "hand_over":
                return [Remark(chapters.no_summary(event), "warning")]
            cut = event["problem"]["code"] == chapters.INTERRUPTED
            return [Remark(chapters.no_summary(event, SEES[context.summary]), "quiet" if cut else "warning")]
        case "SummaryWritten" if event.get("purpose") == "hand_over":
            context.compacting = None
        case "SummaryWritten":
            context.compacting, context.summary = None, event["source"]
            mark = () if event["source"] == "model" else (chapters.A_DIGEST,)
            lines = (*mark, event["reason"], "nothing is deleted: /context shows what the model sees")
            return [Divider(chapters.compacted(event), lines, "quiet" if event["source"] == "model" else "warning")]
        case _:
            pass
    return []


def divider(event: Json) -> Divider:
    """A reset, as it stands in the transcript."""
    lines = (f"because {event['reason']}", *chapters.what_became(event), UNDO)
    return Divider(f"chapter {event['chapter']}: the model starts anew", lines)


def notice(event: Json, at: int) -> Divider:
    """A reset that nobody has seen: when, why, and what was handed over."""
    title = f"reset {ago(at)}, at {when(at)}, while nobody was here"
    return Divider(title, divider(event).lines, "warning")
