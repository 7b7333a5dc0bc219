"""Cards as folded state, and the commands about them.

An event of a card and its consequences for the session, the task and the followers of its run are one append. So a
comment and a notice are delivered exactly once, and all of them see the end of a run at the same moment.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from holdfast.board import workspace
from holdfast.board.card_processes import CardProcesses
from holdfast.clock import Clock
from holdfast.domain.card import Card, fold_card
from holdfast.domain.card_rules import decide_board, decide_card, follower_note
from holdfast.domain.commands import (
    BoardCommand,
    CardCommand,
    CreateBoard,
    CreateCard,
    EditCard,
    LinkCard,
    MoveCard,
    UnlinkCard,
)
from holdfast.domain.dispatch import comment_input
from holdfast.domain.errors import Conflict, HoldfastError, NotFound, Rejected, VersionConflict
from holdfast.domain.events import AnyEvent, board_stream, card_stream, session_stream
from holdfast.domain.events.actor import Actor
from holdfast.domain.events.card import (
    BoardCreated,
    CardCommented,
    CardCompleted,
    CardCreated,
    CardEvent,
    CardMoved,
    CardStatus,
    RunFinished,
)
from holdfast.domain.events.parts import Rights
from holdfast.domain.events.run_binding import RunReleased
from holdfast.domain.events.session import InputReceived, InputWithdrawn, NoteReceived, StopRequested
from holdfast.domain.history import AgentMessage, ToolResult
from holdfast.domain.queue import QueuedInput
from holdfast.domain.session import Session
from holdfast.lifecycle.running_tasks import RunningTasks
from holdfast.network_mounts import NetworkMounts
from holdfast.nodes import Nodes
from holdfast.sessions import Caller, Sessions
from holdfast.store.contract import Append, Appended, CommandKey, Store, Write
from holdfast.tasks.log import run_finished

CACHED_CARDS = 1000
COMMENT = "comment-"


@dataclass(frozen=True, slots=True)
class CardChange:
    """Events for a card, decided on this snapshot of it."""

    card: Card
    events: list[CardEvent]
    by: Actor


class Cards:
    """The cards of this gateway."""

    def __init__(
        self,
        store: Store,
        *,
        sessions: Sessions,
        running: RunningTasks,
        nodes: Nodes,
        clock: Clock,
        root: Path,
    ) -> None:
        self.root = root
        self.mounts = NetworkMounts()
        self._store = store
        self._sessions = sessions
        self._running = running
        self.nodes = nodes
        self.processes = CardProcesses(store, sessions=sessions, running=running, clock=clock)
        self._clock = clock
        self._cache: OrderedDict[str, Card] = OrderedDict()
        self._linking = asyncio.Lock()

    async def get(self, card: str) -> Card:
        """Return the card, caught up with the log."""
        known = self._cache.get(card) or Card(card)
        now = fold_card(known, await self._store.load(card_stream(card), after=known.version))
        if card not in self._cache or self._cache[card].version < now.version:
            self._cache[card] = now
        self._cache.move_to_end(card)
        if len(self._cache) > CACHED_CARDS:
            self._cache.popitem(last=False)
        return now

    # --- commands -------------------------------------------------------------------------------

    async def create(self, command: CreateCard, *, card: str, caller: Caller, rights: Rights | None = None) -> Appended:
        """Create a card, and the default board if it does not exist. `rights` are those of a calling agent."""

        async def writes() -> tuple[Write, ...]:
            return await self._created(command, card=card, by=caller.by, rights=rights)

        return await self._store.transact(self._clock, writes, command=caller.key)

    async def _created(self, command: CreateCard, *, card: str, by: Actor, rights: Rights | None) -> tuple[Write, ...]:
        node = await self._node_of(command.workspace, command.profile or "", command.node)
        now = self._clock.now()
        if command.at is not None and command.after_ms is not None:
            raise Rejected("Give either `at` or `after_ms`, not both.")
        at = command.at if command.after_ms is None else now + command.after_ms
        if at is not None and at <= now:
            raise Rejected("That time has passed.")
        parents = [await self._store.cards.card(parent) for parent in command.parents]
        waits = not all(parent.done for parent in parents)
        status: CardStatus = (
            "triage" if command.triage else "scheduled" if at is not None else "todo" if waits else "ready"
        )
        created = CardCreated(
            card=card,
            board=command.board,
            title=command.title,
            body=command.body,
            by=by,
            status=status,
            profile=command.profile or "",
            workspace=command.workspace,
            priority=command.priority,
            parents=[parent.id for parent in parents],
            resume=command.resume,
            max_runtime_ms=command.max_runtime_ms,
            max_attempts=command.max_attempts,
            session=command.session or "",
            rights=rights,
            tell=command.tell,
            node=node,
        )
        events: list[AnyEvent] = [created]
        if status == "scheduled":
            events.append(CardMoved(card=card, status="scheduled", reason="", by=by, at=at))
        found = next((board for board in await self._store.cards.boards() if board.id == command.board), None)
        if found is None and command.board != "default":
            raise Rejected(f"There is no board {command.board!r}.", hint=f"`holdfast board create {command.board}`")
        if found is not None and found.archived:
            back = f"`holdfast board resume {command.board}` restores it."
            raise Conflict(f"The board {command.board} is archived.", hint=back)
        write = Write(card_stream(card), tuple(events), expect=0)
        if found is not None:
            return (write,)
        made = BoardCreated(board=command.board, title="Board", by=by)
        return (write, Write(board_stream(command.board), (made,), expect=0))

    async def execute_board(self, name: str, command: BoardCommand, caller: Caller) -> Appended:
        """Carry out a command about a board."""
        name = command.board if isinstance(command, CreateBoard) else name

        async def writes() -> tuple[Write, ...]:
            board = next((board for board in await self._store.cards.boards() if board.id == name), None)
            runs = any(run.board == name for run in await self._store.cards.open_runs())
            event = decide_board(name, board, command, by=caller.by, runs=runs)
            return (Write(board_stream(name), (event,), expect=0 if board is None else board.version),)

        return await self._store.transact(self._clock, writes, command=caller.key)

    async def execute(self, card: str, command: CardCommand, caller: Caller) -> Appended:
        """Carry out a command about a card, with its consequences."""
        if isinstance(command, UnlinkCard):
            with contextlib.suppress(NotFound):  # the rules say that it does not wait for that
                parent = (await self._store.cards.card(command.parent)).id
                command = msgspec.structs.replace(command, parent=parent)
        if isinstance(command, LinkCard):
            parent = (await self._store.cards.card(command.parent)).id
            async with self._linking:  # so that two links cannot form a cycle together
                await self._no_cycle(card, parent)
                return await self._execute(card, msgspec.structs.replace(command, parent=parent), caller)
        return await self._execute(card, command, caller)

    async def _execute(self, card: str, command: CardCommand, caller: Caller) -> Appended:
        if isinstance(command, EditCard):
            command = await self._checked_edit(card, command)

        async def change() -> CardChange:
            state = await self.get(card)
            events = decide_card(state, command, id=caller.key.id, by=caller.by, now=self._clock.now())
            if isinstance(command, MoveCard) and command.status == "todo":
                await self._check_waits(state)
            return CardChange(state, events, caller.by)

        return await self.transact(change, command=caller.key)

    async def _node_of(self, chosen: str, profile: str, node: str) -> str:
        """Return the node for a workspace, which is checked if it is here; one that only this node has stays here."""
        await self.nodes.check(node)
        if not await self.nodes.fits_here(self.nodes.placement(profile, node)):
            return node
        await self.mounts.run(lambda: workspace.check(chosen))
        _, _, path = chosen.partition(":")
        private = self._store.is_shared and path and await self.nodes.shared.why_private(path)
        return self._store.node if private and not node else node

    async def _checked_edit(self, id: str, command: EditCard) -> EditCard:
        card = await self.get(id)
        node = card.node if command.node is None else command.node
        if command.workspace is not None:
            node = await self._node_of(command.workspace, command.profile or card.profile, node)
        elif command.node is not None:
            await self.nodes.check(node)
        changed = command.node is not None or node != card.node
        return msgspec.structs.replace(command, node=node) if changed else command

    async def _check_waits(self, card: Card) -> None:
        """Refuse to move a card to todo that the board would make ready again at once."""
        if all(parent.done for parent in await self._store.cards.parents(card.id)):
            raise Conflict(
                f"{card.label} does not wait for another card, so the board would move it from todo to ready at once.",
                hint=f"Move it to triage, or let it wait for a card first: `holdfast card link {card.label} PARENT`.",
            )

    async def transact(self, decide: Callable[[], Awaitable[CardChange]], *, command: CommandKey) -> Appended:
        """Append what `decide` returns, with its consequences; decide again after a conflict."""

        async def writes() -> tuple[Write, ...]:
            return await self._writes(await decide())

        return self._written(await self._store.transact(self._clock, writes, command=command))

    async def write(self, change: CardChange, *also: Write) -> bool:
        """Append the change with its consequences; return False after a conflict."""
        writes = await self._writes(change)
        try:
            self._written(await self._store.append(Append((*writes, *also), self._clock.now())))
        except VersionConflict:
            return False
        return True

    async def _writes(self, change: CardChange) -> tuple[Write, ...]:
        card, run = change.card, change.card.run
        session = await self._sessions.get(run.started.session) if run is not None else None
        if session is not None and not session.exists:
            session = None
        events = [self._completed(card, event, session) for event in change.events]
        writes = [Write(card_stream(card.id), tuple(events), expect=card.version)]
        if session is not None:
            writes += self._to_worker(card, events, session, change.by)
        writes += await self._notices(card, events, None if session is None else session.id)
        return (*writes, *await self._processes(card, events, change.by))

    def _written(self, appended: Appended) -> Appended:
        self._sessions.apply(appended.records)
        self._running.signal(appended.records)
        return appended

    def _completed(self, card: Card, event: CardEvent, session: Session | None) -> CardEvent:
        """Return the event; the end of a run with its progress and unread comments, taken from the session."""
        run = card.run
        if not isinstance(event, RunFinished) or session is None or run is None:
            return event
        after = run.started.after_turn
        # a text without a report on the card, even after a reminder, is no progress
        real = ToolResult if event.failure == "left_without_a_word" else AgentMessage | ToolResult
        # its own report is progress, also one over MCP that comes before the words of an external agent were read
        reported = event.outcome in ("done", "blocked")
        progress = reported or any(m.turn > after for m in session.messages[-200:] if isinstance(m, real))
        unread = [q.event.ref for q in session.queue if q.event.source == "comment"]
        return msgspec.structs.replace(event, progress=progress, until_turn=session.turns, unread_comments=unread)

    def _to_worker(self, card: Card, events: list[CardEvent], session: Session, by: Actor) -> list[Write]:
        """Return the writes to the session and the task of its run: comments, and the end of the run."""
        run = card.run
        assert run is not None
        added: list[AnyEvent] = []
        for event in events:
            match event:
                case CardCommented(comment=comment, text=text):
                    text = comment_input(str(event.by), text)
                    id = COMMENT + comment
                    added.append(
                        InputReceived(input=id, text=text, mode="steer", by=event.by, source="comment", ref=comment)
                    )
                case RunFinished() as ended:
                    added += [InputWithdrawn(input=q.event.input, by=by) for q in session.queue if _is_from_board(q)]
                    # a worker that reported `done` or `blocked` may still write a closing message
                    reported = ended.outcome in ("done", "blocked")
                    if session.turn is not None and session.turn.stop is None and not reported:
                        added.append(StopRequested(turn=session.turn.number, by=by))
                    added.append(RunReleased(card=card.id, run=run.number, card_number=card.number))
                case _:
                    pass
        if not added:
            return []
        ends = next((event for event in events if isinstance(event, RunFinished)), None)
        writes = [Write(session_stream(session.id), tuple(added), expect=session.version if ends is not None else None)]
        if ends is not None:
            summary = next((event.summary for event in events if isinstance(event, CardCompleted)), ends.reason)
            writes.append(run_finished(card, run, ends, summary=summary))
        return writes

    async def _notices(self, card: Card, events: list[CardEvent], worker: str | None) -> list[Write]:
        """Return the notes for the sessions that follow the card: about a block, a completion or a failure."""
        notes = [text for event in events if (text := follower_note(card, event))]
        if not notes:
            return []
        found = []
        for session in card.followers:
            try:
                row = await self._store.session(session)
            except HoldfastError:
                continue
            if row.id == session and session != worker:
                found.append(Write(session_stream(session), (NoteReceived(text="\n".join(notes), task=""),)))
        return found

    async def _processes(self, card: Card, events: list[CardEvent], by: Actor) -> tuple[Write, ...]:
        over = any(
            isinstance(event, CardCompleted) or (isinstance(event, CardMoved) and event.status == "archived")
            for event in events
        )
        if not over:
            return ()
        # they survive a block but not the card; an external agent may still write a closing message (`IdleAgents`)
        running = await self.processes.commands(card)
        return await self.processes.stop_writes(running, by=by, reason=f"card {card.label} ended")

    async def _no_cycle(self, card: str, parent: str) -> None:
        above: dict[str, list[str]] = {}
        for one, child in await self._store.cards.links():
            above.setdefault(child, []).append(one)
        path = _path(above, parent, card)
        if path:
            labels = [(await self.get(one)).label for one in (card, *path)]
            raise Conflict(f"These links would form a cycle: {' → '.join(labels)}.")


def _is_from_board(queued: QueuedInput) -> bool:
    """Return whether an input came from the board. Such inputs are withdrawn when the run ends."""
    return queued.event.source in ("comment", "run", "reminder")


def _path(above: dict[str, list[str]], start: str, goal: str) -> list[str]:
    """Return the path of links from one card up to another."""
    ways, seen = [[start]], {start}
    while ways:
        way = ways.pop()
        if way[-1] == goal:
            return way
        for one in above.get(way[-1], ()):
            if one not in seen:
                seen.add(one)
                ways.append([*way, one])
    return []
