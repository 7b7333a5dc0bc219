"""A session as people see it: records and streamed text in, items and the state of the session out.

Every client folds with this: the log and the chat of the terminal, `run`, the Markdown export. The dashboard has a
fold of its own in TypeScript, and both must make the same items of tests/golden/transcript.

Pure. A fold may begin in the middle of a log: what is only completed by its records then begins with them.
Not here: words for people (`transcript_text.py`), and what the rules need to know (`session.py`).
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from holdfast.domain.events import Record
from holdfast.domain.events.chapter import (
    ChapterOpened,
    ChapterRejoined,
    SummaryFailed,
    SummaryRequested,
    SummaryStarted,
    SummaryWritten,
)
from holdfast.domain.events.parts import Forked, Usage
from holdfast.domain.events.session import (
    AgentChosen,
    DriverOutputRead,
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
from holdfast.domain.session import SessionActivity, TurnState, session_activity
from holdfast.domain.transcript_chapters import ChapterFold
from holdfast.domain.transcript_items import (
    INTERRUPTED,
    AnyItem,
    MessageItem,
    MessageState,
    NoteItem,
    QueuedItem,
    StepItem,
    ToolCallView,
    TurnEndItem,
    WaitAnswerView,
    WaitItem,
    begin,
    changed_call,
    ended_step,
    new_item,
)
from holdfast.domain.transcript_list import NOTICES, Change, ChangeKind, ItemList


class TurnProgress(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The turn at work, and what it has used so far."""

    number: int
    started_at: int
    is_stopping: bool = False
    is_suspended: bool = False
    task: str = ""
    """The task that it became."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None


class Transcript:
    """One session: its items in order, and what is going on in it."""

    def __init__(self) -> None:
        self.session = self.title = self.profile = self.model = self.cwd = self.card = ""
        self.run = self.version = 0
        self._list = ItemList()
        self._chapters = ChapterFold(self._list)
        self.queue: list[int] = []
        """The versions of the items that no turn has taken, in the order in which they will be."""
        self.turn: TurnProgress | None = None
        self._wait = 0
        self._live = 0
        self._inputs: dict[str, int] = {}
        self._calls: dict[str, int] = {}

    @property
    def items(self) -> list[AnyItem]:
        """All that is shown, in the order of the events that began it."""
        return self._list.items

    def seed(self, *, turn: TurnProgress | None, queue: list[tuple[InputReceived, int]], is_compacting: bool) -> None:
        """Begin in the middle of a log, with what is known of the time before its first record: the open turn, what
        waits and since when, and whether a summary is being made.
        """
        self.turn, self._chapters.summary_running = turn, is_compacting
        for place, (event, at) in enumerate(queue):
            self._list.add(self._enqueue(event, version=place - len(queue), at=at))

    def seed_wait(self, item: WaitItem) -> Change:
        """Add what the open turn waits for, where that was asked before the first record."""
        self._wait = item.version
        return self._list.add(item)

    # --- what is going on -----------------------------------------------------------------------

    @property
    def state(self) -> SessionActivity:
        """One word for what it is doing."""
        turn: TurnState | None = None
        if self.turn is not None:
            turn = "waiting" if self._wait else "suspended" if self.turn.is_suspended else "running"
        return session_activity(turn, queued=bool(self.queue), compacting=self.is_compacting)

    @property
    def is_compacting(self) -> bool:
        """Whether a shorter context was asked for or is being made."""
        return self._chapters.summary_requested or self._chapters.summary_running

    @property
    def wait(self) -> WaitItem | None:
        """What the turn waits for."""
        return self._list.find(self._wait, WaitItem)

    @property
    def live_step(self) -> StepItem | None:
        """The step that the model is answering."""
        return self._list.find(self._live, StepItem)

    @property
    def queued(self) -> list[QueuedItem]:
        """What no turn has taken."""
        return [self._queued(version) for version in self.queue]

    def find_call(self, call: str) -> ToolCallView | None:
        """A tool call by its id."""
        step = self._list.find(self._calls.get(call, 0), StepItem)
        return None if step is None else next((one for one in step.calls if one.call == call), None)

    # --- what comes -----------------------------------------------------------------------------

    def apply(self, record: Record) -> list[Change]:
        """Fold one record of the session; the items that it changed."""
        self.version = record.version
        event = record.event
        match event:
            case InputReceived() | NoteReceived() | InputRevised() | InputWithdrawn():
                return self._input(event, record)
            case TurnStarted() | InputsJoined() | StopRequested() | TurnBackgrounded():
                return self._turn(event, record)
            case TurnSuspended() | TurnResumed() | TurnFinished() | TurnUndone():
                return self._turn_interrupted(event, record)
            case ModelRequested() | ModelResponded() | ModelInterrupted() | ModelFailed():
                return self._model(event, record)
            case ToolCallStarted() | ToolCallFinished():
                return self._call(event, record)
            case WaitOpened() | WaitAnswered():
                return self._waits(event, record)
            case ChapterOpened() | ChapterRejoined():
                return self._chapters.apply(event, record)
            case SummaryRequested() | SummaryStarted() | SummaryWritten() | SummaryFailed():
                return self._chapters.apply(event, record)
            case DriverOutputRead():
                return []
            case _:
                return self._session(record)

    def apply_delta(
        self, turn: int, step: int, *, offset: int, text: str, thinking_offset: int = 0, thinking: str = ""
    ) -> list[Change]:
        """Add streamed text to the step that is being answered; what came before is not added twice."""
        live = self.live_step
        if live is None or (live.turn, live.step) != (turn, step):
            return []
        if offset > len(live.text) or thinking_offset > len(live.thinking):
            return []  # a piece is missing; the event brings the whole
        text = live.text + text[len(live.text) - offset :]
        thinking = live.thinking + thinking[len(live.thinking) - thinking_offset :]
        if (text, thinking) == (live.text, live.thinking):
            return []
        return [self._list.put(replace(live, text=text, thinking=thinking), "text")]

    # --- messages -------------------------------------------------------------------------------

    def _input(
        self, event: InputReceived | NoteReceived | InputRevised | InputWithdrawn, record: Record
    ) -> list[Change]:
        version, at = record.version, record.at
        match event:
            case NoteReceived():
                return [self._list.add(NoteItem(version=version, at=at, text=event.text, task=event.task))]
            case InputReceived():
                return [self._list.add(self._enqueue(event, version=version, at=at))]
            case InputRevised():
                return self._revised(event)
            case InputWithdrawn():
                withdrawn = self._settle([event.input], "withdrawn", 0)
                return [
                    self._list.put(replace(one.item, withdrawn_by=event.by))
                    for one in withdrawn
                    if isinstance(one.item, QueuedItem)
                ]

    def _enqueue(self, event: InputReceived, *, version: int, at: int) -> QueuedItem:
        """Return the item of a message that waits from now on."""
        seeded = self._inputs.get(event.input, 0)
        if seeded < 0:
            self.queue.remove(seeded)
            self._list.remove(self._queued(seeded))
        self.title = self.title or event.text.strip().split("\n", 1)[0][:80]
        self.queue.append(version)
        self._inputs[event.input] = version
        if event.source == "task":
            return NoteItem(version=version, at=at, text=event.text, task=event.ref, input=event.input, state="queued")
        return new_item(MessageItem, event, version=version, at=at)

    def _queued(self, version: int) -> QueuedItem:
        item = self._list.find(version, MessageItem) or self._list.find(version, NoteItem)
        assert item is not None
        return item

    def _revised(self, event: InputRevised) -> list[Change]:
        version = self._inputs.get(event.input, 0)
        if version not in self.queue:
            return []
        item = self._queued(version)
        if event.place is not None:
            self.queue.remove(version)
            self.queue.insert(event.place - 1, version)
        item = replace(
            item,
            text=item.text if event.text is None else event.text,
            revisions=[*item.revisions, event],
        )
        if isinstance(item, MessageItem) and event.mode is not None:
            item = replace(item, mode=event.mode)
        return [self._list.put(item)]

    def _settle(self, inputs: list[str], state: MessageState, turn: int) -> list[Change]:
        """Take messages out of the queue."""
        changes = []
        for input in inputs:
            version = self._inputs.get(input, 0)
            if version in self.queue:
                self.queue.remove(version)
                item = self._queued(version)
                changes.append(self._list.put(replace(item, state=state, turn=turn)))
        return changes

    # --- the turn -------------------------------------------------------------------------------

    def _turn(
        self, event: TurnStarted | InputsJoined | StopRequested | TurnBackgrounded, record: Record
    ) -> list[Change]:
        match event:
            case TurnStarted():
                self.turn, self._wait = TurnProgress(number=event.turn, started_at=record.at), 0
                self.profile = event.profile
                return self._settle(event.inputs, "taken", event.turn)
            case InputsJoined():
                return self._settle(event.inputs, "joined", event.turn)
            case StopRequested():
                self.turn = None if self.turn is None else replace(self.turn, is_stopping=True)
            case TurnBackgrounded():
                self.turn = None if self.turn is None else replace(self.turn, task=event.task)
        return [self._list.add_notice(record)]

    def _turn_interrupted(
        self, event: TurnSuspended | TurnResumed | TurnFinished | TurnUndone, record: Record
    ) -> list[Change]:
        match event:
            case TurnUndone():
                ends = [item for item in self._list.latest(TurnEndItem) if item.turn == event.turn]
                undone = [self._list.put(replace(item, undone=True)) for item in ends]
                return [*undone, self._list.add_notice(record)]
            case TurnFinished():
                changes = self._cut_off(record.at)
                turn = self.turn or TurnProgress(number=event.turn, started_at=record.at)
                self.turn, self._wait = None, 0
                used = {name: getattr(turn, name) for name in ("started_at", "input_tokens", "output_tokens", "cost")}
                return [*changes, self._list.add(begin(TurnEndItem, record, model=self.model, **used))]
            case TurnSuspended():  # how far its request came is told at the next start
                self.turn = None if self.turn is None else replace(self.turn, is_suspended=True)
                return [self._list.add_notice(record)]
            case TurnResumed():
                self.turn = None if self.turn is None else replace(self.turn, is_suspended=False)
                return [*self._cut_off(record.at), self._list.add_notice(record)]

    # --- steps ----------------------------------------------------------------------------------

    def _model(
        self, event: ModelRequested | ModelResponded | ModelInterrupted | ModelFailed, record: Record
    ) -> list[Change]:
        if isinstance(event, ModelRequested):
            changes = self._cut_off(record.at)
            self.model = event.model
            self._live = record.version
            return [*changes, self._list.add(self._new_step(event.turn, event.step, record))]
        live = self.live_step
        step = live if live is not None and (live.turn, live.step) == (event.turn, event.step) else None
        self._live = 0
        kind: ChangeKind = "updated"
        if step is None:
            step, kind = self._new_step(event.turn, event.step, record), "added"
        step = ended_step(step, event, record.at)
        if isinstance(event, ModelResponded):
            self._calls |= dict.fromkeys((call.call for call in event.calls), step.version)
            self._count(event.usage)
        if step.state == "cut" and not (step.text or step.thinking or step.calls):
            return [self._list.remove(step)] if kind == "updated" else []
        return [self._list.put(step) if kind == "updated" else self._list.add(step)]

    def _new_step(self, turn: int, step: int, record: Record) -> StepItem:
        return StepItem(
            version=record.version, at=record.at, turn=turn, step=step, profile=self.profile, model=self.model
        )

    def _cut_off(self, at: int) -> list[Change]:
        """A request that no event has ended, because a crash or a stop came first."""
        step, self._live = self.live_step, 0
        if step is None:
            return []
        if not (step.text or step.thinking):
            return [self._list.remove(step)]
        return [self._list.put(replace(step, state="cut", cut_reason=INTERRUPTED, ended_at=at))]

    def _count(self, usage: Usage) -> None:
        turn = self.turn
        if turn is not None:
            self.turn = replace(
                turn,
                input_tokens=turn.input_tokens + usage.input_tokens,
                output_tokens=turn.output_tokens + usage.output_tokens,
                cost=turn.cost if usage.cost is None else (turn.cost or 0.0) + usage.cost,
            )

    def _call(self, event: ToolCallStarted | ToolCallFinished, record: Record) -> list[Change]:
        kind: ChangeKind = "call"
        step = self._list.find(self._calls.get(event.call, 0), StepItem)
        if step is None:  # its step is before the first record that we have
            step = replace(self._new_step(event.turn, 0, record), state="done", ended_at=record.at)
            step = replace(step, calls=[ToolCallView(call=event.call, tool=event.tool)])
            self._calls[event.call] = step.version
            self._list.add(step)
            kind = "added"
        calls = [changed_call(call, event, record.at) if call.call == event.call else call for call in step.calls]
        return [self._list.put(replace(step, calls=calls), kind, call=event.call)]

    # --- waiting --------------------------------------------------------------------------------

    def _waits(self, event: WaitOpened | WaitAnswered, record: Record) -> list[Change]:
        if isinstance(event, WaitOpened):
            self._wait = record.version
            return [self._list.add(begin(WaitItem, record))]
        self._wait = 0
        item = next((one for one in self._list.latest(WaitItem) if one.wait == event.wait), None)
        if item is None:
            return []
        answer = WaitAnswerView(answer=event.answer, by=event.by, at=record.at, note=event.note)
        return [self._list.put(replace(item, answer=answer))]

    # --- the session ----------------------------------------------------------------------------

    def _session(self, record: Record) -> list[Change]:
        match event := record.event:
            case SessionCreated():
                self.session, self.title, self.cwd = event.session, event.title, event.cwd
                self.profile = event.profile
                if not isinstance(event.origin, Forked):
                    return []
            case SessionRenamed():
                self.title = event.title
            case AgentChosen():
                self.profile, self.model = event.profile, event.model
            case RunBound():
                self.card, self.run, self.cwd = event.card, event.run, event.cwd or self.cwd
            case RunReleased():
                self.card, self.run = "", 0
            case _:
                pass
        return [self._list.add_notice(record)] if isinstance(event, NOTICES) else []
