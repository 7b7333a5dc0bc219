"""The model port: what the loop needs from any model. Stored messages are ours, converted behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

from holdfast.domain.events.parts import Usage
from holdfast.domain.events.problem import Problem
from holdfast.domain.events.session import FinishReason
from holdfast.domain.history import Message


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it."""

    name: str
    description: str
    parameters: dict[str, object]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Everything that one call of the model depends on."""

    turn: int
    instructions: str
    messages: list[Message]
    tools: list[ToolSpec]
    step: int = 1
    """How many times the model was asked in this turn, with this time."""
    tokens: int | None = None
    """About how many tokens the messages are, if that is known."""
    session: str = ""
    """Whose conversation it is: the next request of the same one mostly begins with the same messages."""
    about: list[Message] = field(default_factory=list)
    """For a summary: the conversation itself. `messages` has it as text; the demo model reads it here."""


@dataclass(frozen=True, slots=True)
class ModelDelta:
    """A piece of the answer: a frame, not a fact."""

    text: str = ""
    thinking: str = ""


@dataclass(frozen=True, slots=True)
class WantedCall:
    """A tool call as the model wrote it; ids are given by the loop."""

    tool: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """The whole answer; the last thing that a stream yields."""

    text: str
    thinking: str = ""
    signature: str = ""
    """The provider's seal on its thinking; stored, and handed back to the same provider."""
    calls: list[WantedCall] = field(default_factory=list)
    finish_reason: FinishReason = "stop"
    usage: Usage = field(default_factory=Usage)


class ModelError(Exception):
    """The model gave no answer; the problem says why, and whether it may be tried again."""

    def __init__(self, problem: Problem, *, retry: bool = False, after_ms: int | None = None) -> None:
        super().__init__(problem.message)
        self.problem = problem
        self.retry = retry
        self.after_ms = after_ms
        """What the provider asked for; None is up to us."""


class Model(Protocol):
    """Any model."""

    @property
    def name(self) -> str:
        """As written into the log."""
        ...

    async def window(self) -> int | None:
        """How many tokens it can see at once; None if unknown."""
        ...

    def stream(self, request: ModelRequest, /) -> AsyncGenerator[ModelDelta | ModelAnswer, None]:
        """Deltas, then exactly one Answer; or a ModelError."""
        ...


# --- streaming an answer ---------------------------------------------------------------------------


async def stream_answer(
    model: Model,
    request: ModelRequest,
    *,
    show: Callable[[ModelDelta], None],
    save: Callable[[], Awaitable[None]],
    save_seconds: float,
) -> ModelAnswer:
    """The whole answer. Its pieces are shown as they come; `save` stores them, at most that long after that."""
    shown = asyncio.Event()
    saver = asyncio.create_task(_save_after(shown, save, save_seconds))
    try:
        async with aclosing(model.stream(request)) as pieces:
            async for piece in pieces:
                if saver.done():
                    saver.result()  # the lease was lost: nothing more can be written
                if isinstance(piece, ModelAnswer):
                    return piece
                show(piece)
                shown.set()
    finally:
        saver.cancel()
        await asyncio.gather(saver, return_exceptions=True)
    raise ModelError(Problem(code="no_answer", message="The model ended without an answer.", hint="Try again."))


async def _save_after(shown: asyncio.Event, save: Callable[[], Awaitable[None]], seconds: float) -> NoReturn:
    while True:
        await shown.wait()
        await asyncio.sleep(seconds)
        shown.clear()
        await save()
