"""The demo agent: a script without state that reports lines that it does not know."""

from __future__ import annotations

import pytest

from holdfast.domain.events.parts import Call
from holdfast.domain.history import AgentMessage, Message, Note, ToolResult, UserMessage
from holdfast.models.demo import HELP, DemoModel
from holdfast.models.model import ModelAnswer, ModelDelta, ModelError, ModelRequest, WantedCall

UNKNOWN = "I do not know the command:"


async def ask(*messages: Message, turn: int = 1) -> ModelAnswer:
    """The answer, after checking that the deltas add up to it."""
    pieces = [piece async for piece in DemoModel().stream(ModelRequest(turn, "", list(messages), []))]
    *deltas, answer = pieces
    assert isinstance(answer, ModelAnswer)
    assert "".join(delta.text for delta in deltas if isinstance(delta, ModelDelta)) == answer.text
    return answer


def user(text: str, turn: int = 1) -> UserMessage:
    return UserMessage(turn, text)


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("say hello there", "hello there"),
        ("SAY hello", "hello"),
        ("say one\n\n  say two", "one\ntwo"),
        ("slow 0.02 one two  three", "one two  three"),
        ("slow 0 at once", "at once"),
        ("slow soon x", "slow needs a number of seconds, not 'soon'. Example: slow 10 one two three"),
        ("slow 5", "slow needs seconds (up to a day) and a text. Example: slow 10 one two three"),
        ("slow -1 x", "slow needs seconds (up to a day) and a text. Example: slow 10 one two three"),
        ("slow nan x", "slow needs seconds (up to a day) and a text. Example: slow 10 one two three"),
        ("count", "I have seen 1 user message; the first was: count"),
        ("echo", "There is no message before this one."),
        ("dance\nsay still here\nsing", f"{UNKNOWN} dance\nstill here\n{UNKNOWN} sing\n{HELP}"),
        ("say", f"{UNKNOWN} say\n{HELP}"),
        ("help", HELP),
    ],
)
async def test_it_does_what_the_lines_say(script: str, says: str) -> None:
    answer = await ask(user(script))
    assert (answer.text, answer.calls, answer.finish_reason) == (says, [], "stop")


async def test_what_it_thinks_is_not_in_its_answer() -> None:
    answer = await ask(user("think 0.01 let me see\nsay hello"))
    assert (answer.text, answer.thinking) == ("hello", "let me see")


async def test_it_counts_and_echoes_over_turns() -> None:
    earlier: list[Message] = [user("say a", 1), AgentMessage(1, "a", "", [])]
    assert (await ask(*earlier, user("count\necho", 2), turn=2)).text == (
        "I have seen 2 user messages; the first was: say a\nsay a"
    )


async def test_it_continues_after_each_tool_call_where_it_stood() -> None:
    script = user("say first\nwrite a.txt some text\nread a.txt\nsay last")
    first = await ask(script)
    assert first.text == "first"
    assert first.calls == [WantedCall("write", '{"path": "a.txt", "content": "some text\\n"}')]
    wrote: list[Message] = [
        AgentMessage(1, "first", "", [Call(call="1.1.0", tool="write", arguments="")]),
        ToolResult(1, "1.1.0", "write", "done", "Wrote 10 bytes to a.txt."),
    ]
    second = await ask(script, *wrote)
    assert second.text == "write done: Wrote 10 bytes to a.txt."
    assert second.calls == [WantedCall("read", '{"path": "a.txt"}')]
    interrupted = Note(1, "You were interrupted (…). Go on.")
    resumed = await ask(script, *wrote, interrupted)
    assert (resumed.text, resumed.calls) == (second.text, second.calls), "an interruption changes nothing"


async def test_it_says_how_a_command_ended() -> None:
    """Also behind an output that is too long to be repeated."""
    remarks = "[failed: exit code 3]\n[It left processes behind, which keep running as task 1, pid 2.]"
    for output, says in (
        (remarks, f"terminal failed: {remarks}"),
        ("x" * 1000 + "\n" + remarks, remarks),
        ("It runs in the background as task 1, pid 2.", "terminal started: It runs in the background"),
        ("[failed] is printed\n[done: exit code 0]", "terminal done: [failed]"),
    ):
        result = ToolResult(1, "1.1.0", "terminal", "done", output)
        answer = await ask(
            user("sh x"), AgentMessage(1, "", "", [Call(call="1.1.0", tool="terminal", arguments="")]), result
        )
        assert says in answer.text


async def test_a_message_that_steers_is_carried_out_too() -> None:
    said: list[Message] = [user("say one"), AgentMessage(1, "one", "", []), user("say two")]
    assert (await ask(*said)).text == "two"


async def test_it_fails_when_asked_to() -> None:
    with pytest.raises(ModelError, match="because the message asked for it"):
        await ask(user("fail"))
    with pytest.raises(ModelError):
        await ask(user("say something first\nfail"))
