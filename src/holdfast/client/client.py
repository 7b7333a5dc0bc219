"""The client: all queries and commands of a gateway, typed.

It may be used from several threads. From asyncio: `await asyncio.to_thread(client.sessions.list)` keeps the types, and
`aio.py` has the one thing that needs more, an iterator such as `follow`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast import __version__
from holdfast.client.cards import BoardApi, CardApi
from holdfast.client.events import PAGE, RecordReceived, StreamItem, follow_events, follow_records, stored_records
from holdfast.client.http import Address, HttpClient, quote
from holdfast.client.lenient import lenient_record
from holdfast.client.reconnect import PATIENCE_SECONDS
from holdfast.client.sessions import SessionApi
from holdfast.client.tasks import TaskApi
from holdfast.config import Home, find_home
from holdfast.schemas.agents import AgentList, AgentSessions
from holdfast.schemas.gateway import ModelList, ProfileList, Status, Why
from holdfast.schemas.sessions import Accepted

if TYPE_CHECKING:
    from holdfast.client.turn import TurnResult
    from holdfast.domain.events import Record
    from holdfast.schemas.inbox import Inbox, WaitDetail

USER_AGENT = f"holdfast-python/{__version__}"


class Client(HttpClient):
    """A client of the gateway of a home, by default `$HOLDFAST_HOME` or `~/.holdfast`.

    `patience`: for how many seconds a gateway that went away is waited for.
    """

    def __init__(
        self,
        home: Home | Path | str | None = None,
        *,
        user_agent: str = USER_AGENT,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        if not isinstance(home, Home):
            home = find_home(str(home) if home is not None else None)
        super().__init__(home, user_agent=user_agent, patience=patience)
        self.sessions = SessionApi(self)
        self.tasks = TaskApi(self)
        self.cards = CardApi(self)
        self.boards = BoardApi(self)

    def start_gateway(self) -> Address:
        """Start a gateway in the background, unless one is running."""
        from holdfast.client.launch import ensure

        return ensure(self).address

    # --- a session as it happens ------------------------------------------------------------------

    def follow(self, session: str, *, after: int = 0, closed: threading.Event | None = None) -> Iterator[StreamItem]:
        """Every event after a version, then new events, across restarts of the gateway, until `closed` is set.

        Nothing comes twice and nothing is left out but events of kinds that only a newer gateway knows.
        """
        return follow_events(follow_records(self, quote(session), after=after, patience=self.patience, closed=closed))

    def events(self, session: str, *, after: int = 0, page: int = PAGE) -> Iterator[Record]:
        """The events of a session that are stored now; `page` is the number per request."""
        for item in stored_records(self, quote(session), after=after, page=page):
            if (record := lenient_record(item.record)) is not None:
                yield record

    def run(self, text: str, *, profile: str | None = None, cwd: str | None = None) -> TurnResult:
        """Start a session with a message and wait for the end of its turn."""
        return self.wait_for_turn(self.sessions.create(text, profile=profile, cwd=cwd))

    def wait_for_turn(self, accepted: Accepted) -> TurnResult:
        """Wait for the end of the turn that takes an accepted message."""
        from holdfast.client.turn import TurnResult, TurnWatch, read_after

        session, watch = accepted.session, TurnWatch(accepted.input or "")
        records = follow_records(self, quote(session), after=read_after(accepted), patience=self.patience)
        while (outcome := watch.outcome) is None:
            if isinstance(item := next(records), RecordReceived):
                watch.apply(item.record)
        return TurnResult(session, watch.turn or 0, outcome, watch.reason, watch.model, watch.text, watch.version)

    # --- what waits, and the gateway ------------------------------------------------------------------------------

    def status(self) -> Status:
        """The state of the gateway."""
        return self.read(Status, "/v1/status")

    def inbox(self) -> Inbox:
        """Everything that waits for a person."""
        from holdfast.schemas.inbox import Inbox

        return self.read(Inbox, "/v1/inbox")

    def wait(self, id: str) -> WaitDetail:
        """A question or an approval, with every argument of its call."""
        from holdfast.schemas.inbox import WaitDetail

        return self.read(WaitDetail, f"/v1/inbox/{quote(id)}")

    def answer(self, wait: str, answer: str, *, note: str = "", id: str | None = None) -> Accepted:
        """Answer a question with a text, or an approval with `allow`, `call`, `session`, `always` or `deny`."""
        return self.post(Accepted, "/v1/answers", id=id, wait=wait, answer=answer, note=note)

    def why(self, *, session: str = "", task: str = "", card: str = "") -> Why:
        """What something is doing or waiting for, for how long and at whose request; by default everything."""
        kinds = {"sessions": session, "tasks": task, "cards": card}
        target = next((f"/v1/{kind}/{quote(id)}/why" for kind, id in kinds.items() if id), "/v1/why")
        return self.read(Why, target)

    def profiles(self) -> ProfileList:
        """The profiles."""
        return self.read(ProfileList, "/v1/profiles")

    def agents(self, *, versions: bool = False) -> AgentList:
        """The external agents that can be used, and which are installed; `versions`: ask each program for its own."""
        return self.read(AgentList, "/v1/agents", versions=versions)

    def agent_sessions(self, agent: str, *, limit: int = 20) -> AgentSessions:
        """The sessions that an external agent had in its own terminal, newest first."""
        return self.read(AgentSessions, f"/v1/agents/{quote(agent)}/sessions", limit=limit)

    def adopt(
        self, agent: str, session: str, *, profile: str | None = None, anyway: bool = False, id: str | None = None
    ) -> Accepted:
        """Create a session that continues one of an external agent, by the agent's own ID of it."""
        path = f"/v1/agents/{quote(agent)}/adopt"
        return self.post(Accepted, path, id=id, session=session, profile=profile, anyway=anyway)

    def models(self) -> ModelList:
        """The models that were found on this machine."""
        return self.read(ModelList, "/v1/models")
