"""`why`: in every state a sentence that is true, and that names an event which exists and fits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.gateway import GatewayProcess, Json, until

HOLDING = Path(__file__).parents[1] / "e2e" / "holding_gateway.py"
SPEAKS, THINKS = (f"{verb} 300 {'word ' * 3000}" for verb in ("slow", "think"))
"""The first word comes at once, the last one after minutes."""


def ask(gateway: GatewayProcess, session: str) -> list[tuple[str, str]]:
    """Each sentence with the kind of the event that it rests on."""
    records = gateway.events(session)
    answer = gateway.get(f"/v1/sessions/{session}/why")
    assert answer["subject"] == f"session {session}"
    found = []
    for sentence in answer["sentences"]:
        assert sentence["stream"] == f"session/{session}"
        record = records[sentence["version"] - 1]
        assert sentence["at"] == record["at"], sentence
        found.append((sentence["text"], record["event"]["kind"]))
    assert found, "there is always an answer"
    return found


def until_said(gateway: GatewayProcess, session: str, words: str) -> None:
    """Wait until the first sentence has these words."""
    path = f"/v1/sessions/{session}/why"
    until(lambda: words in gateway.get(path)["sentences"][0]["text"] or None, f"it says {words!r}")


def in_the_whole(gateway: GatewayProcess, session: str) -> Json | None:
    """What `why` without an id says of this session."""
    answer = gateway.get("/v1/why")
    assert answer["subject"] == "gateway"
    for sentence in answer["sentences"]:
        if session in sentence["text"]:
            assert sentence["stream"] == f"session/{session}"
            return dict(sentence)
    return None


@contextmanager
def holding(directory: Path, kind: str) -> Iterator[GatewayProcess]:
    with GatewayProcess(directory / "home", script=HOLDING, arguments=(kind,)) as gateway:
        yield gateway


def test_never_used(gateway: GatewayProcess) -> None:
    session = gateway.create()
    assert ask(gateway, session) == [("Idle. It has received no message yet.", "SessionCreated")]
    assert in_the_whole(gateway, session) is None


def test_never_used_but_renamed(gateway: GatewayProcess) -> None:
    session = gateway.create()
    gateway.command("PATCH", f"/v1/sessions/{session}", {"title": "other"})
    ((text, _),) = ask(gateway, session)
    assert text == "Idle. It has received no message yet."


def test_done(gateway: GatewayProcess) -> None:
    session = gateway.create("say hello")
    gateway.until_rest(session)
    gateway.command("PATCH", f"/v1/sessions/{session}", {"title": "other"})
    ((text, kind),) = ask(gateway, session)
    assert text.startswith("Idle. Turn 1 finished ") and text.endswith("the agent had nothing more to do.")
    assert kind == "TurnFinished"
    assert in_the_whole(gateway, session) is None


def test_failed(gateway: GatewayProcess) -> None:
    session = gateway.create("fail")
    gateway.until_rest(session)
    ((text, kind),) = ask(gateway, session)
    assert "Turn 1 failed" in text and "because the message asked for it" in text and "Send another message" in text
    assert kind == "TurnFinished"


def test_a_model_that_thinks_before_it_answers(gateway: GatewayProcess) -> None:
    session = gateway.create(THINKS)
    until_said(gateway, session, "is thinking")
    gateway.command("POST", f"/v1/sessions/{session}/stop")


def test_running_model_with_a_queue_then_stopped(gateway: GatewayProcess) -> None:
    session = gateway.create(SPEAKS)
    until_said(gateway, session, "is answering")
    gateway.send(session, "say later " + "x" * 200)
    gateway.send(session, "say soon", mode="steer")
    (now, kind), (began, started), (first, one), (second, two) = ask(gateway, session)
    assert now.startswith("Turn 1: model demo is answering; it was asked ") and now.endswith("ago (step 1).")
    assert kind == "ModelRequested"
    assert began.startswith("Turn 1 began ") and started == "TurnStarted"
    assert first.startswith("Message 1 in the queue (queue, from api) has been waiting for ") and one == "InputReceived"
    assert len(first) < 160, "a long message is shortened"
    assert (
        second.startswith("Message 2 in the queue (steer, from api) has been waiting for ") and two == "InputReceived"
    )
    whole = in_the_whole(gateway, session)
    assert whole is not None and "model demo is answering" in whole["text"]

    gateway.command("POST", f"/v1/sessions/{session}/stop")
    gateway.until_rest(session)
    records = gateway.events(session)
    assert "stopped by api" in next(r["event"]["reason"] for r in records if r["event"]["kind"] == "TurnFinished")


def test_stopped(gateway: GatewayProcess) -> None:
    session = gateway.create("slow 60 one two three")
    gateway.until_event(session, "ModelRequested")
    gateway.command("POST", f"/v1/sessions/{session}/stop")
    gateway.until_rest(session)
    ((text, kind),) = ask(gateway, session)
    assert "Turn 1 was stopped" in text and "stopped by api" in text
    assert kind == "TurnFinished"


def test_archived(gateway: GatewayProcess) -> None:
    session = gateway.create("say hello")
    gateway.until_rest(session)
    gateway.command("POST", f"/v1/sessions/{session}/archive")
    (rests, _), (archived, kind) = ask(gateway, session)
    assert rests.startswith("Idle.")
    assert archived == "It is archived; a message restores it."
    assert kind == "SessionArchived"
    gateway.command("PATCH", f"/v1/sessions/{session}", {"title": "renamed since"})
    assert ask(gateway, session)[1] == (archived, "SessionArchived"), "still the event that it rests on"


def test_running_tool(tmp_path: Path) -> None:
    with holding(tmp_path, "ToolCallFinished") as gateway:
        session = gateway.start().create("write f.txt hello", cwd=tmp_path)
        gateway.until_event(session, "ToolCallStarted")
        (text, kind), _ = ask(gateway, session)
        assert text.startswith("Turn 1 has been running for ") and text.endswith("`write` f.txt.")
        assert kind == "ToolCallStarted"


def test_queued(tmp_path: Path) -> None:
    """Said, but not begun yet."""
    with holding(tmp_path, "TurnStarted") as gateway:
        session = gateway.start().create("say hello")
        ((text, kind),) = ask(gateway, session)
        assert text.startswith("Message 1 in the queue (queue, from api) has been waiting for ") and text.endswith(
            ": say hello"
        )
        assert kind == "InputReceived"
        assert gateway.session(session)["state"] == "queued"
        assert in_the_whole(gateway, session) is not None


def test_suspended(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home").start() as gateway:
        session = gateway.create("slow 60 one two three")
        gateway.until_event(session, "ModelRequested")
        assert gateway.terminate() == 0
    with holding(tmp_path, "TurnResumed") as gateway:
        gateway.start()
        (text, kind), *_ = ask(gateway, session)
        assert text == "Turn 1 is suspended (the gateway was shut down); it resumes when a gateway is running."
        assert kind == "TurnSuspended"
        assert gateway.session(session)["state"] == "suspended"


def test_resumed(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home").start() as gateway:
        session = gateway.create(SPEAKS)
        gateway.until_event(session, "ModelRequested")
        gateway.kill9()
        gateway.start()
        gateway.until_event(session, "ModelRequested", count=2)
        until_said(gateway, session, "is answering")
        (text, kind), (resumed, by), (_, started) = ask(gateway, session)
        assert "(step 1, request 2)" in text and kind == "ModelRequested"
        assert resumed.startswith("It was resumed ") and resumed.endswith("the gateway was killed or crashed.")
        assert (by, started) == ("TurnResumed", "TurnStarted")


def test_stopping(tmp_path: Path) -> None:
    with holding(tmp_path, "TurnFinished") as gateway:
        session = gateway.start().create("slow 60 one two three")
        gateway.until_event(session, "ModelRequested")
        gateway.command("POST", f"/v1/sessions/{session}/stop")
        (text, kind), *_ = ask(gateway, session)
        assert text == "Turn 1 is about to end: stopped by api."
        assert kind == "StopRequested"


def test_interrupting(tmp_path: Path) -> None:
    with holding(tmp_path, "TurnFinished") as gateway:
        session = gateway.start().create("slow 60 one two three")
        gateway.until_event(session, "ModelRequested")
        gateway.send(session, "say now", mode="interrupt")
        (text, kind), *_ = ask(gateway, session)
        assert text == "Turn 1 is about to end: interrupted by a message from api."
        assert kind == "InputReceived"


@pytest.mark.parametrize("id", ["0123456789abcdef", "x"])
def test_unknown(gateway: GatewayProcess, id: str) -> None:
    assert gateway.request("GET", f"/v1/sessions/{id}/why").status_code == 404


def test_deleted(gateway: GatewayProcess) -> None:
    session = gateway.create()
    gateway.command("DELETE", f"/v1/sessions/{session}")
    assert gateway.request("GET", f"/v1/sessions/{session}/why").status_code == 410


def test_a_gateway_that_can_write_says_nothing_of_its_disk(gateway: GatewayProcess) -> None:
    gateway.until_rest(gateway.create("fail"))
    sentences = gateway.get("/v1/why")["sentences"]
    assert sentences and all(one["text"] and one["stream"] != "system" for one in sentences)
