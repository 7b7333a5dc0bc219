"""Resets: a new chapter in one append, and with it what becomes of what runs.

Nothing is half done: the note for the next chapter is written before, the boundary only if nobody said anything
meanwhile. A message lands before it or after it, and nowhere else.
"""

from __future__ import annotations

import logging
from datetime import datetime

from holdfast.clock import Clock
from holdfast.domain.commands import ResetSession
from holdfast.domain.errors import Conflict
from holdfast.domain.events import session_stream
from holdfast.domain.events.actor import THE_RESET_CLOCK, Actor
from holdfast.domain.events.chapter import ChapterOpened, NoteFrom, ResetPostponed
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
from holdfast.lifecycle.running_tasks import TRIES, RunningTasks, running_tasks
from holdfast.runtime.compaction import hand_over
from holdfast.runtime.profiles import Profiles
from holdfast.sessions import Caller, Sessions
from holdfast.store.contract import Append, Appended, Store, Write

log = logging.getLogger(__name__)


class ResetService:
    """Opens chapters."""

    def __init__(
        self, store: Store, *, sessions: Sessions, running: RunningTasks, profiles: Profiles, clock: Clock
    ) -> None:
        self._store = store
        self._sessions = sessions
        self._running = running
        self._profiles = profiles
        self._clock = clock

    async def by_person(self, session: str, command: ResetSession, caller: Caller) -> Appended:
        """Because somebody asked for it."""
        for _ in range(TRIES):
            known = await self._store.find_command(caller.key)
            if known is not None:
                return known
            state = await self._sessions.get(session)
            version = state.version
            check_at_rest(state, self._clock.now())
            running = await self._running.of_session(session)
            if running and command.running is None:
                raise running_tasks(running)
            note = await self._note(state) if command.note else ("", "")
            if state.version != version:
                continue  # something was said, and perhaps started: the note and the list are old
            kept, stopped = split_running(running, "keep" if command.running == "keep" else "stop all")
            reset = Reset("person", None, f"{caller.by} asked for it", kept, stopped)
            opened = open_chapter(state, reset, by=caller.by, now=self._clock.now(), hand_over=note)
            done = await self._open(state, opened, version, by=caller.by, caller=caller)
            if done is not None:
                return done
        raise Conflict("The session changed too often in between.", hint="Try again.")

    async def by_rule(
        self, session: str, rules: ResetRules, moment: ResetClockReading
    ) -> NotDue | ResetPostponed | Reset:
        """Look at one whose time has come; what was decided."""
        state = await self._sessions.get(session)
        version = state.version
        running = await self._running.of_session(session)
        decision = decide_reset(state, rules, moment, running)
        if isinstance(decision, ResetPostponed):
            before = state.postponed
            if before is None or not same_reason(before[0], decision):
                await self._postpone(state, decision, version)
        elif isinstance(decision, Reset):
            note = await self._note(state) if rules.hand_over_note else ("", "")
            if state.version == version:  # else somebody came back: decide anew
                opened = open_chapter(
                    state, decision, by=THE_RESET_CLOCK, now=moment.now, notify=rules.notify, hand_over=note
                )
                await self._open(state, opened, version, by=THE_RESET_CLOCK)
        return decision

    async def _note(self, session: Session) -> tuple[str, NoteFrom]:
        text, own = await hand_over(session, self._profiles.agent(session))
        return text, "model" if own else "digest"

    async def _postpone(self, session: Session, postponed: ResetPostponed, version: int) -> None:
        write = Write(session_stream(session.id), (postponed,), expect=version)
        try:
            appended = await self._store.append(Append((write,), self._clock.now()))
        except Conflict:
            return  # something was said: the next look decides anew
        self._sessions.apply(appended.records)
        left = "" if postponed.until is None else f" until {_local(postponed.until)}"
        reasons = "; ".join(blocker.reason for blocker in postponed.blockers)
        log.info("reset of %s postponed%s: %s", session.id, left, reasons)

    async def _open(
        self, session: Session, opened: ChapterOpened, version: int, *, by: Actor, caller: Caller | None = None
    ) -> Appended | None:
        """The boundary and what ends with the old chapter, all or nothing; None when something came between."""
        of = f"a reset of session {session.id}"
        also = await self._running.stop_writes(
            {one.task: f"{of}: {one.rule}" for one in opened.stopped},
            [one.task for one in opened.kept] if opened.rule == "person" else [],
            by=by,
        )
        write = Write(session_stream(session.id), (opened,), expect=version)
        command = None if caller is None else caller.key
        try:
            appended = await self._store.append(Append((write, *also), self._clock.now(), command=command))
        except Conflict:
            return None
        self._sessions.apply(appended.records)
        self._running.signal(also)
        log.info(
            "session %s: chapter %d, %s; %d handed over, %d stopped",
            session.id,
            opened.chapter,
            opened.reason,
            len(opened.kept),
            len(opened.stopped),
        )
        return appended


def _local(at: int) -> str:
    return datetime.fromtimestamp(at / 1000).astimezone().isoformat(" ", "seconds")
