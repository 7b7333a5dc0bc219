"""The people who may talk to the bot, and the codes by which the owner adds somebody.

They are in the settings alone. A code is computed from the token, the person and the hour, so nothing is stored of
strangers: it proves on the owner's machine that this person wrote to this bot within the last hour or two.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

from holdfast.domain.events.actor import PersonActor
from holdfast.notify.telegram.bot_api import User

HOUR_MS = 3_600_000
CODE_LENGTH = 8
MOST_STRANGERS = 20
"""How many get a code within an hour; the others are not answered."""
LONGEST_NAME = 40
LONGEST_NUMBER = 16
"""Digits of the number of an account, which has at most 52 bits."""


def pairing_code(token: str, person: int, hour: int) -> str:
    """Return the code of a person for an hour, as in `42-K7QX9M2P`."""
    made = hmac.digest(token.encode(), f"pair/{person}/{hour}".encode(), hashlib.sha256)
    return f"{person}-{base64.b32encode(made).decode()[:CODE_LENGTH]}"


def paired_person(token: str, code: str, *, now: int) -> int | None:
    """Return who has this code; None if nobody has, or it is too old."""
    code = code.strip().upper()
    person = code.partition("-")[0]
    if not (person.isascii() and person.isdigit() and len(person) <= LONGEST_NUMBER):
        return None
    hour = now // HOUR_MS
    known = (pairing_code(token, int(person), hour - ago) for ago in (0, 1))
    return int(person) if any(hmac.compare_digest(one.encode(), code.encode()) for one in known) else None


def name_of(user: User) -> str:
    """Return the name of an account, as its owner chose it, on one line."""
    name = " ".join(f"{user.first_name} {user.last_name}".split()) or user.username
    return "".join(character for character in name if character.isprintable())[:LONGEST_NAME]


def actor_of(user: User) -> PersonActor:
    """Return an account as the actor of its commands. The number is what counts: anybody can take any name."""
    return PersonActor(client="telegram", device=f"{name_of(user)} ({user.id})".strip())
