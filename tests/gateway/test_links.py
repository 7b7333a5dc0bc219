"""A link on another site may lead to a page's shell, and to nothing else; HEAD answers like GET."""

from __future__ import annotations

import httpx
import pytest

from tests.e2e.browser import Browser
from tests.e2e.gateway import GatewayProcess
from tests.e2e.wire import UPGRADE, Headers, exchange, head

LINK: Headers = [
    ("Sec-Fetch-Site", "cross-site"),
    ("Sec-Fetch-Mode", "navigate"),
    ("Sec-Fetch-Dest", "document"),
    ("Sec-Fetch-User", "?1"),
]


def but(**changed: str | None) -> Headers:
    """A link with other headers; `None` leaves one out."""
    names = {name.replace("_", "-").title(): value for name, value in changed.items()}
    kept = [(name, names.pop(name, value)) for name, value in LINK]
    return [(name, value) for name, value in [*kept, *names.items()] if value is not None]


def follow(gateway: GatewayProcess, path: str, headers: Headers, *, method: str = "GET") -> int:
    sent = head(method, path, [("Host", f"127.0.0.1:{gateway.port}"), *headers])
    return exchange(gateway.port, sent).status


@pytest.mark.parametrize("path", ["/", "/s/0123456789abcdef", "/s/x?y", "/tasks/x", "/settings", "/home"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_link_leads_to_a_page(gateway: GatewayProcess, path: str, method: str) -> None:
    assert follow(gateway, path, LINK, method=method) == 200
    assert follow(gateway, path, but(sec_fetch_site="same-site"), method=method) == 200


NO_LINK = {
    "frame": but(sec_fetch_dest="iframe"),
    "old frame": but(sec_fetch_dest="frame"),
    "embedded": but(sec_fetch_dest="embed"),
    "object": but(sec_fetch_dest="object"),
    "script": but(sec_fetch_dest="script", sec_fetch_mode="no-cors"),
    "image": but(sec_fetch_dest="image", sec_fetch_mode="no-cors"),
    "fetch": but(sec_fetch_dest="empty", sec_fetch_mode="cors"),
    "fetch that claims a document": but(sec_fetch_mode="no-cors"),
    "no destination": but(sec_fetch_dest=None),
    "no mode": but(sec_fetch_mode=None),
    "two destinations": [*LINK, ("Sec-Fetch-Dest", "iframe")],
    "two sites": [*LINK, ("Sec-Fetch-Site", "cross-site")],
    "with an origin": but(origin="https://evil.example"),
    "with our origin": but(origin="http://127.0.0.1:{port}"),
    "with a body": but(content_length="2"),
    "with a body in pieces": but(transfer_encoding="chunked"),
    "upgrade": LINK + UPGRADE,
}


@pytest.mark.parametrize("headers", NO_LINK.values(), ids=NO_LINK.keys())
def test_nothing_else_comes_in_from_another_site(gateway: GatewayProcess, headers: Headers) -> None:
    filled = [(name, value.replace("{port}", str(gateway.port))) for name, value in headers]
    assert follow(gateway, "/s/x", filled) == 403


@pytest.mark.parametrize(
    "path", ["/healthz", "/v1/build", "/v1/status", "/v1/sessions", "/assets/x.js", "/sw.js", "/metrics", "//s/x"]
)
def test_a_link_leads_nowhere_else(gateway: GatewayProcess, path: str) -> None:
    browser = Browser(gateway)
    assert follow(gateway, path, LINK) == 403
    assert follow(gateway, path, [*LINK, ("Cookie", browser.cookie)]) == 403
    assert follow(gateway, path, [*LINK, ("Authorization", f"Bearer {gateway.token}")]) == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_only_reading_may_be_linked(gateway: GatewayProcess, method: str) -> None:
    assert follow(gateway, "/s/x", LINK, method=method) == 403


def test_a_linked_page_cannot_be_framed_nor_held(gateway: GatewayProcess) -> None:
    answer = httpx.get(gateway.url + "/s/x", headers=dict(LINK))
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"


@pytest.mark.parametrize(
    "path", ["/", "/s/0123456789abcdef", "/manifest.webmanifest", "/no-such-icon.ico", "/assets/no"]
)
def test_head_answers_like_get_without_a_body(gateway: GatewayProcess, path: str) -> None:
    got, asked = httpx.get(gateway.url + path), httpx.head(gateway.url + path)
    assert (asked.status_code, asked.content) == (got.status_code, b"")
    assert asked.headers == got.headers
    assert len(got.content) > 0


def test_after_head_the_connection_continues(gateway: GatewayProcess) -> None:
    """A body that was sent all the same would be taken for the next answer."""
    with httpx.Client(base_url=gateway.url) as client:
        assert client.head("/").status_code == 200
        assert client.get("/healthz").json()["status"] == "ok"
        assert client.head("/").status_code == 200
