"""Values on the command line: texts (also from standard input), IDs, durations, times and sizes.

Also the options that several commands have.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import click

from holdfast.client.reconnect import PATIENCE_SECONDS
from holdfast.domain.errors import HoldfastError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from holdfast.client.http import Json

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])


class _Value(click.ParamType[T]):
    """Converts an argument with a function, whose ValueError says what is wrong with it."""

    def __init__(self, name: str, parse: Callable[[str], T]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> T:
        """Parse it."""
        try:
            return self._parse(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Number(click.IntRange):
    """A whole number in a range."""

    name = "number"


class _Id(click.types.StringParamType):
    """An id or a unique prefix of it, of a card also its number; the gateway knows which. Completed from the list."""

    def __init__(self, name: str, lister: str, *, path: str = "") -> None:
        self.name = name
        self._lister = lister
        self._path = path or f"/v1/{name}s"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Only what could never be an id is refused here."""
        id = str(value).strip()
        if not id:
            self.fail(f"it is empty; `holdfast {self._lister}` lists the IDs", param, ctx)
        return id.lower()

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Ids with their titles; nothing when no gateway runs."""
        from click.shell_completion import CompletionItem

        from holdfast.cli.context import Cli
        from holdfast.domain.card_number import card_label

        del param
        homes = (context.params.get("home") for context in _ancestry(ctx))
        found = ctx.find_object(Cli)  # of a `--home` behind the verb
        after = found.chosen_home if found is not None else None
        cli = Cli(after or next((home for home in homes if home), None))
        try:
            rows = cli.client.get(self._path, limit=200)[f"{self.name}s"]
        except HoldfastError:
            return []
        start = incomplete.lower()
        names = ((card_label(row.get("number", 0), row["id"]), row) for row in rows)
        return [
            CompletionItem(name if name.lower().startswith(start) else row["id"], help=row["title"])
            for name, row in names
            if name.lower().startswith(start) or row["id"].startswith(start)
        ]


def _text(value: str) -> str:
    text = _body(value)
    if not text.strip():
        raise ValueError("the text is empty")
    return text


def _body(value: str) -> str:
    if value != "-":
        return value
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"standard input is not valid UTF-8 (byte {error.start})") from None


def _typed_line(value: str) -> str:
    return _body(value) if value == "-" else f"{value}\n"


def _workspace(value: str) -> str:
    """With an absolute path, as the gateway needs it."""
    from pathlib import Path

    kind, _, path = value.partition(":")
    if value == "scratch":
        return value
    if kind not in ("dir", "worktree") or not path:
        raise ValueError(f"{value!r} is not a workspace; use scratch, dir:PATH or worktree:REPO")
    try:
        place = Path(path).expanduser().resolve()
    except (RuntimeError, ValueError, OSError) as error:
        raise ValueError(f"{path!r}: {error}") from error
    if not place.is_dir():
        raise ValueError(f"{path!r} is not a directory")
    return f"{kind}:{place}"


def _span_ms(text: str) -> int | None:
    from holdfast.settings import span_ms  # takes 13 ms, so only when it is needed

    return span_ms(text)


def _span(value: str, *, least: int = 0) -> int:
    found = _span_ms(value)
    if found is None:
        raise ValueError(f"{value!r} is not a duration like 90s, 30m, 2h, 7d or 2w")
    if found < least:
        raise ValueError(f"{value!r} is too short; the minimum is {least // 1000}s")
    return found


def _moment(value: str, *, sign: int) -> int:
    """A duration before or after now, or a date, in local time unless it names a zone."""
    length = _span_ms(value)
    if length is not None:
        return int(time.time() * 1000) + sign * length
    from datetime import datetime

    try:
        return max(0, int(datetime.fromisoformat(value.strip()).timestamp() * 1000))
    except (ValueError, OverflowError):
        message = f"{value!r} is not a time; use a duration like 2h or 7d, or a date like 2026-11-30 18:00"
        raise ValueError(message) from None


def _start(value: str) -> Json:
    span = _span_ms(value)
    return {"after_ms": span} if span is not None else {"at": _moment(value, sign=1)}


def _size(value: str) -> int:
    text = value.strip().lower().removesuffix("b")
    base = 1024 if text.endswith("i") else 1000
    text = text.removesuffix("i")
    power = "kmgt".find(text[-1:]) + 1 if text[-1:].isalpha() else 0
    number = text[:-1] if power else text
    digits = number.replace(".", "", 1)
    if not (digits.isascii() and digits.isdecimal() and len(number) < 16):
        raise ValueError(f"{value!r} is not a size like 500, 20k, 5M or 1G")
    return int(float(number) * base**power)


def _ancestry(ctx: click.Context) -> list[click.Context]:
    return [ctx, *_ancestry(ctx.parent)] if ctx.parent is not None else [ctx]


TEXT = _Value("text", _text)
"""Not blank; `-` reads it from standard input."""
BODY = _Value("text", _body)
"""The same, but it may be empty."""
TYPED_LINE = _Value("text", _typed_line)
"""A text with Enter at its end; `-` reads it from standard input, as it is."""
WORKSPACE = _Value("workspace", _workspace)
"""scratch, dir:PATH or worktree:REPO; a path may be relative to the working directory."""
SESSION = _Id("session", "sessions")
TASK = _Id("task", "tasks history")
CARD = _Id("card", "card list")
BOARD = _Id("board", "board list")
WAIT = _Id("wait", "inbox", path="/v1/inbox")
SPAN, SOME_TIME = _Value("span", _span), _Value("span", partial(_span, least=1000))
"""In milliseconds: `90s`, `30m`, `2h`, `7d`, `2w`."""
SINCE, UNTIL = _Value("time", partial(_moment, sign=-1)), _Value("time", partial(_moment, sign=1))
"""In milliseconds since 1970, before or after now."""
START = _Value("time", _start)
"""When a card may start. A duration is sent as it is, so that a repeated call is recognised as the same."""
SIZE = _Value("size", _size)
"""A number of bytes: `500`, `20k`, `5M`, `1G`; with an `i` (`1Gi`) by 1024."""

kind_option = click.option(
    "--kind", type=click.Choice(["process", "agent", "card"]), help="Only commands, agents, or runs of cards."
)
limit_option = click.option("--limit", type=Number(1, 500), default=50, show_default=True, help="How many to show.")
before_option = click.option(
    "--before", metavar="CURSOR", help="Show the next page, from the cursor that the last page printed."
)
tell_option = click.option(
    "--notify",
    "tell",
    type=click.Choice(["always", "never", "default"]),
    help="Send notifications about it always, never, or by the rules of each destination.",
)
node_option = click.option(
    "--node", default="", metavar="NAME", help="The node on which it runs, or a label of such nodes (`holdfast nodes`)."
)


def start_options(function: F) -> F:
    """--node and --notify."""
    return node_option(tell_option(function))


patience_option = click.option(
    "--patience",
    type=click.FloatRange(min=0),
    default=PATIENCE_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait if the gateway goes away.",
)
