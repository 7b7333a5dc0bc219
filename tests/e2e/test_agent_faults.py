"""What can go wrong with agents, end to end: limits, a key that is revoked, files and directories cut short."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.agents import WIRES, gateway_for, tool_results
from tests.e2e.gateway import SERVE, GatewayProcess, Json, of_kind, until
from tests.provider.loopback import Call, Fail, Loopback, Pause, Reply, Wire

HERE = Path(__file__).parent
READ = Call("read", {"path": "notes.txt"})


def change(gateway: GatewayProcess, old: str, new: str) -> None:
    """Another line in config.toml."""
    config = gateway.home / "config.toml"
    text = config.read_text()
    assert old in text
    config.write_text(text.replace(old, new))


def turn_with_limit(gateway: GatewayProcess, work: Path, limit: str) -> Json:
    """How a turn ended that would have taken two steps."""
    (work / "notes.txt").write_text("forty-two")
    change(gateway, "[profiles.tester]\n", f"[profiles.tester]\n{limit}\n")
    gateway.start()
    records = gateway.until_rest(gateway.create("read it", cwd=work))
    assert [call["outcome"] for call in of_kind(records, "ToolCallFinished")] == ["done"], "what was begun is done"
    assert len(of_kind(records, "ModelRequested")) == 1
    (finished,) = of_kind(records, "TurnFinished")
    assert finished["outcome"] == "failed"
    assert finished["problem"]["hint"] == "Send a message to continue, or raise the limit in its profile."
    return finished


def test_a_turn_ends_when_it_has_used_its_tokens(tmp_path: Path, server: Loopback) -> None:
    server.script(Reply(READ, usage=(80, 20)), Reply("Never said."))
    with gateway_for(tmp_path, server) as gateway:
        finished = turn_with_limit(gateway, tmp_path / "work", "max_tokens = 100")
    assert finished["problem"]["code"] == "token_limit"
    assert finished["reason"] == "The turn used 100 tokens; its profile allows 100."


def test_a_turn_ends_when_it_has_used_its_time(tmp_path: Path, server: Loopback) -> None:
    """With minutes of a millisecond, and enough of them to begin."""
    server.script(Reply(Pause(2.0), READ), Reply("Never said."))
    with gateway_for(tmp_path, server, timings={"minute_ms": 1}) as gateway:
        finished = turn_with_limit(gateway, tmp_path / "work", "max_minutes = 2000")
    assert finished["problem"]["code"] == "time_limit"
    assert finished["reason"].endswith(" minutes; its profile allows 2000.")


@pytest.mark.parametrize("wire", WIRES)
def test_promise_6_a_key_revoked_in_the_middle_loses_nothing(tmp_path: Path, server: Loopback, wire: Wire) -> None:
    work = tmp_path / "work"
    server.script(Reply("I look.", READ), Fail(401, "this key was revoked"), Reply("It is forty-two."))
    with gateway_for(tmp_path, server, wire) as gateway:
        (work / "notes.txt").write_text("forty-two")
        gateway.start()
        session = gateway.create("what is in the notes?", cwd=work)
        records = gateway.until_rest(session)
        (finished,) = of_kind(records, "TurnFinished")
        assert (finished["outcome"], finished["problem"]["code"]) == ("failed", "wrong_key")
        assert finished["reason"].startswith("loop does not accept the key: this key was revoked")
        assert "`holdfast restart`, then send a message to continue" in finished["problem"]["hint"]
        assert len(server.requests) == 2, "nobody tries a wrong key again"
        gateway.send(session, "now it is right again")
        records = gateway.until_rest(session)
    assert of_kind(records, "TurnFinished")[-1]["outcome"] == "done"
    assert of_kind(records, "ModelResponded")[-1]["text"] == "It is forty-two."
    assert len(of_kind(records, "ToolCallStarted")) == 1, "what was read is not read again"
    (result,) = tool_results(server.requests[2].body, wire)
    assert "forty-two" in result
    assert "what is in the notes?" in str(server.requests[2].body)


@pytest.mark.parametrize("tool", ["write", "edit"])
def test_promise_7_killed_in_the_middle_of_a_file_nothing_of_it_is_left(
    tmp_path: Path, server: Loopback, tool: str
) -> None:
    """The new content is there under a name of the call, the file has its old one; then the gateway is gone."""
    work = tmp_path / "work"
    more = {"content": "new"} if tool == "write" else {"old": "old", "new": "new"}
    server.script(Reply(Call(tool, {"path": "docs/notes.txt"} | more)), Reply("I see."))
    with gateway_for(tmp_path, server, script=HERE / "cut_gateway.py") as gateway:
        (work / "docs").mkdir()
        (work / "docs" / "notes.txt").write_text("old")
        change(gateway, '"write" = "ask"\n"edit" = "deny"', '"*" = "allow"')
        gateway.start()
        session = gateway.create("change it", cwd=work)
        gateway.wait_for_end()
        (left,) = (path for path in (work / "docs").iterdir() if path.name != "notes.txt")
        assert left.name == f".holdfast-{session}-1.1.0"
        assert (work / "docs" / "notes.txt").read_text() == "old"
        gateway.script = SERVE
        gateway.start()
        records = gateway.until_rest(session)
    assert [path.name for path in (work / "docs").iterdir()] == ["notes.txt"]
    (finished,) = of_kind(records, "ToolCallFinished")
    expected = ("done", "new") if tool == "write" else ("unknown", "old")
    assert (finished["outcome"], (work / "docs" / "notes.txt").read_text()) == expected


def test_promise_7_what_cannot_be_done_again_may_have_been_done(tmp_path: Path, server: Loopback) -> None:
    """Killed between a write and its result; then the directory is gone. It was written once, so it did not fail."""
    work = tmp_path / "work"
    server.script(Reply(Call("write", {"path": "a.txt", "content": "x"})), Reply("I see."))
    held = gateway_for(tmp_path, server, script=HERE / "holding_gateway.py", arguments=("ToolCallFinished",))
    with held as gateway:
        change(gateway, '"write" = "ask"', '"*" = "allow"')
        gateway.start()
        session = gateway.create("write it", cwd=work)
        gateway.until_event(session, "ToolCallStarted")
        until((work / "a.txt").exists, "the file is written")
        gateway.kill9()
        work.rename(tmp_path / "elsewhere")
        gateway.script, gateway.arguments = SERVE, ()
        gateway.start()
        records = gateway.until_rest(session)
    (finished,) = of_kind(records, "ToolCallFinished")
    assert finished["outcome"] == "unknown"
    assert finished["output"].startswith(
        "It was interrupted while it ran, and may or may not have taken effect then. Now: The"
    )
    assert of_kind(records, "TurnFinished")[0]["outcome"] == "done", "a missing directory does not end the turn"
    assert f"The working directory {work} does not exist." in str(server.requests[-1].body)
