"""The transport to an MCP server: the pipes of a process that we start, or streamable HTTP.

Imports the SDK, which takes more than a second: only `connection.py` imports this file, when it is needed.

The pipes are our own and not the SDK's, which takes minutes for a message of 100 MB and does not report why a
server ended. A server dies with the gateway (`die_with_parent.py`), runs in a process group of its own, and gets the
environment that the SDK gives by default and what is named. It ends when its input is closed, else its group is killed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client import Client
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import Implementation, ToolListChangedNotification, jsonrpc_message_adapter

from holdfast import __version__
from holdfast.runtime.mcp.die_with_parent import NOT_FOUND

if TYPE_CHECKING:
    from mcp.client._transport import ReadStream, Transport, TransportStreams
    from mcp.client.session import IncomingMessage

    from holdfast.runtime.mcp.connection import McpServer

Incoming = SessionMessage | Exception
DIE_WITH_PARENT = Path(__file__).with_name("die_with_parent.py")
CONNECT_SECONDS = 30.0
GRACE_SECONDS = 2.0
LAST_WORDS_SECONDS = 0.5
MESSAGE_BYTES = 16 << 20
ERROR_BYTES = 2_000


@dataclass(slots=True)
class Sending:
    """How far one call over HTTP got; set through the context that the SDK passes on."""

    seen: bool = False
    sent: bool = False
    status: int = 0

    async def trace(self, event: str, _: dict[str, Any]) -> None:
        """Called by the HTTP client at every step."""
        if event.endswith("send_request_headers.started"):
            self.sent = True


SENDING: ContextVar[Sending | None] = ContextVar("SENDING", default=None)


class McpTransport:
    """The transport to one server. `over` is set as soon as it has ended."""

    def __init__(self, server: McpServer, *, over: asyncio.Event, changed: asyncio.Event) -> None:
        self._server = server
        self._over = over
        self._changed = changed
        self._errors = bytearray()
        self._remark = ""
        self._ending = False
        self._ended_by_itself = False
        self._code: int | None = None
        self._status = 0

    @asynccontextmanager
    async def client(self) -> AsyncGenerator[Client, None]:
        """Return an initialised client. Some old servers exit at the first unknown request."""
        async with AsyncExitStack() as stack:
            try:
                client = await self._open(stack, "auto")
            except Exception:  # of the SDK, or a group of its errors
                if not self._ended_by_itself or self._code == NOT_FOUND:
                    raise
                self._over.clear()
                self._errors.clear()
                self._ending = self._ended_by_itself = False
                client = await self._open(stack, "legacy")
            yield client

    async def _open(self, stack: AsyncExitStack, mode: str) -> Client:
        client = Client(
            self._transport(),
            mode=mode,
            cache=None,
            message_handler=self._heard,
            client_info=Implementation(name="holdfast", version=__version__),
        )
        async with asyncio.timeout(CONNECT_SECONDS):
            return await stack.enter_async_context(client)

    def _transport(self) -> Transport:
        return self._pipes() if self._server.command else self._http()

    async def _heard(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._changed.set()

    def explain(self, error: BaseException | None) -> str:
        """Return why it cannot be used, for a person, without secrets."""
        words = []
        if self._remark:
            words.append(self._remark)
        elif self._ended_by_itself:
            words.append(f"it {self._how_it_ended()}")
        elif error is not None:
            words.append(", ".join(dict.fromkeys(_say(leaf) for leaf in flatten_errors(error))))
        if self._status:
            words.append(f"HTTP status {self._status}")
        if tail := self._errors.decode("utf-8", "replace").strip():
            words.append(f"it said: {tail}")
        return self._server.without_secrets("; ".join(words) or "the connection ended")

    def _how_it_ended(self) -> str:
        if self._code is None:
            return "closed its output"
        if self._code < 0:
            return f"was killed by signal {-self._code}"
        return f"ended with code {self._code}"

    # --- over HTTP ------------------------------------------------------------------------------

    @asynccontextmanager
    async def _http(self) -> AsyncGenerator[TransportStreams, None]:
        timeout = httpx2.Timeout(CONNECT_SECONDS, read=None)  # how long a call may take is measured elsewhere
        hooks: dict[str, list[Callable[..., Any]]] = {"request": [self._asks], "response": [self._answered]}
        async with (
            httpx2.AsyncClient(headers=self._server.headers, timeout=timeout, event_hooks=hooks) as http,
            streamable_http_client(self._server.url, http_client=http, max_sse_event_size=MESSAGE_BYTES) as streams,
        ):
            yield ClosingStream(streams[0], self._over), streams[1]

    async def _asks(self, request: httpx2.Request) -> None:
        self._status = 0
        sending = SENDING.get()
        if sending is not None:
            sending.seen = True
            request.extensions = {**request.extensions, "trace": sending.trace}

    async def _answered(self, response: httpx2.Response) -> None:
        sending = SENDING.get()
        if response.status_code >= 400:
            self._status = response.status_code
            if sending is not None:
                sending.status = response.status_code
        if "json" in response.headers.get("content-type", "") and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = LimitedBody(response.stream)

    # --- over the pipes of a process ------------------------------------------------------------

    @asynccontextmanager
    async def _pipes(self) -> AsyncGenerator[TransportStreams, None]:
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.subprocess_exec(
            lambda: Pipes(limit=MESSAGE_BYTES, loop=loop),
            *(sys.executable, "-I", "-S", str(DIE_WITH_PARENT), str(os.getpid()), *self._server.command),
            env=get_default_environment() | self._server.env,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,
        )
        process = Process(transport, protocol, loop)
        incoming, inbox = anyio.create_memory_object_stream[Incoming](0)
        outbox, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        tasks = [
            asyncio.create_task(self._receive_messages(process, incoming)),
            asyncio.create_task(self._send_messages(process, outgoing)),
            asyncio.create_task(self._keep_errors(process)),
        ]
        try:
            yield ClosingStream(inbox, self._over), outbox
        finally:
            self._ending = True
            for stream in (inbox, outbox):
                stream.close()
            await self._end(process, protocol.exited)
            await asyncio.wait(tasks, timeout=LAST_WORDS_SECONDS)
            transport.close()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _receive_messages(self, process: Process, incoming: MemoryObjectSendStream[Incoming]) -> None:
        assert process.stdout is not None
        async with incoming:
            try:
                while line := await process.stdout.readline():
                    message = _parse(line)
                    if message is not None:
                        await incoming.send(message)
                self._ended_by_itself = not self._ending
            except ValueError:
                self._remark = f"it sent more than {MESSAGE_BYTES >> 20} MiB in one message"
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                self._over.set()
        while await process.stdout.read(MESSAGE_BYTES):
            continue  # so that it can end

    async def _send_messages(self, process: Process, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
        assert process.stdin is not None
        async with outgoing:
            async for sent in outgoing:
                text = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(text.encode() + b"\n")
                try:
                    await process.stdin.drain()
                except OSError:
                    return  # it has ended, which `_receive_messages` notices

    async def _keep_errors(self, process: Process) -> None:
        assert process.stderr is not None
        while piece := await process.stderr.read(1 << 16):
            self._errors += piece
            del self._errors[:-ERROR_BYTES]

    async def _end(self, process: Process, exited: asyncio.Event) -> None:
        """Close its input, then send SIGTERM to its process group, then SIGKILL."""
        assert process.stdin is not None
        process.stdin.close()
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, number)
            with suppress(TimeoutError):
                await asyncio.wait_for(exited.wait(), GRACE_SECONDS)
                break
        self._code = process.returncode
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGTERM)  # what it left behind


class Pipes(SubprocessStreamProtocol):
    """Reports when the process has ended; `Process.wait` also waits until its pipes are closed by all."""

    def __init__(self, *, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit, loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        """Called by the loop."""
        super().process_exited()
        self.exited.set()


class ClosingStream:
    """A stream of messages that reports its end, so that a lost idle connection is noticed at once."""

    def __init__(self, inner: ReadStream[Incoming], over: asyncio.Event) -> None:
        self._inner = inner
        self._over = over

    async def receive(self) -> Incoming:
        """The next message."""
        return await self._inner.receive()

    async def aclose(self) -> None:
        """No more messages."""
        self._over.set()
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Incoming:
        return await self._inner.__anext__()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._over.set()
        return await self._inner.__aexit__(kind, error, trace)


class LimitedBody(httpx2.AsyncByteStream):
    """A body that may not be larger than a message may be; it fails alone, not with the connection."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._inner:
            size += len(piece)
            if size > MESSAGE_BYTES:
                raise httpx2.StreamError(f"it sent more than {MESSAGE_BYTES >> 20} MiB in one message")
            yield piece

    async def aclose(self) -> None:
        """Close the body."""
        await self._inner.aclose()


def flatten_errors(error: BaseException) -> list[BaseException]:
    """Return the errors inside exception groups."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for part in error.exceptions for leaf in flatten_errors(part)]
    return [error]


def _say(error: BaseException) -> str:
    if isinstance(error, TimeoutError) and not str(error):
        return f"it did not answer within {CONNECT_SECONDS:g} s"
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
        return f"it cannot be reached ({error})"
    return str(error) or type(error).__name__


def _parse(line: bytes) -> SessionMessage | None:
    """Return a message; None for anything else, such as a banner on stdout."""
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        return None
