"""Reading `config.toml`, strictly: an error names the line and what would be right."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from holdfast.config import ConfigError
from holdfast.external_agent_checks import agent_problem
from holdfast.notify_settings import TelegramSettings, telegram_url_problem, webhook_problem
from holdfast.settings import (
    BUILT_IN_PROVIDERS,
    DEMO,
    DEMO_PROFILE,
    NODE_NAME,
    SPAN_KEYS,
    Policy,
    Settings,
    has_password,
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


def parse_settings(path: Path, text: str, *, unknown: list[str] | None = None) -> Settings:
    """Check a text that is, or is about to become, the file at this path.

    With a list for what is `unknown`, settings of a newer version are left out and named there.
    """
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"at line (\d+)", str(error))
        line = int(place[1]) if place else len(text.splitlines())
        raise ConfigError(f"{path}:{line}: {error}.") from error
    file = _ConfigText(path, text)
    settings = _check(file, raw, unknown)
    settings = replace(
        settings,
        providers=BUILT_IN_PROVIDERS | settings.providers,
        profiles={DEMO: DEMO_PROFILE} | settings.profiles,
    )
    _check_names(file, settings)
    return settings


@dataclass(frozen=True, slots=True)
class _ConfigText:
    """A text that is, or is about to become, the file at this path."""

    path: Path
    text: str

    def error(self, keys: list[str], said: str) -> ConfigError:
        """Return an error about the line that sets a key."""
        return ConfigError(f"{self.path}:{self.line_of(keys)}: {said}")

    def wrong(self, keys: list[str], said: str) -> ConfigError:
        """Return an error that names the key, too."""
        return self.error(keys, f"{'.'.join(keys)} {said}")

    def line_of(self, keys: list[str]) -> int:
        """Return the line that sets the key, or that opens or holds its table."""
        table: list[str] = []
        best = 1
        for number, line in enumerate(self.text.splitlines(), 1):
            header = re.match(r"\s*\[([^\]]+)\]", line)
            if header:
                table = [part.strip().strip("\"'") for part in header.group(1).split(".")]
                if keys[: len(table)] == table:
                    best = number
                continue
            key = re.match(r"""\s*(?:(["'])(.*?)\1|([\w.-]+))\s*=""", line)
            found = [*table, *([key[2]] if key[1] else key[3].split("."))] if key else []
            if found == keys:
                return number
            if found and keys[: len(found)] == found:
                best = number
        return best


WRITE_A_SPAN = "write a number and a unit, like 30m or 4h."
TYPES = {
    "int": "a whole number",
    "float": "a decimal number",
    "str": "a text in quotes",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}
KEY_LENGTH = 20
"""A name of this length with small letters and digits looks like a key, not like a variable."""


class Table(NamedTuple):
    """A table of the file by its keys, and what it may hold."""

    keys: list[str]
    raw: dict[str, Any]
    shape: Any


def _check(file: _ConfigText, raw: dict[str, Any], unknown: list[str] | None) -> Settings:
    import msgspec

    for keys, table, shape in _tables(raw):
        allowed = [known.name for known in fields(shape)]
        for key in [key for key in table if key not in allowed]:
            if unknown is None:
                raise file.wrong([*keys, key], f"is not a setting; here you can set: {', '.join(allowed)}.")
            unknown.append(".".join([*keys, key]))
            del table[key]
    try:
        settings = msgspec.convert(raw, Settings, strict=True)
    except msgspec.ValidationError as error:
        what, _, where_it_is = str(error).partition(" - at ")
        where = _keys_of(where_it_is.strip("`"), raw)
        values = _allowed(where, raw)
        said = f"write {values}" if values else _in_words(what)
        where = _with_rule(where, raw)
        raise file.error(where, f"{'.'.join(where)}: {said}.") from error
    for keys, table, shape in _tables(raw):
        for key, value in table.items():
            for low, high in getattr(_hints(shape)[key], "__metadata__", ()):
                if not low <= value <= high:
                    raise file.wrong([*keys, key], f"must be between {low} and {high}, not {value}.")
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


def _check_names(file: _ConfigText, settings: Settings) -> None:
    """Names that lead nowhere are found now and not in the middle of a turn."""
    _check_urls(file, settings.gateway.public_urls)
    _check_variables(file, settings)
    _check_notify(file, settings)
    _check_store(file, settings)
    for name, provider in settings.providers.items():
        if (value := provider.base_url) and not value.startswith(("http://", "https://")):
            raise file.wrong(["providers", name, "base_url"], f"is {value!r}; write http://HOST:PORT/PATH or https://…")
    for where, rules in [
        (["session_reset"], settings.session_reset),
        *((["profiles", name, "session_reset"], one.session_reset) for name, one in settings.profiles.items()),
    ]:
        if found := reset_problem(rules):
            raise file.wrong([*where, found[0]], found[1])
    for key in ("max_runtime", "frozen_after"):
        if span_ms(value := getattr(settings.board, key)) is None:
            raise file.wrong(["board", key], f"is {value!r}; {WRITE_A_SPAN}")
    _check_compaction(file, settings)
    known = ", ".join(sorted(settings.profiles))
    if settings.default_profile and settings.default_profile not in settings.profiles:
        raise file.error(
            ["default_profile"], f"There is no profile {settings.default_profile!r}. The profiles are: {known}."
        )
    for name, profile in settings.profiles.items():
        if (value := profile.approval_timeout) and span_ms(value) is None:
            raise file.wrong(["profiles", name, "approval_timeout"], f"is {value!r}; {WRITE_A_SPAN}")
        if problem := _no_model(profile.model, settings):
            raise file.wrong(["profiles", name, "model"], problem)
        if profile.sandbox == "off" and not profile.network:
            raise file.wrong(["profiles", name, "network"], '= false needs a sandbox; remove sandbox = "off".')
        if found := agent_problem(profile):
            raise file.wrong(["profiles", name, found[0]], found[1])
        if span_ms(value := profile.agent_idle) is None:
            raise file.wrong(["profiles", name, "agent_idle"], f"is {value!r}; {WRITE_A_SPAN}")
        for server in profile.mcp:
            if server not in settings.mcp:
                raise file.error(["profiles", name, "mcp"], f"there is no [mcp.{server}].")
    for name, offer in settings.mcp.items():
        if bool(offer.command) == bool(offer.url):
            raise file.wrong(["mcp", name], "needs either a command or a url.")


def _check_variables(file: _ConfigText, settings: Settings) -> None:
    """Refuse a key in the place of a variable's name; the message does not repeat it."""
    named = [(["providers", name, "api_key_env"], [one.api_key_env]) for name, one in settings.providers.items()]
    named += [(["mcp", name, "bearer_env"], [one.bearer_env]) for name, one in settings.mcp.items()]
    webhooks = settings.notify.webhooks.items()
    for key in ("secret_env", "url_env"):
        named += [(["notify", "webhooks", name, key], [getattr(one, key)]) for name, one in webhooks]
    named.append((["telegram", "token_env"], [settings.telegram.token_env]))
    named.append((["store", "url_env"], [settings.store.url_env]))
    named += [(["notify", "apprise", name, "url_env"], [one.url_env]) for name, one in settings.notify.apprise.items()]
    named += [(["mcp", name, "env"], one.env) for name, one in settings.mcp.items()]
    named += [(["profiles", name, "env"], one.env) for name, one in settings.profiles.items()]
    for keys, names in named:
        if not all(map(_is_variable, filter(None, names))):
            raise file.wrong(
                keys,
                "takes the NAME of an environment variable, such as MY_API_KEY, and this is none. Never put a key into "
                "this file: set the variable, and if this was a key, remove it here and replace it at its provider.",
            )


def _is_variable(name: str) -> bool:
    """Whether it can be the name of a variable, and does not look like a key."""
    random = len(name) >= KEY_LENGTH and re.search(r"[a-z]", name) and re.search(r"\d", name)
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is not None and not random


_ORIGIN = re.compile(r"https?://(\[[0-9a-f:.]+\]|[a-z0-9-]+(?:\.[a-z0-9-]+)*)(?::([1-9]\d{0,4}))?")


def _check_urls(file: _ConfigText, urls: list[str]) -> None:
    """Only what a browser itself would say: the guard compares whole origins."""
    hosts: set[str] = set()
    for url in urls:
        line = file.line_of(["gateway", "public_urls"])
        below = enumerate(file.text.splitlines()[line - 1 :], line)
        where = f"{file.path}:{next((number for number, words in below if url in words), line)}"
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


def _check_store(file: _ConfigText, settings: Settings) -> None:
    if settings.node.name and not NODE_NAME.fullmatch(settings.node.name):
        raise file.wrong(["node", "name"], "must be up to 63 letters, digits, `.`, `_` and `-`.")
    if not all(NODE_NAME.fullmatch(label) for label in settings.node.labels):
        raise file.wrong(["node", "labels"], "must be a list of words of up to 63 letters, digits, `.`, `_` and `-`.")
    for name, profile in settings.profiles.items():
        if not all(NODE_NAME.fullmatch(word) for word in profile.nodes):
            raise file.wrong(["profiles", name, "nodes"], "must be a list of names or labels of nodes.")
    if any(not path.startswith("/") for path in settings.cluster.shared):
        raise file.wrong(["cluster", "shared"], "must be a list of absolute paths.")
    if settings.store.url and settings.store.url_env:
        raise file.wrong(["store"], "needs either a url or a url_env.")
    scheme, found, _ = settings.store.url.partition("://")
    if found and scheme not in ("postgresql", "postgres"):
        raise file.wrong(["store", "url"], f"begins with {scheme!r}; write postgresql://USER@HOST/DATABASE.")
    if has_password(settings.store.url):
        raise file.wrong(
            ["store", "url"],
            "holds a password, which has no place in this file. Use url_env, the NAME of a variable that holds the"
            " address, or leave the password to ~/.pgpass.",
        )


def _check_notify(file: _ConfigText, settings: Settings) -> None:
    notify = settings.notify
    for name, webhook in notify.webhooks.items():
        if bool(webhook.url) == bool(webhook.url_env):
            raise file.wrong(["notify", "webhooks", name], "needs either a url or a url_env.")
        if webhook.url and (problem := webhook_problem(webhook.url, webhook)):
            raise file.wrong(["notify", "webhooks", name, "url"], problem)
    for name, service in notify.apprise.items():
        if not service.url_env:
            raise file.wrong(["notify", "apprise", name], "needs a url_env: the variable with the address.")
    contact = notify.push.contact
    if contact and not contact.startswith(("mailto:", "https://")):
        raise file.wrong(["notify", "push", "contact"], "is no address; write mailto:NAME@HOST or https://HOST.")
    telegram = settings.telegram
    if problem := telegram_url_problem(telegram.api_url):
        raise file.wrong(["telegram", "api_url"], problem)
    if telegram.profile and telegram.profile not in settings.profiles:
        there = ", ".join(sorted(settings.profiles))
        raise file.wrong(["telegram", "profile"], f"is {telegram.profile!r}; there is: {there}.")
    if telegram != TelegramSettings() and not telegram.token_env:
        raise file.wrong(["telegram"], "needs token_env: the NAME of the variable that holds the token of the bot.")
    known = [f"webhooks.{name}" for name in notify.webhooks] + [f"apprise.{name}" for name in notify.apprise]
    known += [f"telegram.{chat}" for chat in telegram.notify]
    if notify.home_channel and notify.home_channel not in known:
        there = ", ".join(known) or "none; add [notify.webhooks.NAME], or the number of a chat to notify in [telegram]"
        raise file.wrong(["notify", "home_channel"], f"is {notify.home_channel!r}; there is: {there}.")


def _check_compaction(file: _ConfigText, settings: Settings) -> None:
    rules = settings.compaction
    if rules.summary_model and (problem := _no_model(rules.summary_model, settings)):
        raise file.wrong(["compaction", "summary_model"], problem)
    if 0 < rules.limit < rules.threshold:
        raise file.wrong(
            ["compaction", "limit"],
            f"is {rules.limit}, below the threshold of {rules.threshold}; write {rules.threshold} or more, 0 for what "
            "the model takes, or lower the threshold.",
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
    keys: list[str] = []
    table: Any = raw
    shape: Any = Settings
    for name, index in re.findall(r"\.(\w+)|\[(\.\.\.|\d+)\]", where):
        if index == "..." and is_dataclass(inner := get_args(shape)[-1]):
            keys.append(next(key for key, part in table.items() if not _fits(part, inner)))
            shape = inner
        elif name and isinstance(shape, type):
            keys.append(name)
            shape = _hints(shape)[name]
        else:
            break
        table = table[keys[-1]]
    return keys


def _fits(part: Any, shape: Any) -> bool:
    import msgspec

    try:
        msgspec.convert(part, shape, strict=True)
    except msgspec.ValidationError:
        return False
    return True


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


def _in_words(problem: str) -> str:
    """A wrong type as msgspec reports it, in words."""
    found = re.match(r"Expected `(\w+)(?: \| null)?`, got `(\w+)`", problem)
    return f"write {TYPES[found[1]]}, not {TYPES[found[2]]}" if found and {*found.groups()} <= {*TYPES} else problem


def _with_rule(where: list[str], raw: dict[str, Any]) -> list[str]:
    """The keys of `tools`, followed by the first rule in it that is wrong."""
    table: Any = raw
    for key in where:
        table = table.get(key) if isinstance(table, dict) else None
    rules = table.items() if where[-1] == "tools" and isinstance(table, dict) else ()
    return [*where, *[pattern for pattern, policy in rules if policy not in get_args(Policy)][:1]]
