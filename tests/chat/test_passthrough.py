"""Slash commands that are commands of the command line: how words are split, what is refused, what is shown."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from holdfast.cli.chat.blocks import ListingBlock, NoticeBlock
from holdfast.cli.chat.passthrough import MOST_LINES, BlockTerminal, ThisSession, TypedWords, run_command, split_words
from holdfast.cli.screen import dim
from holdfast.cli.values import CARD, TEXT
from tests.e2e.gateway import GatewayProcess

HERE = ThisSession("abcd" * 4, "demo")


@click.command
@click.argument("card", type=CARD)
@click.argument("text", type=TEXT, required=False)
@click.option("--message", "-m", "message")
@click.option("--fresh", is_flag=True)
def comment(card: str, text: str | None, message: str | None, fresh: bool) -> None:
    del card, text, message, fresh


@click.command
@click.argument("name")
def show(name: str) -> None:
    del name


@pytest.mark.parametrize(
    ("line", "options", "arguments"),
    [
        ('ab12 it\'s "quoted" --and all', [], ["ab12", 'it\'s "quoted" --and all']),
        ("ab12 two\n  lines ", [], ["ab12", "two\n  lines"]),
        ("--fresh ab12 say it", ["--fresh"], ["ab12", "say it"]),
        ("ab12 --fresh say it", ["--fresh"], ["ab12", "say it"]),
        ("-m short ab12", ["-m", "short"], ["ab12"]),
        ('--message "two words" ab12', ["--message", "two words"], ["ab12"]),
        ("--message=one ab12", ["--message=one"], ["ab12"]),
        ("ab12 --frsh say it", ["--frsh"], ["ab12", "say it"]),
        ("ab12 -- --fresh is a word", [], ["ab12", "--fresh is a word"]),
        ("ab12 - a point", [], ["ab12", "- a point"]),
        ("ab12 -5 degrees", [], ["ab12", "-5 degrees"]),
        ("ab12 -- -- twice", [], ["ab12", "-- twice"]),
        ("", [], []),
    ],
)
def test_a_text_at_the_end_is_the_rest_of_the_line(line: str, options: list[str], arguments: list[str]) -> None:
    assert split_words(comment, line) == TypedWords(options, arguments)


def test_an_argument_that_is_no_text_is_a_single_token() -> None:
    assert split_words(show, 'a "b c" d\'e') == TypedWords([], ["a", "b c", "d'e"])


def only_remark(home: Path, line: str) -> str:
    (block,) = run_command(str(home), line, here=HERE)
    assert isinstance(block, NoticeBlock)
    assert block.tone == "warning"
    return block.text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("devices revok x", "No such command 'revok'. Did you mean 'revoke'? See /devices --help."),
        ("devices revoke", "Missing argument 'DEVICE'. See /devices revoke --help."),
        ("devices --home /elsewhere", "The chat is on one home."),
        ("devices revoke -", "Standard input is the keyboard of the chat."),
        ("devices", "/start starts one."),
    ],
)
def test_what_cannot_be_done_is_said_with_what_to_do(tmp_path: Path, line: str, said: str) -> None:
    assert said in only_remark(tmp_path, line)


def test_help_is_shown_as_slash_commands(tmp_path: Path) -> None:
    (block,) = run_command(str(tmp_path), "profiles show --help", here=HERE)
    assert isinstance(block, ListingBlock)
    assert block.lines[0] == "Usage: /profiles show [OPTIONS] NAME"


def test_a_command_prints_what_it_prints_on_the_command_line(gateway: GatewayProcess) -> None:
    (block,) = run_command(str(gateway.home), "profiles", here=HERE)
    assert isinstance(block, ListingBlock)
    assert [line.split()[0] for line in block.lines[1:]] == ["careful", "demo"]
    assert (
        only_remark(gateway.home, "profiles show nobody")
        == "There is no profile nobody. The profiles are: careful, demo."
    )


def test_what_is_meant_in_a_chat_is_filled_in(gateway: GatewayProcess) -> None:
    session = gateway.create("say hello")
    here = ThisSession(session, "careful")
    (block,) = run_command(str(gateway.home), "sessions show", here=here)
    assert isinstance(block, ListingBlock)
    assert session in block.lines[0]
    run_command(str(gateway.home), "card add --triage write it's\n  line by line", here=here)
    (card,) = gateway.get("/v1/cards")["cards"]
    detail = gateway.get(f"/v1/cards/{card['id']}")
    assert (card["title"], card["profile"], card["status"]) == ("write it's", "careful", "triage")
    assert detail["body"] == "write it's\n  line by line"
    assert detail["followers"] == [session]


def test_notifications_are_chosen_for_the_session_of_the_chat(gateway: GatewayProcess) -> None:
    here = ThisSession(id=gateway.create("say hello"), profile="demo")
    gateway.until_rest(here.id)
    run_command(str(gateway.home), "notify never", here=here)
    assert gateway.session(here.id)["tell"] == "never"
    run_command(str(gateway.home), f"notify default {here.id[:8]}", here=here)
    assert gateway.session(here.id)["tell"] == "default"


def test_only_our_own_styling_passes_and_not_too_much_of_it() -> None:
    terminal = BlockTerminal()
    terminal.echo(f"{dim('head')} \x1b]8;;http://x\x1b\\link\x1b[2J\x07 \x1b[8mhidden\u202e")
    terminal.echo("begun", nl=False)
    terminal.note(click.style("beside", fg="red"))
    assert terminal.lines() == [f"{dim('head')} link hidden", "begun", dim("beside")]
    long = BlockTerminal()
    long.echo("line\n" * (MOST_LINES + 7))
    assert long.lines()[MOST_LINES:] == [dim("… 7 more lines")]
