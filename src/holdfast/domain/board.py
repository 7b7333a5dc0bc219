"""Boards: what can happen to them. Their cards are streams of their own (`card.py`)."""

from __future__ import annotations

from holdfast.domain.fact import Event


class BoardCreated(Event, frozen=True):
    """A board was made. Its name is its id."""

    board: str
    title: str
    by: str


class BoardPaused(Event, frozen=True):
    """Nothing on it is started until somebody resumes it; what runs goes on."""

    board: str
    by: str


class BoardResumed(Event, frozen=True):
    """Cards are started again; one that was archived is back in the list."""

    board: str
    by: str


class BoardArchived(Event, frozen=True):
    """It left the list; its cards stay."""

    board: str
    by: str


BoardEvent = BoardCreated | BoardPaused | BoardResumed | BoardArchived


def board_stream(board: str) -> str:
    """The name of a board's stream."""
    return "board/" + board
