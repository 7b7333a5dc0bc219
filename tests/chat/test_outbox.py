"""What was typed on its way to the gateway, and what is known of it when somebody leaves in between."""

from __future__ import annotations

import os
import queue
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.chat import outbox
from holdfast.cli.chat.outbox import Delivered, Letter, Outbox, Place, Receipt, Returned, Waiting
from holdfast.client.client import Client
from holdfast.client.errors import ApiError, ConnectionLost, GatewayNotRunning
from holdfast.client.http import Json
from holdfast.config import Home
from tests.e2e.gateway import GatewayProcess, of_kind, until
from tests.eventually import PATIENCE


class Post:
    """An outbox, and every receipt that came."""

    def __init__(self, home: Path) -> None:
        self.receipts: queue.Queue[Receipt] = queue.Queue()
        self.outbox = Outbox(Client(Home(home)), self.receipts.put)

    def say(self, session: str, text: str) -> Letter:
        letter = Letter("message", Place(session), {"text": text, "mode": "queue"}, text, 0.0)
        self.outbox.put(letter)
        return letter

    def receipt(self) -> Receipt:
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
    assert [post.receipt() for _ in letters] == [Delivered(letter) for letter in letters]
    assert post.outbox.unsent == []
    said = of_kind(gateway.until_rest(session), "InputReceived")
    assert [event["input"] for event in said] == [letter.id for letter in letters]


def test_what_nobody_could_hear_is_not_in_doubt(gateway: GatewayProcess, post: Post) -> None:
    session = gateway.create()
    gateway.kill9()
    letter = post.say(session, "say late")
    receipt = post.receipt()
    assert isinstance(receipt, Waiting) and isinstance(receipt.error, GatewayNotRunning) and receipt.first
    until(lambda: post.outbox.in_doubt != letter.id, "it is known that it did not arrive")
    assert post.outbox.unsent == [letter]


def test_what_a_silent_gateway_may_have_heard_is_in_doubt(gateway: GatewayProcess, post: Post) -> None:
    session = gateway.create()
    with frozen(gateway):
        letter = post.say(session, "say perhaps")
        until(lambda: post.outbox.in_doubt == letter.id, "it is on its way")
        assert post.outbox.unsent == [letter]
    assert post.receipt() == Delivered(letter)
    assert len(of_kind(gateway.until_rest(session), "InputReceived")) == 1


def test_a_gateway_that_dies_with_a_letter_in_its_hands_leaves_it_in_doubt(gateway: GatewayProcess, post: Post) -> None:
    """The tries after the cut find nobody, which says nothing about the first."""
    session = gateway.create()
    with frozen(gateway):
        letter = post.say(session, "say perhaps")
        until(lambda: post.outbox.in_doubt == letter.id, "it is on its way")
        until(lambda: has_heard(gateway.port), "the letter lies at its door")
        gateway.kill9()
        receipt = post.receipt()
        assert isinstance(receipt, Waiting) and isinstance(receipt.error, ConnectionLost)
        assert post.outbox.in_doubt == letter.id
        gateway.start()
    while isinstance(receipt, Waiting):
        receipt = post.receipt()
    assert receipt == Delivered(letter)
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
def full(tmp_path: Path) -> Iterator[Post]:
    post = Post(tmp_path)
    post.outbox = Outbox(FullDisk(Home(tmp_path)), post.receipts.put)
    post.outbox.start()
    yield post
    post.outbox.close()


def test_a_stop_goes_before_a_message_that_a_full_disk_refuses(full: Post) -> None:
    message = full.say("a" * 16, "say something")
    assert isinstance(full.receipt(), Waiting)
    stop = Letter("stop", Place("a" * 16), {"turn": 1}, "stop the turn", 0.0)
    full.outbox.put(stop)
    receipts = iter(full.receipt, None)
    assert Delivered(stop) == next(receipt for receipt in receipts if not isinstance(receipt, Waiting))
    assert full.outbox.unsent == [message]


def test_a_message_that_a_full_disk_refuses_is_given_back(full: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "FULL_SECONDS", 0.1)
    message = full.say("a" * 16, "say something")
    receipts = iter(full.receipt, None)
    returned = next(receipt for receipt in receipts if not isinstance(receipt, Waiting))
    assert isinstance(returned, Returned) and returned.letter == message
    assert full.outbox.unsent == []


def test_what_the_gateway_warns_of_comes_back(full: Post) -> None:
    letter = Letter("answer", Place("a" * 16), {"wait": "w", "answer": "always"}, "always", 0.0)
    full.outbox.put(letter)
    assert full.receipt() == Delivered(letter, "not for long")
