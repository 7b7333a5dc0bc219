"""The session as the chat shows it: turns changes of its transcript into blocks.

What is finished is handed out once as blocks, which never change; what is not (the piece being streamed, running
calls, the queue, an open question) is read from the transcript. Pure but for the clock that it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never, cast

from holdfast.cli.chat.blocks import (
    Block,
    DividerBlock,
    NoticeBlock,
    QuestionBlock,
    Tone,
    ToolBlock,
    divider_block,
    message_blocks,
    summary_blocks,
)
from holdfast.cli.chat.streaming import AnswerStream
from holdfast.cli.screen import format_time, one_line
from holdfast.client.events import TextDelta
from holdfast.client.http import Json
from holdfast.client.lenient import lenient_record
from holdfast.domain.card_number import card_label
from holdfast.domain.events.actor import PersonActor
from holdfast.domain.events.chapter import ChapterRejoined, ResetPostponed, SummaryRequested
from holdfast.domain.events.parts import Usage
from holdfast.domain.events.run_binding import RunBound
from holdfast.domain.events.session import StopRequested, TurnResumed, TurnSuspended
from holdfast.domain.session import SessionActivity
from holdfast.domain.transcript import Transcript
from holdfast.domain.transcript_items import (
    Change,
    ChapterItem,
    MessageItem,
    NoteItem,
    NoticeItem,
    QueuedItem,
    StepItem,
    SummaryItem,
    ToolCallView,
    TurnEndItem,
    TurnProgress,
    WaitItem,
)
from holdfast.domain.transcript_text import (
    answer_text,
    notice_text,
    turn_end_text,
)
from holdfast.schemas.sessions import QueuedMessage, SessionDetail

if TYPE_CHECKING:
    from holdfast.domain.command import InputMode, InputSource, SessionMode

QUESTION = "question"
"""The tool by which an agent asks a person."""


@dataclass(slots=True)
class Cost:
    """What a turn has cost so far."""

    tokens: int = 0
    dollars: float | None = None

    def add(self, usage: Usage) -> None:
        """One more model call."""
        self.tokens += usage.input_tokens + usage.output_tokens
        if usage.cost is not None:
            self.dollars = (self.dollars or 0.0) + usage.cost


class View:
    """What the chat shows of one session. An empty `session` will be created by the first message."""

    def __init__(self, clock: Callable[[], float], *, profile: str = "", model: str = "", cwd: str = "") -> None:
        self.transcript = Transcript()
        self.transcript.profile, self.transcript.model, self.transcript.cwd = profile, model, cwd
        self.answer_stream = AnswerStream(clock)
        self.cost = Cost()
        self.is_stopping = False
        """A stop was typed here, or asked for elsewhere."""
        self.compacting_since: int | None = None
        self.postponed = ""
        """Why the next reset waits; only the latest reason counts."""
        self.changes: list[tuple[int, Change]] | None = None
        """A list that collects the changes with the versions of their records, if it is set."""
        self._numbers: dict[str, int] = {}
        self._cut = ""

    def seed(self, detail: SessionDetail) -> None:
        """Start from a snapshot that describes the session before the first record that will be read."""
        row, transcript = detail.session, self.transcript
        transcript.session, transcript.title, transcript.cwd = row.id, row.title, row.cwd
        transcript.profile, transcript.model = row.profile, row.model or transcript.model
        transcript.mode = cast("SessionMode", detail.mode)
        transcript.inherited_mode = cast("SessionMode", detail.inherited_mode)
        turn = None
        if detail.turns:
            last = max(detail.turns, key=lambda turn: turn.turn)
            self.cost = Cost(last.input_tokens + last.output_tokens, last.cost)
            if row.state in ("running", "waiting", "suspended"):
                suspended = row.state == "suspended"
                turn = TurnProgress(number=last.turn, started_at=last.started_at, is_suspended=suspended)
        if row.state == "compacting":
            self.compacting_since = row.updated_at
        transcript.seed(
            turn=turn,
            queue=[_queued_item(one) for one in detail.queue],
            is_compacting=row.state == "compacting",
        )

    def end(self) -> None:
        """Note that no more records will arrive."""
        self.transcript.seed(turn=None, queue=[], is_compacting=False)
        self.transcript.queue.clear()

    # --- what is alive --------------------------------------------------------------------------

    @property
    def session(self) -> str:
        """Its id."""
        return self.transcript.session

    @property
    def title(self) -> str:
        """Its title."""
        return self.transcript.title

    @property
    def profile(self) -> str:
        """The profile that answers."""
        return self.transcript.profile

    @property
    def model(self) -> str:
        """The model that was asked last, or will be asked."""
        return self.transcript.model

    @property
    def cwd(self) -> str:
        """The working directory of its agent."""
        return self.transcript.cwd

    @property
    def version(self) -> int:
        """The version of the last record that was read."""
        return self.transcript.version

    @property
    def card(self) -> str:
        """The card whose worker this is, while its run is open: then messages are comments on it."""
        return card_label(self.transcript.card_number, self.transcript.card) if self.transcript.card else ""

    @property
    def state(self) -> SessionActivity:
        """The state in one word."""
        return self.transcript.state

    @property
    def turn(self) -> TurnProgress | None:
        """The running turn."""
        return self.transcript.turn

    @property
    def wait(self) -> WaitItem | None:
        """What the turn waits for."""
        return self.transcript.wait

    @property
    def queue(self) -> dict[str, QueuedItem]:
        """The queued messages, by their input."""
        return {item.input: item for item in self.transcript.queue}

    @property
    def at_work(self) -> bool:
        """Whether something is running that the user need not wait for."""
        return self.state != "idle"

    @property
    def asked_at(self) -> int | None:
        """When the current model request began."""
        step = self.transcript.live_step
        return None if step is None or self.turn is None or self.turn.is_suspended else step.at

    @property
    def summary_model(self) -> str:
        """The model that is writing a summary now."""
        items = self.transcript.items
        return next(
            (item.model for item in reversed(items) if isinstance(item, SummaryItem) and item.state == "running"), ""
        )

    @property
    def calls(self) -> list[ToolBlock]:
        """Every tool call that was shown."""
        found = ((number, self.transcript.find_call(call)) for call, number in self._numbers.items())
        return [ToolBlock(number, call) for number, call in found if call is not None]

    @property
    def running(self) -> list[ToolBlock]:
        """The calls that were started and have not ended."""
        return [one for one in self.calls if one.call.state == "running"]

    # --- what comes -----------------------------------------------------------------------------

    def apply_delta(self, piece: TextDelta) -> list[Block]:
        """Add streamed text; return the blocks that it finished."""
        changes = self.transcript.apply_delta(
            piece.turn,
            piece.step,
            offset=piece.offset,
            text=piece.text,
            thinking_offset=piece.thinking_offset,
            thinking=piece.thinking,
        )
        return [block for change in changes for block in self._blocks(change)]

    def apply_record(self, found: Json) -> list[Block]:
        """Apply a record; return the blocks that it finished."""
        record = lenient_record(found)
        if record is None:  # of a newer gateway
            self.transcript.version = int(found["version"])
            return []
        turn = self.transcript.turn
        changes = self.transcript.apply(record)
        if self.transcript.turn is None or turn is None or turn.number != self.transcript.turn.number:
            self.is_stopping = False
        if self.transcript.turn is not None and (turn is None or turn.number != self.transcript.turn.number):
            self.cost = Cost()
        if self.transcript.turn is not None and self.transcript.turn.is_stopping:
            self.is_stopping = True
        if not self.transcript.is_compacting:
            self.compacting_since = None
        elif self.compacting_since is None:
            self.compacting_since = record.at
        if self.changes is not None:
            self.changes += [(record.version, change) for change in changes]
        return [block for change in changes for block in self._blocks(change)]

    def _blocks(self, change: Change) -> list[Block]:
        match change.item:
            case MessageItem() | NoteItem() as item:
                self.postponed = "" if change.kind == "added" else self.postponed
                return message_blocks(item)
            case StepItem() as item:
                return self._step_blocks(item, change)
            case WaitItem() as item:
                self._cut = ""
                return self._wait_blocks(item)
            case ChapterItem() as item:
                self.postponed = ""
                return [] if item.undone else [divider_block(item)]
            case SummaryItem() as item:
                return summary_blocks(item)
            case TurnEndItem() as item:
                self._cut = ""
                tone: Tone = "bad" if item.outcome == "failed" else "warning"
                return [] if item.outcome == "done" or item.undone else [NoticeBlock(turn_end_text(item), tone)]
            case NoticeItem() as item:
                return self._notice_blocks(item)
            case _ as never:
                assert_never(never)

    def _step_blocks(self, item: StepItem, change: Change) -> list[Block]:
        for call in item.calls:
            self._numbers.setdefault(call.call, len(self._numbers) + 1)
        if change.call is not None:
            return self._tool_blocks(change.call)
        if change.kind == "text":
            return self.answer_stream.extend(item)
        if change.kind == "removed":  # nothing of it was stored, but some of it may have been printed
            blocks = self.answer_stream.cut(item)
            self._cut = item.cut_reason if blocks else ""
            return blocks
        if item.state == "live":
            self.answer_stream.begin()
            cut, self._cut = self._cut, ""
            again: list[Block] = [NoticeBlock(f"cut: {cut}; this step begins again", "warning")] if cut else []
            return [*again, *self.answer_stream.extend(item)]
        if item.state != "done":
            problem = item.problem.message.removesuffix(".") if item.problem is not None else item.cut_reason
            self._cut = problem if item.text else ""
            return self.answer_stream.cut(item)
        if item.usage is not None:
            self.cost.add(item.usage)
        blocks = self.answer_stream.complete(item)
        if item.cut_reason:
            blocks.append(NoticeBlock("the answer was cut by the model's length limit", "warning"))
        elif not item.text.strip() and not item.calls:
            blocks.append(NoticeBlock("an empty answer"))
        return blocks

    def _tool_blocks(self, call: ToolCallView) -> list[Block]:
        if call.duration_ms is None:
            return []
        if call.tool == QUESTION and call.state == "done":
            return []  # the question and its answer were shown
        return [ToolBlock(self._numbers[call.call], call)]

    def _wait_blocks(self, item: WaitItem) -> list[Block]:
        if item.answer is not None:
            said = f"→ {one_line(answer_text(item.answer))} · {item.answer.by}"
            return [] if item.purpose == "retry" else [NoticeBlock(said, "plain")]
        if item.purpose == "retry":
            return [NoticeBlock(f"waits and tries again: {item.reason}", "warning")]
        call = self.transcript.find_call(item.call) if item.purpose == "approval" and not item.shown else None
        return [QuestionBlock(item, "" if call is None else call.arguments)]

    def _notice_blocks(self, item: NoticeItem) -> list[Block]:
        text = notice_text(item.event, clock=format_time)
        match item.event:
            case ResetPostponed():
                self.postponed = text
                return []
            case StopRequested() | SummaryRequested(purpose="hand_over"):
                return []  # shown while it runs; the end of the turn and the new chapter say who requested it
            case ChapterRejoined(chapter=chapter, by=by):
                self.postponed = ""
                return [
                    DividerBlock(f"chapter {chapter} undone by {by}", ("the model sees the chapter before it again",))
                ]
            case TurnSuspended() | TurnResumed() | RunBound():
                self._cut = ""
                return [NoticeBlock(text, "warning")]
            case _:
                return [NoticeBlock(text)]


def _queued_item(one: QueuedMessage) -> QueuedItem:
    """A message of the queue whose record is older than the first one that was read."""
    if one.source == "task":
        return NoteItem(version=one.version, at=one.at, text=one.text, task="", input=one.input, state="queued")
    return MessageItem(
        version=one.version,
        at=one.at,
        input=one.input,
        text=one.text,
        by=PersonActor(client=one.by),
        mode=cast("InputMode", one.mode),
        source=cast("InputSource", one.source),
    )
