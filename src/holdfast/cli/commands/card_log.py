"""What `holdfast card log` prints: what the workers of a card said and did, run by run.

Apart from the other commands about cards, since it needs the events, which take long to import.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial

import click

from holdfast.cli.context import Cli
from holdfast.cli.render.cards import without_commands
from holdfast.cli.render.transcript import LogPrinter
from holdfast.cli.screen import dim, format_datetime
from holdfast.client.errors import ApiError
from holdfast.client.events import BoardWatcher, RecordItem, RecordReceived, follow_records, stored_records
from holdfast.client.reconnect import Disconnected, Reconnected, wait_until_reachable
from holdfast.schemas.cards import CardDetail, RunView

REFRESH_SECONDS = 30.0


class CardLog:
    """Prints one run after the other."""

    def __init__(self, cli: Cli, card: str, patience: float) -> None:
        self._cli = cli
        self._card = card
        self._patience = patience
        self._last_reason = ""
        self._read: dict[str, int] = {}
        """By session, the version up to which its runs were printed: the next run begins after it."""

    def follow(self, only: int | None) -> None:
        """Print every run, also those that come, until the card is done; or only one run until its end."""
        shown = 0 if only is None else only - 1
        with BoardWatcher(self._cli.client, patience=self._patience) as changes:
            while True:
                found = self._fetch()
                for run in found.runs[shown:]:
                    self.show(run, live=True)
                    shown = run.run
                    if only is not None:
                        return
                found = self._fetch()
                if len(found.runs) > shown:
                    continue
                if found.card.status in ("done", "archived"):
                    self._note(f"card {found.card.label} is {found.card.status}")
                    return
                self._print_reason(found)
                changes.wait(REFRESH_SECONDS)

    def _fetch(self) -> CardDetail:
        """The card as it is; a gateway that went away is waited for."""
        return wait_until_reachable(partial(self._cli.client.cards.get, self._card), patience=self._patience)

    def _print_reason(self, found: CardDetail) -> None:
        """Print why nothing happens, unless that was the last thing printed about it."""
        why = without_commands(found.why)
        if why and why != self._last_reason:
            self._last_reason = why
            self._note(f"{why}; Ctrl-C leaves")

    def _note(self, text: str) -> None:
        self._cli.note(dim(text))

    def show(self, run: RunView, *, live: bool) -> None:
        """Print one run: its heading, then its part of the session."""
        if not self._cli.json:
            self._cli.echo(click.style(_heading(run), bold=True))
        session = run.session
        after = self._read.get(session, 0)
        seen: Iterator[RecordItem] = stored_records(self._cli.client, session, after=after)
        if live:
            seen = follow_records(self._cli.client, session, after=after, patience=self._patience)
        printer = LogPrinter(self._cli, live=live and sys.stdout.isatty())
        try:
            for piece in run_part(seen, run.run, self._card):
                if isinstance(piece, RecordReceived) and piece.event["kind"] == "TurnFinished":
                    self._read[session] = piece.record["version"]
                printer.show(piece)
        except ApiError as error:
            if not error.is_not_found:
                raise
            self._note(f"{error.message} What run {run.run} said and did was deleted with it.")
            return
        printer.end()
        if not self._cli.json:
            self._cli.echo()


def run_part(seen: Iterator[RecordItem], run: int, card: str) -> Iterator[RecordItem]:
    """The part of a session that belongs to one run of a card.

    From where its worker was bound until it was released and its turn has ended, or until the next one is bound.
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
    return f"run {run.run} · {format_datetime(run.started_at)} · {how}{because} · session {run.session} · {end}"
