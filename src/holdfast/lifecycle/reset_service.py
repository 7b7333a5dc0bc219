"""Resets: a new chapter and the stops of running tasks, in one append.

The hand-over note is written first; the chapter is opened only if there was no input meanwhile. So a message is either
in the old chapter or in the new one.

The note is requested in the log (`SummaryRequested` with the purpose `hand_over`), and the session's worker writes it
like any other summary. A reset that was interrupted finds the note there and does not request it twice.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from datetime import datetime

from holdfast.clock import Clock
from holdfast.domain.commands import ResetSession
from holdfast.domain.compaction import HAND_OVER_ATTEMPTS
from holdfast.domain.errors import Unavailable, VersionConflict
from holdfast.domain.events import session_stream
from holdfast.domain.events.actor import THE_RESET_CLOCK, Actor
from holdfast.domain.events.chapter import ChapterOpened, NoteFrom, ResetPostponed, SummaryRequested
from holdfast.domain.reset import (
    NotDue,
    Reset,
    ResetClockReading,
    ResetRules,
    check_at_rest,
    decide_reset,
    open_chapter,
    same_reason,
    split_running,
)
from holdfast.domain.session import Session
from holdfast.domain.summary import digest
from holdfast.lifecycle.running_tasks import RunningTasks, running_tasks
from holdfast.profiles import Profiles
from holdfast.sessions import Caller, Sessions
from holdfast.store.contract import Append, Appended, Store, Write

PATIENCE_SECONDS = 30.0
"""How long to wait for the note, on top of the model's time limit."""
log = logging.getLogger(__name__)


class ResetService:
    """Resets sessions."""

    def __init__(
        self, store: Store, *, sessions: Sessions, running: RunningTasks, profiles: Profiles, clock: Clock
    ) -> None:
        self._store = store
        self._sessions = sessions
        self._running = running
        self._profiles = profiles
        self._clock = clock

    async def by_person(self, session: str, command: ResetSession, caller: Caller) -> Appended:
        """Reset a session at the request of a person."""

        async def writes() -> tuple[Write, ...]:
            state, note = await self._sessions.get(session), None
            while True:
                if command.note and state.chapter.hand_over_requested:
                    state = await self._wait_for_note(state)
                check_at_rest(state, self._clock.now())
                running = await self._running.of_session(session)
                if running and command.running is None:
                    raise running_tasks(running)
                note = self._note(state) if command.note else ("", "")
                if note is not None:
                    break
                state = await self._ask_for_note(state, by=caller.by)
            kept, stopped = split_running(running, "keep" if command.running == "keep" else "stop all")
            reset = Reset("person", None, f"{caller.by} asked for it", kept, stopped)
            opened = open_chapter(state, reset, by=caller.by, now=self._clock.now(), hand_over=note)
            return await self._writes(state, opened, by=caller.by)

        known = await self._store.find_command(caller.key)  # otherwise a note would be written for nothing
        return known or self._opened(await self._store.transact(self._clock, writes, command=caller.key))

    async def by_rule(
        self, session: str, rules: ResetRules, moment: ResetClockReading
    ) -> NotDue | ResetPostponed | Reset:
        """Decide whether to reset a session that is due, and do it; return the decision."""
        state = await self._sessions.get(session)
        while True:
            if rules.hand_over_note and state.chapter.hand_over_requested:
                state = await self._wait_for_note(state)
            decision = decide_reset(state, rules, moment, await self._running.of_session(session))
            if isinstance(decision, ResetPostponed):
                before = state.postponed
                if before is None or not same_reason(before[0], decision):
                    await self._postpone(state, decision)
            if not isinstance(decision, Reset):
                return decision
            note = self._note(state) if rules.hand_over_note else ("", "")
            if note is not None:
                break
            state = await self._ask_for_note(state, by=THE_RESET_CLOCK)
        opened = open_chapter(state, decision, by=THE_RESET_CLOCK, now=moment.now, notify=rules.notify, hand_over=note)
        writes = await self._writes(state, opened, by=THE_RESET_CLOCK)
        with suppress(VersionConflict):  # there was activity: the next round decides again
            self._opened(await self._store.append(Append(writes, self._clock.now())))
        return decision

    def _note(self, session: Session) -> tuple[str, NoteFrom] | None:
        """Return the hand-over note; None if there was no attempt to write one since the last turn."""
        chapter = session.chapter
        if session.driver != "builtin":  # its agent writes none
            return self._profiles.mask(digest(session.visible_messages())), "digest"
        if chapter.hand_over is not None:
            return chapter.hand_over.summary, "model"
        if not chapter.hand_over_failures:
            return None
        log.warning("session %s: the hand-over note is a digest, since the model could not write one", session.id)
        return self._profiles.mask(digest(session.visible_messages())), "digest"

    async def _ask_for_note(self, session: Session, *, by: Actor) -> Session:
        """Request the note from the session's worker, unless there was input meanwhile."""
        asked = SummaryRequested(instructions="", by=by, purpose="hand_over")
        write = Write(session_stream(session.id), (asked,), expect=session.version)
        with suppress(VersionConflict):
            self._sessions.apply((await self._store.append(Append((write,), self._clock.now()))).records)
        return await self._sessions.get(session.id)

    async def _wait_for_note(self, session: Session) -> Session:
        """Wait until the worker has written the note or has given up."""
        seconds = HAND_OVER_ATTEMPTS * self._profiles.settings.compaction.summary_timeout + PATIENCE_SECONDS
        try:
            async with asyncio.timeout(seconds):
                with self._store.subscribe(session_stream(session.id)) as changes:
                    while (session := await self._sessions.get(session.id)).chapter.hand_over_requested:
                        await changes.wait()
                        changes.drain()
                    return session
        except TimeoutError:
            hint = "Try again later: the note is used once it is written. Or reset without a note."
            raise Unavailable("The hand-over note has not been written yet.", hint=hint) from None

    async def _postpone(self, session: Session, postponed: ResetPostponed) -> None:
        write = Write(session_stream(session.id), (postponed,), expect=session.version)
        try:
            appended = await self._store.append(Append((write,), self._clock.now()))
        except VersionConflict:
            return  # there was input: the next round decides again
        self._sessions.apply(appended.records)
        left = "" if postponed.until is None else f" until {_local(postponed.until)}"
        reasons = "; ".join(blocker.reason for blocker in postponed.blockers)
        log.info("reset of %s postponed%s: %s", session.id, left, reasons)

    async def _writes(self, session: Session, opened: ChapterOpened, *, by: Actor) -> tuple[Write, ...]:
        """Return the new chapter, and the stops or new lifetimes of running tasks."""
        also = await self._running.stop_writes(
            {one.task: f"a reset of session {session.id}: {one.rule}" for one in opened.stopped},
            [one.task for one in opened.kept] if opened.rule == "person" else [],
            by=by,
        )
        return (Write(session_stream(session.id), (opened,), expect=session.version), *also)

    def _opened(self, appended: Appended) -> Appended:
        self._sessions.apply(appended.records)
        self._running.signal(appended.records)
        for record in appended.records:
            if isinstance(opened := record.event, ChapterOpened):
                log.info(
                    "%s: chapter %d, %s; %d tasks kept, %d stopped",
                    record.stream,
                    opened.chapter,
                    opened.reason,
                    len(opened.kept),
                    len(opened.stopped),
                )
        return appended


def _local(at: int) -> str:
    return datetime.fromtimestamp(at / 1000).astimezone().isoformat(" ", "seconds")
