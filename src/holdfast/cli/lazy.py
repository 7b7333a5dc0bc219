"""A group that imports a verb's module only when the verb is used.

The one-line helps stand in the table, so that `--help` imports no verb at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

Section = Mapping[str, str]


class LazyGroup(click.Group):
    """Verbs by section: `{"Section": {"verb": "what it does"}}`, each verb a module of `package`."""

    def __init__(
        self, *args: Any, package: str, sections: Mapping[str, Section], default: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._package = package
        self._sections = sections
        self._default = default

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, in the order of the table."""
        del ctx
        return [verb for section in self._sections.values() for verb in section]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the verb's module; its command bears the module's name."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command = import_module(f"{self._package}.{cmd_name.replace('-', '_')}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """An unknown verb is answered with those that are spelt alike."""
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise click.NoSuchCommand(args[0], possibilities=known, ctx=ctx)
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Without a verb the default one is meant. Options that every verb has may stand before it."""
        if self._default is not None:
            args = self._verb_first(ctx, args)
        bare = not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names)
        if self._default is not None and bare and not ctx.resilient_parsing:
            args = [self._default, *args]
        return super().parse_args(ctx, args)

    def _verb_first(self, ctx: click.Context, args: list[str]) -> list[str]:
        """`--json show X` and `--home DIR show X` as `show --json X` and `show --home DIR X`."""
        place = 0
        while place < len(args) and (args[place] in ("--json", "--home") or args[place].startswith("--home=")):
            place += 2 if args[place] == "--home" else 1
        if 0 < place < len(args) and args[place] in self.list_commands(ctx):
            return [args[place], *args[:place], *args[place + 1 :]]
        return args

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table, without importing anything."""
        del ctx
        width = max(len(verb) for section in self._sections.values() for verb in section)
        for title, section in self._sections.items():
            with formatter.section(title):
                formatter.write_dl([(verb.ljust(width), text) for verb, text in section.items()])
