"""The board in the chat, on a real terminal; and a chat on the session of a worker."""

from __future__ import annotations

from pathlib import Path

from tests.chat.terminal import on_terminal
from tests.cli.commandline import CommandLine
from tests.e2e.gateway import GatewayProcess, Json, until, wait_for


def stands(gateway: GatewayProcess, card: str, wanted: str) -> Json:
    def found() -> Json | None:
        detail: Json = gateway.get(f"/v1/cards/{card}")
        return detail if detail["card"]["status"] == wanted else None

    return until(found, f"card {card} is {wanted}")


def test_a_card_is_added_explained_and_unblocked(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    with on_terminal(cli, cwd=cwd, columns=100) as chat:
        chat.until("idle")
        chat.enter("/board")
        chat.until("There are no cards here yet.")
        chat.enter("/card add block which key?")  # this session begins with it, and is told
        chat.until("follow it: holdfast card log", "note Card ", "is blocked (needs input): which key?")
        (card,) = gateway.get("/v1/cards")["cards"]
        short = card["id"][:6]
        chat.enter(f"/card show {short.upper()}")
        chat.until("blocked (needs input)", "RUN  OUTCOME")
        chat.enter("/card why hf-1")
        chat.until("It is blocked (needs input)")
        chat.enter("/board")
        chat.until("BLOCKED 1", "needs input: which key?")
        chat.enter(f"/card comment {short} it's under the mat")
        chat.until("HF-1: commented; its worker will get the comment")
        chat.enter(f"/card unblock {short} complete found it")
        chat.until("is done: found it")
        chat.enter(f"/card unblock {short}")
        chat.until("It is not blocked; it has been done for")
        chat.enter("/card")
        chat.until("STATUS", "found it")
        chat.enter("/card shwo abcd12")
        chat.until("No such command 'shwo'. Did you mean 'show'?")
        chat.enter("/card comment abcd12")
        chat.until("Missing argument 'TEXT'. See /card comment --help.")
        chat.enter("/board watch")
        chat.until("/board watch is not for the chat")
    comments = gateway.get(f"/v1/cards/{card['id']}")["comments"]
    assert [one["text"] for one in comments] == ["it's under the mat", "complete found it"]


def test_the_chat_of_a_worker_says_that_messages_become_comments(
    gateway: GatewayProcess, cli: CommandLine, cwd: Path
) -> None:
    gate = cwd / "gate"
    body = f"sh {wait_for(gate)}\nsay end\nblock enough"
    card = cli.ok("card", "add", "worker", "--body", body, "--profile", "demo").strip()
    session = stands(gateway, card, "running")["card"]["session"]
    with on_terminal(cli, "chat", session[:8], cwd=cwd, columns=120) as chat:
        chat.until(f"Run 1 of card {card} works in this session. Messages become comments on the card")
        chat.until(f"card {card}: messages become comments")
        chat.enter("say I heard it")
        until(lambda: gateway.get(f"/v1/cards/{card}")["comments"], "it was said")
        gate.touch()
        chat.until("I heard it", f"Run 1 of card {card} is over. Messages no longer reach the card.")
        chat.until_idle()
        assert f"card {card}: messages become comments" not in chat.emulator.screen.rsplit("\n", 1)[-1]
        assert "nothing is running" in chat.leave()
    found = stands(gateway, card, "blocked")
    assert [one["text"] for one in found["comments"]] == ["say I heard it"]


def test_verbs_and_ids_of_cards_are_completed(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    card = cli.ok("card", "add", "the title", "--triage").strip()
    with on_terminal(cli, cwd=cwd) as chat:
        chat.until("idle")
        chat.type("/card unb")
        chat.until(" unblock")
        chat.type("\x15/card show ")
        until(lambda: _offered(chat, card), "the id is offered")
        chat.type("\x15")


def _offered(chat: object, card: str) -> bool:
    from tests.chat.terminal import Terminal

    assert isinstance(chat, Terminal)
    chat.type("x\x7f")  # completion looks again when something is typed
    return card in chat.look()
