"""The connection to the gateway: sends what was typed and receives the events, each in a thread of its own.

What was typed is sent in order, kept while the gateway is away, and stored once: a message's id is minted when it is
typed and sent with every try. Typing never waits.
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
from holdfast.client.events import RecordItem, follow_records
from holdfast.client.http import Json, new_id
from holdfast.client.reconnect import UNREACHABLE, Reconnect
from holdfast.domain.errors import HoldfastError

DISK_FULL = 507
TRY_SECONDS = 1.0
"""Longer than a client takes to find out that no gateway runs."""
FULL_SECONDS = 60.0
"""How long a message is sent again to a gateway whose disk is full, before it is given back to the user."""
Kind = Literal["message", "answer", "stop"]


@dataclass(slots=True)
class SessionRef:
    """The session of the chat. Without an id it is created by the first message."""

    session: str = ""
    cwd: str = ""
    profile: str | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """A message or command of the user that is to be sent."""

    kind: Kind
    ref: SessionRef
    body: Json
    text: str
    at: float
    id: str = field(default_factory=new_id)


@dataclass(frozen=True, slots=True)
class Delivered:
    """The gateway has stored it; with its warning, if there is one."""

    message: OutgoingMessage
    warning: str = ""


@dataclass(frozen=True, slots=True)
class DeliveryRejected:
    """The gateway refused it."""

    message: OutgoingMessage
    error: HoldfastError


@dataclass(frozen=True, slots=True)
class Retrying:
    """It will be sent again; with the reason, and whether this was the first try."""

    message: OutgoingMessage
    error: HoldfastError
    first: bool


DeliveryStatus = Delivered | DeliveryRejected | Retrying


class Outbox:
    """Sends messages one after the other."""

    def __init__(
        self, client: Client, post: Callable[[DeliveryStatus], None], *, full_seconds: float = FULL_SECONDS
    ) -> None:
        self._full_seconds = full_seconds
        self._client = client
        self._post = post
        self._messages: deque[OutgoingMessage] = deque()
        self._changed = threading.Condition()
        self._retry_now = threading.Event()
        self._closed = False
        self._tried_since: dict[str, float] = {}
        """When sending failed for the first time, by message id."""
        self._thread = threading.Thread(target=self._run, name="outbox", daemon=True)
        self.in_doubt = ""
        """The id of the message that was sent and not acknowledged: it may have arrived."""

    def start(self) -> None:
        """Start the thread, which never keeps the process alive."""
        self._thread.start()

    def close(self) -> None:
        """Send nothing more. A request in flight gets a moment to end, so that it is known whether it arrived."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._retry_now.set()
        if self._thread.is_alive():
            self._thread.join(TRY_SECONDS)

    def drain(self, seconds: float) -> None:
        """Wait a moment for the last messages to be sent."""
        with self._changed:
            self._changed.wait_for(lambda: not self._messages, timeout=seconds)

    @property
    def unsent(self) -> list[OutgoingMessage]:
        """The messages that no gateway has acknowledged yet."""
        return list(self._messages)

    def put(self, message: OutgoingMessage) -> None:
        """Send a message as soon as possible. A stop is sent before waiting messages: it is about the running turn."""
        with self._changed:
            self._messages.append(message)
            self._changed.notify()
        if message.kind == "stop":
            self._retry_now.set()

    def try_now(self) -> None:
        """Try again at once: the gateway is back."""
        self._retry_now.set()

    def _run(self) -> None:
        reconnect = Reconnect(patience=math.inf, sleep=self._retry_now.wait)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._messages or self._closed)
            if self._closed:
                return
            self._retry_now.clear()
            error = self._deliver(self._next())
            if error is None:
                reconnect.succeeded()
                continue
            reconnect.wait(error)
            if self._retry_now.is_set():
                reconnect.succeeded()

    def _next(self) -> OutgoingMessage:
        """Take a stop if there is one, else the oldest message."""
        return next((message for message in self._messages if message.kind == "stop"), self._messages[0])

    def _deliver(self, message: OutgoingMessage) -> HoldfastError | None:
        """Try to send once; return why to try again, or nothing."""
        before, self.in_doubt = self.in_doubt, message.id
        now = time.monotonic()
        try:
            warning = send(self._client, message)
        except HoldfastError as error:
            if not isinstance(error, ConnectionLost):
                self.in_doubt = before
            first = message.id not in self._tried_since
            since = self._tried_since.setdefault(message.id, now)
            if not _is_temporary(error) or (_disk_is_full(error) and now - since > self._full_seconds):
                self._done(message, DeliveryRejected(message, error))
                return None
            self._post(Retrying(message, error, first))
            return error
        except ValueError as error:
            self._done(message, DeliveryRejected(message, CliError(f"The server there is not a gateway: {error}.")))
            return None
        self.in_doubt = before
        self._done(message, Delivered(message, warning))
        return None

    def _done(self, message: OutgoingMessage, status: Delivered | DeliveryRejected) -> None:
        with self._changed:
            self._messages.remove(message)
            self._tried_since.pop(message.id, None)
            self._changed.notify_all()
        self._post(status)


def _disk_is_full(error: HoldfastError) -> bool:
    return isinstance(error, ApiError) and error.status == DISK_FULL


def _is_temporary(error: HoldfastError) -> bool:
    """Whether another try may succeed: the gateway was away, or its disk was full."""
    return isinstance(error, UNREACHABLE) or _disk_is_full(error)


def send(client: Client, message: OutgoingMessage) -> str:
    """Send once; return the warning of the gateway. The first message creates the session."""
    ref = message.ref
    match message.kind:
        case "answer":
            return str(client.command("POST", "/v1/answers", message.body, id=message.id).get("warning", ""))
        case "stop":
            client.command("POST", f"/v1/sessions/{ref.session}/stop", message.body, id=message.id)
        case "message":
            with ref.lock:
                if not ref.session:
                    begin(client, ref, text=message.text, id=message.id)
                    return ""
            path = f"/v1/sessions/{ref.session}/messages"
            return str(client.command("POST", path, message.body, id=message.id).get("warning", ""))
    return ""


def begin(client: Client, ref: SessionRef, *, text: str | None = None, id: str | None = None) -> None:
    """Create the session; the lock of the reference must be held."""
    ref.session = client.sessions.create(text, cwd=ref.cwd, profile=ref.profile, id=id).session


class SessionFollower:
    """Follows one session from a cursor on until it is closed. The last item may be the error that ended it."""

    def __init__(
        self, client: Client, session: str, *, after: int, post: Callable[[RecordItem | HoldfastError], None]
    ) -> None:
        self._closed = threading.Event()
        self._post = post
        self._items = follow_records(client, session, after=after, patience=math.inf, closed=self._closed)

    def start(self) -> None:
        """Start the thread, which never keeps the process alive."""
        threading.Thread(target=self._run, name="follower", daemon=True).start()

    def close(self) -> None:
        """Stop following; the thread ends with the next byte that it receives."""
        self._closed.set()

    def _run(self) -> None:
        try:
            for item in self._items:
                self._post(item)
        except HoldfastError as error:
            self._post(error)
