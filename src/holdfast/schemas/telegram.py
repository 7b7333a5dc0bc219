"""Telegram, in requests and responses."""

from __future__ import annotations

from typing import Annotated

import msgspec


class TelegramPerson(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody whom config.toml lets in, by the number of the account."""

    id: int
    name: str
    """Empty until the person has written since the gateway started."""
    talks: bool
    """May talk to agents."""
    approves: bool
    """May answer approvals."""


class TelegramStranger(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who wrote within the last hour and got a code."""

    id: int
    name: str
    at: int


class TelegramStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The bot, and the people who may use it."""

    is_on: bool
    """Whether config.toml names the variable of a token."""
    bot: str
    """Its name in Telegram, as in `holdfast_bot`; empty until it was reached."""
    problem: str
    """Why nothing arrives now; empty when nothing is wrong."""
    since: int
    """Since when there is a problem, or none."""
    people: list[TelegramPerson]
    strangers: list[TelegramStranger]


class PairPerson(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Let somebody in who has a code."""

    code: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    approve: bool = False
    """Whether the person may answer approvals, too."""


class RemovePerson(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A person to whom the bot no longer answers."""

    person: Annotated[int, msgspec.Meta(ge=1, lt=2**53)]
