"""Blocks: the parts of the conversation as the chat prints them. A printed block never changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, assert_never

from holdfast.cli.screen import format_time, one_line, shorten
from holdfast.domain.events.chapter import ChapterOpened
from holdfast.domain.transcript_items import (
    ChapterItem,
    MessageItem,
    NoteItem,
    QueuedItem,
    SummaryItem,
    ToolCallView,
    WaitItem,
)
from holdfast.domain.transcript_text import chapter_lines, covered_text, summary_text

Tone = Literal["quiet", "plain", "warning", "bad"]


@dataclass(frozen=True, slots=True)
class UserBlock:
    """A person's message that a turn took."""

    text: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class NoteBlock:
    """A note of the runtime that a task ended."""

    text: str


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A piece of the agent's answer in Markdown that can be drawn by itself."""

    markdown: str
    joined: bool = False
    """Whether it continues the piece before without a blank line."""


@dataclass(frozen=True, slots=True)
class ThinkingBlock:
    """Thinking, folded to one line. Its duration is known only if the chat was open at that time."""

    number: int
    text: str
    ms: int | None = None


@dataclass(frozen=True, slots=True)
class ToolBlock:
    """A tool call, under the number by which it can be opened."""

    number: int
    call: ToolCallView


@dataclass(frozen=True, slots=True)
class QuestionBlock:
    """A question of the agent, or an approval that one of its calls needs."""

    wait: WaitItem
    arguments: str = ""
    """Those of its call, where the wait does not show them."""


@dataclass(frozen=True, slots=True)
class NoticeBlock:
    """A one-line notice of the runtime or the chat."""

    text: str
    tone: Tone = "quiet"


@dataclass(frozen=True, slots=True)
class ListingBlock:
    """The output of a slash command. Its lines may have styles of our own, and no other escape sequences."""

    lines: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class DividerBlock:
    """A reset or a summary: from here on the model sees another context."""

    title: str
    lines: tuple[str, ...] = ()
    tone: Tone = "quiet"


Block = (
    UserBlock
    | NoteBlock
    | TextBlock
    | ThinkingBlock
    | ToolBlock
    | QuestionBlock
    | NoticeBlock
    | ListingBlock
    | DividerBlock
)


def block_group(block: Block) -> str:
    """Return the group of a block. There is a blank line between two groups, and none within one."""
    match block:
        case UserBlock():
            return "said"
        case NoteBlock():
            return "noted"
        case TextBlock(joined=joined):
            return "joined" if joined else "spoke"
        case QuestionBlock():
            return "asked"
        case ListingBlock():
            return "listing"
        case DividerBlock():
            return "divider"
        case ThinkingBlock() | ToolBlock() | NoticeBlock():
            return "line"


def needs_blank_line(before: Block | None, block: Block) -> bool:
    """Whether there is a blank line between these two."""
    kind = block_group(block)
    if before is None or kind == "joined":
        return False
    return not (kind == "line" and block_group(before) in ("line", "asked"))


# --- items of the transcript as blocks, where that needs nothing but the item ---------------------


UNDO = "/undo-reset brings the earlier context back"
LINE = 400
"""How much of a note for the next chapter is shown."""


def message_blocks(item: QueuedItem) -> list[Block]:
    """Return the block of a message or task note that has left the queue."""
    match item.state:
        case "queued":
            return []  # it is shown above the prompt
        case "withdrawn":
            return [NoticeBlock(f"withdrawn by {item.withdrawn_by}: {shorten(one_line(item.text), LINE)}")]
        case "taken" | "joined":
            return [NoteBlock(item.text) if isinstance(item, NoteItem) else UserBlock(item.text, _message_note(item))]
        case _ as never:
            assert_never(never)


def _message_note(item: MessageItem) -> str:
    """Return what is shown beside a message: where it came from if not from a terminal, and its mode."""
    how = "joined the turn" if item.state == "joined" else "" if item.mode == "queue" else item.mode
    author = "" if str(item.by) == "cli" else str(item.by)
    return " · ".join(filter(None, (author, how)))


def summary_blocks(item: SummaryItem) -> list[Block]:
    """Return the block of a summary, or of the reason why there is none."""
    text = summary_text(item, clock=format_time)
    if item.state == "running" or item.replaced:
        return []
    if item.state == "failed":
        cut = item.problem is not None and item.problem.code == "interrupted"
        return [NoticeBlock(text, "quiet" if cut else "warning")]
    what = "summary" if item.source == "model" else "digest"
    lines = (text, "nothing is deleted: /context shows what the model sees")
    tone: Tone = "quiet" if item.source == "model" else "warning"
    return [DividerBlock(f"{what} of {covered_text(item)}", lines, tone)]


def divider_block(item: ChapterItem | ChapterOpened) -> DividerBlock:
    """Return the block of a reset."""
    lines = (f"because {item.reason}", *(shorten(one_line(line), LINE) for line in chapter_lines(item)), UNDO)
    return DividerBlock(f"chapter {item.chapter}: the model starts with an empty context", lines)
