"""Agents: the model, tools, rules and limits that work on one session, made from its profile."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from os.path import expanduser
from pathlib import Path

import msgspec

from holdfast.domain.events.parts import Rights, RightsLayer
from holdfast.domain.next_step import TurnLimits
from holdfast.domain.session import Session
from holdfast.models.model import Model
from holdfast.models.registry import ModelRegistry, UnavailableModel
from holdfast.network_mounts import NetworkMounts
from holdfast.profiles import WORKSPACES, Profiles
from holdfast.rules.patterns import policy_of_tool
from holdfast.runtime.external.configuration import ExternalCommand, external_command
from holdfast.runtime.mcp.servers import McpServer, McpServers
from holdfast.runtime.tools.context import KEPT, SYSTEM, ToolContext
from holdfast.runtime.tools.tool import AnyTool, Tool
from holdfast.secrets import NO_SECRETS, Secrets
from holdfast.settings import OTHERS_TASKS, Policy, Settings, span_ms
from holdfast.tasks.sandbox import SandboxPolicy

CHOOSE_PROFILE = "Choose another with /profile in the chat, or add it again; then send a message to continue."


@dataclass(frozen=True, slots=True)
class Agent:
    """The model, tools, rules and limits for one session."""

    model: Model
    limits: TurnLimits
    instructions: str = ""
    cwd: str = ""
    also: tuple[Path, ...] = ()
    rules: dict[str, Policy] = field(default_factory=dict)
    refusal: str = ""
    """Why it may carry out no call at all, whatever its rules are; empty if they decide."""
    own_tools: list[AnyTool] = field(default_factory=list)
    servers: McpServers | None = None
    server_names: tuple[str, ...] = ()
    closed: tuple[Path, ...] = SYSTEM
    workspaces: Path | None = None
    """The directory of the workspaces of cards; a worker can reach only its own."""
    ancestors: tuple[RightsLayer, ...] = ()
    """Limits besides its own profile: the profiles of the agents that it descends from."""
    sandbox: SandboxPolicy = field(default_factory=SandboxPolicy)
    approval_timeout_ms: int = 0
    """After how long an unanswered approval is denied; 0 is never."""
    kept_output: tuple[int, int] = KEPT
    secrets: Secrets = field(default=NO_SECRETS, repr=False)
    mounts: NetworkMounts = field(default_factory=NetworkMounts)
    """Does what touches its directories without stopping the loop."""
    external: ExternalCommand | None = None
    """The external agent of its profile; None if our own agent works."""
    summarisers: tuple[Model, ...] = ()
    summary_seconds: float = 60.0

    @property
    def summary_models(self) -> tuple[Model, ...]:
        """The models that write summaries: the configured one, then its own."""
        return (*self.summarisers, self.model)

    @property
    def watched_tools(self) -> frozenset[str]:
        """The tools that change no files or report them; after any other tool only git knows which files changed."""
        watched = (tool for tool in self.own_tools if isinstance(tool, Tool) and tool.file_changes != "unknown")
        return frozenset(tool.name for tool in watched)

    async def tools(self) -> dict[str, AnyTool]:
        """Return its tools; those of a server that is down are replaced by one that says why."""
        found = list(self.own_tools)
        if self.servers is not None and self.server_names:
            found += await self.servers.tools(list(self.server_names))
        return {tool.name: tool for tool in found}

    def tool_context(self, session: Session, call: str = "") -> ToolContext:
        """Return the context of its tools, or of one call."""
        # a card has a workspace of its own, and what an agent created works where its creator could
        given = session.workspace_of or session.rights.layers
        return ToolContext(
            Path(session.cwd if given else self.cwd or session.cwd),
            self.also,
            self.closed,
            workspace=self._workspace(session),
            bounds=tuple(tuple(Path(path) for path in layer.paths) for layer in self.ancestors),
            other_sessions=all(rules.get(OTHERS_TASKS) == "allow" for rules in self.all_rules),
            may_run_commands=session.mode_in_force != "read"
            and all(policy_of_tool("terminal", rules) != "deny" for rules in self.all_rules),
            profile=session.profile,
            session=session.id,
            call=call,
            kept_output=self.kept_output,
            refusal=self.refusal,
            git_rules=tuple(
                tuple(rule for rule, policy in rules.items() if policy != "deny" and ".git" in rule)
                for rules in self.all_rules
            ),
            sandbox=self._sandbox(),
            mounts=self.mounts,
            mask=self.secrets.mask,
            call_key=f"{session.id}-{call}" if call else "",
        )

    def _workspace(self, session: Session) -> Path | None:
        """Return the workspace of its card, or of the card of the session that it was forked or created from."""
        if self.workspaces is None:
            return None
        if session.workspace_of:
            return self.workspaces / session.workspace_of
        cwd = Path(session.cwd)
        if session.rights.layers and cwd != self.workspaces and cwd.is_relative_to(self.workspaces):
            return self.workspaces / cwd.relative_to(self.workspaces).parts[0]
        return None

    def _sandbox(self) -> SandboxPolicy:
        """Return the sandbox policy of its profile, limited by that of its ancestors."""
        bounds = [[Path(path) for path in layer.paths] for layer in self.ancestors]
        wanted = (*self.also, *self.sandbox.writable)
        writable = [path for path in wanted if all(any(path.is_relative_to(root) for root in one) for one in bounds)]
        policy = SandboxPolicy(self.sandbox.mode, self.sandbox.network, tuple(writable))
        for layer in self.ancestors:
            policy = policy.limited_by(layer.sandbox, network=layer.network)
        return policy

    @property
    def all_rules(self) -> list[dict[str, Policy]]:
        """Its own rules and those of its ancestors; a call needs the consent of each."""
        return [self.rules, *(layer.rules for layer in self.ancestors)]

    def mask(self, output: str) -> str:
        """Return a text without the values of keys."""
        return self.secrets.mask(output)

    async def clean_up(self, session: Session) -> None:
        """Remove what interrupted tool calls left behind."""
        cut = [open.call for open in session.turn.open_calls.values() if open.effect] if session.turn else []
        for tool, call in ((tool, call) for call in cut for tool in self.own_tools if tool.name == call.tool):
            await asyncio.to_thread(tool.clean_up, self.tool_context(session, call.call), call.arguments)


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
            message = f"There is no profile {session.profile!r} any longer; there is: {known}."
            return Agent(
                UnavailableModel(session.model or "no model", "unknown_profile", message, hint=CHOOSE_PROFILE),
                self._profiles.limits(session.profile, window=None),
                rules={"*": "deny"},
                refusal=message,
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
            external=external_command(session.profile, profile),
            secrets=self._profiles.secrets,
            mounts=self._mounts,
            summarisers=(self._models.get(summary_model),) if summary_model else (),
            summary_seconds=settings.compaction.summary_timeout,
        )


def _ancestors(rights: Rights, settings: Settings) -> tuple[RightsLayer, ...]:
    """Return the layers as they were stored, and again as their profiles are now: a revoked permission is gone."""
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
    return expanduser(path)  # noqa: PTH111 (`Path.expanduser` fails on an unknown `~user`)


def _blocks(kib: int) -> int:
    """In whole blocks of 4 KiB: a disk gives back no less."""
    return -(-kib // 4) * 4096
