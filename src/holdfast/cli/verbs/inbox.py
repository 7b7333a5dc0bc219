"""`holdfast inbox`: everything that waits for a person."""

from __future__ import annotations

from urllib.parse import quote

import click

from holdfast.cli.approvals import choice_note, shown_lines, whole
from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.hints import program
from holdfast.cli.inbox import entry_lines, summary
from holdfast.cli.screen import ago, clean, clock, dim, one_line
from holdfast.cli.values import SESSION
from holdfast.client.http import Json


@click.command("inbox")
@click.argument("id", required=False)
@click.option("--dismiss", metavar="ID", type=SESSION, help="Take the failed turn of the session ID out of the list.")
@shared_options
@pass_cli
def command(cli: Cli, id: str | None, dismiss: str | None) -> None:
    """List everything that waits for a person, longest waiting first, each with the commands that answer it.

    These are questions, approvals, interrupted turns, blocked cards, cards in review, cards that cannot start, and
    failed turns. A failed turn leaves the list with the next turn of its session, when you undo it, reset or archive
    the session, or with --dismiss.

    With the ID of a question or an approval, show it in full: every argument of the call, the change of a file, and
    what each answer allows.
    """
    cli.start_gateway()
    if id is not None:
        _show(cli, cli.client.get(f"/v1/inbox/{quote(id.strip().lower(), safe='')}"))
        return
    if dismiss is not None:
        accepted = cli.client.command("POST", f"/v1/sessions/{dismiss}/dismiss", {})
        if cli.json:
            cli.print_json({key: accepted[key] for key in ("session", "version", "seq")})
        else:
            click.echo(f"dismissed; session {accepted['session']} stays as it is")
        return
    found: Json = cli.client.get("/v1/inbox")
    if cli.json:
        cli.print_json(found)
    elif not found["entries"]:
        click.echo("Nothing waits for you.")
    else:
        waits = {wait["id"]: (wait["shown"], wait["pattern"]) for wait in found["waits"]}
        entries = [entry_lines(entry, *waits.get(entry["id"], ([], ""))) for entry in found["entries"]]
        click.echo("\n\n".join(map("\n".join, entries)))
        click.echo(f"\n{summary(found)}", err=True)


def _show(cli: Cli, detail: Json) -> None:
    if cli.json:
        cli.print_json(detail)
        return
    wait = detail["wait"]
    click.echo(clean(wait["reason"]))
    click.echo(dim(f"{wait['purpose']} of session {wait['session']}, asked {ago(wait['opened_at'])}"))
    if wait["until"] is not None:
        click.echo(dim(f"without an answer it is denied at {clock(wait['until'])}"))
    for line in shown_lines(whole(wait["shown"], detail["arguments"])):
        click.echo(clean(line))
    for choice in wait["choices"]:
        note = choice_note(choice, wait["pattern"]) if wait["purpose"] == "approval" else ""
        click.echo(f"  {one_line(choice):9}{dim(note)}".rstrip())
    how = "--allow, --call, --session, --always or --deny" if wait["purpose"] == "approval" else "TEXT"
    click.echo(dim(f"answer with: {program()} answer {wait['id']} {how}"), err=True)
