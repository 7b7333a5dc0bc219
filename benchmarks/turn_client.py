"""Child: clients on plain sockets, one for each conversation, that send a message, wait for the end of its turn, and
send the next.

{"sessions": [[id, version], …], "port": …, "token": …, "pid": …} follows each session from its version on; `pid` is the
gateway's. {"seconds": s} lets all of them send messages for so long; the answer says how many turns ended, how long it
took, and how much processor time the gateway and this client used meanwhile. With 0 seconds each makes one turn.

An HTTP library would need more processor time for a turn than the gateway does.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from benchmarks.measure import cpu_seconds

CHUNK = 1 << 16
STUCK_SECONDS = 60.0
"""So long after a burst should be over, it is given up."""
TURN_FINISHED = b'"kind":"TurnFinished"'
DONE = b'"outcome":"done"'
MESSAGE = "read notes.txt"
NOTES = "forty-two\n"
"""What the file holds that the model reads; each turn's events must contain it."""


@dataclass(slots=True)
class Server:
    """The gateway that all clients talk to."""

    port: int
    token: str

    def connect(self) -> socket.socket:
        """A new connection, without Nagle's delay."""
        connection = socket.create_connection(("127.0.0.1", self.port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def head(self, request: str) -> str:
        """The first lines of a request."""
        return f"{request} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAuthorization: Bearer {self.token}\r\n"

    def identified(self) -> socket.socket:
        """A connection that has shown its token: the gateway cuts those that are silent for a moment."""
        connection = self.connect()
        connection.sendall(f"{self.head('GET /healthz')}\r\n".encode())
        read_until(connection, b"}")
        return connection


def read_until(connection: socket.socket, end: bytes) -> bytes:
    """What arrives, up to the first piece that has `end` in it."""
    data = b""
    while end not in data:
        piece = connection.recv(CHUNK)
        if not piece:
            raise ConnectionError(f"the gateway closed a connection after {data[:200]!r}")
        data += piece
    if not data.startswith(b"HTTP/1.1 200"):
        raise ConnectionError(f"the gateway refused: {data[:200]!r}")
    return data


@dataclass(slots=True)
class Conversation:
    """A follower of one session, and during a burst a connection that its messages go through."""

    session: str
    server: Server
    follower: socket.socket
    sender: socket.socket | None = None
    received: bytearray = field(default_factory=bytearray)
    """The events of the turn that is under way."""
    sent: int = 0
    """Messages so far."""

    def send(self) -> None:
        """Send the next message, under an id as the command line makes them."""
        self.sent += 1
        body = json.dumps({"text": MESSAGE})
        id = f"{time.time_ns() // 1_000_000:011x}{self.session}{self.sent:06x}"
        head = self.server.head(f"POST /v1/sessions/{self.session}/messages")
        request = f"{head}Idempotency-Key: {id}\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        assert self.sender is not None
        self.sender.sendall(request.encode())

    def receive_events(self) -> bool:
        """Take what has arrived; whether the turn is over."""
        piece = self.follower.recv(CHUNK)
        if not piece:
            raise ConnectionError("the gateway closed a follower")
        self.received += piece
        end = self.received.find(TURN_FINISHED)
        if end < 0 or b"\n\n" not in self.received[end:]:
            return False
        if DONE not in self.received[end:] or NOTES.strip().encode() not in self.received:
            raise ConnectionError(f"a turn did not end as it should: {bytes(self.received)!r}")
        self.received.clear()
        return True

    def receive_answer(self) -> None:
        """Take the answer to a message; it must have been accepted."""
        assert self.sender is not None
        answer = self.sender.recv(CHUNK)
        if not answer:
            raise ConnectionError("the gateway closed a connection for messages")
        if answer.startswith(b"HTTP/") and not answer.startswith(b"HTTP/1.1 202"):
            raise ConnectionError(f"the gateway refused a message: {answer!r}")


class Clients:
    """All conversations of one gateway."""

    def __init__(self, sessions: list[tuple[str, int]], server: Server, pid: int) -> None:
        self._server = server
        self._pid = pid
        self._conversations = [follow(session, version, server) for session, version in sessions]

    def burst(self, seconds: float) -> dict[str, float]:
        """Let all of them send messages; a turn that has begun is waited for."""
        with selectors.DefaultSelector() as selector:
            for one in self._conversations:
                one.sender = self._server.identified()
                selector.register(one.follower, selectors.EVENT_READ, (one, True))
                selector.register(one.sender, selectors.EVENT_READ, (one, False))
            gateway, client, started = cpu_seconds(self._pid), time.process_time(), time.perf_counter()
            turns = self._talk(selector, started + seconds)
            answer = {
                "turns": turns,
                "seconds": time.perf_counter() - started,
                "gateway_cpu": cpu_seconds(self._pid) - gateway,
                "client_cpu": time.process_time() - client,
            }
        for one in self._conversations:
            assert one.sender is not None
            one.sender.close()
        return answer

    def _talk(self, selector: selectors.BaseSelector, until: float) -> int:
        """How many turns ended."""
        for one in self._conversations:
            one.send()
        turns, open_turns = 0, len(self._conversations)
        while open_turns:
            for key, _ in selector.select(STUCK_SECONDS):
                one, is_follower = key.data
                if not is_follower:
                    one.receive_answer()
                elif one.receive_events():
                    turns += 1
                    if time.perf_counter() < until:
                        one.send()
                    else:
                        open_turns -= 1
            if time.perf_counter() > until + STUCK_SECONDS:
                raise TimeoutError(f"{open_turns} of {len(self._conversations)} turns do not end")
        return turns


def follow(session: str, version: int, server: Server) -> Conversation:
    """Follow a session from a version on, and wait until the stream has begun."""
    follower = server.connect()
    head = server.head(f"GET /v1/sessions/{session}/events?after={version}")
    follower.sendall(f"{head}Accept: text/event-stream\r\n\r\n".encode())
    read_until(follower, b": holdfast\n\n")
    return Conversation(session, server, follower)


def main() -> None:
    """Answer until the input ends."""
    clients: Clients | None = None
    print("{}", flush=True)
    for line in sys.stdin:
        message: dict[str, Any] = json.loads(line)
        if "sessions" in message:
            clients = Clients(message["sessions"], Server(message["port"], message["token"]), message["pid"])
            print("{}", flush=True)
        else:
            assert clients is not None
            print(json.dumps(clients.burst(message["seconds"])), flush=True)


if __name__ == "__main__":
    main()
