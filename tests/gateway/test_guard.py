"""The guard: exact Host, exact Origin, a credential, on every request and on every upgrade.

Each vector is what some page, program or proxy might send; the same vectors knock at both doors.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from holdfast import __version__
from tests.e2e.gateway import GatewayProcess
from tests.e2e.wire import UPGRADE, Answer, Headers, exchange, head

HOST = "127.0.0.1:{port}"
BEARER = "Bearer {token}"
GOOD = 200
SECURITY_HEADERS = {
    "holdfast-version": __version__,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
KEPT_BY_NOBODY = ("no-store", "no-cache")
"""The second is for the dashboard's pages, which may be kept as long as they are asked for again."""


@dataclass(frozen=True, slots=True)
class Vector:
    """The three headers that the guard looks at, each given as often as listed."""

    name: str
    expect: int
    host: tuple[str, ...] = (HOST,)
    authorization: tuple[str, ...] = (BEARER,)
    more: tuple[tuple[str, str], ...] = ()

    def headers(self, gateway: GatewayProcess) -> Headers:
        def fill(text: str) -> str:
            return text.replace("{port}", str(gateway.port)).replace("{token}", gateway.token)

        headers = [("Host", fill(host)) for host in self.host]
        headers += [("Authorization", fill(value)) for value in self.authorization]
        return headers + [(name, fill(value)) for name, value in self.more]


def host(name: str, *values: str, expect: int = 421) -> Vector:
    return Vector(f"host: {name}", expect, host=values)


def origin(name: str, *values: str, expect: int = 403) -> Vector:
    return Vector(f"origin: {name}", expect, more=tuple(("Origin", value) for value in values))


def site(name: str, *values: str, expect: int = 403) -> Vector:
    return Vector(f"site: {name}", expect, more=tuple(("Sec-Fetch-Site", value) for value in values))


def credential(name: str, *values: str, expect: int = 401, more: tuple[tuple[str, str], ...] = ()) -> Vector:
    return Vector(f"credential: {name}", expect, authorization=values, more=more)


VECTORS = [
    host("own address", HOST, expect=GOOD),
    host("own name", "localhost:{port}", expect=GOOD),
    host("own name in capitals", "LocalHost:{port}", expect=GOOD),
    host("own address of version 6", "[::1]:{port}", expect=GOOD),
    host("missing"),
    host("empty", ""),
    host("twice the same", HOST, HOST),
    host("own and foreign", HOST, "evil.example"),
    host("foreign and own", "evil.example", HOST),
    host("without a port", "127.0.0.1"),
    host("name without a port", "localhost"),
    host("other port", "127.0.0.1:1"),
    host("longer port", "127.0.0.1:{port}0"),
    host("padded port", "127.0.0.1:0{port}"),
    host("empty port", "127.0.0.1:"),
    host("rebound name", "evil.example:{port}"),
    host("rebinding service", "127.0.0.1.nip.io:{port}"),
    host("own name as subdomain", "localhost.evil.example:{port}"),
    host("own name as suffix", "evil-localhost:{port}"),
    host("trailing dot", "localhost.:{port}"),
    host("address with trailing dot", "127.0.0.1.:{port}"),
    host("with a user", "user@127.0.0.1:{port}"),
    host("as a user", "127.0.0.1:{port}@evil.example"),
    host("with a scheme", "http://127.0.0.1:{port}"),
    host("with a path", "127.0.0.1:{port}/"),
    host("list", "127.0.0.1:{port}, evil.example"),
    host("v6 without brackets", "::1:{port}"),
    host("v6 without a port", "[::1]"),
    host("v6 written out", "[0:0:0:0:0:0:0:1]:{port}"),
    host("v4 in v6", "[::ffff:127.0.0.1]:{port}"),
    host("v6 with a zone", "[::1%25lo]:{port}"),
    host("short address", "127.1:{port}"),
    host("decimal address", "2130706433:{port}"),
    host("hexadecimal address", "0x7f000001:{port}"),
    host("other loopback address", "127.0.0.2:{port}"),
    host("any address", "0.0.0.0:{port}"),
    origin("own address", "http://127.0.0.1:{port}", expect=GOOD),
    origin("own name", "http://localhost:{port}", expect=GOOD),
    origin("own address of version 6", "http://[::1]:{port}", expect=GOOD),
    origin("null", "null"),
    origin("empty", ""),
    origin("foreign", "https://evil.example"),
    origin("foreign on our port", "http://evil.example:{port}"),
    origin("begins like ours", "http://127.0.0.1:{port}.evil.example"),
    origin("begins with our name", "http://localhost:{port}@evil.example"),
    origin("other port", "http://127.0.0.1:1"),
    origin("longer port", "http://127.0.0.1:{port}0"),
    origin("without a port", "http://127.0.0.1"),
    origin("other scheme", "https://127.0.0.1:{port}"),
    origin("capital scheme", "HTTP://127.0.0.1:{port}"),
    origin("trailing slash", "http://127.0.0.1:{port}/"),
    origin("trailing dot", "http://localhost.:{port}"),
    origin("with a user", "http://user@127.0.0.1:{port}"),
    origin("extension", "chrome-extension://abcdefghijklmnop"),
    origin("file", "file://"),
    origin("own twice", "http://127.0.0.1:{port}", "http://127.0.0.1:{port}"),
    origin("own and foreign", "http://127.0.0.1:{port}", "https://evil.example"),
    site("same origin", "same-origin", expect=GOOD),
    site("typed by the person", "none", expect=GOOD),
    site("cross site", "cross-site"),
    site("same site, other port", "same-site"),
    site("empty", ""),
    site("unheard of", "same-universe"),
    site("same origin and cross site", "same-origin", "cross-site"),
    credential("right", BEARER, expect=GOOD),
    credential("scheme in small letters", "bearer {token}", expect=GOOD),
    credential("none"),
    credential("empty", ""),
    credential("scheme alone", "Bearer"),
    credential("empty token", "Bearer "),
    credential("wrong token", "Bearer AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
    credential("longer token", "Bearer {token}A"),
    credential("token twice in one", "Bearer {token} {token}"),
    credential("token twice", BEARER, BEARER),
    credential("wrong then right", "Bearer wrong", BEARER),
    credential("without a scheme", "{token}"),
    credential("other scheme", "Basic {token}"),
    credential("other scheme name", "Token {token}"),
    credential("joined scheme", "Bearer{token}"),
    credential("not ASCII", "Bearer \xe4\xf6\xfc"),
    credential("in a cookie", more=(("Cookie", "token={token}"),)),
    credential("in another header", more=(("X-Api-Key", "{token}"),)),
    credential("for a proxy", more=(("Proxy-Authorization", BEARER),)),
    Vector("foreign page without a credential", 403, authorization=(), more=(("Origin", "https://evil.example"),)),
    Vector("foreign host without a credential", 421, host=("evil.example",), authorization=()),
]
IDS = [vector.name for vector in VECTORS]


def test_there_are_enough_vectors() -> None:
    assert len(VECTORS) >= 60
    assert len(set(IDS)) == len(IDS)


@pytest.mark.parametrize("vector", VECTORS, ids=IDS)
def test_request(gateway: GatewayProcess, vector: Vector) -> None:
    answer = exchange(gateway.port, head("GET", "/v1/status", vector.headers(gateway)))
    assert answer.status == vector.expect
    if vector.expect == GOOD:
        assert json.loads(answer.body)["pid"] == gateway.pid
    else:
        is_refusal(answer)


@pytest.mark.parametrize("vector", VECTORS, ids=IDS)
def test_upgrade(gateway: GatewayProcess, vector: Vector) -> None:
    answer = exchange(gateway.port, head("GET", "/v1/events", vector.headers(gateway) + UPGRADE))
    if vector.expect == GOOD:
        assert answer.status == 101
    elif answer.status == 400:
        assert len([name for name, _ in vector.more if name == "Origin"]) > 1  # the handshake allows only one
    else:
        assert answer.status == vector.expect
        is_refusal(answer)


@pytest.mark.parametrize("cut", [1, 8, 42])
def test_truncated_token(gateway: GatewayProcess, cut: int) -> None:
    headers = [("Host", f"127.0.0.1:{gateway.port}"), ("Authorization", f"Bearer {gateway.token[:-cut]}")]
    assert exchange(gateway.port, head("GET", "/v1/status", headers)).status == 401
    assert exchange(gateway.port, head("GET", "/v1/events", headers + UPGRADE)).status == 401


def is_refusal(answer: Answer) -> None:
    error = json.loads(answer.body)["error"]
    assert error["message"]
    assert error["code"] == {401: "unauthorized", 403: "forbidden", 421: "wrong_host"}[answer.status]
    assert answer.headers["connection"] == "close"
    is_guarded(answer)


def is_guarded(answer: Answer) -> None:
    """The security headers are there, and no page of another origin may read it."""
    for name, value in SECURITY_HEADERS.items():
        assert answer.headers.get(name) == value, name
    assert answer.headers["cache-control"] in KEPT_BY_NOBODY
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert not [name for name in answer.headers if name.startswith("access-control-")]


# --- public paths: the page's own files and very little else ----------------------------------------

PATHS = {
    "/": 200,
    "/healthz": 200,
    "/healthz?token=x": 200,
    "/readyz": 200,
    "/readyz/": 401,
    "/%68ealthz": 200,
    "//": 401,
    "//healthz": 401,
    "/healthz/": 401,
    "/healthz//": 401,
    "/HEALTHZ": 401,
    "/healthz;x": 401,
    "/healthz%00": 401,
    "/healthz%20": 401,
    "/healthz%2f": 401,
    "/healthz/../v1/status": 401,
    "/healthz%2f..%2fv1%2fstatus": 401,
    "/./v1/status": 401,
    "/%2e/v1/status": 401,
    "/%2e%2e/healthz": 401,
    "/..": 401,
    "/v1": 401,
    "/v1/status": 401,
    "/v1/status?token={token}": 401,
    "/v1/status?access_token={token}": 401,
    "/v1/sessions": 401,
    "/v1/events": 401,
    "/v1/openapi.json": 401,
    "/v1/why": 401,
    "/v1/search?q=a": 401,
    "/metrics": 401,
    "/openapi.json": 401,
    "/docs": 401,
    "/redoc": 401,
    "/no-such-icon.ico": 404,
    "/v1/build": 200,
    "/v1/build/": 401,
    "/v1/login": 405,
    "/v1/codes": 401,
    "/v1/devices": 401,
    "/v1/devices/me": 401,
    "/s/0123456789abcdef": 200,
    "/s/../v1/status": 200,
    "/s/%2e%2e/v1/status": 200,
    "/tasks": 200,
    "/tasks/x/y": 200,
    "/tasksx": 401,
    "/settings": 200,
    "/assets/app.js": 404,
    "/assets/../../../etc/passwd": 404,
    "/assets/..%2f..%2f..%2fpyproject.toml": 404,
    "/assets//etc/passwd": 404,
    "/..%2fguard.py": 401,
    "/guard.py": 401,
    "/build.json": 401,
    "/nowhere": 401,
    "http://127.0.0.1:{port}/v1/status": 401,
    "http://evil.example/healthz/": 401,
}


@pytest.mark.parametrize(("path", "expect"), PATHS.items(), ids=PATHS.keys())
def test_path_without_a_credential(gateway: GatewayProcess, path: str, expect: int) -> None:
    target = path.replace("{token}", gateway.token).replace("{port}", str(gateway.port))
    answer = exchange(gateway.port, head("GET", target, [("Host", f"127.0.0.1:{gateway.port}")]))
    assert answer.status == expect
    is_guarded(answer)


@pytest.mark.parametrize("path", ["/", "/healthz", "/v1/events", "/v1/sessions/abcd/events", "/nowhere"])
def test_upgrade_without_a_credential(gateway: GatewayProcess, path: str) -> None:
    """No path is public for a socket."""
    answer = exchange(gateway.port, head("GET", path, [("Host", f"127.0.0.1:{gateway.port}"), *UPGRADE]))
    assert answer.status == 401
    is_refusal(answer)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_other_methods_without_a_credential(gateway: GatewayProcess, method: str) -> None:
    own = [("Host", f"127.0.0.1:{gateway.port}"), ("Content-Length", "0")]
    assert exchange(gateway.port, head(method, "/v1/shutdown", own)).status == 401
    assert exchange(gateway.port, head(method, "/healthz", own)).status == 405


def test_preflight_of_a_foreign_page_gets_nothing(gateway: GatewayProcess) -> None:
    headers = [
        ("Host", f"127.0.0.1:{gateway.port}"),
        ("Origin", "https://evil.example"),
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "authorization"),
        ("Access-Control-Request-Private-Network", "true"),
    ]
    answer = exchange(gateway.port, head("OPTIONS", "/v1/sessions", headers))
    assert answer.status == 403
    is_refusal(answer)


def test_public_paths_are_closed_to_foreign_pages_too(gateway: GatewayProcess) -> None:
    for header, expect in ((("Origin", "null"), 403), (("Sec-Fetch-Site", "cross-site"), 403)):
        answer = exchange(gateway.port, head("GET", "/healthz", [("Host", f"127.0.0.1:{gateway.port}"), header]))
        assert answer.status == expect
    assert exchange(gateway.port, head("GET", "/healthz", [("Host", "evil.example")])).status == 421


# --- every answer is guarded ------------------------------------------------------------------------


def test_security_headers_are_on_every_answer(gateway: GatewayProcess) -> None:
    session = gateway.create()
    gone = gateway.create()
    gateway.command("DELETE", f"/v1/sessions/{gone}", key="delete-it-once")
    seen: dict[int, str] = {}

    def check(method: str, target: str, body: bytes = b"", *, length: int | None = None, accept: str = "*/*") -> None:
        headers = [("Host", f"127.0.0.1:{gateway.port}"), ("Authorization", f"Bearer {gateway.token}")]
        headers += [("Accept", accept), ("Content-Length", str(len(body) if length is None else length))]
        answer = exchange(gateway.port, head(method, target, headers) + body)
        seen.setdefault(answer.status, f"{method} {target}")
        is_guarded(answer)

    check("GET", "/v1/status")
    check("POST", "/v1/sessions", b"{}")
    check("POST", "/v1/sessions", b"{")
    check("GET", "/v1/sessions/0123456789abcdef")
    check("GET", "/nowhere")
    check("PUT", "/v1/sessions")
    check("POST", f"/v1/sessions/{session}/stop", b"{}")
    check("GET", f"/v1/sessions/{gone}")
    check("POST", "/v1/sessions", length=99_999_999)
    check("GET", "/v1/events", accept="text/event-stream")
    check("GET", "/metrics")
    garbage = exchange(gateway.port, b"\x16\x03\x01 this is not HTTP\r\n\r\n")
    assert garbage.status == 400
    is_guarded(garbage)
    assert {200, 202, 400, 404, 405, 409, 410, 413} <= set(seen), seen


def test_a_bug_is_an_answer_and_shows_nothing_of_the_inside(gateway: GatewayProcess) -> None:
    """There is no known way to a 500, so the shape of an unknown path stands for all errors."""
    answer = gateway.request("GET", "/v1/" + "x" * 5000)
    assert answer.status_code == 404
    assert set(answer.json()["error"]) == {"code", "message", "hint"}
    assert "Traceback" not in answer.text
