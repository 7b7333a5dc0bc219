"""`holdfast status`: the gateway and what is at work."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.hints import program
from holdfast.cli.inbox import counted
from holdfast.cli.screen import duration, moment, pairs, plural
from holdfast.schemas.gateway import Status


@click.command("status")
@shared_options
@pass_cli
def command(cli: Cli) -> None:
    """Show the gateway of the home: where it is, how much it holds, what is at work."""
    if cli.json:
        cli.print_json(cli.client.get("/v1/status"))
        return
    found = cli.client.status()
    click.echo(pairs(_facts(found)))
    if not found.writable:
        problem = click.style("the disk takes no writes:", fg="red", bold=True)
        click.echo(f"{problem} {found.problem} Reads go on, and it recovers by itself.")


def _facts(found: Status) -> list[tuple[str, str]]:
    archived = f", {found.archived:,} archived" if found.archived else ""
    return [
        ("gateway", f"{found.version}, pid {found.pid}"),
        ("url", found.url),
        ("home", found.home),
        ("up", f"{duration(found.uptime_ms)}, since {moment(found.started_at)}"),
        (
            "holds",
            f"{plural(found.sessions, 'session')}{archived}, {plural(found.messages, 'message')}, "
            f"{plural(found.events, 'event')}",
        ),
        ("waits for you", f"{counted(found.inbox)} ({program()} inbox)" if found.inbox else "nothing"),
        ("at work", ", ".join(found.working) or "nothing"),
        ("tasks", f"{found.tasks:,} running ({program()} tasks)" if found.tasks else "none running"),
    ]
