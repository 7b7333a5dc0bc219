"""A tool: its name, its arguments, its effect class, and what it does.

A failing tool is an outcome that the model is told about, not an exception that ends the turn.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from posixpath import normpath
from typing import Generic, Protocol, TypeVar

import msgspec

from holdfast.domain.events import CallOutcome, Effect
from holdfast.runtime.model import ToolSpec

OUTPUT_LIMIT = 50_000
Arguments = TypeVar("Arguments", bound=msgspec.Struct)


class ToolFailed(Exception):
    """The tool says in plain words why it did not do it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tool works: the working directory, and what else the profile opens to it."""

    cwd: Path
    also: tuple[Path, ...] = ()
    profile: str = ""
    session: str = ""
    call: str = ""
    """Which call of which session it is: by this, what it started is found again."""

    def inside(self, path: str) -> Path:
        """The path, if it lies in the working directory (or what else is open) after all links are followed."""
        if not self.cwd.is_dir():
            raise ToolFailed(f"The working directory {self.cwd} does not exist.")
        root = self.cwd.resolve()
        try:
            target = (root / Path(path).expanduser()).resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise ToolFailed(f"{path!r} is not a usable path: {error}.") from error
        for open_to_it in (root, *(also.resolve() for also in self.also)):
            if target == open_to_it or open_to_it in target.parents:
                return target
        raise ToolFailed(f"{path} lies outside of the working directory {root}.")

    def shown(self, target: Path) -> str:
        """A path that is inside, as the log names it: relative to the working directory if it lies in it."""
        root = self.cwd.resolve()
        return printable((target.relative_to(root) if target.is_relative_to(root) else target).as_posix())


@dataclass(frozen=True, slots=True)
class Done:
    """What a tool has to say, and the files that it changed."""

    output: str
    files: list[str] = field(default_factory=list)
    task: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """What a call came to."""

    outcome: CallOutcome
    output: str
    files: list[str] = field(default_factory=list)
    task: str = ""
    """The command or the agent that it started."""


class AnyTool(Protocol):
    """A tool whatever its arguments are."""

    @property
    def name(self) -> str:
        """As the model calls it."""
        ...

    @property
    def effect(self) -> Effect:
        """What may be done about it after a crash."""
        ...

    @property
    def spec(self) -> ToolSpec:
        """As the model sees it."""
        ...

    def subject(self, arguments: str, place: Place | None = None) -> str:
        """What a call is about, for permissions by pattern: a path, say. Empty when there is none."""
        ...

    async def call(self, place: Place, arguments: str) -> Result:
        """Do it."""
        ...


@dataclass(frozen=True, slots=True)
class Tool(Generic[Arguments]):
    """One thing that an agent can do, written in Python."""

    name: str
    description: str
    effect: Effect
    arguments: type[Arguments]
    run: Callable[[Place, Arguments], Coroutine[None, None, Done]]
    about: str = "path"
    """The argument that a permission's pattern is compared with."""
    effects: Callable[[Arguments], Effect] | None = None
    """For a tool that does several things: the effect of each call."""

    def effect_of(self, arguments: str) -> Effect:
        """What may be done about a call after a crash."""
        if self.effects is None:
            return self.effect
        try:
            return self.effects(msgspec.json.decode(arguments or "{}", type=self.arguments))
        except msgspec.MsgspecError:
            return self.effect

    @property
    def spec(self) -> ToolSpec:
        """As the model sees it."""
        _, components = msgspec.json.schema_components([self.arguments])
        return ToolSpec(self.name, self.description, components[self.arguments.__name__])

    def subject(self, arguments: str, place: Place | None = None) -> str:
        """The argument that it is about; arguments that do not fit fail later, when it is called.

        A path is named as the place shows it, after all links are followed: `docs/../.env`, an absolute
        path or a link must not get around a pattern.
        """
        try:
            value = str(getattr(msgspec.json.decode(arguments or "{}", type=self.arguments), self.about, ""))
        except msgspec.MsgspecError:
            return ""
        if self.about != "path":
            return value
        try:
            return normpath(value) if place is None else place.shown(place.inside(value))
        except (ToolFailed, OSError):
            return normpath(value)

    async def call(self, place: Place, arguments: str) -> Result:
        """Check the arguments, do it, and bound the output."""
        try:
            parsed = msgspec.json.decode(arguments or "{}", type=self.arguments)
        except msgspec.MsgspecError as error:
            return Result("failed", f"The arguments do not fit: {error}.")
        try:
            done = await self.run(place, parsed)
        except ToolFailed as error:
            return Result("failed", str(error))
        except OSError as error:
            return Result("failed", f"{error.strerror or error}: {error.filename or ''}".strip(": "))
        return Result("done", bounded(done.output), done.files, done.task)


def effect_of(tool: AnyTool, arguments: str) -> Effect:
    """What may be done about one call after a crash."""
    return tool.effect_of(arguments) if isinstance(tool, Tool) else tool.effect


def printable(name: str) -> str:
    """A file's name on one line: what cannot be printed, or is no text at all, is escaped."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in name)


def bounded(text: str, limit: int = OUTPUT_LIMIT) -> str:
    """Head and tail of a long text, with what was cut stated."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} of {len(text)} characters left out …]\n{text[-half:]}"
