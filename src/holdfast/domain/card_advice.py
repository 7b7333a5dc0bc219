"""Advice for cards that only a person can move. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from holdfast.domain.card import Card
from holdfast.domain.events.card import ResumePolicy

NeedsPerson = Literal["blocked_card", "card_in_review", "card_not_startable"]


@dataclass(frozen=True, slots=True)
class Advice:
    """Why a card waits for a person, and the commands that move it; any one of them does."""

    kind: NeedsPerson
    what: str
    commands: list[str]


@dataclass(frozen=True, slots=True)
class Parent:
    """A card that another one waits for."""

    id: str
    title: str


def advice(card: Card, *, profiles: frozenset[str], dead_parents: list[Parent], refused: str) -> Advice | None:
    """None for a card that goes on by itself.

    `dead_parents` were archived before they were done; `refused` says why the policy `resume` keeps it from going on.
    """
    match card.status:
        case "blocked":
            return Advice("blocked_card", card.reason, unblocking(card.id, refused=bool(refused)))
        case "review":
            commands = [f"holdfast card complete {card.id}", f"holdfast card retry {card.id} -m TEXT"]
            return Advice("card_in_review", "Somebody has to look at the result.", commands)
        case "todo" | "ready":
            return _never_starts(card, profiles, dead_parents)
        case _:
            return None


def _never_starts(card: Card, profiles: frozenset[str], dead_parents: list[Parent]) -> Advice | None:
    if dead_parents:
        names = ", ".join(f"card {one.id} “{one.title}”" for one in dead_parents)
        were = "which was" if len(dead_parents) == 1 else "which were"
        commands = [f"holdfast card unlink {card.id} {one.id}" for one in dead_parents]
        return Advice("card_not_startable", f"It waits for {names}, {were} archived and never done.", commands)
    if card.profile not in profiles:
        what = f"There is no profile {card.profile!r}." if card.profile else "It has no profile."
        return Advice("card_not_startable", what, [f"holdfast card assign {card.id} PROFILE"])
    return None


def unblocking(card: str, *, refused: bool) -> list[str]:
    """Return the commands that unblock a card. Where its policy forbids a new session, a plain unblock is not one."""
    if refused:
        return [f"holdfast card unblock {card} --fresh", f"holdfast card edit {card} --resume auto"]
    return [f"holdfast card unblock {card} -m TEXT"]


def what_unblocking_does(card: str, policy: ResumePolicy, *, refused: str) -> str:
    """Return `unblocking` as a sentence."""
    if refused:
        again = f"Its policy is `resume`, and that cannot be: {refused.rstrip('.')}."
        return f"{again} `holdfast card unblock {card} --fresh` starts it with a new session."
    if policy == "fresh":
        return f"`holdfast card unblock {card}` starts it with a new session, as its policy `fresh` says."
    return f"`holdfast card unblock {card}` lets it go on."
