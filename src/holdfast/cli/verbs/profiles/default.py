"""`holdfast profiles default`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.errors import USAGE, CliError


@click.command("default")
@click.argument("name")
@shared_options
@pass_cli
def command(cli: Cli, name: str) -> None:
    """Make NAME the profile of new sessions."""
    from holdfast.config import ConfigError
    from holdfast.edit_settings import set_default

    try:
        cli.home.prepare()
        set_default(cli.home.config, name)
    except ConfigError as error:
        raise CliError(str(error), code=USAGE) from error
    if cli.json:
        cli.print_json({"default_profile": name})
    else:
        click.echo(f"new sessions use the profile {name}")
