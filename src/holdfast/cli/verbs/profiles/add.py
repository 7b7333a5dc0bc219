"""`holdfast profiles add`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.errors import USAGE, CliError
from holdfast.cli.hints import program
from holdfast.cli.values import TEXT


@click.command("add")
@click.argument("name")
@click.option("--model", required=True, help="demo, or PROVIDER:MODEL; `holdfast models` shows what is there.")
@click.option("--instructions", type=TEXT, help="What the model is told before everything else.")
@click.option("--cwd", type=click.Path(file_okay=False, exists=True, resolve_path=True), help="Its working directory.")
@shared_options
@pass_cli
def command(cli: Cli, name: str, model: str, instructions: str | None, cwd: str | None) -> None:
    """Add the profile NAME to config.toml; a running gateway takes it up at once."""
    from holdfast.config import ConfigError
    from holdfast.edit_settings import add_profile

    values = {"model": model, "instructions": instructions or "", "cwd": cwd or ""}
    chosen = {key: value for key, value in values.items() if value}
    try:
        cli.home.prepare()
        add_profile(cli.home.config, name, chosen)
    except ConfigError as error:
        raise CliError(str(error), code=USAGE) from error
    if cli.json:
        cli.print_json({"profile": name, **chosen})
    else:
        click.echo(f"added {name} to {cli.home.config}; try: {program()} run --profile {name} …")
