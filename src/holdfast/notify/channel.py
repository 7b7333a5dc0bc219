"""What a channel must do: deliver a message, and say what came of it. `tests/notify/conformance.py` tests it.

A channel is one module. It is asked for one message at a time per destination, and never again for one that it
reported as sent. After a crash it may be asked again under the same id.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import msgspec

from holdfast.store.outbox_store import DeliveryKind


class NoticeMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A notice as one destination gets it: masked, and without its detail unless the destination allows that."""

    id: str
    """The same at every try."""
    matter: str
    kind: DeliveryKind
    """As in `NoticeName`; `settled`: its matter needs nobody any longer; `digest`: many in one; `test`."""
    title: str
    text: str
    link: str
    """A path of the dashboard."""
    url: str
    """The whole address, if the dashboard can be reached under one; else empty."""
    at: int
    detail: str = ""
    """The last part of the text, where it has one; in a conversation the whole answer, in Markdown."""
    receipt: str = ""
    """What the destination called the notice that this one settles."""
    wait: str = ""
    """The wait that an answer answers (`AnswerWait`); empty when there is nothing to answer."""
    choices: list[str] = []
    """The answers that may be offered beside this text; `allow` only if the text is the whole call."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The destination has it."""

    receipt: str = ""


@dataclass(frozen=True, slots=True)
class TryAgain:
    """It may work later."""

    problem: str
    after_ms: int = 0
    """Not before that time, if the destination said so."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """It never will. `hint` says what a person can do about it."""

    problem: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Unsure:
    """It may have arrived. It is not sent again, since the destination would show it twice."""

    problem: str


Result = Sent | TryAgain | GiveUp | Unsure


class Channel(Protocol):
    """A way to reach people."""

    reports_settled: bool
    """Whether it gets a message when a matter is settled."""
    repeatable: bool
    """Whether a message may be sent again when it is not known whether it arrived, since its id is recognised there.
    The message that a matter is settled may always be sent again.
    """

    async def send(self, message: NoticeMessage) -> Result:
        """Deliver a message. It does not raise for anything that the network or the destination does."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...
