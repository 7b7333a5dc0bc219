"""`holdfast card log`: what its workers said and did, run by run, and what comes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import partial

import click

from holdfast.cli.cards import find, without_commands
from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.errors import NOT_FOUND, CliError
from holdfast.cli.hints import program
from holdfast.cli.screen import clean, moment
from holdfast.cli.transcript import LogPrinter
from holdfast.cli.values import CARD, patience_option
from holdfast.cli.verbs.sessions.log import stored
from holdfast.client.board_watcher import BoardWatcher
from holdfast.client.errors import ApiError
from holdfast.client.events import RecordItem, RecordReceived, TextDelta, follow_records
from holdfast.client.reconnect import Disconnected, Reconnected, wait_until_reachable
from holdfast.schemas.cards import CardDetail, RunView

LOOK_SECONDS = 30.0


@click.command("log")
@click.argument("card", type=CARD)
@click.option("--run", "number", type=click.IntRange(min=1), metavar="N", help="Only of this run.")
@click.option("--follow", "-f", "stay", is_flag=True, help="Stay over blocks and runs until it is done; Ctrl-C leaves.")
@patience_option
@shared_options
@pass_cli
def command(cli: Cli, card: str, number: int | None, stay: bool, patience: float) -> None:
    """Read what the workers of CARD said and did, run by run, each entry with its version in the session's log.

    With --json the stored records, one a line.
    """
    found = find(cli.client, card)
    runs = [run for run in found.runs if number in (None, run.run)]
    if number is not None and not runs:
        hint = f"`{program()} card runs {found.card.id}` lists them."
        raise CliError(f"Card {found.card.id} has no run {number}.", hint=hint, code=NOT_FOUND)
    reader = Reader(cli, found.card.id, patience)
    if not stay:
        if not runs:
            click.echo(f"No run yet. {clean(found.why)}".rstrip(), err=True)
        for run in runs:
            reader.show(run, live=False)
        return
    try:
        reader.stay(number)
    except KeyboardInterrupt:
        print(file=sys.stderr)


class Reader:
    """Prints one run after the other."""

    def __init__(self, cli: Cli, card: str, patience: float) -> None:
        self._cli = cli
        self._card = card
        self._patience = patience
        self._told = ""
        self._read: dict[str, int] = {}
        """By session, the version up to which its runs are shown: the next one begins after it."""

    def stay(self, only: int | None) -> None:
        """Every run there is and comes, until the card is done or that one run is over."""
        shown = 0 if only is None else only - 1
        with BoardWatcher(self._cli.client, patience=self._patience) as changes:
            while True:
                found = self._look()
                for run in found.runs[shown:]:
                    self.show(run, live=True)
                    shown = run.run
                    if only is not None:
                        return
                found = self._look()
                if len(found.runs) > shown:
                    continue
                if found.card.status in ("done", "archived"):
                    self._remark(f"card {self._card} is {found.card.status}")
                    return
                self._stands(found)
                changes.wait(LOOK_SECONDS)

    def _look(self) -> CardDetail:
        """The card as it is; a gateway that went away is waited for."""
        return wait_until_reachable(partial(find, self._cli.client, self._card), patience=self._patience)

    def _stands(self, found: CardDetail) -> None:
        """Why nothing comes, once."""
        why = without_commands(found.why)
        if why and why != self._told:
            self._told = why
            self._remark(f"{why}; Ctrl-C leaves")

    def _remark(self, text: str) -> None:
        click.echo(click.style(text, dim=True), err=True)

    def show(self, run: RunView, *, live: bool) -> None:
        """One run: its heading, then its part of the session."""
        if not self._cli.json:
            click.echo(click.style(_heading(run), bold=True))
        session = run.session
        after = self._read.get(session, 0)
        seen: Iterator[RecordItem] = stored(self._cli.client, session, after=after)
        if live:
            seen = follow_records(self._cli.client, session, after=after, patience=self._patience)
        printer = LogPrinter(live=live and sys.stdout.isatty())
        try:
            self._print(part(seen, run.run, self._card), printer, live=live)
        except ApiError as error:
            if not error.is_not_found:
                raise
            self._remark(f"{error.message} What run {run.run} said and did is gone with it.")
            return
        if not self._cli.json:
            printer.end()
            click.echo()

    def _print(self, pieces: Iterator[RecordItem], printer: LogPrinter, *, live: bool) -> None:
        for piece in pieces:
            match piece:
                case RecordReceived(record=record):
                    if piece.event["kind"] == "TurnFinished":
                        self._read[record["stream"].removeprefix("session/")] = record["version"]
                    if self._cli.json:
                        print(json.dumps(record, ensure_ascii=False, separators=(",", ":")), flush=live)
                    else:
                        printer.happened(record)
                case TextDelta():
                    if not self._cli.json:
                        printer.spoken(piece)
                case Disconnected() | Reconnected():
                    printer.note(str(piece))


def part(seen: Iterator[RecordItem], run: int, card: str) -> Iterator[RecordItem]:
    """What belongs to one run: from where its worker was bound until it was released and its turn has ended, or
    until the next one is bound.
    """
    inside = over = at_work = False
    for piece in seen:
        event = piece.event if isinstance(piece, RecordReceived) else {"kind": ""}
        match event["kind"]:
            case "RunBound":
                if inside:
                    return
                inside = event["card"] == card and event["run"] == run
            case "TurnStarted":
                at_work = True
            case "TurnFinished":
                at_work = False
            case "RunReleased":
                over = inside
            case _:
                pass
        if inside or isinstance(piece, Disconnected | Reconnected):
            yield piece
        if over and not at_work:
            return


def _heading(run: RunView) -> str:
    how = f"resumes run {run.resumes}" if run.resumes else "a fresh session"
    because = f" ({run.fresh_because})" if run.fresh_because else ""
    end = f"{run.outcome}{' (' + run.failure + ')' if run.failure else ''}" if run.outcome else "running"
    return f"run {run.run} · {moment(run.started_at)} · {how}{because} · session {run.session} · {end}"
