"""What the gateway answers with: every shape of the wire that is not an event or a command."""

from __future__ import annotations

from typing import Annotated

import msgspec

from holdfast.domain.command import Text
from holdfast.domain.events import Record
from holdfast.domain.events.session import InputMode, InputSource
from holdfast.gateway.card_shapes import CARD_SHAPES
from holdfast.gateway.chapter_shapes import CHAPTER_SHAPES
from holdfast.gateway.door_shapes import DOOR_SHAPES
from holdfast.gateway.house_shapes import HOUSE_SHAPES
from holdfast.gateway.inbox_shapes import Inbox, WaitDetail
from holdfast.gateway.responses import Error
from holdfast.tasks.views import TaskView


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """A command was committed. `input` is the id of the message, if it carried one."""

    session: str
    stream: str
    version: int
    seq: int
    input: str | None
    duplicate: bool
    warning: str = ""
    """What did not happen although the command was accepted, such as a permission that could not be kept."""


class TaskAccepted(msgspec.Struct, frozen=True, kw_only=True):
    """A command about a task was committed. `session` is the one that works on it, or that started it."""

    task: str
    session: str
    stream: str
    version: int
    seq: int
    duplicate: bool


class TaskPage(msgspec.Struct, frozen=True):
    """A page of the archive; `next` is the cursor of the following one."""

    tasks: list[TaskView]
    next: str | None


class Dropped(msgspec.Struct, frozen=True):
    """Bytes that were given back to the disk because the output was too long."""

    start: int
    end: int


class OutputPage(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of an output, clean for a screen; ask again from `next` on. Offsets never shift."""

    offset: int
    next: int
    size: int
    state: str
    dropped: Dropped | None
    text: str


class OutputHit(msgspec.Struct, frozen=True, kw_only=True):
    """A task in whose output a text was found."""

    task: str
    title: str
    at: int
    snippet: str


class OutputHits(msgspec.Struct, frozen=True):
    """What a search in the outputs found, newest first."""

    hits: list[OutputHit]


class Pruned(msgspec.Struct, frozen=True, kw_only=True):
    """What a prune took, or would take."""

    pruned: bool
    count: int
    bytes: int
    tasks: list[TaskView]
    """The first 500 of them."""


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """How much of what was typed the command took."""

    bytes: int
    of: int


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A session in the list."""

    id: str
    title: str
    profile: str
    model: str
    cwd: str
    parent: str
    task: str
    created_at: int
    updated_at: int
    version: int
    archived: bool
    message_count: int
    queued: int
    turn: int
    turn_state: str | None
    state: str
    preview: str
    pinned: bool
    chapter: int
    unread: int = 0
    """Finished texts of the agent that this device has not read; 0 for the bearer token."""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn of a session."""

    turn: int
    state: str
    started_at: int
    finished_at: int | None
    steps: int
    resumes: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    reason: str


class Queued(msgspec.Struct, frozen=True, kw_only=True):
    """A message that no turn has taken yet."""

    input: str
    text: str
    mode: str
    by: str
    source: InputSource
    at: int


class QueueEdit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change of a queued message: its text, its mode, its place (from 1). What is left out stays."""

    text: Text | None = None
    mode: InputMode | None = None
    place: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None


class SessionPage(msgspec.Struct, frozen=True):
    """A page of the list; `next` is the cursor of the following one."""

    sessions: list[Session]
    next: str | None


class SessionDetail(msgspec.Struct, frozen=True):
    """One session with its turns and its queue."""

    session: Session
    turns: list[Turn]
    queue: list[Queued]


class EventPage(msgspec.Struct, frozen=True):
    """Records after a cursor; ask again with the new one while there are more."""

    events: list[Record]
    cursor: int
    more: bool


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence and the event that it rests on."""

    text: str
    stream: str
    version: int
    at: int


class Why(msgspec.Struct, frozen=True):
    """The answer to `why`."""

    subject: str
    sentences: list[Statement]


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """A place where a text was found."""

    session: str
    title: str
    version: int
    at: int
    role: str
    snippet: str


class SearchPage(msgspec.Struct, frozen=True):
    """What a search found, newest first."""

    hits: list[SearchHit]


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """An agent that a session can have."""

    name: str
    model: str
    cwd: str
    instructions: str
    tools: dict[str, str]
    mcp: list[str]
    max_steps: int
    max_tokens: int
    max_minutes: int
    origin: str
    default: bool
    sandbox: str
    """Whether its commands run in a sandbox, in words."""


class ProfileList(msgspec.Struct, frozen=True):
    """All profiles, and what is wrong with the settings if something is."""

    profiles: list[Profile]
    problem: str


class DetectedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A provider that can be used as it is."""

    provider: str
    how: str
    models: list[str]


class ModelList(msgspec.Struct, frozen=True):
    """What was detected on this machine."""

    detected: list[DetectedModel]


class ContextMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message as the model sees it."""

    role: str
    turn: int
    text: str
    characters: int


class ModelContext(msgspec.Struct, frozen=True, kw_only=True):
    """What the model sees, and about how large it is."""

    model: str
    instructions: str
    tools: list[str]
    messages: list[ContextMessage]
    characters: int
    tokens: int
    """As the model counted at its last answer, and about what came since; before it, a quarter of the characters."""
    used: int
    """The same number."""
    counted: bool = True
    """Whether the model has counted them; otherwise it is an estimate."""
    threshold: int
    """Past so many it is made shorter; 0 is never."""
    limit: int
    chapter: int
    covers: int
    """A summary stands in the place of the turns up to this one; 0 is none."""
    summary: str | None
    """`model`, or `digest` while there is no better one."""
    window: int | None
    """How many tokens the model can see at once; null when nobody knows."""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The gateway about itself."""

    version: str
    pid: int
    home: str
    url: str
    started_at: int
    uptime_ms: int
    writable: bool
    problem: str
    sessions: int
    archived: int
    messages: int
    events: int
    seq: int
    """Where the log ends; larger than the number of events once something was deleted."""
    working: list[str]
    tasks: int
    """How many run in the background."""
    inbox: dict[str, int]
    """What waits for a person: how many of each kind."""


class PartHealth(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the gateway that follows the log and has trouble, or had to be started again."""

    name: str
    problem: str
    since: int
    restarts: int


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Whether it is up, for process managers."""

    status: str
    version: str
    pid: int
    problem: str
    parts: list[PartHealth] = []


class Restart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the gateway is to start again."""

    env: dict[str, str] = {}
    """Variables to set in its environment, for a key that was exported since; those that it has stay."""


class Goodbye(msgspec.Struct, frozen=True):
    """The gateway is about to end."""

    pid: int


SHAPES = (
    Accepted,
    SessionPage,
    SessionDetail,
    EventPage,
    Why,
    SearchPage,
    Inbox,
    WaitDetail,
    ProfileList,
    ModelList,
    ModelContext,
    Status,
    Health,
    Restart,
    Goodbye,
    TaskAccepted,
    TaskPage,
    TaskView,
    OutputPage,
    OutputHits,
    Pruned,
    Taken,
    QueueEdit,
    *DOOR_SHAPES,
    *CHAPTER_SHAPES,
    *CARD_SHAPES,
    *HOUSE_SHAPES,
    Error,
)
"""All that an answer can be, for the OpenAPI document."""
