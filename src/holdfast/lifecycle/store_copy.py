"""Copies the log of a home from SQLite to PostgreSQL or back, with everything beside it that is in the store.

No gateway may use either of them. The settings that nodes share and their key for push services go along: they are
files of a home, and rows in PostgreSQL. Other files of the home (outputs of commands, workspaces) stay where they are.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.clock import SystemClock
from holdfast.config import ConfigError, Home, environment
from holdfast.domain.errors import Corrupt, Rejected
from holdfast.edit_settings import edit_file, set_store
from holdfast.lifecycle.shared_files import files_for, push_key_of, settings_of
from holdfast.read_settings import load_settings
from holdfast.settings import has_password
from holdfast.store.copying import CopyReport, Progress, copy_store
from holdfast.store.home_lock import HomeLock
from holdfast.store.settings_store import SettingsRow
from holdfast.store.sqlite import copying as sqlite

if TYPE_CHECKING:
    from holdfast.store.postgres.connections import Database

VARIABLE = "env:"
ADDRESS = re.compile(r"postgres(ql)?://|[a-z_]+\s*=", re.IGNORECASE)
"""How an address begins that libpq can read; anything else is a path."""


@dataclass(frozen=True, slots=True)
class StorePlace:
    """A home or a SQLite file; or the address of a PostgreSQL database, or the variable that holds it."""

    text: str

    @property
    def is_server(self) -> bool:
        """Whether it is a database server."""
        return self.text.startswith(VARIABLE) or ADDRESS.match(self.text) is not None

    @property
    def variable(self) -> str:
        """The name of the variable that holds the address, if it is given so."""
        return self.text.removeprefix(VARIABLE) if self.text.startswith(VARIABLE) else ""

    @property
    def address(self) -> str:
        """The address of the server. Rejected if it is not set, or shows a password."""
        if self.variable:
            found = environment(self.variable)
            if not found:
                raise Rejected(f"{self.variable} is not set.", hint="Set it to the address of the database.")
            return found
        if has_password(self.text):
            what = "The address holds a password, which everybody on this machine could see."
            raise Rejected(what, hint="Put the address into a variable, and give env:NAME instead; or use ~/.pgpass.")
        return self.text

    @property
    def home(self) -> Home:
        """The home that the file is in."""
        path = Path(self.text).expanduser().absolute()
        return Home(path.parent if self._is_file(path) else path)

    @property
    def file(self) -> Path:
        """The database file."""
        path = Path(self.text).expanduser().absolute()
        return path if self._is_file(path) else Home(path).database

    @staticmethod
    def _is_file(path: Path) -> bool:
        return path.is_file() or (path.suffix == ".db" and not path.is_dir())


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy has done."""

    report: CopyReport
    settings: bool = False
    """Whether settings of config.toml went along."""
    push_key: bool = False
    kept: tuple[Path, ...] = ()
    """The files of the home that said something else, where they are now."""


def copy(source: StorePlace, target: StorePlace, progress: Progress) -> Copied:
    """Copy everything from one engine to the other. Conflict while a gateway runs, or if the target is not empty."""
    if source.is_server == target.is_server:
        if source.is_server:
            hint = "To copy one database to another, use pg_dump and pg_restore."
            raise Rejected("FROM and TO are both PostgreSQL databases; one must be a home with SQLite.", hint=hint)
        hint = "To copy a home, stop its gateway and copy the directory."
        raise Rejected("FROM and TO are both homes with SQLite; one must be the address of a database.", hint=hint)
    if not source.is_server:
        with _locked(source), sqlite.open_source(source.file) as tables:
            return asyncio.run(_to_server(source.home, tables, _database(target.address), progress))
    database = _database(source.address)
    target.home.prepare()
    with _locked(target), sqlite.open_target(target.file) as tables:
        return asyncio.run(_from_server(database, target.home, tables, progress))


def switch(source: StorePlace, target: StorePlace) -> None:
    """Have the home of the copy use its target from now on."""
    url, url_env = ("", target.variable) if target.variable else (target.text if target.is_server else "", "")
    edit_file(config_of(source, target), set_store(url=url, url_env=url_env))


def config_of(source: StorePlace, target: StorePlace) -> Path:
    """The settings that say which of both is used."""
    return (source if target.is_server else target).home.config


def how_to_use(source: StorePlace, target: StorePlace) -> str:
    """What a person has to do so that gateways use the copy."""
    config = config_of(source, target)
    if target.is_server:
        setting = f'url_env = "{target.variable}"' if target.variable else f'url = "{target.text}"'
        return f"to use it, write into {config}: [store] {setting}"
    if load_settings(config).store.is_server:
        return f"to use it, remove the address from [store] in {config}"
    return f"the next gateway in {target.home.path} uses it"


@contextmanager
def _locked(place: StorePlace) -> Iterator[None]:
    """Keep gateways away from a home; a database file elsewhere, such as a backup, has no gateway."""
    home = place.home
    if not home.run.is_dir():
        yield
        return
    home.check()
    lock = HomeLock(home.lock)
    try:
        yield
    finally:
        lock.release()


def _database(address: str) -> Database:
    try:
        from holdfast.store.postgres.connections import Database
    except ModuleNotFoundError as error:
        raise ConfigError(f"PostgreSQL needs {error.name}: install holdfast[postgres].") from error
    return Database(address)


async def _to_server(home: Home, source: sqlite.SqliteTables, database: Database, progress: Progress) -> Copied:
    from holdfast.store.postgres.copying import open_target

    settings, push_key = settings_of(home), push_key_of(home)
    async with open_target(database) as target:
        report = await copy_store(source, target, progress)
        if settings:
            by = f"the copy of {home.path}"
            await target.write_settings(SettingsRow(1, settings, by, SystemClock().now()))
        if push_key:
            await target.write_key(home.push_key.name, push_key)
        await target.commit()
    return Copied(report, bool(settings), bool(push_key))


async def _from_server(database: Database, home: Home, target: sqlite.SqliteTables, progress: Progress) -> Copied:
    from holdfast.store.postgres.copying import open_source

    async with open_source(database) as source:
        settings, push_key = await source.settings(), await source.key(home.push_key.name)
        files = files_for(home, settings=settings, push_key=push_key)
        report = await copy_store(source, target, progress)
        for file in files:  # without the log they change nothing: the home still uses the database
            file.write()
        if rest := files_for(home, settings=settings, push_key=push_key):
            raise Corrupt(f"{rest[0].path} is not what was written. The copy was given up.")
        await target.commit()
    kept = tuple(file.former for file in files if file.is_replaced)
    return Copied(report, bool(settings), bool(push_key), kept)
