"""Changes to `config.toml` that keep everything else in it as it is, comments included."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.config import ConfigError
from holdfast.read_settings import load_settings


def allow_always(path: Path, profile: str, pattern: str, *, model: str) -> None:
    """Allow whatever fits the pattern, in every session of the profile; one that was only detected is written down."""
    if profile not in load_settings(path).profiles:
        _edit(path, ["profiles", profile], {"model": model})
    _edit(path, ["profiles", profile, "tools"], {pattern: "allow"})


def add_profile(path: Path, name: str, values: dict[str, str]) -> None:
    """A new profile."""
    if name in load_settings(path).profiles:
        raise ConfigError(f"There is a profile {name!r} already; change it in {path}.")
    _edit(path, ["profiles", name], values)


def set_default(path: Path, name: str) -> None:
    """The profile of a session that names none."""
    _edit(path, [], {"default_profile": name})


def _edit(path: Path, table: list[str], values: dict[str, str]) -> None:
    import tomlkit
    import tomlkit.items

    text = path.read_text("utf-8") if path.exists() else ""
    document = tomlkit.parse(text)
    here: tomlkit.TOMLDocument | tomlkit.items.AbstractTable = document
    for position, key in enumerate(table):
        if key not in here:
            here[key] = tomlkit.table(is_super_table=position < len(table) - 1)
        inner = here[key]
        if not isinstance(inner, tomlkit.items.AbstractTable):
            raise ConfigError(f"{path}: {'.'.join(table[: position + 1])} is not a table.")
        here = inner
    for key, value in values.items():
        here[key] = value
    _replace(path, tomlkit.dumps(document))


def _replace(path: Path, text: str) -> None:
    """Whole or not at all, and only if what comes out can be read."""
    temporary = path.with_name(path.name + ".new")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    try:
        load_settings(temporary)
    except ConfigError:
        temporary.unlink()
        raise
    temporary.replace(path)
