"""Messages on their way to the gateway, and what is known of them when the chat ends in between."""

from __future__ import annotations

import os
import queue
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.chat.connection import (
    FULL_SECONDS,
    Delivered,
    DeliveryRejected,
    DeliveryStatus,
    Outbox,
    OutgoingMessage,
    Retrying,
    SessionRef,
)
from holdfast.client.client import Client
from holdfast.client.errors import ApiError, ConnectionLost, GatewayNotRunning
from holdfast.client.http import Json
from holdfast.config import Home
from tests.e2e.gateway import GatewayProcess, of_kind, until
from tests.eventually import PATIENCE


class Post:
    """An outbox, and every receipt that came."""

    def __init__(self, home: Path) -> None:
        self.receipts: queue.Queue[DeliveryStatus] = queue.Queue()
        self.outbox = Outbox(Client(Home(home)), self.receipts.put)

    def say(self, session: str, text: str) -> OutgoingMessage:
        message = OutgoingMessage("message", SessionRef(session), {"text": text, "mode": "queue"}, text, 0.0)
        self.outbox.put(message)
        return message

    def status(self) -> DeliveryStatus:
        return self.receipts.get(timeout=PATIENCE)


@pytest.fixture
def post(gateway: GatewayProcess) -> Iterator[Post]:
    post = Post(gateway.home)
    post.outbox.start()
    yield post
    post.outbox.close()


@contextmanager
def frozen(gateway: GatewayProcess) -> Iterator[None]:
    os.kill(gateway.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(gateway.pid, signal.SIGCONT)


def test_letters_arrive_in_order_and_once(gateway: GatewayProcess, post: Post) -> None:
    session = gateway.create()
    letters = [post.say(session, f"say {number}") for number in range(5)]
    assert [post.status() for _ in letters] == [Delivered(message) for message in letters]
    assert post.outbox.unsent == []
    said = of_kind(gateway.until_rest(session), "InputReceived")
    assert [event["input"] for event in said] == [message.id for message in letters]


def test_a_message_that_reached_no_gateway_is_not_in_doubt(gateway: GatewayProcess, post: Post) -> None:
    session = gateway.create()
    gateway.kill9()
    message = post.say(session, "say late")
    status = post.status()
    assert isinstance(status, Retrying) and isinstance(status.error, GatewayNotRunning) and status.first
    until(lambda: post.outbox.in_doubt != message.id, "it is known that it did not arrive")
    assert post.outbox.unsent == [message]


def test_what_a_silent_gateway_may_have_received_is_in_doubt(gateway: GatewayProcess, post: Post) -> None:
    session = gateway.create()
    with frozen(gateway):
        message = post.say(session, "say perhaps")
        until(lambda: post.outbox.in_doubt == message.id, "it is on its way")
        assert post.outbox.unsent == [message]
    assert post.status() == Delivered(message)
    assert len(of_kind(gateway.until_rest(session), "InputReceived")) == 1


def test_a_gateway_that_dies_with_a_received_message_leaves_it_in_doubt(gateway: GatewayProcess, post: Post) -> None:
    """The tries after the cut find nobody, which says nothing about the first."""
    session = gateway.create()
    with frozen(gateway):
        message = post.say(session, "say perhaps")
        until(lambda: post.outbox.in_doubt == message.id, "it is on its way")
        until(lambda: has_heard(gateway.port), "the letter lies at its door")
        gateway.kill9()
        status = post.status()
        assert isinstance(status, Retrying) and isinstance(status.error, ConnectionLost)
        assert post.outbox.in_doubt == message.id
        gateway.start()
    while isinstance(status, Retrying):
        status = post.status()
    assert status == Delivered(message)
    assert len(of_kind(gateway.until_rest(session), "InputReceived")) == 1


def has_heard(port: int) -> bool:
    """Whether bytes wait on a connection to that port, as the kernel tells."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, _, _, queues, *_ = line.split()
        if int(local.rpartition(":")[2], 16) == port and int(queues.rpartition(":")[2], 16) > 64:
            return True
    return False


class FullDisk(Client):
    """A gateway that refuses every message as one with a full disk does, and takes everything else."""

    def command(self, method: str, target: str, body: Any = None, *, id: str | None = None, seconds: float = 1) -> Json:
        if target.endswith("/messages"):
            raise ApiError(507, "The disk is full.")
        return {"warning": "not for long" if target == "/v1/answers" else ""}


@pytest.fixture
def full(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Post]:
    post = Post(tmp_path)
    seconds = getattr(request, "param", FULL_SECONDS)
    post.outbox = Outbox(FullDisk(Home(tmp_path)), post.receipts.put, full_seconds=seconds)
    post.outbox.start()
    yield post
    post.outbox.close()


def test_a_stop_is_sent_before_a_message_that_a_full_disk_refuses(full: Post) -> None:
    message = full.say("a" * 16, "say something")
    assert isinstance(full.status(), Retrying)
    stop = OutgoingMessage("stop", SessionRef("a" * 16), {"turn": 1}, "stop the turn", 0.0)
    full.outbox.put(stop)
    receipts = iter(full.status, None)
    assert Delivered(stop) == next(status for status in receipts if not isinstance(status, Retrying))
    assert full.outbox.unsent == [message]


@pytest.mark.parametrize("full", [0.1], indirect=True)
def test_a_message_that_a_full_disk_refuses_is_given_back(full: Post) -> None:
    message = full.say("a" * 16, "say something")
    receipts = iter(full.status, None)
    returned = next(status for status in receipts if not isinstance(status, Retrying))
    assert isinstance(returned, DeliveryRejected) and returned.message == message
    assert full.outbox.unsent == []


def test_what_the_gateway_warns_of_comes_back(full: Post) -> None:
    message = OutgoingMessage("answer", SessionRef("a" * 16), {"wait": "w", "answer": "always"}, "always", 0.0)
    full.outbox.put(message)
    assert full.status() == Delivered(message, "not for long")
