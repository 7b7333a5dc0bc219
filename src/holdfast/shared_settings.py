"""The settings that all nodes share, in the database: profiles, rules, notifications, and whatever else is not about a
machine (`OF_THE_MACHINE`).

The first node stores those of its own config.toml. From then on they are changed here only, version by version, and
every node has the newest within a moment. What config.toml of a node says besides is not in force: that is said, unless
it says what it said when that was in force.
"""

from __future__ import annotations

import asyncio
import json
import logging
import tomllib
from collections.abc import Iterable
from contextlib import suppress
from hashlib import blake2s
from pathlib import Path
from typing import Any

from holdfast.clock import Clock
from holdfast.config import ConfigError, Home, write_private
from holdfast.domain.errors import Conflict, HoldfastError, Rejected
from holdfast.edit_settings import TRIES, SettingsChange, edit_text
from holdfast.periodic import FollowerState
from holdfast.profiles import Profiles
from holdfast.read_settings import parse_settings
from holdfast.settings import OF_THE_MACHINE, Settings
from holdfast.store.contract import Store
from holdfast.store.settings_store import SETTINGS, SettingsRow, SettingsStore
from holdfast.toml_edits import written

NAME = Path("shared settings")
"""What errors call them."""
AGAIN_SECONDS = 2.0
LARGEST = 1_000_000
NOT_FOR_ALL = "{} is about one machine: it stays in config.toml of each node."
log = logging.getLogger(__name__)


def shared_part(text: str) -> str:
    """Return what nodes share of the text of a config.toml, with its comments."""
    wanted = {key: value for key, value in tomllib.loads(text).items() if key not in OF_THE_MACHINE}
    kept = written(text, wanted)
    if kept is None:
        kept = written("", wanted)
    assert kept is not None, "an empty text takes any settings"
    return kept


def removed_by(text: str, wanted: str) -> list[str]:
    """Return the settings of one text that another one does not have, as `profiles.careful`."""
    before, after = _paths(tomllib.loads(text)), _paths(tomllib.loads(wanted))
    return sorted({".".join(path[:2]) for path in before - after})


def _paths(values: object, path: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    if not isinstance(values, dict):
        return {path}
    return {path} | {found for key, value in values.items() for found in _paths(value, (*path, key))}


def with_machine_part(shared: str, text: str) -> str:
    """Return the shared settings as a config.toml, with what another one says about its machine, and their comments."""
    machine = {key: value for key, value in tomllib.loads(text).items() if key in OF_THE_MACHINE}
    wanted = {**tomllib.loads(shared), **machine}
    own = written(text, machine)
    both = "\n\n".join(filter(None, [shared.strip(), (own or "").strip()])) + "\n"
    if _reads_as(both, wanted):
        return both
    whole = written(shared, wanted)
    assert whole is not None, "tables can be added to any settings"
    return whole


def _reads_as(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == wanted
    except tomllib.TOMLDecodeError:
        return False


def check_shared(text: str) -> None:
    """ConfigError if these cannot be the settings of all nodes."""
    if len(text) > LARGEST:
        raise ConfigError("The settings are too long.")
    parse_settings(NAME, text)
    for key in tomllib.loads(text):
        if key in OF_THE_MACHINE:
            raise ConfigError(NOT_FOR_ALL.format(f"[{key}]"))


def read_shared(text: str) -> tuple[Settings, str]:
    """Return the settings that nodes share, and what of them this version does not know, as a sentence."""
    unknown: list[str] = []
    settings = parse_settings(NAME, text, unknown=unknown)
    listed = ", ".join(unknown)
    return settings, f"This node is older and ignores what it does not know: {listed}." if listed else ""


def differs(home: Home, newest: str) -> bool:
    """Return whether config.toml of a home sets something else than is in force on all nodes.

    What it said when it was the same is remembered, so that it is known later whether it was changed since.
    """
    try:
        ours, seen = meant(_text_of(home.config)), _seen(home)
        is_other = bool(ours) and ours != meant(newest)
        if not seen or (not is_other and seen != _digest(ours)):
            write_private(home.settings_seen, _digest(ours))
    except (OSError, ValueError):
        return False  # it has an error, which is said elsewhere
    return is_other


def not_in_force(home: Home, newest: str, earlier: Iterable[str]) -> str:
    """Return what config.toml of a home sets that is not in force, as a sentence.

    Empty if there is nothing, and as long as it says what was in force once: others have changed that since.
    """
    try:
        ours, there, seen = meant(_text_of(home.config)), meant(newest), _seen(home)
    except (OSError, ValueError):
        return ""
    if not ours or ours == there:
        return ""
    differ = ", ".join(key for key in ours if ours[key] != there.get(key)) or ", ".join(ours)
    how = f"sets {differ}, which is not in force"
    if any(ours == meant(text) for text in earlier):
        if seen in (b"", _digest(ours)):
            return ""
        how = f"was set back to an older version of {differ}, which is not in force"
    return (
        f"{home.config} {how}: the settings of all nodes are in the database. `holdfast config push` puts those of the"
        " file into force on all nodes; or remove them from it."
    )


def _digest(meant: dict[str, Any]) -> bytes:
    return blake2s(json.dumps(meant, sort_keys=True, default=str).encode()).hexdigest().encode()


def _seen(home: Home) -> bytes:
    return home.settings_seen.read_bytes() if home.settings_seen.exists() else b""


class SharedSettings:
    """Keeps `profiles` at the newest version, and stores changes."""

    def __init__(self, store: Store, settings: SettingsStore, profiles: Profiles, clock: Clock) -> None:
        self._node = store.node
        self._settings = settings
        self._profiles = profiles
        self._clock = clock
        self._changes = store.subscribe(SETTINGS)
        self._following: asyncio.Task[None] | None = None
        self.row: SettingsRow | None = None
        """The version in force; None while the server could not be asked."""
        self.state = FollowerState("settings")
        self._unreadable = self._unknown = ""
        self._file = profiles.file
        """What config.toml said when it was last compared."""
        profiles.shared = self

    async def start(self) -> None:
        """Have them in force, and follow changes. Until the server can be asked, those of config.toml are in force."""
        try:
            await self.refresh()
        except HoldfastError as error:
            log.warning("the shared settings cannot be read yet: %s", error)
        self._following = asyncio.create_task(self._follow(), name="the shared settings")

    async def stop(self) -> None:
        """Stop following."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)

    async def _follow(self) -> None:
        with self._changes as changes:
            is_stale = self.row is None
            while True:
                if is_stale:
                    await asyncio.sleep(AGAIN_SECONDS)
                else:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(AGAIN_SECONDS):
                            await changes.wait()
                if not (changes.drain() or is_stale or self._profiles.newest_file is not self._file):
                    continue
                try:
                    await self.refresh()
                    is_stale = False
                except HoldfastError as error:
                    is_stale = True
                    log.warning("the shared settings could not be read again: %s", error)

    async def refresh(self) -> SettingsRow:
        """Have the newest version in force; the first node stores its own."""
        row = await self._settings.newest()
        if row is None:
            text = await asyncio.to_thread(_text_of, self._profiles.path)
            first = SettingsRow(1, shared_part(text), f"config.toml of node {self._node}", self._clock.now())
            if await self._settings.add(first):
                log.info("the settings of config.toml are those of all nodes from now on")
            row = await self._settings.newest() or first
        await self._use(row)
        ignored = await self._ignored()
        self._report(" ".join(filter(None, [self._unreadable, self._unknown, ignored])))
        return row

    async def edit(self, change: SettingsChange, *, by: str) -> None:
        """Store a change, and have it in force here; on other nodes it is in a moment."""
        for _ in range(TRIES):
            row = await self.refresh()
            text = edit_text(NAME, row.text, change)
            if text == row.text or await self._store(row, text, by=by):
                return
        raise ConfigError("The settings cannot be changed: others keep changing them at the same time. Try again.")

    async def replace(self, text: str, *, version: int, by: str) -> SettingsRow:
        """Store a whole text instead of a version. Rejected if it is wrong, Conflict if that is not the newest."""
        try:
            check_shared(text)
        except ConfigError as error:
            raise Rejected(str(error), hint="Nothing was changed.") from error
        row = await self.refresh()
        if row.version != version or not await self._store(row, text, by=by):
            raise Conflict("Somebody else has changed the settings meanwhile.", hint="Look at them, then try again.")
        assert self.row is not None
        return self.row

    async def _store(self, before: SettingsRow, text: str, *, by: str) -> bool:
        check_shared(text)
        row = SettingsRow(before.version + 1, text, by, self._clock.now())
        if not await self._settings.add(row):
            return False
        log.info("the settings were changed by %s: version %d", by, row.version)
        await self.refresh()
        return True

    # --- what is in force -----------------------------------------------------------------------

    async def _use(self, newest: SettingsRow) -> None:
        """Have the newest version in force; if this node cannot use it, the newest one that it can."""
        if self.row is not None and newest.version <= self.row.version:
            return
        problem = self._try(newest)
        if problem and self.row is None:
            for row in await self._settings.versions():
                if row.version < newest.version and not self._try(row):
                    break
        instead = "those of config.toml are" if self.row is None else f"version {self.row.version} is"
        self._unreadable = problem and (
            f"Version {newest.version} cannot be used by this node, so {instead} in force: {problem}"
        )

    def _try(self, row: SettingsRow) -> str:
        """Have a version in force; return why this node cannot use it."""
        try:
            settings, self._unknown = read_shared(row.text)
        except ConfigError as error:
            return str(error)
        self.row = row
        self._profiles.use_shared(settings)
        return ""

    async def _ignored(self) -> str:
        """Return what config.toml says that is not in force; empty if there is nothing."""
        if self.row is None:
            return ""
        self._file = self._profiles.newest_file
        home, newest = Home(self._profiles.path.parent), self.row.text
        if not await asyncio.to_thread(differs, home, newest):
            return ""
        earlier = [row.text for row in await self._settings.versions()]
        return await asyncio.to_thread(not_in_force, home, newest, earlier)

    def _report(self, problem: str) -> None:
        if problem != self.state.problem:
            self.state.problem, self.state.since = problem, self._clock.now()
            if problem:
                log.warning("settings: %s", problem)


def meant(text: str) -> dict[str, Any]:
    """Return what a text sets that all nodes share; the same for texts that mean the same."""
    return {key: value for key, value in tomllib.loads(text).items() if key not in OF_THE_MACHINE and value != {}}


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return ""
