"""What every verb is given: the home, the gateway, and how to answer. Also the options they share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdfast import __version__
from holdfast.cli.errors import USAGE, CliError
from holdfast.cli.hints import use_home

if TYPE_CHECKING:
    from holdfast.client.client import Client
    from holdfast.client.http import Address
    from holdfast.config import Home
    from holdfast.schemas.cards import BoardAccepted, CardAccepted
    from holdfast.schemas.sessions import Accepted
    from holdfast.schemas.tasks import TaskAccepted

F = TypeVar("F", bound=Callable[..., Any])


class Cli:
    """One call of the command line."""

    def __init__(self, home: str | None = None) -> None:
        self.chosen_home = home
        self.json = False
        if home:
            use_home(home)

    @cached_property
    def home(self) -> Home:
        """The home that was asked for; refused when others could change it."""
        from holdfast.config import ConfigError

        try:
            self.any_home.check()
        except ConfigError as error:
            raise CliError(str(error), code=USAGE) from error
        return self.any_home

    @cached_property
    def any_home(self) -> Home:
        """The home unchecked, for the doctor."""
        from holdfast.config import find_home

        return find_home(self.chosen_home)

    @cached_property
    def client(self) -> Client:
        """The client of the home's gateway, whether it runs or not."""
        from holdfast.client.client import Client

        return Client(self.home, user_agent=f"holdfast-cli/{__version__}", patience=0)

    def start_gateway(self) -> Address:
        """Start a gateway in the background when none runs, and say so."""
        from holdfast.client.launch import ensure

        running = ensure(self.client)
        if running.is_new:
            print(f"started a gateway (pid {running.address.pid})", file=sys.stderr)
        return running.address

    def accepted(self, accepted: Accepted | TaskAccepted | CardAccepted | BoardAccepted, done: str) -> None:
        """Say what was done, or with --json where it stands in the log."""
        noun = next(noun for noun in ("card", "board", "task", "session") if hasattr(accepted, noun))
        id = getattr(accepted, noun)
        if self.json:
            self.print_json({noun: id, "version": accepted.version, "seq": accepted.seq})
            return
        from holdfast.cli.screen import clean

        click.echo(f"{id}: {clean(done)}")

    @property
    def plain(self) -> bool:
        """Whether the person asked for output without colour."""
        from holdfast.config import no_color

        return no_color()

    def print_json(self, value: object) -> None:
        """The answer for programs: one line, or indented when a person looks at it."""
        import json

        if not sys.stdout.isatty():
            print(json.dumps(value, ensure_ascii=False, sort_keys=True))
            return
        from holdfast.cli.screen import escaped_json

        print(escaped_json(json.dumps(value, ensure_ascii=False, sort_keys=True, indent=2)))


def _set_home(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.ensure_object(Cli).chosen_home = value
        use_home(value)


def _set_json(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.ensure_object(Cli).json = value


def home_option(function: F) -> F:
    """`--home` after the verb; the same as before it."""
    option = click.option(
        "--home", metavar="DIR", callback=_set_home, expose_value=False, help="Use this home.", is_eager=True
    )
    return option(function)


def shared_options(function: F) -> F:
    """`--json` and `--home`, which every verb has."""
    option = click.option(
        "--json", is_flag=True, callback=_set_json, expose_value=False, help="Answer in JSON, for programs."
    )
    return option(home_option(function))


pass_cli = click.make_pass_decorator(Cli)
