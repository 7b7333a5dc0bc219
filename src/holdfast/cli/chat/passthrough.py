"""Slash commands that are commands of the command line: the same click commands, and what they print as blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import click

from holdfast.cli.chat.blocks import Block, ListingBlock, NoticeBlock
from holdfast.cli.chat.paint import tidy
from holdfast.cli.context import Cli, Terminal
from holdfast.cli.errors import CliError
from holdfast.cli.groups import first_sentence
from holdfast.cli.hints import error_text, program
from holdfast.cli.screen import dim, plural, shorten
from holdfast.cli.values import BOARD, CARD, SESSION, TASK, TEXT
from holdfast.client.errors import GatewayNotRunning
from holdfast.domain.errors import HoldfastError

MOST_LINES = 400
LOG_LINES = 40
TITLE = 80
STYLING = re.compile(r"(\x1b\[(?:[0-2]|3[0-7]|9[0-7])m)")
"""What `click.style` writes for the colours, bold and dim that the commands use; nothing else passes."""
WORD = re.compile(r'"([^"]*)"(?=\s|\Z)|(\S+)')
ENDLESS = {
    "tasks wait": "it would wait here until the end; a session is notified of the end of what it started",
    "board watch": "it would draw over the chat: /board shows it once",
}
"""Commands that end with Ctrl-C, which stops the turn in the chat."""


@dataclass(frozen=True, slots=True)
class ThisSession:
    """The session that the chat is on, for the commands that are about one."""

    id: str = ""
    profile: str = ""


class BlockTerminal(Terminal):
    """Collects what a command prints, to show it in the conversation. It cannot ask questions."""

    can_ask = False

    def __init__(self) -> None:
        self._text = ""

    def echo(self, text: str | bytes, *, nl: bool = True) -> None:
        """Collect output."""
        text = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        self._text += text + ("\n" if nl else "")

    def note(self, text: str) -> None:
        """Collect a note, dimmed and on its own lines."""
        self._text += "" if self._text.endswith("\n") or not self._text else "\n"
        self._text += "".join(f"{dim(line)}\n" for line in click.unstyle(text).split("\n"))

    def ask(self, question: str) -> bool:
        """Never called, since `can_ask` is false."""
        raise CliError(question)

    def lines(self) -> list[str]:
        """Return the collected lines up to a limit, without sequences that could control the terminal."""
        parts = STYLING.split(self._text.strip("\n"))
        text = "".join(part if index % 2 else tidy(part) for index, part in enumerate(parts))
        found = text.split("\n") if text.strip() else []
        more = len(found) - MOST_LINES
        return found if more <= 0 else [*found[:MOST_LINES], dim(f"… {plural(more, 'more line')}")]


def run_command(home: str, line: str, *, here: ThisSession) -> list[Block]:
    """Run a line such as `tasks log 3bc3`, and return what it printed and why it failed."""
    terminal = BlockTerminal()
    problem = ""
    try:
        _invoke(Cli(home, terminal=terminal), line, here=here)
    except GatewayNotRunning as error:
        problem = f"{error.message} /start starts one."
    except HoldfastError as error:
        problem = error_text(error)
    except click.UsageError as error:
        see = "" if error.ctx is None else f"See {error.ctx.command_path} --help."
        problem = f"{error.format_message()} {see}".rstrip()
    except click.ClickException as error:
        problem = error.format_message()
    except OSError as error:
        problem = f"{error.filename}: {error.strerror}."
    except ValueError as error:  # a zero byte in a path
        problem = f"{error}."
    lines = terminal.lines()
    return [*([ListingBlock(lines)] if lines else []), *([NoticeBlock(problem, "warning")] if problem else [])]


def _invoke(cli: Cli, line: str, *, here: ThisSession) -> None:
    from holdfast.cli.root import root

    found, rest = _find_command(click.Context(root, info_name="", obj=cli), line.strip())
    if {*rest.split()[:1]} & {"-h", "--help"}:
        cli.echo(found.get_help())
        return
    arguments = _arguments(found, rest, here)
    with found.command.make_context(found.info_name, arguments, parent=found.parent) as context:
        context.command.invoke(context)


def _find_command(context: click.Context, line: str) -> tuple[click.Context, str]:
    """Find the command that the first words name; also return the rest of the line."""
    group, (word, *rest) = context.command, line.split(None, 1) or [""]
    command = group.get_command(context, word) if isinstance(group, click.Group) else None
    if command is None:
        return context, line
    name = word if context.parent is not None else f"/{word}"
    return _find_command(click.Context(command, parent=context, info_name=name), "".join(rest))


def _arguments(context: click.Context, rest: str, here: ThisSession) -> list[str]:
    """Return the arguments for the command."""
    command, path = context.command, context.command_path.removeprefix("/")
    if isinstance(command, click.Group):  # without a verb, or with an unknown one
        typed = TypedWords(_words(rest))
        _check(command, path, typed)
        return typed.options
    if path in ENDLESS:
        raise _refused(path, ENDLESS[path])
    typed = split_words(command, rest)
    _check(command, path, typed)
    if not typed.arguments and here.id and _takes_session(command):
        typed.arguments.append(here.id)
    _fill_in(path, typed, here)
    return [*typed.options, "--", *typed.arguments]


@dataclass(slots=True)
class TypedWords:
    """Options with their values, and arguments."""

    options: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)


def split_words(command: click.Command, line: str) -> TypedWords:
    """Split the line after the command. A final TEXT takes the rest of the line as typed, with its quotes."""
    options = {name: option for option in command.params for name in option.opts if isinstance(option, click.Option)}
    takes = [param for param in command.params if isinstance(param, click.Argument)]
    ends_with_text = bool(takes) and (takes[-1].type is TEXT or takes[-1].name == "text")
    before_text = len(takes) - 1 if ends_with_text else None
    found = TypedWords()
    ended = False
    rest = line.strip()
    while rest:
        match = WORD.match(rest)
        assert match is not None
        word = match[2] if match[1] is None else match[1]
        is_option = not ended and match[1] is None and (word in options or re.match(r"--?[a-z]", word) is not None)
        if before_text == len(found.arguments) and not is_option and (ended or word != "--"):
            found.arguments.append(rest)
            break
        rest = rest[match.end() :].lstrip()
        if word == "--" and not ended:
            ended = True
        elif is_option:
            found.options.append(word)
            option = options.get(word)
            value = WORD.match(rest) if isinstance(option, click.Option) and not option.is_flag else None
            if value is not None:
                found.options.append(value[2] if value[1] is None else value[1])
                rest = rest[value.end() :].lstrip()
        else:
            found.arguments.append(word)
    return found


def _words(line: str) -> list[str]:
    return [match[2] if match[1] is None else match[1] for match in WORD.finditer(line)]


def _check(command: click.Command, path: str, typed: TypedWords) -> None:
    """Refuse what a chat cannot do: another home, to follow until Ctrl-C, to read standard input."""
    given = {word.partition("=")[0] for word in typed.options}
    if "--home" in given:
        raise CliError("The chat is on one home.", hint=f"In another terminal: holdfast {path} --home DIR …")
    if "-" in (*typed.options, *typed.arguments):
        raise CliError("Standard input is the keyboard of the chat.", hint="Type the text in the place of `-`.")
    follows = next((option for option in command.params if "-f" in option.opts), None)
    if follows is not None and given & {*follows.opts}:
        raise _refused(f"{path} --follow", "it would stay until Ctrl-C")


def _refused(path: str, why: str) -> CliError:
    return CliError(f"/{path} is not for the chat: {why}.", hint=f"In another terminal: {program()} {path} …")


def _takes_session(command: click.Command) -> bool:
    takes = [param for param in command.params if isinstance(param, click.Argument)]
    return bool(takes) and takes[0].type is SESSION


def _fill_in(path: str, typed: TypedWords, here: ThisSession) -> None:
    """Add the defaults that apply in a chat."""
    if path == "tasks log" and not {"--tail", "-n", "--since"} & {*typed.options}:
        typed.options += ["--tail", str(LOG_LINES)]
    if path == "card add" and typed.arguments:
        filled = {"--follow": here.id, "--profile": here.profile, "--body": typed.arguments[0]}
        typed.options += [
            word for name, value in filled.items() if value and name not in typed.options for word in (name, value)
        ]
        typed.arguments[0] = shorten(" ".join(typed.arguments[0].split("\n", 1)[0].split()), TITLE)


def completed_by(line: str) -> str | list[tuple[str, str]]:
    """What can follow in a command: one of these verbs, or an id of this noun."""
    from holdfast.cli.root import root

    found, rest = _find_command(click.Context(root), line.strip())
    if isinstance(found.command, click.Group):
        verbs = [(name, found.command.get_command(found, name)) for name in found.command.list_commands(found)]
        return [(name, first_sentence((verb.help if verb else "") or "")) for name, verb in verbs] if not rest else []
    takes = [param for param in found.command.params if isinstance(param, click.Argument)]
    place = len(split_words(found.command, rest).arguments)
    kind = takes[place].type if place < len(takes) else None
    return kind.name if kind in (SESSION, TASK, CARD, BOARD) and kind is not None else []
