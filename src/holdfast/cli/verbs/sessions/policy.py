"""`holdfast sessions policy`: when a session is reset by itself, and who said so."""

from __future__ import annotations

from typing import Any

import click

from holdfast.cli.chapters import RULES, RUNNING, outlook, outlook_facts, rule_cells, running_cells
from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.screen import dim, facts, table
from holdfast.cli.values import SESSION
from holdfast.client.http import Json
from holdfast.schemas.sessions import Accepted, SessionView


@click.command("policy")
@click.argument("session", type=SESSION)
@click.option("--mode", type=click.Choice(["none", "idle", "daily", "both"]), help="By which rule; none is never.")
@click.option("--idle-minutes", type=click.IntRange(1), metavar="N", help="After N minutes without user activity.")
@click.option("--at-hour", type=click.IntRange(0, 23), metavar="N", help="At this hour of the day.")
@click.option("--timezone", metavar="TZ", help='Of that hour, like Europe/Berlin; "" is the machine\'s own.')
@click.option("--max-postpone", metavar="TIME", help="A command at work postpones a reset for at most TIME: 90m, 2h.")
@click.option("--process-max-age", metavar="TIME", help="A command that is older postpones nothing: 12h, 7d.")
@click.option(
    "--on-live-process",
    type=click.Choice(["hand_over", "stop_idle", "stop"]),
    help="What becomes of commands that still run.",
)
@click.option("--hand-over-note/--no-hand-over-note", default=None, help="Whether the agent writes a note first.")
@click.option("--notify/--no-notify", default=None, help="Send browser notifications.")
@click.option("--clear", is_flag=True, help="Forget what was chosen for this session; the profile's word counts.")
@shared_options
@pass_cli
def command(cli: Cli, /, session: str, clear: bool, **chosen: Any) -> None:
    """Show when SESSION is reset by itself, where each setting comes from, and what stands in the way.

    With options: choose it for this session alone. What is not named stays as it was chosen before.
    """
    row = cli.client.sessions.get(session).session
    given = {name: value for name, value in chosen.items() if value is not None}
    if given or clear:
        accepted = cli.client.post(Accepted, f"/v1/sessions/{row.id}/reset/policy", policy=given, merge=not clear)
        if cli.json:
            cli.accepted(accepted, "")
            return
    found = outlook(cli.client, row.id)
    if cli.json:
        cli.print_json({"session": row.id} | found)
    else:
        _show(found, row)


def _show(found: Json, row: SessionView) -> None:
    click.echo(facts([("session", f"{row.id} “{row.title}”"), *outlook_facts(found)]))
    click.echo(f"\n{table(RULES, rule_cells(found, row.profile))}")
    if found["running"]:
        click.echo(f"\n{dim('running in the background')}")
        click.echo(table(RUNNING, running_cells(found["running"])))
