"""A model on loopback for real agents, in four wires: OpenAI chat and responses, Anthropic, Gemini.

    with LoopbackModel() as model:
        ...  # an agent with model.url as the address of its model, and a prompt such as "[[write a.txt|hello]]"

`model_script.py` says what it answers. It runs in threads of this process, so that a test sees what it was asked, and
ends an answer that is held (`[[hold]]`) when it likes.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Self

from tests.agents.model_script import Json, Say, Use, Wire, conversation_of, next_action
from tests.eventually import PATIENCE

MODEL = "loopback"
WIRES: tuple[tuple[str, Wire], ...] = (
    (r"/chat/completions$", "chat"),
    (r"/responses$", "responses"),
    (r"/messages$", "anthropic"),
    (r":(stream)?[gG]enerateContent$", "gemini"),
)
LISTED: Json = {"id": MODEL, "object": "model", "type": "model", "created": 1, "display_name": MODEL, "owned_by": "x"}
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Sent:
    """One event of a streamed answer; `whole`: the answer to a request that wants no stream."""

    data: Json | str
    event: str = ""
    whole: Json | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for an answer."""

    wire: Wire
    body: Json


class LoopbackModel:
    """The server, while it is entered."""

    def __init__(self, port: int = 0) -> None:
        self.asked: list[Asked] = []
        self.held = threading.Event()
        """An answer has begun and does not go on."""
        self.released = threading.Event()
        """Whatever is held goes on."""
        self.server = _Server(("127.0.0.1", port), type("Handler", (_Handler,), {"model": self}))
        self.server.daemon_threads = True
        self._thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.released.set()
        self.server.shutdown()
        self.server.server_close()

    def pieces(self, said: Say) -> Iterator[str]:
        """Yield a text; one that is held stops before its last piece."""
        yield from said.pieces[:-1]
        if said.hold:
            self.held.set()
            self.released.wait(PATIENCE)
        yield said.pieces[-1]


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # an agent that was killed
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: LoopbackModel

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        named: Json = {**LISTED, "name": f"models/{MODEL}", "slug": MODEL}
        self._send({"object": "list", "data": [LISTED], "models": [named]} if "models" in self.path else {})

    def do_HEAD(self) -> None:
        self._send({})

    def do_POST(self) -> None:
        body: Json = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        path = self.path.partition("?")[0]
        wire = next((wire for pattern, wire in WIRES if re.search(pattern, path)), None)
        if wire is None:  # counting tokens, and what agents report of themselves
            return self._send({"input_tokens": 10, "totalTokens": 10})
        self.model.asked.append(Asked(wire, body))
        events = answered(wire, next_action(conversation_of(wire, body)), self.model)
        try:
            if body.get("stream") or "stream" in path:
                self._stream(events)
            else:
                self._send([event.whole for event in events][-1] or {})
        except ConnectionError:  # the agent was killed
            self.close_connection = True

    def _stream(self, events: Iterator[Sent]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for sent in events:
            data = sent.data if isinstance(sent.data, str) else json.dumps(sent.data)
            chunk = (f"event: {sent.event}\n" if sent.event else "").encode() + f"data: {data}\n\n".encode()
            self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")

    def _send(self, body: Json) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


# --- the wires ------------------------------------------------------------------------------------


def answered(wire: Wire, action: Say | Use, model: LoopbackModel) -> Iterator[Sent]:
    """Yield an answer; the last event has the whole of it."""
    pieces = model.pieces(action) if isinstance(action, Say) else iter(())
    text = "".join(action.pieces) if isinstance(action, Say) else ""
    call = action if isinstance(action, Use) else None
    id = f"{next(_numbers):06}"
    match wire:
        case "chat":
            return _chat(id, pieces, text, call)
        case "responses":
            return _responses(id, pieces, text, call)
        case "anthropic":
            return _anthropic(id, pieces, text, call)
        case "gemini":
            return _gemini(pieces, text, call)


def _chat(id: str, pieces: Iterator[str], text: str, call: Use | None) -> Iterator[Sent]:
    base: Json = {"id": f"chat{id}", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    reason = "stop" if call is None else "tool_calls"
    message: Json = {"role": "assistant", "content": text}

    def chunk(delta: Json, finish_reason: str | None = None) -> Sent:
        return Sent({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})

    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces:
        yield chunk({"content": piece})
    if call is not None:
        function = {"name": call.tool, "arguments": json.dumps(call.arguments)}
        message["tool_calls"] = [{"id": f"call_{id}", "type": "function", "function": function}]
        yield chunk({"tool_calls": [{"index": 0, **message["tool_calls"][0]}]})
    yield chunk({}, reason)
    yield Sent({**base, "choices": [], "usage": usage})
    choices = [{"index": 0, "message": message, "finish_reason": reason}]
    yield Sent("[DONE]", whole={**base, "object": "chat.completion", "choices": choices, "usage": usage})


def _anthropic(id: str, pieces: Iterator[str], text: str, call: Use | None) -> Iterator[Sent]:
    usage = {"input_tokens": 11, "output_tokens": 7, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    message: Json = {"id": f"msg_{id}", "type": "message", "role": "assistant", "model": MODEL, "content": []}
    message |= {"stop_reason": None, "stop_sequence": None, "usage": usage}
    reason = "end_turn" if call is None else "tool_use"
    block: Json = {"type": "text", "text": ""}
    if call is not None:
        block = {"type": "tool_use", "id": f"toolu_{id}", "name": call.tool, "input": {}}

    def event(type: str, **fields: object) -> Sent:
        return Sent({"type": type, **fields}, event=type)

    yield event("message_start", message=message)
    yield event("content_block_start", index=0, content_block=block)
    for piece in pieces:
        yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
    if call is not None:
        arguments = json.dumps(call.arguments)
        yield event("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": arguments})
    yield event("content_block_stop", index=0)
    yield event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=usage)
    content = {**block, "text": text} if call is None else {**block, "input": call.arguments}
    whole = {**message, "content": [content], "stop_reason": reason}
    yield Sent({"type": "message_stop"}, event="message_stop", whole=whole)


def _responses(id: str, pieces: Iterator[str], text: str, call: Use | None) -> Iterator[Sent]:
    numbers = count()
    usage = {"input_tokens": 11, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 7}
    usage |= {"output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 18}
    response: Json = {"id": f"resp_{id}", "object": "response", "created_at": 1, "model": MODEL, "output": []}
    response |= {"status": "in_progress", "tools": [], "tool_choice": "auto", "parallel_tool_calls": False}
    item: Json = {"type": "message", "id": f"msg_{id}", "role": "assistant", "status": "in_progress", "content": []}
    if call is not None:
        item = {"type": "function_call", "id": f"fc_{id}", "call_id": f"call_{id}", "name": call.tool}
        item |= {"arguments": json.dumps(call.arguments), "status": "completed"}
        item |= {"namespace": call.namespace} if call.namespace else {}

    def event(type: str, **fields: object) -> Sent:
        return Sent({"type": type, "sequence_number": next(numbers), **fields}, event=type)

    yield event("response.created", response=response)
    yield event("response.output_item.added", output_index=0, item=item)
    if call is None:
        part: Json = {"type": "output_text", "text": "", "annotations": []}
        place: Json = {"item_id": item["id"], "output_index": 0, "content_index": 0}
        yield event("response.content_part.added", part=part, **place)
        for piece in pieces:
            yield event("response.output_text.delta", delta=piece, **place)
        part = {**part, "text": text}
        item = {**item, "status": "completed", "content": [part]}
        yield event("response.output_text.done", text=text, **place)
        yield event("response.content_part.done", part=part, **place)
    yield event("response.output_item.done", output_index=0, item=item)
    whole = {**response, "status": "completed", "output": [item], "usage": usage}
    type = "response.completed"
    yield Sent({"type": type, "sequence_number": next(numbers), "response": whole}, event=type, whole=whole)


def _gemini(pieces: Iterator[str], text: str, call: Use | None) -> Iterator[Sent]:
    usage = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}

    def body(part: Json, **more: str) -> Json:
        candidate = {"content": {"role": "model", "parts": [part]}, "index": 0, **more}
        return {"candidates": [candidate], "usageMetadata": usage}

    for piece in pieces:
        yield Sent(body({"text": piece}))
    part: Json = {"text": text}
    if call is not None:
        part = {"functionCall": {"name": call.tool, "args": call.arguments}}
    last = part if call is not None else {"text": ""}
    yield Sent(body(last, finishReason="STOP"), whole=body(part, finishReason="STOP"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8098)
    with LoopbackModel(parser.parse_args().port) as model:
        print(f"A model for agents listens at {model.url}; a prompt is its script: [[write a.txt|hello]]")
        threading.Event().wait()


if __name__ == "__main__":
    main()
