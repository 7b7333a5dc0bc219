"""`holdfast notify` and `telegram`: where notifications go, what was sent, the choice of what notifies, and the bot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.context import Cli
from holdfast.cli.errors import FAILED, CliError
from holdfast.cli.groups import NounGroup
from holdfast.cli.hints import program
from holdfast.cli.resolve import resolve_id
from holdfast.cli.screen import Column, ago, clean, one_line, table
from holdfast.cli.values import SESSION, TEXT, Number
from holdfast.schemas.notify import DeliveryList, DeliveryView, DestinationList, DestinationView, TestResult
from holdfast.schemas.telegram import TelegramStatus

if TYPE_CHECKING:
    from holdfast.domain.events.parts import NotifyChoice

NONE_YET = """\
Notifications are off. To turn them on in a browser or on a phone, open Settings, Notifications in the dashboard there.
For a webhook, add to config.toml:

  [notify.webhooks.mine]
  url = "https://example.com/hook"

then try it: {program} notify test mine"""
DESTINATIONS = (
    Column("NAME"),
    Column("NOTIFIES OF", flexible=True),
    Column("WHEN"),
    Column("PENDING", right=True),
    Column("LAST SENT"),
    Column("PROBLEM", flexible=True),
)
DELIVERIES = (
    Column("WHEN"),
    Column("TO"),
    Column("KIND"),
    Column("STATE"),
    Column("WHAT", flexible=True),
    Column("WHY", flexible=True),
)


@click.group(cls=NounGroup, default="list")
def notify() -> None:
    """Show where notifications go and what was sent, send a test, choose what notifies you. Without a verb: list."""


@notify.verb("Show", "list")
def list_destinations(cli: Cli) -> None:
    """List the destinations (those of config.toml, and devices with push) and what is waiting for each."""
    cli.show(cli.client.get("/v1/notify"), DestinationList, _destinations_table)


def _destinations_table(found: DestinationList) -> str:
    if not found.destinations:
        return NONE_YET.format(program=program())
    return table(DESTINATIONS, [_destination_cells(one) for one in found.destinations])


def _destination_cells(one: DestinationView) -> list[str]:
    when = "nobody looks" if one.only_when_nobody_looks else "always"
    more = one.label or ("home" if one.home_channel else "")
    name = f"{one.name} ({one_line(clean(more))})" if more else one.name
    sent = ago(one.sent_at) if one.sent_at else "never"
    problem = one.problem or (f"{one.given_up} given up, see: {program()} notify log" if one.given_up else "")
    return [name, ", ".join(one.on), when, str(one.pending), sent, one_line(problem)]


@notify.verb("Show")
@click.option("-n", "--limit", type=Number(1, 1000), default=20, show_default=True, help="How many at most.")
@click.option("--to", "destination", type=TEXT, metavar="NAME", help="Only what is for this destination.")
def log(cli: Cli, limit: int, destination: str | None) -> None:
    """List notifications, newest first: sent, waiting, and not sent with the reason."""
    found = cli.client.get("/v1/notify/log", limit=limit, destination=destination or "")
    cli.show(found, DeliveryList, _deliveries_table)


def _deliveries_table(found: DeliveryList) -> str:
    if not found.deliveries:
        return "Nothing was sent yet, and nothing waits to be sent."
    return table(DELIVERIES, [_delivery_cells(one) for one in found.deliveries])


def _delivery_cells(one: DeliveryView) -> list[str]:
    state = one.state if one.attempts <= 1 else f"{one.state} ({one.attempts} tries)"
    what = f"{clean(one.title)} {clean(one.summary)}"
    return [ago(one.at), one.destination, one.kind, state, one_line(what), one_line(one.reason or one.settled)]


@notify.verb("Change")
@click.argument("destination", type=TEXT)
def test(cli: Cli, destination: str) -> None:
    """Send a test to DESTINATION and report what became of it.

    The webhook `mine` is `mine` or `webhooks.mine`; a device is `push.ID`, as `notify list` shows it.
    """
    found = cli.client.post(TestResult, "/v1/notify/test", destination=destination)
    if not found.sent:
        raise CliError(f"{found.destination}: {found.problem}", hint=found.hint, code=FAILED)
    cli.result(f"{found.destination}: the test was delivered", destination=found.destination, sent=True)


# --- choose -------------------------------------------------------------------------------------


@notify.verb("Choose")
@click.argument("id", type=SESSION)
def always(cli: Cli, id: str) -> None:
    """Always notify you of a session, a task or a card: when it asks, is blocked, is done or has failed.

    Every destination is notified, of every kind, even while somebody looks at it.
    """
    _choose(cli, id, "always", "you are always notified of it")


@notify.verb("Choose")
@click.argument("id", type=SESSION)
def never(cli: Cli, id: str) -> None:
    """Never notify you of a session, a task or a card. Its questions still wait in the inbox."""
    _choose(cli, id, "never", "you are never notified of it")


@notify.verb("Choose")
@click.argument("id", type=SESSION)
def default(cli: Cli, id: str) -> None:
    """Notify you of a session, a task or a card by the rules of each destination again."""
    _choose(cli, id, "default", "you are notified of it by the rules of each destination")


def _choose(cli: Cli, id: str, choice: NotifyChoice, done: str) -> None:
    found = resolve_id(cli.client, id)
    if "card" in found:
        cli.accepted(cli.client.cards.edit(found["card"], tell=choice), done)
    elif "task" in found:  # also of an agent in the background, whose session has the same id
        cli.accepted(cli.client.tasks.set_notifications(found["task"], choice), done)
    else:
        cli.accepted(cli.client.sessions.set_notifications(found["session"], choice), done)


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
    """Allow the person to whom the bot gave CODE to talk to it. This is written to config.toml."""
    cli.client.post(TelegramStatus, "/v1/telegram/pair", code=code, approve=approve)
    person = code.partition("-")[0]
    rights = "may talk to agents and answer approvals" if approve else "may talk to agents"
    cli.result(f"{person} {rights}", person=int(person), talks=True, approves=approve)


@telegram.verb("Change")
@click.argument("person", type=Number(min=1))
def remove(cli: Cli, person: int) -> None:
    """Remove PERSON (a number of the list): the bot no longer answers them."""
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
