"""Items of the transcript as blocks, where that needs nothing but the item."""

from __future__ import annotations

from typing import assert_never

import msgspec

from holdfast.cli.approvals import is_cut, shown_lines
from holdfast.cli.chat.blocks import Asked, Block, Divider, Noted, Remark, Said, Tone
from holdfast.cli.screen import one_line, shorten, when
from holdfast.domain.events.chapter import ChapterOpened
from holdfast.domain.transcript_items import ChapterItem, MessageItem, NoteItem, QueuedItem, SummaryItem, WaitItem
from holdfast.domain.transcript_text import chapter_lines, covered_text, summary_text

UNDO = "/undo-reset brings the earlier context back"
LINE = 400
"""So much of a note for the next chapter is shown."""


def message_blocks(item: QueuedItem) -> list[Block]:
    """A message or the end of a task that is not in the queue any more."""
    match item.state:
        case "queued":
            return []  # it is shown above the prompt
        case "withdrawn":
            return [Remark(f"withdrawn by {item.withdrawn_by}: {shorten(one_line(item.text), LINE)}")]
        case "taken" | "joined":
            return [Noted(item.text) if isinstance(item, NoteItem) else Said(item.text, _beside(item))]
        case _ as never:
            assert_never(never)


def _beside(item: MessageItem) -> str:
    """What is worth saying beside a message: that it did not come from a terminal, how it came in."""
    how = "joined the turn" if item.state == "joined" else "" if item.mode == "queue" else item.mode
    author = "" if str(item.by) == "cli" else str(item.by)
    return " · ".join(filter(None, (author, how)))


def summary_blocks(item: SummaryItem) -> list[Block]:
    """A summary that was written, or why there is none."""
    text = summary_text(item, clock=when)
    if item.state == "running" or item.replaced:
        return []
    if item.state == "failed":
        cut = item.problem is not None and item.problem.code == "interrupted"
        return [Remark(text, "quiet" if cut else "warning")]
    what = "summary" if item.source == "model" else "digest"
    lines = (text, "nothing is deleted: /context shows what the model sees")
    tone: Tone = "quiet" if item.source == "model" else "warning"
    return [Divider(f"{what} of {covered_text(item.covers_turn, item.covers_step)}", lines, tone)]


def asked(item: WaitItem, *, arguments: str = "") -> Asked:
    """The question that a wait puts to a person."""
    shown = [msgspec.structs.asdict(argument) for argument in item.shown]
    return Asked(
        item.purpose,
        item.reason,
        tuple(item.choices),
        "" if shown else arguments,
        item.pattern,
        tuple(shown_lines(shown)),
        is_cut(shown),
    )


def divider(item: ChapterItem | ChapterOpened) -> Divider:
    """A reset, as it stands in the transcript."""
    lines = (f"because {item.reason}", *(shorten(one_line(line), LINE) for line in chapter_lines(item)), UNDO)
    return Divider(f"chapter {item.chapter}: the model starts anew", lines)
