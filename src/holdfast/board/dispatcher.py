"""The dispatcher: starts cards that are ready, and finds out what became of those that run.

Woken by events, with a slow sweep as a belt. It keeps nothing in memory that the log does not say: a run that was
open when the gateway died is open, its session's turn goes on by itself, and it is the same run.
No run starts while an old worker may still be there: its turn must have ended.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable

from holdfast.board import workspace
from holdfast.board.cards import Cards
from holdfast.board.watch import Watch
from holdfast.domain.card import (
    Card,
    CardBlocked,
    CardEvent,
    CardMoved,
    Run,
    RunFinished,
    RunNudged,
    RunStarted,
    card_stream,
)
from holdfast.domain.compaction import digest
from holdfast.domain.decide import title_from
from holdfast.domain.dispatch import (
    NUDGE,
    Choice,
    Verdict,
    Words,
    World,
    choose,
    how_runs_ended,
    resumable,
    standing,
    timed_out,
    verdict,
    words,
)
from holdfast.domain.duration import ago
from holdfast.domain.errors import Conflict, HoldfastError
from holdfast.domain.events import (
    AnyEvent,
    InputReceived,
    NoteReceived,
    SessionCreated,
    session_stream,
)
from holdfast.domain.session import Session
from holdfast.domain.task import THE_BOARD, TaskStarted, task_stream, title_of
from holdfast.domain.worker import WorkerBound
from holdfast.runtime.clock import Clock
from holdfast.runtime.pen import happens
from holdfast.runtime.profiles import Profiles
from holdfast.runtime.sessions import Sessions
from holdfast.settings import span_ms
from holdfast.store.port import Append, Store, Write

SWEEP_SECONDS = 15.0
ENDS = frozenset({"TurnFinished", "WorkerBound", "InputWithdrawn"})
log = logging.getLogger(__name__)


class Dispatcher:
    """Starts and settles runs; `start` and `stop` are its whole life."""

    def __init__(
        self,
        store: Store,
        *,
        cards: Cards,
        sessions: Sessions,
        profiles: Profiles,
        clock: Clock,
        watch: Watch | None = None,
    ) -> None:
        self._store = store
        self._cards = cards
        self._sessions = sessions
        self._profiles = profiles
        self._clock = clock
        self._watch = watch or Watch()
        self._woken = asyncio.Event()
        self._looking = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Look at once, then whenever something happens."""
        ready = asyncio.Event()
        self._tasks = [asyncio.create_task(self._follow(ready)), asyncio.create_task(self._again_and_again())]
        await ready.wait()

    async def stop(self) -> None:
        """Until the next start; the workers are the runner's."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _follow(self, ready: asyncio.Event) -> None:
        with self._store.subscribe(None) as changes:
            ready.set()
            while True:
                await changes.wait()
                for stream, kinds in changes.take().items():
                    if stream.startswith(("card/", "board/")) or kinds & ENDS:
                        self._woken.set()

    async def _again_and_again(self) -> None:
        while True:
            self._woken.clear()
            try:
                await self.look()
            except (HoldfastError, OSError) as error:
                log.warning("the board is looked at again later: %s", error)
            await happens(self._woken, within=SWEEP_SECONDS)

    async def look(self) -> None:
        """One round: settle what has ended, promote what became ready, start what can be started."""
        async with self._looking:  # the limits count on it
            running = await self._store.cards.running()
            self._watch.only({(str(row["card"]), int(str(row["run"]))) for row in running})
            for row in running:
                await self._one(str(row["card"]), self._settle)
            for row in await self._store.cards.to_do():
                await self._one(str(row["id"]), self._consider)
            await self._cards.tidy_up()

    async def _one(self, card: str, look: Callable[[str], Awaitable[None]]) -> None:
        """Trouble with one card must not keep the others from being looked at."""
        try:
            await look(card)
        except (HoldfastError, OSError) as error:
            log.warning("card %s is looked at again later: %s", card, error)
        except Exception:
            log.exception("a bug about card %s; it is looked at again later", card)

    # --- starting -------------------------------------------------------------------------------

    async def world(self, card: Card) -> World:
        """What the card stands in."""
        running = await self._store.cards.running()
        boards = Counter(str(row["board"]) for row in running)
        profiles = Counter(str(row["profile"]) for row in running)
        waits = [row for row in await self._store.cards.parents(card.id) if row["status"] != "done"]
        board = next((row for row in await self._store.cards.boards() if row["id"] == card.board), None)
        rules = self._profiles.settings.board
        return World(
            paused_by="" if board is None else str(board["paused_by"]),
            board_gone=board is not None and bool(board["archived"]),
            profiles=frozenset(self._profiles.names),
            waits_for=[f"card {row['id']} “{row['title']}” ({row['status']})" for row in waits],
            running=len(running),
            max_running=rules.max_running,
            on_board=boards[card.board],
            max_per_board=rules.max_per_board,
            with_profile=profiles[card.profile],
            max_per_profile=rules.max_per_profile,
            not_gone=await self._cards.not_gone(card),
        )

    async def why_not(self, card: Card) -> str:
        """Why it is not started; nothing when it is about to be."""
        return standing(card, await self.world(card), now=self._clock.now())

    async def preview(self, card: Card) -> tuple[Choice, Words]:
        """Whose session the next run would go on with, and what it would be told."""
        choice, hand_over = await self._choose(card)
        said = words(card, choice, found="not looked at yet", hand_over=hand_over, now=self._clock.now())
        return choice, said

    async def _choose(self, card: Card) -> tuple[Choice, str]:
        policy = card.resume or self._profiles.resume_of(card.profile) or self._profiles.settings.board.resume
        last = resumable(card)
        choice = choose(card, policy, missing=await self._missing(last))
        if choice.resumes is not None or not card.runs:
            return choice, ""
        said = "" if last is None else digest((await self._sessions.get(last.started.session)).context())
        return choice, "\n".join(filter(None, (how_runs_ended(card), said)))

    async def _consider(self, id: str) -> None:
        card, now = await self._cards.get(id), self._clock.now()
        if card.status == "scheduled" and card.scheduled_at is not None and card.scheduled_at <= now:
            await self._promote(card, "its time has come")
        elif card.status == "todo" and not (await self.world(card)).waits_for:
            await self._promote(card, "all that it waited for is done")
        if card.status == "ready" and not standing(card, await self.world(card), now=now):
            await self._start(card)

    async def _promote(self, card: Card, reason: str) -> None:
        await self._cards.write(
            card, [CardMoved(card=card.id, status="ready", reason=reason, by=THE_BOARD)], by=THE_BOARD
        )
        await self._cards.get(card.id)

    async def _start(self, card: Card) -> None:
        version = card.version
        choice, hand_over = await self._choose(card)
        if choice.refused:
            await self._block(card, f"its policy is `resume`, and that cannot be: {choice.refused}")
            return
        try:
            found = await asyncio.to_thread(
                workspace.prepare, card, self._cards.root, anew=choice.resumes is None or card.swept
            )
        except (workspace.Unusable, OSError) as error:
            await self._block(card, f"its workspace cannot be used: {error}")
            return
        said = words(card, choice, found=found.words, hand_over=hand_over, now=self._clock.now())
        if card.version == version:
            await self.claim(card, choice, found, said)

    async def claim(self, card: Card, choice: Choice, found: workspace.Found, said: Words) -> bool:
        """The run, its session, its task and its first words in one append: whoever is second is not it."""
        if card.run is not None:
            return False
        number, version = len(card.runs) + 1, card.version
        session = secrets.token_hex(8) if choice.resumes is None else choice.resumes.started.session
        state = await self._sessions.get(session)
        task = secrets.token_hex(8)
        run = RunStarted(
            card=card.id,
            run=number,
            session=session,
            task=task,
            profile=card.profile,
            resumes=0 if choice.resumes is None else choice.resumes.number,
            after_turn=state.turns,
            workspace=str(found.path),
            found=found.words,
            fresh_because=choice.fresh_because,
        )
        begins: list[AnyEvent] = []
        if choice.resumes is None:
            title = title_from(card.title)
            born = SessionCreated(session=session, profile=card.profile, cwd=str(found.path), title=title, by=THE_BOARD)
            begins.append(born)
        begins += [
            WorkerBound(card=card.id, run=number, cwd=str(found.path)),
            NoteReceived(text=said.note, task=task),
            InputReceived(input=f"run-{card.id}-{number}", text=said.text, mode="queue", by=THE_BOARD),
        ]
        started = TaskStarted(
            task=task,
            of="card",
            title=title_of(card.title),
            command=card.body or card.title,
            cwd=str(found.path),
            by=THE_BOARD,
            worker=session,
        )
        fresh = choice.resumes is None and card.runs
        ends = await self._cards.stop_processes(card, by=THE_BOARD, reason="a fresh start of its card") if fresh else ()
        if card.version != version:
            return False
        writes = (
            Write(card_stream(card.id), (run,), expect=version),
            Write(session_stream(session), tuple(begins), expect=state.version),
            Write(task_stream(task), (started,), expect=0),
            *ends,
        )
        try:
            await self._store.append(Append(writes, self._clock.now()))
        except Conflict as error:
            log.info("card %s is not started now: %s", card.id, error)
            self._woken.set()
            return False
        self._cards.enforce(ends)
        how = f"resumes run {run.resumes}" if run.resumes else "a fresh session"
        log.info("card %s: run %d in session %s, %s", card.id, number, session, how)
        return True

    async def _missing(self, run: Run | None) -> str:
        """Why the session of a run cannot be gone on with."""
        if run is None:
            return ""
        state = await self._sessions.get(run.started.session)
        if not state.exists:
            return f"session {run.started.session} of run {run.number} was deleted"
        if state.profile != run.started.profile:
            return f"session {state.id} was given the profile {state.profile}, and run {run.number} had another"
        return ""

    async def _block(self, card: Card, reason: str) -> None:
        block = CardBlocked(card=card.id, of="capability", reason=reason, by=THE_BOARD)
        await self._cards.write(card, [block], by=THE_BOARD)

    # --- settling -------------------------------------------------------------------------------

    async def _settle(self, id: str) -> None:
        card, now = await self._cards.get(id), self._clock.now()
        run = card.run
        if run is None:
            return
        session = await self._sessions.get(run.started.session)
        if not session.exists:
            lost = f"its session {session.id} was deleted"
            await self._end(card, run, Verdict("lost", lost, counts=False), outcome="lost")
            return
        if session.turn is not None or session.queue:
            await self._goes_on(card, run, session, now)
            return
        last = session.last_turn
        if last is None or session.turns <= run.started.after_turn:
            return  # its first turn is about to begin
        limit = card.max_attempts or self._profiles.settings.board.max_attempts
        found = verdict(card, outcome=last.outcome, reason=last.reason, problem=last.problem, limit=limit, now=now)
        if found.nudge:
            await self._nudge(card, run, session)
        else:
            await self._end(card, run, found, outcome="stopped" if last.outcome == "stopped" else "failed")

    async def _goes_on(self, card: Card, run: Run, session: Session, now: int) -> None:
        """A run that goes on: for too long, without anything that moves, or only if a person wants it to."""
        rules = self._profiles.settings.board
        turn = session.turn
        wait = None if turn is None else turn.wait
        if wait is not None and wait.purpose == "resume":
            await self._end(card, run, Verdict("", wait.reason, block="needs_input"), outcome="stopped")
            return
        limit = card.max_attempts or rules.max_attempts
        partial = await self._store.partial(session_stream(session.id))
        sign = (session.version, 0 if partial is None else partial.at)
        waits = turn is None or wait is not None or bool(turn.suspended)
        worked, still = self._watch.look((card.id, run.number), sign, waits=waits)
        most = card.max_runtime_ms or span_ms(rules.max_runtime) or 0
        if most and worked > most:
            reason = f"it worked for {ago(worked)}, longer than max_runtime ({ago(most)})"
            await self._end(card, run, timed_out(card, "timeout", reason, limit=limit, now=now), outcome="failed")
            return
        frozen = span_ms(rules.frozen_after) or 0
        if frozen and still > frozen and turn is not None and not turn.open_calls:
            reason = f"nothing moved for {ago(still)} (frozen_after)"
            await self._end(card, run, timed_out(card, "frozen", reason, limit=limit, now=now), outcome="failed")

    async def _nudge(self, card: Card, run: Run, session: Session) -> None:
        """Ask once for a word about the card, in a turn of its own."""
        nudged = RunNudged(card=card.id, run=run.number)
        asked = InputReceived(input=f"nudge-{card.id}-{run.number}", text=NUDGE, mode="queue", by=THE_BOARD)
        also = (Write(session_stream(session.id), (asked,), expect=session.version),)
        await self._cards.write(card, [nudged], by=THE_BOARD, also=also)

    async def _end(self, card: Card, run: Run, found: Verdict, *, outcome: str) -> None:
        events: list[CardEvent] = [
            RunFinished(
                card=card.id,
                run=run.number,
                outcome="lost" if outcome == "lost" else "stopped" if outcome == "stopped" else "failed",
                reason=found.reason,
                failure=found.failure,
                counts=found.counts,
                again_at=found.again_at,
            )
        ]
        if found.block is not None:
            block = CardBlocked(card=card.id, of=found.block, reason=found.reason, by=THE_BOARD, run=run.number)
            events.append(block)
        if await self._cards.write(card, events, by=THE_BOARD) is not None:
            log.info("card %s: run %d ended as %s: %s", card.id, run.number, outcome, found.reason)
