"""A model server on loopback that speaks two wires: OpenAI chat completions and Anthropic messages.

Tests say what it answers, request by request, and look at what it was sent:

    with Loopback() as server:
        server.script(Reply(Text("Hello"), Call("read", {"path": "a"})), Fail(429, headers={"Retry-After": "2"}))
        ...  # base_url is server.openai_url or server.anthropic_url
        assert server.requests[0].body["messages"]

When the script is used up it answers by itself (see `by_itself`), so people can try Holdfast without a
key: `python -m tests.provider.loopback --port 8099`. It runs in a thread of its own, so a test may be
synchronous, asynchronous, or drive a gateway in another process. HTTP is written by hand, because
half of what it must do (cut, hang, talk rubbish) no HTTP server would do.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from tests.eventually import PATIENCE

Wire = Literal["openai", "anthropic"]
Json = dict[str, Any]
MODEL = "loopback"
WORD_SECONDS = 0.03


# --- what can be scripted -----------------------------------------------------------------------


@dataclass(frozen=True)
class Text:
    """Text of the answer; several pieces are several chunks, `delay` seconds before each."""

    pieces: str | list[str]
    delay: float = 0.0


@dataclass(frozen=True)
class Think:
    """Reasoning: `reasoning_content` on the OpenAI wire, a thinking block with its seal on the other."""

    pieces: str | list[str]
    signature: str = "c2VhbA=="
    redacted: bool = False
    delay: float = 0.0


@dataclass(frozen=True)
class Call:
    """A tool call. Arguments as a string go out as they are, in two pieces."""

    tool: str
    arguments: Json | str = ""
    id: str = ""
    extra: Json | None = None
    """What Gemini attaches on the OpenAI wire, and wants back."""


@dataclass(frozen=True)
class Pause:
    """Nothing for a while; or until the test says so."""

    seconds: float = 0.0
    until: threading.Event | None = None


@dataclass(frozen=True)
class Hang:
    """Nothing more, with the connection open, until the client leaves."""


@dataclass(frozen=True)
class Cut:
    """The connection is gone in the middle; `politely` ends the HTTP body as if all had been said."""

    politely: bool = False


@dataclass(frozen=True)
class Raw:
    """Bytes of the event stream as they are."""

    text: str


Part = Text | Think | Call | Pause | Hang | Cut | Raw


@dataclass(frozen=True, init=False)
class Reply:
    """An answer: its parts in order. `finish` is in OpenAI's words, and follows from the parts if empty."""

    parts: tuple[Part, ...]
    finish: str
    usage: tuple[int, int] | None

    def __init__(self, *parts: Part | str, finish: str = "", usage: tuple[int, int] | None = (11, 7)) -> None:
        object.__setattr__(self, "parts", tuple(Text(part) if isinstance(part, str) else part for part in parts))
        object.__setattr__(self, "finish", finish)
        object.__setattr__(self, "usage", usage)

    @property
    def end(self) -> str:
        return self.finish or ("tool_calls" if any(isinstance(part, Call) for part in self.parts) else "stop")


@dataclass(frozen=True)
class Fail:
    """An HTTP error. A body that is a text becomes the message of an error in the words of the wire."""

    status: int
    body: Json | str = "it failed"
    headers: dict[str, str] = field(default_factory=dict)
    code: str = ""
    """OpenAI's `code`, Anthropic's `type`."""


@dataclass(frozen=True)
class Garbage:
    """Status 200 and a body that is nothing of what was asked for."""

    body: str
    content_type: str = "text/event-stream"


@dataclass(frozen=True)
class Silence:
    """No answer at all, until the client leaves."""


Answer = Reply | Fail | Garbage | Silence


@dataclass(frozen=True)
class Request:
    """What a client sent."""

    wire: Wire
    path: str
    headers: dict[str, str]
    body: Json


# --- the server ---------------------------------------------------------------------------------


class Loopback:
    """The server; a context manager."""

    def __init__(self, *, port: int = 0, otherwise: Callable[[Request], Answer] | None = None) -> None:
        self.requests: list[Request] = []
        self.connections = 0
        """Open now."""
        self.left = 0
        """How many clients left in the middle of an answer."""
        self._script: deque[Answer] = deque()
        self._otherwise = otherwise or by_itself
        self._wanted_port = port
        self._port = 0
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="loopback", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(10):
            raise RuntimeError("the loopback server did not start")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        return self.url

    def base_url(self, wire: Wire) -> str:
        return self.openai_url if wire == "openai" else self.anthropic_url

    def script(self, *answers: Answer) -> None:
        """What the next requests get, in order, after what was scripted before."""
        self._script.extend(answers)

    def wait(self, until: Callable[[Loopback], bool], seconds: float = PATIENCE) -> None:
        """Until it is true; for tests of what a client does when nobody answers."""
        deadline = time.monotonic() + seconds
        while not until(self):
            if time.monotonic() > deadline:
                raise TimeoutError("it did not become true")
            time.sleep(0.005)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", self._wanted_port))
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        try:
            self._loop.run_forever()
        finally:
            server.close()
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.run_until_complete(_settled(self._loop))
            self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while (request := await _read(reader)) is not None:
                await self._answer(request, reader, writer)
                if request[2]["connection"] == "close":
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            self.left += 1
        finally:
            self.connections -= 1
            writer.close()

    async def _answer(
        self, request: tuple[str, str, dict[str, str], bytes], reader: asyncio.StreamReader, out: asyncio.StreamWriter
    ) -> None:
        method, path, headers, body = request
        if method == "GET":
            _send(out, 200, json.dumps({"object": "list", "data": [{"id": MODEL, "object": "model"}]}))
            return
        wire: Wire = "anthropic" if path.split("?")[0].endswith("/messages") else "openai"
        heard = Request(wire, path, headers, json.loads(body))
        self.requests.append(heard)
        answer = self._script.popleft() if self._script else self._otherwise(heard)
        match answer:
            case Fail():
                _send(out, answer.status, json.dumps(_error(wire, answer)), headers=answer.headers)
            case Garbage():
                _send(out, 200, answer.body, content_type=answer.content_type)
            case Reply():
                await _stream(heard, answer, reader, out)
            case Silence():
                await reader.read()
                raise ConnectionResetError
        await out.drain()


async def _settled(loop: asyncio.AbstractEventLoop) -> None:
    here = asyncio.current_task(loop)
    await asyncio.gather(*(task for task in asyncio.all_tasks(loop) if task is not here), return_exceptions=True)


async def _read(reader: asyncio.StreamReader) -> tuple[str, str, dict[str, str], bytes] | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None
    first, *lines = head.strip().split("\r\n")
    method, path, version = first.split(" ", 2)
    headers = {"connection": "close" if version == "HTTP/1.0" else "keep-alive"}
    headers |= {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return method, path, headers, await reader.readexactly(int(headers.get("content-length", "0")))


def _send(
    out: asyncio.StreamWriter,
    status: int,
    body: str,
    *,
    content_type: str = "application/json",
    headers: dict[str, str] | None = None,
) -> None:
    data = body.encode()
    sent = {"Content-Type": content_type, "Content-Length": str(len(data)), **(headers or {})}
    lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    out.write(f"HTTP/1.1 {status} Said\r\n{lines}\r\n".encode() + data)


async def _stream(request: Request, reply: Reply, reader: asyncio.StreamReader, out: asyncio.StreamWriter) -> None:
    out.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    model = request.body.get("model", MODEL)
    for frame in _openai(reply, model) if request.wire == "openai" else _anthropic(reply, model):
        match frame:
            case str():
                data = frame.encode()
                out.write(b"%x\r\n%s\r\n" % (len(data), data))
                await out.drain()
            case Pause():
                await asyncio.sleep(frame.seconds)
                while frame.until is not None and not frame.until.is_set():
                    await asyncio.sleep(0.01)
            case Hang():
                await reader.read()
                raise ConnectionResetError
            case Cut():
                if frame.politely:
                    break
                out.transport.abort()
                raise ConnectionResetError
    out.write(b"0\r\n\r\n")


def _error(wire: Wire, fail: Fail) -> Json:
    if not isinstance(fail.body, str):
        return fail.body
    if wire == "openai":
        return {"error": {"message": fail.body, "type": "error", "param": None, "code": fail.code or None}}
    return {"type": "error", "error": {"type": fail.code or "api_error", "message": fail.body}}


# --- the OpenAI wire ----------------------------------------------------------------------------

Frame = str | Pause | Hang | Cut


def _openai(reply: Reply, model: str) -> Iterator[Frame]:
    head: Json = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_760_000_000, "model": model}

    def chunk(delta: Json, *, finish: str | None = None) -> str:
        return _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    calls = 0
    yield chunk({"role": "assistant", "content": ""})
    for part in reply.parts:
        match part:
            case Text() | Think():
                name = "content" if isinstance(part, Text) else "reasoning_content"
                for piece in _pieces(part):
                    yield from _delay(part)
                    yield chunk({name: piece})
            case Call():
                first, rest = _halves(part)
                call: Json = {"index": calls, "id": part.id or f"call_{calls}", "type": "function"}
                if part.extra is not None:
                    call["extra_content"] = part.extra
                yield chunk({"tool_calls": [{**call, "function": {"name": part.tool, "arguments": first}}]})
                yield chunk({"tool_calls": [{"index": calls, "function": {"arguments": rest}}]})
                calls += 1
            case Raw():
                yield part.text
            case Pause() | Hang() | Cut():
                yield part
    yield chunk({}, finish=reply.end)
    if reply.usage is not None:
        used, made = reply.usage
        usage = {"prompt_tokens": used, "completion_tokens": made, "total_tokens": used + made}
        yield _event({**head, "choices": [], "usage": usage})
    yield "data: [DONE]\n\n"


def _event(data: Json, name: str = "") -> str:
    return (f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n"


# --- the Anthropic wire -------------------------------------------------------------------------

STOP_REASONS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}


def _anthropic(reply: Reply, model: str) -> Iterator[Frame]:
    used, made = reply.usage or (0, 0)
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": []}
    start = {**message, "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": used, "output_tokens": 1}}
    yield _typed("message_start", message=start)
    yield _typed("ping")
    index = 0
    for part in reply.parts:
        match part:
            case Text() | Think() | Call():
                yield from _block(index, part)
                index += 1
            case Raw():
                yield part.text
            case Pause() | Hang() | Cut():
                yield part
    stop = {"stop_reason": STOP_REASONS.get(reply.end, reply.end), "stop_sequence": None}
    yield _typed("message_delta", delta=stop, usage={"output_tokens": made})
    yield _typed("message_stop")


def _block(index: int, part: Text | Think | Call) -> Iterator[Frame]:
    block: Json
    deltas: list[Json]
    match part:
        case Text():
            block = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(part)]
        case Think():
            block = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(part)]
            deltas.append({"type": "signature_delta", "signature": part.signature})
            if part.redacted:
                block, deltas = {"type": "redacted_thinking", "data": part.signature}, []
        case Call():
            block = {"type": "tool_use", "id": part.id or f"toolu_{index}", "name": part.tool, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": half} for half in _halves(part)]
    yield _typed("content_block_start", index=index, content_block=block)
    for delta in deltas:
        yield from _delay(part)
        yield _typed("content_block_delta", index=index, delta=delta)
    yield _typed("content_block_stop", index=index)


def _typed(type: str, **data: object) -> str:
    return _event({"type": type, **data}, type)


def _pieces(part: Text | Think) -> list[str]:
    return [part.pieces] if isinstance(part.pieces, str) else part.pieces


def _delay(part: Text | Think | Call) -> Iterator[Frame]:
    if not isinstance(part, Call) and part.delay:
        yield Pause(part.delay)


def _halves(call: Call) -> tuple[str, str]:
    text = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
    return text[: len(text) // 2], text[len(text) // 2 :]


# --- what it says by itself ---------------------------------------------------------------------


def by_itself(request: Request) -> Reply:
    """`call TOOL {…}` in a message calls a tool, a tool's result is reported, all else is echoed."""
    role, text = _last(request)
    if role == "tool":
        return Reply(Text(_words(f"The tool said: {text}"), WORD_SECONDS))
    calls = [line.split(" ", 2) for line in text.splitlines() if line.startswith("call ")]
    if calls:
        return Reply(Text("Let me see."), *(Call(call[1], call[2] if len(call) > 2 else "{}") for call in calls))
    return Reply(Text(_words(f"You said: {text}"), WORD_SECONDS))


def _last(request: Request) -> tuple[str, str]:
    """The role and the text of the last message; a tool's result is of the role `tool` on both wires."""
    message = request.body["messages"][-1]
    content = message["content"]
    if isinstance(content, str):
        return message["role"], content
    block = content[-1]
    if block["type"] == "tool_result":
        inner = block["content"]
        return "tool", inner if isinstance(inner, str) else "".join(item["text"] for item in inner)
    return message["role"], block["text"]


def _words(text: str) -> list[str]:
    first, *rest = text.split(" ")
    return [first, *(f" {word}" for word in rest)]


def main() -> None:
    parser = argparse.ArgumentParser(description="A model server for trying Holdfast without a key.")
    parser.add_argument("--port", type=int, default=8099)
    arguments = parser.parse_args()
    with Loopback(port=arguments.port) as server:
        print(f"OpenAI wire: {server.openai_url}   Anthropic wire: {server.anthropic_url}   model: {MODEL}")
        print("It echoes; `call TOOL {json}` calls a tool. Ctrl-C ends it.")
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    main()
