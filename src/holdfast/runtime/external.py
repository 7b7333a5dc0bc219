"""What a profile says about its external agent: the command, its environment, and how it is treated."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.external_agents import CATALOGUE
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
    piped: bool = False
    load_after_ms: int = 0
    idle_ms: int = 0
    install: str = ""
    login: str = ""
    resume_after_quota: bool = False
    """Whether a turn goes on by itself, once, when its quota is there again."""
    writes: tuple[str, ...] = ()


def external_command(name: str, profile: ProfileSettings) -> ExternalCommand | None:
    """Return the external agent of the profile with this name; None if our own agent works for it."""
    if profile.driver_name == "builtin":
        return None
    known = CATALOGUE.get(profile.agent)
    idle = span_ms(profile.agent_idle) or 0
    if known is None:
        return ExternalCommand(
            name=name,
            argv=tuple(profile.argv),
            variables=tuple(profile.env),
            mode=profile.mode,
            mode_chosen=bool(profile.mode),
            idle_ms=idle,
            resume_after_quota=profile.resume_after_quota,
        )
    return ExternalCommand(
        name=known.name,
        argv=tuple(profile.argv) or known.acp,
        env=known.env,
        variables=(*known.variables, *profile.env),
        mode=profile.mode or known.mode,
        mode_chosen=bool(profile.mode),
        piped=known.piped,
        load_after_ms=known.load_after_seconds * 1000,
        idle_ms=idle,
        install=known.install,
        login=known.login,
        resume_after_quota=profile.resume_after_quota,
        writes=known.writes,
    )
