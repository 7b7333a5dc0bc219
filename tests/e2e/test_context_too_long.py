"""A provider refuses a context: it is made shorter, and the turn goes on."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.agents import answer, gateway_for, waiting
from tests.e2e.gateway import GatewayProcess, kinds, of_kind
from tests.provider.loopback import Answer, Call, Fail, Loopback, Reply, Request

REFUSED = Fail(400, "maximum context length exceeded", code="context_length_exceeded")
WINDOW = 6_000
"""Characters of messages that this model takes."""


def small(request: Request) -> Answer:
    """A model with a small window that summarises what it is given, if that fits."""
    said = str(request.body["messages"])
    if len(said) > WINDOW:
        return REFUSED
    if "<conversation>" in said:
        return Reply("in short")
    last = request.body["messages"][-1]
    if "read it" in str(last.get("content")):
        return Reply(Call("read", {"path": "AGENTS.md"}))
    return Reply("fine " + "x" * 1_000)


def settings(gateway: GatewayProcess, text: str) -> None:
    config = gateway.home / "config.toml"
    config.write_text(config.read_text() + text)


def test_promise_6_a_refused_context_is_made_shorter_and_the_turn_goes_on(tmp_path: Path) -> None:
    with Loopback(otherwise=small) as server, gateway_for(tmp_path, server) as gateway:
        settings(gateway, "[compaction]\nkeep_recent = 1\n")
        gateway.start()
        session = gateway.create("read it " + "a" * 500, cwd=tmp_path / "work")
        gateway.until_rest(session)
        for number in range(2, 9):
            gateway.send(session, f"{number} " + "b" * 500)
            gateway.until_event(session, "TurnFinished", count=number)
        records = gateway.until_rest(session)
        finished = of_kind(records, "TurnFinished")
        assert [event["outcome"] for event in finished] == ["done"] * 8
        assert "SummaryWritten" in kinds(records)
        codes = [event["problem"]["code"] for event in of_kind(records, "ModelFailed")]
        assert set(codes) == {"context_too_long"}, "the provider refused at least once"
        for event in of_kind(records, "SummaryWritten"):
            assert event["covers_turn"] < 8 and event["reason"].startswith("the model refused the context")
        for request in server.requests:  # the wire refuses a call without its result, and so do providers
            asked = [call["id"] for one in request.body["messages"] for call in one.get("tool_calls") or ()]
            results = [one["tool_call_id"] for one in request.body["messages"] if one["role"] == "tool"]
            assert asked == results
        gateway.send(session, "and now")
        gateway.until_event(session, "TurnFinished", count=9)


def test_a_refused_context_asks_a_person_when_it_should(tmp_path: Path) -> None:
    """The provider refuses the summary, too."""
    with Loopback() as server, gateway_for(tmp_path, server) as gateway:
        settings(gateway, '[compaction]\non_failure = "pause"\n')
        gateway.start()
        server.script(Reply("one"), REFUSED, REFUSED)
        session = gateway.create("first", cwd=tmp_path / "work")
        gateway.until_rest(session)
        gateway.send(session, "second")
        wait = waiting(gateway)
        assert (wait["purpose"], wait["choices"]) == ("compaction", ["try again", "digest"])
        because = " ".join(sentence["text"] for sentence in gateway.why(session))
        assert wait["id"] in because and "digest" in because
        gateway.kill9()
        server.script(REFUSED, Reply("two"), Reply("in short"))
        gateway.start()
        assert answer(gateway, waiting(gateway)["id"], "digest") == 202
        records = gateway.until_event(session, "TurnFinished", count=2)
        assert of_kind(records, "TurnFinished")[-1]["outcome"] == "done"
        assert of_kind(records, "SummaryWritten")[0]["source"] == "digest"
        records = gateway.until_event(session, "SummaryWritten", count=2)
        assert of_kind(records, "SummaryWritten")[-1]["source"] == "model", "a summary takes its place"
