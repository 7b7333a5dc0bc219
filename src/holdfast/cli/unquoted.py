"""Verbs that end with a text or a command: what was typed without quotes or `--` is answered with a hint."""

from __future__ import annotations

import shlex

import click

from holdfast.cli.errors import USAGE, CliError
from holdfast.cli.hints import program


class TextCommand(click.Command):
    """The last argument is one text. Several words in its place were meant as one, and lack their quotes."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As usual; too many words become a hint."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.possibilities:
                raise
            raise _unquoted(error, f'Put the text in quotes: {program()} {self._path(ctx)} "…"') from error
        except click.UsageError as error:
            words = self._words(ctx, given)
            if len(words) <= self._taken:
                raise
            before, text = words[: self._taken - 1], " ".join(words[self._taken - 1 :])
            quoted = '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("`", "\\`") + '"'
            command = " ".join((program(), self._path(ctx), *map(shlex.quote, before), quoted))
            raise _unquoted(error, f"Put the text in quotes: {command}") from error

    @property
    def _taken(self) -> int:
        """How many words it takes."""
        return sum(isinstance(param, click.Argument) for param in self.params)

    def _path(self, ctx: click.Context) -> str:
        return ctx.command_path.partition(" ")[2]

    def _words(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The words that are no options, in order."""
        parser = self.make_parser(ctx)
        names = [param.name or "" for param in self.params if isinstance(param, click.Argument)]
        found, left, _ = parser.parse_args(args)
        return [*(str(found[name]) for name in names if found.get(name) is not None), *left]


class CommandCommand(click.Command):
    """The arguments are another command. Its options are taken for ours unless `--` stands before it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As usual; an option that only the other command can have becomes a hint."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            first = next((place for place, word in enumerate(given) if not word.startswith("-")), None)
            command = shlex.join(given) if first == 0 else "CMD…"
            raise _unquoted(error, f"Put -- before the command: {program()} start -- {command}") from error


def _unquoted(error: click.UsageError, hint: str) -> CliError:
    return CliError(error.format_message(), hint=hint, code=USAGE)
