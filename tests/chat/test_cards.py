"""The board in the chat, on a real terminal; and a chat on the session of a worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cli.chat.slash import InvalidInput, ParsedLine, Slash, parse_line
from tests.chat.seat import sit_down
from tests.cli.commandline import CommandLine
from tests.e2e.gateway import GatewayProcess, Json, until, wait_for


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("/board", Slash("board")),
        ("/board web", Slash("board", "web")),
        ("/card", Slash("card", "list")),
        ("/card show ABCD12", Slash("card", "show abcd12")),
        ("/card comment abcd12 two\nlines", Slash("card", "comment abcd12 two\nlines")),
        ("/card unblock abcd12", Slash("card", "unblock abcd12")),
        ("/card add write it\nline by line", Slash("card", "add write it\nline by line")),
    ],
)
def test_a_line_about_cards_means(typed: str, meant: ParsedLine) -> None:
    assert parse_line(typed, None) == meant


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("/card shwo abcd12", "Did you mean /card show?"),
        ("/card show", "takes the id of a card"),
        ("/card show the one", "takes the id of a card"),
        ("/card show abcd12 now", "nothing else"),
        ("/card comment abcd12", "/card comment needs more"),
        ("/card add", "needs a text"),
        ("/card list all", "takes nothing"),
    ],
)
def test_what_cannot_be_meant_about_cards_is_explained(typed: str, said: str) -> None:
    found = parse_line(typed, None)
    assert isinstance(found, InvalidInput)
    assert said in found.message


def stands(gateway: GatewayProcess, card: str, wanted: str) -> Json:
    def found() -> Json | None:
        detail: Json = gateway.get(f"/v1/cards/{card}")
        return detail if detail["card"]["status"] == wanted else None

    return until(found, f"card {card} is {wanted}")


def test_a_card_is_written_asked_about_and_let_go_on(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    with sit_down(cli, cwd=cwd, columns=100) as seat:
        seat.until("idle")
        seat.enter("/board")
        seat.until("There is no card here yet.")
        seat.enter("/card add block which key?")  # this session begins with it, and is told
        seat.until(
            "this session is told of its blocks and its end", "note Card ", "is blocked (needs_input): which key?"
        )
        (card,) = gateway.get("/v1/cards")["cards"]
        short = card["id"][:6]
        seat.enter(f"/card show {short}")
        seat.until("blocked (needs_input)", "RUN  OUTCOME")
        seat.enter(f"/card why {short}")
        seat.until("It is blocked (needs_input)")
        seat.enter("/board")
        seat.until("BLOCKED 1", "needs input: which key?")
        seat.enter(f"/card comment {short} under the mat")
        seat.until(f"card {card['id']}: It is blocked")
        seat.enter(f"/card unblock {short} complete found it")
        seat.until("is done: found it")
        seat.enter(f"/card unblock {short}")
        seat.until("It is not blocked; it has been done for")
        seat.enter("/card")
        seat.until("STATUS", "found it")
    comments = gateway.get(f"/v1/cards/{card['id']}")["comments"]
    assert [one["text"] for one in comments] == ["under the mat", "complete found it"]


def test_who_sits_at_a_worker_is_told_that_words_become_comments(
    gateway: GatewayProcess, cli: CommandLine, cwd: Path
) -> None:
    gate = cwd / "gate"
    body = f"sh {wait_for(gate)}\nsay end\nblock enough"
    card = cli.ok("card", "add", "worker", "--body", body, "--profile", "demo").strip()
    session = stands(gateway, card, "running")["card"]["session"]
    with sit_down(cli, "chat", session[:8], cwd=cwd, columns=120) as seat:
        seat.until(f"Run 1 of card {card} works here. Messages become comments on the card")
        seat.until(f"card {card}: words are comments")
        seat.enter("say I heard it")
        until(lambda: gateway.get(f"/v1/cards/{card}")["comments"], "it was said")
        gate.touch()
        seat.until("I heard it", f"Run 1 of card {card} is over. Messages no longer reach the card.")
        seat.until_idle()
        assert f"card {card}: words are comments" not in seat.emulator.screen.rsplit("\n", 1)[-1]
        assert "nothing is at work" in seat.leave()
    found = stands(gateway, card, "blocked")
    assert [one["text"] for one in found["comments"]] == ["say I heard it"]


def test_verbs_and_ids_of_cards_are_completed(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    card = cli.ok("card", "add", "the title", "--triage").strip()
    with sit_down(cli, cwd=cwd) as seat:
        seat.until("idle")
        seat.type("/card unb")
        seat.until(" unblock")
        seat.type("\x15/card show ")
        until(lambda: _offered(seat, card), "the id is offered")
        seat.type("\x15")


def _offered(seat: object, card: str) -> bool:
    from tests.chat.seat import Seat

    assert isinstance(seat, Seat)
    seat.type("x\x7f")  # completion looks again when something is typed
    return card in seat.look()
