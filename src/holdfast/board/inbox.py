"""The inbox: one list of everything that waits for a person.

An entry stays until its cause is gone: a wait until it is answered, a card until it is moved, a failed turn until the
next turn of its session, or until a person undoes the turn, resets or archives the session, or dismisses the entry.
"""

from __future__ import annotations

import dataclasses

import msgspec
from msgspec.structs import replace

from holdfast.board.cards import Cards
from holdfast.board.startable import StartableCards
from holdfast.clock import Clock, elapsed
from holdfast.domain.card_number import card_label
from holdfast.domain.dispatch import Advice
from holdfast.domain.errors import Corrupt
from holdfast.domain.events import card_stream, session_stream
from holdfast.domain.events.session import Purpose
from holdfast.domain.placement import KnownNode, Placement
from holdfast.domain.text import duration
from holdfast.nodes import Nodes
from holdfast.profiles import Profiles
from holdfast.runtime.tools.context import ToolContext
from holdfast.runtime.tools.tool import AnyTool, Tool, ToolOutput, bounded
from holdfast.schemas.inbox import InboxEntry
from holdfast.sessions import Sessions
from holdfast.store.contract import Store
from holdfast.store.rows import CardRow, FailedTurn, SessionRow, TitledWait

MOST_SESSIONS = 100
"""How many sessions that no node works on are checked at most."""


class InboxReader:
    """Reads the inbox."""

    def __init__(
        self,
        store: Store,
        *,
        cards: Cards,
        startable: StartableCards,
        sessions: Sessions,
        profiles: Profiles,
        nodes: Nodes,
        clock: Clock,
    ) -> None:
        self._store = store
        self._cards = cards
        self._startable = startable
        self._sessions = sessions
        self._profiles = profiles
        self._nodes = nodes
        self._clock = clock

    async def entries(self) -> list[InboxEntry]:
        """Return all entries, longest waiting first."""
        found = [_of_wait(row) for row in await self._store.waits()]
        found += [_of_failed_turn(row) for row in await self._store.failed_turns()]
        for row in await self._store.cards.for_people(sorted(self._profiles.names)):
            try:
                advice = await self._startable.advice(await self._cards.get(row.id))
            except Corrupt as error:  # its stream cannot be read; the others are listed
                advice = Advice("card_not_startable", error.message, ["holdfast doctor"])
            if advice is not None:
                found.append(_of_card(row, advice))
        found += await self._waiting_for_nodes({entry.id for entry in found})
        found += await self._sessions_waiting_for_nodes()
        if await self._nodes.are_several():
            nodes = await self._nodes.hosts([entry.session for entry in found if entry.session])
            found = [replace(entry, node=nodes.get(entry.session) or entry.node) for entry in found]
        else:
            found = [replace(entry, node="") for entry in found]
        return sorted(found, key=lambda entry: (entry.since, entry.id))

    async def _waiting_for_nodes(self, known: set[str]) -> list[InboxEntry]:
        """Return the cards that have waited for a node for more than a short while."""
        bound = [name for name, profile in self._profiles.settings.profiles.items() if profile.nodes]
        nodes, found = await self._nodes.all(), []
        for row in await self._store.cards.for_nodes(bound, hosts=self._store.is_shared):
            if row.id in known:
                continue
            card = await self._cards.get(row.id)
            if waits := await self._startable.waits_for_node(card, nodes):
                advice = await self._startable.advice(card, waits_for_node=waits)
                found += [] if advice is None else [_of_card(row, advice)]
        return found

    async def _sessions_waiting_for_nodes(self) -> list[InboxEntry]:
        """Return the sessions with something to do that have waited for a node for more than a short while."""
        nodes, found = await self._nodes.all(), []
        for row in (await self._store.unclaimed_sessions(node=""))[:MOST_SESSIONS]:
            try:
                placement = await self._nodes.waiting(await self._sessions.get(row.id))
            except Corrupt:
                continue  # it cannot be read, and waits for no node; `why` says so
            waited = elapsed(self._clock, row.updated_at)
            if waits := self._nodes.why_waits_long(placement, nodes, waited_ms=waited):
                found.append(_of_session(row, waits, placement, nodes))
        return found

    @property
    def tool(self) -> AnyTool:
        """The tool with which an agent reads the inbox."""
        text = "List everything that waits for a person, in all sessions and on all boards, and how to settle it."
        return Tool(
            "inbox",
            text,
            "pure",
            NoArguments,
            self._call,
            subject_field="text",
            default_policy="allow",
            file_changes="none",
        )

    async def _call(self, _: ToolContext, __: NoArguments) -> ToolOutput:
        entries, now = await self.entries(), self._clock.now()
        if not entries:
            return ToolOutput("Nothing is waiting for a person.")
        return ToolOutput(bounded("\n".join([f"{len(entries)} in all:", *(in_words(one, now=now) for one in entries)])))


class NoArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No arguments."""


WORDS = {
    "approval": "approval",
    "question": "question",
    "resume": "interrupted turn",
    "compaction": "context without a summary",
    "login": "log-in",
    "quota": "used-up quota",
    "blocked_card": "blocked card",
    "card_in_review": "card in review",
    "card_not_startable": "card that cannot start",
    "failed_turn": "failed turn",
    "session_not_startable": "session that cannot continue",
}


def in_words(entry: InboxEntry, *, now: int) -> str:
    """Return an entry as a sentence with its commands, for `why` and for agents."""
    what = entry.what if entry.what.endswith((".", "!", "?")) else f"{entry.what}."
    commands = " or ".join(f"`{command}`" for command in entry.commands)
    kind, waiting = WORDS[entry.kind].capitalize(), duration(now - entry.since)
    return f"{kind}, waiting for {waiting}: {_subject(entry)}: {what} {commands}"


def _subject(entry: InboxEntry) -> str:
    noun, _, id = entry.stream.partition("/")
    return f"{noun} {card_label(entry.number, id)} “{entry.title}”"


def _of_wait(row: TitledWait) -> InboxEntry:
    kind = _kind(row.purpose)
    answers = {
        "approval": ["--allow", "--deny"],
        "question": ["TEXT"],
        "compaction": ["'try again'", "digest"],
        "login": ["'try again'"],
        "quota": ["'try again'"],
    }.get(kind, ["'go on'"])
    commands = [f"holdfast answer {row.id} {answer}" for answer in answers]
    return InboxEntry(
        kind=kind,
        id=row.id,
        title=row.title,
        what=row.reason,
        since=row.opened_at,
        commands=commands if kind != "resume" else [*commands, f"holdfast stop {row.session}"],
        link=f"/s/{row.session}#{row.version}",
        stream=session_stream(row.session),
        version=row.version,
        session=row.session,
    )


def _kind(purpose: Purpose) -> str:
    match purpose:
        case "approval" | "question" | "compaction" | "login" | "quota":
            return purpose
        case _:
            return "resume"


def _of_failed_turn(row: FailedTurn) -> InboxEntry:
    return InboxEntry(
        kind="failed_turn",
        id=row.session,
        title=row.title,
        what=f"Turn {row.turn} failed: {row.reason}",
        since=row.finished_at,
        commands=[f"holdfast send {row.session} TEXT", f"holdfast inbox --dismiss {row.session}"],
        link=f"/s/{row.session}",
        stream=session_stream(row.session),
        version=row.version,
        session=row.session,
    )


def _of_session(row: SessionRow, waits: str, placement: Placement, nodes: list[KnownNode]) -> InboxEntry:
    return InboxEntry(
        kind="session_not_startable",
        id=row.id,
        title=row.title,
        what=waits,
        since=row.updated_at,
        commands=[_way_to_a_node(row.id, placement, nodes)],
        link=f"/s/{row.id}",
        stream=session_stream(row.id),
        version=row.version,
        session=row.id,
        node=placement.bound_to or placement.node,
    )


def _way_to_a_node(session: str, placement: Placement, nodes: list[KnownNode]) -> str:
    bound = next((node for node in nodes if node.name == placement.bound_to), None)
    if bound is None:
        return f"holdfast sessions move {session} --node NAME"
    if not bound.lives:
        return f"holdfast nodes forget {bound.name}"
    if not dataclasses.replace(placement, node="").fits(bound):  # its profile runs elsewhere
        return f"holdfast sessions agent {session} --profile NAME"
    return f"holdfast sessions move {session} --node {bound.name}"


def _of_card(row: CardRow, advice: Advice) -> InboxEntry:
    return InboxEntry(
        kind=advice.kind,
        id=row.id,
        title=row.title,
        what=advice.what,
        since=row.moved_at,
        commands=advice.commands,
        link=f"/board/{row.board}/{row.label}",
        stream=card_stream(row.id),
        version=row.version,
        session=row.session,
        number=row.number,
        node=row.host or row.node,
    )
