"""What can be set in `config.toml`, and what holds when nothing is set. How it is read: `read_settings.py`.

Importing this costs little, because the command line does it too: what checks the settings is
imported when they are read. Keys are never here, only the names of the variables that hold them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, NamedTuple

from holdfast.config import environment
from holdfast.external_agents import DriverName
from holdfast.notify_settings import NotifySettings, TelegramSettings

DEMO = "demo"
ApiStyle = Literal["openai", "anthropic"]
Policy = Literal["allow", "ask", "deny"]
ORDINARY_VARIABLE = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|PWD|TERM|TZ|TMPDIR|LANG|LANGUAGE|LC_\w+|XDG_\w+|DISPLAY|WAYLAND_DISPLAY|NODE_ENV|EDITOR"
)
"""Variables that hold no key, though a server may be given them."""


class Between(NamedTuple):
    """The bounds of a number; both belong to what is allowed."""

    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """[gateway]"""

    port: Annotated[int | None, Between(0, 65535)] = None
    """Where it listens on 127.0.0.1; by default 4690, or any free port if that is taken."""
    log_bytes: Annotated[int, Between(10_000, 10**12)] = 10_000_000
    """The size at which the log file is rotated; five old ones are kept."""
    public_urls: list[str] = field(default_factory=list)
    """Further exact origins under which browsers reach it, behind a TLS proxy or in a tailnet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """[store]"""

    url: str = ""
    """The address of a PostgreSQL database, without a password; by default the log is in `holdfast.db` of the home."""
    url_env: str = ""
    """The variable that holds the address, instead of `url`."""

    @property
    def is_server(self) -> bool:
        """Whether the log is in a database server."""
        return bool(self.url or self.url_env)

    @property
    def address(self) -> str:
        """The address of the database; empty if there is none, or the variable is not set."""
        return (environment(self.url_env) or "") if self.url_env else self.url


NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_PASSWORD = re.compile(r"^[a-z]+://[^/@]*:[^/@]+@|\bpassword\s*=", re.IGNORECASE)


def has_password(address: str) -> bool:
    """Whether the address of a database holds a password."""
    return _PASSWORD.search(address) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """[node]"""

    name: str = ""
    """The name of this gateway among those that work on one database; by default that of the machine."""
    labels: list[str] = field(default_factory=list)
    """What this node has, like "gpu": cards, commands and profiles can ask for it. In force after a restart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """[cluster]"""

    shared: list[str] = field(default_factory=list)
    """Directories that are the same on every node: what works in them can be continued by another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeSettings:
    """[resume]"""

    attempts: Annotated[int, Between(0, 1000)] = 3
    """How often a turn is resumed in a row without getting any further."""
    max_age_minutes: Annotated[int, Between(0, 10**7)] = 360
    """Work that was interrupted longer ago waits for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSettings:
    """[retention]"""

    tasks_days: Annotated[int, Between(0, 36_500)] = 0
    """Delete tasks that ended more than this many days ago; 0 keeps them."""
    tasks_count: Annotated[int, Between(0, 10**9)] = 0
    """Keep at most this many ended tasks; oldest deleted first; 0 is no limit."""
    tasks_megabytes: Annotated[int, Between(0, 10**9)] = 0
    """Keep at most this much output of ended tasks; oldest deleted first; 0 is no limit."""
    sessions_archive_days: Annotated[int, Between(0, 36_500)] = 0
    """Archive sessions not used for this many days; 0 never does."""
    sessions_delete_days: Annotated[int, Between(0, 36_500)] = 0
    """Delete archived sessions not used for this many days; 0 keeps them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetSettings:
    """[session_reset], and [profiles.NAME.session_reset] for what is different there"""

    mode: Literal["none", "idle", "daily", "both"] | None = None
    """When a session automatically starts a new chapter; by default `none`: never."""
    idle_minutes: Annotated[int | None, Between(1, 10**7)] = None
    """`idle`: after this many minutes without user activity; by default 1440."""
    at_hour: Annotated[int | None, Between(0, 23)] = None
    """`daily`: at this hour, 0 to 23; by default 4."""
    timezone: str | None = None
    """Of that hour, like "Europe/Berlin"; by default the machine's own."""
    max_postpone: str | None = None
    """A command at work postpones a reset for at most this long, like "90m"; by default "2h"."""
    process_max_age: str | None = None
    """A command that is older postpones nothing, like "12h"; by default "24h"."""
    on_live_process: Literal["hand_over", "stop_idle", "stop"] | None = None
    """What happens to running commands; by default `hand_over`."""
    hand_over_note: bool | None = None
    """Whether the agent writes a note for the next chapter; by default true."""
    notify: bool | None = None
    """Send browser notifications; by default true."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionSettings:
    """[compaction]"""

    threshold: Annotated[int, Between(0, 10**8)] = 100_000
    """A context with more tokens is made shorter, at the latest at 80 % of the limit; 0 never does."""
    limit: Annotated[int, Between(0, 10**8)] = 0
    """What does not fit at all; 0 is the known window of the model less room for its answer, or without one a quarter
    more than the threshold."""
    keep_recent: Annotated[int, Between(0, 1000)] = 3
    """How many of the last turns stay word for word."""
    summary_model: str = ""
    """The model that writes summaries, as PROVIDER:MODEL; by default the session's own model."""
    summary_timeout: Annotated[int, Between(1, 3600)] = 60
    """In seconds."""
    on_failure: Literal["digest", "pause"] = "digest"
    """If it does not fit and there is no summary: continue with a digest, or ask a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardSettings:
    """[board]"""

    max_running: Annotated[int, Between(0, 1000)] = 4
    """Maximum cards running at once; 0 starts none."""
    max_per_board: Annotated[int, Between(0, 1000)] = 0
    """Maximum of one board; 0 is no separate limit."""
    max_per_profile: Annotated[int, Between(0, 1000)] = 0
    """Maximum with one profile; 0 is no separate limit."""
    resume: Literal["auto", "resume", "fresh"] = "auto"
    """Whether the next worker continues the session of the last; a card and a profile can override it."""
    max_attempts: Annotated[int, Between(1, 100)] = 3
    """How often a card is tried before it waits for a person."""
    max_runtime: str = "4h"
    """How long one run may take."""
    frozen_after: str = "30m"
    """A worker that does nothing for this long is ended and tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsSettings:
    """[agents]"""

    max_depth: Annotated[int, Between(0, 20)] = 3
    """How many generations of agents and cards agents may create; 0 lets them create none."""
    max_open: Annotated[int, Between(0, 10_000)] = 20
    """How many agents and cards that descend from one session may be open at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    """[providers.NAME]"""

    wire: ApiStyle = "openai"
    """The style of its API."""
    base_url: str = ""
    """Where it is; empty is the provider's own address."""
    api_key_env: str = ""
    """The variable of the gateway's environment that holds the key; empty when it needs none."""
    quiet_minutes: Annotated[int, Between(1, 1440)] = 10
    """How long it may send keep-alive signals only; then the request is retried."""

    def key(self) -> str | None:
        """The key; None when it is needed and not there."""
        return environment(self.api_key_env) if self.api_key_env else "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class McpSettings:
    """[mcp.NAME]"""

    command: list[str] = field(default_factory=list)
    """How to start it, when it speaks over standard input and output."""
    url: str = ""
    """Where it is, when it speaks over HTTP."""
    env: list[str] = field(default_factory=list)
    """Variables of the gateway's environment that it gets."""
    bearer_env: str = ""
    """The variable that holds its bearer token."""

    def variables(self) -> dict[str, str]:
        """What it gets of the environment."""
        return {name: value for name in self.env if (value := environment(name)) is not None}

    def headers(self) -> dict[str, str]:
        """What it is sent with every request."""
        token = environment(self.bearer_env) if self.bearer_env else None
        return {"Authorization": f"Bearer {token}"} if token is not None else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSettings:
    """[profiles.NAME]"""

    model: str = DEMO
    """`demo`, or PROVIDER:MODEL."""
    instructions: str = ""
    """The instructions for the model, before everything else."""
    cwd: str = ""
    """Its working directory; by default the one where the session was started."""
    also: list[str] = field(default_factory=list)
    """Other directories that its file tools may reach."""
    tools: dict[str, Policy] = field(default_factory=dict)
    """allow, ask or deny by pattern: "write", "write:docs/*", "github__*", "*"."""
    approval_timeout: str = ""
    """An approval without an answer is denied after this time, like "2h"; by default it stays open."""
    mcp: list[str] = field(default_factory=list)
    """The MCP servers whose tools it gets."""
    sandbox: Literal["auto", "on", "off"] = "auto"
    """Whether its commands run in a sandbox: where there is one, always, or never."""
    network: bool = True
    """Whether its commands reach the network; without it they need a sandbox."""
    sandbox_write: list[str] = field(default_factory=list)
    """What its commands in a sandbox may write besides the working directory."""
    output_head_kib: Annotated[int, Between(0, 10**8)] = 1024
    """How much of the beginning of a command's output is kept, in KiB."""
    output_tail_kib: Annotated[int, Between(4, 10**8)] = 4096
    """And how much of its end; what lies between is dropped when there is more."""
    max_steps: Annotated[int, Between(1, 10**6)] = 100
    """How many steps one turn may take."""
    max_tokens: Annotated[int, Between(0, 10**12)] = 0
    """How many tokens one turn may use; 0 is no limit."""
    max_minutes: Annotated[int, Between(0, 10**6)] = 0
    """How long one turn may take; 0 is no limit."""
    driver: DriverName | Literal[""] = ""
    """What runs its turns: `builtin` is our own agent, `acp` an agent that speaks the Agent Client Protocol, `command`
    a command-line agent; by default `acp` if it names an agent or an argv, else `builtin`."""
    agent: str = ""
    """The external agent, by its name in `holdfast agents`."""
    argv: list[str] = field(default_factory=list)
    """The command of an external agent, instead of the usual one of its name. For a command-line agent without
    a name it is the command of a turn: `{prompt}` and `{session}` are replaced; without `{prompt}` the prompt is the
    standard input."""
    resume_argv: list[str] = field(default_factory=list)
    """The command of a turn that continues `{session}`; without it each turn starts a new one, with a short
    account of the conversation."""
    mode: str = ""
    """The mode of an external agent, as the agent calls it; by default one in which it asks before it acts, or of a
    command-line agent, one in which it edits files and does little else."""
    unrestricted: bool = False
    """Whether an external agent may act without asking, outside of a sandbox too."""
    env: list[str] = field(default_factory=list)
    """Variables of the gateway's environment that an external agent gets, besides its usual ones."""
    agent_idle: str = "15m"
    """An external agent that has had nothing to do for this long is closed; it is resumed at the next message."""
    resume_after_quota: bool = False
    """Whether its turn continues by itself, once, at the time at which an external agent says that its quota resets."""
    session_reset: ResetSettings = field(default_factory=ResetSettings)
    """What is different from [session_reset] for its sessions."""
    resume: Literal["auto", "resume", "fresh"] | None = None
    """Whether its workers on the board continue the session of the last; by default as set in [board]."""
    nodes: list[str] = field(default_factory=list)
    """The names or labels of the nodes on which its cards may run; by default all."""

    @property
    def driver_name(self) -> DriverName:
        """The driver of its sessions."""
        return self.driver or ("acp" if self.agent or self.argv else "builtin")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """config.toml"""

    default_profile: str = ""
    """The profile of a session that names none; by default the first that was detected, else `demo`."""
    gateway: GatewaySettings = field(default_factory=GatewaySettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    node: NodeSettings = field(default_factory=NodeSettings)
    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    resume: ResumeSettings = field(default_factory=ResumeSettings)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    session_reset: ResetSettings = field(default_factory=ResetSettings)
    compaction: CompactionSettings = field(default_factory=CompactionSettings)
    board: BoardSettings = field(default_factory=BoardSettings)
    agents: AgentsSettings = field(default_factory=AgentsSettings)
    providers: dict[str, ProviderSettings] = field(default_factory=dict)
    mcp: dict[str, McpSettings] = field(default_factory=dict)
    notify: NotifySettings = field(default_factory=NotifySettings)
    telegram: TelegramSettings = field(default_factory=TelegramSettings)
    profiles: dict[str, ProfileSettings] = field(default_factory=dict)

    @property
    def key_names(self) -> set[str]:
        """The variables that hold keys for sure: no command inherits them."""
        providers = (provider.api_key_env for provider in self.providers.values())
        servers = (server.bearer_env for server in self.mcp.values())
        webhooks = self.notify.webhooks.values()
        hooks = (name for webhook in webhooks for name in (webhook.secret_env, webhook.url_env))
        services = (service.url_env for service in self.notify.apprise.values())
        others = (self.telegram.token_env, self.store.url_env)
        return {name for name in (*providers, *servers, *hooks, *services, *others) if name} | {"PGPASSWORD"}

    @property
    def secret_names(self) -> set[str]:
        """Those, and what servers and external agents get: that is a key as well, unless it is known to be none."""
        of_profiles = {name for profile in self.profiles.values() for name in profile.env}
        given = {name for server in self.mcp.values() for name in server.env} | of_profiles
        return self.key_names | {name for name in given if not ORDINARY_VARIABLE.fullmatch(name)}

    @property
    def hidden_names(self) -> set[str]:
        """Those, and what would lead a command to the database of the gateway: no command inherits them."""
        return self.secret_names | {"PGPASSFILE", "PGSERVICE", "PGSERVICEFILE"}


OF_THE_MACHINE = ("gateway", "store", "node", "cluster")
"""What is about one machine, and in its config.toml also where nodes share their settings."""


def of_this_machine(shared: Settings, file: Settings) -> Settings:
    """Return the settings that nodes share, with what the file of this one says about its machine."""
    return replace(shared, **{name: getattr(file, name) for name in OF_THE_MACHINE})


BUILT_IN_PROVIDERS = {
    "openai": ProviderSettings(base_url="https://api.openai.com/v1", api_key_env="OPENAI_API_KEY"),
    "anthropic": ProviderSettings(wire="anthropic", api_key_env="ANTHROPIC_API_KEY"),
    "openrouter": ProviderSettings(base_url="https://openrouter.ai/api/v1", api_key_env="OPENROUTER_API_KEY"),
    "ollama": ProviderSettings(base_url="http://127.0.0.1:11434/v1"),
    "lmstudio": ProviderSettings(base_url="http://127.0.0.1:1234/v1"),
    "llamacpp": ProviderSettings(base_url="http://127.0.0.1:8080/v1"),
    "vllm": ProviderSettings(base_url="http://127.0.0.1:8000/v1"),
}
OTHERS_TASKS = "process:others"
"""The rule that opens tasks of other sessions to the tool `process`."""
DEMO_PROFILE = ProfileSettings(tools={"*": "allow", OTHERS_TASKS: "allow"})


SPANS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
SPAN_KEYS = ("max_postpone", "process_max_age")


def span_ms(text: str) -> int | None:
    """90s, 30m, 2h, 1.5d, 2w in milliseconds; None when it is nothing of the kind."""
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{0,6})?)\s*([smhdw])", text.strip().lower(), re.ASCII)
    return int(float(found[1]) * SPANS[found[2]] * 1000) if found else None


def reset_problem(rules: ResetSettings) -> tuple[str, str] | None:
    """What is wrong with them: the key, and what would be right."""
    for key in SPAN_KEYS:
        text = getattr(rules, key)
        if text is not None and span_ms(text) is None:
            return key, f"is {text!r}; write a number and a unit, like 30s, 90m, 2h or 7d."
    if rules.timezone:
        from zoneinfo import ZoneInfo

        try:
            ZoneInfo(rules.timezone)
        except (OSError, ValueError):  # ZoneInfoNotFoundError is a KeyError
            return "timezone", f"is {rules.timezone!r}, which is none; write one like Europe/Berlin."
        except KeyError:
            return "timezone", f"is {rules.timezone!r}, which this machine does not know; write one like Europe/Berlin."
    return None
