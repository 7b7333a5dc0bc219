"""Values on the command line: texts (also from standard input) and ids of sessions."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


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


class _SessionId(click.types.StringParamType):
    """The id of a session or a unique prefix of it; the gateway knows which. Completed from the list."""

    name = "session"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Only what could never be an id is refused here."""
        id = str(value).strip()
        if not id:
            self.fail("it is empty; `holdfast sessions` lists the ids", param, ctx)
        return id

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Ids of sessions, with their titles; nothing when no gateway runs."""
        from click.shell_completion import CompletionItem

        from holdfast.cli.context import Cli
        from holdfast.cli.errors import CliError

        del param
        homes = (context.params.get("home") for context in _ancestry(ctx))
        cli = Cli(next((home for home in homes if home), None))
        try:
            rows = cli.gateway.get("/v1/sessions", limit=200)["sessions"]
        except CliError:
            return []
        return [CompletionItem(row["id"], help=row["title"]) for row in rows if row["id"].startswith(incomplete)]


def _ancestry(ctx: click.Context) -> list[click.Context]:
    return [ctx, *_ancestry(ctx.parent)] if ctx.parent is not None else [ctx]


TEXT = _Text()
SESSION = _SessionId()
