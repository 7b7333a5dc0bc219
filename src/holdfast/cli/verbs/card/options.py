"""What `card add` and `card edit` both take."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from holdfast.cli.cards import RESUME
from holdfast.cli.values import SOME_TIME
from holdfast.client.http import Json

F = TypeVar("F", bound=Callable[..., Any])
PRIORITY = 1000


class _Body(click.types.StringParamType):
    """A text, which may be empty; `-` reads it from standard input."""

    name = "text"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Read it."""
        if value != "-":
            return str(value)
        try:
            return sys.stdin.buffer.read().decode("utf-8")
        except UnicodeDecodeError as error:
            return self.fail(f"standard input is not valid UTF-8 (byte {error.start})", param, ctx)


class _Workspace(click.types.StringParamType):
    """scratch, dir:PATH or worktree:REPO; a path may be relative to where one is."""

    name = "workspace"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The path as the gateway needs it: whole."""
        kind, colon, path = str(value).partition(":")
        if str(value) == "scratch":
            return "scratch"
        if kind not in ("dir", "worktree") or not colon or not path:
            self.fail(f"{value!r} is none: scratch, dir:PATH or worktree:REPO", param, ctx)
        try:
            place = Path(path).expanduser().resolve()
        except (RuntimeError, ValueError, OSError) as error:
            self.fail(f"{path!r}: {error}", param, ctx)
        if not place.is_dir():
            self.fail(f"{path!r} is not a directory", param, ctx)
        return f"{kind}:{place}"


def card_options(function: F) -> F:
    """In the order in which --help shows them."""
    options = (
        click.option(
            "--body", type=_Body(), metavar="TEXT", help="What is to be done; `-` reads it from standard input."
        ),
        click.option("--profile", metavar="NAME", help="Which agent works on it; nobody does without one."),
        click.option(
            "--workspace",
            type=_Workspace(),
            metavar="WHERE",
            help="scratch (a directory of its own), dir:PATH, or worktree:REPO (git, on a branch of its own).",
        ),
        click.option(
            "--priority",
            type=click.IntRange(-PRIORITY, PRIORITY),
            metavar="N",
            help="Higher is started first; 0 by default.",
        ),
        click.option(
            "--resume",
            type=click.Choice(RESUME),
            help="Whether its next worker goes on with the session of the last one; by default as the profile says.",
        ),
        click.option(
            "--max-runtime", "max_runtime_ms", type=SOME_TIME, metavar="TIME", help="How long a run may take."
        ),
        click.option(
            "--max-attempts", type=click.IntRange(1, 100), metavar="N", help="How often it is tried before it waits."
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def given(wanted: dict[str, Any]) -> Json:
    """Only what was said."""
    return {name: value for name, value in wanted.items() if value is not None}
