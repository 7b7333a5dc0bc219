"""What people write in a chat of another service becomes commands, the same that every client gives.

The id of a command is computed from what the service calls the message, so a message that is delivered again is carried
out once. A refusal becomes an answer in the chat; a gateway that cannot write raises, and the message is taken later.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.board.cards import Cards
from holdfast.board.inbox import WORDS, InboxReader
from holdfast.board.startable import StartableCards
from holdfast.clock import Clock
from holdfast.domain.card_number import card_label
from holdfast.domain.command import TITLE_LIMIT
from holdfast.domain.commands import (
    AnswerWait,
    CommentCard,
    CreateCard,
    CreateSession,
    SendMessage,
    StopTurn,
    UnblockCard,
)
from holdfast.domain.errors import Conflict, Gone, NotFound, Rejected, Unavailable
from holdfast.domain.events import task_stream
from holdfast.domain.events.actor import PersonActor
from holdfast.domain.task_commands import StartAgent
from holdfast.domain.text import duration, shorten
from holdfast.domain.why import Sentence, why, why_card, why_task
from holdfast.profiles import Profiles
from holdfast.schemas.inbox import InboxEntry
from holdfast.sessions import Caller, Sessions
from holdfast.store.contract import CommandKey, Store
from holdfast.store.reads import CardFilter
from holdfast.store.rows import CardRow, SessionRow, TaskRow, TitledWait
from holdfast.tasks.agents import AgentTasks
from holdfast.tasks.log import agent_started
from holdfast.tasks.queries import TaskQueries

VERBS = {
    "new": "begin a new session here: /new [TEXT]",
    "stop": "stop the running turn",
    "tasks": "list what is running",
    "inbox": "list what waits for a person",
    "why": "what it is doing, and why: /why [CARD or TASK]",
    "bg": "start an agent in the background: /bg PROMPT",
    "card": "cards: /card, /card CARD, /card add TITLE, /card comment CARD TEXT, /card unblock CARD [TEXT]",
    "help": "show this list",
}
MOST_LINES = 20
MOST_WAITS = 5
MARKDOWN = re.compile(r"([\\`*_\[\]<>#~|])")
SLASH = re.compile(r"/([a-zA-Z_]+)(?:\s+(.*))?\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ChatInput:
    """A message, or a press of a button."""

    id: str
    """Of the command that it becomes: the same however often it is delivered."""
    chat: str
    by: PersonActor
    text: str = ""
    may_approve: bool = False


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What is said in the chat at once, in Markdown; and questions to show there with their buttons."""

    text: str = ""
    waits: list[TitledWait] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatWork:
    """The parts of the gateway that the commands are about."""

    store: Store
    sessions: Sessions
    agent_tasks: AgentTasks
    tasks: TaskQueries
    cards: Cards
    startable: StartableCards
    inbox: InboxReader
    profiles: Profiles
    clock: Clock


class ChatCommands:
    """Carries out what is written in chats."""

    def __init__(self, work: ChatWork) -> None:
        self._work = work
        self._store = work.store
        self._verbs: dict[str, Callable[[ChatInput, str], Awaitable[ChatReply]]] = {
            "new": self._new,
            "stop": self._stop,
            "tasks": self._tasks,
            "inbox": self._inbox,
            "why": self._why,
            "bg": self._background,
            "card": self._card,
        }

    async def say(self, incoming: ChatInput) -> ChatReply:
        """Carry out a message: a verb, the answer to an open question, or something to say to the agent."""
        text = incoming.text.strip()
        found = SLASH.match(text)
        verb = found[1].lower() if found else ""
        try:
            if found is None:
                return await self._message(incoming, text.removeprefix("/") if text.startswith("//") else text)
            if verb not in self._verbs:
                return ChatReply(_help("" if verb in ("help", "start") else f"There is no /{verb}."))
            return await self._verbs[verb](incoming, (found[2] or "").strip())
        except (Conflict, Rejected) as error:
            return ChatReply(_plain(f"{error.message} {error.hint}".strip()))
        except Unavailable as error:
            if not self._store.health.writable:
                raise
            return ChatReply(_plain(f"{error.message} {error.hint}".strip()))

    async def press(self, incoming: ChatInput, wait: TitledWait, answer: str) -> str:
        """Answer a wait by a button; return what became of it, in plain words."""
        if wait.purpose == "approval" and not incoming.may_approve:
            return "You may not answer approvals. Nothing has changed."
        try:
            row = await self._store.session(wait.session)
            if row.chat != incoming.chat and not incoming.may_approve:
                return "You may only answer what is asked in this chat. Nothing has changed."
            await self._work.sessions.execute(row.id, AnswerWait(wait=wait.id, answer=answer), self._caller(incoming))
        except (Conflict, Rejected) as error:
            return f"{error.message} Nothing has changed."
        return f"Answered: {answer}"

    # --- talking --------------------------------------------------------------------------------

    async def _message(self, incoming: ChatInput, text: str) -> ChatReply:
        row = await self._store.session_of_chat(incoming.chat)
        if row is None:
            await self._create(incoming, CreateSession(text=text))
            return ChatReply()
        state = await self._work.sessions.get(row.id)
        wait = None if state.turn is None else state.turn.wait
        caller = self._caller(incoming)
        if wait is not None and wait.purpose == "question":
            await self._work.sessions.execute(row.id, AnswerWait(wait=wait.wait, answer=text), caller)
            return ChatReply()
        await self._work.sessions.execute(row.id, SendMessage(text=text), caller)
        if wait is not None and wait.purpose in ("approval", "compaction", "login", "quota"):
            return ChatReply("It waits for an answer by a button (/inbox shows it). Your message is next.")
        return ChatReply()

    async def _create(self, incoming: ChatInput, command: CreateSession, *, id: str = "") -> str:
        """Begin a session of the chat; return its id, also when it was begun by an earlier delivery."""
        profiles = self._work.profiles
        profile = profiles.settings.telegram.profile or profiles.default
        here = await self._work.agent_tasks.may_run_here(profile)
        created = await self._work.sessions.create(
            command,
            session=secrets.token_hex(8),
            profile=profile,
            driver=profiles.driver(profile),
            cwd=str(Path.home()),
            caller=self._caller(incoming, id=id),
            chat=incoming.chat,
            here=here,
        )
        return created.stream.removeprefix("session/")

    async def _current(self, incoming: ChatInput) -> SessionRow:
        row = await self._store.session_of_chat(incoming.chat)
        if row is None:
            raise NotFound("Nothing was said here yet.", hint="Write a message first.")
        return row

    def _caller(self, incoming: ChatInput, *, id: str = "") -> Caller:
        digest = hashlib.sha256(f"{incoming.chat}\n{incoming.text}".encode()).hexdigest()
        return Caller(CommandKey(id or incoming.id, digest), incoming.by)

    # --- verbs ----------------------------------------------------------------------------------

    async def _new(self, incoming: ChatInput, text: str) -> ChatReply:
        await self._create(incoming, CreateSession(text=text or None))
        return ChatReply("" if text else "A new session has begun. The old one continues what it is doing.")

    async def _stop(self, incoming: ChatInput, _: str) -> ChatReply:
        row = await self._current(incoming)
        await self._work.sessions.execute(row.id, StopTurn(), self._caller(incoming))
        return ChatReply("The turn is being stopped. Background tasks continue (/tasks).")

    async def _tasks(self, _: ChatInput, __: str) -> ChatReply:
        found = await self._work.tasks.running()
        now = self._work.clock.now()
        lines = [
            f"- `{task.id[:8]}` {_plain(shorten(task.title, 80))} ({task.kind}, {duration(now - task.started_at)})"
            for task in found
        ]
        return ChatReply(_listed(lines, "Nothing is running."))

    async def _inbox(self, incoming: ChatInput, _: str) -> ChatReply:
        entries, now = await self._work.inbox.entries(), self._work.clock.now()
        lines = [f"- {WORDS[one.kind]}, {duration(now - one.since)}: {_plain(_entry(one))}" for one in entries]
        shown: list[TitledWait] = []
        for wait in await self._store.waits():
            row = await self._store.session(wait.session)
            if incoming.may_approve or row.chat == incoming.chat:
                shown.append(wait)
        return ChatReply(_listed(lines, "Nothing is waiting for a person."), shown[:MOST_WAITS])

    async def _why(self, incoming: ChatInput, name: str) -> ChatReply:
        now = self._work.clock.now()
        if not name:
            state = await self._work.sessions.get((await self._current(incoming)).id)
            return _sentences(why(state, now=now))
        try:
            return await self._why_card(await self._store.cards.card(name))
        except (NotFound, Gone):
            row = await self._task(name)
        return _sentences(why_task(await self._store.load(task_stream(row.id), after=0), now=now))

    async def _task(self, name: str) -> TaskRow:
        try:
            return await self._work.tasks.find(name)
        except NotFound:
            hint = "/card lists the open cards, /tasks what is running."
            raise NotFound(f"There is no card or task {name}.", hint=hint) from None

    async def _background(self, incoming: ChatInput, prompt: str) -> ChatReply:
        if not prompt:
            raise Rejected("/bg needs a prompt for an agent: /bg PROMPT.", hint="/tasks lists what is running.")
        row = await self._store.session_of_chat(incoming.chat)
        session = row.id if row else await self._create(incoming, CreateSession(), id=f"{incoming.id}-begin")
        state, task = await self._work.sessions.get(session), secrets.token_hex(8)
        command = StartAgent(prompt=prompt, session=session)
        started = agent_started(command, task=task, cwd=state.cwd, by=incoming.by, session=session)
        caller = self._caller(incoming).replying(session=task)
        begun = await self._work.agent_tasks.start(
            started, profile=state.profile, caller=caller, mode=state.mode_in_force, node=state.home or state.node
        )
        return ChatReply(f"Task `{begun.stream.removeprefix('task/')[:8]}` is running; its end is reported here.")

    # --- cards ----------------------------------------------------------------------------------

    async def _card(self, incoming: ChatInput, argument: str) -> ChatReply:
        first, _, rest = argument.partition(" ")
        match first:
            case "":
                return await self._cards()
            case "add":
                return await self._add_card(incoming, rest.strip())
            case "comment" | "unblock":
                name, _, text = rest.strip().partition(" ")
                row = await self._store.cards.card(name)
                said = text.strip()
                command = CommentCard(text=said) if first == "comment" else UnblockCard(text=said or None)
                if first == "comment" and not said:
                    raise Rejected("The comment is empty: /card comment CARD TEXT.")
                if not incoming.may_approve and not await self._reports_to(row, incoming.chat):
                    raise Rejected(
                        f"{row.label} was not added here.", hint="Only an approver can send something to its worker."
                    )
                await self._work.cards.execute(row.id, command, self._caller(incoming))
                return ChatReply(f"{row.label}: {'commented' if first == 'comment' else 'unblocked'}.")
            case _:
                return await self._why_card(await self._store.cards.card(argument))

    async def _reports_to(self, row: CardRow, chat: str) -> bool:
        """Whether a session of the chat follows the card: its worker may have more rights than those who talk here."""
        for session in (await self._work.cards.get(row.id)).followers:
            with suppress(NotFound, Gone):
                if (await self._store.session(session)).chat == chat:
                    return True
        return False

    async def _cards(self) -> ChatReply:
        rows = await self._store.cards.cards(CardFilter(), offset=0, limit=200)
        opened = [row for row in rows if row.status != "done"]
        lines = [f"- {row.label} {_plain(shorten(row.title, 80))} ({row.status})" for row in opened]
        return ChatReply(_listed(lines, "There is no open card. /card add TITLE adds one."))

    async def _add_card(self, incoming: ChatInput, text: str) -> ChatReply:
        title, _, body = text.partition("\n")
        if not title:
            raise Rejected("The card needs a title: /card add TITLE.")
        row = await self._store.session_of_chat(incoming.chat)
        session = row.id if row else await self._create(incoming, CreateSession(), id=f"{incoming.id}-begin")
        profile = (await self._work.sessions.get(session)).profile  # people in this chat may use only this agent
        command = CreateCard(title=title[:TITLE_LIMIT], body=body.strip(), session=session, profile=profile)
        done = await self._work.cards.create(command, card=secrets.token_hex(4), caller=self._caller(incoming))
        card = await self._work.cards.get(done.stream.removeprefix("card/"))
        answer = f"/card unblock {card.label} ANSWER"
        return ChatReply(
            f"{card.label} was added; its blocks and its end are reported here. If it asks something: `{answer}`"
        )

    async def _why_card(self, row: CardRow) -> ChatReply:
        card = await self._work.cards.get(row.id)
        reason = await self._work.startable.why_not(card)
        session = None if card.run is None else await self._work.sessions.get(card.run.started.session)
        sentences = why_card(card, reason, session, now=self._work.clock.now())
        head = f"**{row.label} {_plain(row.title)}** ({row.status})"
        return ChatReply(f"{head}\n\n{_sentences(sentences).text}")


def _plain(text: str) -> str:
    """A text that is no Markdown, as Markdown."""
    return MARKDOWN.sub(r"\\\1", text)


def _entry(one: InboxEntry) -> str:
    """What waits, in a line; a card with its number, by which it is answered."""
    number = f"{card_label(one.number, '')} " if one.number else ""
    return number + shorten(f"{one.title}: {one.what}", 200)


def _listed(lines: list[str], otherwise: str) -> str:
    more = [f"- … and {len(lines) - MOST_LINES} more"] if len(lines) > MOST_LINES else []
    return "\n".join([*lines[:MOST_LINES], *more]) or otherwise


def _sentences(found: list[Sentence]) -> ChatReply:
    return ChatReply(_plain("\n".join(one.text for one in found[:MOST_LINES])))


def _help(before: str) -> str:
    lines = [f"/{name}: {_plain(does)}" for name, does in VERBS.items()]
    return "\n".join([*([before] if before else []), "Write to talk to the agent. Besides:", *lines])
