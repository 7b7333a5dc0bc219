"""The settings that all nodes share, in the database: profiles, rules, notifications, and whatever else is not about a
machine (`OF_THE_MACHINE`).

The first node stores those of its own config.toml. From then on they are changed here only, version by version, and
every node has the newest within a moment. What config.toml of a node says besides is not in force: that is said, unless
it is what was stored once.
"""

from __future__ import annotations

import asyncio
import logging
import tomllib
from pathlib import Path
from typing import Any

from holdfast.clock import Clock
from holdfast.config import ConfigError
from holdfast.domain.errors import Conflict, HoldfastError, Rejected
from holdfast.edit_settings import TRIES, SettingsChange, edit_text
from holdfast.periodic import FollowerState
from holdfast.profiles import Profiles
from holdfast.read_settings import parse_settings
from holdfast.settings import OF_THE_MACHINE
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
    """Return the shared settings as a config.toml, with what another one says about its machine."""
    machine = {key: value for key, value in tomllib.loads(text).items() if key in OF_THE_MACHINE}
    whole = written(shared, {**tomllib.loads(shared), **machine})
    assert whole is not None, "tables can be added to any settings"
    return whole


def check_shared(text: str) -> None:
    """ConfigError if these cannot be the settings of all nodes."""
    if len(text) > LARGEST:
        raise ConfigError("The settings are too long.")
    parse_settings(NAME, text)
    for key in tomllib.loads(text):
        if key in OF_THE_MACHINE:
            raise ConfigError(NOT_FOR_ALL.format(f"[{key}]"))


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
                    await changes.wait()
                changes.drain()
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
            text = await asyncio.to_thread(self._file_text)
            first = SettingsRow(1, shared_part(text), f"config.toml of node {self._node}", self._clock.now())
            if await self._settings.add(first):
                log.info("the settings of config.toml are those of all nodes from now on")
            row = await self._settings.newest() or first
        self._use(row)
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

    def _use(self, row: SettingsRow) -> None:
        if self.row is not None and row.version <= self.row.version:
            return
        unknown: list[str] = []
        try:
            settings = parse_settings(NAME, row.text, unknown=unknown)
        except ConfigError as error:
            before = "those of config.toml are" if self.row is None else f"version {self.row.version} is"
            self._unreadable = f"Version {row.version} cannot be used by this node, so {before} in force: {error}"
            return
        self.row, self._unreadable = row, ""
        listed = ", ".join(unknown)
        self._unknown = f"This node is older and ignores what it does not know: {listed}." if listed else ""
        self._profiles.use_shared(settings)

    def _file_text(self) -> str:
        try:
            return self._profiles.path.read_text("utf-8")
        except FileNotFoundError:
            return ""

    async def _ignored(self) -> str:
        """Return what config.toml says that is not in force and never was; empty if there is nothing."""
        try:
            ours = _meant(await asyncio.to_thread(self._file_text))
        except (OSError, ValueError):
            return ""  # it has an error, which is said elsewhere
        if not ours or self.row is None or ours == _meant(self.row.text):
            return ""
        if any(ours == _meant(text) for text in await self._settings.texts()):
            return ""
        there = _meant(self.row.text)
        differ = ", ".join(key for key in ours if ours[key] != there.get(key)) or ", ".join(ours)
        return (
            f"{self._profiles.path} sets {differ}, which is not in force: the settings of all nodes are in the"
            " database. `holdfast config push` puts those of the file into force on all nodes; or remove them from it."
        )

    def _report(self, problem: str) -> None:
        if problem != self.state.problem:
            self.state.problem, self.state.since = problem, self._clock.now()
            if problem:
                log.warning("settings: %s", problem)


def _meant(text: str) -> dict[str, Any]:
    return {key: value for key, value in tomllib.loads(text).items() if key not in OF_THE_MACHINE and value != {}}
