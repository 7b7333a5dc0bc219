"""`holdfast serve`: the gateway itself."""

from __future__ import annotations

import os
from contextlib import suppress

import click

from holdfast.cli.context import Cli, home_option, pass_cli
from holdfast.config import ConfigError


@click.command("serve")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    metavar="N",
    help="Where it listens on 127.0.0.1; 0 takes any free port. By default as in the settings.",
)
@click.option("--open", "browser", is_flag=True, help="Open the dashboard too, where there is a screen.")
@click.option("--background", is_flag=True, hidden=True, help="Say nothing: somebody else started it.")
@home_option
@pass_cli
def command(cli: Cli, port: int | None, browser: bool, background: bool) -> int:
    """Run the gateway in the foreground. Ctrl-C ends it: turns resume at the next start, commands keep running."""
    with suppress(OSError, ConfigError):  # whatever is wrong is said below
        umask = cli.home.prepare()
        cli.home.starting.write_text(f"{os.getpid()}\n")  # clients wait for it while the program is loaded
        os.umask(umask)
    from holdfast.app import serve

    return serve(cli.home, port=port, background=background, browser=browser)
