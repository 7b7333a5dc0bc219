"""`holdfast sessions log`: read the conversation, and stay with it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.transcript import LogPrinter
from holdfast.cli.values import SESSION, patience_option
from holdfast.client.client import Client
from holdfast.client.events import RecordItem, RecordReceived, TextDelta, follow_records
from holdfast.client.http import quote
from holdfast.client.reconnect import Disconnected, Reconnected

PAGE = 500


@click.command("log")
@click.argument("session", type=SESSION)
@click.option("--follow", "-f", "stay", is_flag=True, help="Stay and show what comes; Ctrl-C leaves.")
@click.option("--after", type=click.IntRange(min=0), default=0, metavar="N", help="Only what comes after version N.")
@patience_option
@shared_options
@pass_cli
def command(cli: Cli, session: str, stay: bool, after: int, patience: float) -> None:
    """Read the conversation of SESSION: what was said and done, each with its version and time.

    With --json the stored records, one a line.
    """
    id = str(cli.client.get(f"/v1/sessions/{quote(session)}")["session"]["id"])
    if not stay:
        _show(cli, stored(cli.client, id, after=after), following=False)
        return
    try:
        _show(cli, follow_records(cli.client, id, after=after, patience=patience), following=True)
    except KeyboardInterrupt:
        print(file=sys.stderr)


def stored(client: Client, session: str, *, after: int, limit: int = PAGE) -> Iterator[RecordItem]:
    """Everything after the cursor that there is now, page by page."""
    more = True
    while more:
        page = client.get(f"/v1/sessions/{session}/events", after=after, limit=limit)
        yield from (RecordReceived(record) for record in page["events"])
        after, more = page["cursor"], page["more"]


def _show(cli: Cli, seen: Iterator[RecordItem], *, following: bool) -> None:
    printer = LogPrinter(live=following and sys.stdout.isatty())
    for piece in seen:
        match piece:
            case RecordReceived(record=record):
                if cli.json:
                    print(json.dumps(record, ensure_ascii=False, separators=(",", ":")), flush=following)
                else:
                    printer.happened(record)
            case TextDelta():
                if not cli.json:
                    printer.spoken(piece)
            case Disconnected():
                printer.note(f"the gateway is away; waiting for it up to {piece.seconds:.0f} s")
            case Reconnected():
                printer.note("the gateway is back")
    if not cli.json:
        printer.end()
