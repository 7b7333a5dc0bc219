"""Agent tasks: a prompt with a session of its own, or a running turn that is moved to the background.

A task and its session are created in one append. A turn that is moved to the background stays in its session and only
gets a task. The end of a task is written together with the end of its turn (`log.py`).
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from holdfast.clock import Clock
from holdfast.domain.command import SessionMode
from holdfast.domain.commands import CreateSession
from holdfast.domain.errors import Conflict, Unavailable
from holdfast.domain.events import session_stream, task_stream
from holdfast.domain.events.parts import Delegated, Rights
from holdfast.domain.events.session import SessionCreated, TurnBackgrounded
from holdfast.domain.events.task import TaskStarted
from holdfast.domain.session_rules import create
from holdfast.nodes import Nodes
from holdfast.sessions import Caller, Sessions
from holdfast.store.contract import Appended, CommandKey, Store, Write
from holdfast.tasks.log import TaskLog, turn_backgrounded

MOST_AGENTS = 32
"""How many agents may run at once; a limit is needed since agents can start agents."""


class AgentTasks:
    """Starts agent tasks."""

    def __init__(
        self, store: Store, *, task_log: TaskLog, sessions: Sessions, clock: Clock, most: int = MOST_AGENTS
    ) -> None:
        """`most` is how many may work at once."""
        self._store = store
        self._task_log = task_log
        self._sessions = sessions
        self._nodes = Nodes(store, task_log.profiles)
        self._clock = clock
        self._most = most

    async def start(
        self,
        started: TaskStarted,
        *,
        profile: str,
        caller: Caller,
        rights: Rights | None = None,
        mode: SessionMode = "profile",
        node: str = "",
    ) -> Appended:
        """Start an agent in a session with the id of the task. `rights` are those of a calling agent.

        `node` is what it asks for. If this node may not work on it, its directory is one of the node that does.
        """
        known = await self._store.find_command(caller.key)
        if known is not None:  # it is already running, so a snapshot would come too late
            return known
        running = [row for row in await self._store.running_tasks() if row.kind == "agent"]
        if len(running) >= self._most:
            raise Unavailable(f"{len(running)} agents are running in the background, which is the limit.")
        here = await self.may_run_here(profile, node)
        command = CreateSession(text=started.command, title=started.title, mode=mode, node=node)
        driver = self._task_log.profiles.driver(profile)
        events = create(
            command,
            session=started.worker,
            profile=profile,
            driver=driver,
            cwd=started.cwd,
            id=caller.key.id,
            by=caller.by,
        )
        born = events[0]
        assert isinstance(born, SessionCreated)
        events[0] = msgspec.structs.replace(
            born, origin=Delegated(task=started.task), rights=rights, node=self._store.node if here else ""
        )
        if here:
            await self._task_log.changes.take(started.task, Path(started.cwd))
        session = Write(session_stream(started.worker), tuple(events), expect=0)
        return await self._task_log.start(started, command=caller.key, also=(session,))

    async def may_run_here(self, profile: str, node: str = "") -> bool:
        """Return whether this node may work on an agent."""
        return await self._nodes.fits_here(self._nodes.placement(profile, node))

    async def was_started(self, key: CommandKey) -> bool:
        """Return whether this command has already created its session."""
        return await self._store.find_command(key) is not None

    async def background(self, session: str, *, task: str, caller: Caller) -> Appended:
        """Turn the running turn of a session into a background task."""

        async def writes() -> tuple[Write, ...]:
            await self._task_log.changes.take(task, Path((await self._sessions.get(session)).cwd))
            state = await self._sessions.get(session)
            turn = state.turn
            if state.run:
                raise Conflict(f"The session works on card {state.card_label}, so it already is a task.")
            if turn is None:
                raise Conflict("No turn is running.")
            if turn.task:
                raise Conflict(f"The turn already is a task: {turn.task}.")
            started = turn_backgrounded(state, turn, task=task, by=caller.by)
            backgrounded = TurnBackgrounded(turn=turn.number, task=task, by=caller.by)
            return (
                Write(task_stream(task), (started,), expect=0),
                Write(session_stream(session), (backgrounded,), expect=state.version),
            )

        return await self._store.transact(self._clock, writes, command=caller.key)
