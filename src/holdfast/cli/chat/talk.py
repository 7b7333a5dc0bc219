"""The chat without its screen: what is typed goes out, what happens comes in.

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
from typing import Any, Literal, Protocol

from holdfast.cli.chat import attach, look
from holdfast.cli.chat.attach import Opening
from holdfast.cli.chat.blocks import Block, Listing, Remark
from holdfast.cli.chat.follower import Away, Ended, Follower, Seen
from holdfast.cli.chat.keep import Cursors
from holdfast.cli.chat.live import Now
from holdfast.cli.chat.outbox import Delivered, Letter, Outbox, Receipt, Returned, Waiting, begin
from holdfast.cli.chat.slash import Answer, Message, Slash, Wrong, meaning
from holdfast.cli.chat.speech import Delta
from holdfast.cli.chat.unfold import call_lines, thinking_lines
from holdfast.cli.errors import CliError, NotRunning, Refused
from holdfast.cli.follow import Back, Happened
from holdfast.cli.gateway import Gateway, Json
from holdfast.cli.start import ensure

SAVE_SECONDS = 0.5
DRAIN_SECONDS = 3.0
NEEDS_WORDS = ("why", "context", "export", "undo", "fork")
Done = list[Block] | Opening


class Screen(Protocol):
    """Where the chat is shown, and where one types."""

    hung_up: bool
    """The terminal is gone: there is nobody to say goodbye to."""

    async def run(self, chat: Chat) -> None:
        """Until the person leaves."""

    def enter(self, opening: Opening) -> None:
        """Show a session from here on."""

    def show(self, blocks: list[Block]) -> None:
        """Print what is finished."""

    def refresh(self) -> None:
        """Draw anew what is not."""

    def leave(self) -> None:
        """The chat is over."""


class Chat:
    """One terminal on one session at a time."""

    def __init__(self, gateway: Gateway, cursors: Cursors, screen: Screen, opening: Opening) -> None:
        self._gateway = gateway
        self._cursors = cursors
        self._screen = screen
        self._loop = asyncio.get_running_loop()
        self._outbox = Outbox(gateway, self._poster(self._receipt))
        self._follower: Follower | None = None
        self._came: deque[tuple[Follower, Seen]] = deque()
        self._away_since: float | None = None
        self._saving: asyncio.TimerHandle | None = None
        self._place, self.view = opening.place, opening.view
        self._opening = opening
        self.thinking_open = False
        self.failed: CliError | None = None
        self._unseen: set[str] = set()
        """Messages that were typed here and have not come back as an event."""

    # --- beginning and end ----------------------------------------------------------------------

    def start(self) -> None:
        """Show the session and follow it."""
        self._outbox.start()
        self._enter(self._opening)

    def close(self) -> None:
        """Remember how far was read, send what was typed last, and let go."""
        self._save()
        if self._away_since is None:
            self._outbox.drain(DRAIN_SECONDS)
        self._outbox.close()
        if self._follower is not None:
            self._follower.close()

    @property
    def unsent(self) -> list[Letter]:
        """What no gateway has yet."""
        return self._outbox.unsent

    @property
    def sent_last(self) -> bool:
        """Whether something was sent whose fate was not seen here."""
        return bool(self._unseen - {letter.id for letter in self.unsent})

    @property
    def session(self) -> str:
        """The id; empty as long as nothing was said."""
        return self._place.session

    @property
    def is_away(self) -> bool:
        """Whether the gateway cannot be reached."""
        return self._away_since is not None

    def now(self, last: Block | None) -> Now:
        """What the live part is drawn from."""
        return Now(
            view=self.view,
            unsent=self._outbox.unsent,
            away_since=self._away_since,
            thinking_open=self.thinking_open,
            last=last,
            clock_ms=int(time.time() * 1000),
            monotonic=time.monotonic(),
        )

    def _enter(self, opening: Opening) -> None:
        self._save()
        self._place, self.view = opening.place, opening.view
        self._screen.enter(opening)
        self._follow()

    def _follow(self) -> None:
        if self._follower is not None:
            self._follower.close()
            self._follower = None
        self._away_since = None
        if not self._place.session:
            return
        drain = self._poster(lambda _: self._drain())

        def post(seen: Seen) -> None:
            self._came.append((follower, seen))
            drain(None)

        follower = Follower(self._gateway, self._place.session, after=self.view.version, post=post)
        self._follower = follower
        follower.start()
        self._save()

    def _poster(self, take: Callable[[Any], None]) -> Callable[[Any], None]:
        """For the other threads; when the loop is gone nobody listens any more."""

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
            with suppress(OSError):  # a full disk costs a line of comfort
                self._cursors.set(self.view.session, self.view.version)

    # --- what happens ---------------------------------------------------------------------------

    def _drain(self) -> None:
        """Everything that has come since the last time, printed at once."""
        blocks: list[Block] = []
        while self._came:
            follower, seen = self._came.popleft()
            if follower is self._follower:
                blocks += self._seen(seen)
        self._show(blocks)
        self._screen.refresh()

    def _seen(self, seen: Seen) -> list[Block]:
        match seen:
            case Happened(record=record):
                self._save_soon()
                self._unseen.discard(record["event"].get("input", ""))
                return self.view.happened(record)
            case Delta():
                return self.view.spoken(seen)
            case Away(since=since):
                self._away_since = since
            case Back():
                self._away_since = None
                self._outbox.try_now()
            case Ended(error=error):
                self.failed = error
                self._screen.leave()
        return []

    def _receipt(self, receipt: Receipt) -> None:
        match receipt:
            case Delivered(letter=letter):
                if letter.place is self._place and self._follower is None:
                    self._follow()
            case Returned(letter=letter, error=error):
                self._unseen.discard(letter.id)
                lost = f" Not sent: {letter.text}" if letter.kind == "message" else ""
                self._show([Remark(_words(error) + lost, "bad")])
            case Waiting(letter=letter, first=True, error=error):
                if isinstance(error, Refused):
                    self._show([Remark(f"{_words(error)} It is kept and tried again: {letter.text}", "warning")])
                elif self._follower is None:
                    self._away_since = time.monotonic()
            case Waiting():
                return
        self._screen.refresh()

    def _show(self, blocks: list[Block]) -> None:
        if blocks:
            self._screen.show(blocks)

    # --- what is typed --------------------------------------------------------------------------

    def typed(self, text: str) -> None:
        """A line, or several, were entered. What is not UTF-8 cannot be sent, so it is marked."""
        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        if not text.strip():
            return
        match meaning(text, self.view.wait):
            case Message(text=said):
                self._send("message", {"text": said, "mode": "queue"}, said)
            case Answer(wait=wait, answer=answer, note=note):
                self._send("answer", {"wait": wait, "answer": answer, "note": note}, answer)
            case Wrong(message=message):
                self._show([Remark(message, "warning")])
            case Slash() as slash:
                self._command(slash)
        self._screen.refresh()

    def stop(self) -> None:
        """Ctrl-C: end the turn; with none, say how to leave."""
        turn = self.view.turn
        if turn is None:
            self._show([Remark("No turn runs, so there is nothing to stop. Ctrl-D leaves.")])
        elif turn.stopping:
            self._show([Remark("This turn is being stopped already. Ctrl-D leaves; it ends by itself.")])
        else:
            self._send("stop", {}, "stop the turn")

    def open_last_call(self) -> None:
        """Ctrl-O."""
        self._command(Slash("open"))

    def open_thinking(self) -> None:
        """Ctrl-T: while it thinks, unfold it; else show the last."""
        if self.view.speech.thinking.strip():
            self.thinking_open = not self.thinking_open
            self._screen.refresh()
        else:
            self._command(Slash("thinking"))

    def _send(self, kind: Literal["message", "answer", "stop"], body: Json, text: str) -> None:
        letter = Letter(kind, self._place, body, text, time.monotonic())
        if kind == "message":
            self._unseen.add(letter.id)
        self._outbox.put(letter)

    def _command(self, slash: Slash) -> None:
        """Those that need no gateway at once, the others beside the conversation."""
        match slash.name:
            case "help":
                self._show(look.help_())
            case "steer" | "interrupt":
                self._send("message", {"text": slash.argument, "mode": slash.name}, slash.argument)
            case "stop":
                self.stop()
            case "detach" | "quit":
                self._screen.leave()
            case "open":
                self._show([Listing(call_lines(self.view, slash.argument))])
            case "thinking":
                self._show([Listing(thinking_lines(self.view, slash.argument))])
            case _:
                threading.Thread(target=self._ask, args=(slash,), name=slash.name, daemon=True).start()

    def _did(self, done: Done) -> None:
        if isinstance(done, Opening):
            self._enter(done)
        else:
            self._show(done)
            if self._place.session and self._follower is None:
                self._follow()
        self._screen.refresh()

    # --- in another thread ----------------------------------------------------------------------

    def _ask(self, slash: Slash) -> None:
        post = self._poster(self._did)
        try:
            post(self._do(slash))
        except NotRunning as error:
            post([Remark(f"{error.message} /start starts one.", "bad")])
        except CliError as error:
            post([Remark(_words(error), "bad")])

    def _do(self, slash: Slash) -> Done:
        """What asks the gateway; only reads fields here."""
        argument, place, view = slash.argument, self._place, self.view
        match slash.name:
            case "sessions":
                return look.sessions(self._gateway, place.session)
            case "inbox":
                return look.inbox(self._gateway, place.session)
            case "profile" if not argument:
                return look.profiles(self._gateway, view.profile)
            case "model" if not argument:
                return look.models(self._gateway)
            case "start":
                address = ensure(self._gateway)
                return [Remark(f"a gateway runs at {address.url} (pid {address.pid})")]
            case "resume":
                return attach.attach(self._gateway, argument, self._cursors)
            case "new":
                return attach.new(self._gateway, view.cwd, place.profile)
            case "profile" if not place.session:
                return attach.new(self._gateway, view.cwd, argument)
            case name if name in NEEDS_WORDS and not place.session:
                return [Remark("Nothing was said here yet.")]
            case _:
                return self._do_here(slash)

    def _do_here(self, slash: Slash) -> Done:
        """What is about this very session; it begins now if it has not begun."""
        argument, place = slash.argument, self._place
        with place.lock:
            if not place.session:
                begin(self._gateway, place)
        target = f"/v1/sessions/{place.session}"
        match slash.name:
            case "why":
                return look.why(self._gateway, place.session)
            case "context":
                return look.context(self._gateway, place.session)
            case "export":
                return look.export(self._gateway, place.session, argument)
            case "rename":
                self._gateway.command("PATCH", target, {"title": argument})
            case "undo":
                self._gateway.command("POST", f"{target}/undo", {})
            case "model":
                self._gateway.command("POST", f"{target}/agent", {"model": "" if argument == "default" else argument})
            case "profile":
                self._gateway.command("POST", f"{target}/agent", {"profile": argument})
            case "fork":
                return self._fork(target, argument)
            case _:
                raise AssertionError(slash.name)
        return []

    def _fork(self, target: str, version: str) -> Done:
        if version and not (version.isascii() and version.isdecimal()):
            return [Remark(f"{version!r} is not a version; `holdfast sessions log` shows them.", "warning")]
        body = {"version": int(version)} if version else {}
        fork = self._gateway.command("POST", f"{target}/fork", body)["session"]
        return attach.attach(self._gateway, fork, self._cursors)


def _words(error: CliError) -> str:
    return f"{error.message} {error.hint}".strip()
