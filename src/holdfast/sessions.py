"""Every session as folded state: cached while it is in use, and caught up with the log whenever it is read.

Also where commands about sessions are carried out.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field, replace

import msgspec

from holdfast.clock import Clock
from holdfast.domain.command import TITLE_LIMIT
from holdfast.domain.commands import CreateSession, ForkSession, SessionCommand
from holdfast.domain.errors import Conflict, NotFound, Rejected
from holdfast.domain.events import SYSTEM, Record, session_stream
from holdfast.domain.events.actor import Actor
from holdfast.domain.events.session import SessionCreated
from holdfast.domain.events.system import SessionDeleted
from holdfast.domain.session import Session
from holdfast.domain.session_fold import evolve, fold
from holdfast.domain.session_fork import fork
from holdfast.domain.session_rules import create, decide
from holdfast.store.contract import Append, Appended, CommandKey, Decide, Store, Write

KEPT = 256
FORGET_AT_ONCE = 8


@dataclass(slots=True)
class _CachedSession:
    session: Session
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def at_rest(self) -> bool:
        return not self.lock.locked() and self.session.activity == "idle"

    def keep(self, session: Session) -> Session:
        """Keep the newer snapshot."""
        if session.version > self.session.version:
            self.session = session
        return self.session


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a command, and the command's id."""

    key: CommandKey
    by: Actor

    def replying(self, **reply: str) -> Caller:
        """Return the same caller with a reply, which a retry gets as well."""
        return replace(self, key=replace(self.key, reply=msgspec.json.encode(reply).decode()))


class Sessions:
    """The folded sessions of this gateway."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._entries: OrderedDict[str, _CachedSession] = OrderedDict()

    async def get(self, session: str) -> Session:
        """Return the session, caught up with the log."""
        entry = self._entries.get(session)
        if entry is None:
            entry = self._entries[session] = _CachedSession(Session(session))
        self._entries.move_to_end(session)
        async with entry.lock:  # concurrent calls do not read the same records twice
            before = entry.session
            entry.keep(fold(before, await self._store.load(session_stream(session), after=before.version)))
        self._forget()
        return entry.session

    def apply(self, records: tuple[Record, ...]) -> None:
        """Fold records that were just written, so that they need not be read back."""
        for record in records:
            entry = self._entries.get(record.stream.removeprefix("session/"))
            if entry is not None and entry.session.version == record.version - 1:
                entry.session = evolve(entry.session, record)

    def adopt(self, session: Session) -> Session:
        """Cache a snapshot that a worker folded; return the newest one that is known."""
        entry = self._entries.get(session.id)
        return session if entry is None else entry.keep(session)

    def drop(self, session: str) -> None:
        """Forget a session that was deleted."""
        self._entries.pop(session, None)

    def _forget(self) -> None:
        """Drop the least recently used idle sessions from the cache, a few at each call."""
        for _ in range(min(FORGET_AT_ONCE, len(self._entries) - KEPT)):
            id, entry = next(iter(self._entries.items()))
            if entry.at_rest:
                del self._entries[id]
            else:
                self._entries.move_to_end(id)

    # --- commands -------------------------------------------------------------------------------

    async def create(
        self,
        command: CreateSession,
        *,
        session: str,
        profile: str,
        driver: str = "builtin",
        cwd: str,
        caller: Caller,
        chat: str = "",
        here: bool = True,
    ) -> Appended:
        """Begin a session under the given new id; with `chat`, as the current one of that chat.

        `here`: whether this node may work on it, so that its directory is one of this node.
        """
        events = create(
            command,
            session=session,
            profile=profile,
            driver=driver,
            cwd=cwd,
            id=caller.key.id,
            by=caller.by,
            chat=chat,
        )
        assert isinstance(events[0], SessionCreated)
        events[0] = msgspec.structs.replace(events[0], node=self._store.node if here else "")
        write = Write(session_stream(session), tuple(events), expect=0)
        return await self._store.append(Append((write,), self._clock.now(), command=caller.key))

    async def fork(self, parent: str, command: ForkSession, *, session: str, caller: Caller) -> Appended:
        """Begin a session that knows everything up to a version of another."""
        records = await self._store.load(session_stream(parent), after=0)
        last = command.version or len(records)
        if last > len(records):
            raise Rejected(f"The session has no version {last}; it ends at {len(records)}.")
        title = command.title or f"{(await self.get(parent)).title} (fork)"[:TITLE_LIMIT]
        now = self._clock.now()
        holder = await self._store.lease_holder(session_stream(parent)) if self._store.is_shared else None
        host = "" if holder is None else holder.name
        pairs = fork(records[:last], session=session, title=title, by=caller.by, now=now, host=host)
        times, events = zip(*pairs, strict=True)
        write = Write(session_stream(session), events, expect=0, times=times)
        return await self._store.append(Append((write,), now, command=caller.key))

    async def execute(
        self, session: str, command: SessionCommand, caller: Caller, *, also: Decide | None = None
    ) -> Appended:
        """Decide on the session as it is now and append, together with what `also` decides for other streams."""

        async def writes() -> tuple[Write, ...]:
            state = await self.get(session)
            events = decide(state, command, id=caller.key.id, by=caller.by)
            write = Write(session_stream(session), tuple(events), expect=state.version)
            return (write, *await also()) if also else (write,)

        appended = await self._store.transact(self._clock, writes, command=caller.key)
        self.apply(appended.records)
        return appended

    async def delete(self, session: str, caller: Caller, *, also: Decide | None = None) -> Appended:
        """Delete a session that is at rest, with all its events."""

        async def writes() -> tuple[Write, ...]:
            state = await self.get(session)
            if not state.exists:
                raise NotFound(f"There is no session {session}.")
            if state.turn is not None or state.queue or state.run:
                raise Conflict("It is still at work.", hint=f"`holdfast stop {session}` first.")
            gone = SessionDeleted(session=session, title=state.title, events=state.version, by=caller.by)
            guard = Write(session_stream(session), (), expect=state.version)
            return (Write(SYSTEM, (gone,)), guard, *(await also() if also else ()))

        appended = await self._store.transact(self._clock, writes, command=caller.key)
        self.drop(session)
        self._store.hint(session_stream(session))  # the event is in another stream
        return appended
