"""A push service on this machine. It verifies the sender and decrypts for the browser, both with other libraries."""

from __future__ import annotations

import base64
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import http_ece
import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

VAPID = re.compile(r"vapid t=([\w.-]+), k=([\w-]+)")


@dataclass(frozen=True, slots=True)
class Pushed:
    """A push as the browser gets it."""

    subscription: str
    headers: dict[str, str]
    claims: dict[str, Any]
    """Of the JSON Web Token, which was verified."""
    key: str
    """Of the sender."""
    size: int
    message: Any


@dataclass(slots=True)
class BrowserSubscription:
    """What a browser keeps of a subscription."""

    endpoint: str
    key: ec.EllipticCurvePrivateKey
    auth: bytes

    @classmethod
    def new(cls, endpoint: str) -> Self:
        return cls(endpoint, ec.generate_private_key(ec.SECP256R1()), os.urandom(16))

    @property
    def json(self) -> dict[str, Any]:
        """As `PushSubscription.toJSON` of a browser, and as the gateway takes it."""
        point = self.key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        return {"endpoint": self.endpoint, "keys": {"p256dh": encoded(point), "auth": encoded(self.auth)}}


@dataclass(slots=True)
class PushService:
    """Keeps what it gets and could read. While `gate` is closed it does not answer."""

    port: int = 0
    pushed: list[Pushed] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """What was wrong with what it could not accept."""
    answer: tuple[int, dict[str, str]] = (201, {})
    gate: threading.Event = field(default_factory=threading.Event)
    subscriptions: dict[str, BrowserSubscription] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def subscribe(self) -> BrowserSubscription:
        """A browser subscribes."""
        id = f"s{len(self.subscriptions)}"
        found = BrowserSubscription.new(f"{self.origin}/push/{id}")
        self.subscriptions[id] = found
        return found

    @property
    def messages(self) -> list[Any]:
        return [one.message for one in self.pushed]

    def take(self, path: str, headers: dict[str, str], body: bytes) -> None:
        """Verify and decrypt a push; raises if anything is wrong with it."""
        id = path.removeprefix("/push/")
        subscription = self.subscriptions[id]
        token, key = VAPID.fullmatch(headers["authorization"]).groups()  # type: ignore[union-attr]
        sender = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decoded(key))
        claims = jwt.decode(
            token, sender, algorithms=["ES256"], audience=self.origin, options={"require": ["exp", "aud", "sub"]}
        )
        assert headers["content-encoding"] == "aes128gcm"
        assert re.fullmatch(r"[\w-]{1,32}", headers["topic"])
        assert len(body) <= 4096
        message = http_ece.decrypt(
            body, private_key=subscription.key, auth_secret=subscription.auth, version="aes128gcm"
        )
        self.pushed.append(Pushed(id, headers, claims, key, len(body), msgspec.json.decode(message)))


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@contextmanager
def push_service() -> Iterator[PushService]:
    """A push service for as long as this lasts, in threads of its own."""
    service = PushService()
    service.gate.set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            body = self.rfile.read(length)
            if len(body) < length:  # whoever sent it was killed
                self.close_connection = True
                return
            status, more = service.answer
            try:
                service.take(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            except Exception as error:
                service.refused.append(repr(error))
                status = 400
            service.gate.wait()
            try:
                self.send_response(status)
                for name, value in {"content-length": "0", **more}.items():
                    self.send_header(name, value)
                self.end_headers()
            except ConnectionError:  # the same
                self.close_connection = True

        def log_message(self, *_: object) -> None: ...

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None: ...

    server = Server(("127.0.0.1", 0), Handler)
    service.port = server.server_port
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield service
    finally:
        service.gate.set()
        server.shutdown()
        server.server_close()
