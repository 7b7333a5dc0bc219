"""Where the settings of a home are, and how they are changed: in config.toml, or in the database of several nodes."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import asdict

from holdfast.cli.context import Cli
from holdfast.cli.errors import USAGE, CliError
from holdfast.cli.screen import ago, clean
from holdfast.client.errors import GatewayNotRunning
from holdfast.client.lenient import convert
from holdfast.config import ConfigError, Home
from holdfast.domain.errors import Conflict, NotFound
from holdfast.schemas.gateway import SharedSettingsView

if TYPE_CHECKING:
    from holdfast.settings import Settings

CORRECT = "Correct it, then run `holdfast config check`."
VERSION_LINE = "# Settings of all nodes, version "
DATABASE = "the settings of all nodes"
SHARED = "/v1/settings/shared"
TRIES = 5


class InForce(NamedTuple):
    """The settings, what of them is written down, and whether they are those of all nodes."""

    settings: Settings
    written: dict[str, Any]
    is_shared: bool


def read_settings(home: Home) -> Settings:
    """Read and check config.toml of a home."""
    from holdfast.read_settings import load_settings

    try:
        return load_settings(home.config)
    except ConfigError as error:
        raise CliError(str(error), hint=CORRECT, code=USAGE) from error


def find_shared(cli: Cli, *, start: bool) -> SharedSettingsView | None:
    """Return the settings of all nodes; None where they are in config.toml.

    Without a gateway nobody can be asked: with `start` one is started if the log is in a database server.
    """
    try:
        found = convert(cli.client.get(SHARED), SharedSettingsView)
    except NotFound:  # a gateway of an older version
        return None
    except GatewayNotRunning:
        if not start or not read_settings(cli.home).store.is_server:
            return None
        cli.start_gateway()
        found = convert(cli.client.get(SHARED), SharedSettingsView)
    return found if found.version else None


def settings_in_force(cli: Cli) -> InForce:
    """Return the settings of the home, with those of all nodes if there are any and a gateway runs."""
    from holdfast.read_settings import parse_settings
    from holdfast.settings import OF_THE_MACHINE, of_this_machine

    settings, path = read_settings(cli.home), cli.home.config
    written = tomllib.loads(path.read_text("utf-8")) if path.exists() else {}
    shared = find_shared(cli, start=False)
    if shared is None:
        return InForce(settings, written, is_shared=False)
    both = of_this_machine(parse_settings(Path(DATABASE), shared.text, unknown=[]), settings)
    machine = {key: value for key, value in written.items() if key in OF_THE_MACHINE}
    return InForce(both, tomllib.loads(shared.text) | machine, is_shared=True)


def edit_settings(cli: Cli, change: Callable[[dict[str, Any]], None]) -> str:
    """Change the settings where they are; return where that is, for people."""
    from holdfast.edit_settings import edit_file, edit_text

    try:
        shared = find_shared(cli, start=True)
        if shared is None:
            cli.home.prepare()
            edit_file(cli.home.config, change)
            return str(cli.home.config)
        for _ in range(TRIES):
            try:
                replace_shared(cli, edit_text(Path(DATABASE), shared.text, change), version=shared.version)
            except Conflict:
                shared = convert(cli.client.get(SHARED), SharedSettingsView)
            else:
                return DATABASE
    except ConfigError as error:
        raise CliError(str(error), code=USAGE) from error
    raise CliError("Others keep changing the settings at the same time.", hint="Try again.")


def print_shared(cli: Cli, found: SharedSettingsView) -> None:
    """Print the settings of all nodes, with their version in the first line: a push says what it was made from."""
    if cli.json:
        cli.print_json(asdict(found))
        return
    cli.note(f"version {found.version}, changed by {clean(found.changed_by)} {ago(found.changed_at)}")
    cli.echo(clean(f"{VERSION_LINE}{found.version}\n{found.text}".rstrip("\n")))


def without_version(text: str) -> tuple[int, str]:
    """Return from which version a text was made, and the rest; 0 if it does not say that."""
    first, _, rest = text.partition("\n")
    number = first.removeprefix(VERSION_LINE).strip()
    return (int(number), rest) if first.startswith(VERSION_LINE) and number.isdecimal() else (0, text)


def replace_shared(cli: Cli, text: str, *, version: int) -> SharedSettingsView:
    """Replace the settings of all nodes, if they are still those of this version."""
    return cli.client.post(SharedSettingsView, SHARED, method="PUT", text=text, version=version)
