"""Profiles as agents: the model, the tools, the rules and the limits that work on a session."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import expanduser
from pathlib import Path

import msgspec

from holdfast.domain.events.parts import Rights, RightsLayer
from holdfast.domain.session import Session
from holdfast.models.registry import ModelRegistry, UnavailableModel
from holdfast.network_mounts import NetworkMounts
from holdfast.profiles import WORKSPACES, Profiles
from holdfast.runtime.agent import Agent
from holdfast.runtime.mcp.servers import McpServer, McpServers
from holdfast.runtime.tools.context import SYSTEM
from holdfast.runtime.tools.tool import AnyTool
from holdfast.settings import Settings, span_ms
from holdfast.tasks.sandbox import SandboxPolicy


class Agents:
    """Makes the agent of a session from the settings in force."""

    def __init__(
        self,
        profiles: Profiles,
        models: ModelRegistry,
        *,
        tools: Sequence[AnyTool],
        worker_tools: Sequence[AnyTool] = (),
    ) -> None:
        """`tools` are what every agent can do if its permissions allow it, `worker_tools` what workers of cards can do
        besides.
        """
        self._profiles = profiles
        self._models = models
        self._tools = [*tools]
        self._worker_tools = [*tools, *worker_tools]
        self._home = profiles.path.parent
        self._closed = (self._home.resolve(), *SYSTEM)
        self._mounts = NetworkMounts()
        self._servers = McpServers()
        self._settings: Settings | None = None
        self._agents: dict[tuple[str, str, bool], Agent] = {}
        """Agents without inherited limits, by profile, model and whether they work on a card. Kept while the settings
        are these.
        """

    async def of(self, session: Session) -> Agent:
        """The agent of a session. One that is missing answers every call with what is missing."""
        settings = self._profiles.settings
        if settings is not self._settings:
            self._use(settings)
        if session.rights.layers:
            return await self._make(session, settings)
        key = (session.profile, session.model, bool(session.card))
        agent = self._agents.get(key)
        if agent is None:
            agent = await self._make(session, settings)
            if settings is self._settings:
                self._agents[key] = agent
        return agent

    async def close(self) -> None:
        """Let go of the MCP servers."""
        await self._servers.close()

    def _use(self, settings: Settings) -> None:
        self._settings = settings
        self._agents.clear()
        self._servers.define(
            McpServer(name=name, command=one.command, url=one.url, env=one.variables(), headers=one.headers())
            for name, one in settings.mcp.items()
        )

    async def _make(self, session: Session, settings: Settings) -> Agent:
        profile = settings.profiles.get(session.profile)
        tools = self._worker_tools if session.card else self._tools
        if profile is None:
            known = ", ".join(self._profiles.names)
            message = f"There is no profile {session.profile!r} any more; there is: {known}."
            return Agent(
                UnavailableModel("unknown_profile", message),
                self._profiles.limits(session.profile, window=None),
                rules={"*": "deny"},
                own_tools=tools,  # to tidy up; none is allowed
                closed=self._closed,
            )
        ancestors = _ancestors(session.rights, settings)
        model, summary_model = self._models.get(session.model or profile.model), settings.compaction.summary_model
        also, writable = await self._mounts.run(lambda: (_real_paths(profile.also), _real_paths(profile.sandbox_write)))
        return Agent(
            model=model,
            limits=self._profiles.limits(session.profile, window=await model.window()),
            instructions=profile.instructions,
            cwd=_of_the_user(profile.cwd),
            also=also,
            rules=profile.tools,
            approval_timeout_ms=span_ms(profile.approval_timeout) or 0,
            own_tools=tools,
            servers=self._servers,
            server_names=tuple(name for name in profile.mcp if all(name in layer.mcp for layer in ancestors)),
            closed=self._closed,
            workspaces=self._home.absolute() / WORKSPACES,
            ancestors=ancestors,
            sandbox=SandboxPolicy(profile.sandbox, profile.network, writable),
            kept_output=(_blocks(profile.output_head_kib), _blocks(profile.output_tail_kib)),
            secrets=self._profiles.secrets,
            mounts=self._mounts,
            summarisers=(self._models.get(summary_model),) if summary_model else (),
            summary_seconds=settings.compaction.summary_timeout,
        )


def _ancestors(rights: Rights, settings: Settings) -> tuple[RightsLayer, ...]:
    """The layers as they were written down, and again as their profiles are now: what was taken away is gone."""
    found = list(rights.layers)
    for layer in rights.layers:
        now = settings.profiles.get(layer.profile)
        if now is not None:
            found.append(
                msgspec.structs.replace(layer, rules=now.tools, mcp=now.mcp, sandbox=now.sandbox, network=now.network)
            )
    return tuple(found)


def _real_paths(paths: list[str]) -> tuple[Path, ...]:
    return tuple(Path(_of_the_user(path)).resolve() for path in paths)


def _of_the_user(path: str) -> str:
    return expanduser(path)  # noqa: PTH111 (that one fails on `~somebody` whom nobody knows)


def _blocks(kib: int) -> int:
    """In whole blocks of 4 KiB: a disk gives back no less."""
    return -(-kib // 4) * 4096
