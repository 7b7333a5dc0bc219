"""Sessions: start and continue conversations, list and change them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from holdfast.client.http import HttpClient, quote
from holdfast.schemas.sessions import Accepted, SearchPage, SessionDetail, SessionKind, SessionPage

if TYPE_CHECKING:
    from holdfast.domain.command import InputMode, SessionMode
    from holdfast.domain.events.parts import NotifyChoice
    from holdfast.schemas.chapters import ModelContext, ResetOutlook

WhatRuns = Literal["keep", "stop"]
NOTE_SECONDS = 3_700.0
"""How long a reset may take, with the note that the agent writes first; `summary_timeout` ends that earlier."""


class SessionApi:
    """Queries and commands about sessions. An ID may be shortened to a unique prefix of 4 or more characters."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    def list(
        self,
        *,
        text: str = "",
        kind: SessionKind | Literal[""] = "",
        cwd: str = "",
        archived: bool = False,
        at_work: bool = False,
        limit: int = 50,
        before: str = "",
    ) -> SessionPage:
        """A page of the list, pinned ones first, then newest first; `before` is `next` of the previous page."""
        return self._client.read(
            SessionPage,
            "/v1/sessions",
            text=text or None,
            kind=kind or None,
            cwd=cwd or None,
            archived=archived,
            at_work=at_work or None,
            limit=limit,
            before=before or None,
        )

    def get(self, id: str) -> SessionDetail:
        """One session with its turns and its queue."""
        return self._client.read(SessionDetail, _path(id))

    def create(
        self,
        text: str | None = None,
        *,
        profile: str | None = None,
        model: str | None = None,
        cwd: str | None = None,
        title: str | None = None,
        mode: SessionMode | None = None,
        node: str | None = None,
        id: str | None = None,
    ) -> Accepted:
        """Create a session; a text becomes its first message. `mode` is what its agent may do at most, `node` the
        name or a label of the nodes on which it may run.
        """
        return self._client.post(
            Accepted,
            "/v1/sessions",
            id=id,
            text=text,
            profile=profile,
            model=model,
            cwd=cwd,
            title=title,
            mode=mode,
            node=node,
        )

    def send(self, session: str, text: str, *, mode: InputMode = "queue", id: str | None = None) -> Accepted:
        """Send a message. While a turn is running it waits (`queue`), joins it (`steer`) or stops it (`interrupt`)."""
        return self._client.post(Accepted, f"{_path(session)}/messages", id=id, text=text, mode=mode)

    def withdraw(self, session: str, input: str) -> Accepted:
        """Take a message back that no turn has taken; `get(session).queue` has them."""
        return self._client.post(Accepted, f"{_path(session)}/queue/{quote(input)}", method="DELETE")

    def stop(self, session: str, *, turn: int | None = None) -> Accepted:
        """Stop the running turn, or only the given one; queued messages stay."""
        return self._client.post(Accepted, f"{_path(session)}/stop", turn=turn)

    def choose_agent(self, session: str, *, profile: str | None = None, model: str | None = None) -> Accepted:
        """Continue with another profile or model."""
        return self._client.post(Accepted, f"{_path(session)}/agent", profile=profile, model=model)

    def choose_node(self, session: str, node: str) -> Accepted:
        """Let it run on another node, by its name or a label; empty is any node."""
        return self._client.post(Accepted, f"{_path(session)}/node", node=node)

    def choose_mode(self, session: str, mode: SessionMode) -> Accepted:
        """Choose what its agent may do at most: `profile` (as that says), `ask` before every change, or `read`."""
        return self._client.post(Accepted, f"{_path(session)}/mode", mode=mode)

    def rename(self, session: str, title: str) -> Accepted:
        """Change the title."""
        return self._client.post(Accepted, _path(session), method="PATCH", title=title)

    def set_notifications(self, session: str, choice: NotifyChoice) -> Accepted:
        """Choose whether people are notified of it, whatever the rules of the destinations say."""
        return self._client.post(Accepted, f"{_path(session)}/tell", tell=choice)

    def fork(self, session: str, *, version: int | None = None, title: str | None = None) -> Accepted:
        """Create a copy of the session, up to a version; by default of everything."""
        return self._client.post(Accepted, f"{_path(session)}/fork", version=version, title=title)

    def undo(self, session: str) -> Accepted:
        """Hide the last turn from the model; it stays in the log."""
        return self._client.post(Accepted, f"{_path(session)}/undo")

    def repeat(
        self, session: str, text: str | None = None, *, turn: int | None = None, id: str | None = None
    ) -> Accepted:
        """Undo a turn (the last one) and all later ones, and send its messages again, or another text."""
        return self._client.post(Accepted, f"{_path(session)}/repeat", id=id, turn=turn, text=text)

    def archive(self, session: str, *, running: WhatRuns | None = None) -> Accepted:
        """Hide it from the list; nothing is deleted. `running`: keep or stop its running commands."""
        return self._client.post(Accepted, f"{_path(session)}/archive", running=running)

    def restore(self, session: str) -> Accepted:
        """Restore an archived session."""
        return self._client.post(Accepted, f"{_path(session)}/restore")

    def delete(self, session: str, *, running: WhatRuns | None = None) -> Accepted:
        """Delete the session with all its events, for good."""
        return self._client.post(Accepted, _path(session), method="DELETE", running=running)

    def compact(self, session: str, *, instructions: str = "") -> Accepted:
        """Shorten the context now: a summary replaces its oldest turns."""
        return self._client.post(Accepted, f"{_path(session)}/compact", instructions=instructions)

    def reset(self, session: str, *, running: WhatRuns | None = None, note: bool = False) -> Accepted:
        """Start a new chapter with an empty context; nothing is deleted."""
        return self._client.post(Accepted, f"{_path(session)}/reset", seconds=NOTE_SECONDS, running=running, note=note)

    def undo_reset(self, session: str) -> Accepted:
        """Let the model see the previous chapter again, too."""
        return self._client.post(Accepted, f"{_path(session)}/reset/undo")

    def reset_status(self, session: str) -> ResetOutlook:
        """When it is reset automatically, and what postpones that."""
        from holdfast.schemas.chapters import ResetOutlook

        return self._client.read(ResetOutlook, f"{_path(session)}/reset")

    def context(self, session: str, *, texts: bool = True) -> ModelContext:
        """What the model sees, and how large it is."""
        from holdfast.schemas.chapters import ModelContext

        return self._client.read(ModelContext, f"{_path(session)}/context", texts=texts)

    def search(self, text: str, *, limit: int = 50) -> SearchPage:
        """Search all conversations for a text, newest first."""
        return self._client.read(SearchPage, "/v1/search", q=text, limit=limit)

    def pages(self, *, archived: bool = False) -> Iterator[SessionPage]:
        """Every page of the list."""
        before = ""
        while True:
            page = self.list(archived=archived, limit=200, before=before)
            yield page
            if page.next is None:
                return
            before = page.next


def _path(session: str) -> str:
    return f"/v1/sessions/{quote(session)}"
