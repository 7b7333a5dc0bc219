"""What can be set in `config.toml`, read strictly: an error names the line and what would be right.

Importing this costs little, because the command line does it too: what checks the settings is
imported when they are read. Keys are never here, only the names of the variables that hold them.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from holdfast.config import ConfigError, environment

DEMO = "demo"
Wire = Literal["openai", "anthropic"]
Policy = Literal["allow", "ask", "deny"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """[gateway]"""

    port: int | None = None
    """Where it listens on 127.0.0.1; by default 4690, or any free port if that is taken."""
    log_bytes: int = 10_000_000
    """The size at which the log file is rotated; five old ones are kept."""
    public_urls: list[str] = field(default_factory=list)
    """Further exact origins under which browsers reach it, behind a TLS proxy or in a tailnet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeSettings:
    """[resume]"""

    attempts: int = 3
    """How often a turn is resumed in a row without getting any further."""
    max_age_minutes: int = 360
    """Work that was interrupted longer ago waits for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSettings:
    """[retention]"""

    tasks_days: int = 0
    """Tasks that ended so many days ago are pruned; 0 keeps them."""
    tasks_count: int = 0
    """So many ended tasks are kept, the oldest go first; 0 is no limit."""
    tasks_megabytes: int = 0
    """So much output of ended tasks is kept, the oldest goes first; 0 is no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    """[providers.NAME]"""

    wire: Wire = "openai"
    """Which language it speaks."""
    base_url: str = ""
    """Where it is; empty is the provider's own address."""
    api_key_env: str = ""
    """The variable of the gateway's environment that holds the key; empty when it needs none."""
    quiet_minutes: int = 10
    """How long it may send signs of life and not a word; then it counts as lost and is asked again."""

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
    """What the model is told before everything else."""
    cwd: str = ""
    """Its working directory; by default the one where the session was started."""
    also: list[str] = field(default_factory=list)
    """Other directories that its file tools may reach."""
    tools: dict[str, Policy] = field(default_factory=dict)
    """allow, ask or deny by pattern: "write", "write:docs/*", "github__*", "*"."""
    mcp: list[str] = field(default_factory=list)
    """The MCP servers whose tools it gets."""
    output_head_kib: int = 1024
    """How much of the beginning of a command's output is kept, in KiB."""
    output_tail_kib: int = 4096
    """And how much of its end; what lies between is dropped when there is more."""
    max_steps: int = 100
    """How many steps one turn may take."""
    max_tokens: int = 0
    """How many tokens one turn may use; 0 is no limit."""
    max_minutes: int = 0
    """How long one turn may take; 0 is no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """config.toml"""

    default_profile: str = ""
    """The profile of a session that names none; by default the first that was detected, else `demo`."""
    gateway: GatewaySettings = field(default_factory=GatewaySettings)
    resume: ResumeSettings = field(default_factory=ResumeSettings)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    providers: dict[str, ProviderSettings] = field(default_factory=dict)
    mcp: dict[str, McpSettings] = field(default_factory=dict)
    profiles: dict[str, ProfileSettings] = field(default_factory=dict)

    @property
    def key_names(self) -> set[str]:
        """The variables that hold keys: no command inherits them."""
        providers = {provider.api_key_env for provider in self.providers.values()}
        return {name for name in (*providers, *(server.bearer_env for server in self.mcp.values())) if name}


BUILT_IN_PROVIDERS = {
    "openai": ProviderSettings(base_url="https://api.openai.com/v1", api_key_env="OPENAI_API_KEY"),
    "anthropic": ProviderSettings(wire="anthropic", api_key_env="ANTHROPIC_API_KEY"),
    "openrouter": ProviderSettings(base_url="https://openrouter.ai/api/v1", api_key_env="OPENROUTER_API_KEY"),
    "ollama": ProviderSettings(base_url="http://127.0.0.1:11434/v1"),
    "lmstudio": ProviderSettings(base_url="http://127.0.0.1:1234/v1"),
    "llamacpp": ProviderSettings(base_url="http://127.0.0.1:8080/v1"),
    "vllm": ProviderSettings(base_url="http://127.0.0.1:8000/v1"),
}
DEMO_PROFILE = ProfileSettings(tools={"*": "allow"})


def load_settings(path: Path) -> Settings:
    """Read the settings. An error names the file, the line, the key and what would be right."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from error
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"at line (\d+)", str(error))
        line = int(place[1]) if place else len(text.splitlines())
        raise ConfigError(f"{path}:{line}: {error}.") from error
    settings = _check(path, text, raw)
    settings = replace(
        settings,
        providers=BUILT_IN_PROVIDERS | settings.providers,
        profiles={DEMO: DEMO_PROFILE} | settings.profiles,
    )
    _check_names(path, text, settings)
    return settings


_TABLES: dict[str, tuple[type[Any], bool]] = {
    "gateway": (GatewaySettings, False),
    "resume": (ResumeSettings, False),
    "retention": (RetentionSettings, False),
    "providers": (ProviderSettings, True),
    "mcp": (McpSettings, True),
    "profiles": (ProfileSettings, True),
}
_BOUNDS: dict[tuple[str, str], tuple[int, int]] = {
    ("gateway", "port"): (0, 65535),
    ("gateway", "log_bytes"): (10_000, 10**12),
    ("resume", "attempts"): (0, 1000),
    ("resume", "max_age_minutes"): (0, 10**7),
    ("retention", "tasks_days"): (0, 36_500),
    ("retention", "tasks_count"): (0, 10**9),
    ("retention", "tasks_megabytes"): (0, 10**9),
    ("providers", "quiet_minutes"): (1, 1440),
    ("profiles", "output_head_kib"): (0, 10**8),
    ("profiles", "output_tail_kib"): (4, 10**8),
    ("profiles", "max_steps"): (1, 10**6),
    ("profiles", "max_tokens"): (0, 10**12),
    ("profiles", "max_minutes"): (0, 10**6),
}


def _check(path: Path, text: str, raw: dict[str, Any]) -> Settings:
    import msgspec

    for keys, table, shape in _tables(raw):
        allowed = [known.name for known in fields(shape)]
        for key in table:
            if key not in allowed:
                where = [*keys, key]
                raise ConfigError(
                    f"{path}:{_line_of(text, where)}: {'.'.join(where)} is not a setting; "
                    f"here you can set: {', '.join(allowed)}."
                )
    try:
        settings = msgspec.convert(raw, Settings, strict=True)
    except msgspec.ValidationError as error:
        what, _, where_it_is = str(error).partition(" - at ")
        where = _keys_of(where_it_is.strip("`"), raw)
        raise ConfigError(f"{path}:{_line_of(text, where)}: {'.'.join(where)}: {what}.") from error
    for keys, table, _ in _tables(raw):
        for key, value in table.items():
            bounds = _BOUNDS.get((keys[0] if keys else "", key))
            if bounds is not None and not bounds[0] <= value <= bounds[1]:
                (low, high), name = bounds, ".".join([*keys, key])
                line = _line_of(text, [*keys, key])
                raise ConfigError(f"{path}:{line}: {name} must lie between {low} and {high}, not be {value}.")
    return settings


def _tables(raw: dict[str, Any]) -> list[tuple[list[str], dict[str, Any], type[Any]]]:
    """Every table that there is, by its keys, with what it may hold."""
    found: list[tuple[list[str], dict[str, Any], type[Any]]] = [([], raw, Settings)]
    for name, (shape, many) in _TABLES.items():
        table = raw.get(name)
        if not isinstance(table, dict):
            continue
        inner = table.items() if many else [("", table)]
        found += [([name, key] if key else [name], part, shape) for key, part in inner if isinstance(part, dict)]
    return found


def _check_names(path: Path, text: str, settings: Settings) -> None:
    """Names that lead nowhere are found now and not in the middle of a turn."""
    _check_urls(path, text, settings.gateway.public_urls)
    known = ", ".join(sorted(settings.profiles))
    if settings.default_profile and settings.default_profile not in settings.profiles:
        line = _line_of(text, ["default_profile"])
        raise ConfigError(f"{path}:{line}: there is no profile {settings.default_profile!r}; there is: {known}.")
    for name, profile in settings.profiles.items():
        provider, colon, model = profile.model.partition(":")
        if profile.model != DEMO and (not colon or not model or provider not in settings.providers):
            line = _line_of(text, ["profiles", name, "model"])
            providers = ", ".join(sorted(settings.providers))
            raise ConfigError(
                f"{path}:{line}: profiles.{name}.model is {profile.model!r}; write `demo` or PROVIDER:MODEL "
                f"with a provider of: {providers}."
            )
        for server in profile.mcp:
            if server not in settings.mcp:
                line = _line_of(text, ["profiles", name, "mcp"])
                raise ConfigError(f"{path}:{line}: there is no [mcp.{server}].")
    for name, offer in settings.mcp.items():
        if bool(offer.command) == bool(offer.url):
            line = _line_of(text, ["mcp", name])
            raise ConfigError(f"{path}:{line}: mcp.{name} needs a command or a url, one of them.")


_ORIGIN = re.compile(r"https?://(\[[0-9a-f:.]+\]|[a-z0-9-]+(?:\.[a-z0-9-]+)*)(?::([1-9]\d{0,4}))?")


def _check_urls(path: Path, text: str, urls: list[str]) -> None:
    """Only what a browser itself would say: the guard compares whole origins."""
    hosts: set[str] = set()
    for url in urls:
        line = _line_of(text, ["gateway", "public_urls"])
        below = enumerate(text.splitlines()[line - 1 :], line)
        where = f"{path}:{next((number for number, words in below if url in words), line)}"
        if not _is_origin(url):
            raise ConfigError(
                f"{where}: gateway.public_urls: {url!r} is not the origin of a page. Write https://HOST or "
                "https://HOST:PORT (or http://) in small letters: no path and no / at the end, no user, no *, and no "
                "port that is the usual one (443, 80)."
            )
        host = url.partition("//")[2]
        if host in hosts:
            raise ConfigError(f"{where}: gateway.public_urls: {host} stands there twice; keep the one with https.")
        hosts.add(host)


def _is_origin(url: str) -> bool:
    from ipaddress import ip_address

    found = _ORIGIN.fullmatch(url)
    if found is None:
        return False
    host, port = found[1], int(found[2] or 0)
    if port > 65_535 or port == (443 if url.startswith("https") else 80):
        return False
    if host.startswith("[") or host.rpartition(".")[2].isdigit():
        try:
            return str(ip_address(host.strip("[]"))) == host.strip("[]")
        except ValueError:
            return False
    return len(host) <= 253 and all(len(part) <= 63 and part == part.strip("-") for part in host.split("."))


def _keys_of(where: str, raw: dict[str, Any]) -> list[str]:
    """`$.profiles[...].model` names no profile: find the one that has the key."""
    flat = [name or index for name, index in re.findall(r"\.(\w+)|\[(\.\.\.|\d+)\]", where)]
    if "..." not in flat:
        return flat
    for name, table in raw.get(flat[0], {}).items():
        if not isinstance(table, dict) or flat[-1] in table or flat[-1] == "...":
            return [name if key == "..." else key for key in flat]
    return flat


def _line_of(text: str, keys: list[str]) -> int:
    """The line that sets the key, or that opens or holds its table."""
    table: list[str] = []
    best = 1
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[([^\]]+)\]", line)
        if header:
            table = [part.strip().strip("\"'") for part in header.group(1).split(".")]
            if keys[: len(table)] == table:
                best = number
            continue
        key = re.match(r"""\s*["']?([\w.-]+)["']?\s*=""", line)
        found = [*table, *key.group(1).split(".")] if key else []
        if found == keys:
            return number
        if found and keys[: len(found)] == found:
            best = number
    return best
