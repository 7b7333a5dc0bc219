"""`holdfast profiles show`."""

from __future__ import annotations

import click

from holdfast.cli.agents import profiles
from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.errors import NOT_FOUND, CliError
from holdfast.cli.screen import pairs
from holdfast.client.lenient import convert
from holdfast.schemas.gateway import ProfileView


@click.command("show")
@click.argument("name")
@shared_options
@pass_cli
def command(cli: Cli, name: str) -> None:
    """Show all of the profile NAME."""
    known = {profile["name"]: profile for profile in profiles(cli)["profiles"]}
    if name not in known:
        raise CliError(f"There is no profile {name}.", hint=f"There is: {', '.join(known)}.", code=NOT_FOUND)
    if cli.json:
        cli.print_json(known[name])
        return
    profile = convert(known[name], ProfileView)
    tools = ", ".join(f"{pattern} = {policy}" for pattern, policy in profile.tools.items())
    limits = [f"{profile.max_steps} steps"]
    limits += [f"{profile.max_tokens} tokens"] if profile.max_tokens else []
    limits += [f"{profile.max_minutes} minutes"] if profile.max_minutes else []
    rows = [
        ("model", profile.model),
        ("from", profile.origin),
        ("directory", profile.cwd or "where the session is started"),
        ("tools", tools or "what changes nothing is allowed, the rest is asked for"),
        ("sandbox", profile.sandbox),
        ("servers", ", ".join(profile.mcp) or "none"),
        ("a turn", "at most " + ", ".join(limits)),
        ("instructions", profile.instructions or "none"),
    ]
    click.echo(pairs(rows))
