"""`holdfast config check`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.errors import exit_code
from holdfast.cli.screen import clean
from holdfast.domain.errors import HoldfastError


@click.command("check")
@shared_options
@pass_cli
def command(cli: Cli) -> int:
    """Check the settings without starting anything; an error names the line.

    Warnings name rules that allow more than they seem to, or that never apply; the settings are valid all the same.
    """
    from holdfast.cli.settings import read

    path = cli.home.config
    try:
        settings = read(cli.home)
    except HoldfastError as error:
        if not cli.json:
            raise
        cli.print_json({"path": str(path), "ok": False, "problem": error.message, "warnings": []})
        return exit_code(error)
    from holdfast.rules.warnings import rule_warnings

    warnings = rule_warnings(settings)
    if cli.json:
        cli.print_json({"path": str(path), "ok": True, "problem": "", "warnings": warnings})
    elif path.exists():
        click.echo(f"{path} is valid")
    else:
        click.echo(f"{path} does not exist, so the defaults are in force")
    for warning in [] if cli.json else warnings:
        click.echo(f"warning: {clean(warning)}", err=True)
    return 0
