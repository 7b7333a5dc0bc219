"""What waits for a person: the same in every client."""

from __future__ import annotations

import re

from tests.cli.commandline import CommandLine
from tests.e2e.gateway import GatewayProcess, until

NINE = 9


def blocked(gateway: GatewayProcess) -> set[str]:
    return {card["id"] for card in gateway.get("/v1/cards", status="blocked")["cards"]}


def test_promise_5_nine_blocked_cards_are_the_same_nine_everywhere(gateway: GatewayProcess) -> None:
    for number in range(NINE):
        body = {"title": f"number {number}", "profile": "demo", "body": f"block question {number}?"}
        gateway.command("POST", "/v1/cards", body)
    until(lambda: len(blocked(gateway)) == NINE, "all of them are blocked")
    nine = blocked(gateway)

    found = gateway.get("/v1/inbox")
    assert {entry["id"] for entry in found["entries"]} == nine
    numbers = {f"HF-{number}" for number in range(1, NINE + 1)}
    assert {entry["link"].rpartition("/")[2] for entry in found["entries"]} == numbers
    assert found["total"] == NINE
    assert gateway.get("/v1/status")["inbox"] == {"blocked_card": NINE}

    cli = CommandLine(gateway.home)
    assert set(re.findall(r"blocked card, .*: card (\S+) ", cli.ok("inbox"))) == numbers
    assert re.search(r"waits for you +9 blocked cards \(holdfast inbox\)", cli.ok("status"))
    assert set(re.findall(r"^Blocked card, .*: card (\S+) ", cli.ok("why"), re.M)) == numbers

    session = gateway.create("inbox")
    gateway.until_rest(session)
    (told,) = [r["event"]["output"] for r in gateway.events(session) if r["event"]["kind"] == "ToolCallFinished"]
    assert set(re.findall(r"^Blocked card, .*: card (\S+) ", told, re.M)) == numbers


def test_a_failed_turn_is_dismissed_from_the_command_line(gateway: GatewayProcess) -> None:
    session = gateway.create("fail")
    gateway.until_rest(session)
    cli = CommandLine(gateway.home)
    assert f"holdfast inbox --dismiss {session}" in cli.ok("inbox")
    assert f"session {session}" in cli.ok("why")
    assert "dismissed" in cli.ok("inbox", "--dismiss", session[:8])
    assert session not in cli.ok("inbox")
    assert session not in cli.ok("why")
    assert cli("inbox", "--dismiss", session).returncode == 5


def test_a_question_is_answered_by_the_id_of_its_session(gateway: GatewayProcess) -> None:
    session, other = (gateway.create('call question {"text": "which one?"}') for _ in range(2))
    until(lambda: len(gateway.get("/v1/inbox")["waits"]) == 2, "both ask")
    cli = CommandLine(gateway.home)
    assert "which one?" in cli.ok("inbox", session[:8])
    assert session in cli.ok("answer", session, "this one")
    assert [wait["session"] for wait in gateway.get("/v1/inbox")["waits"]] == [other]
    gateway.until_rest(session)
    assert cli("answer", session, "again").returncode == 4, "it waits for nothing"


def test_a_card_without_a_profile_gets_the_default_one(gateway: GatewayProcess) -> None:
    body = {"title": "t", "body": "complete it"}
    card = gateway.command("POST", "/v1/cards", body)["card"]
    assert gateway.get(f"/v1/cards/{card}")["card"]["profile"] == "demo"


def test_the_log_of_a_card_continues_past_a_run_whose_session_was_deleted(gateway: GatewayProcess) -> None:
    def runs() -> list[dict[str, str]]:
        found: list[dict[str, str]] = gateway.get(f"/v1/cards/{card}")["runs"]
        return found

    body = {"title": "t", "profile": "demo", "body": "say something\nblock which?"}
    card = gateway.command("POST", "/v1/cards", body)["card"]
    until(lambda: card in blocked(gateway), "it is blocked")
    gateway.command("POST", f"/v1/cards/{card}/unblock", {"fresh": True, "text": "complete it"})
    until(lambda: len(runs()) == 2 and runs()[1]["finished_at"], "its second run is over")
    first = runs()[0]["session"]
    gateway.until_rest(first)
    gateway.command("DELETE", f"/v1/sessions/{first}", {})
    done = CommandLine(gateway.home)("card", "log", card)
    assert done.returncode == 0, done.stderr
    assert f"{first}" in done.stderr and "What run 1 said and did was deleted with it." in done.stderr
    assert "run 2 " in done.stdout


def test_a_page_of_cards_says_why_those_that_wait_are_not_started(gateway: GatewayProcess) -> None:
    gateway.command("POST", "/v1/boards", {"board": "still"})
    gateway.command("POST", "/v1/boards/still/pause", {})
    body = {"title": "t", "profile": "demo", "body": "complete it", "board": "still"}
    card = gateway.command("POST", "/v1/cards", body)["card"]
    assert gateway.get("/v1/cards", board="still")["why"] == {}
    assert "is paused by api" in gateway.get("/v1/cards", board="still", why="true")["why"][card]
