"""The board, end to end: a card is blocked or its gateway killed, and the next run continues in the same session."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.agents import WIRES, gateway_for, tool_results
from tests.e2e.board import create_card, detail, tell_card, until_card, why_card
from tests.e2e.gateway import GatewayProcess, Json, check_whole, of_kind, until, wait_for
from tests.provider.loopback import Call, Hang, Loopback, Reply, Text, Wire

BOTH = [WIRES[0], *(pytest.param(wire, marks=pytest.mark.proof) for wire in WIRES[1:])]
LATE = Path(__file__).with_name("late_gateway.py")


def allow_everything(gateway: GatewayProcess) -> None:
    config = gateway.home / "config.toml"
    config.write_text(config.read_text().replace('"write" = "ask"', '"*" = "allow"'))


def last_user_turn(body: Json, wire: Wire) -> str:
    """What the model reads as the user's last words; the runtime's own notes stand in blocks of their own."""
    users = [message["content"] for message in body["messages"] if message["role"] == "user"]
    if isinstance(users[-1], str):
        return str(users[-1])
    return "\n".join(str(part.get("text", "")) for part in users[-1])


@pytest.mark.parametrize("wire", BOTH)
def test_scenario_a_blocked_commented_unblocked(tmp_path: Path, server: Loopback, wire: Wire) -> None:
    with gateway_for(tmp_path, server, wire) as gateway:
        allow_everything(gateway)
        (tmp_path / "work" / "notes.txt").write_text("forty-two")
        server.script(
            Reply(Call("read", {"path": "notes.txt"})),
            Reply(Call("kanban_block", {"reason": "Which colour?"})),
            Reply("I wait."),
            Reply(Call("kanban_complete", {"summary": "It is blue.", "artifacts": ["notes.txt"]})),
            Reply("Goodbye."),
        )
        gateway.start()
        follower = gateway.create()
        card = create_card(
            gateway, "Paint it.", profile="tester", workspace=f"dir:{tmp_path / 'work'}", session=follower
        )
        blocked = until_card(gateway, card, "blocked")
        assert blocked["card"]["reason"] == "Which colour?"
        assert "It is blocked (needs input): Which colour?" in why_card(gateway, card)
        tell_card(gateway, card, "comments", {"text": "Blue,\nplease."})
        tell_card(gateway, card, "unblock")
        done = until_card(gateway, card, "done")
        session = done["card"]["session"]
        records = gateway.until_rest(session)
        told = of_kind(gateway.events(follower), "NoteReceived")
    check_whole(records)
    first, second = done["runs"]
    assert (first["session"], second["session"], second["resumes"]) == (session, session, 1)
    assert (done["summary"], done["artifacts"], done["attempts"]) == ("It is blue.", ["notes.txt"], 0)
    body = server.requests[3].body
    results = tool_results(body, wire)
    assert "forty-two" in results[0] and len(results) == 2, "the tool results of the first run, as tool results"
    assert last_user_turn(body, wire).endswith("Blue,\nplease."), "what people wrote is the last thing said"
    assert "wrote:]\nBlue,\nplease." in last_user_turn(body, wire)
    assert [text.partition(") ")[2] for text in (note["text"] for note in told)] == [
        "is blocked (needs input): Which colour?",
        "is done: It is blue.",
    ]


@pytest.mark.parametrize("wire", BOTH)
def test_scenario_b_killed_in_the_middle_and_unblocked_next_morning(
    tmp_path: Path, server: Loopback, wire: Wire
) -> None:
    with gateway_for(tmp_path, server, wire, script=LATE, arguments=("0",)) as gateway:
        allow_everything(gateway)
        (tmp_path / "work" / "notes.txt").write_text("forty-two")
        server.script(
            Reply(Call("read", {"path": "notes.txt"})),
            Reply(Text(["I think", " it is"], delay=0.1), Hang()),
            Reply(Call("kanban_complete", {"summary": "Done."})),
            Reply("Goodbye."),
        )
        gateway.start()
        card = create_card(gateway, "Paint it.", profile="tester", workspace=f"dir:{tmp_path / 'work'}")
        until(lambda: len(server.requests) >= 2, "the second request")
        gateway.kill9()
        gateway.arguments = ("10",)
        gateway.start()
        blocked = until_card(gateway, card, "blocked")
        assert "too long to be resumed automatically" in blocked["card"]["reason"]
        assert [run["outcome"] for run in blocked["runs"]] == ["stopped"]
        until(lambda: gateway.session(blocked["card"]["session"])["state"] == "idle", "the old worker is gone")
        tell_card(gateway, card, "unblock", {"text": "Go on."})
        done = until_card(gateway, card, "done")
    assert [run["resumes"] for run in done["runs"]] == [0, 1]
    assert done["attempts"] == 0
    body = server.requests[2].body
    assert "forty-two" in tool_results(body, wire)[0]
    assert last_user_turn(body, wire).endswith("wrote:]\nGo on.")


def test_a_kill_of_the_gateway_ends_no_run(tmp_path: Path) -> None:
    """With the demo agent: the same run goes on, and no attempt is used up."""
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.start()
        card = create_card(gateway, "write a.txt one\nsh sleep 2\nread a.txt\ncomplete all done", profile="demo")
        session = until_card(gateway, card, "running")["card"]["session"]
        gateway.until_event(session, "ToolCallFinished")
        for _ in range(3):
            gateway.kill9()
            gateway.start()
        done = until_card(gateway, card, "done")
        calls = of_kind(gateway.until_rest(session), "ToolCallFinished")
    assert [(run["run"], run["outcome"], run["counts"]) for run in done["runs"]] == [(1, "done", False)]
    assert [call["tool"] for call in calls] == ["write", "terminal", "read", "kanban_complete"]
    assert {call["outcome"] for call in calls} == {"done"}


def test_a_message_to_a_worker_is_a_comment_and_reaches_it(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.start()
        gate = tmp_path / "gate"
        card = create_card(gateway, f"sh {wait_for(gate)}\nsay waiting", profile="demo")
        session = until_card(gateway, card, "running")["card"]["session"]
        gateway.until_event(session, "ToolCallStarted")
        first = gateway.send(session, "complete as you said", key="a-comment")
        refused = gateway.request("POST", f"/v1/sessions/{session}/undo", json={})
        assert refused.status_code == 409
        assert "works in this session" in refused.json()["error"]["message"]
        gate.touch()
        done = until_card(gateway, card, "done")
        records = gateway.until_rest(session)
        again = gateway.send(session, "complete as you said", key="a-comment")
    assert again == first | {"duplicate": True}, "a retry gets the first answer, also when the run is over"
    assert [comment["text"] for comment in done["comments"]] == ["complete as you said"]
    assert done["summary"] == "as you said"
    assert len(of_kind(records, "InputsJoined")) == 1


def test_the_task_of_a_run_can_be_looked_at_and_stopped(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.start()
        card = create_card(gateway, "hang", profile="demo")
        task = until_card(gateway, card, "running")["runs"][0]["task"]
        gateway.until_event(detail(gateway, card)["card"]["session"], "ModelRequested")
        (listed,) = gateway.get("/v1/tasks", kind="card")["tasks"]
        assert (listed["id"], listed["state"]) == (task, "running")
        assert gateway.get(f"/v1/tasks/{task}/output")["text"] == ""
        assert "has been working for" in gateway.get(f"/v1/tasks/{task}/why")["sentences"][0]["text"]
        first = gateway.command("POST", f"/v1/tasks/{task}/stop", {}, key="stop-the-task")
        blocked = until_card(gateway, card, "blocked")
        again = gateway.command("POST", f"/v1/tasks/{task}/stop", {}, key="stop-the-task")
        assert again == first | {"duplicate": True}
        assert first["session"]
        assert gateway.get(f"/v1/tasks/{task}")["state"] == "stopped"
    assert blocked["runs"][0]["outcome"] == "stopped"


def test_bad_input(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.start()
        card = create_card(gateway, "hang", profile="demo")
        until_card(gateway, card, "running")
        for path, body, code, words in [
            ("/v1/cards", {"title": "x", "profile": "nobody"}, 400, "There is no profile 'nobody'."),
            ("/v1/cards", {"title": "x", "workspace": "dir:relative"}, 400, "is not the absolute path of a directory"),
            ("/v1/cards", {"title": "x", "board": "nowhere"}, 400, "There is no board 'nowhere'."),
            ("/v1/cards", {"title": "x", "at": 1}, 400, "That time has passed."),
            ("/v1/cards", {"title": "x", "after_ms": 0}, 400, "That time has passed."),
            ("/v1/cards", {"title": "x", "at": 1, "after_ms": 1}, 400, "not both"),
            ("/v1/cards", {"title": "x", "parents": ["ffffffff"]}, 404, "There is no card ffffffff."),
            (f"/v1/cards/{card}/unblock", {}, 409, "It is not blocked: it has been running for"),
            (f"/v1/cards/{card}/retry", {}, 409, "The card is running."),
            (f"/v1/cards/{card}/links", {"parent": card}, 409, "These links would form a cycle: HF-1 → HF-1."),
            (f"/v1/cards/{card}/unlink", {"parent": "ffffffff"}, 409, "It does not wait for that card."),
            (f"/v1/cards/{card}/move", {"status": "done"}, 400, "A card is not moved to done by hand."),
            (f"/v1/cards/{card}/move", {"status": "ready"}, 409, "The card is running."),
            (f"/v1/cards/{card}/move", {"status": "scheduled"}, 400, "`at` is only for the status `scheduled`"),
            (f"/v1/cards/{card}/comments", {"text": " "}, 400, "The comment is empty."),
            ("/v1/cards/ffffffff/unblock", {}, 404, "There is no card ffffffff."),
            ("/v1/boards/nowhere/pause", {}, 404, "There is no board 'nowhere'."),
            ("/v1/boards/default/resume", {}, 409, "It is neither paused nor archived."),
            ("/v1/boards/default/archive", {}, 409, "Cards of this board are running."),
        ]:
            answer = gateway.request("POST", path, json=body)
            assert answer.status_code == code, (path, body, answer.text)
            assert words in answer.json()["error"]["message"], (path, body)
