"""`holdfast telegram`: the bot, and who may talk to it."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli
from holdfast.cli.groups import NounGroup
from holdfast.cli.hints import program
from holdfast.cli.screen import Column, ago, clean, table
from holdfast.cli.values import TEXT
from holdfast.schemas.telegram import TelegramStatus

NOT_YET = """\
Telegram is not set up. Create a bot with @BotFather, put its token into a variable, and add to config.toml:

  [telegram]
  token_env = "TELEGRAM_TOKEN"

then: {program} restart"""
PEOPLE = (Column("PERSON"), Column("NAME", flexible=True), Column("TALKS"), Column("APPROVES"))
NOBODY = "Nobody is let in yet. Write to the bot: it answers with the command that lets you in."


@click.group(cls=NounGroup, default="list")
def telegram() -> None:
    """Show the Telegram bot, and choose who may talk to it. Without a verb: list."""


@telegram.verb("Show", "list")
def list_people(cli: Cli) -> None:
    """Show the bot, what is wrong with it, and who may talk to it and answer approvals."""
    cli.show(cli.client.get("/v1/telegram"), TelegramStatus, _status)


@telegram.verb("Change")
@click.argument("code", type=TEXT)
@click.option("--approve", is_flag=True, help="The person may answer approvals, too.")
def pair(cli: Cli, code: str, approve: bool) -> None:
    """Let the person in to whom the bot gave CODE. It is written into config.toml."""
    cli.client.post(TelegramStatus, "/v1/telegram/pair", code=code, approve=approve)
    person = code.partition("-")[0]
    rights = "may talk to agents and answer approvals" if approve else "may talk to agents"
    cli.result(f"{person} {rights}", person=int(person), talks=True, approves=approve)


@telegram.verb("Change")
@click.argument("person", type=click.IntRange(min=1))
def remove(cli: Cli, person: int) -> None:
    """Let PERSON (a number of the list) in no longer."""
    cli.client.post(TelegramStatus, "/v1/telegram/remove", person=person)
    cli.result(f"{person} is no longer let in", person=person, talks=False, approves=False)


def _status(found: TelegramStatus) -> str:
    if not found.is_on:
        return NOT_YET.format(program=program())
    problem = f": {clean(found.problem)}" if found.problem else ""
    lines = [f"bot: @{clean(found.bot)}{problem}" if found.bot else f"bot: not reached yet{problem}"]
    rows = [
        [str(one.id), clean(one.name), "yes" if one.talks else "no", "yes" if one.approves else "no"]
        for one in found.people
    ]
    lines.append(table(PEOPLE, rows) if rows else NOBODY if found.bot else NOBODY.partition(" Write")[0])
    lines += [f"{clean(one.name)} ({one.id}) asked to be let in {ago(one.at)}" for one in found.strangers]
    return "\n".join(lines)
