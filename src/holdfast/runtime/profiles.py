"""Profiles as agents: a model, its instructions, its tools and its limits."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from holdfast.config import Settings
from holdfast.domain.events import Problem
from holdfast.domain.step import Limits
from holdfast.runtime.demo import DemoModel
from holdfast.runtime.model import Answer, Delta, Model, ModelError, ModelRequest, ToolSpec
from holdfast.runtime.tools.files import READ, WRITE
from holdfast.runtime.tools.tool import AnyTool


@dataclass(frozen=True, slots=True)
class Agent:
    """What works on a session."""

    model: Model
    limits: Limits
    instructions: str = ""
    cwd: str = ""
    tools: dict[str, AnyTool] = field(default_factory=dict)

    @property
    def specs(self) -> list[ToolSpec]:
        """The tools as the model sees them."""
        return [tool.spec for tool in self.tools.values()]


class MissingModel:
    """Stands for a profile that is not configured any more, or a model that nobody knows."""

    def __init__(self, problem: Problem) -> None:
        self.name = "missing"
        self._problem = problem

    async def stream(self, _: ModelRequest, /) -> AsyncGenerator[Delta | Answer, None]:
        """Say what is missing."""
        yield self._refuse()

    def _refuse(self) -> Delta:
        raise ModelError(self._problem)


class Profiles:
    """The configured agents by name."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._demo = DemoModel()

    @property
    def default(self) -> str:
        """The profile of a session that names none."""
        return self._settings.default_profile

    @property
    def names(self) -> list[str]:
        """All of them."""
        return sorted(self._settings.profiles)

    def agent(self, name: str) -> Agent:
        """The agent of a profile. One that is missing answers every call with what is missing."""
        settings = self._settings
        profile = settings.profiles.get(name)
        limits = Limits(
            steps=profile.max_steps if profile is not None else 1,
            resume_attempts=settings.resume.attempts,
            resume_age_ms=settings.resume.max_age_minutes * 60_000,
        )
        if profile is None:
            known = ", ".join(self.names)
            return Agent(_missing("unknown_profile", f"There is no profile {name!r}; there is: {known}."), limits)
        if profile.model != self._demo.name:
            return Agent(
                _missing("unknown_model", f"Profile {name!r} names the unknown model {profile.model!r}."), limits
            )
        tools: dict[str, AnyTool] = {tool.name: tool for tool in (READ, WRITE)}
        return Agent(self._demo, limits, profile.instructions, profile.cwd, tools)


def _missing(code: str, message: str) -> MissingModel:
    return MissingModel(Problem(code=code, message=message, hint="Change config.toml, then `holdfast restart`."))
