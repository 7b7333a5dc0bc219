"""What the chat shows, one block under the other. Blocks never change once they were shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, assert_never

from holdfast.cli.render.inbox import is_cut, shown_lines
from holdfast.cli.screen import format_time, one_line, shorten
from holdfast.domain.events.chapter import ChapterOpened
from holdfast.domain.transcript_items import ChapterItem, MessageItem, NoteItem, QueuedItem, SummaryItem, WaitItem
from holdfast.domain.transcript_text import chapter_lines, covered_text, summary_text

Tone = Literal["quiet", "plain", "warning", "bad"]


@dataclass(frozen=True, slots=True)
class UserBlock:
    """A person's message that a turn took."""

    text: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class NoteBlock:
    """The runtime tells the session that a task ended."""

    text: str


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A finished piece of the agent's answer, in markdown."""

    markdown: str
    joined: bool = False


@dataclass(frozen=True, slots=True)
class ThinkingBlock:
    """Thinking, folded to one line. How long it took is known only to who was there."""

    number: int
    text: str
    ms: int | None = None


@dataclass(frozen=True, slots=True)
class ToolBlock:
    """A tool call that came to an end."""

    number: int
    tool: str
    arguments: str
    result: str
    """done, started, failed, stopped or unknown."""
    output: str
    ms: int
    task: str = ""
    detail: str = ""
    """Its exit code or signal, if that says something."""


@dataclass(frozen=True, slots=True)
class QuestionBlock:
    """The agent, or a guard before one of its calls, asks a person."""

    purpose: str
    reason: str
    choices: tuple[str, ...] = ()
    arguments: str = ""
    pattern: str = ""
    shown: tuple[str, ...] = ()
    """Every argument of a call that waits for an approval, line by line."""
    cut: bool = False
    """Some of them are longer than that."""


@dataclass(frozen=True, slots=True)
class NoticeBlock:
    """A line of the runtime."""

    text: str
    tone: Tone = "quiet"


@dataclass(frozen=True, slots=True)
class ListingBlock:
    """The answer to a slash command. Its lines may carry our own styling and nothing else."""

    lines: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class DividerBlock:
    """Where what the model sees begins anew, or was made shorter."""

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
    """Blocks of one family stand close to each other; between two families is a blank line."""
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
    """Whether a blank line stands between these two."""
    kind = block_group(block)
    if before is None or kind == "joined":
        return False
    return not (kind == "line" and block_group(before) in ("line", "asked"))


# --- items of the transcript as blocks, where that needs nothing but the item ---------------------


UNDO = "/undo-reset brings the earlier context back"
LINE = 400
"""So much of a note for the next chapter is shown."""


def message_blocks(item: QueuedItem) -> list[Block]:
    """A message or the end of a task that is not in the queue any more."""
    match item.state:
        case "queued":
            return []  # it is shown above the prompt
        case "withdrawn":
            return [NoticeBlock(f"withdrawn by {item.withdrawn_by}: {shorten(one_line(item.text), LINE)}")]
        case "taken" | "joined":
            return [NoteBlock(item.text) if isinstance(item, NoteItem) else UserBlock(item.text, _run_in_thread(item))]
        case _ as never:
            assert_never(never)


def _run_in_thread(item: MessageItem) -> str:
    """What is worth saying beside a message: that it did not come from a terminal, how it came in."""
    how = "joined the turn" if item.state == "joined" else "" if item.mode == "queue" else item.mode
    author = "" if str(item.by) == "cli" else str(item.by)
    return " · ".join(filter(None, (author, how)))


def summary_blocks(item: SummaryItem) -> list[Block]:
    """A summary that was written, or why there is none."""
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


def question_block(item: WaitItem, *, arguments: str = "") -> QuestionBlock:
    """The question that a wait puts to a person."""
    return QuestionBlock(
        item.purpose,
        item.reason,
        tuple(item.choices),
        "" if item.shown else arguments,
        item.pattern,
        tuple(shown_lines(item.shown)),
        is_cut(item.shown),
    )


def divider_block(item: ChapterItem | ChapterOpened) -> DividerBlock:
    """A reset, as it stands in the transcript."""
    lines = (f"because {item.reason}", *(shorten(one_line(line), LINE) for line in chapter_lines(item)), UNDO)
    return DividerBlock(f"chapter {item.chapter}: the model starts anew", lines)
