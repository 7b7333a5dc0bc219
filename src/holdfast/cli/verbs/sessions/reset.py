"""`holdfast sessions reset`: a new chapter; shows what runs, and asks what becomes of it."""

from __future__ import annotations

import click

from holdfast.cli.chapters import what_became
from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.hints import program
from holdfast.cli.running import choose, running_option
from holdfast.cli.screen import SHORT_ID, dim, terminal_width, wrap
from holdfast.cli.values import SESSION
from holdfast.client.sessions import WhatRuns


@click.command("reset")
@click.argument("session", type=SESSION)
@running_option
@click.option("--note", is_flag=True, help="Let the agent write a note for the next chapter first.")
@click.option("--yes", is_flag=True, help="Do not ask; while something runs it needs --running.")
@shared_options
@pass_cli
def command(cli: Cli, session: str, running: WhatRuns | None, note: bool, yes: bool) -> None:
    """Open a new chapter of SESSION: what the model sees begins anew.

    Id, link and log stay, and nothing is deleted; `sessions undo-reset` takes it back. While commands of it
    run, it shows them and asks: keep, stop, cancel.
    """
    row = cli.client.sessions.get(session).session
    id = row.id
    accepted = cli.client.sessions.reset(id, running=choose(cli, row, running, ask=not yes), note=note)
    page = cli.client.get(f"/v1/sessions/{id}/events", after=accepted.version - 1, limit=1)
    event = page["events"][0]["event"]
    if cli.json:
        tasks = {word: [one["task"] for one in event[word]] for word in ("kept", "stopped")}
        kept = {"session": accepted.session, "version": accepted.version, "seq": accepted.seq}
        cli.print_json(kept | tasks | {"chapter": event["chapter"]})
        return
    click.echo(f"{id}: chapter {event['chapter']} begins")
    for line in what_became(event):
        click.echo("\n    ".join(wrap(f"  {line}", max(20, terminal_width() - 4))))
    click.echo(dim(f"undo: {program()} sessions undo-reset {id[:SHORT_ID]}"), err=True)
