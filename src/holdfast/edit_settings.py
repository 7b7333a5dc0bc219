"""Changes to `config.toml` that keep everything else in it as it is, comments included.

The same setting can be written in several ways (tables, dotted keys, inline tables, in any order), and no one way
of adding a key suits them all. So several are tried, and the first text that reads back as exactly the wanted
settings is written. The file is replaced as a whole, and only if it has not changed meanwhile.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from holdfast.config import ConfigError
from holdfast.read_settings import parse_settings
from holdfast.settings import DEMO

TRIES = 5
"""How often an edit starts again because the file was changed at the same time."""
HEADER = re.compile(r"\s*\[(?!\[)")
REMOVED = object()
"""Instead of a value: the key is removed."""


def allow_always(path: Path, profile: str, pattern: str, *, model: str) -> None:
    """Allow whatever fits the pattern, in every session of the profile; one that was only detected is written down."""

    def change(settings: dict[str, Any]) -> None:
        profiles = _table(path, settings, ["profiles"])
        if profile not in profiles:
            profiles[profile] = {"model": model}
        _table(path, settings, ["profiles", profile, "tools"])[pattern] = "allow"

    _edit(path, change)


def add_profile(path: Path, name: str, values: dict[str, Any]) -> None:
    """Add a profile that is not there yet."""

    def change(settings: dict[str, Any]) -> None:
        profiles = _table(path, settings, ["profiles"])
        if name in profiles or name == DEMO:
            raise ConfigError(f"The profile {name!r} exists already; change it in {path}.")
        profiles[name] = dict(values)

    _edit(path, change)


def change_profile(path: Path, name: str, values: dict[str, Any], *, otherwise: dict[str, Any]) -> None:
    """Set these values of a profile; one that config.toml does not have is written down with what is so `otherwise`."""

    def change(settings: dict[str, Any]) -> None:
        missing = name not in _table(path, settings, ["profiles"])
        profile = _table(path, settings, ["profiles", name])
        profile.update(otherwise if missing else {}, **values)
        for key in [key for key, value in profile.items() if value == {}]:
            del profile[key]

    _edit(path, change)


def remove_profile(path: Path, name: str) -> None:
    """Remove a profile that config.toml has."""

    def change(settings: dict[str, Any]) -> None:
        if name not in _table(path, settings, ["profiles"]):
            raise ConfigError(f"The profile {name!r} is not in {path}: it is built in, or was found on this machine.")
        if settings.get("default_profile") == name:
            raise ConfigError(f"New sessions use the profile {name!r}. Choose another one for them first.")
        del settings["profiles"][name]

    _edit(path, change)


def set_default(path: Path, name: str) -> None:
    """Choose the profile of a session that names none."""

    def change(settings: dict[str, Any]) -> None:
        settings["default_profile"] = name

    _edit(path, change)


def change_values(path: Path, tables: dict[str, dict[str, Any]]) -> None:
    """Set these values of these tables, and leave the rest of each table as it is."""

    def change(settings: dict[str, Any]) -> None:
        for name, values in tables.items():
            _table(path, settings, [name]).update(values)

    _edit(path, change)


def set_store(path: Path, *, url: str, url_env: str) -> None:
    """Keep the log in the database with this address, or with the address in this variable; with neither, in SQLite."""

    def change(settings: dict[str, Any]) -> None:
        given = {key: value for key, value in (("url", url), ("url_env", url_env)) if value}
        rest = {key: value for key, value in _table(path, settings, ["store"]).items() if key not in ("url", "url_env")}
        settings["store"] = rest | given
        if not settings["store"]:
            del settings["store"]

    _edit(path, change)


def add_telegram_person(path: Path, person: int, *, approve: bool) -> None:
    """Let somebody talk to the bot, and with `approve` answer approvals."""

    def change(settings: dict[str, Any]) -> None:
        telegram = _table(path, settings, ["telegram"])
        for key in ("allow", "approvers") if approve else ("allow",):
            telegram[key] = sorted({*telegram.get(key, []), person})

    _edit(path, change)


def remove_telegram_person(path: Path, person: int) -> None:
    """Let somebody neither talk to the bot nor answer approvals."""

    def change(settings: dict[str, Any]) -> None:
        telegram = _table(path, settings, ["telegram"])
        for key in ("allow", "approvers"):
            if person in telegram.get(key, []):
                telegram[key] = [one for one in telegram[key] if one != person]

    _edit(path, change)


def _table(path: Path, settings: dict[str, Any], keys: list[str]) -> dict[str, Any]:
    here = settings
    for position, key in enumerate(keys):
        inner = here.setdefault(key, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"{path}: {'.'.join(keys[: position + 1])} is not a table.")
        here = inner
    return here


def _edit(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Read, change and replace; again if the file was changed meanwhile."""
    target = path.resolve()  # a link to a file elsewhere stays a link
    try:
        with _exclusive_draft(target) as draft:
            for _ in range(TRIES):
                before = _read(target)
                text = before.decode("utf-8")
                parse_settings(path, text)  # a broken file is left alone; the error names the line
                wanted = tomllib.loads(text)
                change(wanted)
                after = _written(text, wanted)
                if after is None:
                    raise ConfigError(
                        f"{path}: the change does not fit into the file as it is written; edit it by hand."
                    )
                try:
                    parse_settings(path, after)
                except ConfigError as error:  # its line is one of a file that is never written
                    raise ConfigError(str(error).removeprefix(f"{path}:").partition(": ")[2]) from error
                if _replace(target, draft, before, after.encode("utf-8")):
                    return
    except OSError as error:
        raise ConfigError(f"{path} cannot be changed: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from error
    raise ConfigError(f"{path} cannot be changed: something else keeps changing it at the same time. Try again.")


@contextmanager
def _exclusive_draft(target: Path) -> Iterator[BinaryIO]:
    """The file that will replace the target, locked: only one of our own processes edits at a time.

    A process that waited for the lock may hold a file that has become the target since; then it starts again.
    """
    path = _draft_path(target)
    while True:
        with open(path, "ab", opener=_open_private) as draft:
            fcntl.flock(draft, fcntl.LOCK_EX)
            if not _is_at(path, draft):
                continue
            try:
                yield draft
            finally:
                if _is_at(path, draft):
                    path.unlink()
            return


def _draft_path(target: Path) -> Path:
    return target.with_name(target.name + ".new")


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _is_at(path: Path, file: BinaryIO) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _replace(path: Path, draft: BinaryIO, before: bytes, after: bytes) -> bool:
    """Whole or not at all, and with the rights that it had; False when the file is no longer what was read."""
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o600
    if not mode & stat.S_IWUSR:
        raise PermissionError(errno.EACCES, "it is read-only")  # replacing it would go around that
    draft.truncate(0)
    draft.write(after)
    draft.flush()
    os.fchmod(draft.fileno(), mode)
    os.fsync(draft.fileno())
    if _read(path) != before:
        return False
    _draft_path(path).replace(path)
    return True


# --- the ways to write a change -----------------------------------------------------------------


def _written(text: str, wanted: dict[str, Any]) -> str | None:
    """The text that says what is wanted, with as little changed as possible; None when no way was found."""
    for key_path, value in list(_changes(tomllib.loads(text), wanted, ())):
        step = _with(tomllib.loads(text), key_path, value)
        ways = _ways_without(text, key_path) if value is REMOVED else _ways(text, key_path, value)
        found = next((way for way in ways if _reads_as(way, step)), None)
        if found is None:
            return None
        text = found
    return text


def _changes(old: dict[str, Any], new: dict[str, Any], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each value that is new, different or removed, by its keys; a table goes in or out whole."""
    for key, value in new.items():
        if key not in old or not isinstance(value, dict):
            if key not in old or old[key] != value:
                yield (*above, key), value
        elif isinstance(old[key], dict):
            yield from _changes(old[key], value, (*above, key))
    yield from (((*above, key), REMOVED) for key in old if key not in new)


def _with(settings: dict[str, Any], keys: tuple[str, ...], value: object) -> dict[str, Any]:
    here = settings
    for key in keys[:-1]:
        here = here.setdefault(key, {})
    if value is REMOVED:
        del here[keys[-1]]
    else:
        here[keys[-1]] = value
    return settings


def _reads_as(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return _filled(tomllib.loads(text)) == _filled(wanted)
    except tomllib.TOMLDecodeError:
        return False


def _filled(settings: dict[str, Any]) -> dict[str, Any]:
    """Without empty tables, which say nothing: with the last profile goes the table of profiles."""
    inner = {key: _filled(value) if isinstance(value, dict) else value for key, value in settings.items()}
    return {key: value for key, value in inner.items() if value != {}}


def _ways(text: str, keys: tuple[str, ...], value: Any) -> Iterator[str]:
    """Ways to write it, the nicest first. Some give a text that is wrong; the caller reads each back."""
    import tomlkit
    import tomlkit.exceptions

    for inline in (False, True):
        try:
            yield _by_library(text, keys, value, inline=inline)
        except (tomlkit.exceptions.TOMLKitError, ValueError, KeyError, TypeError, AttributeError):
            continue
    newline = "\r\n" if "\r\n" in text else "\n"
    table, plain = (keys, value) if isinstance(value, dict) else (keys[:-1], {keys[-1]: value})
    lines = text.splitlines()
    headers = [number for number, line in enumerate(lines) if HEADER.match(line)]
    for depth in range(len(table), -1, -1):
        added = [f"{_dotted((*table[depth:], key))} = {_literal(each)}" for key, each in _flat(plain)]
        for number in headers if depth else [-1]:
            yield newline.join([*lines[: number + 1], *added, *lines[number + 1 :], ""])
    added = [f"{_dotted(key)} = {_literal(each)}" for key, each in _flat(plain)]
    yield newline.join([*lines, "", f"[{_dotted(table)}]", *added, ""])


def _ways_without(text: str, keys: tuple[str, ...]) -> Iterator[str]:
    """Ways to remove a key, the nicest first. Some give a text that is wrong; the caller reads each back."""
    import tomlkit.exceptions

    for way in (_without_by_library, _without_lines):
        try:
            yield way(text, keys)
        except (tomlkit.exceptions.TOMLKitError, ValueError, KeyError, TypeError, AttributeError):
            continue


def _without_by_library(text: str, keys: tuple[str, ...]) -> str:
    import tomlkit

    document = tomlkit.parse(text)
    here: Any = document
    for key in keys[:-1]:
        here = here[key]
    del here[keys[-1]]
    return tomlkit.dumps(document)


def _without_lines(text: str, keys: tuple[str, ...]) -> str:
    """Without its tables and the lines that set something in it."""
    kept: list[str] = []
    table: tuple[str, ...] = ()
    for line in text.splitlines(keepends=True):
        if HEADER.match(line):
            table = line_keys = _keys_of(line)
        else:
            line_keys = (*table, *_keys_of(line))
        if line_keys[: len(keys)] != keys:
            kept.append(line)
    return "".join(kept)


def _keys_of(line: str) -> tuple[str, ...]:
    """The keys of a table's head, or of a value on one line; nothing for any other line."""
    try:
        here: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ()
    found: list[str] = []
    while isinstance(here, dict) and len(here) == 1:
        [(key, here)] = here.items()
        found.append(key)
    return tuple(found)


def _by_library(text: str, keys: tuple[str, ...], value: Any, *, inline: bool) -> str:
    import tomlkit

    document = tomlkit.parse(text)
    here: Any = document
    for position, key in enumerate(keys[:-1]):
        if key not in here:
            here[key] = tomlkit.inline_table() if inline else tomlkit.table(is_super_table=position < len(keys) - 2)
        here = here[key]
    here[keys[-1]] = _item(value, inline=inline)
    return tomlkit.dumps(document)


def _item(value: Any, *, inline: bool) -> Any:
    import tomlkit

    if not isinstance(value, dict):
        return value
    table = tomlkit.inline_table() if inline else tomlkit.table(is_super_table=_only_tables(value))
    for key, each in value.items():
        table[key] = _item(each, inline=inline)
    return table


def _only_tables(value: dict[str, Any]) -> bool:
    return bool(value) and all(isinstance(each, dict) for each in value.values())


def _flat(values: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, (*above, key))
        else:
            yield (*above, key), value


def _dotted(keys: tuple[str | tuple[str, ...], ...]) -> str:
    parts = [part for key in keys for part in (key if isinstance(key, tuple) else (key,))]
    return ".".join(part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else _literal(part) for part in parts)


def _literal(text: str | int | bool) -> str:
    """A TOML string, number or boolean. JSON writes the same one, but for a character that TOML wants escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
