"""The life of a run: one attempt of a worker at a card.

    start   choose the session, prepare the workspace, begin: run, session, task and first input are one append
    check   does its turn continue, does it take too long, or has it ended? Then what happens to the card?
    end     by the board; workers and people end a run with a command about its card (`worker_tools.py`, `cards.py`)

Apart from how long a run has worked (`RunTimer`), nothing is kept in memory that is not in the log: a run that was open
when the gateway was killed is still open, and its session's turn resumes.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.board import workspace
from holdfast.board.cards import CardChange, Cards
from holdfast.clock import Clock
from holdfast.domain.card import Card, Run
from holdfast.domain.dispatch import (
    REMINDER,
    FirstInput,
    RunVerdict,
    SessionChoice,
    choose_session,
    earlier_runs,
    first_input,
    resumable,
    run_verdict,
    timed_out,
)
from holdfast.domain.events import AnyEvent, card_stream, session_stream
from holdfast.domain.events.actor import THE_BOARD
from holdfast.domain.events.card import (
    CardBlocked,
    CardEvent,
    ResumePolicy,
    RunFinished,
    RunOutcome,
    RunReminded,
    RunStarted,
)
from holdfast.domain.events.parts import ForRun
from holdfast.domain.events.run_binding import RunBound
from holdfast.domain.events.session import InputReceived, NoteReceived, SessionCreated, SessionRestored
from holdfast.domain.placement import Placement
from holdfast.domain.session import Session
from holdfast.domain.session_rules import title_from
from holdfast.domain.summary import digest
from holdfast.domain.text import duration
from holdfast.nodes import Nodes
from holdfast.profiles import Profiles
from holdfast.sessions import Sessions
from holdfast.settings import span_ms
from holdfast.store.contract import Append, Store, Write
from holdfast.store.rows import OpenRun
from holdfast.tasks.log import run_started

PREPARE_SECONDS = 300.0
"""For all git commands that prepare a workspace."""
MOST_SECONDS = 60.0
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Open:
    """A card with its open run."""

    card: Card
    run: Run


class Runs:
    """Starts, checks and ends the runs of cards."""

    def __init__(
        self,
        store: Store,
        *,
        cards: Cards,
        sessions: Sessions,
        profiles: Profiles,
        nodes: Nodes,
        clock: Clock,
        timer: RunTimer,
    ) -> None:
        self._store = store
        self._cards = cards
        self._sessions = sessions
        self._profiles = profiles
        self._nodes = nodes
        self._clock = clock
        self._timer = timer
        self._preparing = asyncio.Lock()  # git cannot add two worktrees of a repository at once

    # --- start ----------------------------------------------------------------------------------

    async def start(self, card: Card) -> None:
        """Start a run of a card; block the card if that is not possible."""
        choice, hand_over = await self._choose(card)
        if choice.refused:
            await self._block(card, f"its policy is `resume`, but its session cannot be resumed: {choice.refused}")
            return
        ends = self._cards.processes.end_all
        if choice.resumes is None and not await ends(card, reason="its card starts a new session"):
            return  # the end of the last of them wakes the dispatcher
        try:
            async with self._preparing:
                anew = choice.resumes is None or card.workspace_removed
                found = await self._cards.mounts.run_within(
                    PREPARE_SECONDS, lambda: workspace.prepare(card, self._cards.root, anew=anew)
                )
        except TimeoutError:  # a network file system that hangs must not keep other cards from starting
            await self._block(card, f"its workspace did not answer within {PREPARE_SECONDS:.0f} s")
            return
        except (workspace.Unusable, OSError) as error:
            await self._block(card, f"its workspace cannot be used: {error}")
            return
        said = first_input(card, choice, found=found.words, hand_over=hand_over, now=self._clock.now())
        await self.begin(card, choice, found, said)

    async def begin(self, card: Card, choice: SessionChoice, found: workspace.WorkspaceState, said: FirstInput) -> bool:
        """Append a run with its session, task and first input; return whether it began.

        VersionConflict if the card or the session changed meanwhile.
        """
        if card.run is not None:
            return False
        number = len(card.runs) + 1
        session = secrets.token_hex(8) if choice.resumes is None else choice.resumes.started.session
        state = Session(session) if choice.resumes is None else await self._sessions.get(session)
        if state.turn is not None:
            return False  # a turn has just begun there; its end wakes the dispatcher
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
            driver=self._profiles.driver(card.profile),
            rights=card.rights,
            node=self._store.node,
        )
        must_remember = choice.resumes is not None and self.resume_policy(card) == "resume"
        begins = _first_events(card, run, state, said, must_remember=must_remember)
        writes = (
            Write(card_stream(card.id), (run,), expect=card.version),
            Write(session_stream(session), tuple(begins), expect=state.version),
            run_started(card, task=task, session=session, cwd=str(found.path)),
        )
        await self._store.append(Append(writes, self._clock.now()))
        how = f"continues run {run.resumed_run}" if run.resumed_run else "new session"
        log.info("card %s: run %d in session %s, %s", card.label, number, session, how)
        return True

    async def _block(self, card: Card, reason: str) -> None:
        block = CardBlocked(card=card.id, block_kind="capability", reason=reason, by=THE_BOARD)
        await self._cards.write(CardChange(card, [block], THE_BOARD))

    # --- which session --------------------------------------------------------------------------

    async def preview(self, card: Card) -> tuple[SessionChoice, FirstInput]:
        """Return which session the next run would continue, and its first input."""
        choice, hand_over = await self._choose(card)
        said = first_input(card, choice, found="not prepared yet", hand_over=hand_over, now=self._clock.now())
        return choice, said

    async def _choose(self, card: Card) -> tuple[SessionChoice, str]:
        last = resumable(card)
        choice = choose_session(card, self.resume_policy(card), missing=await self._why_not_resumable(last))
        if choice.resumes is not None or not card.runs:
            return choice, ""
        said = "" if last is None else digest((await self._sessions.get(last.started.session)).visible_messages())
        return choice, "\n".join(filter(None, (earlier_runs(card), said)))

    def resume_policy(self, card: Card) -> ResumePolicy:
        """Return the card's own policy, else its profile's, else the general one."""
        return card.resume or self._profiles.resume_policy(card.profile)

    async def why_resume_is_refused(self, card: Card) -> str:
        """Return why a blocked card with the policy `resume` would be blocked again; empty if it would not."""
        if card.status != "blocked":
            return ""
        return choose_session(
            card, self.resume_policy(card), missing=await self._why_not_resumable(resumable(card))
        ).refused

    async def _why_not_resumable(self, run: Run | None) -> str:
        """Return why the session of a run cannot be continued; empty if it can."""
        if run is None:
            return ""
        state = await self._sessions.get(run.started.session)
        if not state.exists:
            return f"session {run.started.session} of run {run.number} was deleted"
        if gone := await self._forgotten_node(run):
            return f"node {gone}, which had the directory of run {run.number}, was forgotten"
        if state.profile != run.started.profile:
            return f"session {state.id} now has the profile {state.profile}; run {run.number} had another"
        if state.driver != (driver := self._profiles.driver(state.profile)):
            return f"run {run.number} had another kind of agent ({state.driver}, now it is {driver})"
        if (
            run.finished is not None
            and state.chapter.number > 1
            and state.chapter.after_turn >= run.finished.until_turn
        ):
            return f"session {state.id} was reset since run {run.number}"
        return ""

    # --- where ----------------------------------------------------------------------------------

    async def bound(self, card: Card) -> Placement:
        """Return to which node the next run is bound: the one that has the directory or the agent of its session."""
        placement = self._nodes.placement(card.profile, card.node)
        if not (self._store.is_shared and card.runs):
            return placement
        run = choose_session(
            card, self.resume_policy(card), missing=await self._why_not_resumable(resumable(card))
        ).resumes
        if run is None or run.started.node not in {node.name for node in await self._nodes.all()}:
            return placement
        why = f"the agent of run {run.number} runs there" if run.started.driver != "builtin" else ""
        if why or (why := await self._nodes.shared.why_private(run.started.workspace)):
            return replace(placement, bound_to=run.started.node, bound_because=why)
        return placement

    async def _forgotten_node(self, run: Run) -> str:
        """Return the node that had the directory of a run and was forgotten; empty if it was not."""
        node = run.started.node
        if not self._store.is_shared or node in {known.name for known in await self._nodes.all()}:
            return ""
        there = await self._cards.mounts.run(lambda: Path(run.started.workspace).is_dir())
        return "" if there else node

    # --- check and end --------------------------------------------------------------------------

    def keep_only(self, running: list[OpenRun]) -> None:
        """Forget the times of runs that have ended."""
        self._timer.keep_only({(row.card, row.run) for row in running})

    async def check(self, id: str) -> None:
        """End the run of a card if its turn has ended or takes too long; or remind its worker once."""
        card, now = await self._cards.get(id), self._clock.now()
        run = card.run
        if run is None:
            return
        seen = _Open(card, run)
        session = await self._sessions.get(run.started.session)
        if not session.exists:
            lost = f"its session {session.id} was deleted"
            await self._end(seen, RunVerdict("lost", lost, counts=False), outcome="lost")
            return
        if session.turn is not None or session.queue:
            await self._check_limits(seen, session, now)
            return
        last = session.last_turn
        if last is None or session.turns <= run.started.after_turn:
            return  # its first turn is about to begin
        limit = card.max_attempts or self._profiles.settings.board.max_attempts
        found = run_verdict(card, outcome=last.outcome, reason=last.reason, problem=last.problem, limit=limit, now=now)
        if found.remind:
            await self._remind(seen, session)
        else:
            await self._end(seen, found, outcome="stopped" if last.outcome == "stopped" else "failed")

    async def _check_limits(self, seen: _Open, session: Session, now: int) -> None:
        """End a run that takes too long, makes no progress, or waits for a person to resume it."""
        card, rules = seen.card, self._profiles.settings.board
        turn = session.turn
        wait = None if turn is None else turn.wait
        if wait is not None and wait.purpose == "resume":
            await self._end(seen, RunVerdict("", wait.reason, block="needs_input"), outcome="stopped")
            return
        limit = card.max_attempts or rules.max_attempts
        partial = await self._store.partial(session_stream(session.id))
        sign = (session.version, 0 if partial is None else partial.at)
        waits = turn is None or wait is not None or bool(turn.suspended)
        worked, idle = self._timer.sample((card.id, seen.run.number), sign, waits=waits)
        most = card.max_runtime_ms or span_ms(rules.max_runtime) or 0
        if most and worked > most:
            reason = f"it worked for {duration(worked)}, longer than max_runtime ({duration(most)})"
            await self._end(seen, timed_out(card, "timeout", reason, limit=limit, now=now), outcome="failed")
            return
        frozen = span_ms(rules.frozen_after) or 0
        if frozen and idle > frozen and turn is not None and not turn.open_calls:
            reason = f"no progress for {duration(idle)} (frozen_after)"
            await self._end(seen, timed_out(card, "frozen", reason, limit=limit, now=now), outcome="failed")

    async def _remind(self, seen: _Open, session: Session) -> None:
        """Ask the worker once to report on the card, in a turn of its own."""
        card, run = seen.card.id, seen.run.number
        asked = InputReceived(
            input=f"nudge-{card}-{run}", text=REMINDER, mode="queue", by=THE_BOARD, source="reminder", ref=card
        )
        also = Write(session_stream(session.id), (asked,), expect=session.version)
        reminded = RunReminded(card=card, run=run)
        await self._cards.write(CardChange(seen.card, [reminded], THE_BOARD), also)

    async def _end(self, seen: _Open, found: RunVerdict, *, outcome: RunOutcome) -> None:
        card, run = seen.card.id, seen.run.number
        events: list[CardEvent] = [
            RunFinished(
                card=card,
                run=run,
                outcome=outcome,
                reason=found.reason,
                failure=found.failure,
                uses_attempt=found.counts,
                retry_at=found.again_at,
            )
        ]
        if found.block is not None:
            events.append(CardBlocked(card=card, block_kind=found.block, reason=found.reason, by=THE_BOARD, run=run))
        if await self._cards.write(CardChange(seen.card, events, THE_BOARD)):
            log.info("card %s: run %d ended as %s: %s", seen.card.label, run, outcome, found.reason)


def _first_events(
    card: Card, run: RunStarted, state: Session, said: FirstInput, *, must_remember: bool
) -> list[AnyEvent]:
    """Return the events with which a run creates or continues its session."""
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
            driver=run.driver,
            node=run.node,
        )
        events.append(born)
    elif state.archived:
        events.append(SessionRestored(by=THE_BOARD))
    return [
        *events,
        RunBound(
            card=card.id,
            run=run.run,
            cwd=run.workspace,
            rights=card.rights,
            card_number=card.number,
            must_remember=must_remember,
        ),
        NoteReceived(text=said.note, task=run.task),
        InputReceived(
            input=f"run-{card.id}-{run.run}", text=said.text, mode="queue", by=THE_BOARD, source="run", ref=card.id
        ),
    ]


@dataclass(frozen=True, slots=True)
class _Timed:
    """One run, up to the last sample."""

    sign: object
    """Changes whenever the run makes progress."""
    sampled_at: float
    worked: float = 0.0
    idle: float = 0.0


class RunTimer:
    """How long open runs have worked, and for how long without progress, as far as this gateway has seen it.

    Counted from sample to sample by the monotonic clock, and never more than `MOST_SECONDS` at once. So only observed
    work counts: a laptop that sleeps, a clock that is set, or a gateway that is down ends no run.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._seen: dict[tuple[str, int], _Timed] = {}

    def sample(self, run: tuple[str, int], sign: object, *, waits: bool) -> tuple[int, int]:
        """Return for how many ms a run has worked, and for how many without progress. Waiting does not count."""
        now = self._monotonic()
        before = self._seen.get(run) or _Timed(sign, now)
        passed = 0.0 if waits else min(MOST_SECONDS, now - before.sampled_at)
        idle = before.idle + passed if before.sign == sign else 0.0
        seen = self._seen[run] = _Timed(sign, now, before.worked + passed, idle)
        return int(seen.worked * 1000), int(seen.idle * 1000)

    def keep_only(self, runs: set[tuple[str, int]]) -> None:
        """Forget all other runs, which have ended."""
        self._seen = {run: seen for run, seen in self._seen.items() if run in runs}
