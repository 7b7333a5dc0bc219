"""`holdfast store`: where the log is, and how it moves between SQLite and PostgreSQL."""

from __future__ import annotations

import time

import click

from holdfast.cli.context import Cli
from holdfast.cli.errors import FAILED, USAGE, CliError
from holdfast.cli.groups import NounGroup
from holdfast.cli.screen import plural

REPORT_SECONDS = 2.0


@click.group(cls=NounGroup, default="show")
def store() -> None:
    """Show where the log is kept, and copy it from SQLite to PostgreSQL or back. Without a verb: show."""


@store.verb("Show")
def show(cli: Cli) -> None:
    """Show where the log of the home is kept: in SQLite, or in a PostgreSQL database."""
    from holdfast.config import ConfigError
    from holdfast.read_settings import load_settings

    try:
        settings = load_settings(cli.home.config).store
    except ConfigError as error:
        raise CliError(str(error), code=USAGE) from error
    if not settings.is_server:
        where = str(cli.home.database)
        cli.result(f"SQLite, {where}", engine="sqlite", where=where)
        return
    where = f"the address in {settings.url_env}" if settings.url_env else settings.url
    cli.result(f"PostgreSQL, {where} ([store] in {cli.home.config})", engine="postgres", where=where)


@store.verb("Change")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--switch", is_flag=True, help="Have the home use TO from now on: changes [store] in its config.toml.")
def copy(cli: Cli, source: str, target: str, switch: bool) -> None:
    """Copy the whole log FROM SQLite TO PostgreSQL or back, compare every row, and only then keep the copy.

    One of them is a home (or its holdfast.db), the other the address of a database without a password,
    postgresql://user@host/database, or env:NAME for the variable that holds it. No gateway may use them, and TO
    must be empty. The settings that nodes share and the key push.pem go along; a file of the home that says something
    else is kept as FILE.old. Outputs of commands and workspaces stay in the home.
    """
    from holdfast.config import ConfigError
    from holdfast.lifecycle import store_copy

    places = store_copy.StorePlace(source), store_copy.StorePlace(target)
    try:
        copied = store_copy.copy(*places, _Progress(cli))
    except ConfigError as error:
        raise CliError(str(error), code=USAGE) from error
    except OSError as error:
        raise CliError(f"{error}.", hint="Nothing was changed.", code=FAILED) from error
    config, report = store_copy.config_of(*places), copied.report
    try:
        if switch:
            store_copy.switch(*places)
        used = f"gateways in {config.parent} use it from now on" if switch else store_copy.how_to_use(*places)
    except ConfigError as error:
        raise CliError(f"The copy is complete, but {error}", hint=f"Correct [store] in {config} by hand.") from error
    others = sum(report.rows.values()) - report.events
    lines = [
        f"copied and compared {plural(report.events, 'event')} and {plural(others, 'other row')}",
        f"digest of the events (SHA-256): {report.digest}",
    ]
    if report.damaged:
        lines.append(f"{plural(report.damaged, 'event')} did not match the checksum before, and so in the copy")
    along = [name for name, went in (("shared settings", copied.settings), ("push.pem", copied.push_key)) if went]
    if along:
        lines.append(f"with it went: {', '.join(along)}")
    lines += [f"what was there before is in {former}" for former in copied.kept]
    lines.append(used)
    fields = {"events": report.events, "rows": report.rows, "digest": report.digest, "damaged": report.damaged}
    moved = {"settings": copied.settings, "push_key": copied.push_key, "kept": [str(path) for path in copied.kept]}
    cli.result("\n".join(lines), **fields, **moved, switched=switch)


class _Progress:
    """Prints how far a long copy is, every few seconds."""

    def __init__(self, cli: Cli) -> None:
        self._cli = cli
        self._printed = time.monotonic()

    def __call__(self, what: str, done: int, of: int) -> None:
        if time.monotonic() - self._printed >= REPORT_SECONDS:
            self._printed = time.monotonic()
            self._cli.note(f"{what}: {done:,} of {of:,}")
