"""Agents, end to end: a real gateway, the real model port, and a model server on loopback."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.agents import WIRES, answer, gateway_for, tool_results, waiting
from tests.e2e.gateway import GatewayProcess, check_whole, kinds, of_kind, until
from tests.provider.loopback import Call, Fail, Hang, Loopback, Reply, Text, Wire

LATE = Path(__file__).with_name("late_gateway.py")


@dataclass(frozen=True)
class Running:
    """A gateway for the tests that leave it alive. It is cold: it imports the model library itself, at its side."""

    gateway: GatewayProcess
    server: Loopback
    work: Path


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path = tmp_path_factory.mktemp("agents")
    with Loopback() as loopback, gateway_for(path, loopback, with_models=False) as gateway:
        gateway.start()
        yield Running(gateway, loopback, path / "work")


@pytest.mark.parametrize("wire", WIRES)
def test_promise_1_an_approval_opened_before_kill_9_is_answered_after_it(
    tmp_path: Path, server: Loopback, wire: Wire
) -> None:
    """Read, then write with an approval; killed while it waits; answered after the restart."""
    work = tmp_path / "work"
    with gateway_for(tmp_path, server, wire) as gateway:
        (work / "notes.txt").write_text("forty-two")
        server.script(
            Reply("Reading.", Call("read", {"path": "notes.txt"})),
            Reply("Writing.", Call("write", {"path": "out/answer.txt", "content": "42"})),
            Reply("All done."),
        )
        gateway.start()
        session = gateway.create("write the answer", cwd=work)
        wait = waiting(gateway)
        assert (wait["purpose"], wait["session"], wait["pattern"]) == ("approval", session, "write:out/*")
        assert "waiting for an approval" in gateway.why(session)[0]["text"]
        gateway.kill9()
        gateway.start()
        assert waiting(gateway)["id"] == wait["id"]
        assert not (work / "out").exists()
        assert answer(gateway, wait["id"][:6], "allow") == 202
        records = gateway.until_rest(session)
    check_whole(records)
    assert (work / "out" / "answer.txt").read_text() == "42"
    (finished,) = of_kind(records, "TurnFinished")
    assert finished["outcome"] == "done"
    assert [call["outcome"] for call in of_kind(records, "ToolCallFinished")] == ["done", "done"]
    assert of_kind(records, "ToolCallFinished")[1]["files"] == ["out/answer.txt"]
    last = server.requests[-1].body
    results = tool_results(last, wire)
    assert len(results) == 2
    assert "forty-two" in results[0]
    assert "You are being tested." in str(last)
    assert "Be brief." in str(last)


def test_an_answer_counts_once(running: Running) -> None:
    gateway = running.gateway
    running.server.script(
        Reply(Call("question", {"text": "Which one?", "choices": ["left", "right"]})), Reply("Thanks.")
    )
    session = gateway.create("ask me", cwd=running.work)
    wait = waiting(gateway)
    assert (wait["purpose"], wait["reason"], wait["choices"]) == ("question", "Which one?", ["left", "right"])
    codes: list[int] = []

    def say(text: str) -> None:
        codes.append(answer(gateway, wait["id"], text))

    people = [threading.Thread(target=say, args=(text,)) for text in ("1", "2", "something else")]
    for person in people:
        person.start()
    for person in people:
        person.join()
    records = gateway.until_rest(session)
    late = gateway.request("POST", "/v1/answers", json={"wait": wait["id"], "answer": "later"})
    assert sorted(codes) == [202, 409, 409]
    assert late.status_code == 409
    assert "answered this already" in late.json()["error"]["message"]
    (answered,) = of_kind(records, "WaitAnswered")
    (finished,) = of_kind(records, "ToolCallFinished")
    assert finished["output"] == answered["answer"]
    assert answered["answer"] in ("left", "right", "something else")


def test_denied_by_a_person_and_by_the_profile(running: Running) -> None:
    gateway = running.gateway
    running.server.script(
        Reply(Call("write", {"path": "no.txt", "content": "x"}), Call("edit", {"path": "a", "old": "x", "new": "y"})),
        Reply("I understand."),
    )
    session = gateway.create("try it", cwd=running.work)
    body = {"wait": waiting(gateway)["id"], "answer": "deny", "note": "not today"}
    assert gateway.request("POST", "/v1/answers", json=body).status_code == 202
    records = gateway.until_rest(session)
    written, edited = of_kind(records, "ToolCallFinished")
    assert (written["outcome"], "not today" in written["output"]) == ("failed", True)
    assert (edited["outcome"], "does not allow" in edited["output"]) == ("failed", True)
    assert not (running.work / "no.txt").exists()


def test_always_is_kept_in_the_profile(running: Running) -> None:
    gateway = running.gateway
    write = Reply(Call("write", {"path": "docs/a.md", "content": "x"}))
    running.server.script(write, Reply("one"), write, Reply("two"))
    first = gateway.create("first", cwd=running.work)
    assert answer(gateway, waiting(gateway)["id"], "always") == 202
    gateway.until_rest(first)
    assert '"write:docs/*" = "allow"' in (gateway.home / "config.toml").read_text()
    second = gateway.create("second", cwd=running.work)
    records = gateway.until_rest(second)
    assert "WaitOpened" not in kinds(records)


def test_always_says_so_when_the_profile_cannot_be_written(running: Running) -> None:
    gateway = running.gateway
    running.server.script(Reply(Call("write", {"path": "notes/a.md", "content": "x"})), Reply("one"))
    first = gateway.create("first", cwd=running.work)
    wait = waiting(gateway)["id"]
    config = gateway.home / "config.toml"
    config.chmod(0o400)
    accepted = gateway.request("POST", "/v1/answers", json={"wait": wait, "answer": "always"})
    assert accepted.status_code == 202
    assert "in this session only" in accepted.json()["warning"]
    assert "read-only" in accepted.json()["warning"]
    gateway.until_rest(first)
    config.chmod(0o600)
    assert "write:notes" not in config.read_text()


def test_promise_5_a_rate_limit_is_a_wait_that_everybody_sees(tmp_path: Path, server: Loopback) -> None:
    """Retry-After becomes a durable wait; it survives a kill and goes on by itself, here an hour later."""
    with gateway_for(tmp_path, server, script=LATE, arguments=("0",)) as gateway:
        server.script(Fail(429, "slow down", headers={"Retry-After": "600"}), Reply("Here I am."))
        gateway.start()
        session = gateway.create("hello", cwd=tmp_path / "work")
        gateway.until_event(session, "WaitOpened")
        sentence = gateway.why(session)[0]["text"]
        assert "tries again" in sentence
        assert gateway.get("/v1/inbox")["waits"] == []
        gateway.kill9()
        gateway.arguments = ("1",)
        gateway.start()
        records = gateway.until_rest(session)
    (opened,) = of_kind(records, "WaitOpened")
    assert opened["purpose"] == "retry"
    (at,) = (record["at"] for record in records if record["event"]["kind"] == "WaitOpened")
    assert 500_000 < opened["until"] - at <= 600_000
    assert of_kind(records, "WaitAnswered")[0]["by"]["name"] == "clock"
    assert of_kind(records, "ModelResponded")[-1]["text"] == "Here I am."
    assert of_kind(records, "TurnFinished")[0]["outcome"] == "done"


def test_stop_cancels_a_retry(running: Running) -> None:
    gateway, before = running.gateway, len(running.server.requests)
    running.server.script(Fail(429, "slow down", headers={"Retry-After": "600"}))
    session = gateway.create("hello", cwd=running.work)
    gateway.until_event(session, "WaitOpened")
    gateway.command("POST", f"/v1/sessions/{session}/stop", {})
    records = gateway.until_rest(session)
    assert of_kind(records, "TurnFinished")[0]["outcome"] == "stopped"
    assert len(running.server.requests) == before + 1


@pytest.mark.parametrize("wire", WIRES)
def test_promise_1_killed_inside_a_stream(tmp_path: Path, server: Loopback, wire: Wire) -> None:
    """On a real port: the partial as partial, the earlier tool result as a tool result."""
    work = tmp_path / "work"
    with gateway_for(tmp_path, server, wire) as gateway:
        (work / "notes.txt").write_text("forty-two")
        words = [f"word{n} " for n in range(12)]
        server.script(
            Reply(Call("read", {"path": "notes.txt"})),
            Reply(Text(words, delay=0.1), Hang()),
            Reply("The whole answer."),
        )
        gateway.start()
        session = gateway.create("read and tell", cwd=work)
        until(lambda: len(server.requests) >= 2, "the second request")
        _wait_until_spoken(gateway, session, "word8")
        gateway.kill9()
        gateway.start()
        records = gateway.until_rest(session)
    (cut,) = of_kind(records, "ModelInterrupted")
    assert cut["text"].startswith("word0")
    assert of_kind(records, "ModelResponded")[-1]["text"] == "The whole answer."
    assert of_kind(records, "InputReceived")[0]["text"] == "read and tell"
    body = server.requests[2].body
    (result,) = tool_results(body, wire)
    assert "forty-two" in result
    assert "interrupted" in str(body)


def _wait_until_spoken(gateway: GatewayProcess, session: str, word: str) -> None:
    """Until a follower has heard the word."""
    path, form = f"/v1/sessions/{session}/events", {"accept": "text/event-stream"}
    with gateway.client.stream("GET", path, headers=form) as heard:
        assert any(word in line for line in heard.iter_lines())


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (Fail(401, "bad key"), "wrong_key"),
        (Fail(404, "no such model", code="model_not_found"), "unknown_model"),
        (Fail(400, "maximum context length exceeded", code="context_length_exceeded"), "context_too_long"),
    ],
)
def test_an_error_is_shown_as_what_it_is(running: Running, failure: Fail, code: str) -> None:
    gateway = running.gateway
    running.server.script(failure)
    session = gateway.create("hello", cwd=running.work)
    records = gateway.until_rest(session)
    (failed,) = of_kind(records, "ModelFailed")
    assert failed["problem"]["code"] == code
    assert of_kind(records, "TurnFinished")[0]["outcome"] == "failed"


def test_undo_fork_and_context(running: Running) -> None:
    gateway = running.gateway
    running.server.script(Reply("one"), Reply("two"), Reply("three"))
    session = gateway.create("first", cwd=running.work)
    gateway.until_rest(session)
    middle = gateway.session(session)["version"]
    gateway.send(session, "second")
    gateway.until_rest(session)
    fork = gateway.command("POST", f"/v1/sessions/{session}/fork", {"version": middle})["session"]
    gateway.command("POST", f"/v1/sessions/{session}/undo", {})
    seen = gateway.get(f"/v1/sessions/{session}/context")["messages"]
    assert [message["text"] for message in seen] == ["first", "one"]
    gateway.send(fork, "third")
    records = gateway.until_rest(fork)
    assert gateway.session(fork)["parent"] == session
    sent = running.server.requests[-1].body["messages"]
    assert [message["content"] for message in sent if message["role"] != "system"] == ["first", "one", "third"]
    assert of_kind(records, "ModelResponded")[-1]["text"] == "three"


def test_a_session_that_waited_can_be_forked(running: Running) -> None:
    gateway = running.gateway
    running.server.script(Reply(Call("question", {"text": "Well?"})), Reply("Good."))
    session = gateway.create("ask", cwd=running.work)
    assert answer(gateway, waiting(gateway)["id"], "yes") == 202
    gateway.until_rest(session)
    fork = gateway.command("POST", f"/v1/sessions/{session}/fork", {})["session"]
    assert kinds(gateway.events(fork))[1:] == [*kinds(gateway.events(session))[1:], "ResetPolicySet"]


def rewrite(path: Path, text: str) -> None:
    """At once: whoever reads it in the middle of a plain write would take half of it for the whole."""
    draft = path.with_suffix(".draft")
    draft.write_text(text)
    draft.chmod(0o600)
    draft.replace(path)


def test_settings_are_read_again_and_an_error_keeps_the_last_good_ones(tmp_path: Path, server: Loopback) -> None:
    with gateway_for(tmp_path, server) as gateway:
        gateway.start()
        config = gateway.home / "config.toml"
        good = config.read_text()
        rewrite(config, good + '\n[profiles.other]\nmodel = "demo"\n')
        names = [profile["name"] for profile in gateway.get("/v1/profiles")["profiles"]]
        assert "other" in names
        rewrite(config, good + '\n[profiles.other]\nmodle = "demo"\n')
        found = gateway.get("/v1/profiles")
        assert "modle" in found["problem"]
        assert "other" in [profile["name"] for profile in found["profiles"]]
        session = gateway.create("say hi", cwd=tmp_path / "work")
        gateway.command("POST", f"/v1/sessions/{session}/agent", {"profile": "other"})
        rewrite(config, good)
        gateway.send(session, "say hi")
        records = gateway.until_rest(session)
    assert of_kind(records, "TurnFinished")[-1]["problem"]["code"] == "unknown_profile"


def test_promise_7_killed_inside_a_tool_call_the_outcome_is_unknown(tmp_path: Path, server: Loopback) -> None:
    """A tool that may not be repeated: it is not run again, and the model is told that nobody knows."""
    work, script = tmp_path / "work", Path(__file__).parents[1] / "tools" / "mcp_server.py"
    with gateway_for(tmp_path, server) as gateway:
        config = gateway.home / "config.toml"
        tools = f'[mcp.test]\ncommand = ["{sys.executable}", "{script}"]\n'
        allowed = config.read_text().replace('"write" = "ask"', '"*" = "allow"')
        config.write_text(allowed.replace("[profiles.tester]\n", f'{tools}[profiles.tester]\nmcp = ["test"]\n'))
        begun = work / "begun"
        server.script(Reply(Call("test__slow", {"path": str(begun), "seconds": 600})), Reply("I see."))
        gateway.start()
        session = gateway.create("do it", cwd=work)
        until(begun.exists, "the tool has begun")
        gateway.kill9()
        gateway.start()
        records = gateway.until_rest(session)
    (finished,) = of_kind(records, "ToolCallFinished")
    assert finished["outcome"] == "unknown"
    assert len(of_kind(records, "ToolCallStarted")) == 1
    (result,) = tool_results(server.requests[1].body, "openai")
    assert "unknown" in result
    assert of_kind(records, "TurnFinished")[0]["outcome"] == "done"
