"""`holdfast inbox`: everything that waits for a person."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.gateway import Json
from holdfast.cli.inbox import entry_lines, summary
from holdfast.cli.values import SESSION


@click.command("inbox")
@click.option("--dismiss", metavar="ID", type=SESSION, help="Take the failed turn of the session ID out of the list.")
@shared_options
@pass_cli
def command(cli: Cli, dismiss: str | None) -> None:
    """List everything that waits for a person, longest waiting first, each with the commands that answer it.

    These are questions, approvals, interrupted turns, blocked cards, cards in review, cards that cannot start, and
    failed turns. A failed turn leaves the list with the next turn of its session, when you undo it, reset or archive
    the session, or with --dismiss.
    """
    if dismiss is not None:
        accepted = cli.gateway.command("POST", f"/v1/sessions/{dismiss}/dismiss", {})
        if cli.json:
            cli.print_json({key: accepted[key] for key in ("session", "version", "seq")})
        else:
            click.echo(f"dismissed; session {accepted['session']} stays as it is")
        return
    found: Json = cli.gateway.get("/v1/inbox")
    if cli.json:
        cli.print_json(found)
    elif not found["entries"]:
        click.echo("Nothing waits for you.")
    else:
        click.echo("\n\n".join("\n".join(entry_lines(entry)) for entry in found["entries"]))
        click.echo(f"\n{summary(found)}", err=True)
