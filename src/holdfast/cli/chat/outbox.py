"""What was typed, on its way to the gateway: in order, kept while it is away, stored once.

A letter's id is minted when it is typed and sent with every try. A thread of its own sends, so that typing
never waits.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from holdfast.cli.errors import CliError, Lost, NotRunning, Refused
from holdfast.cli.gateway import Gateway, Json, new_id

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 2.0
DISK_FULL = 507
Kind = Literal["message", "answer", "stop"]


@dataclass(slots=True)
class Place:
    """The session that is talked to. Without an id it begins with the first message."""

    session: str = ""
    cwd: str = ""
    profile: str | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, slots=True)
class Letter:
    """A command of the person at this terminal."""

    kind: Kind
    place: Place
    body: Json
    text: str
    at: float
    id: str = field(default_factory=new_id)


@dataclass(frozen=True, slots=True)
class Delivered:
    """The gateway has it on disk."""

    letter: Letter


@dataclass(frozen=True, slots=True)
class Returned:
    """The gateway does not take it."""

    letter: Letter
    error: CliError


@dataclass(frozen=True, slots=True)
class Waiting:
    """It is kept and tried again; why, and whether this was the first try."""

    letter: Letter
    error: CliError
    first: bool


Receipt = Delivered | Returned | Waiting


class Outbox:
    """Sends letters one after the other."""

    def __init__(self, gateway: Gateway, post: Callable[[Receipt], None]) -> None:
        self._gateway = gateway
        self._post = post
        self._letters: deque[Letter] = deque()
        self._something = threading.Condition()
        self._again = threading.Event()
        self._closed = False
        self.in_doubt = ""
        """The id of the letter that was sent and not acknowledged: it may have arrived."""

    def start(self) -> None:
        """Begin. The thread never keeps the process alive."""
        threading.Thread(target=self._run, name="outbox", daemon=True).start()

    def close(self) -> None:
        """Send nothing more."""
        with self._something:
            self._closed = True
            self._something.notify()
        self._again.set()

    def drain(self, seconds: float) -> None:
        """Give what was typed last a moment to arrive."""
        with self._something:
            self._something.wait_for(lambda: not self._letters, timeout=seconds)

    @property
    def unsent(self) -> list[Letter]:
        """What no gateway has acknowledged yet."""
        return list(self._letters)

    def put(self, letter: Letter) -> None:
        """Send it as soon as possible."""
        with self._something:
            self._letters.append(letter)
            self._something.notify()

    def try_now(self) -> None:
        """The gateway is back."""
        self._again.set()

    def _run(self) -> None:
        while True:
            with self._something:
                self._something.wait_for(lambda: self._letters or self._closed)
            if self._closed:
                return
            self._deliver(self._letters[0])

    def _deliver(self, letter: Letter) -> None:
        pause, first = FIRST_PAUSE, True
        while not self._closed:
            self._again.clear()
            before, self.in_doubt = self.in_doubt, letter.id
            try:
                send(self._gateway, letter)
            except CliError as error:
                if not isinstance(error, Lost):
                    self.in_doubt = before
                if not _may_pass(error):
                    self._done(Returned(letter, error))
                    return
                self._post(Waiting(letter, error, first))
            except ValueError as error:
                self._done(Returned(letter, CliError(f"What answered is not a gateway of ours: {error}.")))
                return
            else:
                self._done(Delivered(letter))
                return
            self._again.wait(pause)
            pause, first = min(pause * 2, LONGEST_PAUSE), False

    def _done(self, receipt: Delivered | Returned) -> None:
        with self._something:
            self._letters.popleft()
            self._something.notify_all()
        self._post(receipt)


def _may_pass(error: CliError) -> bool:
    """Whether the same letter may be taken later: nobody was there, or the disk was full."""
    return isinstance(error, Lost | NotRunning) or (isinstance(error, Refused) and error.status == DISK_FULL)


def send(gateway: Gateway, letter: Letter) -> None:
    """One try. The first message to a new place begins its session."""
    place = letter.place
    match letter.kind:
        case "answer":
            gateway.command("POST", "/v1/answers", letter.body, id=letter.id)
        case "stop":
            gateway.command("POST", f"/v1/sessions/{place.session}/stop", letter.body, id=letter.id)
        case "message":
            with place.lock:
                if not place.session:
                    begin(gateway, place, text=letter.text, id=letter.id)
                    return
            gateway.command("POST", f"/v1/sessions/{place.session}/messages", letter.body, id=letter.id)


def begin(gateway: Gateway, place: Place, *, text: str | None = None, id: str | None = None) -> None:
    """Begin the session of a place; its lock must be held."""
    body: Json = {"cwd": place.cwd}
    if text is not None:
        body["text"] = text
    if place.profile is not None:
        body["profile"] = place.profile
    place.session = str(gateway.command("POST", "/v1/sessions", body, id=id)["session"])
