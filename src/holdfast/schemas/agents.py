"""External agents in responses."""

from __future__ import annotations

import msgspec


class KnownAgent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent of others that Holdfast knows how to start."""

    name: str
    title: str
    program: str
    """Where its program was found; empty if it is not installed."""
    version: str
    """Empty if it was not asked for, or the program did not say it."""
    profiles: list[str]
    """The profiles that use it."""
    install: str
    """The command that installs it."""
    login: str
    """The command by which a person logs in."""


class AgentSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session that an external agent had in its own terminal."""

    id: str
    """The agent's own."""
    title: str
    cwd: str
    changed_at: int
    size: int
    """Of its file, in bytes."""
    session: str
    """The session of Holdfast in which it continues; empty if there is none."""


class AgentSessions(msgspec.Struct, frozen=True, kw_only=True):
    """Sessions that an external agent had in its own terminal, the one that was changed last first."""

    agent: str
    directory: str
    """Where the agent keeps them."""
    sessions: list[AgentSession]


class AgentList(msgspec.Struct, frozen=True):
    """The catalogue of external agents, and which of them are installed on the machine of the gateway."""

    agents: list[KnownAgent]
