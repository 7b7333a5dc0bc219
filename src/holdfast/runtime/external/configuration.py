"""What a profile says about its external agent: the command, its environment, and how it is treated."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.domain.session import Session
from holdfast.external_agent_files import FILES, AgentFiles
from holdfast.external_agents import CATALOGUE, CommandMode, TurnCommand
from holdfast.settings import ProfileSettings, span_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalCommand:
    """How an external agent is started."""

    name: str
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    variables: tuple[str, ...] = ()
    """Names of variables that it gets from the environment of the gateway."""
    mode: str = ""
    mode_chosen: bool = False
    """Whether a person chose the mode: then the agent must have it."""
    takes_tools: bool = False
    tools_late: bool = False
    env_on_card: tuple[tuple[str, str], ...] = ()
    piped: bool = False
    load_after_ms: int = 0
    idle_ms: int = 0
    install: str = ""
    login: str = ""
    resume_after_quota: bool = False
    """Whether a turn continues by itself, once, when its quota is there again."""
    command: TurnCommand | None = None
    """How it is run once for each turn; None for an agent that is one process for a session."""
    command_mode: CommandMode | None = None
    """What it may do then without asking."""
    unrestricted: bool = False
    """Whether nothing but a sandbox limits it."""
    may_be_unrestricted: bool = False
    """Whether its profile says that it may be without one."""
    files: AgentFiles | None = None
    """Its own files, for the sandbox; None for an agent that is not in the catalogue."""


def to_fork(session: Session, external: ExternalCommand) -> str:
    """Return the agent's own session of which the next process continues a copy; empty if there is none."""
    adopted = session.adopted
    if adopted is None or session.attached is not None or adopted.agent != external.name:
        return ""
    return adopted.remote if session.chapter.number == 1 else ""


def external_command(name: str, profile: ProfileSettings) -> ExternalCommand | None:
    """Return the external agent of the profile with this name; None if our own agent works for it."""
    if profile.driver_name == "builtin":
        return None
    known = CATALOGUE.get(profile.agent)
    idle = span_ms(profile.agent_idle) or 0
    by_command = profile.driver_name == "command"
    if known is None:
        template = TurnCommand(program=(), first=tuple(profile.argv), resume=tuple(profile.resume_argv))
        return ExternalCommand(
            command=template if by_command else None,
            unrestricted=by_command,
            may_be_unrestricted=profile.unrestricted,
            name=name,
            argv=tuple(profile.argv),
            variables=tuple(profile.env),
            mode=profile.mode,
            mode_chosen=bool(profile.mode),
            idle_ms=idle,
            resume_after_quota=profile.resume_after_quota,
        )
    command = known.command if by_command else None
    mode = None if command is None else command.mode(profile.mode)
    return ExternalCommand(
        name=known.name,
        argv=tuple(profile.argv) or (known.acp if command is None else command.program),
        command=command,
        command_mode=mode,
        unrestricted=(profile.mode if mode is None else mode.name) in known.unrestricted,
        may_be_unrestricted=profile.unrestricted,
        env=known.env,
        variables=(*known.variables, *profile.env),
        mode=profile.mode or known.mode,
        mode_chosen=bool(profile.mode),
        takes_tools=known.takes_tools,
        tools_late=known.tools_late,
        env_on_card=known.env_on_card,
        piped=known.piped,
        load_after_ms=known.load_after_seconds * 1000,
        idle_ms=idle,
        install=known.install,
        login=known.login,
        resume_after_quota=profile.resume_after_quota,
        files=FILES.get(known.name),
    )
