"""Writes changes into a TOML text that keep everything else in it as it is, comments included.

The same setting can be written in several ways (tables, dotted keys, inline tables, in any order), and no one way
of adding a key suits them all. So several are tried, and the first text that reads back as exactly the wanted
settings is returned.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

HEADER = re.compile(r"\s*\[(?!\[)")
REMOVED = object()
"""Instead of a value: the key is removed."""


def written(text: str, wanted: dict[str, Any]) -> str | None:
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
