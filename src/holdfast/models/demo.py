"""The demo agent: a scripted model and no AI, so that every promise can be seen without a key.

It reads the user's message line by line and acts. It keeps nothing between calls: its place in
the script follows from the conversation alone, like with any model, so it continues correctly after a
crash. Each answer carries out the lines up to the next tool call.
"""

from __future__ import annotations

import asyncio
import json
from bisect import bisect_left
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from itertools import takewhile

from holdfast.domain.events.parts import Usage
from holdfast.domain.events.problem import Problem
from holdfast.domain.history import TOKEN_SHIFT, AgentMessage, Message, Note, ToolResult, UserMessage, message_size
from holdfast.models.model import ModelAnswer, ModelDelta, ModelError, ModelRequest, WantedCall
from holdfast.timings import USUAL

HELP = """I am the demo agent: a script, not an AI. I do what each line of your message says:

    say TEXT            answer with TEXT
    slow SECONDS TEXT   answer word by word, for this many seconds
    think SECONDS TEXT  think TEXT for this many seconds
    read PATH           read a file with the tool `read`
    write PATH TEXT     write a file with the tool `write`
    sh COMMAND          run a command with the tool `terminal`, and wait
    bg COMMAND          run a command in the background
    tasks               list the running background tasks
    inbox               list what waits for a person
    wait TASK           wait until a task has ended
    delegate TEXT       start another demo agent in the background with TEXT
    call TOOL JSON      call any tool with these arguments
    complete TEXT       on a card: complete it
    block REASON        on a card: block it
    heartbeat TEXT      on a card: report progress
    leave               on a card: end the turn without a result
    crash               fail like a model whose provider is down
    hang                do nothing for a day
    count               say how many of your messages I have seen
    echo                repeat your previous message
    recall TEXT         search this session, also from before a reset or a summary
    fill TOKENS         answer with this many words, to make the context long
    summary fail|hang|ok  choose how my next summaries end
    fail                fail like a broken model
    help                show this list"""
QUOTE = 400
MAX_SLOW_SECONDS = 86_400.0
MAX_FILL = 200_000
SUMMARIES = ("fail", "hang", "ok")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the script."""

    verb: str
    rest: str
    whole: str


@dataclass(frozen=True, slots=True)
class TimedText:
    """Text, and over how many seconds it is said."""

    text: str
    seconds: float = 0.0
    is_thinking: bool = False


class DemoModel:
    """Deterministic: the same conversation always gives the same answer."""

    name = "demo"

    def __init__(self, *, hang_seconds: float = USUAL.runtime.demo_hang) -> None:
        self._hang_seconds = hang_seconds

    async def window(self) -> int | None:
        """A script sees everything."""
        return None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelDelta | ModelAnswer, None]:
        """Carry the next lines out."""
        if request.about:
            yield await _summary(request.about, self._hang_seconds)
            return
        text, thinking, calls, is_lost = "", "", list[WantedCall](), False
        reported = _report(request.messages)
        if reported:
            text = reported
            yield ModelDelta(reported)
        for line in next_lines(request.messages, request.turn, request.step):
            call = _tool_call(line)
            if call is not None:
                calls.append(call)
                continue
            hangs = line.verb == "hang" and not line.rest
            speech = TimedText("done", self._hang_seconds) if hangs else _speak(line, request.messages)
            if speech is None:
                is_lost, speech = True, TimedText(f"I do not know the command: {_quote(line.whole)}")
            async for piece in _say(speech, first=not (thinking if speech.is_thinking else text)):
                delta = ModelDelta(thinking=piece) if speech.is_thinking else ModelDelta(piece)
                text, thinking = text + delta.text, thinking + delta.thinking
                yield delta
        if is_lost:
            text += f"\n{HELP}"
            yield ModelDelta(f"\n{HELP}")
        asked = sum(map(message_size, request.messages)) if request.tokens is None else request.tokens
        usage = Usage(input_tokens=asked, output_tokens=len(text) >> TOKEN_SHIFT)
        yield ModelAnswer(text, thinking, calls=calls, finish_reason="tool_calls" if calls else "stop", usage=usage)


def next_lines(messages: list[Message], turn: int, step: int = 0) -> list[Line]:
    """The lines for the answer that comes now, found by walking through the turn so far.

    Steps that are no longer in the context are counted by the numbers of those that are.
    """
    script: deque[Line] = deque()
    start, answered = bisect_left(messages, turn, key=lambda message: message.turn), 0
    for message in messages[start:]:
        match message:
            case UserMessage(text=text):
                script.extend(_parse(text))
            case AgentMessage(step=number):
                for _ in range(max(1, number - answered)):
                    _next_segment(script)
                    answered += 1
            case _:
                pass
    for _ in range(step - 1 - answered):
        _next_segment(script)
    return _next_segment(script)


def _next_segment(script: deque[Line]) -> list[Line]:
    segment: list[Line] = []
    while script:
        segment.append(script.popleft())
        if _tool_call(segment[-1]) is not None:
            break
    return segment


def _parse(text: str) -> list[Line]:
    lines: list[Line] = []
    for raw in text.splitlines():
        whole = raw.strip()
        if whole and not (whole.startswith("[") and whole.endswith("]")):  # that is what the runtime says
            verb, _, rest = whole.partition(" ")
            lines.append(Line(verb.lower(), rest.strip(), whole))
    return lines


def _tool_call(line: Line) -> WantedCall | None:
    rest = line.rest
    if not rest:
        return {"tasks": WantedCall("process", '{"action": "list"}'), "inbox": WantedCall("inbox", "{}")}.get(line.verb)
    first, _, more = rest.partition(" ")
    if line.verb == "call":
        return WantedCall(first, more.strip() or "{}")
    calls: dict[str, tuple[str, dict[str, object]]] = {
        "read": ("read", {"path": rest}),
        "write": ("write", {"path": first, "content": f"{more}\n"}),
        "sh": ("terminal", {"command": rest}),
        "bg": ("terminal", {"command": rest, "background": True}),
        "wait": ("process", {"action": "wait", "task": rest, "timeout": 86_400}),
        "recall": ("recall", {"text": rest}),
        "complete": ("kanban_complete", {"summary": rest}),
        "block": ("kanban_block", {"reason": rest}),
        "heartbeat": ("kanban_heartbeat", {"note": rest}),
        "delegate": ("delegate", {"prompt": rest}),
    }
    found = calls.get(line.verb)
    return None if found is None else WantedCall(found[0], json.dumps(found[1]))


def _speak(line: Line, messages: list[Message]) -> TimedText | None:
    """Return the answer to a line, or None if it is not a command."""
    users = [message.text for message in messages if isinstance(message, UserMessage)]
    match line.verb:
        case "say" if line.rest:
            return TimedText(line.rest)
        case "slow" | "think" as verb:
            seconds, _, text = line.rest.partition(" ")
            try:
                duration = float(seconds)
            except ValueError:
                return TimedText(f"{verb} needs a number of seconds, not {seconds!r}. Example: {verb} 10 one two three")
            if not (0 <= duration <= MAX_SLOW_SECONDS) or not text.strip():
                return TimedText(f"{verb} needs seconds (up to a day) and a text. Example: {verb} 10 one two three")
            return TimedText(text.strip(), duration, is_thinking=verb == "think")
        case "count" if not line.rest:
            plural = "" if len(users) == 1 else "s"
            return TimedText(f"I have seen {len(users)} user message{plural}; the first was: {_quote(users[0])}")
        case "echo" if not line.rest:
            return TimedText(users[-2] if len(users) > 1 else "There is no message before this one.")
        case "fill":
            if not line.rest.isascii() or not line.rest.isdigit() or not 0 < int(line.rest) <= MAX_FILL:
                return TimedText(f"fill needs a number of tokens, up to {MAX_FILL}. Example: fill 1000")
            return TimedText(" ".join(["fill"] * int(line.rest)))
        case "summary":
            if line.rest not in SUMMARIES:
                return TimedText("summary needs one of: fail, hang, ok.")
            return TimedText(f"My next summaries: {line.rest}.")
        case "leave" if not line.rest:
            return TimedText("I leave.")
        case "crash" if not line.rest:
            message = "The demo agent crashed because the message asked for it."
            raise ModelError(Problem(code="demo_crashed", message=message, hint="It is tried again later."))
        case "fail" if not line.rest:
            raise ModelError(
                Problem(
                    code="demo_failed",
                    message="The demo agent failed because the message asked for it.",
                    hint="Send another message; the session still works.",
                )
            )
        case "help" if not line.rest:
            return TimedText(HELP)
        case _:
            return None


async def _summary(about: list[Message], hang_seconds: float) -> ModelAnswer:
    """Return a summary, or fail, as the last `summary` line of the conversation says."""
    users = [message.text for message in about if isinstance(message, UserMessage)]
    lines = [line for text in users for line in _parse(text) if line.verb == "summary" and line.rest in SUMMARIES]
    how = lines[-1].rest if lines else "ok"
    if how == "hang":
        await asyncio.sleep(hang_seconds)
    if how == "fail":
        message = "The demo agent wrote no summary because the message asked for that."
        raise ModelError(Problem(code="demo_failed", message=message, hint="Say `summary ok`."))
    first = f"; the first was: {_quote(users[0])}" if users else ""
    plural = "" if len(users) == 1 else "s"
    return ModelAnswer(
        f"{len(users)} user message{plural} so far{first}",
        usage=Usage(input_tokens=sum(map(message_size, about)), output_tokens=12),
    )


async def _say(speech: TimedText, *, first: bool) -> AsyncGenerator[str, None]:
    lead = "" if first else "\n"
    if speech.seconds == 0:
        yield lead + speech.text
        return
    words = speech.text.split(" ")
    pause = speech.seconds / len(words)
    for index, word in enumerate(words):
        await asyncio.sleep(pause)
        yield (lead if index == 0 else " ") + word


def _report(messages: list[Message]) -> str:
    """After a tool call the answer begins with what came of it."""
    result = next((message for message in reversed(messages) if not isinstance(message, Note)), None)
    if not isinstance(result, ToolResult):
        return ""
    quoted, remarks = _quote(result.output), _remarks(result.output)
    missing = [line for line in remarks if line not in quoted]
    return "\n".join([f"{result.tool} {_outcome(result, remarks)}: {quoted}", *missing])


def _outcome(result: ToolResult, remarks: list[str]) -> str:
    """How the call ended, or the command that it ran."""
    if result.tool != "terminal" or result.outcome != "done":
        return result.outcome
    if result.output.startswith("It runs in the background"):
        return "started"
    ends = (word for word in ("failed", "stopped") for line in remarks if line.startswith(f"[{word}:"))
    return next(ends, result.outcome)


def _remarks(output: str) -> list[str]:
    """What the runtime says below the output of a command: how it ended, and what it left behind."""
    return list(takewhile(lambda line: line.startswith("["), reversed(output.strip().splitlines())))[::-1]


def _quote(text: str) -> str:
    text = text.strip()
    return text if len(text) <= QUOTE else f"{text[:QUOTE]}… ({len(text)} characters)"
