"""The root of the command line: global options, and how every command ends."""

from __future__ import annotations

import sys
import warnings

import click

from holdfast import __version__
from holdfast.cli.commands import COMMANDS
from holdfast.cli.context import Cli
from holdfast.cli.errors import FAILED, USAGE, CliError, exit_code
from holdfast.cli.groups import RootGroup
from holdfast.domain.errors import HoldfastError

EPILOG = 'Try: holdfast run --profile demo "say hello". The first 4 characters of an ID are enough if they are unique.'


@click.group(
    cls=RootGroup,
    table=COMMANDS,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
    subcommand_metavar="VERB …",
    invoke_without_command=True,
)
@click.option("--home", metavar="DIR", help="The directory with all data; by default $HOLDFAST_HOME, else ~/.holdfast.")
@click.version_option(__version__, message="holdfast %(version)s")
@click.pass_context
def root(ctx: click.Context, home: str | None) -> object:
    """Run AI agents and shell commands that survive a closed terminal, a crashed server and a reboot."""
    ctx.obj = cli = Cli(home)
    if cli.plain:
        ctx.color = False
    if ctx.invoked_subcommand is None:
        from holdfast.cli.commands.run import chat

        return ctx.invoke(chat)
    return None


def run(arguments: list[str]) -> int:
    """Run a command line; every error becomes a message, a hint and an exit code, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    warnings.showwarning = lambda message, *_, **__: _warn(str(message))
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    try:
        _must_be_utf8(arguments)
        code = root.main(arguments, prog_name="holdfast", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except HoldfastError as error:
        return _tell(error.message, error.hint, exit_code(error))
    except click.UsageError as error:
        return _usage(error)
    except click.ClickException as error:
        return _tell(error.format_message(), "", error.exit_code)
    except click.Abort:
        return 130
    except OSError as error:
        return _tell(f"{error.filename}: {error.strerror}." if error.filename else f"{error}.", "")


def _usage(error: click.UsageError) -> int:
    message = error.format_message()
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(message, err=True)
        return USAGE
    path = error.ctx.command_path if error.ctx is not None else "holdfast"
    return _tell(message, f"See `{path} --help`.", USAGE)


def _must_be_utf8(arguments: list[str]) -> None:
    for argument in arguments:
        try:
            argument.encode("utf-8")
        except UnicodeEncodeError:
            shown = argument.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            raise CliError(f"The argument {shown[:60]!r} is not valid UTF-8.", code=USAGE) from None


def _tell(message: str, hint: str, code: int = FAILED) -> int:
    from holdfast.cli.hints import with_home
    from holdfast.cli.screen import clean  # a message may quote what an agent or another program said

    click.echo(f"{click.style('error:', fg='red', bold=True)} {with_home(clean(message))}", err=True, color=_color())
    if hint:
        click.echo(f"  {click.style('hint:', bold=True)} {with_home(clean(hint))}", err=True, color=_color())
    return code


def _warn(message: str) -> None:
    from holdfast.cli.hints import with_home

    click.echo(f"warning: {with_home(message)}", err=True)


def _color() -> bool | None:
    from holdfast.config import no_color

    return False if no_color() else None
