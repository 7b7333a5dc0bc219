"""The tools `kanban_*`, with which a worker changes its own card and others.

A worker can end only its own card, and only while its run is open: each call checks the run and writes only if the card
has not changed meanwhile. Artifacts that do not exist are refused.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, TypeVar

import msgspec

from holdfast.board.cards import CardChange, Cards
from holdfast.domain.card import Card, Run, block_words
from holdfast.domain.command import Name, Text, Title
from holdfast.domain.commands import Body, CommentCard, CreateCard, LinkCard, UnblockCard
from holdfast.domain.errors import HoldfastError
from holdfast.domain.events.actor import RunActor
from holdfast.domain.events.card import BlockKind, CardBlocked, CardCompleted, CardEvent, RunFinished, RunHeartbeat
from holdfast.domain.events.session import Effect
from holdfast.domain.rights import NO_LIMITS, covers
from holdfast.domain.session import Session
from holdfast.runtime.creation import Creation
from holdfast.runtime.tools.context import ToolContext, ToolFailed
from holdfast.runtime.tools.tool import AnyTool, Tool, ToolOutput, bounded
from holdfast.sessions import Caller, Sessions
from holdfast.store.contract import Appended, CommandKey, Store
from holdfast.store.reads import CardFilter

LISTED = 100
A = TypeVar("A", bound=msgspec.Struct)


OwnByDefault = Annotated[
    str, msgspec.Meta(max_length=32, description="Its number (HF-118) or id; by default your own card.")
]


class OneCard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A card; by default your own."""

    card: OwnByDefault = ""


class CompleteArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The result of the work."""

    summary: Annotated[str, msgspec.Meta(min_length=1, max_length=20_000, description="What was done.")]
    metadata: Annotated[dict[str, str], msgspec.Meta(description="Optional facts by name.")] = {}
    artifacts: Annotated[
        list[str], msgspec.Meta(max_length=200, description="Files that were created, by their path in the workspace.")
    ] = []


class BlockArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why the work cannot continue."""

    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=20_000, description="What you need, and from whom.")]
    kind: Annotated[BlockKind, msgspec.Meta(description="needs_input, dependency, capability or transient.")] = (
        "needs_input"
    )


class NoteArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A progress note."""

    note: Annotated[str, msgspec.Meta(max_length=2_000, description="What you are doing.")] = ""


class CommentArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A comment on a card."""

    text: Text
    card: OwnByDefault = ""


class UnblockArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A blocked card, and the answer for its worker."""

    card: Annotated[str, msgspec.Meta(min_length=1, max_length=32, description="Its number (HF-118) or id.")]
    text: Annotated[str, msgspec.Meta(max_length=100_000, description="Your answer to its question.")] = ""


class CreateArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A new card."""

    title: Title
    body: Body = ""
    profile: Name | None = None
    parents: Annotated[list[str], msgspec.Meta(max_length=100, description="Cards that it waits for.")] = []
    priority: Annotated[int, msgspec.Meta(ge=-1000, le=1000)] = 0


class LinkArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A link between two cards."""

    parent: Annotated[str, msgspec.Meta(min_length=1, max_length=32)]
    card: Annotated[str, msgspec.Meta(max_length=32, description="The card that waits; by default your own.")] = ""


class ListArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A filter for the cards of your board."""

    status: Annotated[str, msgspec.Meta(max_length=20)] = ""


@dataclass(frozen=True, slots=True)
class _Own:
    session: Session
    card: Card
    run: Run


class WorkerTools:
    """The tools of workers for the cards of this gateway."""

    def __init__(self, store: Store, cards: Cards, sessions: Sessions, creation: Creation) -> None:
        self._store = store
        self._cards = cards
        self._sessions = sessions
        self._creation = creation

    @property
    def tools(self) -> list[AnyTool]:
        """The tools. A call that is repeated after a crash has no second effect."""
        return [
            _tool("kanban_show", "Show a card with its comments and runs.", "pure", OneCard, self._show),
            _tool("kanban_complete", "Report that your card is done.", "keyed", CompleteArguments, self._complete),
            _tool("kanban_block", "Report that your card needs help.", "keyed", BlockArguments, self._block),
            _tool("kanban_heartbeat", "Report what you are doing.", "keyed", NoteArguments, self._heartbeat),
            _tool(
                "kanban_comment",
                "Comment on a card.",
                "keyed",
                CommentArguments,
                self._comment,
                other_profile=self._profile_of_card,
            ),
            _tool(
                "kanban_unblock",
                "Unblock a card, with your answer.",
                "keyed",
                UnblockArguments,
                self._unblock,
                other_profile=self._profile_of_card,
            ),
            _tool(
                "kanban_create",
                "Create a card on your board.",
                "keyed",
                CreateArguments,
                self._create,
                other_profile=self._profile_of_new_card,
            ),
            _tool("kanban_link", "Make one card wait for another.", "keyed", LinkArguments, self._link),
            _tool("kanban_list", "List the cards of your board.", "pure", ListArguments, self._list),
        ]

    async def _own(self, context: ToolContext) -> _Own:
        """Return the caller's card and its open run.

        A late call of an earlier run is refused, even in the same session: a call of our own agent must be open in a
        turn of that run, and one over MCP shows the token of the run.
        """
        session = await self._sessions.get(context.session)
        if not session.card or not session.run:
            raise ToolFailed("You are not working on a card: your run is over. Nothing was changed.")
        card = await self._cards.get(session.card)
        run, turn = card.run, session.turn
        if run is None or run.number != session.run or run.started.session != session.id:
            raise ToolFailed(f"Run {session.run} of card {card.label} is over. Nothing was changed.")
        if context.run == run.number:
            return _Own(session, card, run)
        if turn is None or turn.number <= run.started.after_turn or session.open_call(context.call) is None:
            raise ToolFailed(
                f"This call was made before run {run.number} of card {card.label} began. Nothing was changed."
            )
        return _Own(session, card, run)

    async def _finish(
        self, context: ToolContext, arguments: msgspec.Struct, ends: Callable[[_Own], list[CardEvent]]
    ) -> ToolOutput:
        """End the run and move the card. A repeated call has no second effect."""
        key = _end_key(context) if context.run else _key(context, arguments)
        if await self._store.find_command(key) is not None:
            return ToolOutput("This was already stored; your run is over.")
        appended = await self._write(context, ends, key)
        card = await self._cards.get(appended.stream.removeprefix("card/"))
        return ToolOutput(f"Card {card.label} is {card.status}. Your run has ended. You may add a closing message.")

    async def _write(
        self, context: ToolContext, decide: Callable[[_Own], list[CardEvent]], key: CommandKey
    ) -> Appended:
        async def change() -> CardChange:
            own = await self._own(context)
            return CardChange(own.card, decide(own), _worker(own))

        return await self._cards.transact(change, command=key)

    async def _complete(self, context: ToolContext, arguments: CompleteArguments) -> ToolOutput:
        def missing() -> list[str]:
            return [name for name in arguments.artifacts if not context.resolve(name).exists()]

        def ends(own: _Own) -> list[CardEvent]:
            card, run, summary = own.card.id, own.run.number, context.mask(arguments.summary)
            if not_there:
                raise ToolFailed(f"There is no file {not_there[0]} in the workspace; list only files that exist.")
            return [
                RunFinished(card=card, run=run, outcome="done", reason=summary),
                CardCompleted(
                    card=card,
                    summary=summary,
                    by=_worker(own),
                    run=run,
                    metadata={name: context.mask(value) for name, value in arguments.metadata.items()},
                    artifacts=arguments.artifacts,
                ),
            ]

        not_there = await context.mounts.run(missing)
        return await self._finish(context, arguments, ends)

    async def _block(self, context: ToolContext, arguments: BlockArguments) -> ToolOutput:
        def ends(own: _Own) -> list[CardEvent]:
            card, run, reason = own.card.id, own.run.number, context.mask(arguments.reason)
            kind = block_words(arguments.kind)
            return [
                RunFinished(card=card, run=run, outcome="blocked", reason=f"blocked ({kind}): {reason}"),
                CardBlocked(card=card, block_kind=arguments.kind, reason=reason, by=_worker(own), run=run),
            ]

        return await self._finish(context, arguments, ends)

    async def _heartbeat(self, context: ToolContext, arguments: NoteArguments) -> ToolOutput:
        def noted(own: _Own) -> list[CardEvent]:
            return [RunHeartbeat(card=own.card.id, run=own.run.number, note=context.mask(arguments.note))]

        key = CommandKey(f"heartbeat-{secrets.token_hex(12)}", "") if context.run else _key(context, arguments)
        await self._write(context, noted, key)
        return ToolOutput("Noted.")

    async def _comment(self, context: ToolContext, arguments: CommentArguments) -> ToolOutput:
        own = await self._own(context)
        card = await self._named(arguments.card, own)
        if card == own.card.id:
            raise ToolFailed("A comment on your own card would be sent back to you; put it into your summary.")
        await self._execute(card, CommentCard(text=context.mask(arguments.text)), context, arguments, own)
        return ToolOutput(f"Commented on card {await self._label(card)}.")

    async def _unblock(self, context: ToolContext, arguments: UnblockArguments) -> ToolOutput:
        own = await self._own(context)
        card = await self._named(arguments.card, own)
        await self._execute(card, UnblockCard(text=context.mask(arguments.text) or None), context, arguments, own)
        return ToolOutput(f"Card {await self._label(card)} is unblocked.")

    async def _profile_of_card(self, context: ToolContext, arguments: CommentArguments | UnblockArguments) -> str:
        """Return the profile of the worker that would get this text; empty if it may do no more than the caller."""
        if not arguments.card:
            return ""
        try:
            card = await self._cards.get((await self._store.cards.card(arguments.card)).id)
        except HoldfastError as error:
            raise ToolFailed(error.message) from error
        session = await self._sessions.get(context.session)
        has_limits = covers(
            session.rights, mode=session.mode_in_force, profile=card.profile, rights=card.rights or NO_LIMITS
        )
        own = card.profile == context.profile and has_limits
        return "" if own else card.profile

    async def _profile_of_new_card(self, context: ToolContext, arguments: CreateArguments) -> str:
        profile = arguments.profile or context.profile
        self._creation.check_profile(profile, creator=context.profile)  # refuse before asking a person
        return "" if profile == context.profile else profile

    async def _create(self, context: ToolContext, arguments: CreateArguments) -> ToolOutput:
        own = await self._own(context)
        caller = Caller(_key(context, arguments), _worker(own))
        appended = await self._store.find_command(caller.key)
        if appended is None:
            profile = arguments.profile or own.session.profile
            command = CreateCard(
                title=context.mask(arguments.title),
                body=context.mask(arguments.body),
                board=own.card.board,
                profile=profile,
                parents=[await self._named(parent, own) for parent in arguments.parents],
                priority=arguments.priority,
            )
            try:
                async with self._creation.granted(context, profile=profile) as rights:
                    appended = await self._cards.create(
                        command, card=secrets.token_hex(4), caller=caller, rights=rights
                    )
            except HoldfastError as error:
                raise ToolFailed(error.message) from error
        return ToolOutput(f"Card {await self._label(appended.stream.removeprefix('card/'))} is on the board.")

    async def _link(self, context: ToolContext, arguments: LinkArguments) -> ToolOutput:
        own = await self._own(context)
        card, parent = await self._named(arguments.card, own), await self._named(arguments.parent, own)
        await self._execute(card, LinkCard(parent=parent), context, arguments, own)
        return ToolOutput(f"Card {await self._label(card)} waits for {await self._label(parent)}.")

    async def _execute(
        self,
        card: str,
        command: CommentCard | LinkCard | UnblockCard,
        context: ToolContext,
        arguments: msgspec.Struct,
        own: _Own,
    ) -> None:
        try:
            await self._cards.execute(card, command, Caller(_key(context, arguments), _worker(own)))
        except HoldfastError as error:
            raise ToolFailed(error.message) from error

    async def _named(self, card: str, own: _Own) -> str:
        if not card:
            return own.card.id
        try:
            return (await self._store.cards.card(card)).id
        except HoldfastError as error:
            raise ToolFailed(error.message) from error

    async def _label(self, card: str) -> str:
        return (await self._cards.get(card)).label

    async def _show(self, context: ToolContext, arguments: OneCard) -> ToolOutput:
        own = await self._own(context)
        card = await self._cards.get(await self._named(arguments.card, own))
        lines = [f"{card.label} {card.title} [{card.status}] {card.reason}".rstrip(), card.body]
        lines += [f"comment by {one.by}: {one.text}" for one in card.comments]
        for run in card.runs:
            end = "running" if run.finished is None else f"{run.finished.outcome}: {run.finished.reason}"
            lines.append(f"run {run.number} ({run.started.profile}): {end}")
        return ToolOutput(bounded("\n".join(filter(None, lines))))

    async def _list(self, context: ToolContext, arguments: ListArguments) -> ToolOutput:
        own = await self._own(context)
        wanted = CardFilter(board=own.card.board, status=arguments.status)
        rows = await self._store.cards.cards(wanted, offset=0, limit=LISTED)
        return ToolOutput("\n".join(f"{row.label} [{row.status}] {row.title}" for row in rows) or "No cards found.")


def _tool(
    name: str,
    description: str,
    effect: Effect,
    arguments: type[A],
    run: Callable[[ToolContext, A], Coroutine[None, None, ToolOutput]],
    other_profile: Callable[[ToolContext, A], Coroutine[None, None, str]] | None = None,
) -> Tool[A]:
    """Return a tool about a card; workers use it without approval."""
    return Tool(
        name,
        description,
        effect,
        arguments,
        run,
        subject_field="card",
        default_policy="allow",
        file_changes="none",
        other_profile=other_profile,
    )


def _worker(own: _Own) -> RunActor:
    return RunActor(card=own.card.id, run=own.run.number, card_number=own.card.number)


def _key(context: ToolContext, arguments: msgspec.Struct) -> CommandKey:
    """Return the command id of a call, which stays the same when the call is repeated after a crash.

    Calls over MCP have no id: there the same arguments count once in a run.
    """
    digest = hashlib.sha256(msgspec.json.encode(arguments)).hexdigest()
    call = f"run {context.run} {type(arguments).__name__} {digest}" if context.run else context.call
    return CommandKey(_command_id("call", context, call), digest)


def _end_key(context: ToolContext) -> CommandKey:
    """Return the command id of the report that ends a run: the first one counts, whatever the second one says."""
    return CommandKey(_command_id("end", context, f"end of run {context.run}"), "")


def _command_id(kind: str, context: ToolContext, name: str) -> str:
    return f"{kind}-{hashlib.blake2s(f'{context.session}/{name}'.encode(), digest_size=12).hexdigest()}"
