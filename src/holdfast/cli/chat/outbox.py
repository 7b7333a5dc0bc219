"""What was typed, on its way to the gateway: in order, kept while it is away, stored once.

A letter's id is minted when it is typed and sent with every try. A thread of its own sends, so that typing
never waits.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from holdfast.cli.errors import CliError
from holdfast.client.client import Client
from holdfast.client.errors import ApiError, ConnectionLost
from holdfast.client.http import Json, new_id
from holdfast.client.reconnect import UNREACHABLE, Reconnect
from holdfast.domain.errors import HoldfastError

DISK_FULL = 507
TRY_SECONDS = 1.0
"""Longer than a client looks for a gateway where none runs."""
FULL_SECONDS = 60.0
"""How long a message is offered to a gateway whose disk is full, before it is given back."""
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
    """The gateway has it on disk; what it warns of, if anything."""

    letter: Letter
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Returned:
    """The gateway does not take it."""

    letter: Letter
    error: HoldfastError


@dataclass(frozen=True, slots=True)
class Waiting:
    """It is kept and tried again; why, and whether this was the first try."""

    letter: Letter
    error: HoldfastError
    first: bool


Receipt = Delivered | Returned | Waiting


class Outbox:
    """Sends letters one after the other."""

    def __init__(self, client: Client, post: Callable[[Receipt], None]) -> None:
        self._client = client
        self._post = post
        self._letters: deque[Letter] = deque()
        self._something = threading.Condition()
        self._again = threading.Event()
        self._closed = False
        self._tried_since: dict[str, float] = {}
        """When each letter was refused or unheard for the first time, by its id."""
        self._thread = threading.Thread(target=self._run, name="outbox", daemon=True)
        self.in_doubt = ""
        """The id of the letter that was sent and not acknowledged: it may have arrived."""

    def start(self) -> None:
        """Begin. The thread never keeps the process alive."""
        self._thread.start()

    def close(self) -> None:
        """Send nothing more. A try that is under way gets a moment to end: then it is known whether it arrived."""
        with self._something:
            self._closed = True
            self._something.notify()
        self._again.set()
        if self._thread.is_alive():
            self._thread.join(TRY_SECONDS)

    def drain(self, seconds: float) -> None:
        """Give what was typed last a moment to arrive."""
        with self._something:
            self._something.wait_for(lambda: not self._letters, timeout=seconds)

    @property
    def unsent(self) -> list[Letter]:
        """What no gateway has acknowledged yet."""
        return list(self._letters)

    def put(self, letter: Letter) -> None:
        """Send it as soon as possible. A stop goes before what is still waiting: it is about the turn that runs now."""
        with self._something:
            self._letters.append(letter)
            self._something.notify()
        if letter.kind == "stop":
            self._again.set()

    def try_now(self) -> None:
        """The gateway is back."""
        self._again.set()

    def _run(self) -> None:
        reconnect = Reconnect(patience=math.inf, sleep=self._again.wait)
        while True:
            with self._something:
                self._something.wait_for(lambda: self._letters or self._closed)
            if self._closed:
                return
            self._again.clear()
            error = self._deliver(self._next())
            if error is None:
                reconnect.succeeded()
                continue
            reconnect.wait(error)
            if self._again.is_set():
                reconnect.succeeded()

    def _next(self) -> Letter:
        """The oldest, but a stop first."""
        return next((letter for letter in self._letters if letter.kind == "stop"), self._letters[0])

    def _deliver(self, letter: Letter) -> HoldfastError | None:
        """One try. Why the letter is to be tried again, if it is."""
        before, self.in_doubt = self.in_doubt, letter.id
        now = time.monotonic()
        try:
            warning = send(self._client, letter)
        except HoldfastError as error:
            if not isinstance(error, ConnectionLost):
                self.in_doubt = before
            first = letter.id not in self._tried_since
            since = self._tried_since.setdefault(letter.id, now)
            if not _may_pass(error) or (_disk_is_full(error) and now - since > FULL_SECONDS):
                self._done(letter, Returned(letter, error))
                return None
            self._post(Waiting(letter, error, first))
            return error
        except ValueError as error:
            self._done(letter, Returned(letter, CliError(f"What answered is not a gateway of ours: {error}.")))
            return None
        self.in_doubt = before
        self._done(letter, Delivered(letter, warning))
        return None

    def _done(self, letter: Letter, receipt: Delivered | Returned) -> None:
        with self._something:
            self._letters.remove(letter)
            self._tried_since.pop(letter.id, None)
            self._something.notify_all()
        self._post(receipt)


def _disk_is_full(error: HoldfastError) -> bool:
    return isinstance(error, ApiError) and error.status == DISK_FULL


def _may_pass(error: HoldfastError) -> bool:
    """Whether the same letter may be taken later: nobody was there, or the disk was full."""
    return isinstance(error, UNREACHABLE) or _disk_is_full(error)


def send(client: Client, letter: Letter) -> str:
    """One try; what the gateway warns of. The first message to a new place begins its session."""
    place = letter.place
    match letter.kind:
        case "answer":
            return str(client.command("POST", "/v1/answers", letter.body, id=letter.id).get("warning", ""))
        case "stop":
            client.command("POST", f"/v1/sessions/{place.session}/stop", letter.body, id=letter.id)
        case "message":
            with place.lock:
                if not place.session:
                    begin(client, place, text=letter.text, id=letter.id)
                    return ""
            client.command("POST", f"/v1/sessions/{place.session}/messages", letter.body, id=letter.id)
    return ""


def begin(client: Client, place: Place, *, text: str | None = None, id: str | None = None) -> None:
    """Begin the session of a place; its lock must be held."""
    body: Json = {"cwd": place.cwd}
    if text is not None:
        body["text"] = text
    if place.profile is not None:
        body["profile"] = place.profile
    place.session = str(client.command("POST", "/v1/sessions", body, id=id)["session"])
