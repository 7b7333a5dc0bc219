"""A tool: its name, its arguments, its effect class, and what it does.

A failing tool is an outcome that the model is told about, not an exception that ends the turn.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import msgspec

from holdfast.domain.events import CallOutcome, Effect
from holdfast.runtime.model import ToolSpec

OUTPUT_LIMIT = 50_000
Arguments = TypeVar("Arguments", bound=msgspec.Struct)


class ToolFailed(Exception):
    """The tool says in plain words why it did not do it."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a call came to."""

    outcome: CallOutcome
    output: str


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

    async def call(self, cwd: Path, arguments: str) -> Result:
        """Do it."""
        ...


@dataclass(frozen=True, slots=True)
class Tool(Generic[Arguments]):
    """One thing that an agent can do."""

    name: str
    description: str
    effect: Effect
    arguments: type[Arguments]
    run: Callable[[Path, Arguments], Coroutine[None, None, str]]

    @property
    def spec(self) -> ToolSpec:
        """As the model sees it."""
        _, components = msgspec.json.schema_components([self.arguments])
        return ToolSpec(self.name, self.description, components[self.arguments.__name__])

    async def call(self, cwd: Path, arguments: str) -> Result:
        """Check the arguments, do it, and bound the output."""
        try:
            parsed = msgspec.json.decode(arguments, type=self.arguments)
        except msgspec.MsgspecError as error:
            return Result("failed", f"The arguments do not fit: {error}.")
        try:
            return Result("done", bounded(await self.run(cwd, parsed)))
        except ToolFailed as error:
            return Result("failed", str(error))
        except OSError as error:
            return Result("failed", f"{error.strerror or error}: {error.filename or ''}".strip(": "))


def bounded(text: str, limit: int = OUTPUT_LIMIT) -> str:
    """Head and tail of a long text, with what was cut stated."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} of {len(text)} characters left out …]\n{text[-half:]}"


def inside(cwd: Path, path: str) -> Path:
    """The path, if it lies in the working directory after all links are followed."""
    if not cwd.is_dir():
        raise ToolFailed(f"The working directory {cwd} does not exist.")
    root = cwd.resolve()
    try:
        target = (root / path).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise ToolFailed(f"{path!r} is not a usable path: {error}.") from error
    if target != root and root not in target.parents:
        raise ToolFailed(f"{path} lies outside of the working directory {root}.")
    return target
