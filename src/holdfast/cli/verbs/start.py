"""`holdfast start`: a command that is kept, whatever becomes of this terminal and of the gateway."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.conversation import say
from holdfast.cli.errors import USAGE, CliError
from holdfast.cli.hints import program
from holdfast.cli.tasks import find
from holdfast.cli.unquoted import CommandCommand
from holdfast.cli.values import SESSION, UNTIL
from holdfast.client.http import Json, quote

PLAIN = re.compile(r"[\w./+@%:,-]+\Z")
"""A word that means the same to a shell and without one."""


@click.command("start", cls=CommandCommand)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="-- CMD…")
@click.option("--name", metavar="N", help="Its title; by default the command.")
@click.option(
    "--cwd",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    help="Where it runs; by default here.",
)
@click.option(
    "--lifetime",
    type=click.Choice(["persist", "session", "chapter"]),
    help="How long it may live: until it ends (persist), or no longer than --session or its chapter.",
)
@click.option("--until", type=UNTIL, metavar="TIME", help="It may live until then: 2h, 7d, or a date and a time.")
@click.option("--session", type=SESSION, metavar="ID", help="The session that is notified when it ends.")
@click.option("--stdin", is_flag=True, help="Keep its input open for `holdfast tasks write`; else there is none.")
@shared_options
@pass_cli
def command(
    cli: Cli, /, words: tuple[str, ...], lifetime: str | None, until: int | None, **more: str | bool | None
) -> None:
    """Run a command that outlives this terminal and the gateway, with this environment; its whole output is kept.

    Several words are the command and its arguments, as they are. One single word is a text for the shell:
    holdfast start -- 'make && make test'. Starts a gateway in the background when none runs.
    """
    if not words or not words[0].strip():
        raise CliError("There is no command.", hint="holdfast start -- sleep 60", code=USAGE)
    if more["session"]:
        cli.start_gateway()  # it is asked for the session first
    accepted = say(cli, "/v1/tasks", _body(cli, words, lifetime, until, more))
    task = accepted["task"]
    if cli.json:
        cli.print_json({key: accepted[key] for key in ("task", "version", "seq")})
    else:
        print(task)
    found = find(cli.client, task)
    if found.state == "failed" and found.pid is None:
        raise CliError(f"{found.reason}.", hint=found.evidence or f"`holdfast why {task}` says more.")
    if cli.json:
        return
    print(f"its output: {program()} tasks log {task} --follow", file=sys.stderr)
    print(f"its end:    {program()} tasks wait {task}, or {program()} tasks stop {task}", file=sys.stderr)


def _body(cli: Cli, words: tuple[str, ...], lifetime: str | None, until: int | None, more: Json) -> Json:
    if until is not None and lifetime is not None:
        raise CliError("--until is a lifetime of its own.", hint="Leave --lifetime out.", code=USAGE)
    if lifetime in ("session", "chapter") and not more["session"]:
        raise CliError(f"The lifetime {lifetime} is that of a session.", hint="Name it: --session ID.", code=USAGE)
    if len(words) == 1 and not PLAIN.match(words[0]):
        run: Json = {"shell": words[0]}
    else:
        run = {"argv": list(words)}
    body = run | {
        "cwd": more["cwd"] or str(Path.cwd()),
        "env": _environment(),
        "lifetime": "until" if until is not None else lifetime or "persist",
        "stdin": more["stdin"],
    }
    if until is not None:
        body["until"] = until
    if more["session"]:
        body["session"] = cli.client.get(f"/v1/sessions/{quote(more['session'])}")["session"]["id"]
    return body | ({"name": more["name"]} if more["name"] else {})


def _environment() -> dict[str, str]:
    """All of ours; what is not UTF-8 cannot be sent, which is said."""
    from holdfast.config import own_environment

    sent = {}
    for name, value in own_environment().items():
        try:
            f"{name}{value}".encode()
        except UnicodeEncodeError:
            print(
                f"warning: the variable {name.encode(errors='replace').decode()} is not UTF-8 and is left out",
                file=sys.stderr,
            )
            continue
        sent[name] = value
    return sent
