"""The controller of the chat, without its screen: sends what is typed, shows what happens.

Everything here runs in one thread, that of the event loop; what blocks (the follower, the outbox,
questions to the gateway) has threads of its own and posts to it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, Protocol

from holdfast.cli.chat import actions
from holdfast.cli.chat.actions import Detached, RunningPrompt, SlashOutcome
from holdfast.cli.chat.attach import AttachedSession
from holdfast.cli.chat.blocks import Block, NoticeBlock, Tone, UserBlock
from holdfast.cli.chat.connection import (
    Delivered,
    DeliveryRejected,
    DeliveryStatus,
    Kind,
    Outbox,
    OutgoingMessage,
    Retrying,
    SessionFollower,
)
from holdfast.cli.chat.live import LiveState
from holdfast.cli.chat.local_state import ReadCursors
from holdfast.cli.chat.slash import Answer, ChatMessage, InvalidInput, Slash, parse_line
from holdfast.cli.commands.still_running import ANSWERS
from holdfast.cli.hints import error_text
from holdfast.client.client import Client
from holdfast.client.errors import ApiError
from holdfast.client.events import RecordItem, RecordReceived, TextDelta
from holdfast.client.http import Json
from holdfast.client.reconnect import Disconnected, Reconnected
from holdfast.client.sessions import WhatRuns
from holdfast.domain.errors import HoldfastError

SAVE_SECONDS = 0.5
CHOICES = "k keep · s stop · c cancel"
DRAIN_SECONDS = 3.0


class Screen(Protocol):
    """The screen and the keyboard of the chat."""

    hung_up: bool
    """Whether the terminal was closed, so that nothing can be printed at the end."""

    async def run(self, chat: ChatController) -> None:
        """Run until the user leaves."""

    def enter(self, attached: AttachedSession) -> None:
        """Show another session from now on."""

    def show(self, blocks: list[Block]) -> None:
        """Print blocks that will not change any more."""

    def refresh(self) -> None:
        """Draw the live part again."""

    def leave(self) -> None:
        """End the screen."""


class ChatController:
    """One terminal on one session at a time."""

    def __init__(self, client: Client, cursors: ReadCursors, screen: Screen, attached: AttachedSession) -> None:
        self._client = client
        self._cursors = cursors
        self._screen = screen
        self._loop = asyncio.get_running_loop()
        self._outbox = Outbox(client, self._poster(self._delivery_changed))
        self._follower: SessionFollower | None = None
        self._received: deque[tuple[SessionFollower, RecordItem | HoldfastError]] = deque()
        self._away_since: float | None = None
        self._saving: asyncio.TimerHandle | None = None
        self._ref, self.view = attached.ref, attached.view
        self._opening = attached
        self.thinking_open = False
        self.detached = ""
        """The task that the turn became when the person left."""
        self.ended = False
        """Whether following ended for good: the session was deleted, or the gateway refuses us."""
        self._changing = False
        self._pending_choice: Slash | None = None
        """The slash command that waits for the choice to keep or stop running commands."""
        self._busy_text = ""
        """What the chat is busy with, to be shown meanwhile."""
        self._pending_input: deque[OutgoingMessage] = deque()
        self._unconfirmed: set[str] = set()
        """Messages that were typed here and have not come back as an event."""

    # --- beginning and end ----------------------------------------------------------------------

    def start(self) -> None:
        """Show the session and follow it."""
        self._outbox.start()
        self._show_session(self._opening)

    def close(self) -> None:
        """Remember how far was read, send what was typed last, and close the connections."""
        self._save()
        if self._away_since is None:
            self._outbox.drain(DRAIN_SECONDS)
        self._outbox.close()
        if self._follower is not None:
            self._follower.close()

    @property
    def unsent(self) -> list[OutgoingMessage]:
        """The texts that no gateway has acknowledged."""
        return [*self._outbox.unsent, *self._pending_input]

    def is_in_doubt(self, message: OutgoingMessage) -> bool:
        """Whether the first of them was sent, so that it may have arrived."""
        return message.id == self._outbox.in_doubt

    @property
    def has_unconfirmed(self) -> bool:
        """Whether a message was sent whose event has not been seen yet."""
        return bool(self._unconfirmed - {message.id for message in self.unsent})

    @property
    def session(self) -> str:
        """The id of the session; empty until the first message."""
        return self._ref.session

    @property
    def is_away(self) -> bool:
        """Whether the gateway cannot be reached."""
        return self._away_since is not None

    def live_state(self, last: Block | None) -> LiveState:
        """The state from which the live part is drawn."""
        return LiveState(
            view=self.view,
            unsent=self.unsent,
            away_since=self._away_since,
            thinking_open=self.thinking_open,
            last=last,
            clock_ms=int(time.time() * 1000),
            monotonic=time.monotonic(),
            choosing=self.choosing or self._busy_text,
        )

    @property
    def choosing(self) -> str:
        """The question of the chat itself; empty when it asks none."""
        return "" if self._pending_choice is None else f"/{self._pending_choice.name}, with commands running: {CHOICES}"

    def _show_session(self, attached: AttachedSession) -> None:
        self._save()
        self._ref, self.view = attached.ref, attached.view
        self._screen.enter(attached)
        self._follow()

    def _follow(self) -> None:
        if self._follower is not None:
            self._follower.close()
            self._follower = None
        self._away_since, self.ended = None, False
        if not self._ref.session:
            return
        drain = self._poster(lambda _: self._apply_received())

        def post(seen: RecordItem | HoldfastError) -> None:
            self._received.append((follower, seen))
            drain(None)

        follower = SessionFollower(self._client, self._ref.session, after=self.view.version, post=post)
        self._follower = follower
        follower.start()
        self._save()

    def _poster(self, take: Callable[[Any], None]) -> Callable[[Any], None]:
        """Pass something from another thread to the loop; drop it if the loop has ended."""

        def post(item: Any) -> None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(take, item)

        return post

    def _save_soon(self) -> None:
        if self._saving is None:
            self._saving = self._loop.call_later(SAVE_SECONDS, self._save)

    def _save(self) -> None:
        if self._saving is not None:
            self._saving.cancel()
            self._saving = None
        if self.view.session and self.view.version > 0:
            with suppress(OSError):  # a full disk: the next time more is shown as unread
                self._cursors.set(self.view.session, self.view.version)

    # --- what happens ---------------------------------------------------------------------------

    def _apply_received(self) -> None:
        """Handle everything that has arrived, and print it at once."""
        blocks: list[Block] = []
        while self._received:
            follower, seen = self._received.popleft()
            if follower is self._follower:
                blocks += self._apply(seen)
        self._show(blocks)
        self._screen.refresh()

    def _apply(self, seen: RecordItem | HoldfastError) -> list[Block]:
        match seen:
            case RecordReceived(record=record):
                self._save_soon()
                event = record["event"]
                self._unconfirmed.discard(event["ref"] if event.get("source") == "comment" else event.get("input", ""))
                return self.view.apply_record(record)
            case TextDelta():
                return self.view.apply_delta(seen)
            case Disconnected():
                self._away_since = time.monotonic()
            case Reconnected():
                self._away_since = None
                self._outbox.try_now()
            case HoldfastError():
                self.ended, self._away_since = True, None
                self.view.end()
                return [NoticeBlock(f"{error_text(seen)} /new starts a session, /resume ID opens another.", "bad")]
        return []

    def _delivery_changed(self, status: DeliveryStatus) -> None:
        match status:
            case Delivered(message=message, warning=warning):
                if warning:
                    self._notice(warning, "warning")
                if message.ref is self._ref and self._follower is None:
                    self._follow()
            case DeliveryRejected(message=message, error=error):
                self._rejected(message, error)
            case Retrying(message=message, first=True, error=error):
                if isinstance(error, ApiError):
                    self._notice(f"{error_text(error)} The message is kept and sent again: {message.text}", "warning")
                elif self._follower is None:
                    self._away_since = time.monotonic()
            case Retrying():
                return
        self._screen.refresh()

    def _rejected(self, message: OutgoingMessage, error: HoldfastError) -> None:
        self._unconfirmed.discard(message.id)
        if self._follower is None:
            self._away_since = None  # the gateway answered, even if it refused
        if message.kind == "stop":
            self.view.is_stopping = False
        kept: list[Block] = [UserBlock(message.text, "not sent")] if message.kind != "stop" else []
        self._show([NoticeBlock(error_text(error), "bad"), *kept])

    def _notice(self, text: str, tone: Tone = "quiet") -> None:
        self._screen.show([NoticeBlock(text, tone)])

    def _show(self, blocks: list[Block]) -> None:
        if blocks:
            self._screen.show(blocks)

    # --- what is typed --------------------------------------------------------------------------

    def submit(self, text: str) -> None:
        """Handle entered text. Characters that are not valid UTF-8 cannot be sent and are replaced."""
        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        if not text.strip():
            return
        if self._pending_choice is not None:
            self._answer_choice(self._pending_choice, ANSWERS.get(text.strip().lower()))
            return
        parsed = parse_line(text, self.view.wait)
        if self._changing and (
            isinstance(parsed, ChatMessage | Answer) or (isinstance(parsed, Slash) and parsed.waits)
        ):
            self._pending_input.append(self._outgoing("message", {}, text))
            self._screen.refresh()
            return
        match parsed:
            case ChatMessage(text=said):
                self._send("message", {"text": said, "mode": "queue"}, said)
            case Answer(wait=wait, answer=answer, note=note):
                self._send("answer", {"wait": wait, "answer": answer, "note": note}, answer)
            case InvalidInput(message=message):
                self._notice(message, "warning")
            case Slash() as slash:
                self.command(slash)
        self._screen.refresh()

    def stop(self) -> None:
        """Ctrl-C: cancel a question of the chat, else stop the turn, else say how to leave."""
        if self._pending_choice is not None:
            self._answer_choice(self._pending_choice, "cancel")
        elif (turn := self.view.turn) is None:
            self._notice("No turn is running, so there is nothing to stop. Ctrl-D leaves the chat.")
        elif self.view.is_stopping:
            self._notice("This turn is already being stopped. Ctrl-D leaves the chat.")
        else:
            self.view.is_stopping = True
            self._send("stop", {"turn": turn.number}, "stop the turn")
            self._run_in_thread(Slash("stop"))

    def open_thinking(self) -> None:
        """Ctrl-T: unfold the current thinking, or show the last one."""
        if self.view.answer_stream.thinking.strip():
            self.thinking_open = not self.thinking_open
            self._screen.refresh()
        else:
            self.command(Slash("thinking"))

    def _answer_choice(self, slash: Slash, choice: WhatRuns | Literal["cancel"] | None) -> None:
        """Handle the choice to keep, stop or cancel; other input is refused."""
        if choice is None:
            self._notice(f"Nothing was sent. First answer this: {CHOICES}.", "warning")
        elif choice == "cancel":
            self._pending_choice = None
            self._notice("Nothing was changed.")
            self._release()
        else:
            self._pending_choice = None
            self.command(replace(slash, running=choice))
        self._screen.refresh()

    def _outgoing(self, kind: Kind, body: Json, text: str) -> OutgoingMessage:
        return OutgoingMessage(kind, self._ref, body, text, time.monotonic())

    def _send(self, kind: Kind, body: Json, text: str) -> None:
        message = self._outgoing(kind, body, text)
        if kind == "message":
            self._unconfirmed.add(message.id)
        self._outbox.put(message)

    def command(self, slash: Slash) -> None:
        """Run a slash command: at once if it needs no gateway, else in a thread."""
        match slash.name:
            case "help":
                self._show(actions.help_blocks())
            case "steer" | "interrupt":
                self._send("message", {"text": slash.argument, "mode": slash.name}, slash.argument)
            case "stop":
                self.stop()
            case "quit":
                self._screen.leave()
            case "detach" if self.view.turn is None:
                self._screen.leave()
            case "open":
                self._show([actions.call_block(self.view, slash.argument)])
            case "thinking":
                self._show([actions.thinking_block(self.view, slash.argument)])
            case _:
                self._changing = self._changing or slash.changes
                if (slash.name, slash.argument) == ("reset", "note"):
                    self._busy_text = "… the agent writes a note for the next chapter"
                self._run_in_thread(slash)

    def _run_in_thread(self, slash: Slash) -> None:
        threading.Thread(target=self._run_command, args=(slash,), name=slash.name, daemon=True).start()

    def _finish_command(self, answer: tuple[Slash, SlashOutcome]) -> None:
        slash, done = answer
        if isinstance(done, AttachedSession):
            self._show_session(done)
        elif isinstance(done, Detached):
            self.detached = done.task
            self._screen.leave()
        elif isinstance(done, RunningPrompt):
            self._pending_choice = done.slash
            self._show(done.blocks)
        else:
            self._show(done)
            if self._ref.session and self._follower is None:
                self._follow()
        if slash.changes:
            self._busy_text = ""
            self._release()
        self._screen.refresh()

    def _release(self) -> None:
        """Handle the input that was held while a command or a choice was open."""
        self._changing = False
        while self._pending_input and not self._changing and self._pending_choice is None:
            self.submit(self._pending_input.popleft().text)

    # --- in another thread ----------------------------------------------------------------------

    def _run_command(self, slash: Slash) -> None:
        done: SlashOutcome = []
        try:
            done = actions.run_slash(self._client, self._cursors, self._ref, self.view, slash)
        finally:
            self._poster(self._finish_command)((slash, done))
