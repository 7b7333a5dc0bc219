"""Events after a cursor, as a page, an event stream or a WebSocket; the bytes are the same."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from holdfast.domain.errors import HoldfastError, Rejected, Unauthorized
from holdfast.domain.events import Record, session_stream, task_stream
from holdfast.gateway.openapi import Routes
from holdfast.gateway.requests import QueryShape, find_session, parse_query, session_of, task_of
from holdfast.gateway.responses import response_to
from holdfast.gateway.state import Gateway, follower_of, gateway_of
from holdfast.gateway.streams import PIECE_BYTES, Follower, Frame, Streams, as_message, as_sse, seq_of
from holdfast.store.contract import Page

EVENT_STREAM = "text/event-stream"
RESTART, REFUSED, REVOKED = 1012, 4404, 4401
MAX_CURSOR = 2**62
routes = Routes("events")


class EventPage(Struct, frozen=True):
    """Records after a cursor; ask again with the new one while there are more."""

    events: list[Record]
    cursor: int
    more: bool


class EventsQuery(QueryShape, frozen=True):
    """The cursor and the size of a page."""

    after: Annotated[int, Meta(ge=0, le=MAX_CURSOR)] = 0
    limit: Annotated[int, Meta(ge=1, le=2000)] = 500


@routes.get("/v1/sessions/{id}/events", EventPage, query=EventsQuery, media=(EVENT_STREAM,))
async def session_events(request: Request) -> Response:
    """Return the events of a session after a version; an event stream continues with new ones."""
    gateway = gateway_of(request)
    row = await session_of(request)
    query = parse_query(request, EventsQuery)
    return await _events(gateway, row.id, request, query)


@routes.get("/v1/events", EventPage, query=EventsQuery, media=(EVENT_STREAM,))
async def all_events(request: Request) -> Response:
    """Return the whole log after a seq, in the same forms."""
    gateway = gateway_of(request)
    query = parse_query(request, EventsQuery)
    return await _events(gateway, None, request, query)


@routes.get("/v1/tasks/{id:task}/events", EventPage, query=EventsQuery)
async def task_events(request: Request) -> Response:
    """Return the events of a task after a version."""
    gateway = gateway_of(request)
    row = await task_of(request)
    query = parse_query(request, EventsQuery)
    page = await gateway.store.read(task_stream(row.id), after=query.after, limit=query.limit)
    return _page(page, query.after + len(page.lines))


async def _events(gateway: Gateway, session: str | None, request: Request, query: EventsQuery) -> Response:
    after = query.after
    if EVENT_STREAM in request.headers.get("accept", ""):
        last = request.headers.get("last-event-id", "")
        if last:
            after = _cursor(last)
        await gateway.streams.page(session, after=after, limit=1)  # an error here can still be a status code
        follower = follower_of(request)
        frames = gateway.streams.follow(session, after=after, connection=follower.connection)
        return EventStream(gateway.streams, frames, follower, _looking(gateway, session, follower))
    page = await gateway.streams.page(session, after=after, limit=query.limit)
    cursor = after
    if page.lines:
        cursor = seq_of(page.lines[-1]) if session is None else after + len(page.lines)
    return _page(page, cursor)


def _looking(gateway: Gateway, session: str | None, follower: Follower) -> AbstractContextManager[None]:
    """A client that follows a session with the owner's token, such as a terminal, counts as looking at it."""
    if session is None or follower.device:
        return nullcontext()
    return gateway.notify.presence.attached(session_stream(session))


def _page(page: Page, cursor: int) -> Response:
    more = b"true" if page.more else b"false"
    body = b'{"events":[%b],"cursor":%d,"more":%b}' % (b",".join(page.lines), cursor, more)
    return Response(body, media_type="application/json")


class EventStream(Response):
    """Server-sent events, several in one write if there are many."""

    def __init__(
        self,
        streams: Streams,
        frames: AsyncGenerator[Frame, None],
        follower: Follower,
        looking: AbstractContextManager[None],
    ) -> None:
        super().__init__(media_type=EVENT_STREAM)
        self._looking = looking
        self._streams = streams
        self._frames = frames
        self._follower = follower

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        """Send until the client disconnects."""
        headers = [(b"content-type", EVENT_STREAM.encode()), (b"x-accel-buffering", b"no")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b": holdfast\n\n", "more_body": True})

        async def piece(frame: Frame) -> None:
            body = as_sse(frame)
            for start in range(0, len(body), PIECE_BYTES):  # a large event is sent as fast as the client reads
                self._follower.unsent = max(0, len(body) - start - PIECE_BYTES)
                await send({"type": "http.response.body", "body": body[start : start + PIECE_BYTES], "more_body": True})

        async def gone() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        try:
            with self._looking:
                await self._streams.serve(self._frames, piece, gone(), follower=self._follower)
        except HoldfastError as error:
            end = bytes(response_to(error).body)
            await send({"type": "http.response.body", "body": b"event: end\ndata: %b\n\n" % end, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def event_socket(socket: WebSocket) -> None:
    """Stream the events of a session, or without an id the whole log, over a WebSocket."""
    gateway = gateway_of(socket)
    with suppress(WebSocketDisconnect):  # it may disconnect at any moment, also before it is refused
        await socket.accept()
        try:
            after = _cursor(socket.query_params.get("after", "0"))
            id = socket.path_params.get("id")
            session = None if id is None else (await find_session(gateway, id)).id
            await _socket(socket, gateway, session, after)
        except HoldfastError as error:
            await _refuse(socket, error)


SOCKETS = [
    WebSocketRoute("/v1/sessions/{id}/events", event_socket),
    WebSocketRoute("/v1/events", event_socket),
]


def _cursor(given: str) -> int:
    if not (given.isascii() and given.isdigit() and len(given) < 19):
        raise Rejected("after: not a cursor.", hint="A cursor is a number; start with 0.")
    return int(given)


async def _socket(socket: WebSocket, gateway: Gateway, session: str | None, after: int) -> None:
    async def message(frame: Frame) -> None:
        await socket.send_text(as_message(frame).decode())

    async def gone() -> None:
        while (await socket.receive())["type"] != "websocket.disconnect":
            pass

    follower = follower_of(socket)
    frames = gateway.streams.follow(session, after=after, connection=follower.connection)
    with _looking(gateway, session, follower):
        await gateway.streams.serve(frames, message, gone(), follower=follower)
    if socket.application_state is WebSocketState.CONNECTED and socket.client_state is WebSocketState.CONNECTED:
        await socket.close(RESTART, "the gateway is shutting down; reconnect with your cursor")


async def _refuse(socket: WebSocket, error: HoldfastError) -> None:
    await socket.send_text(bytes(response_to(error).body).decode())
    await socket.close(REVOKED if isinstance(error, Unauthorized) else REFUSED, error.message[:100])
