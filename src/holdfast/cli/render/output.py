"""The output of a task as it is read: bytes as they are, text in which every gap is marked, or JSON lines."""

from __future__ import annotations

import sys

import click
import msgspec

from holdfast.cli.context import Cli
from holdfast.cli.errors import FAILED
from holdfast.cli.render.tasks import describe_task
from holdfast.cli.screen import clean, dim
from holdfast.client.output import OutputPiece
from holdfast.schemas.tasks import TaskView

EN_DASH = "\N{EN DASH}"
CONTEXT = 300
"""Bytes of a line that are shown on either side of a text that was found in it."""


class OutputPrinter:
    """Prints pieces of an output, and at the end how the task is doing."""

    def __init__(self, cli: Cli, *, task: str, raw: bool) -> None:
        self._cli = cli
        self._task = task
        self._raw = raw
        self._open_line = False
        self._empty = True

    def show(self, piece: OutputPiece) -> None:
        """Print one piece."""
        if self._cli.json:
            self._print_json(piece)
            return
        if piece.dropped is not None:
            self._print_gap(f"[bytes {piece.dropped.start}{EN_DASH}{piece.dropped.end} were dropped]")
        if piece.data:
            self._empty = False
            self._open_line = not piece.data.endswith(b"\n")
            self._cli.echo(piece.data if self._raw else piece.data.decode("utf-8", "replace"), nl=False)

    def _print_json(self, piece: OutputPiece) -> None:
        if not piece.data and piece.dropped is None and not piece.last:
            return
        fields = msgspec.to_builtins(piece, builtin_types=(bytes,))
        text = fields.pop("data").decode("utf-8", "replace")
        self._cli.print_json(fields | {"task": self._task, "text": text}, one_line=True)

    def _print_gap(self, mark: str) -> None:
        if self._raw:
            self._cli.note(mark)
        else:
            self._cli.echo(("\n" if self._open_line else "") + dim(mark))

    def end(self, task: TaskView) -> None:
        """Print how the task is doing, beside the output and never in it."""
        if self._open_line and not self._raw:
            self._cli.echo()
        if task.kind != "process":
            self._end_of_agent(task)
        elif self._empty:
            self._cli.hint(f"no output; {clean(describe_task(task))}")
        elif sys.stdout.isatty():
            self._cli.hint(clean(describe_task(task)))

    def _end_of_agent(self, task: TaskView) -> None:
        if task.state == "running":
            self._cli.hint(f"the agent is {clean(describe_task(task))}")
            self._cli.hint(f"watch it: holdfast sessions log {task.worker} --follow")
        else:
            self._cli.hint(clean(describe_task(task)) + (", without any text" if self._empty else ""))
            self._cli.hint(f"all of it: holdfast sessions log {task.worker}")


def print_matches(cli: Cli, task: str, text: str, *, offset: int) -> int:
    """Print the lines of an output with a text, each after the offset of the text; return the exit code."""
    line, found, more = None, False, True
    while more:
        page = cli.client.tasks.search_output(task, text, offset=offset, context=CONTEXT)
        if page.dropped is not None:
            cli.note(f"[bytes {page.dropped.start}{EN_DASH}{page.dropped.end} were dropped, and not searched]")
        for match in page.matches:
            if cli.json:
                cli.print_json(msgspec.to_builtins(match) | {"task": task}, one_line=True)
            elif match.line is None or match.line != line:
                shown = click.style(clean(match.text), bold=True)
                cli.echo(f"{dim(f'{match.offset}:')} {clean(match.before)}{shown}{clean(match.after)}")
            line, found = match.line, True
        offset, more = page.next, page.more
    if not found:
        cli.hint("the output does not have this text")
    return 0 if found else FAILED
