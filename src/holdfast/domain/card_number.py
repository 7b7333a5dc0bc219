"""The number of a card, which people can say: `HF-118`.

It is unique in a home and never changes. The store gives it to a card in the transaction of its `CardCreated`
(`store/decisions.py`), and it is stored in that event. Imports no events: clients load it too.
"""

from __future__ import annotations

import re
from typing import NamedTuple

PREFIX = "HF"
_NUMBER = re.compile(rf"({PREFIX}-?)?0*([1-9][0-9]{{0,8}})\Z", re.IGNORECASE | re.ASCII)


class CardNumber(NamedTuple):
    """A number as somebody wrote it. Without its prefix it may also be the beginning of an id."""

    number: int
    has_prefix: bool


def card_label(number: int, id: str) -> str:
    """Return how people name a card; its id where an event of an earlier version does not know its number."""
    return f"{PREFIX}-{number}" if number else id


def parse_card_number(text: str) -> CardNumber | None:
    """Read `HF-118`, `hf-118`, `HF118` or `118`; None when it is no number."""
    found = _NUMBER.match(text)
    return None if found is None else CardNumber(int(found[2]), found[1] is not None)
