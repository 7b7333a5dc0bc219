"""Boards and cards: jobs for agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, Unpack

from holdfast.client.http import HttpClient, quote
from holdfast.schemas.cards import (
    BoardAccepted,
    BoardList,
    CardAccepted,
    CardContext,
    CardDetail,
    CardPage,
    CardReleased,
)
from holdfast.schemas.changes import FileChanges

if TYPE_CHECKING:
    from holdfast.domain.events.card import BlockKind, CardStatus, ResumePolicy
    from holdfast.domain.events.parts import NotifyChoice


class CardDetails(TypedDict, total=False):
    """The options of a card."""

    body: str
    profile: str | None
    workspace: str
    priority: int
    resume: ResumePolicy | None
    max_runtime_ms: int | None
    max_attempts: int | None
    tell: NotifyChoice
    node: str


class NewCard(CardDetails, total=False):
    """The options of a card that is created."""

    board: str
    parents: list[str]
    triage: bool
    at: int | None
    after_ms: int | None
    session: str | None


class BoardApi:
    """Queries and commands about boards."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    def list(self, *, archived: bool = False) -> BoardList:
        """All boards."""
        return self._client.read(BoardList, "/v1/boards", archived=archived)

    def create(self, board: str, *, title: str | None = None) -> BoardAccepted:
        """Create a board."""
        return self._client.post(BoardAccepted, "/v1/boards", board=board, title=title)

    def pause(self, board: str) -> BoardAccepted:
        """Start none of its cards; running ones continue."""
        return self._client.post(BoardAccepted, f"/v1/boards/{quote(board)}/pause")

    def resume(self, board: str) -> BoardAccepted:
        """Start its cards again; also restores an archived board."""
        return self._client.post(BoardAccepted, f"/v1/boards/{quote(board)}/resume")

    def archive(self, board: str) -> BoardAccepted:
        """Hide it from the list; refused while a card is running."""
        return self._client.post(BoardAccepted, f"/v1/boards/{quote(board)}/archive")


class CardApi:
    """Queries and commands about cards. An ID may be shortened to a unique prefix of 4 or more characters."""

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
        """Add a card. Without parents it is ready, unless it is put into triage."""
        return self._client.post(CardAccepted, "/v1/cards", title=title, **details)

    def edit(self, card: str, *, title: str | None = None, **details: Unpack[CardDetails]) -> CardAccepted:
        """Change its text and options; others stay. While it runs, only priority, limits and `tell` can be changed."""
        return self._client.post(CardAccepted, _path(card), method="PATCH", title=title, **details)

    def comment(self, card: str, text: str) -> CardAccepted:
        """Comment on it. A running worker gets the comment at its next step, otherwise the next worker does."""
        return self._client.post(CardAccepted, f"{_path(card)}/comments", text=text)

    def link(self, card: str, parent: str) -> CardAccepted:
        """Make it wait for another card."""
        return self._client.post(CardAccepted, f"{_path(card)}/links", parent=parent)

    def unlink(self, card: str, parent: str) -> CardAccepted:
        """Remove a link, so that it no longer waits for that card."""
        return self._client.post(CardAccepted, f"{_path(card)}/unlink", parent=parent)

    def follow(self, card: str, session: str, *, following: bool = True) -> CardAccepted:
        """Notify a session of its blocks, failures and end, once each; or stop that."""
        return self._client.post(CardAccepted, f"{_path(card)}/follow", session=session, following=following)

    def move(self, card: str, status: CardStatus, *, at: int | None = None) -> CardAccepted:
        """Move it to another column. If it is running, it is stopped."""
        return self._client.post(CardAccepted, f"{_path(card)}/move", status=status, at=at)

    def block(self, card: str, reason: str, *, kind: BlockKind = "needs_input") -> CardAccepted:
        """Block it until somebody unblocks it. If it is running, it is stopped."""
        return self._client.post(CardAccepted, f"{_path(card)}/block", reason=reason, kind=kind)

    def unblock(self, card: str, text: str | None = None, *, fresh: bool = False) -> CardAccepted:
        """Continue it in the session of its last run, with an optional comment."""
        return self._client.post(CardAccepted, f"{_path(card)}/unblock", text=text, fresh=fresh)

    def retry(self, card: str, text: str | None = None, *, fresh: bool = False) -> CardAccepted:
        """Run it again, whatever its state: blocked, done, in review, or waiting after a failure."""
        return self._client.post(CardAccepted, f"{_path(card)}/retry", text=text, fresh=fresh)

    def stop(self, card: str, *, reason: str | None = None) -> CardAccepted:
        """Stop its run; it is blocked until somebody unblocks it."""
        return self._client.post(CardAccepted, f"{_path(card)}/stop", reason=reason)

    def complete(self, card: str, *, summary: str = "") -> CardAccepted:
        """Mark it as done. If it is running, it is stopped."""
        return self._client.post(CardAccepted, f"{_path(card)}/complete", summary=summary)

    def archive(self, card: str) -> CardAccepted:
        """Take it off the board; `kept` says what of its workspace was not deleted."""
        return self._client.post(CardAccepted, f"{_path(card)}/archive")

    def release(self, card: str) -> CardReleased:
        """Delete the workspace that an archived card kept, unless something would be lost."""
        return self._client.post(CardReleased, f"{_path(card)}/release")

    def context(self, card: str) -> CardContext:
        """What its next worker would be given."""
        return self._client.read(CardContext, f"{_path(card)}/context")

    def diff(self, card: str) -> FileChanges:
        """The changes in its workspace, according to git."""
        return self._client.read(FileChanges, f"{_path(card)}/diff")


def _path(card: str) -> str:
    return f"/v1/cards/{quote(card)}"
