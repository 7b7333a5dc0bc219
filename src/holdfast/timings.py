"""How long the parts of a gateway wait, in seconds: one value, which `assembly.py` passes to them.

Here is what differs between gateways, so far those of tests: what usually takes too long to wait for, and what would be
too short on a busy machine. Any other interval is a constant of the module that uses it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreTimings:
    """Of the log and its search index."""

    quick_sync: float = 0.0015
    """Below this the loop commits by itself; a slower disk is the writer's thread's."""
    lock: float = 5.0
    """How long a write waits for another program that holds the write lock; then it is refused."""
    lock_notice: float = 1.0
    """From then on `health` says that the database is locked."""
    probe: float = 2.0
    """Between two looks whether a disk that refused takes writes again."""
    sweep: float = 60.0
    """After this long, followers check the log also without a notification."""
    search_delay: float = 0.5
    """Commits that come within it are indexed together."""
    search_retry: float = 5.0
    answer: float = 30.0
    """How long a database server may take for an answer; then the connection is given up."""
    reconnect: float = 0.1
    """The pause before a lost connection is made again that hears other nodes; it doubles with every failure."""
    lease: float = 8.0
    """How long the life of a node lasts without being renewed; then others do its work."""
    look: float = 5.0
    """Between two looks for what other nodes have committed, besides their hints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessTimings:
    """Of commands."""

    follow: float = 0.1
    """Between two looks for more output."""
    activity: float = 15.0
    """Between two samples of what commands do."""
    window: float = 60.0
    """The least time that a classification covers, unless the command is younger."""
    recent: float = 5.0
    """A command that reads our input and did nothing for this long waits for it; a younger one is not called idle."""
    freeze: float = 10.0
    """How long at most processes are only stopped, so that none can start another one, before any is killed."""
    force: float = 20.0
    """How long processes that have not ended by themselves are looked for, to be killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTimings:
    """Of tasks."""

    stop_grace: float = 5.0
    """Between the signal that asks a command to end and the one that ends it."""
    retry: float = 2.0
    clock: float = 30.0
    """Between two looks at the wall clock, for a command that ends at a time of day."""
    soon: float = 0.25
    """How long the beginning of a command that a turn waits for is held back, to be one commit with its end."""
    sample_age: float = 2.0
    """So old the activities of commands may be that somebody is shown."""
    kill: float = 30.0
    """How long an agent waits for the end of a task that it kills."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeTimings:
    """Of turns."""

    plan: float = 0.25
    """After this the facts are stored without the decisions that follow from them."""
    append_retry: float = 1.0
    """Between two tries to write to a disk that refuses."""
    retry: float = 1.0
    """The first pause before another worker is started for a session whose worker failed."""
    sweep: float = 30.0
    node_wait: float = 30.0
    """What waits for a node for longer is in the inbox."""
    resume: float = 2.0
    """After a start open turns are resumed in batches: the next when one is done, at the latest after this time."""
    save: float = 0.2
    """Together with the commit itself, what was shown of an answer is on disk a quarter of a second later."""
    agent_ready: float = 120.0
    """How long an external agent may take to be ready for a session."""
    agent_stop: float = 10.0
    """How long an external agent may take to end its work after it was asked to; then its process is ended."""
    agent_output: float = 0.02
    """Between two looks for more output of an external agent that works."""
    demo_hang: float = 86_400.0
    """How long the demo agent does nothing for `hang`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleTimings:
    """Of resets and retention."""

    reset_check: float = 10.0
    stale_check: float = 60.0
    idle_agents: float = 30.0
    """Between two looks for external agents that have nothing to do."""
    first_retention: float = 60.0
    """From the start to the first look at what is to be deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayTimings:
    """Of connections."""

    unauthenticated: float = 5.0
    """How long a connection may stay without showing a credential."""
    uncounted: float = 0.25
    """How long a new connection is not counted: many may connect at once, and their headers take a moment."""
    unread: float = 30.0
    """The kernel closes a connection whose client has not read for this long."""
    heartbeat: float = 10.0
    stalled: float = 10.0
    """A client that takes nothing for this long, while much is waiting for it, is disconnected."""
    stalled_check: float = 1.0
    remote_text: float = 0.25
    """Between two looks at the text that another node generates, while somebody watches it here."""
    device_seen: float = 60.0
    """How old the moment may be at which a device was last seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramTimings:
    """Of Telegram; the limits on messages are those of the Bot API."""

    poll: float = 50.0
    """How long one request waits for something new."""
    retry: float = 1.0
    """The first pause when the API cannot be reached; each further one is longer."""
    look: float = 10.0
    """Between two looks whether it was set up, while it is not."""
    between_messages: float = 1.0
    """In one chat."""
    between_group_messages: float = 3.0
    between_all: float = 1 / 30
    """In all chats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """All of them, by package."""

    store: StoreTimings = StoreTimings()
    processes: ProcessTimings = ProcessTimings()
    tasks: TaskTimings = TaskTimings()
    runtime: RuntimeTimings = RuntimeTimings()
    lifecycle: LifecycleTimings = LifecycleTimings()
    gateway: GatewayTimings = GatewayTimings()
    telegram: TelegramTimings = TelegramTimings()
    minute_ms: int = 60_000
    """How long a minute of the settings is."""


USUAL = Timings()
