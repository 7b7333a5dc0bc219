"""Boards and cards: work that is written down for agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, Unpack

from holdfast.client.http import HttpClient, quote
from holdfast.schemas.cards import (
    BoardAccepted,
    BoardList,
    CardAccepted,
    CardContext,
    CardDetail,
    CardDiff,
    CardPage,
    CardReleased,
)

if TYPE_CHECKING:
    from holdfast.domain.events.card import BlockKind, CardStatus, ResumePolicy


class CardDetails(TypedDict, total=False):
    """What can be said about a card besides its title."""

    body: str
    profile: str | None
    workspace: str
    priority: int
    resume: ResumePolicy | None
    max_runtime_ms: int | None
    max_attempts: int | None


class NewCard(CardDetails, total=False):
    """What can be said about a card when it is created."""

    board: str
    parents: list[str]
    triage: bool
    at: int | None
    after_ms: int | None
    session: str | None


class BoardApi:
    """What can be asked and told about boards."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    def list(self, *, archived: bool = False) -> BoardList:
        """All boards."""
        return self._client.read(BoardList, "/v1/boards", archived=archived)

    def create(self, board: str, *, title: str | None = None) -> BoardAccepted:
        """Make a board."""
        return self._client.post(BoardAccepted, "/v1/boards", board=board, title=title)

    def pause(self, board: str) -> BoardAccepted:
        """Start nothing on it; what runs goes on."""
        return self._client.post(BoardAccepted, f"/v1/boards/{quote(board)}/pause")

    def resume(self, board: str) -> BoardAccepted:
        """Start cards again; an archived one comes back into the list."""
        return self._client.post(BoardAccepted, f"/v1/boards/{quote(board)}/resume")

    def archive(self, board: str) -> BoardAccepted:
        """Take it out of the list; nothing on it may run."""
        return self._client.post(BoardAccepted, f"/v1/boards/{quote(board)}/archive")


class CardApi:
    """What can be asked and told about cards. Ids may be shortened to a unique prefix of 4 characters."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    def list(
        self,
        *,
        board: str = "",
        status: str = "",
        profile: str = "",
        text: str = "",
        archived: bool = False,
        why: bool = False,
        offset: int = 0,
    ) -> CardPage:
        """Cards, most urgent first; with `why` also why those that wait are not started."""
        return self._client.read(
            CardPage,
            "/v1/cards",
            board=board or None,
            status=status or None,
            profile=profile or None,
            text=text or None,
            archived=archived,
            why=why,
            offset=offset,
        )

    def get(self, id: str) -> CardDetail:
        """A card with its comments, links and runs."""
        return self._client.read(CardDetail, _path(id))

    def create(self, title: str, **details: Unpack[NewCard]) -> CardAccepted:
        """Write work down. A card without parents is ready, unless it is put into triage."""
        return self._client.post(CardAccepted, "/v1/cards", title=title, **details)

    def edit(self, card: str, *, title: str | None = None, **details: Unpack[CardDetails]) -> CardAccepted:
        """Change what it says; what is left out stays. Not while it runs, but for its priority and its limits."""
        return self._client.post(CardAccepted, _path(card), method="PATCH", title=title, **details)

    def comment(self, card: str, text: str) -> CardAccepted:
        """Say something: a worker hears it at its next step, else the next one as its next turn."""
        return self._client.post(CardAccepted, f"{_path(card)}/comments", text=text)

    def link(self, card: str, parent: str) -> CardAccepted:
        """Let it wait for another card."""
        return self._client.post(CardAccepted, f"{_path(card)}/links", parent=parent)

    def unlink(self, card: str, parent: str) -> CardAccepted:
        """Do not let it wait for that card any more."""
        return self._client.post(CardAccepted, f"{_path(card)}/unlink", parent=parent)

    def follow(self, card: str, session: str, *, following: bool = True) -> CardAccepted:
        """Tell a session of its blocks, failures and end, once each; or not any more."""
        return self._client.post(CardAccepted, f"{_path(card)}/follow", session=session, following=following)

    def move(self, card: str, status: CardStatus, *, at: int | None = None) -> CardAccepted:
        """Put it into another column. A running one is stopped."""
        return self._client.post(CardAccepted, f"{_path(card)}/move", status=status, at=at)

    def block(self, card: str, reason: str, *, kind: BlockKind = "needs_input") -> CardAccepted:
        """It cannot go on without somebody. A running one is stopped."""
        return self._client.post(CardAccepted, f"{_path(card)}/block", reason=reason, kind=kind)

    def unblock(self, card: str, text: str | None = None, *, fresh: bool = False) -> CardAccepted:
        """Let it go on in the session of its last run, with a comment if there is one."""
        return self._client.post(CardAccepted, f"{_path(card)}/unblock", text=text, fresh=fresh)

    def retry(self, card: str, text: str | None = None, *, fresh: bool = False) -> CardAccepted:
        """Once more, whatever became of it: blocked, done, in review or cooling down."""
        return self._client.post(CardAccepted, f"{_path(card)}/retry", text=text, fresh=fresh)

    def stop(self, card: str, *, reason: str | None = None) -> CardAccepted:
        """End its run; it is blocked until somebody lets it go on."""
        return self._client.post(CardAccepted, f"{_path(card)}/stop", reason=reason)

    def complete(self, card: str, *, summary: str = "") -> CardAccepted:
        """Say that it is done. A running one is stopped."""
        return self._client.post(CardAccepted, f"{_path(card)}/complete", summary=summary)

    def archive(self, card: str) -> CardAccepted:
        """Take it off the board; `kept` says what of its workspace was not removed."""
        return self._client.post(CardAccepted, f"{_path(card)}/archive")

    def release(self, card: str) -> CardReleased:
        """Remove the workspace that an archived card kept, unless something would be lost with it."""
        return self._client.post(CardReleased, f"{_path(card)}/release")

    def context(self, card: str) -> CardContext:
        """What the next worker would be told."""
        return self._client.read(CardContext, f"{_path(card)}/context")

    def diff(self, card: str) -> CardDiff:
        """What is different in its workspace, as far as git knows."""
        return self._client.read(CardDiff, f"{_path(card)}/diff")


def _path(card: str) -> str:
    return f"/v1/cards/{quote(card)}"
