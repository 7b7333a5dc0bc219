"""What every command is given: the home, the client, and how to print. Also the options that all commands have."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdfast import __version__
from holdfast.cli.errors import INTERRUPTED, USAGE, CliError
from holdfast.cli.hints import use_home, with_home

if TYPE_CHECKING:
    from holdfast.client.client import Client
    from holdfast.client.http import Address
    from holdfast.config import Home
    from holdfast.schemas.cards import BoardAccepted, CardAccepted
    from holdfast.schemas.sessions import Accepted
    from holdfast.schemas.tasks import TaskAccepted

T = TypeVar("T")
SEND_SECONDS = 30.0


class Terminal:
    """Where a command prints and asks: standard output and error. The chat has another one."""

    @property
    def can_ask(self) -> bool:
        """Whether somebody is there who can answer."""
        return sys.stdin.isatty()

    def echo(self, text: str | bytes, *, nl: bool = True) -> None:
        """Print what was asked for."""
        click.echo(text, nl=nl)

    def note(self, text: str) -> None:
        """Print what is said beside it: hints, warnings, progress."""
        click.echo(text, err=True)

    def ask(self, question: str) -> bool:
        """Ask for yes or no; no by default."""
        return click.confirm(question, err=True)

    def prompt(self, question: str) -> str:
        """Ask for a word, such as a choice."""
        return str(click.prompt(question, prompt_suffix=" ", err=True))


class Cli:
    """One command: where it reads and writes. Commands print through this alone, so that the chat can run them too."""

    def __init__(self, home: str | None = None, *, terminal: Terminal | None = None) -> None:
        self.chosen_home = home
        self.terminal = terminal or Terminal()
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
        """Start a gateway in the background if none is running, and say so."""
        from holdfast.client.launch import ensure

        running = ensure(self.client)
        if running.is_new:
            self.note(f"started a gateway (pid {running.address.pid})")
        return running.address

    def environment(self) -> dict[str, str]:
        """All variables of this process but those that are not UTF-8, which cannot be sent."""
        from holdfast.config import own_environment

        sent = {}
        for name, value in own_environment().items():
            try:
                f"{name}{value}".encode()
            except UnicodeEncodeError:
                shown = name.encode(errors="replace").decode()
                self.note(f"warning: the variable {shown} is not UTF-8 and is left out")
            else:
                sent[name] = value
        return sent

    def send_command(
        self,
        kind: type[T],
        target: str,
        /,
        *,
        id: str | None = None,
        shown_by: str = "holdfast sessions",
        **fields: object,
    ) -> T:
        """Send a command, starting a gateway if none is running; fields that are None are left out.

        A retry carries the same id, so it is stored once.
        """
        from holdfast.client.http import new_id
        from holdfast.client.lenient import convert
        from holdfast.client.reconnect import UNREACHABLE, Reconnect

        id = id or new_id()
        body = {name: value for name, value in fields.items() if value is not None}
        reconnect = Reconnect(patience=SEND_SECONDS)
        try:
            while True:
                self.start_gateway()
                try:
                    return convert(self.client.command("POST", target, body, id=id), kind)
                except UNREACHABLE as error:
                    reconnect.failed()
                    reconnect.wait(error)
        except KeyboardInterrupt:
            raise CliError(
                "Interrupted before the gateway answered, so it is not known whether the command was stored.",
                hint=f"Look it up with `{shown_by}`.",
                code=INTERRUPTED,
            ) from None

    def echo(self, text: str | bytes = "", *, nl: bool = True) -> None:
        """Print what was asked for."""
        self.terminal.echo(text, nl=nl)

    def note(self, text: str) -> None:
        """Print a hint, a warning or progress, which is no part of the result."""
        self.terminal.note(text)

    def hint(self, text: str) -> None:
        """Print what could be done next, with the home in the commands that it names; not for programs."""
        if not self.json:
            self.note(click.style(with_home(text), dim=True))

    def confirm(self, question: str, *, yes: bool, declined: str) -> None:
        """Return if somebody agrees, or did with `--yes`; else the command ends with `declined`."""
        if yes:
            return
        if not self.terminal.can_ask:
            raise CliError(f"Not confirmed: {question}", hint="There is no terminal to ask on; add --yes.", code=USAGE)
        if not self.terminal.ask(question):
            raise CliError(declined)

    def result(self, text: str, **fields: object) -> None:
        """Print the result: the text, or with --json the fields."""
        if self.json:
            self.print_json(fields)
        else:
            self.echo(text)

    def show(self, body: Any, kind: type[T], render: Callable[[T], str]) -> T:
        """Print what the gateway sent, as it is with --json and else as `render` puts it; return it as a struct."""
        from holdfast.client.lenient import convert

        found = convert(body, kind)
        if self.json:
            self.print_json(body)
        else:
            self.echo(render(found))
        return found

    def accepted(
        self, accepted: Accepted | TaskAccepted | CardAccepted | BoardAccepted, done: str, **fields: object
    ) -> None:
        """Print what was done, or with --json where it is in the log and the fields."""
        from holdfast.cli.screen import clean

        noun = next(noun for noun in ("card", "board", "task", "session") if hasattr(accepted, noun))
        id = getattr(accepted, noun)
        name = getattr(accepted, "label", id)
        self.result(f"{name}: {clean(done)}", **{noun: id, "version": accepted.version, "seq": accepted.seq} | fields)

    @property
    def plain(self) -> bool:
        """Whether the person asked for output without colour."""
        from holdfast.config import no_color

        return no_color()

    def print_json(self, value: object, *, one_line: bool = False) -> None:
        """Print a value for programs: on one line, or indented on a terminal unless it is one of many."""
        import json

        if one_line or not sys.stdout.isatty():
            self.echo(json.dumps(value, ensure_ascii=False, sort_keys=True))
            return
        from holdfast.cli.screen import escaped_json

        self.echo(escaped_json(json.dumps(value, ensure_ascii=False, sort_keys=True, indent=2)))


def _set_home(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.ensure_object(Cli).chosen_home = value
        use_home(value)


def _set_json(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.ensure_object(Cli).json = value


HOME: dict[str, Any] = {
    "metavar": "DIR",
    "callback": _set_home,
    "help": "The directory with all data.",
    "is_eager": True,
}
JSON: dict[str, Any] = {"is_flag": True, "callback": _set_json, "help": "Print JSON, for scripts."}
home_option = click.option("--home", expose_value=False, **HOME)
SHARED_OPTIONS = (
    click.Option(["--home"], expose_value=False, **HOME),
    click.Option(["--json"], expose_value=False, **JSON),
)
"""What every verb has. They are made once, since the commands of a noun are all made when one of them is used."""
pass_cli = click.make_pass_decorator(Cli)
