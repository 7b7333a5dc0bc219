"""Profiles as agents: a model, its instructions, its tools, its permissions and its limits.

`config.toml` is looked at before every step, so a change takes effect at once; while it has an error
the last good settings stay in force and the error is shown.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from dataclasses import replace
from os.path import expanduser
from pathlib import Path
from typing import Any, Literal

import msgspec

from holdfast.config import ConfigError, environment
from holdfast.domain.compaction import CompactionRules
from holdfast.domain.errors import Rejected
from holdfast.domain.events.chapter import ResetPolicy
from holdfast.domain.events.parts import Rights, RightsLayer
from holdfast.domain.events.problem import Problem, ProblemCode
from holdfast.domain.next_step import MINUTE_MS, TurnLimits
from holdfast.domain.reset import ResetRules
from holdfast.domain.rights import inherit
from holdfast.domain.session import Session
from holdfast.models.demo import DemoModel
from holdfast.models.detect import Detected, detect
from holdfast.models.model import Model, ModelAnswer, ModelDelta, ModelError, ModelRequest
from holdfast.models.provider import Provider, ProviderModel
from holdfast.read_settings import load_settings
from holdfast.runtime.agent import Agent
from holdfast.runtime.mcp.servers import McpServer, McpServers
from holdfast.runtime.tools.context import SYSTEM
from holdfast.runtime.tools.files import file_tools
from holdfast.runtime.tools.question import QUESTION
from holdfast.runtime.tools.tool import AnyTool
from holdfast.secrets import Secrets, is_path
from holdfast.settings import (
    DEMO,
    DEMO_PROFILE,
    ApiStyle,
    ProfileSettings,
    ProviderSettings,
    Settings,
    span_ms,
)
from holdfast.store.rows import SessionRow
from holdfast.tasks.sandbox import SandboxBuilder, SandboxPolicy

SHOWN = 5
"""So many models of a provider are named where one was not understood."""
WORKSPACES = "workspaces"
"""The directory of the home in which cards are worked on."""
log = logging.getLogger(__name__)


class UnavailableModel:
    """Stands for a profile that is not configured any more, or a model that nobody knows."""

    name = "missing"
    window = None

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    async def stream(self, _: ModelRequest, /) -> AsyncGenerator[ModelDelta | ModelAnswer, None]:
        """Say what is missing."""
        yield self._refuse()

    def _refuse(self) -> ModelDelta:
        raise ModelError(self._problem)


class Profiles:
    """The configured agents by name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tools: list[AnyTool] = [*file_tools(), QUESTION]
        """What every agent can do, if its permissions allow it; the gateway adds more."""
        self.worker_tools: list[AnyTool] = []
        """And what the worker of a card can do besides."""
        self._closed = (path.parent.resolve(), *SYSTEM)
        self.sandbox = SandboxBuilder(path.parent.absolute())
        self._demo = DemoModel()
        self._models: dict[tuple[str, ProviderSettings, str], ProviderModel] = {}
        self._servers = McpServers()
        self._seen = self._stamp()
        self._in_force: Settings | None = None
        self._agents: dict[tuple[str, str, bool], Agent] = {}
        """Agents without inherited limits, by profile, model and whether they work on a card. Kept until a setting
        changes."""
        self.detected: list[Detected] = []
        self._use(load_settings(path))
        self.problem = ""
        """What is wrong with the settings, while the last good ones stay in force."""

    @property
    def settings(self) -> Settings:
        """The settings in force, with a profile for every provider that was detected."""
        self._refresh()
        if self._in_force is None:
            self._in_force = self._with_detected()
        return self._in_force

    def _with_detected(self) -> Settings:
        found = {
            known.provider: ProfileSettings(model=f"{known.provider}:{known.models[0]}")
            for known in self.detected
            if known.models
        }
        return replace(self._settings, profiles=found | self._settings.profiles)

    @property
    def default(self) -> str:
        """The profile of a session that names none: the chosen one, else the first detected, else the demo."""
        usable = [known.provider for known in self.detected if known.models]
        return self.settings.default_profile or next(iter(usable), DEMO)

    @property
    def names(self) -> list[str]:
        """All of them."""
        return sorted(self.settings.profiles)

    @property
    def configured(self) -> set[str]:
        """Those that config.toml names."""
        return set(self._settings.profiles) - ({DEMO} if self._settings.profiles[DEMO] is DEMO_PROFILE else set())

    @property
    def wires(self) -> set[ApiStyle]:
        """What the providers of all profiles speak: only as much of the model library is needed."""
        names = {profile.model.partition(":")[0] for profile in self.settings.profiles.values()}
        return {self._settings.providers[name].wire for name in names - {DEMO}}

    async def detect(self) -> list[Detected]:
        """Look again at what this machine offers."""
        self.detected = await detect(self._settings)
        self._forget_agents()
        return self.detected

    def _forget_agents(self) -> None:
        """Something that agents are made of has changed."""
        self._in_force = None
        self._agents.clear()

    def agent(self, session: Session) -> Agent:
        """The agent of a session. One that is missing answers every call with what is missing."""
        settings, key = self.settings, (session.profile, session.model, bool(session.card))
        if session.rights.layers:
            return self._make_agent(session, settings)
        agent = self._agents.get(key)
        if agent is None:
            agent = self._agents[key] = self._make_agent(session, settings)
        return agent

    def _make_agent(self, session: Session, settings: Settings) -> Agent:
        profile = settings.profiles.get(session.profile)
        limits = _limits(settings, profile)
        if profile is None:
            known = ", ".join(self.names)
            message = f"There is no profile {session.profile!r} any more; there is: {known}."
            return Agent(
                _missing("unknown_profile", message),
                limits,
                rules={"*": "deny"},
                own_tools=self.tools,  # to tidy up; none is allowed
                closed=self._closed,
            )
        ancestors = self._limits_of(session.rights, settings)
        return Agent(
            model=self._model(session.model or profile.model),
            limits=limits,
            instructions=profile.instructions,
            cwd=_of_the_user(profile.cwd),
            also=tuple(Path(_of_the_user(path)).resolve() for path in profile.also),
            rules=profile.tools,
            approval_timeout_ms=span_ms(profile.approval_timeout) or 0,
            own_tools=[*self.tools, *(self.worker_tools if session.card else ())],
            servers=self._servers,
            server_names=tuple(name for name in profile.mcp if all(name in layer.mcp for layer in ancestors)),
            closed=self._closed,
            workspaces=self.path.parent.absolute() / WORKSPACES,
            ancestors=ancestors,
            sandbox=SandboxPolicy(
                profile.sandbox,
                profile.network,
                tuple(Path(_of_the_user(path)).resolve() for path in profile.sandbox_write),
            ),
            kept_output=(_blocks(profile.output_head_kib), _blocks(profile.output_tail_kib)),
            secrets=self._secrets,
            summarisers=(self._model(wanted),) if (wanted := settings.compaction.summary_model) else (),
            summary_seconds=settings.compaction.summary_timeout,
        )

    def _limits_of(self, rights: Rights, settings: Settings) -> tuple[RightsLayer, ...]:
        """The layers as they were written down, and again as their profiles are now: what was taken away is gone."""
        found = list(rights.layers)
        for layer in rights.layers:
            now = settings.profiles.get(layer.profile)
            if now is not None:
                found.append(
                    msgspec.structs.replace(
                        layer, rules=now.tools, mcp=now.mcp, sandbox=now.sandbox, network=now.network
                    )
                )
        return tuple(found)

    def inherited_rights(self, session: Session) -> Rights:
        """The rights of what this session creates: no more than its own."""
        profile, context = self.settings.profiles.get(session.profile), self.agent(session).tool_context(session)
        layer = RightsLayer(
            profile=session.profile,
            rules={"*": "deny"} if profile is None else profile.tools,
            paths=[str(path) for path in context.reachable],
            mcp=[] if profile is None else profile.mcp,
            sandbox="on" if profile is None else profile.sandbox,
            network=profile is not None and profile.network,
        )
        return inherit(session.rights, session=session.id, layer=layer)

    def resume_of(self, profile: str) -> Literal["auto", "resume", "fresh"] | None:
        """Whether its workers on the board go on with the session of the last; None leaves it to [board]."""
        return self.settings.profiles.get(profile, ProfileSettings()).resume

    def process_max_age_ms(self, session: SessionRow) -> int:
        """How old a command of this session may become before nobody believes in it."""
        return self.reset_rules(session.profile, session.reset_policy).process_max_age_ms

    def reset_rules(self, profile: str, policy: ResetPolicy) -> ResetRules:
        """What holds for a session: its own word, then its profile's, then the one for all."""
        usual = ResetRules()

        def chosen(name: str, otherwise: Any) -> Any:
            found = self._reset_level(profile, policy, name)
            return otherwise if found is None else getattr(found[1], name)

        def span(name: str, otherwise: int) -> int:
            found = span_ms(chosen(name, ""))
            return otherwise if found is None else found

        return ResetRules(
            mode=chosen("mode", usual.mode),
            idle_ms=chosen("idle_minutes", usual.idle_ms // MINUTE_MS) * MINUTE_MS,
            at_hour=chosen("at_hour", usual.at_hour),
            timezone=chosen("timezone", usual.timezone),
            max_postpone_ms=span("max_postpone", usual.max_postpone_ms),
            process_max_age_ms=span("process_max_age", usual.process_max_age_ms),
            on_live_process=chosen("on_live_process", usual.on_live_process),
            hand_over_note=chosen("hand_over_note", usual.hand_over_note),
            notify=chosen("notify", usual.notify),
        )

    def mask(self, text: str) -> str:
        """What goes into the log without any agent's doing, such as the end of a command, without keys."""
        return self._secrets.mask(text)

    def reset_origins(self, profile: str, policy: ResetPolicy) -> dict[str, str]:
        """Who said each of them: `session`, `profile`, `config`, or nobody, which is `default`."""
        levels = {name: self._reset_level(profile, policy, name) for name in ResetPolicy.__struct_fields__}
        return {name: "default" if found is None else found[0] for name, found in levels.items()}

    def _reset_level(self, profile: str, policy: ResetPolicy, name: str) -> tuple[str, object] | None:
        of_profile = self.settings.profiles.get(profile, ProfileSettings()).session_reset
        levels = (("session", policy), ("profile", of_profile), ("config", self.settings.session_reset))
        return next((level for level in levels if getattr(level[1], name) is not None), None)

    async def close(self) -> None:
        """Let go of servers and connections."""
        await self._servers.close()
        for model in self._models.values():
            await model.close()

    def check_model(self, wanted: str) -> None:
        """Refuse what cannot be the name of a model here, and say what can."""
        name, _, model = wanted.partition(":")
        if wanted != DEMO and (name not in self.settings.providers or not model.strip()):
            providers = ", ".join(sorted(self._settings.providers))
            found = [f"{known.provider}:{model}" for known in self.detected for model in known.models[:SHOWN]]
            raise Rejected(
                f"{wanted!r} is not a model: write `demo` or PROVIDER:MODEL, with a provider of: {providers}.",
                hint=f"Found here: {', '.join(found)}." if found else "None was found here; see `holdfast models`.",
            )

    def _model(self, wanted: str) -> Model:
        if wanted == DEMO:
            return self._demo
        try:
            self.check_model(wanted)
        except Rejected as error:
            return _missing("unknown_model", error.message)
        name, _, model = wanted.partition(":")
        settings = self._settings.providers[name]
        key = settings.key()
        if key is None:
            message = f"The key for {name} is not set: the gateway's environment has no {settings.api_key_env}."
            return _missing("no_key", message, hint="Set it and `holdfast restart`.")
        if known := self._models.get((name, settings, model)):
            return known
        provider = Provider(
            name=name,
            wire=settings.wire,
            base_url=settings.base_url or None,
            api_key=key,
            key_source=settings.api_key_env,
            quiet_seconds=settings.quiet_minutes * 60.0,
        )
        return self._models.setdefault((name, settings, model), ProviderModel(provider, model))

    def _refresh(self) -> None:
        stamp = self._stamp()
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            self._use(load_settings(self.path))
            self.problem = ""
            log.info("the settings were read anew")
        except ConfigError as error:
            self.problem = str(error)
            log.error("the settings have an error, the last good ones stay in force: %s", error)

    def _use(self, settings: Settings) -> None:
        self._settings = settings
        self._forget_agents()
        values = {name: environment(name) for name in settings.secret_names}
        given = settings.secret_names - settings.key_names
        self._secrets = Secrets({n: v for n, v in values.items() if n not in given or not is_path(v or "")})
        servers = [
            McpServer(
                name=name, command=server.command, url=server.url, env=server.variables(), headers=server.headers()
            )
            for name, server in settings.mcp.items()
        ]
        self._servers.define(servers)

    def _stamp(self) -> tuple[int, int]:
        try:
            found = self.path.stat()
        except OSError:
            return (0, 0)
        return (found.st_mtime_ns, found.st_size)


def _of_the_user(path: str) -> str:
    return expanduser(path)  # noqa: PTH111 (that one fails on `~somebody` whom nobody knows)


def _limits(settings: Settings, profile: ProfileSettings | None) -> TurnLimits:
    chosen, rules = profile or ProfileSettings(), settings.compaction
    return TurnLimits(
        steps=chosen.max_steps,
        tokens=chosen.max_tokens,
        minutes=chosen.max_minutes,
        resume_attempts=settings.resume.attempts,
        resume_age_ms=settings.resume.max_age_minutes * MINUTE_MS,
        compaction=CompactionRules(
            threshold=rules.threshold,
            limit=rules.limit or rules.threshold + rules.threshold // 4,
            keep_recent=rules.keep_recent,
            on_failure=rules.on_failure,
        ),
    )


def _blocks(kib: int) -> int:
    """In whole blocks of 4 KiB: a disk gives back no less."""
    return -(-kib // 4) * 4096


def _missing(
    code: ProblemCode, message: str, *, hint: str = "Change config.toml, then send a message to go on."
) -> UnavailableModel:
    return UnavailableModel(Problem(code=code, message=message, hint=hint))
