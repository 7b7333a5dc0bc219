"""`holdfast card`: write cards, look at them and move them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.commands.card_options import card_options, message_options
from holdfast.cli.context import Cli
from holdfast.cli.errors import FAILED, NOT_FOUND, USAGE, CliError
from holdfast.cli.groups import NounGroup, TextCommand
from holdfast.cli.hints import program
from holdfast.cli.render.cards import (
    EXAMPLE,
    KINDS,
    STATUSES,
    cards_table,
    fetch_cards,
    render_card,
    render_context,
    render_diff,
    runs_table,
    workspace_outcome,
)
from holdfast.cli.render.why import render_why
from holdfast.cli.screen import clean, format_datetime
from holdfast.cli.values import BOARD, CARD, SESSION, START, TEXT, UNTIL, Number, patience_option
from holdfast.client.http import Json, quote
from holdfast.client.lenient import convert
from holdfast.schemas.cards import CardAccepted, CardContext, CardDetail, CardPage
from holdfast.schemas.changes import FileChanges
from holdfast.schemas.gateway import Why

if TYPE_CHECKING:
    from holdfast.domain.events.card import BlockKind, CardStatus

KEY = re.compile(r"[A-Za-z0-9_-]{8,64}\Z")
card_argument = click.argument("id", type=CARD, metavar="CARD")


@click.group(cls=NounGroup, default="list")
def card() -> None:
    """Add, show and change cards (jobs for agents). Without a verb: list. `holdfast board` shows them by column."""


# --- look -----------------------------------------------------------------------------------------


@card.verb("Show", "list")
@click.option("--board", type=BOARD, metavar="NAME", help="Only cards of this board.")
@click.option("--status", type=click.Choice([*STATUSES, "archived"]), help="Only cards in this column.")
@click.option("--profile", metavar="NAME", help="Only cards of this profile.")
@click.option("--search", "text", metavar="TEXT", help="Only cards with this text in the title or number.")
@click.option("--archived", is_flag=True, help="Also archived cards.")
def list_cards(cli: Cli, **filters: object) -> None:
    """List the cards of all boards, most urgent first. Each has the reason why it is in its column."""
    found = fetch_cards(cli.client, **filters)
    if cli.json:
        cli.print_json({"cards": found["cards"]})
    elif found["cards"]:
        cli.echo(cards_table(convert(found, CardPage)))
    elif any(filters.values()):
        cli.echo(f"No card matches. `{program()} card list` lists all of them.")
    else:
        cli.echo(f"No cards yet. Try: {program()} {EXAMPLE}")


@card.verb("Show")
@card_argument
def show(cli: Cli, id: str) -> None:
    """Show all details of CARD. Its text, comments, links and runs, and why it is in its column."""
    found = cli.show(cli.client.get(_path(id)), CardDetail, render_card).card.label
    cli.hint(f"\nwhy it is there: holdfast card why {found} · its log: holdfast card log {found}")


@card.verb("Show")
@card_argument
def why(cli: Cli, id: str) -> None:
    """Say why CARD is in its column. Also what would move it, and how its last runs ended."""
    cli.show(cli.client.get(f"{_path(id)}/why"), Why, render_why)


@card.verb("Show")
@card_argument
def runs(cli: Cli, id: str) -> None:
    """List the runs of CARD. Each has its outcome, session, tokens, cost and duration."""
    found = cli.client.get(_path(id))
    if cli.json:
        cli.print_json({"card": found["card"]["id"], "runs": found["runs"]})
    else:
        cli.echo(runs_table(convert(found, CardDetail)))


@card.verb("Show")
@card_argument
@click.option("--run", "number", type=Number(min=1), metavar="N", help="Only this run.")
@click.option("--follow", "-f", is_flag=True, help="Keep printing until the card is done; Ctrl-C stops watching.")
@patience_option
def log(cli: Cli, id: str, number: int | None, follow: bool, patience: float) -> None:
    """Print what the workers of CARD said and did, run by run. Each entry has its version in the session's log.

    With --json: the stored records, one per line.
    """
    from holdfast.cli.commands.card_log import CardLog

    found = cli.client.cards.get(id)
    chosen = [run for run in found.runs if number in (None, run.run)]
    if number is not None and not chosen:
        hint = f"`{program()} card runs {found.card.label}` lists them."
        raise CliError(f"Card {found.card.label} has no run {number}.", hint=hint, code=NOT_FOUND)
    card_log = CardLog(cli, found.card.id, patience)
    if follow:
        try:
            card_log.follow(number)
        except KeyboardInterrupt:
            cli.note("")
        return
    if not chosen:
        cli.note(runs_table(found))
    for run in chosen:
        card_log.show(run, live=False)


@card.verb("Show")
@card_argument
def context(cli: Cli, id: str) -> None:
    """Show the first message of the next worker of CARD. Also which session it would continue."""
    cli.show(cli.client.get(f"{_path(id)}/context"), CardContext, render_context)


@card.verb("Show")
@card_argument
def diff(cli: Cli, id: str) -> None:
    """Show what CARD changed in its workspace."""
    cli.show(cli.client.get(f"{_path(id)}/diff"), FileChanges, render_diff)


# --- write ----------------------------------------------------------------------------------------


@card.verb("Write", cls=TextCommand)
@click.argument("title", type=TEXT)
@card_options
@click.option("--board", type=BOARD, metavar="NAME", help="The board; by default `default`.")
@click.option("--parent", "parents", type=CARD, multiple=True, metavar="ID", help="Wait for this card; repeatable.")
@click.option("--triage", is_flag=True, help="Do not start it until somebody promotes it.")
@click.option("--at", "start", type=START, metavar="TIME", help='Not before: 2h, 7d, or a date: "2026-11-30 18:00".')
@click.option("--follow", "session", type=SESSION, metavar="SESSION", help="Notify it of blocks and the end.")
@click.option("--idempotency-key", "key", metavar="KEY", help="A second call with the same key adds nothing.")
def add(cli: Cli, /, key: str | None, triage: bool, parents: tuple[str, ...], start: Json | None, **given: Any) -> None:
    """Add a card with TITLE, and print its number. It is started as soon as nothing blocks it.

    The agent gets the body as its message, or the title if there is no body. Starts a gateway if none is running.
    """
    if key is not None and not KEY.match(key):
        raise CliError(f"{key!r} is not a valid key.", hint="Use 8 to 64 letters, digits, `-` and `_`.", code=USAGE)
    if triage and start is not None:
        raise CliError("--triage and --at cannot be combined.", hint="Use one of them.", code=USAGE)
    body = _named(given) | {"triage": triage, "parents": list(parents)} | (start or {})
    accepted = cli.send_command(CardAccepted, "/v1/cards", id=key, shown_by=f"{program()} card list", **body)
    if cli.json:
        cli.print_json({name: getattr(accepted, name) for name in ("card", "number", "version", "seq", "duplicate")})
        return
    cli.echo(accepted.label)
    reason = clean(cli.client.cards.get(accepted.card).why) or "It is being started."
    cli.note(("this card exists already; " if accepted.duplicate else "") + reason)
    cli.note(f"follow it: {program()} card log {accepted.label} --follow")


@card.verb("Write")
@card_argument
@click.option("--title", type=TEXT, metavar="TEXT", help="Another title.")
@card_options
def edit(cli: Cli, /, id: str, **given: Any) -> None:
    """Change the text and the options of CARD. Options that you do not name stay as they are.

    While the card is running, only its priority, its limits and --notify can be changed. To reach its worker, comment
    on it.
    """
    body = _named(given)
    if not body:
        raise CliError("There is nothing to change.", hint="See `holdfast card edit --help`.", code=USAGE)
    done = f"changed: {', '.join(name.removesuffix('_ms') for name in body)}"
    cli.accepted(cli.client.cards.edit(id, **body), done)


@card.verb("Write", cls=TextCommand)
@card_argument
@click.argument("text", type=TEXT)
def comment(cli: Cli, id: str, text: str) -> None:
    """Comment on CARD; its worker gets the comment. `-` reads TEXT from standard input.

    A running worker gets it at its next step, otherwise the next worker gets it first.
    """
    cli.accepted(cli.client.cards.comment(id, text), "commented; its worker will get the comment")


@card.verb("Write")
@card_argument
@click.argument("profile", type=TEXT)
def assign(cli: Cli, id: str, profile: str) -> None:
    """Change the profile that works on CARD, from its next run on."""
    cli.accepted(cli.client.cards.edit(id, profile=profile), f"assigned to {profile}")


@card.verb("Write")
@card_argument
@click.argument("parent", type=CARD)
def link(cli: Cli, id: str, parent: str) -> None:
    """Make CARD wait until PARENT is done."""
    cli.accepted(cli.client.cards.link(id, parent), f"waits until {parent} is done")


@card.verb("Write")
@card_argument
@click.argument("parent", type=CARD)
def unlink(cli: Cli, id: str, parent: str) -> None:
    """Remove a link: CARD no longer waits for PARENT."""
    cli.accepted(cli.client.cards.unlink(id, parent), f"no longer waits for {parent}")


@card.verb("Write")
@card_argument
@click.argument("session", type=SESSION)
@click.option("--off", is_flag=True, help="Stop following.")
def follow(cli: Cli, id: str, session: str, off: bool) -> None:
    """Notify SESSION when CARD is blocked, fails or is done. Once each; --off stops that."""
    done = f"session {session} is {'no longer notified' if off else 'notified of its blocks, failures and end'}"
    cli.accepted(cli.client.cards.follow(id, session, following=not off), done)


# --- move -----------------------------------------------------------------------------------------


@card.verb("Move")
@card_argument
@click.option("--node", required=True, metavar="NAME", help="The node, or a label of such nodes; '' is any.")
def move(cli: Cli, id: str, node: str) -> None:
    """Let CARD run on another node. Refused if only one node has its directory, or the agent of its session."""
    cli.accepted(cli.client.cards.edit(id, node=node), f"runs on {node}" if node else "runs on any node")


@card.verb("Move")
@card_argument
@click.option(
    "--to",
    "status",
    type=click.Choice(["triage", "todo", "ready", "review"]),
    default="ready",
    show_default=True,
    help="The column.",
)
def promote(cli: Cli, id: str, status: CardStatus) -> None:
    """Move CARD to `ready`, so that it is started, or to another column."""
    cli.accepted(cli.client.cards.move(id, status), f"moved to {status}")


@card.verb("Move")
@card_argument
@click.argument("time", type=UNTIL)
def schedule(cli: Cli, id: str, time: int) -> None:
    """Do not start CARD before TIME. TIME is a duration like 2h, or a date like "2026-11-30 18:00"."""
    cli.accepted(cli.client.cards.move(id, "scheduled", at=time), f"becomes ready at {format_datetime(time)}")


@card.verb("Move", cls=TextCommand)
@card_argument
@click.argument("reason", type=TEXT)
@click.option("--kind", type=click.Choice(KINDS), default="needs_input", show_default=True, help="The kind of block.")
def block(cli: Cli, id: str, reason: str, kind: BlockKind) -> None:
    """Block CARD until somebody unblocks it. If it is running, it is stopped."""
    done = cli.client.cards.block(id, reason, kind=kind)
    cli.accepted(done, f"blocked ({kind.replace('_', ' ')}); continue it: {program()} card unblock {done.label}")


@card.verb("Move", cls=TextCommand)
@card_argument
@message_options
def unblock(cli: Cli, id: str, text: str | None, message: str | None, fresh: bool) -> None:
    """Continue a blocked CARD, with TEXT as a message to its worker. It continues in the session of its last run.

    With --fresh, or if the card, its profile or [board] has `resume = "fresh"`, the worker starts a new session.
    """
    how = "unblocked, with a new session" if fresh else "unblocked"
    done = cli.client.cards.unblock(id, _text(text, message), fresh=fresh)
    cli.accepted(done, f"{how}; next: {program()} card why {done.label}")


@card.verb("Move", cls=TextCommand)
@card_argument
@message_options
def retry(cli: Cli, id: str, text: str | None, message: str | None, fresh: bool) -> None:
    """Run CARD again, with TEXT as a message to its worker.

    It may be blocked, done, in review, archived, or waiting after a failure. It resumes like `unblock`.
    """
    how = "will run again, with a new session" if fresh else "will run again"
    done = cli.client.cards.retry(id, _text(text, message), fresh=fresh)
    cli.accepted(done, f"{how}; next: {program()} card why {done.label}")


@card.verb("Move")
@card_argument
@click.option("--reason", metavar="TEXT", help="The reason.")
def stop(cli: Cli, id: str, reason: str | None) -> None:
    """Stop the run of CARD; the card is then blocked. Its session and its files stay."""
    done = cli.client.cards.stop(id, reason=reason)
    cli.accepted(done, f"stopped and blocked; continue it: {program()} card unblock {done.label}")


@card.verb("Move", cls=TextCommand)
@card_argument
@click.argument("text", type=TEXT, metavar="[TEXT]", required=False)
@click.option("--message", "-m", type=TEXT, metavar="TEXT", help="The same as TEXT; `-` reads standard input.")
def complete(cli: Cli, id: str, text: str | None, message: str | None) -> None:
    """Mark CARD as done; TEXT is its result. If it is running, it is stopped. Cards that wait for it can start."""
    cli.accepted(cli.client.cards.complete(id, summary=_text(text, message) or ""), "done")


@card.verb("Move")
@card_argument
def archive(cli: Cli, id: str) -> None:
    """Take CARD off the board. Its workspace is deleted only if nothing would be lost."""
    accepted = cli.client.cards.archive(id)
    outcome = workspace_outcome(cli.client.cards.get(accepted.card), accepted.kept)
    done = {name: getattr(accepted, name) for name in ("card", "number", "version", "seq", "kept")}
    cli.result(f"{accepted.label}: archived; {outcome}", **done)


@card.verb("Move")
@card_argument
def release(cli: Cli, id: str) -> int:
    """Delete the workspace that an archived CARD kept. Only if nothing would be lost now.

    For a worktree: after its branch was merged or pushed; the branch stays. Exit code 1 if the workspace is kept.
    """
    released = cli.client.cards.release(id)
    found = cli.client.cards.get(released.card)
    outcome = workspace_outcome(found, released.kept)
    cli.result(f"{found.card.label}: {outcome}", card=released.card, kept=released.kept)
    return FAILED if released.kept else 0


def _path(card: str) -> str:
    return f"/v1/cards/{quote(card)}"


def _named(given: dict[str, Any]) -> Json:
    return {name: value for name, value in given.items() if value is not None}


def _text(text: str | None, message: str | None) -> str | None:
    if text is not None and message is not None:
        raise CliError("TEXT and -m mean the same: use one of them.", code=USAGE)
    return text if text is not None else message
