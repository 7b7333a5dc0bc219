"""A tool: its name, its arguments, its effect class, and what it does.

A failing tool is an outcome for the model, not an exception that ends the turn.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Generic, Literal, Protocol, TypeVar

import msgspec

from holdfast.domain.events.parts import Call
from holdfast.domain.events.session import CallOutcome, Effect, ToolCallFinished
from holdfast.models.model import ToolSpec
from holdfast.runtime.tools.context import ToolContext, ToolFailed
from holdfast.settings import Policy
from holdfast.store.contract import Write

OUTPUT_LIMIT = 50_000
Arguments = TypeVar("Arguments", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How a command ended that a call waited for."""

    exit_code: int | None = None
    signal: str = ""
    stopped: bool = False
    """Whether a person, an agent or a rule stopped it."""
    running: bool = False
    """Whether it continues in the background."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The result of a call: its text for the model, and the files that it changed."""

    output: str
    files: list[str] = field(default_factory=list)
    task: str = ""
    """The command or the agent that it started or looked at."""
    end: CommandEnd | None = None
    """How the command ended that it waited for."""
    outcome: CallOutcome = "done"
    """`unknown` when it is not known how its command ended."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What a call would change in a file."""

    diff: str
    instead_of: tuple[str, ...]
    """The arguments that the diff shows."""
    before: str
    """The digest of the file as it is now."""


class AnyTool(Protocol):
    """A tool with any arguments."""

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

    @property
    def default_policy(self) -> Policy:
        """The policy when no rule matches."""
        ...

    def subject(self, context: ToolContext, arguments: str) -> str:
        """Return what a call is about, such as a path, for permissions by pattern. Empty when there is nothing.

        A call that can never be carried out raises `ToolFailed`, so that no approval is asked for.
        """
        ...

    def clean_up(self, context: ToolContext, arguments: str) -> None:
        """Take away what a call that was killed may have left behind."""
        ...

    async def call(self, context: ToolContext, arguments: str) -> ToolOutput:
        """Carry out a call."""
        ...


@dataclass(frozen=True, slots=True)
class Tool(Generic[Arguments]):
    """One thing that an agent can do, written in Python."""

    name: str
    description: str
    effect: Effect
    arguments: type[Arguments]
    run: Callable[[ToolContext, Arguments], Coroutine[None, None, ToolOutput]]
    default_policy: Policy = field(kw_only=True)
    """The policy when no rule matches. It does not follow from the effect: a tool that fetches a URL changes nothing,
    but sends data to another server.
    """
    file_changes: Literal["none", "reported", "unknown"] = field(kw_only=True)
    """Whether it changes files: none, the one that it is about and reports, or whatever git may find."""
    subject_field: str = "path"
    """The argument that a permission's pattern is compared with."""
    cleanup: Callable[[ToolContext, Arguments], None] | None = None
    """Takes away what a call that was killed may have left behind."""
    effect_of_call: Callable[[Arguments], Effect] | None = None
    """For a tool that does several things: the effect of each call."""
    policy_of_call: Callable[[Arguments], Policy] | None = None
    """And the policy of each call when no rule matches."""
    preview: Callable[[ToolContext, Arguments], Preview] | None = None
    """Returns what a call would change in a file."""
    companions: Callable[[ToolContext, Arguments], Coroutine[None, None, tuple[Write, ...]]] | None = None
    """Returns what is written to other streams with the intent of a call, such as the task that it starts."""
    other_profile: Callable[[ToolContext, Arguments], Coroutine[None, None, str]] | None = None
    """For a tool that hands work to another agent: returns its profile if it may do what the caller may not."""

    @property
    def spec(self) -> ToolSpec:
        """As the model sees it."""
        return ToolSpec(self.name, self.description, _schema(self.arguments))

    def subject(self, context: ToolContext, arguments: str) -> str:
        """The argument that it is about.

        A path is named as the place shows it, after all links are followed: `docs/../.env`, an absolute
        path or a link must not get around a pattern.
        """
        value = str(getattr(self.parse(arguments), self.subject_field, ""))
        if self.subject_field != "path":
            return value
        target = context.resolve(value)
        if self.file_changes == "reported":
            context.check_writable(target, self.name)
        return context.display(target)

    async def companion_writes(self, context: ToolContext, arguments: str) -> tuple[Write, ...]:
        """Return what is written together with the intent of this call. `ToolFailed` if it cannot be carried out."""
        return () if self.companions is None else await self.companions(context, self.parse(arguments))

    async def delegated_profile(self, context: ToolContext, arguments: str) -> str:
        """Return the profile of another agent that would act because of this call; empty if it may do no more."""
        if self.other_profile is None:
            return ""
        try:
            return await self.other_profile(context, self.parse(arguments))
        except ToolFailed:
            return ""  # the call itself reports the error

    def clean_up(self, context: ToolContext, arguments: str) -> None:
        """Most leave nothing behind."""
        if self.cleanup is not None:
            with suppress(ToolFailed, OSError):
                self.cleanup(context, self.parse(arguments))

    async def call(self, context: ToolContext, arguments: str) -> ToolOutput:
        """Check the arguments, carry out the call, and bound the output."""
        try:
            done = await self.run(context, self.parse(arguments))
        except (ToolFailed, OSError) as error:
            return failed_outcome(error)
        return replace(done, output=bounded(context.mask(done.output)))

    def parse(self, arguments: str) -> Arguments:
        """Decode the arguments of a call. `ToolFailed` if they are wrong."""
        try:
            return msgspec.json.decode(arguments or "{}", type=self.arguments)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise ToolFailed(f"The arguments do not fit: {error}.") from error


@functools.cache
def _schema(arguments: type[msgspec.Struct]) -> dict[str, object]:
    """Return the JSON schema of a tool's arguments; cached, since it takes longer than the rest of a model call."""
    _, components = msgspec.json.schema_components([arguments])
    schema: dict[str, object] = components[arguments.__name__]
    return schema


def effect_of(tool: AnyTool, arguments: str) -> Effect:
    """Return the effect class of one call."""
    if not isinstance(tool, Tool) or tool.effect_of_call is None:
        return tool.effect
    try:
        return tool.effect_of_call(tool.parse(arguments))
    except ToolFailed:
        return tool.effect


def default_policy_of(tool: AnyTool, arguments: str) -> Policy:
    """Return the policy of one call when no rule matches."""
    if not isinstance(tool, Tool) or tool.policy_of_call is None:
        return tool.default_policy
    try:
        return tool.policy_of_call(tool.parse(arguments))
    except ToolFailed:
        return tool.default_policy


def failed_outcome(error: ToolFailed | OSError) -> ToolOutput:
    """Return the outcome of a call that was not carried out, with the reason."""
    if isinstance(error, ToolFailed):
        return ToolOutput(bounded(str(error)), outcome="failed")
    return ToolOutput(bounded(f"{error.strerror or error}: {error.filename or ''}".strip(": ")), outcome="failed")


def finished_event(
    call: Call, result: ToolOutput, *, turn: int, duration_ms: int, hide: Callable[[str], str]
) -> ToolCallFinished:
    """Return the event of a call that was carried out."""
    end = result.end or CommandEnd()
    return ToolCallFinished(
        turn=turn,
        call=call.call,
        tool=call.tool,
        outcome=result.outcome,
        output=hide(result.output),
        duration_ms=duration_ms,
        files=result.files,
        task=result.task,
        exit_code=end.exit_code,
        signal=end.signal,
        stopped=end.stopped,
        running=end.running,
    )


def mark_uncertain(result: ToolOutput, effect: Effect | None, *, carried_out: bool) -> ToolOutput:
    """Return the result of a call that was interrupted before, with this effect: if it fails now, the outcome of the
    first time is unknown. Not if it was carried out again and found by its key: then it is the same call.
    """
    same_time = effect == "keyed" and carried_out
    if effect in (None, "pure") or same_time or result.outcome != "failed":
        return result
    said = f"It was interrupted while it ran, and may or may not have taken effect then. Now: {result.output}"
    return replace(result, outcome="unknown", output=said)


def bounded(text: str, limit: int = OUTPUT_LIMIT) -> str:
    """Return head and tail of a long text, with a note of what was cut."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} of {len(text)} characters left out …]\n{text[-half:]}"
