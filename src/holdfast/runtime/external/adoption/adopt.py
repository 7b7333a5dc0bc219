"""Adopts a session that an agent had in its own terminal: its history becomes a session here and continues in a copy.

    the file is found and read → who has it open → one append: the session, its imported turns, where they came from

The agent makes the copy when the next message is sent (`drivers/`), so its own file stays as it is.
"""

from __future__ import annotations

import asyncio
import shutil
from hashlib import blake2s
from itertools import count
from pathlib import Path

from holdfast.clock import Clock
from holdfast.config import command_environment
from holdfast.domain.commands import AdoptSession
from holdfast.domain.errors import Conflict, Gone, NotFound, Rejected, TooLarge
from holdfast.domain.events import AnyEvent, session_stream
from holdfast.domain.events.external_agent import SessionAdopted
from holdfast.domain.events.session import SessionCreated
from holdfast.external_agent_files import SESSIONS
from holdfast.external_agents import CATALOGUE
from holdfast.profiles import Profiles
from holdfast.runtime.external.adoption.files import SessionFile, find_files, session_directory
from holdfast.runtime.external.adoption.history import ImportedHistory, imported_events
from holdfast.runtime.external.adoption.in_use import used_by
from holdfast.runtime.external.adoption.reader import describe, read_history, title_of
from holdfast.runtime.external.configuration import external_command
from holdfast.schemas.agents import AgentSession, AgentSessions
from holdfast.sessions import Caller, Sessions
from holdfast.store.contract import Appended, Store, Write

SHORTEST = 4
FILE_BYTES = 2 << 30
LOOKED_AT = 50
"""How many sessions of a directory are searched for one that already works in the agent's session."""


class Adoptions:
    """Lists the sessions of agents, and adopts them."""

    def __init__(self, store: Store, sessions: Sessions, profiles: Profiles, clock: Clock) -> None:
        self._store = store
        self._sessions = sessions
        self._profiles = profiles
        self._clock = clock

    async def sessions_of(self, agent: str, *, limit: int) -> AgentSessions:
        """Return the sessions that an agent has, the one that was changed last first."""
        _check_agent(agent)
        described = await asyncio.to_thread(_described, agent, limit)
        own = {cwd: await self._own(agent, cwd) for cwd in {history.cwd for _, history in described}}
        found: list[AgentSession] = []
        for file, history in described:
            adopted, _ = await self._adopted(agent, file.id)
            session = adopted[-1] if adopted else own[history.cwd].get(file.id, "")
            found.append(
                AgentSession(
                    id=file.id,
                    title=title_of(history),
                    cwd=history.cwd,
                    changed_at=file.changed_at,
                    size=file.size,
                    session=session,
                )
            )
        return AgentSessions(agent=agent, directory=str(session_directory(agent)), sessions=found)

    async def adopt(self, agent: str, command: AdoptSession, caller: Caller) -> Appended:
        """Begin a session that continues one of an agent."""
        if (known := await self._store.find_command(caller.key)) is not None:
            return known
        profile = self._profile(agent, command.profile)
        await asyncio.to_thread(self._check_installed, agent, profile)
        file, history = await asyncio.to_thread(_found, agent, command.session)
        if not command.anyway and (own := (await self._own(agent, history.cwd)).get(file.id)) is not None:
            raise Conflict(
                f"This session of {CATALOGUE[agent].title} is that of the Holdfast session {own}.", hint=_go_on(own)
            )
        if not await asyncio.to_thread(_is_directory, history.cwd):
            raise Rejected(
                f"Its directory {history.cwd[:200]!r} does not exist any more, and the agent would work there.",
                hint="Create it again, for example from a backup or as a git worktree.",
            )
        if not command.anyway and (user := await asyncio.to_thread(used_by, agent, file, history.cwd)):
            raise Conflict(
                f"The session is still open outside of Holdfast: {user}.",
                hint="Close it there first: what is said there later is not shown here. `--anyway` adopts it as it is.",
            )

        async def writes() -> tuple[Write, ...]:
            before, session = await self._adopted(agent, file.id)
            if before and not command.anyway:
                raise Conflict(
                    f"It was adopted before: it continues in session {before[-1]}.",
                    hint=f"{_go_on(before[-1])} `--anyway` makes another session of it.",
                )
            times, events = zip(*self._events(agent, profile, session, file, history, caller), strict=True)
            return (Write(session_stream(session), events, expect=0, times=times),)

        return await self._store.transact(self._clock, writes, command=caller.key)

    def _events(
        self, agent: str, profile: str, session: str, file: SessionFile, history: ImportedHistory, caller: Caller
    ) -> list[tuple[int, AnyEvent]]:
        now = self._clock.now()
        turns = imported_events(history, agent=agent, profile=profile, mask=self._profiles.mask, now=now)
        born = SessionCreated(
            session=session,
            profile=profile,
            cwd=history.cwd,
            title=title_of(history),
            by=caller.by,
            driver=self._profiles.driver(profile),
            node=self._store.node,
        )
        adopted = SessionAdopted(
            agent=agent,
            remote=file.id,
            file=str(file.path),
            turns=len(history.turns),
            by=caller.by,
            left_out=history.left_out,
            unreadable=history.unreadable,
            used=history.used,
        )
        return [(turns[0][0], born), *turns, (now, adopted)]

    # --- what may be adopted ----------------------------------------------------------------------

    def _profile(self, agent: str, given: str | None) -> str:
        """Return the profile of the session: the given one, that with the name of the agent, or the only one."""
        _check_agent(agent)
        title, settings = CATALOGUE[agent].title, self._profiles.settings
        fitting = [name for name, one in sorted(settings.profiles.items()) if one.agent == agent]
        if given is not None and given not in fitting:
            known = f"Those that use it are: {', '.join(fitting)}." if fitting else _add(agent)
            problem = f"does not use {title}" if given in settings.profiles else "does not exist"
            raise Rejected(f"The profile {given!r} {problem}.", hint=known)
        if not fitting:
            raise Rejected(f"No profile uses {title}.", hint=_add(agent))
        if given is None and agent not in fitting and len(fitting) > 1:
            raise Rejected(f"Several profiles use {title}.", hint=f"Choose one (--profile): {', '.join(fitting)}.")
        return given or (agent if agent in fitting else fitting[0])

    def _check_installed(self, agent: str, profile: str) -> None:
        settings = self._profiles.settings
        external = external_command(profile, settings.profiles[profile])
        path = command_environment(settings.hidden_names).get("PATH")
        if external is None or shutil.which(external.argv[0], path=path) is None:
            program = agent if external is None else external.argv[0]
            message = f"{CATALOGUE[agent].title} is not installed where the gateway runs: there is no {program!r}."
            raise Rejected(message, hint=f"Install it: `{CATALOGUE[agent].install}`")

    async def _adopted(self, agent: str, remote: str) -> tuple[list[str], str]:
        """Return the sessions in which one of the agent continues, and the id of the next one.

        The ids follow from what is adopted, so that two who adopt the same at once cannot both succeed.
        """
        found: list[str] = []
        for number in count():
            session = _session_id(agent, remote, number)
            try:
                await self._store.read(session_stream(session), after=0, limit=1)
                found.append(session)
            except Gone:  # it was deleted
                continue
            except NotFound:
                return found, session
        raise AssertionError("there is always another number")

    async def _own(self, agent: str, cwd: str) -> dict[str, str]:
        """Return the agent's sessions in which sessions of this directory work, each with that session."""
        profiles = self._profiles.settings.profiles
        found: dict[str, str] = {}
        for row in await self._store.sessions_in(cwd, limit=LOOKED_AT):
            if row.profile in profiles and profiles[row.profile].agent == agent:
                state = await self._sessions.get(row.id)
                if state.attached is not None and state.attached.agent == agent:
                    found.setdefault(state.attached.remote, row.id)
        return found


def _check_agent(agent: str) -> None:
    if agent not in SESSIONS:
        raise NotFound(
            f"The sessions of {agent[:80]!r} cannot be adopted.",
            hint=f"Those of these agents can: {', '.join(SESSIONS)}.",
        )


def _session_id(agent: str, remote: str, number: int) -> str:
    return blake2s(f"{agent}/{remote}/{number}".encode(), digest_size=8).hexdigest()


def _add(agent: str) -> str:
    return f"Add one: `holdfast agents add {agent}`"


def _go_on(session: str) -> str:
    return f'Continue there: `holdfast send {session} "…"` or `holdfast chat {session}`.'


def _is_directory(path: str) -> bool:
    try:
        return Path(path).is_absolute() and Path(path).is_dir()
    except OSError:  # it is too long, or may not be looked at
        return False


def _described(agent: str, limit: int) -> list[tuple[SessionFile, ImportedHistory]]:
    """Return the newest sessions in which somebody said something."""
    found: list[tuple[SessionFile, ImportedHistory]] = []
    for file in find_files(agent):
        if len(found) == limit:
            break
        history = describe(agent, file)
        if history is not None and history.turns:
            found.append((file, history))
    return found


def _found(agent: str, session: str) -> tuple[SessionFile, ImportedHistory]:
    """Return the session with this id or prefix, and what was said in it."""
    title, files = CATALOGUE[agent].title, find_files(agent)
    fitting = [
        file for file in files if file.id == session or (len(session) >= SHORTEST and file.id.startswith(session))
    ]
    exact = [file for file in fitting if file.id == session]
    hint = f"`holdfast agents adopt {agent}` lists them."
    if not fitting:
        where = session_directory(agent)
        raise NotFound(f"{title} has no session {session!r} in {where}.", hint=hint)
    if len(fitting) > 1 and len(exact) != 1:
        raise Conflict(f"{session!r} fits {len(fitting)} sessions of {title}.", hint="Use more characters of the ID.")
    file = (exact or fitting)[0]
    if file.size > FILE_BYTES:
        raise TooLarge(f"{file.path} has {file.size >> 20} MiB; at most {FILE_BYTES >> 20} are read.")
    try:
        history = read_history(agent, file, files)
    except OSError as error:
        raise Rejected(f"{file.path} cannot be read: {error.strerror or error}.") from error
    if not history.turns or not history.cwd:
        raise Rejected(f"There is nothing to adopt: nobody has said anything in {file.path}.", hint=hint)
    return file, history
