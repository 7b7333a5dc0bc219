"""The process of an agent that speaks the protocol: its input, its output, and how it is made ready.

It runs under keepers and continues without a gateway. Its input is in a file, so after a crash nothing is sent
twice and nothing is forgotten: a request is looked up there by its id before it is sent.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from holdfast.domain.events.external_agent import AgentAttached, AttachedBy, ContextKnown
from holdfast.runtime.external.acp.protocol import (
    CLIENT,
    INITIALIZE,
    LIST,
    NO_TOOLS,
    OPEN,
    SET_MODE,
    VERSION,
    AcpMessage,
    Initialized,
    ListedSessions,
    Modes,
    OpenedSession,
    RpcError,
    mcp_server,
    parse,
    refusal,
    request,
)
from holdfast.runtime.external.configuration import ExternalCommand
from holdfast.runtime.external.process import ExternalProcess
from holdfast.worker_access import ToolServer

LIST_PAGES, MORE_LISTED = 10, 200
"""How many pages of a list of sessions are read, and the ids of the requests for further ones."""
QUIET_SECONDS = 1.0
T = TypeVar("T")


class AgentNotReady(Exception):  # it says what is the case
    """The agent cannot work on the session."""

    def __init__(self, error: RpcError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True, slots=True)
class Ready:
    """An agent that is ready for a session."""

    agent: str
    version: str
    remote: str
    how: AttachedBy
    context: ContextKnown
    reason: str
    steers: bool
    offset: int
    """The offset behind what it said until then."""

    def version_before(self, before: AgentAttached | None) -> str:
        """Return the version that the agent had before, if it has another one now: it was updated meanwhile."""
        if before is None or before.agent != self.agent or not self.version:
            return ""
        return before.version if before.version != self.version else ""


class AcpProcess(ExternalProcess):
    """One process."""

    async def send(self, line: bytes) -> None:
        """Send a line, unless it was sent before; complete it, if only a part of it was. `NotFound` if it has ended."""
        sent = self._tasks.supervisor.written(self.task)
        whole, _, part = sent.rpartition(b"\n")
        if (key := _key(line)) is not None and any(_key(one) == key for one in whole.split(b"\n")):
            return
        if part:  # a gateway was killed in the middle of a line
            line = line.removeprefix(part) if line.startswith(part) else b"\n" + line
        await self._tasks.supervisor.write(self.task, line)

    # --- ready for a session ----------------------------------------------------------------------

    async def make_ready(
        self,
        agent: ExternalCommand,
        before: AgentAttached | None,
        *,
        cwd: str,
        server: ToolServer | None,
        adopted: str = "",
    ) -> Ready:
        """Open a session with it: the one that it had `before`, or a copy of the one that was adopted, if there is one
        and it can; else a new one.

        `server` has the tools by which it reports on its card.
        """
        talk = _Opening(self)
        known = await self._initialize(talk)
        can = known.agent_capabilities.session_capabilities
        info = known.agent_info
        takes_tools = agent.takes_tools or bool(known.agent_capabilities.mcp_capabilities.get("http"))
        if server is not None and not takes_tools:
            message = "it takes no tools over HTTP (mcpCapabilities.http), so it cannot report on its card"
            raise AgentNotReady(RpcError(code=NO_TOOLS, message=message))
        place = {"cwd": cwd, "mcpServers": [] if server is None else [mcp_server(server)]}
        source = before.remote if before is not None else adopted
        how = _way_to(source, known, is_own=before is not None)
        context, reason, remote, number = "none", "", "", OPEN
        opened = OpenedSession()
        if how != "new":
            try:
                listed = await self._lists(talk, source, cwd) if "list" in can else None
                talk.replayed = 0
                await self.send(request(number, f"session/{how}", {"sessionId": source, **place}))
                opened = await talk.answer(number, OpenedSession)
                if how == "load":
                    await talk.settle()
                remote = _copy_of(source, opened) if how == "fork" else source
                reason = _doubt(source, remote, opened, listed=listed, replayed=talk.replayed)
                context = "unproven" if reason else "proven"
            except AgentNotReady as error:
                done = "copied" if how == "fork" else "resumed"
                how, reason, number = "new", f"its session could not be {done} ({error})", number + 100
        elif source:
            reason = f"the agent cannot {'resume' if before is not None else 'copy'} a session"
        if how == "new":
            await self.send(request(number, "session/new", place))
            opened = await talk.answer(number, OpenedSession)
            remote = opened.session_id
        await self._set_mode(talk, agent, opened, remote)
        return Ready(
            agent=agent.name,
            version=info.version if info is not None else "",
            remote=remote,
            how=how,
            context=context,  # type: ignore[arg-type]
            reason=reason,
            steers=known.steers,
            offset=talk.offset,
        )

    async def _initialize(self, talk: _Opening) -> Initialized:
        await self.send(request(INITIALIZE, "initialize", CLIENT))
        known = await talk.answer(INITIALIZE, Initialized)
        if known.protocol_version != VERSION:
            message = f"it speaks version {known.protocol_version} of the protocol, and Holdfast speaks {VERSION}"
            raise AgentNotReady(RpcError(message=message))
        return known

    async def _lists(self, talk: _Opening, remote: str, cwd: str) -> bool | None:
        """Return whether it lists a session; None if it cannot say. Asked before the session is resumed: an agent that
        opens a new one without a word may list that under the same id.
        """
        cursor: dict[str, str] = {}
        for page in range(LIST_PAGES):
            number = LIST if page == 0 else MORE_LISTED + page
            await self.send(request(number, "session/list", {"cwd": cwd, **cursor}))
            try:
                listed = await talk.answer(number, ListedSessions)
            except AgentNotReady:
                return None
            if any(one.session_id == remote for one in listed.sessions):
                return True
            if not listed.next_cursor:
                return False
            cursor = {"cursor": listed.next_cursor}
        return None

    async def _set_mode(self, talk: _Opening, agent: ExternalCommand, opened: OpenedSession, remote: str) -> None:
        modes = opened.modes or Modes()
        if not agent.mode or modes.current_mode_id == agent.mode:
            return
        known = [mode.id for mode in modes.available_modes]
        if agent.mode not in known:
            if agent.mode_chosen:
                there = ", ".join(known) or "none"
                raise AgentNotReady(RpcError(message=f"it has no mode {agent.mode!r}; its modes are: {there}"))
            return
        await self.send(request(SET_MODE, "session/set_mode", {"sessionId": remote, "modeId": agent.mode}))
        await talk.answer(SET_MODE, OpenedSession)


def _way_to(source: str, known: Initialized, *, is_own: bool) -> AttachedBy:
    """Return how the agent comes to a session: its own one is resumed or loaded, of another one it makes a copy."""
    can = known.agent_capabilities.session_capabilities
    if source and is_own:
        return "resume" if "resume" in can else "load" if known.agent_capabilities.load_session else "new"
    return "fork" if source and "fork" in can else "new"


def _copy_of(source: str, opened: OpenedSession) -> str:
    """Return the copy of a session. Without one, what is said next would become a part of the original."""
    if opened.session_id in ("", source):
        raise AgentNotReady(RpcError(message="it made no copy"))
    return opened.session_id


def _doubt(source: str, remote: str, opened: OpenedSession, *, listed: bool | None, replayed: int) -> str:
    """Return why a session may be another one than the agent had, or no copy of it; empty if there is proof.

    Proof is that the agent listed it before, or that it repeated messages of a person.
    """
    if opened.session_id and opened.session_id != remote:
        return f"it opened session {opened.session_id} instead of {remote}"
    if listed or replayed:
        return ""
    if listed is None:
        return "it cannot list its sessions, and repeated nothing of this one"
    return f"it does not list session {source}"


class _Opening:
    """Reads the answers of an agent that is being made ready; what else it says is not kept."""

    def __init__(self, process: AcpProcess) -> None:
        self._process = process
        self._lines = process.lines(0)
        self.offset = 0
        self.replayed = 0
        """How many pieces of messages of a person it has repeated."""

    async def answer(self, id: int, type: type[T]) -> T:
        """Return the answer to a request; `AgentNotReady` if it is an error, or if the process has ended."""
        async for line, offset in self._lines:
            self.offset = offset
            message = parse(line)
            if message is None:
                continue
            if message.method and message.id is not None:
                await self._process.send(refusal(message.json_id, message.method))
            elif message.is_answer and message.id == id:
                return _result(message, type)
            else:
                self._count(message)
        raise AgentNotReady(RpcError(message=f"it ended before it was ready. {self._process.last_words()}".strip()))

    async def settle(self) -> None:
        """Skip what the agent says until it is quiet: some repeat the conversation after they have loaded it."""
        size = -1
        while size != self._process.size:
            size = self._process.size
            await asyncio.sleep(QUIET_SECONDS)
        while self.offset < size:
            line, self.offset = await anext(self._lines)
            if (message := parse(line)) is not None:
                self._count(message)

    def _count(self, message: AcpMessage) -> None:
        if message.method == "session/update" and b'"user_message_chunk"' in bytes(message.params):
            self.replayed += 1


def _result(message: AcpMessage, type: type[T]) -> T:
    if message.error is not None:
        raise AgentNotReady(message.error)
    try:
        return msgspec.json.decode(b"{}" if bytes(message.result) == b"null" else message.result, type=type)
    except msgspec.MsgspecError as error:
        raise AgentNotReady(RpcError(message=f"its answer was not understood ({error})")) from error


def _key(line: bytes) -> tuple[object, bool] | None:
    """Return what identifies a request or an answer that was sent; None for a notification."""
    message = parse(line)
    return None if message is None or message.id is None else (message.id, bool(message.method))
