"""What is meant by the words behind /card: one of the verbs, a card, and a text for it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches

VERBS = {
    "list": "",
    "show": "ID",
    "why": "ID",
    "runs": "ID",
    "context": "ID",
    "add": "TEXT",
    "comment": "ID TEXT",
    "block": "ID TEXT",
    "unblock": "ID [TEXT]",
    "retry": "ID [TEXT]",
    "stop": "ID",
    "complete": "ID [TEXT]",
    "archive": "ID",
}
ID = re.compile(r"[0-9a-fA-F]{4,32}\Z")


@dataclass(frozen=True, slots=True)
class Asked:
    """A verb, the card that it is about, and what is said."""

    verb: str
    card: str = ""
    text: str = ""

    @property
    def words(self) -> str:
        """As it is typed."""
        return " ".join(filter(None, (self.verb, self.card, self.text)))


@dataclass(frozen=True, slots=True)
class Unclear:
    """It cannot be meant like this; `message` says what could."""

    message: str


def card(words: str) -> Asked | Unclear:
    """What follows /card. Alone it is the list."""
    verb, about = _split(words)
    verb = verb.lower() or "list"
    if verb not in VERBS:
        near = get_close_matches(verb, VERBS, n=1)
        guess = f" Did you mean /card {near[0]}?" if near else ""
        return Unclear(f"There is no /card {verb}.{guess} There is: {' '.join(VERBS)}.")
    takes = VERBS[verb]
    if not takes:
        return Asked(verb) if not about else Unclear(f"/card {verb} takes nothing; {about[:40]!r} was not understood.")
    if takes == "TEXT":
        return Asked(verb, "", about) if about else Unclear(f"/card {verb} needs a text: what is to be done.")
    id, text = _split(about)
    if not ID.match(id):
        return Unclear(f"/card {verb} takes the id of a card: /card {verb} {takes}; /board shows them.")
    if takes == "ID" and text:
        return Unclear(f"/card {verb} takes the id of a card and nothing else; {text[:40]!r} was not understood.")
    if takes == "ID TEXT" and not text:
        return Unclear(f"/card {verb} needs more: /card {verb} {takes}")
    return Asked(verb, id.lower(), text)


def _split(words: str) -> tuple[str, str]:
    first, *rest = words.strip().split(None, 1) or [""]
    return first, rest[0] if rest else ""
