"""The board in the chat, on a real terminal; and a chat on the session of a worker."""

from __future__ import annotations

from pathlib import Path

from tests.chat.seat import sit_down
from tests.cli.commandline import CommandLine
from tests.e2e.gateway import GatewayProcess, Json, until, wait_for


def stands(gateway: GatewayProcess, card: str, wanted: str) -> Json:
    def found() -> Json | None:
        detail: Json = gateway.get(f"/v1/cards/{card}")
        return detail if detail["card"]["status"] == wanted else None

    return until(found, f"card {card} is {wanted}")


def test_a_card_is_written_asked_about_and_let_go_on(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    with sit_down(cli, cwd=cwd, columns=100) as seat:
        seat.until("idle")
        seat.enter("/board")
        seat.until("There are no cards here yet.")
        seat.enter("/card add block which key?")  # this session begins with it, and is told
        seat.until("follow it: holdfast card log", "note Card ", "is blocked (needs input): which key?")
        (card,) = gateway.get("/v1/cards")["cards"]
        short = card["id"][:6]
        seat.enter(f"/card show {short.upper()}")
        seat.until("blocked (needs input)", "RUN  OUTCOME")
        seat.enter("/card why hf-1")
        seat.until("It is blocked (needs input)")
        seat.enter("/board")
        seat.until("BLOCKED 1", "needs input: which key?")
        seat.enter(f"/card comment {short} it's under the mat")
        seat.until("HF-1: commented; its worker will get the comment")
        seat.enter(f"/card unblock {short} complete found it")
        seat.until("is done: found it")
        seat.enter(f"/card unblock {short}")
        seat.until("It is not blocked; it has been done for")
        seat.enter("/card")
        seat.until("STATUS", "found it")
        seat.enter("/card shwo abcd12")
        seat.until("No such command 'shwo'. Did you mean 'show'?")
        seat.enter("/card comment abcd12")
        seat.until("Missing argument 'TEXT'. See /card comment --help.")
        seat.enter("/board watch")
        seat.until("/board watch is not for the chat")
    comments = gateway.get(f"/v1/cards/{card['id']}")["comments"]
    assert [one["text"] for one in comments] == ["it's under the mat", "complete found it"]


def test_who_sits_at_a_worker_is_told_that_words_become_comments(
    gateway: GatewayProcess, cli: CommandLine, cwd: Path
) -> None:
    gate = cwd / "gate"
    body = f"sh {wait_for(gate)}\nsay end\nblock enough"
    card = cli.ok("card", "add", "worker", "--body", body, "--profile", "demo").strip()
    session = stands(gateway, card, "running")["card"]["session"]
    with sit_down(cli, "chat", session[:8], cwd=cwd, columns=120) as seat:
        seat.until(f"Run 1 of card {card} works here. Messages become comments on the card")
        seat.until(f"card {card}: messages become comments")
        seat.enter("say I heard it")
        until(lambda: gateway.get(f"/v1/cards/{card}")["comments"], "it was said")
        gate.touch()
        seat.until("I heard it", f"Run 1 of card {card} is over. Messages no longer reach the card.")
        seat.until_idle()
        assert f"card {card}: messages become comments" not in seat.emulator.screen.rsplit("\n", 1)[-1]
        assert "nothing is running" in seat.leave()
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
