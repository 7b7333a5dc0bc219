"""The gateway of a home: where it is, and requests to it, whose responses are bytes, JSON or structs.

What is left behind by a killed gateway (`run/gateway.json`) is taken for what it is: nobody answers there.
Not here: methods by noun (`client.py`), starting a gateway (`launch.py`), following a session (`events.py`).
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from holdfast import __version__
from holdfast.client.errors import (
    ApiError,
    ConnectionLost,
    GatewayNotAnswering,
    GatewayNotRunning,
    OtherVersion,
    UnexpectedResponse,
)
from holdfast.client.lenient import decode
from holdfast.client.reconnect import wait_until_reachable
from holdfast.client.transport import ClientConnection, Request, Response
from holdfast.config import Home

T = TypeVar("T")
Json = dict[str, Any]
REQUEST_SECONDS = 30.0
STREAM_SECONDS = 35.0
HEALTH_SECONDS = 2.0
SOON_SECONDS = 0.5
"""How long a gateway that was just started may take until it answers that it is starting."""
STARTING_SECONDS = 20.0
POLL_SECONDS = 0.02
TRIES = 3
ID_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class Address(msgspec.Struct, frozen=True):
    """Where a gateway says that it listens."""

    pid: int
    host: str
    port: int
    public_urls: tuple[str, ...] = ()
    """Where browsers of other devices reach it."""

    @property
    def url(self) -> str:
        """For people."""
        return f"http://{self.host}:{self.port}"


def new_id() -> str:
    """The id of a command, minted once and sent with every retry. It begins with the time: neighbours
    in time are neighbours in the gateway's index, which saves it writes.
    """
    return f"{time.time_ns() // 1_000_000:011x}" + "".join(ID_ALPHABET[byte % 36] for byte in os.urandom(15))


def quote(text: str) -> str:
    """Percent-encode one part of a path or query."""
    return "".join(
        chr(byte) if chr(byte) in UNRESERVED else f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass")
    )


def alive(pid: int) -> bool:
    """Whether the process lives. A zombie is dead."""
    return _state(pid) not in ("", "Z")


def _state(pid: int) -> str:
    """The letter of its state as the kernel has it; empty when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return stat.rpartition(")")[2].split()[0]


class ResponseObject(Json):
    """An object in a response. What is missing in it is an error that names the remedy, and no traceback."""

    def __missing__(self, key: str) -> Any:
        raise UnexpectedResponse(f"has no {key!r}")


def parsed(body: bytes) -> Any:
    """An answer of the gateway."""
    import json

    return json.loads(body, object_hook=ResponseObject)


class HttpClient:
    """The gateway of a home. Reads its address for every request, because it may have changed.

    `read` and `post` wait for a gateway that was reached before and is away, as long as the patience lasts. A command
    carries the same id in every try, so it is carried out once.
    """

    def __init__(self, home: Home, *, user_agent: str, patience: float) -> None:
        self.home = home
        self.patience = patience
        self._user_agent = user_agent
        self._was_reached = False
        self._warned = False

    # --- where it is ----------------------------------------------------------------------------

    def address(self) -> Address | None:
        """Where it listens, if it looks as if it were running."""
        try:
            found = msgspec.json.decode(self.home.address.read_bytes())
            host, _, port = str(found["url"]).removeprefix("http://").rpartition(":")
            address = Address(int(found["pid"]), host, int(port), tuple(found.get("public_urls", ())))
        except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError, msgspec.DecodeError):
            return None
        return address if alive(address.pid) else None

    def started_at(self) -> int:
        """When the gateway that wrote the address started, by its own clock; 0 where there is none."""
        try:
            return int(msgspec.json.decode(self.home.address.read_bytes())["started_at"])
        except (OSError, ValueError, KeyError, TypeError, msgspec.DecodeError):
            return 0

    def healthy(self) -> Address | None:
        """Where it listens, if it answers there and is the one that wrote the address."""
        address = self.address()
        return address if address is not None and _probe(address) == "healthy" else None

    def must_answer(self, address: Address) -> None:
        """GatewayNotAnswering if its process is stopped, or lives and answers two questions in a row with silence.

        One that refuses connections is about to end.
        """
        state = _state(address.pid)
        if state in ("", "Z") or _probe(address) == "healthy":
            return
        if state in ("T", "t") or (_probe(address) == "silent" and alive(address.pid)):
            raise GatewayNotAnswering(address.pid)

    def _started(self) -> Address | None:
        """Wait for a gateway that is starting; None where none is."""
        soon, late = time.monotonic() + SOON_SECONDS, time.monotonic() + STARTING_SECONDS
        while time.monotonic() < (late if self._is_starting() else soon):
            time.sleep(POLL_SECONDS)
            if (address := self.address()) is not None:
                return address
        return None

    def _is_starting(self) -> bool:
        try:
            pid = int(self.home.starting.read_text("ascii"))
            return alive(pid) and b"serve" in Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError):
            return False

    # --- asking ---------------------------------------------------------------------------------

    def read(self, kind: type[T], target: str, /, **query: object) -> T:
        """The struct that is found there."""
        return decode(self._patiently(partial(self.text, target, **query)), kind)

    def post(
        self,
        kind: type[T],
        target: str,
        /,
        *,
        method: str = "POST",
        id: str | None = None,
        seconds: float = REQUEST_SECONDS,
        **fields: object,
    ) -> T:
        """Give a command; fields that are None are left out. `id` is minted here unless the caller has one."""
        body = {name: value for name, value in fields.items() if value is not None}
        ask = partial(self.command_body, method, target, body, id=id or new_id(), seconds=seconds)
        return decode(self._patiently(ask), kind)

    def _patiently(self, ask: Callable[[], bytes]) -> bytes:
        waits = self._was_reached and self.patience > 0
        body = wait_until_reachable(ask, patience=self.patience) if waits else ask()
        self._was_reached = True
        return body

    def get(self, target: str, **query: object) -> Any:
        """The JSON that is found there."""
        return parsed(self.text(target, **query))

    def text(self, target: str, **query: object) -> bytes:
        """The bytes that are found there."""
        return self._ask(Request("GET", target + _query(query), {}))

    def raw(self, target: str, **query: object) -> tuple[bytes, dict[str, str]]:
        """The bytes that are found there, with the headers that say what they are."""
        with self._asked(Request("GET", target + _query(query), {}), timeout=REQUEST_SECONDS) as response:
            return response.body(), response.headers

    def command(
        self,
        method: str,
        target: str,
        body: Json | None = None,
        *,
        id: str | None = None,
        seconds: float = REQUEST_SECONDS,
    ) -> Json:
        """Give a command. A retry after a cut carries the same id, so it is carried out once."""
        response = parsed(self.command_body(method, target, body, id=id, seconds=seconds))
        assert isinstance(response, dict)
        return response

    def command_body(
        self,
        method: str,
        target: str,
        body: Json | None = None,
        *,
        id: str | None = None,
        seconds: float = REQUEST_SECONDS,
    ) -> bytes:
        """Give a command; the bytes of the response."""
        headers = {"Idempotency-Key": id or new_id()}
        data = b""
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = msgspec.json.encode(body)
        lost: ConnectionLost | None = None
        for tries_left in reversed(range(TRIES)):
            try:
                return self._ask(Request(method, target, headers, data), seconds)
            except GatewayNotAnswering:
                raise  # again it would not answer either
            except ConnectionLost as error:
                if tries_left == 0:
                    raise
                lost = error
                time.sleep(0.2)
            except GatewayNotRunning:
                if lost is not None:  # it may have arrived before the gateway went away
                    raise lost from None
                raise
        raise AssertionError

    def _ask(self, request: Request, seconds: float = REQUEST_SECONDS) -> bytes:
        with self._asked(request, timeout=seconds) as response:
            return response.body()

    @contextmanager
    def lines(self, target: str, **query: object) -> Iterator[Iterator[bytes]]:
        """The lines of an event stream, as they come; silence beyond the heartbeat is a cut."""
        request = Request("GET", target + _query(query), {"Accept": "text/event-stream"})
        with self._asked(request, timeout=STREAM_SECONDS) as response:
            yield response.lines()

    @contextmanager
    def _asked(self, request: Request, *, timeout: float) -> Iterator[Response]:
        address = self.address() or self._started()
        if address is None:
            raise GatewayNotRunning(self.home.path)
        given_up = time.monotonic() + timeout

        def silent() -> None:
            """No answer for a second: either it takes long, or the gateway answers nobody."""
            if time.monotonic() > given_up:
                raise TimeoutError("timed out")
            self.must_answer(address)

        headers = {
            "Authorization": f"Bearer {self._token()}",
            "User-Agent": self._user_agent,
            **request.headers,
        }
        try:
            with ClientConnection(address.host, address.port, timeout=timeout) as connection:
                asked = Request(request.method, request.target, headers, request.body)
                response = connection.send(asked, silent=silent)
                self._check(response)
                yield response
        except ConnectionRefusedError:
            raise GatewayNotRunning(self.home.path) from None
        except OSError as error:
            raise ConnectionLost(f"The connection to the gateway was lost: {error}.") from error

    def _token(self) -> str:
        try:
            return self.home.token.read_text("ascii").strip()
        except (OSError, ValueError):
            raise GatewayNotRunning(self.home.path) from None

    # --- judging the answer ---------------------------------------------------------------------

    def _check(self, response: Response) -> None:
        """Raise unless it is a good answer of our gateway."""
        version = response.headers.get("holdfast-version")
        if version is None and response.status != 503:
            raise GatewayNotRunning(self.home.path)
        if version is not None:
            self._compare(version)
        if response.status >= 400:
            raise self._error(response)

    def _error(self, response: Response) -> ApiError | ConnectionLost | GatewayNotRunning:
        if response.status == 401 and self.healthy() is None:
            return GatewayNotRunning(self.home.path)
        message, hint = _error_of(response.body())
        if response.status == 503:
            return ConnectionLost(message or "The gateway is too busy, or is shutting down.")
        return ApiError(response.status, message or f"The gateway answered {response.status}.", hint=hint)

    def _compare(self, version: str) -> None:
        if version != __version__ and not self._warned:
            self._warned = True
            warning = f"the gateway is {version}, this client is {__version__}: run `holdfast restart`"
            warnings.warn(warning, OtherVersion, stacklevel=2)


def _probe(address: Address) -> Literal["healthy", "silent", "gone"]:
    """Ask for its health; gone: nobody listens there, or somebody else does."""
    try:
        with ClientConnection(address.host, address.port, timeout=HEALTH_SECONDS) as connection:
            response = connection.send(Request("GET", "/healthz", {}))
            found = msgspec.json.decode(response.body())
    except TimeoutError:
        return "silent"
    except (OSError, ValueError, msgspec.DecodeError):
        return "gone"
    is_ours = response.headers.get("holdfast-version") is not None and isinstance(found, dict)
    return "healthy" if is_ours and found.get("pid", address.pid) == address.pid else "gone"


def _error_of(body: bytes) -> tuple[str, str]:
    try:
        error = msgspec.json.decode(body)["error"]
        return str(error["message"]), str(error.get("hint") or "")
    except (msgspec.DecodeError, ValueError, KeyError, TypeError, AttributeError):
        return "", ""


def _query(query: Mapping[str, object]) -> str:
    pairs = [f"{name}={quote(_text(value))}" for name, value in query.items() if value is not None]
    return "?" + "&".join(pairs) if pairs else ""


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
