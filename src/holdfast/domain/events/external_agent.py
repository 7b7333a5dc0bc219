"""What happens to a session whose agent is a program of others, besides what happens to every session."""

from __future__ import annotations

from typing import Literal

import msgspec

from holdfast.domain.events.actor import Actor
from holdfast.domain.events.parts import Event, EventPart, Usage

AttachedBy = Literal["new", "resume", "load", "fork"]
"""By a new session of its own, by resuming or loading the one that it had, or by a copy of the one that was adopted."""
ContextKnown = Literal["proven", "unproven", "none"]
"""Whether an external agent remembers the conversation. `unproven`: it should, and nothing shows that it does; `none`:
it does not, or there was nothing to remember.
"""


IMPORTED = "imported"
"""The reason of the end of a turn that was imported with an adopted session."""
FieldKind = Literal["text", "number", "integer", "boolean", "choice", "choices"]
"""What an answer must be; `choices` are any number of the options."""


class AskedField(EventPart, frozen=True):
    """One question of a form that an external agent wants to have filled in."""

    name: str
    kind: FieldKind
    text: str
    options: dict[str, str] = msgspec.field(default_factory=dict)
    """The values of the options, by their names."""
    details: list[str] = msgspec.field(default_factory=list)
    """What the agent says about the options."""
    required: bool = False
    other: str = ""
    """The field for an answer that is none of the options, if there is one."""
    minimum: float | None = None
    maximum: float | None = None


class OwedRequest(EventPart, frozen=True):
    """A permission that an external agent asked for, or a form."""

    id: str
    """The id of the request, as it is in JSON."""
    call: str
    """The call that waits for the permission; of a form, what the keys of its answers begin with."""
    reason: str
    options: dict[str, str]
    """The ids of the agent's own options, by the answer that chooses each."""
    refusals: list[str] = msgspec.field(default_factory=lambda: ["deny"])
    """The answers that refuse it."""
    answer: str = ""
    """The answer, where a rule of the profile gives it."""
    is_form: bool = False
    fields: list[AskedField] = msgspec.field(default_factory=list)
    """The questions of a form."""
    until: int | None = None
    """When the agent no longer waits for the answers."""


class PlanEntry(EventPart, frozen=True):
    """One step of a plan."""

    text: str
    state: Literal["pending", "in_progress", "completed"]


class AgentAttached(Event, frozen=True):
    """The process of an external agent is ready to work on the session."""

    task: str
    """The task of the process."""
    number: int
    """How many processes the session has had, with this one."""
    agent: str
    version: str
    """What the agent calls itself; both are empty if it does not say."""
    remote: str
    """The agent's own id of the session."""
    how: AttachedBy
    chapter: int
    context: ContextKnown
    prompt: int
    """The id of the first request that it gets."""
    reason: str = ""
    """Why the agent does not know the conversation, or may not."""
    run: int = 0
    """The run of the card whose tools it was given; 0 outside of a run."""
    tools_url: str = ""
    """Where it finds them."""
    steers: bool = False
    """Whether it takes messages while it works."""
    version_before: str = ""
    """The version of the process before it, if the agent was updated since then."""


class SessionAdopted(Event, frozen=True):
    """A person adopted a session that an external agent had outside of Holdfast. The turns before this are imported."""

    agent: str
    remote: str
    """The agent's own id of that session. The first turn here continues a copy of it."""
    file: str
    """The agent's file with its history, which was only read."""
    turns: int
    by: Actor
    left_out: int = 0
    """How many older turns were not imported, because there were too many."""
    unreadable: int = 0
    """How many lines of the file could not be read."""
    used: Usage | None = None
    """What the session had cost by the agent's own count, where its later counts contain that."""


class AgentPlanned(Event, frozen=True):
    """An external agent stated or changed its plan for the turn; this is all of it."""

    turn: int
    entries: list[PlanEntry]


class DriverOutputRead(Event, frozen=True):
    """The output of an external agent was read up to this offset; the events made from it come before this one."""

    task: str
    """The task of its process."""
    offset: int
    owed: list[OwedRequest]
    """The agent's requests that have no answer yet, in order."""
    prompt: int = 0
    """The id of the request that the agent works on; 0 when it works on none."""
    steering: list[str] = msgspec.field(default_factory=list)
    """The inputs that are sent to the agent while it works, in order, until it says whether it took them."""
    used: Usage | None = None
    """What its session has cost so far by its own count, where an agent says no more than that."""


ExternalAgentEvent = AgentAttached | AgentPlanned | DriverOutputRead | SessionAdopted
