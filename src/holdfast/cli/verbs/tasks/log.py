"""`holdfast tasks log`: the whole output of a task, and what comes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.errors import USAGE, CliError
from holdfast.cli.hints import program
from holdfast.cli.screen import clean, dim
from holdfast.cli.tasks import find, in_words
from holdfast.cli.values import TASK, patience_option
from holdfast.client.output import OutputItem, OutputPiece, follow_output, stored_output
from holdfast.client.reconnect import Disconnected, Reconnected
from holdfast.schemas.tasks import TaskView

EN_DASH = "\N{EN DASH}"


@click.command("log")
@click.argument("task", type=TASK)
@click.option("--follow", "-f", "stay", is_flag=True, help="Stay until it has ended; Ctrl-C leaves.")
@click.option("--tail", "-n", type=click.IntRange(1, 100_000), metavar="N", help="Only the last N lines.")
@click.option("--since", type=click.IntRange(min=0), metavar="OFFSET", help="Only what comes after so many bytes.")
@click.option("--raw", is_flag=True, help="The bytes as they were written, escape sequences and all.")
@patience_option
@shared_options
@pass_cli
def command(cli: Cli, task: str, stay: bool, tail: int | None, since: int | None, raw: bool, patience: float) -> None:
    """Read the output of TASK, also long after it has ended; says where bytes were dropped.

    For an agent: what it said last. With --json one piece of the output a line.
    """
    if tail is not None and since is not None:
        raise CliError("--tail and --since exclude each other.", hint="Give one of them.", code=USAGE)
    if raw and cli.json:
        raise CliError("--raw writes bytes, which --json cannot carry.", hint="Give one of them.", code=USAGE)
    found = find(cli.client, task)
    id, offset, lines = found.id, since or 0, tail or 0
    seen: Iterator[OutputItem] = stored_output(cli.client, id, raw=raw, offset=offset, tail=lines)
    if stay:
        seen = follow_output(cli.client, id, raw=raw, offset=offset, tail=lines, patience=patience)
    printer = Printer(found, raw=raw, as_json=cli.json)
    try:
        for piece in seen:
            printer.show(piece)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return
    if not cli.json:
        printer.end(find(cli.client, found.id))


class Printer:
    """Writes pieces: bytes as they are, or text in which every gap is marked."""

    def __init__(self, task: TaskView, *, raw: bool, as_json: bool) -> None:
        self._task = task
        self._raw = raw
        self._json = as_json
        self._open_line = False
        self._empty = True

    def show(self, seen: OutputItem) -> None:
        """A piece, or that the gateway went away or came back."""
        match seen:
            case Disconnected():
                self.remark(f"the gateway is away; waiting for it up to {seen.seconds:.0f} s")
            case Reconnected():
                self.remark("the gateway is back")
            case OutputPiece() if self._json:
                self._print_json(seen)
            case OutputPiece():
                self._print(seen)

    def _print_json(self, piece: OutputPiece) -> None:
        dropped = {"start": piece.dropped[0], "end": piece.dropped[1]} if piece.dropped is not None else None
        if not piece.data and dropped is None and not piece.last:
            return
        line = {
            "task": self._task.id,
            "offset": piece.offset,
            "next": piece.next,
            "size": piece.size,
            "state": piece.state,
            "dropped": dropped,
            "text": piece.data.decode("utf-8", "replace"),
        }
        print(json.dumps(line, ensure_ascii=False, sort_keys=True), flush=True)

    def _print(self, piece: OutputPiece) -> None:
        if piece.dropped is not None:
            mark = f"[bytes {piece.dropped[0]}{EN_DASH}{piece.dropped[1]} were dropped]"
            if self._raw:
                click.echo(mark, err=True)
            else:
                click.echo(("\n" if self._open_line else "") + dim(mark))
        if not piece.data:
            return
        self._empty = False
        self._open_line = not piece.data.endswith(b"\n")
        if self._raw:
            sys.stdout.buffer.write(piece.data)
            sys.stdout.buffer.flush()
        else:
            click.echo(piece.data.decode("utf-8", "replace"), nl=False)

    def end(self, task: TaskView) -> None:
        """How it stands, beside the output and never in it."""
        if self._open_line and not self._raw:
            click.echo()
        if task.kind != "process":
            self._end_of_agent(task)
        elif self._empty:
            self.remark(f"no output; {in_words(task)}")
        elif sys.stdout.isatty():
            self.remark(in_words(task))

    def _end_of_agent(self, task: TaskView) -> None:
        if task.state == "running":
            self.remark(f"the agent is {in_words(task)}")
            self.remark(f"watch it: {program()} sessions log {task.worker} --follow")
        else:
            self.remark(in_words(task) + (", without any text" if self._empty else ""))
            self.remark(f"all of it: {program()} sessions log {task.worker}")

    def remark(self, text: str) -> None:
        """To standard error."""
        click.echo(dim(clean(text)), err=True)
