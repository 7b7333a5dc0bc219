"""What events are made of: their base classes and the parts that many of them share."""

from __future__ import annotations

from typing import Literal

import msgspec

from holdfast.domain.command import SessionMode

Policy = Literal["allow", "ask", "deny"]

Sandbox = Literal["auto", "on", "off"]
GrantScope = Literal["call", "session", "profile"]
NotifyChoice = Literal["default", "always", "never"]
"""Whether people who are not looking are notified of something: by the rules of each destination, always, or never."""


class EventPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A part of an event."""


class Event(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    gc=False,
    tag_field="kind",
    tag=True,
):
    """Base of all events; `kind` on the wire is the class name."""


class Usage(EventPart, frozen=True):
    """What one model call cost."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """How many of the input tokens the provider had in its cache."""
    context_tokens: int = 0
    """How much of the model's window the conversation takes after this answer; 0 when the provider does not say."""
    cost: float | None = None
    """In US dollars; None is unknown."""


class ShownArgument(EventPart, frozen=True):
    """An argument of a call as a person sees it before the call is approved."""

    name: str
    value: str
    left_out: int = 0
    """How many characters of the value are not shown."""
    usual: bool = False
    """Whether it is the default, which the call did not give."""


class EventRef(msgspec.Struct, frozen=True, gc=False):
    """The version and the time of an event of the same stream."""

    version: int
    at: int


class Call(EventPart, frozen=True):
    """A tool call that the model asked for. `call` is an id of ours, unique in the session."""

    call: str
    tool: str
    arguments: str


class RightsLayer(EventPart, frozen=True):
    """What one ancestor's profile allowed when the ancestor created something."""

    profile: str
    rules: dict[str, Policy]
    """allow, ask or deny by pattern, as in config.toml."""
    paths: list[str]
    """The directories that its file tools could reach."""
    mcp: list[str] = msgspec.field(default_factory=list)
    """The MCP servers whose tools it had."""
    sandbox: Sandbox = "auto"
    network: bool = True
    mode: SessionMode = "profile"
    """The mode of the ancestor, with those that it had inherited."""


class Rights(EventPart, frozen=True):
    """The limits that a session, a card or a run was created with."""

    layers: list[RightsLayer] = msgspec.field(default_factory=list)
    ancestors: list[str] = msgspec.field(default_factory=list)
    """The sessions that it descends from, the first one first; a person started that one."""

    @property
    def depth(self) -> int:
        """How many generations it is away from a session that a person started."""
        return len(self.ancestors)


class Grant(EventPart, frozen=True):
    """What an approval allows beyond this once: this very call in this session (`call`), whatever fits the rule in
    this session (`session`), or the same in every session of the profile (`profile`).
    """

    scope: GrantScope
    rule: str = ""
    """The pattern of calls; empty when the grant is for this one call only."""


class Started(EventPart, frozen=True, tag_field="type", tag="started"):
    """A person began it."""


class Forked(EventPart, frozen=True, tag_field="type", tag="forked"):
    """A person forked another session: everything up to a version of that one was copied."""

    parent: str
    version: int
    workspace_of: str = ""
    """The card in whose workspace it works, when the other one is the session of that card's worker."""


class Delegated(EventPart, frozen=True, tag_field="type", tag="delegated"):
    """An agent wants work done, or a person in the background: it is the work of this task."""

    task: str


class ForRun(EventPart, frozen=True, tag_field="type", tag="for_run"):
    """A run of a card works in it from its first moment; `RunBound`, which follows, says which."""


Origin = Started | Forked | Delegated | ForRun
