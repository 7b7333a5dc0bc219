"""The queue over HTTP: edit, move, steer, take back; once each, and never after a turn has taken it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.config import Home
from holdfast.lifecycle.doctor import examine
from tests.e2e.gateway import GatewayProcess, Json, kinds, of_kind, until, wait_for

BUSY = "slow 200 " + "word " * 40


def queue(gateway: GatewayProcess, session: str) -> list[tuple[str, str]]:
    return [(entry["text"], entry["mode"]) for entry in gateway.get(f"/v1/sessions/{session}")["queue"]]


@pytest.fixture
def busy(gateway: GatewayProcess) -> str:
    session = gateway.create(BUSY)
    gateway.until_event(session, "ModelRequested")
    return session


def send(gateway: GatewayProcess, session: str, text: str) -> str:
    return f"/v1/sessions/{session}/queue/{gateway.send(session, text)['input']}"


def test_messages_are_reworded_moved_and_withdrawn(gateway: GatewayProcess, busy: str) -> None:
    one, two, three = (send(gateway, busy, f"say {word}") for word in ("one", "two", "three"))
    gateway.command("PATCH", one, {"text": "say uno"})
    gateway.command("PATCH", three, {"place": 1})
    gateway.command("DELETE", two)
    assert queue(gateway, busy) == [("say three", "queue"), ("say uno", "queue")]
    row = gateway.session(busy)
    assert (row["queued"], row["message_count"]) == (2, 3)
    gateway.command("POST", f"/v1/sessions/{busy}/stop")
    records = gateway.until_rest(busy)
    assert [event["text"] for event in of_kind(records, "ModelResponded")] == ["three", "uno"]
    exported = gateway.request("GET", f"/v1/sessions/{busy}/export").text
    assert "reworded by api" in exported and "say uno" in exported and "say one" not in exported
    assert "(withdrawn by api)\n\nsay two" in exported
    assert gateway.session(busy)["message_count"] == 5


def test_steer_now(gateway: GatewayProcess, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    session = gateway.create(f"sh {wait_for(gate)}\nsay done")
    gateway.until_event(session, "ToolCallStarted")
    later = send(gateway, session, "say joined")
    gateway.command("PATCH", later, {"mode": "steer"})
    gate.touch()
    records = gateway.until_rest(session)
    assert "InputsJoined" in kinds(records) and kinds(records).count("TurnStarted") == 1


def test_an_edit_is_stored_once_however_often_it_is_sent(gateway: GatewayProcess, busy: str) -> None:
    path = send(gateway, busy, "say one")
    first = gateway.command("PATCH", path, {"text": "say two"}, key="edit-it-once")
    again = gateway.command("PATCH", path, {"text": "say two"}, key="edit-it-once")
    assert again["duplicate"] and again["version"] == first["version"]
    assert gateway.request("PATCH", path, json={"text": "other"}, key="edit-it-once").status_code == 409
    gone = gateway.command("DELETE", path, key="withdraw-once")
    assert gateway.command("DELETE", path, key="withdraw-once")["version"] == gone["version"]
    assert kinds(gateway.events(busy))[-2:] == ["InputRevised", "InputWithdrawn"]


def test_what_a_turn_has_taken_is_a_conflict_that_says_so(gateway: GatewayProcess) -> None:
    session = gateway.create("say one")
    (said,) = of_kind(gateway.until_rest(session), "InputReceived")
    for method, body in (("PATCH", {"text": "x"}), ("DELETE", None)):
        answer = gateway.request(method, f"/v1/sessions/{session}/queue/{said['input']}", json=body)
        assert answer.status_code == 409
        assert "a turn has taken it" in answer.json()["error"]["message"]


@pytest.mark.parametrize("body", [{}, {"text": ""}, {"text": "  "}, {"place": 0}, {"mode": "now"}, {"input": "x"}])
def test_a_wrong_edit_is_refused(gateway: GatewayProcess, busy: str, body: Json) -> None:
    path = send(gateway, busy, "say one")
    assert gateway.request("PATCH", path, json=body).status_code == 400
    gateway.command("POST", f"/v1/sessions/{busy}/stop")


def test_the_search_finds_what_it_reads_now(gateway: GatewayProcess, busy: str) -> None:
    old, gone = send(gateway, busy, "say zanzibar"), send(gateway, busy, "say kilimanjaro")

    def found(text: str) -> list[int]:
        return [hit["version"] for hit in gateway.get("/v1/search", q=text)["hits"]]

    (version,) = until(lambda: found("zanzibar"), "the message is found")
    gateway.command("PATCH", old, {"text": "say madagascar"})
    gateway.command("DELETE", gone)
    assert until(lambda: found("madagascar"), "the new text is found") == [version]
    until(lambda: not found("zanzibar") and not found("kilimanjaro"), "the old ones are not")


def test_taken_or_withdrawn_and_never_both(gateway: GatewayProcess) -> None:
    session = gateway.create()
    with ThreadPoolExecutor(8) as pool:

        def rush(number: int) -> bool:
            path = send(gateway, session, f"say {number}")
            return gateway.request("DELETE", path).status_code == 202

        withdrawn = list(pool.map(rush, range(60)))
    records = gateway.until_rest(session)
    taken = [input for event in of_kind(records, "TurnStarted", "InputsJoined") for input in event["inputs"]]
    gone = [event["input"] for event in of_kind(records, "InputWithdrawn")]
    said = [event["input"] for event in of_kind(records, "InputReceived")]
    assert sorted(taken + gone) == sorted(said) and len(gone) == sum(withdrawn)
    row = gateway.session(session)
    assert (row["queued"], row["state"]) == (0, "idle")
    assert [
        finding for finding in examine(Home(gateway.home)) if finding.name == "projections" and not finding.ok
    ] == []


def test_pinned_sessions_come_first_and_pages_have_no_gap(gateway: GatewayProcess) -> None:
    made = [gateway.create() for _ in range(5)]
    gateway.command("POST", f"/v1/sessions/{made[1]}/pin", {"pinned": True})
    gateway.command("POST", f"/v1/sessions/{made[3]}/pin")
    assert gateway.request("POST", f"/v1/sessions/{made[3]}/pin").status_code == 409
    assert gateway.session(made[1])["pinned"] is True
    seen: list[str] = []
    page = gateway.get("/v1/sessions", limit=1)
    while page["sessions"]:
        seen += [row["id"] for row in page["sessions"]]
        if page["next"] is None:
            break
        page = gateway.get("/v1/sessions", limit=1, before=page["next"])
    assert sorted(seen[:2]) == sorted([made[1], made[3]])
    assert len(set(seen)) == len(seen) and set(made) <= set(seen)
    gateway.command("POST", f"/v1/sessions/{made[3]}/pin", {"pinned": False})
    assert gateway.session(made[3])["pinned"] is False
