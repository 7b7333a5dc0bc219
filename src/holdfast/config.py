"""The only reader of the environment and of `config.toml`.

Importing this costs next to nothing, because the command line does it on every call: what checks the
settings is imported when they are read.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DEMO = "demo"


class ConfigError(Exception):
    """The settings or the home are wrong; the message says where and what to do."""


@dataclass(frozen=True, slots=True)
class Home:
    """Where everything lives: `$HOLDFAST_HOME`, by default `~/.holdfast`."""

    path: Path

    @property
    def config(self) -> Path:
        """The settings; there need not be any."""
        return self.path / "config.toml"

    @property
    def database(self) -> Path:
        """Never open this with anything but SQLite."""
        return self.path / "holdfast.db"

    @property
    def run(self) -> Path:
        """What belongs to the running gateway: lock, token, address."""
        return self.path / "run"

    @property
    def lock(self) -> Path:
        """Held by the one process that owns the home."""
        return self.run / "lock"

    @property
    def token(self) -> Path:
        """The bearer token of the command line, 0600."""
        return self.run / "token"

    @property
    def address(self) -> Path:
        """Where the running gateway listens."""
        return self.run / "gateway.json"

    @property
    def log(self) -> Path:
        """The gateway's log, one JSON object a line."""
        return self.path / "logs" / "gateway.log"

    def prepare(self) -> None:
        """Create what is missing, 0700; refuse a home that others could change."""
        os.umask(0o077)
        try:
            for path in (self.path, self.run, self.log.parent):
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"The home {self.path} cannot be made: {error.strerror}. Use another: --home DIR or HOLDFAST_HOME."
            ) from error
        self.check()

    def check(self) -> None:
        """Refuse a home that belongs to somebody else or that others can write to."""
        for path in (self.path, self.run):
            if not path.exists():
                continue
            found = path.stat()
            if found.st_uid != os.geteuid():
                raise ConfigError(
                    f"{path} belongs to user {found.st_uid}, not to you ({os.geteuid()}). "
                    "Use another home: --home DIR or HOLDFAST_HOME."
                )
            if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise ConfigError(f"Others can write to {path}. Close it first: chmod 700 {path}")


def find_home(given: str | None = None) -> Home:
    """The home that was asked for, by option, by environment or by default."""
    chosen = given or os.environ.get("HOLDFAST_HOME") or "~/.holdfast"
    return Home(Path(chosen).expanduser().absolute())


def no_color() -> bool:
    """Whether the person asked for plain output."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


# --- settings -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """[gateway]"""

    port: int | None = None
    """Where it listens on 127.0.0.1; by default 4690, or any free port if that is taken."""
    log_bytes: int = 10_000_000
    """The size at which the log file is rotated; five old ones are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeSettings:
    """[resume]"""

    attempts: int = 3
    """How often a turn is resumed in a row without getting any further."""
    max_age_minutes: int = 360
    """Work that was interrupted longer ago waits for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSettings:
    """[profiles.NAME]"""

    model: str = DEMO
    """Which model; `demo` is the scripted one."""
    instructions: str = ""
    """What the model is told before everything else."""
    cwd: str = ""
    """Its working directory; by default the one where the session was started."""
    max_steps: int = 100
    """How many steps one turn may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """config.toml"""

    default_profile: str = DEMO
    """The profile of a session that names none."""
    gateway: GatewaySettings = field(default_factory=GatewaySettings)
    resume: ResumeSettings = field(default_factory=ResumeSettings)
    profiles: dict[str, ProfileSettings] = field(default_factory=dict)


def load_settings(path: Path) -> Settings:
    """Read the settings. An error names the file, the line, the key and what would be right."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return Settings(profiles={DEMO: ProfileSettings()})
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from error
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"at line (\d+)", str(error))
        line = int(place[1]) if place else len(text.splitlines())
        raise ConfigError(f"{path}:{line}: {error}.") from error
    settings = _check(path, text, raw)
    profiles = {DEMO: ProfileSettings()} | settings.profiles
    if settings.default_profile not in profiles:
        line = _line_of(text, ["default_profile"])
        known = ", ".join(sorted(profiles))
        raise ConfigError(f"{path}:{line}: there is no profile {settings.default_profile!r}; there is: {known}.")
    return Settings(
        default_profile=settings.default_profile,
        gateway=settings.gateway,
        resume=settings.resume,
        profiles=profiles,
    )


_BOUNDS: dict[tuple[str, ...], tuple[int, int]] = {
    ("gateway", "port"): (0, 65535),
    ("gateway", "log_bytes"): (10_000, 10**12),
    ("resume", "attempts"): (0, 1000),
    ("resume", "max_age_minutes"): (0, 10**7),
}


def _check(path: Path, text: str, raw: dict[str, object]) -> Settings:
    import msgspec

    unknown = _unknown_key(raw)
    if unknown is not None:
        keys, allowed = unknown
        raise ConfigError(
            f"{path}:{_line_of(text, keys)}: {'.'.join(keys)} is not a setting; here you can set: {', '.join(allowed)}."
        )
    try:
        settings = msgspec.convert(raw, Settings, strict=True)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at ")
        keys = _keys_of(where.strip("`"), raw)
        raise ConfigError(f"{path}:{_line_of(text, keys)}: {'.'.join(keys)}: {what}.") from error
    bounds = _BOUNDS | {("profiles", name, "max_steps"): (1, 10**6) for name in settings.profiles}
    for where_to_look, (low, high) in bounds.items():
        value: Any = raw
        for key in where_to_look:
            value = value.get(key, {})
        if value != {} and not low <= value <= high:
            line, name = _line_of(text, [*where_to_look]), ".".join(where_to_look)
            raise ConfigError(f"{path}:{line}: {name} must lie between {low} and {high}, not be {value}.")
    return settings


def _unknown_key(raw: dict[str, object]) -> tuple[list[str], list[str]] | None:
    tables: list[tuple[list[str], object, Any]] = [([], raw, Settings)]
    tables += [(["gateway"], raw.get("gateway"), GatewaySettings), (["resume"], raw.get("resume"), ResumeSettings)]
    profiles = raw.get("profiles")
    if isinstance(profiles, dict):
        tables += [(["profiles", name], table, ProfileSettings) for name, table in profiles.items()]
    for prefix, table, shape in tables:
        allowed = list(shape.__dataclass_fields__)
        if isinstance(table, dict):
            for key in table:
                if key not in allowed:
                    return [*prefix, key], allowed
    return None


def _keys_of(where: str, raw: dict[str, object]) -> list[str]:
    """`$.profiles[...].model` names no profile: find the one that has the key."""
    keys = re.findall(r"\.(\w+)|\[(\.\.\.|\d+)\]", where)
    flat = [name or index for name, index in keys]
    if "..." in flat and isinstance(raw.get("profiles"), dict):
        profiles = raw["profiles"]
        assert isinstance(profiles, dict)
        for name, table in profiles.items():
            if not isinstance(table, dict) or flat[-1] in table:
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
