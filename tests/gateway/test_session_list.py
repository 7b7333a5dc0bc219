"""Sessions by kind, with a model of their own, and turns that are repeated."""

from __future__ import annotations

from tests.e2e.board import until_card
from tests.e2e.gateway import GatewayProcess, kinds, of_kind


def listed(gateway: GatewayProcess, kind: str) -> dict[str, str]:
    return {row["id"]: row["kind"] for row in gateway.get("/v1/sessions", kind=kind, limit=500)["sessions"]}


def test_sessions_are_listed_by_kind(gateway: GatewayProcess) -> None:
    mine = gateway.create("say hi")
    background = gateway.command("POST", "/v1/tasks/agents", {"prompt": "say hi"})["session"]
    card = gateway.command("POST", "/v1/cards", {"title": "A card", "body": "complete done"})["card"]
    worker = until_card(gateway, card, "done")["runs"][0]["session"]
    assert listed(gateway, "mine")[mine] == "mine" and set(listed(gateway, "mine").values()) == {"mine"}
    assert listed(gateway, "background") == {background: "background"}
    assert listed(gateway, "worker") == {worker: "worker"}
    everything = listed(gateway, "")
    assert [everything[id] for id in (mine, background, worker)] == ["mine", "background", "worker"]
    assert gateway.request("GET", "/v1/sessions?kind=other").status_code == 400


def test_a_session_begins_with_the_model_that_was_chosen(gateway: GatewayProcess) -> None:
    session = gateway.command("POST", "/v1/sessions", {"text": "say hi", "model": "demo"})["session"]
    records = gateway.until_rest(session)
    assert kinds(records)[:3] == ["SessionCreated", "AgentChosen", "InputReceived"]
    assert gateway.session(session)["model"] == "demo"
    refused = gateway.request("POST", "/v1/sessions", json={"model": "nowhere:large"})
    assert refused.status_code == 400 and "nowhere" in refused.json()["error"]["message"]


def test_the_answer_says_how_long_the_model_thought(gateway: GatewayProcess) -> None:
    session = gateway.create("think 0.05 let me see\nsay hi")
    (said,) = of_kind(gateway.until_rest(session), "ModelResponded")
    assert (said["text"], said["thinking"]) == ("hi", "let me see")
    assert 0 < said["thinking_ms"] <= said["duration_ms"]


def test_a_turn_is_repeated_once_however_often_the_command_comes(gateway: GatewayProcess) -> None:
    session = gateway.create("say one")
    gateway.until_rest(session)
    for text in ("say two", "count"):
        gateway.send(session, text)
        gateway.until_rest(session)
    path = f"/v1/sessions/{session}/repeat"
    first = gateway.command("POST", path, {}, key="once-again")
    assert gateway.command("POST", path, {}, key="once-again") == first | {"duplicate": True}
    assert first["input"] == "once-again"
    gateway.until_rest(session)
    gateway.command("POST", path, {"turn": 2, "text": "count"})
    records = gateway.until_rest(session)
    assert [event["turn"] for event in of_kind(records, "TurnUndone")] == [3, 4, 2]
    seen = gateway.get(f"/v1/sessions/{session}/context")["messages"]
    assert [message["text"] for message in seen][-2:] == [
        "count",
        "I have seen 2 user messages; the first was: say one",
    ]
    refused = gateway.request("POST", path, json={"turn": 2})
    assert refused.status_code == 409 and "does not see turn 2" in refused.json()["error"]["message"]
