"""Changes to settings (`config.toml`, or those of all nodes) that keep everything else as it is, comments included.

How a change is written into a text: `toml_edits.py`. A file is replaced as a whole, and only if it has not changed
meanwhile.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from holdfast.config import ConfigError
from holdfast.read_settings import parse_settings
from holdfast.settings import DEMO
from holdfast.toml_edits import written

TRIES = 5
"""How often an edit starts again because the file was changed at the same time."""
SettingsChange = Callable[[dict[str, Any]], None]
"""Changes settings as TOML reads them."""


def allow_always(profile: str, pattern: str, *, model: str) -> SettingsChange:
    """Allow whatever fits the pattern, in every session of the profile; one that was only detected is written down."""

    def change(settings: dict[str, Any]) -> None:
        profiles = _table(settings, ["profiles"])
        if profile not in profiles:
            profiles[profile] = {"model": model}
        _table(settings, ["profiles", profile, "tools"])[pattern] = "allow"

    return change


def add_profile(name: str, values: dict[str, Any]) -> SettingsChange:
    """Add a profile that is not there yet."""

    def change(settings: dict[str, Any]) -> None:
        profiles = _table(settings, ["profiles"])
        if name in profiles or name == DEMO:
            raise ConfigError(f"The profile {name!r} exists already; `holdfast profiles edit {name}` changes it.")
        profiles[name] = dict(values)

    return change


def change_profile(name: str, values: dict[str, Any], *, otherwise: dict[str, Any]) -> SettingsChange:
    """Set these values of a profile; one that config.toml does not have is written down with what is so `otherwise`."""

    def change(settings: dict[str, Any]) -> None:
        missing = name not in _table(settings, ["profiles"])
        profile = _table(settings, ["profiles", name])
        profile.update(otherwise if missing else {}, **values)
        for key in [key for key, value in profile.items() if value == {}]:
            del profile[key]

    return change


def remove_profile(name: str) -> SettingsChange:
    """Remove a profile that config.toml has."""

    def change(settings: dict[str, Any]) -> None:
        if name not in _table(settings, ["profiles"]):
            raise ConfigError(
                f"The profile {name!r} is not in the settings: it is built in, or was detected on this machine."
            )
        if settings.get("default_profile") == name:
            raise ConfigError(f"New sessions use the profile {name!r}. Choose another one for them first.")
        del settings["profiles"][name]

    return change


def set_default(name: str) -> SettingsChange:
    """Choose the profile of a session that names none."""

    def change(settings: dict[str, Any]) -> None:
        settings["default_profile"] = name

    return change


def change_values(tables: dict[str, dict[str, Any]]) -> SettingsChange:
    """Set these values of these tables, and leave the rest of each table as it is."""

    def change(settings: dict[str, Any]) -> None:
        for name, values in tables.items():
            _table(settings, [name]).update(values)

    return change


def set_store(*, url: str, url_env: str) -> SettingsChange:
    """Keep the log in the database with this address, or with the address in this variable; with neither, in SQLite."""

    def change(settings: dict[str, Any]) -> None:
        given = {key: value for key, value in (("url", url), ("url_env", url_env)) if value}
        rest = {key: value for key, value in _table(settings, ["store"]).items() if key not in ("url", "url_env")}
        settings["store"] = rest | given
        if not settings["store"]:
            del settings["store"]

    return change


def add_telegram_person(person: int, *, approve: bool) -> SettingsChange:
    """Let somebody talk to the bot, and with `approve` answer approvals."""

    def change(settings: dict[str, Any]) -> None:
        telegram = _table(settings, ["telegram"])
        for key in ("allow", "approvers") if approve else ("allow",):
            telegram[key] = sorted({*telegram.get(key, []), person})

    return change


def remove_telegram_person(person: int) -> SettingsChange:
    """Let somebody neither talk to the bot nor answer approvals."""

    def change(settings: dict[str, Any]) -> None:
        telegram = _table(settings, ["telegram"])
        for key in ("allow", "approvers"):
            if person in telegram.get(key, []):
                telegram[key] = [one for one in telegram[key] if one != person]

    return change


def _table(settings: dict[str, Any], keys: list[str]) -> dict[str, Any]:
    here = settings
    for position, key in enumerate(keys):
        inner = here.setdefault(key, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"{'.'.join(keys[: position + 1])} is not a table.")
        here = inner
    return here


def edit_file(path: Path, change: SettingsChange) -> None:
    """Read, change and replace a file; again if it was changed meanwhile."""
    target = path.resolve()  # a link to a file elsewhere stays a link
    try:
        with _exclusive_draft(target) as draft:
            for _ in range(TRIES):
                before = _read(target)
                after = edit_text(path, before.decode("utf-8"), change)
                if _replace(target, draft, before, after.encode("utf-8")):
                    return
    except OSError as error:
        raise ConfigError(f"{path} cannot be changed: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from error
    raise ConfigError(f"{path} cannot be changed: something else keeps changing it at the same time. Try again.")


def edit_text(name: Path, text: str, change: SettingsChange) -> str:
    """Return settings with a change, as valid as they were. Errors call them by this name."""
    parse_settings(name, text)  # what is broken is left alone; the error names the line
    wanted = tomllib.loads(text)
    change(wanted)
    after = written(text, wanted)
    if after is None:
        raise ConfigError(f"{name}: the change does not fit into it as it is written; edit it by hand.")
    try:
        parse_settings(name, after)
    except ConfigError as error:  # its line is one of a text that is never written
        raise ConfigError(str(error).removeprefix(f"{name}:").partition(": ")[2]) from error
    return after


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
