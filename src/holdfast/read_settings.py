"""Reading `config.toml`, strictly: an error names the line and what would be right."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from holdfast.config import ConfigError
from holdfast.settings import (
    BUILT_IN_PROVIDERS,
    DEMO,
    DEMO_PROFILE,
    SPAN_KEYS,
    Settings,
    reset_problem,
    span_ms,
)


def load_settings(path: Path) -> Settings:
    """Read the settings. An error names the file, the line, the key and what would be right."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from error
    return parse_settings(path, text)


def parse_settings(path: Path, text: str) -> Settings:
    """Check a text that is, or is about to become, the file at this path."""
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


KEY_LENGTH = 20
"""A name of this length with small letters and digits looks like a key, not like a variable."""


class Table(NamedTuple):
    """A table of the file by its keys, and what it may hold."""

    keys: list[str]
    raw: dict[str, Any]
    shape: Any


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
        values = _allowed(where, raw)
        said = f"write {values}" if values else what.replace(" | null", "")
        raise ConfigError(f"{path}:{_line_of(text, where)}: {'.'.join(where)}: {said}.") from error
    for keys, table, shape in _tables(raw):
        for key, value in table.items():
            for low, high in getattr(_hints(shape)[key], "__metadata__", ()):
                if not low <= value <= high:
                    line, name = _line_of(text, [*keys, key]), ".".join([*keys, key])
                    raise ConfigError(f"{path}:{line}: {name} must be between {low} and {high}, not {value}.")
    return settings


def _tables(raw: dict[str, Any], shape: Any = Settings, keys: tuple[str, ...] = ()) -> list[Table]:
    """Every table that there is, by its keys, with what it may hold."""
    found = [Table([*keys], raw, shape)]
    for name, hint in _hints(shape).items():
        if not isinstance(table := raw.get(name), dict):
            continue
        if is_dataclass(hint):
            found += _tables(table, hint, (*keys, name))
        elif is_dataclass(inner := get_args(hint)[-1]):
            parts = ((key, part) for key, part in table.items() if isinstance(part, dict))
            found += [one for key, part in parts for one in _tables(part, inner, (*keys, name, key))]
    return found


@cache
def _hints(shape: Any) -> dict[str, Any]:
    return get_type_hints(shape, include_extras=True)


def _check_names(path: Path, text: str, settings: Settings) -> None:
    """Names that lead nowhere are found now and not in the middle of a turn."""
    _check_urls(path, text, settings.gateway.public_urls)
    _check_variables(path, text, settings)
    for where, rules in [
        (["session_reset"], settings.session_reset),
        *((["profiles", name, "session_reset"], one.session_reset) for name, one in settings.profiles.items()),
    ]:
        if found := reset_problem(rules):
            key, what = found
            line = _line_of(text, [*where, key])
            raise ConfigError(f"{path}:{line}: {'.'.join([*where, key])} {what}")
    for key in ("max_runtime", "frozen_after"):
        if span_ms(value := getattr(settings.board, key)) is None:
            line = _line_of(text, ["board", key])
            raise ConfigError(f"{path}:{line}: board.{key} is {value!r}; write a number and a unit, like 30m or 4h.")
    _check_compaction(path, text, settings)
    known = ", ".join(sorted(settings.profiles))
    if settings.default_profile and settings.default_profile not in settings.profiles:
        line = _line_of(text, ["default_profile"])
        raise ConfigError(f"{path}:{line}: there is no profile {settings.default_profile!r}; there is: {known}.")
    for name, profile in settings.profiles.items():
        if (value := profile.approval_timeout) and span_ms(value) is None:
            line = _line_of(text, ["profiles", name, "approval_timeout"])
            key = f"profiles.{name}.approval_timeout"
            raise ConfigError(f"{path}:{line}: {key} is {value!r}; write a number and a unit, like 30m or 4h.")
        if problem := _no_model(profile.model, settings):
            line = _line_of(text, ["profiles", name, "model"])
            raise ConfigError(f"{path}:{line}: profiles.{name}.model {problem}")
        if profile.sandbox == "off" and not profile.network:
            line = _line_of(text, ["profiles", name, "network"])
            raise ConfigError(
                f'{path}:{line}: profiles.{name}.network = false needs a sandbox; remove sandbox = "off".'
            )
        for server in profile.mcp:
            if server not in settings.mcp:
                line = _line_of(text, ["profiles", name, "mcp"])
                raise ConfigError(f"{path}:{line}: there is no [mcp.{server}].")
    for name, offer in settings.mcp.items():
        if bool(offer.command) == bool(offer.url):
            line = _line_of(text, ["mcp", name])
            raise ConfigError(f"{path}:{line}: mcp.{name} needs either a command or a url.")


def _check_variables(path: Path, text: str, settings: Settings) -> None:
    """Refuse a key in the place of a variable's name; the message does not repeat it."""
    named = [(["providers", name, "api_key_env"], [one.api_key_env]) for name, one in settings.providers.items()]
    named += [(["mcp", name, "bearer_env"], [one.bearer_env]) for name, one in settings.mcp.items()]
    named += [(["mcp", name, "env"], one.env) for name, one in settings.mcp.items()]
    for keys, names in named:
        if not all(map(_is_variable, filter(None, names))):
            raise ConfigError(
                f"{path}:{_line_of(text, keys)}: {'.'.join(keys)} takes the NAME of an environment variable, such as "
                "MY_API_KEY, and this is none. Never put a key into this file: set the variable, and if "
                "this was a key, remove it here and replace it at its provider."
            )


def _is_variable(name: str) -> bool:
    """Whether it can be the name of a variable, and does not look like a key."""
    random = len(name) >= KEY_LENGTH and re.search(r"[a-z]", name) and re.search(r"\d", name)
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is not None and not random


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
            raise ConfigError(f"{where}: gateway.public_urls: {host} is listed twice; keep the one with https.")
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


def _check_compaction(path: Path, text: str, settings: Settings) -> None:
    rules = settings.compaction
    if rules.summary_model and (problem := _no_model(rules.summary_model, settings)):
        line = _line_of(text, ["compaction", "summary_model"])
        raise ConfigError(f"{path}:{line}: compaction.summary_model {problem}")
    if 0 < rules.limit < rules.threshold:
        line = _line_of(text, ["compaction", "limit"])
        raise ConfigError(
            f"{path}:{line}: compaction.limit is {rules.limit}, below the threshold of {rules.threshold}; "
            f"write {rules.threshold} or more, 0 for what the model takes, or lower the threshold."
        )


def _no_model(name: str, settings: Settings) -> str:
    """What is wrong with the name of a model, if something is."""
    provider, colon, model = name.partition(":")
    if name == DEMO or (colon and model and provider in settings.providers):
        return ""
    providers = ", ".join(sorted(settings.providers))
    return f"is {name!r}; write `demo` or PROVIDER:MODEL with a provider of: {providers}."


def _keys_of(where: str, raw: dict[str, Any]) -> list[str]:
    """`$.profiles[...].model` names no profile: find the one that is wrong."""
    import msgspec

    flat = [name or index for name, index in re.findall(r"\.(\w+)|\[(\.\.\.|\d+)\]", where)]
    if "..." not in flat:
        return flat
    shape = get_args(_hints(Settings)[flat[0]])[1]
    for name, table in raw[flat[0]].items():
        try:
            msgspec.convert(table, shape, strict=True)
        except msgspec.ValidationError:
            return [flat[0], name, *(key for key in flat[2:] if key != "...")]
    return flat


def _allowed(where: list[str], raw: dict[str, Any]) -> str:
    """The values that a setting can have, when it is one of a few words or a span of time."""
    if where[-1] in SPAN_KEYS:
        return 'a number and a unit in quotes, like "30s", "90m", "2h" or "7d"'
    shape = next((shape for keys, _, shape in _tables(raw) if keys == where[:-1]), None)
    hint = None if shape is None else get_type_hints(shape).get(where[-1])
    for choice in (hint, *get_args(hint)):
        if get_origin(choice) is Literal:
            return "one of: " + ", ".join(f'"{word}"' for word in get_args(choice))
    return ""


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
