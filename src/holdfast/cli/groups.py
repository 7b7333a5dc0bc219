"""How commands are grouped: the root imports a command's module when the command is used, a noun has its verbs in it.

`@verb()` makes a function a command with the options that every command has, and gives it the `Cli`:

    @click.group("devices", cls=NounGroup, default="list")
    def devices() -> None:
        "List the browsers that are signed in, and sign them out."

    @devices.verb("Change")
    @click.argument("device", type=TEXT)
    def revoke(cli: Cli, device: str) -> None:
        "Sign DEVICE out."
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import click

from holdfast.cli.context import SHARED_OPTIONS, pass_cli
from holdfast.cli.errors import USAGE, CliError
from holdfast.cli.hints import program

Function = Callable[..., Any]


def verb(name: str | None = None, *, cls: type[click.Command] = click.Command) -> Callable[[Function], click.Command]:
    """Make a function a command: by default with the function's own name."""

    def decorate(function: Function) -> click.Command:
        title = name or function.__name__.replace("_", "-")
        command = click.command(title, cls=cls)(pass_cli(function))
        command.params += SHARED_OPTIONS
        return command

    return decorate


class CommandGroup(click.Group):
    """Answers an unknown command with those that are spelt alike."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; raise if there is none."""
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise click.NoSuchCommand(args[0], possibilities=known, ctx=ctx)
        return super().resolve_command(ctx, args)

    def write_sections(self, formatter: click.HelpFormatter, sections: Mapping[str, Mapping[str, str]]) -> None:
        """Write the commands of each section with what they do, all in the same columns."""
        width = max(len(name) for section in sections.values() for name in section)
        for title, section in sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in section.items()])


class RootGroup(CommandGroup):
    """All commands by section. Their one-line helps are in the table, so that `--help` imports none of them."""

    def __init__(self, *args: Any, table: Mapping[str, Mapping[str, tuple[str, str]]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._table = table
        self._modules = {name: module for section in table.values() for name, (module, _) in section.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, in the order of the table."""
        del ctx
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of the command."""
        del ctx
        if cmd_name not in self._modules:
            return None
        found = getattr(import_module(f"holdfast.cli.commands.{self._modules[cmd_name]}"), cmd_name)
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table, without importing anything."""
        del ctx
        helps = {title: {name: help for name, (_, help) in section.items()} for title, section in self._table.items()}
        self.write_sections(formatter, helps)


ID_OR_NUMBER = re.compile(r"[0-9a-f]{4,16}|(hf-)?\d{1,9}", re.IGNORECASE)
"""An ID, or the number of a card."""


class NounGroup(CommandGroup):
    """The commands about one noun, by section; without a command the default one is meant."""

    def __init__(self, *args: Any, default: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.subcommand_metavar = "[VERB] …"
        self._default = default
        self._sections: dict[str, list[str]] = {}

    def verb(
        self, section: str, name: str | None = None, *, cls: type[click.Command] = click.Command
    ) -> Callable[[Function], click.Command]:
        """Make a function a command of this group; see `verb` above."""

        def decorate(function: Function) -> click.Command:
            command = verb(name, cls=cls)(function)
            assert command.name is not None
            self.add_command(command)
            self._sections.setdefault(section, []).append(command.name)
            return command

        return decorate

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, in the order of the sections."""
        del ctx
        return [name for section in self._sections.values() for name in section]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take `--json` and `--home` also before the command, and the default command where none is named."""
        args = self._verb_first(ctx, args)
        bare = not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names)
        if bare and not ctx.resilient_parsing:
            args = [self._default, *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; where an ID is in its place, say how to show what it names."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            noun = "card" if args[0].lower().startswith("hf-") else self.name
            if noun in ("card", "sessions", "tasks") and ID_OR_NUMBER.fullmatch(args[0]):
                raise _usage_error(error, f"Did you mean: {program()} {noun} show {args[0]}") from error
            raise

    def _verb_first(self, ctx: click.Context, args: list[str]) -> list[str]:
        """`--json show X` and `--home DIR show X` as `show --json X` and `show --home DIR X`."""
        place = 0
        while place < len(args) and (args[place] in ("--json", "--home") or args[place].startswith("--home=")):
            place += 2 if args[place] == "--home" else 1
        if 0 < place < len(args) and args[place] in self.list_commands(ctx):
            return [args[place], *args[:place], *args[place + 1 :]]
        return args

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Each command with the first sentence of its docstring."""
        del ctx
        helps = {name: first_sentence(command.help or "") for name, command in self.commands.items()}
        sections = {title: {name: helps[name] for name in names} for title, names in self._sections.items()}
        self.write_sections(formatter, sections)


def first_sentence(text: str) -> str:
    """The first sentence of a docstring, on one line."""
    sentence, dot, _ = " ".join(text.split()).partition(". ")
    return sentence + dot.rstrip()


# --- commands that take a text or another command --------------------------------------------------


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
            raise _usage_error(error, f'Put the text in quotes: {program()} {self._path(ctx)} "…"') from error
        except click.UsageError as error:
            words = self._words(ctx, given)
            if len(words) <= self._taken:
                raise
            before, text = words[: self._taken - 1], " ".join(words[self._taken - 1 :])
            quoted = '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("`", "\\`") + '"'
            command = " ".join((program(), self._path(ctx), *map(shlex.quote, before), quoted))
            raise _usage_error(error, f"Put the text in quotes: {command}") from error

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
    """The arguments are another command. Its options are taken for ours unless `--` comes before it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As usual; an option that only the other command can have becomes a hint."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            first = next((place for place, word in enumerate(given) if not word.startswith("-")), None)
            command = shlex.join(given) if first == 0 else "CMD…"
            raise _usage_error(error, f"Put -- before the command: {program()} start -- {command}") from error


def _usage_error(error: click.UsageError, hint: str) -> CliError:
    return CliError(error.format_message(), hint=hint, code=USAGE)
