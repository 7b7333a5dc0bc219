"""`holdfast config check`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.errors import CliError


@click.command("check")
@shared_options
@pass_cli
def command(cli: Cli) -> int:
    """Check the settings without starting anything; an error names the line."""
    from holdfast.cli.settings import read

    path = cli.home.config
    try:
        read(cli.home)
    except CliError as error:
        if not cli.json:
            raise
        cli.print_json({"path": str(path), "ok": False, "problem": error.message})
        return error.code
    if cli.json:
        cli.print_json({"path": str(path), "ok": True, "problem": ""})
    elif path.exists():
        click.echo(f"{path} is valid")
    else:
        click.echo(f"{path} does not exist, so the defaults are in force")
    return 0
