"""The push service that Chromium uses, on this machine: it subscribes there and gets its pushes from there.

Three parts, as at Google: a device checks in, an app registers and gets a token, and messages come through one stream
(MCS: a tag, a length, a message in the format of Protocol Buffers). What is pushed to a token is handed on as it is;
only the browser can read it. The addresses of all three are flags of Chromium.
"""

from __future__ import annotations

import asyncio
import datetime
import io
import os
import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import BinaryIO
from urllib.parse import parse_qsl

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

VERSION = 41
PING, PING_ANSWER, LOGIN, LOGIN_ANSWER, DATA = 0, 1, 2, 3, 8
"""Tags of messages in the stream."""
HERE = """(() => {
    const original = PushSubscription.prototype.toJSON
    PushSubscription.prototype.toJSON = function () {
        const found = original.call(this)
        return { ...found, endpoint: found.endpoint.replace(/^https:\\/\\/[^/]*/, '%s') }
    }
})()"""
"""Chromium names an endpoint at Google, whatever its flags say: the page gives the gateway the one on this machine."""


@dataclass(frozen=True, slots=True)
class Registration:
    """An app in a browser: the service worker of a site."""

    device: int
    app: str
    subtype: str
    sender: str
    """The public key of whoever may push to it."""


@dataclass(slots=True)
class ChromiumPush:
    """Who is registered, and the streams to their browsers."""

    port: int = 0
    stream_port: int = 0
    registrations: dict[str, Registration] = field(default_factory=dict)
    streams: dict[int, asyncio.StreamWriter] = field(default_factory=dict)
    waiting: dict[int, list[bytes]] = field(default_factory=dict)
    pushed: list[bytes] = field(default_factory=list)
    """The bodies, encrypted."""
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    """Of the streams, in a thread of its own."""

    @property
    def flags(self) -> list[str]:
        """What a Chromium has to be started with."""
        here = f"http://127.0.0.1:{self.port}"
        return [
            f"--gcm-checkin-url={here}/checkin",
            f"--gcm-registration-url={here}/register",
            f"--gcm-mcs-endpoint=https://localhost:{self.stream_port}",
            "--ignore-certificate-errors",
        ]

    @property
    def page_script(self) -> str:
        return HERE % f"http://127.0.0.1:{self.port}"

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        if path == "/checkin":
            device = int.from_bytes(os.urandom(6), "little")
            return 200, number(1, 1) + fixed(7, device) + fixed(8, device)
        if path == "/register":
            form = dict(parse_qsl(body.decode()))
            token = f"t{os.urandom(16).hex()}:APA91b"
            self.registrations[token] = Registration(
                int(form["device"]), form["app"], form.get("X-subtype", ""), form["sender"]
            )
            return 200, f"token={token}".encode()
        found = self.registrations.get(path.rpartition("/")[2])
        if found is None:
            return 410, b""
        key = re.search(r"k=([\w-]+)", headers["authorization"])
        if key is None or key[1] != found.sender:
            return 403, b""
        data = {"subtype": found.subtype, "content-encoding": headers["content-encoding"]}
        self.loop.call_soon_threadsafe(self._push, found, data, body)
        return 201, b""

    def _push(self, to: Registration, data: dict[str, str], body: bytes) -> None:
        """Hand a message on, or keep it until the browser is there."""
        pairs = b"".join(text(7, text(1, name) + text(2, value)) for name, value in data.items())
        message = text(3, to.sender) + text(5, to.app) + pairs + text(9, os.urandom(8).hex()) + text(21, body)
        self.pushed.append(body)
        if to.device in self.streams:
            send(self.streams[to.device], DATA, message)
        else:
            self.waiting.setdefault(to.device, []).append(message)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One stream, until the browser ends it."""
        device = 0
        with suppress(asyncio.IncompleteReadError, OSError):
            await reader.readexactly(1)  # its version
            while True:
                (tag,) = await reader.readexactly(1)
                size = b""
                while not size or size[-1] > 127:
                    size += await reader.readexactly(1)
                content = await reader.readexactly(read_number(io.BytesIO(size)))
                if tag == LOGIN:
                    device = int(fields(content)[3])
                    writer.write(bytes([VERSION]))
                    send(writer, LOGIN_ANSWER, text(1, "holdfast-test"))
                    self.streams[device] = writer
                    for message in self.waiting.pop(device, []):
                        send(writer, DATA, message)
                elif tag == PING:
                    send(writer, PING_ANSWER, b"")
        self.streams.pop(device, None)
        writer.close()


# --- Protocol Buffers, as much as is needed ---------------------------------------------------------


def varint(value: int) -> bytes:
    head = b""
    while value > 127:
        head += bytes([value & 127 | 128])
        value >>= 7
    return head + bytes([value])


def number(place: int, value: int) -> bytes:
    return varint(place << 3) + varint(value)


def fixed(place: int, value: int) -> bytes:
    return varint(place << 3 | 1) + value.to_bytes(8, "little")


def text(place: int, value: str | bytes) -> bytes:
    content = value.encode() if isinstance(value, str) else value
    return varint(place << 3 | 2) + varint(len(content)) + content


def read_number(reader: BinaryIO) -> int:
    value = shift = 0
    while True:
        (byte,) = reader.read(1)
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value


def fields(content: bytes) -> dict[int, bytes]:
    """The fields of a message that are texts, by their numbers; the last one of several."""
    found, reader = {}, io.BytesIO(content)
    while reader.tell() < len(content):
        key = read_number(reader)
        match key & 7:
            case 0:
                read_number(reader)
            case 1:
                reader.read(8)
            case 2:
                found[key >> 3] = reader.read(read_number(reader))
            case _:
                reader.read(4)
    return found


def send(writer: asyncio.StreamWriter, tag: int, content: bytes) -> None:
    writer.write(bytes([tag]) + varint(len(content)) + content)


# --- servers ----------------------------------------------------------------------------------------


@contextmanager
def chromium_push(directory: Path) -> Iterator[ChromiumPush]:
    """A push service for as long as this lasts; its certificate is in the directory."""
    service = ChromiumPush()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, content = service.answer(self.path, headers, body)
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None: ...

    async def listen() -> asyncio.Server:
        return await asyncio.start_server(service.serve, "127.0.0.1", 0, ssl=_context(directory))

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.block_on_close = True, False
    threads = [threading.Thread(target=one, daemon=True) for one in (server.serve_forever, service.loop.run_forever)]
    for thread in threads:
        thread.start()
    streams = asyncio.run_coroutine_threadsafe(listen(), service.loop).result()
    service.port, service.stream_port = server.server_port, streams.sockets[0].getsockname()[1]

    async def end() -> None:
        streams.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        asyncio.run_coroutine_threadsafe(end(), service.loop).result()
        service.loop.call_soon_threadsafe(service.loop.stop)
        for thread in threads:
            thread.join()
        service.loop.close()


def _context(directory: Path) -> ssl.SSLContext:
    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")]),
    )
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - day).not_valid_after(now + day)
    pair = directory / "push-service.pem"
    pair.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        + builder.sign(key, SHA256()).public_bytes(Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair)
    return context
