"""A context that is too long is shortened, before it is sent or after a refusal, and the turn continues."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.e2e.agents import answer, gateway_for, waiting
from tests.e2e.gateway import GatewayProcess, kinds, of_kind
from tests.provider.loopback import Answer, Call, Fail, Loopback, Reply, Request

REFUSED = Fail(400, "maximum context length exceeded", code="context_length_exceeded")
WINDOW = 6_000
"""Characters of messages that this model takes."""


def small(request: Request) -> Answer:
    """A model with a small window that summarises what it is given, if that fits."""
    said, usage = str(request.body["messages"]), (len(json.dumps(request.body)) // 4, 250)
    if len(said) > WINDOW:
        return REFUSED
    if "<conversation>" in said:
        return Reply("in short", usage=usage)
    last = request.body["messages"][-1]
    if "read it" in str(last.get("content")):
        return Reply(Call("read", {"path": "AGENTS.md"}), usage=usage)
    return Reply("fine " + "x" * 1_000, usage=usage)


def settings(gateway: GatewayProcess, text: str) -> None:
    config = gateway.home / "config.toml"
    config.write_text(config.read_text() + text)


def test_promise_6_a_refused_context_is_made_shorter_and_the_turn_continues(tmp_path: Path) -> None:
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
            assert event["covers_turn"] < 8
        assert len(codes) <= 2, "it learns from the first refusal"
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
        server.script(Reply("two"), Reply("in short"))
        gateway.start()
        assert answer(gateway, waiting(gateway)["id"], "digest") == 202
        records = gateway.until_event(session, "TurnFinished", count=2)
        assert of_kind(records, "TurnFinished")[-1]["outcome"] == "done"
        assert of_kind(records, "SummaryWritten")[0]["source"] == "digest"
        records = gateway.until_event(session, "SummaryWritten", count=2)
        assert of_kind(records, "SummaryWritten")[-1]["source"] == "model", "a summary takes its place"


LIMIT = 20_000
"""Tokens that this model takes."""
FILES, SIZE = 22, 7_500
ASSIGNMENT = "Add up the numbers in all files, one after the other.\nSay `the sum is …` at the end, \u2013 exactly so."


def adding(request: Request) -> Answer:
    """A model that reads one file after the other. All that it knows is what it is sent."""
    body = json.dumps(request.body["messages"], ensure_ascii=False)
    usage = (len(json.dumps(request.body)) // 4, 20)
    if usage[0] > LIMIT:
        return REFUSED
    known = re.findall(r"read (\d+) files, the sum so far is (\d+)", body) or [("0", "0")]
    read, total = map(int, known[-1])
    if "<conversation>" in body:
        return Reply(f"I have read {read} files, the sum so far is {total}.", usage=usage)
    last = request.body["messages"][-1]
    if last["role"] == "tool":
        [number] = re.findall(r"the number is (\d+)", str(last["content"]))
        read, total = read + 1, total + int(number)
    if read == FILES:
        return Reply(f"the sum is {total}", usage=usage)
    done = f"I have read {read} files, the sum so far is {total}."
    return Reply(done, Call("read", {"path": f"{read}.txt"}), usage=usage)


def test_one_turn_reads_twice_the_window_and_ends_right(tmp_path: Path) -> None:
    with Loopback(otherwise=adding) as server, gateway_for(tmp_path, server) as gateway:
        settings(gateway, f"[compaction]\nlimit = {LIMIT}\nthreshold = {LIMIT * 4 // 5}\n")
        for number in range(FILES):
            text = f"the number is {number}\n" + f"line of file {number}\n" * (SIZE // 15)
            (tmp_path / "work" / f"{number}.txt").write_text(text)
        gateway.start()
        session = gateway.create(ASSIGNMENT, cwd=tmp_path / "work")
        records = gateway.until_rest(session)
        assert [event["outcome"] for event in of_kind(records, "TurnFinished")] == ["done"]
        assert of_kind(records, "ModelResponded")[-1]["text"] == f"the sum is {sum(range(FILES))}"
        outputs = [len(event["output"]) for event in of_kind(records, "ToolCallFinished")]
        assert sum(outputs) // 4 > 2 * LIMIT, "it read twice the window"
        assert of_kind(records, "ToolResultsTrimmed") and not of_kind(records, "ModelFailed")
        for request in server.requests:
            assert len(json.dumps(request.body)) // 4 <= LIMIT
            texts = [str(one["content"]) for one in request.body["messages"] if one["role"] == "user"]
            assert any(ASSIGNMENT in text for text in texts), "word by word"
            called = [call["id"] for one in request.body["messages"] for call in one.get("tool_calls") or ()]
            assert called == [one["tool_call_id"] for one in request.body["messages"] if one["role"] == "tool"]
        because = " ".join(sentence["text"] for sentence in gateway.why(session))
        assert "The model sees only notes or parts of" in because and "`recall` reads them again" in because
