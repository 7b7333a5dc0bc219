"""`holdfast tasks write`."""

from __future__ import annotations

import sys

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.errors import FAILED, USAGE, CliError
from holdfast.cli.tasks import find
from holdfast.cli.values import TASK
from holdfast.client.client import Client

PIECE = 16_384


@click.command("write")
@click.argument("task", type=TASK)
@click.argument("text", required=False)
@click.option("--close", is_flag=True, help="Then close its input: it reads an end of file.")
@shared_options
@pass_cli
def command(cli: Cli, task: str, text: str | None, close: bool) -> None:
    """Type TEXT and Enter into TASK, if it was started with its input open. `-` types standard input as it is."""
    if text is None and not close:
        raise CliError("There is nothing to type.", hint="Give a TEXT, or --close to end its input.", code=USAGE)
    found = find(cli.client, task)
    data = _text(text)
    taken = _write(cli.client, found.id, data)
    if close and taken == len(data.encode()):
        cli.client.tasks.write(found.id, "", close=True)
    if cli.json:
        cli.print_json({"task": found.id, "bytes": taken, "of": len(data.encode())})
    elif taken == len(data.encode()):
        click.echo(f"{found.id}: took {taken} bytes" + (", its input is closed" if close else ""))
    if taken < len(data.encode()):
        raise CliError(
            f"It took {taken} of {len(data.encode())} bytes: it does not read its input.",
            hint="Type the rest when it does." + (" Its input was not closed." if close else ""),
            code=FAILED,
        )


def _text(text: str | None) -> str:
    if text is None:
        return ""
    if text != "-":
        return f"{text}\n"
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise CliError(f"Standard input is not valid UTF-8 (byte {error.start}).", code=USAGE) from None


def _write(client: Client, task: str, text: str) -> int:
    """Piece by piece, until it takes no more. How many bytes it took."""
    taken = 0
    for start in range(0, len(text), PIECE):
        piece = text[start : start + PIECE]
        written = client.tasks.write(task, piece)
        taken += written.bytes
        if written.bytes < written.of:
            break
    return taken
