"""What is read of the projections: the same for every engine, which only runs the queries (`Fetch`).

Most queries are in `store/sql/`; one that an engine has to write in its own words is in a directory of its own, under
the same name. The shared ones keep to what SQLite and PostgreSQL both understand: a truth value is tested, or compared
with FALSE where an index is to be used; a list is a parameter behind IN. An engine adds `has_text(folded, text, …)`:
whether one of the further texts contains the first, in either case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Protocol

from holdfast.domain.errors import Conflict, Gone, NotFound
from holdfast.schemas.gateway import Spend, TaskCount, WorkSlot
from holdfast.store.rows import (
    CardOfSession,
    EndedTask,
    FailedTurn,
    NodeRow,
    NodeWork,
    PartialText,
    R,
    ResettableSession,
    SessionRow,
    StoreCounts,
    TaskRow,
    TitledWait,
    TurnRow,
)


@dataclass(frozen=True, slots=True)
class SessionCursor:
    """Where a page of the list begins: after the session `id` that was updated at `at`, pinned ones first."""

    at: int = 2**62
    id: str = ""
    pinned: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter:
    """Which tasks; what is empty fits everything."""

    kind: str = ""
    state: str = ""
    session: str = ""
    text: str = ""
    since: int = 0
    ended: int = 0
    """Only what ended at this moment or later."""
    foreground: bool = False
    """Also the commands that a turn waits or waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFilter:
    """Which cards; what is empty fits everything."""

    board: str = ""
    status: str = ""
    profile: str = ""
    text: str = ""
    archived: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StartQuery:
    """Where there is room for a run."""

    boards: list[str]
    profiles: list[str]
    limit: int
    exclude: list[str]
    """Cards that were tried already."""


SHORTEST_PREFIX = 4
"""With fewer characters digits are the number of a card and never the beginning of an id."""


class Fetch(Protocol):
    """Runs a query by its name, with texts, numbers, booleans and lists of texts as parameters."""

    async def rows(self, query: str, row_type: type[R], **parameters: object) -> list[R]:
        """All rows that it finds."""
        ...

    async def row(self, query: str, row_type: type[R], **parameters: object) -> R | None:
        """The one row that it finds by its key."""
        ...

    async def values(self, query: str, **parameters: object) -> list[tuple[Any, ...]]:
        """What it finds, as it is stored: for single columns and pairs."""
        ...


@dataclass(frozen=True, slots=True)
class RowKind(Generic[R]):
    """What can be looked up by a prefix of its id."""

    name: str
    row_type: type[R]
    get: str
    """The query that reads one row by its id."""
    find: str
    """The query that lists ids by prefix: two are enough to know that it is ambiguous, ten make a helpful message."""
    hint: str

    async def look_up(self, fetch: Fetch, prefix: str) -> R:
        """Return the row with this id or unique prefix of it."""
        row = await fetch.row(self.get, self.row_type, id=prefix)
        if row is not None:
            return row
        found = [id for id, *_ in await fetch.values(self.find, **id_range(prefix))]
        if len(found) == 1:
            return await self.look_up(fetch, found[0])
        if found:
            raise Conflict(
                f"{prefix} is the beginning of several {self.name} IDs: {', '.join(found)}.",
                hint="Use more characters of the ID.",
            )
        if await fetch.values("find_deleted", **id_range(f"{self.name}/{prefix}")):
            raise Gone(f"{self.name.capitalize()} {prefix} was deleted.", hint=self.hint.replace("them", "the others"))
        raise NotFound(f"There is no {self.name} {prefix}.", hint=self.hint)


def id_range(prefix: str) -> dict[str, str]:
    """A range and not a pattern, since an index finds it. Ids are hexadecimal and compared byte by byte."""
    return {"prefix": prefix, "beyond": prefix + "g"}


_SESSION = RowKind("session", SessionRow, "get_session", "find_sessions", "`holdfast sessions` lists them.")
_TASK = RowKind("task", TaskRow, "get_task", "find_tasks", "`holdfast tasks history` lists them.")
_WAIT = RowKind("open question or approval", TitledWait, "get_wait", "find_waits", "`holdfast inbox` lists what waits.")


class ProjectionReads:
    """Reads sessions, turns, waits, tasks and nodes.

    To look up one thing by a prefix of its id raises NotFound, Gone, or Conflict if several match.
    """

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._counted = (0, 1 << 62, -1)
        """Events, up to which seq, by which version of the stream that says what was deleted."""

    # --- sessions -------------------------------------------------------------------------------

    async def session(self, prefix: str) -> SessionRow:
        """One session by id or unique prefix."""
        return await _SESSION.look_up(self._fetch, prefix)

    async def sessions(
        self, *, archived: bool, before: SessionCursor, limit: int, text: str = "", kind: str = ""
    ) -> list[SessionRow]:
        """A page of the list, newest first; with a text, only those that have it in their title, and with a kind only
        those of a person, of workers on the board, or of agents in the background.
        """
        return await self._fetch.rows(
            "list_sessions",
            SessionRow,
            text=text.casefold(),
            kind=kind,
            archived=archived,
            before_pinned=before.pinned,
            before_at=before.at,
            before_id=before.id,
            limit=limit,
        )

    async def sessions_in(self, cwd: str, *, limit: int) -> list[SessionRow]:
        """The sessions of a directory without those of cards, newest first."""
        return await self._fetch.rows("sessions_in", SessionRow, cwd=cwd, limit=limit)

    async def unclaimed_sessions(self, *, node: str) -> list[SessionRow]:
        """Of those, the sessions that no other node works on."""
        return await self._fetch.rows("unclaimed_sessions", SessionRow, node=node)

    async def nodes_of_sessions(self, sessions: list[str]) -> dict[str, str]:
        """The node of each session: the one that worked on it last, else the one that has its directory."""
        return dict(await self._fetch.values("nodes_of_sessions", sessions=sessions)) if sessions else {}

    async def is_alive(self, node: str) -> bool:
        """Whether a node has the store open."""
        return any(row.name == node and row.ended_at is None for row in await self.nodes())

    async def work_of_nodes(self) -> list[NodeWork]:
        """What the nodes that live work on: sessions that are not at rest, and duties."""
        return await self._fetch.rows("work_of_nodes", NodeWork)

    async def lease_holder(self, stream: str) -> NodeRow | None:
        """Which life has the lease of a stream, or had it when it ended; None if nobody ever had."""
        return await self._fetch.row("lease_holder", NodeRow, stream=stream)

    async def unfinished_sessions(self) -> list[SessionRow]:
        """Every session that is not at rest."""
        return await self._fetch.rows("unfinished_sessions", SessionRow)

    async def resettable_sessions(self, *, own_policy: bool) -> list[ResettableSession]:
        """Every session that a reset could be about; with `own_policy` only those with a reset policy of their own."""
        query = "resettable_sessions_with_policy" if own_policy else "resettable_sessions"
        return await self._fetch.rows(query, ResettableSession)

    async def unused_sessions(self, *, archived: bool, before: int) -> list[SessionRow]:
        """Sessions at rest, not pinned, with nothing running and not touched since a moment, oldest first."""
        return await self._fetch.rows("unused_sessions", SessionRow, archived=archived, before=before)

    async def turns(self, session: str) -> list[TurnRow]:
        """The turns of a session, in order."""
        return await self._fetch.rows("list_turns", TurnRow, session=session)

    async def failed_turns(self) -> list[FailedTurn]:
        """Sessions whose last turn failed and no person has dealt with that, oldest first."""
        return await self._fetch.rows("failed_turns", FailedTurn)

    async def wait(self, prefix: str) -> TitledWait:
        """One wait by id or unique prefix; an open one wins."""
        return await _WAIT.look_up(self._fetch, prefix)

    async def session_of_chat(self, chat: str) -> SessionRow | None:
        """The session that began last in a chat of another service; None when there is none."""
        return await self._fetch.row("session_of_chat", SessionRow, chat=chat)

    async def waits(self) -> list[TitledWait]:
        """The inbox: everything that waits for a person, oldest first."""
        return await self._fetch.rows("open_waits", TitledWait)

    async def partial(self, stream: str) -> PartialText | None:
        """The text so far, if a step is running or was cut."""
        return await self._fetch.row("find_partial", PartialText, stream=stream)

    # --- tasks ----------------------------------------------------------------------------------

    async def task(self, prefix: str) -> TaskRow:
        """One task by id or unique prefix."""
        return await _TASK.look_up(self._fetch, prefix)

    async def tasks(self, wanted: TaskFilter, *, before: SessionCursor, limit: int) -> list[TaskRow]:
        """A page of the archive, newest first."""
        return await self._fetch.rows(
            "list_tasks" if wanted.foreground else "list_background_tasks",
            TaskRow,
            kind=wanted.kind,
            state=wanted.state,
            session=wanted.session,
            text=wanted.text.casefold(),
            since=wanted.since,
            ended=wanted.ended,
            before_at=before.at,
            before_id=before.id,
            limit=limit,
        )

    async def tasks_by_id(self, tasks: list[str]) -> dict[str, TaskRow]:
        """Those of these tasks that are there."""
        return {row.id: row for row in await self._fetch.rows("tasks_by_id", TaskRow, tasks=tasks)}

    async def tasks_of_workers(self, sessions: list[str]) -> dict[str, str]:
        """The newest task of each of these sessions in which an agent works."""
        return dict(await self._fetch.values("tasks_of_workers", workers=sessions))

    async def cards_of_sessions(self, sessions: list[str]) -> dict[str, CardOfSession]:
        """The cards that these sessions work or worked on, by session."""
        rows = await self._fetch.rows("cards_of_sessions", CardOfSession, sessions=sessions)
        return {row.session: row for row in rows}

    async def running_tasks(self) -> list[TaskRow]:
        """Everything that runs, oldest first, also what a turn waits for."""
        return await self._fetch.rows("running_tasks", TaskRow)

    async def ended_tasks(self) -> list[EndedTask]:
        """What may be pruned, newest first: ended and not pinned."""
        return await self._fetch.rows("ended_tasks", EndedTask)

    async def task_ids(self) -> dict[str, bool]:
        """All of them; true for an ended command that a turn waited for."""
        return {id: bool(over) for id, over in await self._fetch.values("task_ids")}

    async def task_event_bytes(self, tasks: list[str]) -> dict[str, int]:
        """What the events of each of these tasks take."""
        return dict.fromkeys(tasks, 0) | dict(await self._fetch.values("task_event_bytes", tasks=tasks))

    # --- numbers --------------------------------------------------------------------------------

    async def last_seq(self) -> int:
        """Where the log ends."""
        ((seq,),) = await self._fetch.values("last_seq")
        return int(seq)

    async def counts(self) -> StoreCounts:
        """Sessions, archived ones, messages, events, and the last seq."""
        events, seen, deletions = self._counted
        ((new, last, deleted),) = await self._fetch.values("count_new_events", seen=seen)
        if deleted == deletions:
            self._counted = (events + new, last, deletions)
        else:  # not at every call: a long log takes seconds
            ((new, last, deleted),) = await self._fetch.values("count_events")
            self._counted = (new, last, deleted)
        events, last, _ = self._counted
        ((sessions, archived, messages),) = await self._fetch.values("count_sessions")
        return StoreCounts(sessions, archived, messages, events=events, seq=last)

    async def count_tasks(self) -> list[TaskCount]:
        """How many tasks there are in each state, and what their outputs take."""
        return await self._fetch.rows("count_tasks", TaskCount)

    async def count_descendants(self, root: str) -> int:
        """How many agents at work and cards not yet done descend from a session."""
        ((count,),) = await self._fetch.values("count_descendants", root=root)
        return int(count)

    async def spend_since(self, since: int) -> Spend:
        """What the turns that ended after a moment took."""
        ((cost, tokens, unpriced),) = await self._fetch.values("spend_since", since=since)
        return Spend(cost=cost, tokens=tokens, unpriced=unpriced)

    async def work_since(self, since: int, *, step: int) -> list[WorkSlot]:
        """What ended and what began to wait, in slots of `step` milliseconds; empty slots are left out."""
        return await self._fetch.rows("work_since", WorkSlot, since=since, step=step)

    async def nodes(self) -> list[NodeRow]:
        """The lives of nodes, newest first: the current ones, and the last ones that ended.

        A lease belongs to the life of the node that took it, and is free when that life ends. Whoever opens the store
        begins a life with its first write; on SQLite that ends the life before.
        """
        return await self._fetch.rows("list_nodes", NodeRow)
