"""Which cards are started, why the others are not, and what a run begins with.

`not_startable_reason` decides; the query before it only leaves out cards whose row already rules them out.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Callable

from holdfast.board import workspace
from holdfast.board.cards import CardChange, Cards
from holdfast.clock import Clock
from holdfast.domain.card import Board, Card, Run
from holdfast.domain.card_advice import Advice, Parent, advice
from holdfast.domain.dispatch import (
    FirstInput,
    SessionChoice,
    StartConditions,
    choose_session,
    earlier_runs,
    first_input,
    not_startable_reason,
    resumable,
)
from holdfast.domain.errors import VersionConflict
from holdfast.domain.events import AnyEvent, card_stream, session_stream
from holdfast.domain.events.actor import THE_BOARD
from holdfast.domain.events.card import CardBlocked, CardMoved, ResumePolicy, RunStarted
from holdfast.domain.events.parts import ForRun
from holdfast.domain.events.session import InputReceived, NoteReceived, RunBound, SessionCreated, SessionRestored
from holdfast.domain.session import Session
from holdfast.domain.session_rules import title_from
from holdfast.domain.summary_input import digest
from holdfast.profiles import Profiles
from holdfast.sessions import Sessions
from holdfast.store.contract import Append, Store, Write
from holdfast.store.filters import StartQuery
from holdfast.store.rows import CardRow, OpenRun, StartableCard
from holdfast.tasks.log import run_started

log = logging.getLogger(__name__)


class Capacity:
    """How many cards run and how many more may; computed once for all cards of a round."""

    def __init__(self, running: list[OpenRun], boards: list[Board], profiles: Profiles) -> None:
        self._rules = profiles.settings.board
        self._boards = {board.id: board for board in boards}
        self._profiles = frozenset(profiles.names)
        self._running = len(running)
        self._on_board = Counter(row.board for row in running)
        self._with_profile = Counter(row.profile for row in running)

    def conditions_for(
        self, card: Card, *, waits_for: list[str], previous_worker: str, policy: ResumePolicy, refused: str
    ) -> StartConditions:
        """Return what decides, besides the card itself, whether it is started."""
        board = self._boards.get(card.board)
        return StartConditions(
            paused_by="" if board is None else board.paused_by,
            board_gone=board is not None and board.archived,
            profiles=self._profiles,
            waits_for=waits_for,
            running=self._running,
            max_running=self._rules.max_running,
            on_board=self._on_board[card.board],
            max_per_board=self._rules.max_per_board,
            with_profile=self._with_profile[card.profile],
            max_per_profile=self._rules.max_per_profile,
            previous_worker=previous_worker,
            policy=policy,
            refused=refused,
        )

    def wanted(self, *, exclude: list[str]) -> StartQuery | None:
        """Return the query for cards that the limits allow; None when they allow none."""
        on_board, with_profile = self._rules.max_per_board, self._rules.max_per_profile
        boards = [
            id
            for id, board in self._boards.items()
            if not (board.archived or board.paused_by) and not 0 < on_board <= self._on_board[id]
        ]
        profiles = [name for name in self._profiles if not 0 < with_profile <= self._with_profile[name]]
        left = self._rules.max_running - self._running
        if left <= 0 or not boards or not profiles:
            return None
        return StartQuery(boards=boards, profiles=profiles, limit=left, exclude=exclude)

    def that_fit(self, found: list[StartableCard]) -> list[str]:
        """Return those cards that can be started together; always the first."""
        on_board, with_profile = self._on_board.copy(), self._with_profile.copy()
        fit: list[str] = []
        for row in found:
            board, profile = row.board, row.profile
            on_board[board] += 1
            with_profile[profile] += 1
            if not 0 < self._rules.max_per_board < on_board[board] and not (
                0 < self._rules.max_per_profile < with_profile[profile]
            ):
                fit.append(row.id)
        return fit


class Starter:
    """Begins runs."""

    def __init__(
        self,
        store: Store,
        *,
        cards: Cards,
        sessions: Sessions,
        profiles: Profiles,
        clock: Clock,
        wake: Callable[[], None],
    ) -> None:
        self._store = store
        self._cards = cards
        self._sessions = sessions
        self._profiles = profiles
        self._clock = clock
        self._wake = wake
        self._preparing = asyncio.Lock()  # two work trees of one repository are not made at once

    async def capacity(self) -> Capacity:
        """Return the current capacity."""
        return Capacity(await self._store.cards.open_runs(), await self._store.cards.boards(), self._profiles)

    async def ready(self, capacity: Capacity, *, exclude: list[str]) -> list[str]:
        """Return the most urgent cards that may be started together."""
        wanted = capacity.wanted(exclude=exclude)
        return (
            [] if wanted is None else capacity.that_fit(await self._store.cards.to_start(wanted, now=self._clock.now()))
        )

    async def _not_startable_reason(self, card: Card, capacity: Capacity) -> str:
        waits, previous_worker = await self._waits_for(card), await self._cards.previous_worker(card)
        refused = await self.refused(card)
        conditions = capacity.conditions_for(
            card, waits_for=waits, previous_worker=previous_worker, policy=self._policy(card), refused=refused
        )
        return not_startable_reason(card, conditions, now=self._clock.now())

    async def advice(self, card: Card) -> Advice | None:
        """Return what a person can do about a card; None if it needs no person."""
        parents = await self._store.cards.parents(card.id)
        dead = [Parent(row.id, row.title) for row in parents if row.status == "archived" and not row.done]
        profiles = frozenset(self._profiles.names)
        return advice(card, profiles=profiles, dead_parents=dead, refused=await self.refused(card))

    async def refused(self, card: Card) -> str:
        """Return why the policy `resume` would block a blocked card again; empty if it would not."""
        if card.status != "blocked":
            return ""
        return choose_session(card, self._policy(card), missing=await self._why_not_resumable(resumable(card))).refused

    def _policy(self, card: Card) -> ResumePolicy:
        return card.resume or self._profiles.resume_policy(card.profile)

    async def _waits_for(self, card: Card) -> list[str]:
        parents = await self._store.cards.parents(card.id)
        return [_named(row, card) for row in parents if not row.done]

    async def why_not(self, card: Card) -> str:
        """Return why a card is not started; empty when it is about to be."""
        return await self._not_startable_reason(card, await self.capacity())

    async def why_not_started(self, cards: list[Card]) -> dict[str, str]:
        """Return `why_not` for many cards, by their ids."""
        capacity = await self.capacity() if cards else None
        return {card.id: await self._not_startable_reason(card, capacity) for card in cards if capacity is not None}

    async def preview(self, card: Card) -> tuple[SessionChoice, FirstInput]:
        """Return which session the next run would continue, and its first input."""
        choice, hand_over = await self._choose(card)
        said = first_input(card, choice, found="not looked at yet", hand_over=hand_over, now=self._clock.now())
        return choice, said

    async def _choose(self, card: Card) -> tuple[SessionChoice, str]:
        policy = self._policy(card)
        last = resumable(card)
        choice = choose_session(card, policy, missing=await self._why_not_resumable(last))
        if choice.resumes is not None or not card.runs:
            return choice, ""
        said = "" if last is None else digest((await self._sessions.get(last.started.session)).visible_messages())
        return choice, "\n".join(filter(None, (earlier_runs(card), said)))

    async def promote(self, id: str) -> None:
        """Make a card ready whose parents are done, or whose time has come."""
        card, now = await self._cards.get(id), self._clock.now()
        if card.status == "scheduled" and card.scheduled_at is not None and card.scheduled_at <= now:
            reason = "its time has come"
        elif card.status == "todo" and not await self._waits_for(card):
            reason = "all that it waited for is done"
        else:
            return  # it was changed just now
        moved = CardMoved(card=id, status="ready", reason=reason, by=THE_BOARD)
        await self._cards.write(CardChange(card, [moved], THE_BOARD))

    async def start_if_possible(self, id: str, capacity: Capacity) -> None:
        """Start a card, unless something prevents it after all."""
        card = await self._cards.get(id)
        if card.status == "ready" and not await self._not_startable_reason(card, capacity):
            await self._start(card)

    async def _start(self, card: Card) -> None:
        choice, hand_over = await self._choose(card)
        if choice.refused:
            await self._block(card, f"its policy is `resume`, and that cannot be: {choice.refused}")
            return
        if choice.resumes is None and not await self._cards.end_processes(card, reason="a fresh start of its card"):
            return  # the end of the last of them wakes the dispatcher
        try:
            async with self._preparing:
                found = await asyncio.to_thread(
                    workspace.prepare, card, self._cards.root, anew=choice.resumes is None or card.workspace_removed
                )
        except (workspace.Unusable, OSError) as error:
            await self._block(card, f"its workspace cannot be used: {error}")
            return
        said = first_input(card, choice, found=found.words, hand_over=hand_over, now=self._clock.now())
        await self.begin_run(card, choice, found, said)

    async def begin_run(
        self, card: Card, choice: SessionChoice, found: workspace.WorkspaceState, said: FirstInput
    ) -> bool:
        """Start a run with its session, task and first input in one append, which fails if another run was first."""
        if card.run is not None:
            return False
        number = len(card.runs) + 1
        session = secrets.token_hex(8) if choice.resumes is None else choice.resumes.started.session
        state = Session(session) if choice.resumes is None else await self._sessions.get(session)
        if state.turn is not None:
            return False  # a turn has just begun in it; its end wakes the dispatcher
        task = secrets.token_hex(8)
        run = RunStarted(
            card=card.id,
            run=number,
            session=session,
            task=task,
            profile=card.profile,
            resumed_run=0 if choice.resumes is None else choice.resumes.number,
            after_turn=state.turns,
            workspace=str(found.path),
            workspace_state=found.words,
            fresh_reason=choice.fresh_because,
            rights=card.rights,
        )
        begins = _first_events(card, run, state, said)
        writes = (
            Write(card_stream(card.id), (run,), expect=card.version),
            Write(session_stream(session), tuple(begins), expect=state.version),
            run_started(card, task=task, session=session, cwd=str(found.path)),
        )
        try:
            await self._store.append(Append(writes, self._clock.now()))
        except VersionConflict as error:
            log.info("card %s is not started now: %s", card.id, error)
            self._wake()
            return False
        how = f"resumes run {run.resumed_run}" if run.resumed_run else "a fresh session"
        log.info("card %s: run %d in session %s, %s", card.id, number, session, how)
        return True

    async def _why_not_resumable(self, run: Run | None) -> str:
        """Return why the session of a run cannot be continued; empty if it can."""
        if run is None:
            return ""
        state = await self._sessions.get(run.started.session)
        if not state.exists:
            return f"session {run.started.session} of run {run.number} was deleted"
        if state.profile != run.started.profile:
            return f"session {state.id} was given the profile {state.profile}, and run {run.number} had another"
        if (
            run.finished is not None
            and state.chapter.number > 1
            and state.chapter.after_turn >= run.finished.until_turn
        ):
            return f"session {state.id} was reset since run {run.number}"
        return ""

    async def _block(self, card: Card, reason: str) -> None:
        block = CardBlocked(card=card.id, block_kind="capability", reason=reason, by=THE_BOARD)
        await self._cards.write(CardChange(card, [block], THE_BOARD))


def _first_events(card: Card, run: RunStarted, state: Session, said: FirstInput) -> list[AnyEvent]:
    """Return the events with which a run begins or continues its session."""
    events: list[AnyEvent] = []
    if not run.resumed_run:
        born = SessionCreated(
            session=run.session,
            profile=card.profile,
            cwd=run.workspace,
            title=title_from(card.title),
            by=THE_BOARD,
            origin=ForRun(),
            rights=card.rights,
        )
        events.append(born)
    elif state.archived:
        events.append(SessionRestored(by=THE_BOARD))
    return [
        *events,
        RunBound(card=card.id, run=run.run, cwd=run.workspace, rights=card.rights),
        NoteReceived(text=said.note, task=run.task),
        InputReceived(
            input=f"run-{card.id}-{run.run}", text=said.text, mode="queue", by=THE_BOARD, source="run", ref=card.id
        ),
    ]


def _named(parent: CardRow, card: Card) -> str:
    """Return the name of a card that another one waits for, with what to do if it will never be done."""
    named = f"card {parent.id} “{parent.title}”"
    if parent.status == "archived":
        return f"{named} (archived, never done) (`holdfast card unlink {card.id} {parent.id}`)"
    return f"{named} ({parent.status})"
