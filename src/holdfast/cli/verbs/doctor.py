"""`holdfast doctor`: examine the home, rebuild what follows from the log."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.errors import CONFLICT, FAILED, CliError


@click.command("doctor")
@click.option("--rebuild", is_flag=True, help="Make the projections anew from the events; the gateway must be stopped.")
@shared_options
@pass_cli
def command(cli: Cli, rebuild: bool) -> int:
    """Examine the home: settings, disk, database, checksums, projections. Changes nothing without --rebuild."""
    return _rebuild(cli) if rebuild else _examine(cli)


def _examine(cli: Cli) -> int:
    from dataclasses import asdict

    from holdfast.cli.screen import clean, pad, terminal_width, wrap
    from holdfast.lifecycle.doctor import examine

    findings = examine(cli.any_home)
    well = all(finding.ok for finding in findings)
    if cli.json:
        cli.print_json({"ok": well, "findings": [asdict(finding) for finding in findings]})
        return 0 if well else FAILED
    widest = max(len(finding.name) for finding in findings)
    indent = 4 + 2 + widest + 2
    for finding in findings:
        mark = click.style("ok  ", fg="green") if finding.ok else click.style("FAIL", fg="red", bold=True)
        text = clean(finding.detail) + (f"\nhint: {finding.hint}" if finding.hint else "")
        lines = wrap(text, max(20, terminal_width() - indent))
        click.echo(f"{mark}  {pad(finding.name, widest)}  " + f"\n{'':{indent}}".join(lines))
    return 0 if well else FAILED


def _rebuild(cli: Cli) -> int:
    from holdfast.domain.errors import Conflict, HoldfastError
    from holdfast.lifecycle.doctor import rebuild

    try:
        said = rebuild(cli.home)
    except Conflict as error:
        raise CliError(error.message, hint=error.hint, code=CONFLICT) from error
    except HoldfastError as error:
        raise CliError(error.message, hint=error.hint) from error
    if cli.json:
        cli.print_json({"rebuilt": said})
    else:
        click.echo(said)
    return 0
