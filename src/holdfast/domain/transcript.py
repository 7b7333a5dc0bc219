"""A session as people see it: records and streamed text in, items and the state of the session out.

Every client folds with this: the log and the chat of the terminal, `run`, the Markdown export. The dashboard has a
fold of its own in TypeScript, and both must make the same items of tests/golden/transcript.

Pure. A fold may begin in the middle of a log: what is only completed by its records then begins with them.
Not here: words for people (`transcript_text.py`), and what the rules need to know (`session.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.domain.events import Record
from holdfast.domain.events.chapter import (
    ChapterOpened,
    ChapterRejoined,
    SummaryEvent,
    SummaryFailed,
    SummaryRequested,
    SummaryStarted,
    SummaryWritten,
)
from holdfast.domain.events.parts import Event, Forked
from holdfast.domain.events.run_binding import RunBound, RunReleased
from holdfast.domain.events.session import (
    AgentChosen,
    InputReceived,
    InputRevised,
    InputsJoined,
    InputWithdrawn,
    ModeChosen,
    ModelFailed,
    ModelInterrupted,
    ModelRequested,
    ModelResponded,
    NoteReceived,
    SessionCreated,
    SessionRenamed,
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
from holdfast.domain.rights import NO_LIMITS, mode_in_force, strictest_mode
from holdfast.domain.session import SessionActivity, TurnState, session_activity
from holdfast.domain.transcript_chapters import ChapterFold
from holdfast.domain.transcript_items import (
    INTERRUPTED_REASON,
    NOTICES,
    AnyItem,
    Change,
    MessageItem,
    MessageState,
    NoteItem,
    NoticeEvent,
    NoticeItem,
    QueuedItem,
    StepItem,
    SummaryItem,
    ToolCallView,
    TurnEndItem,
    TurnProgress,
    WaitAnswerView,
    WaitItem,
    add_item,
    new_item,
    remove_item,
)


class Transcript:
    """One session: its items in order, and its current state."""

    def __init__(self) -> None:
        self.session = self.title = self.profile = self.model = self.cwd = self.card = ""
        self.card_number = self.run = self.version = 0
        self.mode = self.inherited_mode = strictest_mode("profile")  # `mode` is in force: the strictest
        self.items: list[AnyItem] = []
        """All that is shown, in the order of the events that began it."""
        self.queue: list[QueuedItem] = []
        """What no turn has taken, in the order in which it will be."""
        self.turn: TurnProgress | None = None
        self.wait: WaitItem | None = None
        """What the turn waits for."""
        self.live_step: StepItem | None = None
        """The step that the model is answering."""
        self._knows_step = False
        """Whether an event has said at which step the model is."""
        self._calls: dict[str, tuple[StepItem, ToolCallView]] = {}
        self._turn_ends: dict[int, TurnEndItem] = {}
        self._chapters = ChapterFold(self.items)

    def seed(self, *, turn: TurnProgress | None, queue: list[QueuedItem], is_compacting: bool) -> None:
        """Begin in the middle of a log, with what is known of the time before its first record: the open turn, what
        waits, and whether a summary is being made.
        """
        self.turn, self._chapters.is_summary_running = turn, is_compacting
        self.queue += queue
        self.items += queue

    def seed_wait(self, item: WaitItem) -> None:
        """Add what the open turn waits for, where that was asked before the first record."""
        self.wait = item
        self.items.append(item)

    # --- the current state ----------------------------------------------------------------------

    @property
    def state(self) -> SessionActivity:
        """One word for what it is doing."""
        turn: TurnState | None = None
        if self.turn is not None:
            turn = "waiting" if self.wait is not None else "suspended" if self.turn.is_suspended else "running"
        return session_activity(turn, queued=bool(self.queue), compacting=self.is_compacting)

    @property
    def is_compacting(self) -> bool:
        """Whether a shorter context was asked for or is being made."""
        return self._chapters.is_summary_requested or self._chapters.is_summary_running

    def find_call(self, call: str) -> ToolCallView | None:
        """A tool call by its id."""
        found = self._calls.get(call)
        return None if found is None else found[1]

    # --- what comes -----------------------------------------------------------------------------

    def apply(self, record: Record) -> list[Change]:
        """Fold one record of the session; what it changed."""
        self.version = record.version
        event = record.event
        fold = FOLDS.get(type(event))
        return [] if fold is None else fold(self, event, record)

    def apply_delta(
        self, turn: int, step: int, *, offset: int, text: str, thinking_offset: int = 0, thinking: str = ""
    ) -> list[Change]:
        """Add streamed text to the step that is being answered; what came before is not added twice."""
        live = self.live_step
        if live is None and not self._knows_step:  # it was asked before the first record that we have
            at = self.turn.started_at if self.turn is not None else 0
            live = StepItem(version=self.version, at=at, turn=turn, step=step, profile=self.profile, model=self.model)
        if live is None or (live.turn, live.step) != (turn, step):
            return []
        if offset > len(live.text) or thinking_offset > len(live.thinking):
            return []  # a piece is missing; the event brings the whole
        text, thinking = text[len(live.text) - offset :], thinking[len(live.thinking) - thinking_offset :]
        if not text and not thinking:
            return []
        live.text += text
        live.thinking += thinking
        if live is self.live_step:
            return [Change("text", live)]
        self._knows_step, self.live_step = True, live
        return [add_item(self.items, live)]

    def take_settled(self) -> list[AnyItem]:
        """Take out the first items, as far as no event completes them any more: a long log need not be held as a
        whole. The last one stays, since the next attempt at a summary continues it.
        """
        count, last = 0, len(self.items) - 1
        while count < last and self._is_settled(self.items[count]):
            count += 1
        taken = self.items[:count]
        del self.items[:count]
        for item in taken:
            if isinstance(item, StepItem):
                for call in item.calls:
                    self._calls.pop(call.call, None)
            elif isinstance(item, TurnEndItem):
                self._turn_ends.pop(item.turn, None)
        return taken

    def _is_settled(self, item: AnyItem) -> bool:
        match item:
            case MessageItem() | NoteItem():
                return item.state != "queued"
            case StepItem():
                has_ended = all(call.duration_ms is not None for call in item.calls) or item.turn in self._turn_ends
                return item is not self.live_step and has_ended
            case WaitItem():
                return item is not self.wait
            case SummaryItem():
                return item.state != "running"
            case _:
                return True

    def _notice(self, event: NoticeEvent, record: Record) -> list[Change]:
        """An event that is a line of its own, and that may change the current state."""
        changes: list[Change] = []
        turn = self.turn or TurnProgress(number=0, started_at=0)  # the open turn may have begun before our records
        match event:
            case TurnResumed():
                changes = self._cut_off(record.at)
                turn.is_suspended = False
            case TurnSuspended():
                turn.is_suspended = True  # how far its request came is reported at the next start
            case StopRequested():
                turn.is_stopping = True
            case TurnBackgrounded():
                turn.task = event.task
            case TurnUndone():
                if (end := self._turn_ends.get(event.turn)) is not None:
                    end.undone = True
                    changes = [Change("updated", end)]
            case ChapterRejoined() | SummaryRequested():
                changes = self._chapters.apply(event, record)
            case SessionRenamed():
                self.title = event.title
            case AgentChosen():
                self.profile, self.model = event.profile, event.model
            case ModeChosen():
                self.mode = strictest_mode(event.mode, self.inherited_mode)
            case RunBound(card=card, run=run, card_number=number):
                self.card, self.run, self.card_number, self.cwd = card, run, number, event.cwd or self.cwd
            case RunReleased():
                self.card, self.run = "", 0
            case _:
                pass
        return [*changes, add_item(self.items, NoticeItem(version=record.version, at=record.at, event=event))]

    def _session_created(self, event: SessionCreated, record: Record) -> list[Change]:
        self.session, self.title, self.cwd, self.profile = event.session, event.title, event.cwd, event.profile
        self.inherited_mode = mode_in_force("profile", event.rights or NO_LIMITS)
        self.mode = strictest_mode(event.mode, self.inherited_mode)
        return self._notice(event, record) if isinstance(event.origin, Forked) else []

    def _chapter(self, event: ChapterOpened | SummaryEvent, record: Record) -> list[Change]:
        changes = self._chapters.apply(event, record)
        if isinstance(event, SummaryFailed) and event.purpose == "hand_over":
            return self._notice(event, record)
        return changes

    # --- messages -------------------------------------------------------------------------------

    def _note_received(self, _: NoteReceived, record: Record) -> list[Change]:
        return [add_item(self.items, new_item(NoteItem, record))]

    def _input_received(self, event: InputReceived, record: Record) -> list[Change]:
        self.title = self.title or event.text.strip().split("\n", 1)[0][:80]
        for seeded in self._dequeue([event.input]):
            remove_item(self.items, seeded)
        item: QueuedItem = (
            new_item(NoteItem, record, task=event.ref, state="queued")
            if event.source == "task"
            else new_item(MessageItem, record)
        )
        self.queue.append(item)
        return [add_item(self.items, item)]

    def _input_revised(self, event: InputRevised, _: Record) -> list[Change]:
        item = next((item for item in self.queue if item.input == event.input), None)
        if item is None:
            return []
        if event.place is not None:
            self.queue.remove(item)
            self.queue.insert(event.place - 1, item)
        if event.text is not None:
            item.text = event.text
        if event.mode is not None and isinstance(item, MessageItem):
            item.mode = event.mode
        item.revisions.append(event)
        return [Change("updated", item)]

    def _input_withdrawn(self, event: InputWithdrawn, _: Record) -> list[Change]:
        items = self._dequeue([event.input])
        for item in items:
            item.state, item.withdrawn_by = "withdrawn", event.by
        return [Change("updated", item) for item in items]

    def _take(self, inputs: list[str], state: MessageState, *, turn: int) -> list[Change]:
        items = self._dequeue(inputs)
        for item in items:
            item.state, item.turn = state, turn
        return [Change("updated", item) for item in items]

    def _dequeue(self, inputs: list[str]) -> list[QueuedItem]:
        """Take messages out of the queue, in the order that is given."""
        if not self.queue:
            return []
        found = [item for input in inputs for item in self.queue if item.input == input]
        self.queue = [item for item in self.queue if item.input not in inputs]
        return found

    # --- the turn -------------------------------------------------------------------------------

    def _turn_started(self, event: TurnStarted, record: Record) -> list[Change]:
        self.turn, self.wait = TurnProgress(number=event.turn, started_at=record.at), None
        self.profile = event.profile
        return self._take(event.inputs, "taken", turn=event.turn)

    def _inputs_joined(self, event: InputsJoined, _: Record) -> list[Change]:
        return self._take(event.inputs, "joined", turn=event.turn)

    def _turn_finished(self, event: TurnFinished, record: Record) -> list[Change]:
        changes = self._cut_off(record.at)
        turn = self.turn or TurnProgress(number=event.turn, started_at=record.at)
        self.turn = self.wait = None
        item = self._turn_ends[event.turn] = new_item(
            TurnEndItem,
            record,
            model=self.model,
            started_at=turn.started_at,
            input_tokens=turn.input_tokens,
            output_tokens=turn.output_tokens,
            cost=turn.cost,
        )
        return [*changes, add_item(self.items, item)]

    def _wait_opened(self, _: WaitOpened, record: Record) -> list[Change]:
        self.wait = new_item(WaitItem, record)
        return [add_item(self.items, self.wait)]

    def _wait_answered(self, event: WaitAnswered, record: Record) -> list[Change]:
        item, self.wait = self.wait, None
        if item is None or item.wait != event.wait:
            return []
        item.answer = WaitAnswerView(answer=event.answer, by=event.by, at=record.at, note=event.note)
        return [Change("updated", item)]

    # --- steps ----------------------------------------------------------------------------------

    def _model_requested(self, event: ModelRequested, record: Record) -> list[Change]:
        changes = self._cut_off(record.at)
        self.model = event.model
        self._knows_step, self.live_step = True, self._new_step(event.turn, event.step, record)
        changes.append(add_item(self.items, self.live_step))
        return changes

    def _model_ended(self, event: ModelResponded | ModelInterrupted | ModelFailed, record: Record) -> list[Change]:
        step, self.live_step, self._knows_step = self.live_step, None, True
        is_new = step is None or (step.turn, step.step) != (event.turn, event.step)
        if step is None or is_new:  # it was asked before the first record that we have
            step = self._new_step(event.turn, event.step, record)
        step.end(event, record.at)
        for call in step.calls:
            self._calls[call.call] = (step, call)
        if isinstance(event, ModelResponded) and self.turn is not None:
            self.turn.add_usage(event.usage)
        if step.state == "cut" and not (step.text or step.thinking):
            return [] if is_new else [remove_item(self.items, step)]
        return [add_item(self.items, step) if is_new else Change("updated", step)]

    def _new_step(self, turn: int, step: int, record: Record) -> StepItem:
        return StepItem(
            version=record.version, at=record.at, turn=turn, step=step, profile=self.profile, model=self.model
        )

    def _cut_off(self, at: int) -> list[Change]:
        """A request that no event has ended, because a crash or a stop came first."""
        step, self.live_step = self.live_step, None
        if step is None:
            return []
        if not (step.text or step.thinking):
            return [remove_item(self.items, step)]
        step.state, step.cut_reason, step.ended_at = "cut", INTERRUPTED_REASON, at
        return [Change("updated", step)]

    def _tool_call(self, event: ToolCallStarted | ToolCallFinished, record: Record) -> list[Change]:
        known = self._calls.get(event.call)
        if known is None:  # its step is before the first record that we have
            step, call = self._new_step(event.turn, 0, record), ToolCallView(call=event.call, tool=event.tool)
            step.state, step.ended_at, step.calls = "done", record.at, [call]
            self._calls[event.call] = (step, call)
            add_item(self.items, step)
        else:
            step, call = known
        if isinstance(event, ToolCallStarted):
            call.state, call.started_at = "running", record.at
        else:
            call.end(event)
        return [Change("call" if known else "added", step, call)]


FOLDS: dict[type[Event], Callable[[Transcript, Any, Record], list[Change]]] = dict.fromkeys(NOTICES, Transcript._notice)
FOLDS |= dict.fromkeys((ChapterOpened, SummaryStarted, SummaryWritten, SummaryFailed), Transcript._chapter)
FOLDS |= dict.fromkeys((ModelResponded, ModelInterrupted, ModelFailed), Transcript._model_ended)
FOLDS |= dict.fromkeys((ToolCallStarted, ToolCallFinished), Transcript._tool_call)
FOLDS |= {
    SessionCreated: Transcript._session_created,
    NoteReceived: Transcript._note_received,
    InputReceived: Transcript._input_received,
    InputRevised: Transcript._input_revised,
    InputWithdrawn: Transcript._input_withdrawn,
    TurnStarted: Transcript._turn_started,
    InputsJoined: Transcript._inputs_joined,
    TurnFinished: Transcript._turn_finished,
    WaitOpened: Transcript._wait_opened,
    WaitAnswered: Transcript._wait_answered,
    ModelRequested: Transcript._model_requested,
}
