"""Values on the command line: texts (also from standard input), ids, spans of time, times and sizes.

Also the options that several commands have.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from holdfast.client.reconnect import PATIENCE_SECONDS
from holdfast.domain.errors import HoldfastError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from holdfast.client.http import Json


class _Text(click.types.StringParamType):
    """A text that is not blank; `-` reads it from standard input."""

    name = "text"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Read and check it."""
        text = self._read(param, ctx) if value == "-" else str(value)
        if not text.strip():
            self.fail("it is empty; say something, for example: say hello", param, ctx)
        return text

    def _read(self, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return sys.stdin.buffer.read().decode("utf-8")
        except UnicodeDecodeError as error:
            return self.fail(f"standard input is not valid UTF-8 (byte {error.start})", param, ctx)


class _Body(_Text):
    """A text that may be empty; `-` reads it from standard input."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Read it."""
        return self._read(param, ctx) if value == "-" else str(value)


class _Workspace(click.types.StringParamType):
    """scratch, dir:PATH or worktree:REPO. A path may be relative to the working directory."""

    name = "workspace"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Make the path absolute, as the gateway needs it."""
        from pathlib import Path

        kind, _, path = str(value).partition(":")
        if value == "scratch":
            return "scratch"
        if kind not in ("dir", "worktree") or not path:
            self.fail(f"{value!r} is none: scratch, dir:PATH or worktree:REPO", param, ctx)
        try:
            place = Path(path).expanduser().resolve()
        except (RuntimeError, ValueError, OSError) as error:
            self.fail(f"{path!r}: {error}", param, ctx)
        if not place.is_dir():
            self.fail(f"{path!r} is not a directory", param, ctx)
        return f"{kind}:{place}"


class _Id(click.types.StringParamType):
    """An id or a unique prefix of it; the gateway knows which. Completed from the list."""

    def __init__(self, name: str, lister: str, *, path: str = "") -> None:
        self.name = name
        self._lister = lister
        self._path = path or f"/v1/{name}s"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Only what could never be an id is refused here."""
        id = str(value).strip()
        if not id:
            self.fail(f"it is empty; `holdfast {self._lister}` lists the ids", param, ctx)
        return id.lower()

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Ids with their titles; nothing when no gateway runs."""
        from click.shell_completion import CompletionItem

        from holdfast.cli.context import Cli

        del param
        homes = (context.params.get("home") for context in _ancestry(ctx))
        found = ctx.find_object(Cli)  # of a `--home` behind the verb
        after = found.chosen_home if found is not None else None
        cli = Cli(after or next((home for home in homes if home), None))
        try:
            rows = cli.client.get(self._path, limit=200)[f"{self.name}s"]
        except HoldfastError:
            return []
        return [CompletionItem(row["id"], help=row["title"]) for row in rows if row["id"].startswith(incomplete)]


class _Span(click.ParamType[int]):
    """A span of time in milliseconds: `90s`, `30m`, `2h`, `7d`, `2w`."""

    name = "span"

    def __init__(self, least: int = 0) -> None:
        self._least = least

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse it."""
        if isinstance(value, int):
            return value
        found = _span_ms(str(value))
        if found is None:
            self.fail(f"{value!r} is not a span of time like 90s, 30m, 2h, 7d or 2w", param, ctx)
        if found < self._least:
            self.fail(f"{value!r} is too short: {self._least // 1000}s is the least", param, ctx)
        return found


class _Moment(click.ParamType[int]):
    """A time in milliseconds since 1970: a span before or after now, or a date, or a date and a time."""

    name = "time"

    def __init__(self, *, ahead: bool) -> None:
        self._sign = 1 if ahead else -1

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse it. Without a zone a date is meant as the clock on the wall shows it."""
        if isinstance(value, int):
            return value
        length = _span_ms(str(value))
        if length is not None:
            return int(time.time() * 1000) + self._sign * length
        from datetime import datetime

        try:
            return max(0, int(datetime.fromisoformat(str(value).strip()).timestamp() * 1000))
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is no time: give a span like 2h or 7d, or a date like 2026-11-30 18:00", param, ctx)


class _Start(click.ParamType["Json"]):
    """When a card may begin, as the gateway is told: a span stays one, so that a second call says the same."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Json:
        """Parse it."""
        span = _span_ms(str(value))
        return {"after_ms": span} if span is not None else {"at": UNTIL.convert(value, param, ctx)}


class _Size(click.ParamType[int]):
    """A number of bytes: `500`, `20k`, `5M`, `1G`; with an `i` (`1Gi`) by 1024."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse it."""
        if isinstance(value, int):
            return value
        text = str(value).strip().lower().removesuffix("b")
        base = 1024 if text.endswith("i") else 1000
        text = text.removesuffix("i")
        power = "kmgt".find(text[-1:]) + 1 if text[-1:].isalpha() else 0
        number = _number(text[:-1] if power else text)
        if number is None:
            self.fail(f"{value!r} is not a size like 500, 20k, 5M or 1G", param, ctx)
        return int(number * base**power)


def _span_ms(text: str) -> int | None:
    from holdfast.settings import span_ms  # takes 13 ms: only those who give a span wait for it

    return span_ms(text)


def _number(text: str) -> float | None:
    plain = text.replace(".", "", 1)
    return float(text) if plain.isascii() and plain.isdecimal() and len(text) < 16 else None


def _ancestry(ctx: click.Context) -> list[click.Context]:
    return [ctx, *_ancestry(ctx.parent)] if ctx.parent is not None else [ctx]


TEXT = _Text()
BODY = _Body()
WORKSPACE = _Workspace()
SESSION = _Id("session", "sessions")
TASK = _Id("task", "tasks history")
CARD = _Id("card", "card list")
BOARD = _Id("board", "board list")
WAIT = _Id("wait", "inbox", path="/v1/inbox")
SPAN, SOME_TIME = _Span(), _Span(1000)
SINCE = _Moment(ahead=False)
UNTIL = _Moment(ahead=True)
START = _Start()
SIZE = _Size()

limit_option = click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="How many.")
before_option = click.option("--before", metavar="CURSOR", help="The next page: the cursor that ended the page before.")
patience_option = click.option(
    "--patience",
    type=click.FloatRange(min=0),
    default=PATIENCE_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for a gateway that went away.",
)
