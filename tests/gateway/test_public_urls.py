"""`[gateway] public_urls`: exactly these further origins, as a proxy passes them on, and no near miss."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.config import ConfigError
from holdfast.read_settings import load_settings
from tests.e2e.gateway import GatewayProcess
from tests.e2e.wire import UPGRADE, Answer, Headers, exchange, head

BOX = "https://box.tailnet.ts.net"
PORTED = "https://box.example:8443"
PLAIN = "http://10.0.0.7:8080"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    home = tmp_path_factory.mktemp("public") / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(f"[gateway]\npublic_urls = {json.dumps([BOX, PORTED, PLAIN])}\n")
    with GatewayProcess(home) as process:
        yield process.start()


def ask(
    gateway: GatewayProcess, method: str, path: str, *, host: str, origin: str | None = None, more: Headers, body: bytes
) -> Answer:
    headers = [("Host", host), ("Content-Length", str(len(body))), *more]
    headers += [("Origin", origin)] if origin is not None else []
    return exchange(gateway.port, head(method, path, headers) + body)


def sign_in(gateway: GatewayProcess, url: str) -> Answer:
    code = gateway.command("POST", "/v1/codes")["code"]
    host = url.partition("//")[2]
    body = json.dumps({"code": code}).encode()
    return ask(gateway, "POST", "/v1/login", host=host, origin=url, more=[], body=body)


def cookie_of(answer: Answer) -> str:
    assert answer.status == 202, answer.body
    return answer.headers["set-cookie"].partition(";")[0]


@pytest.mark.parametrize(
    ("url", "name", "secure"),
    [
        (BOX, "__Host-holdfast_443", True),
        (PORTED, "__Host-holdfast_8443", True),
        (PLAIN, "holdfast_8080", False),
    ],
)
def test_a_browser_signs_in_through_a_proxy_and_stays_in(
    gateway: GatewayProcess, url: str, name: str, secure: bool
) -> None:
    host = url.partition("//")[2]
    answer = sign_in(gateway, url)
    cookie, *flags = answer.headers["set-cookie"].split("; ")
    assert cookie.startswith(f"{name}=") and ("Secure" in flags) is secure
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} < set(flags) and not [f for f in flags if f.startswith("Domain")]
    given: Headers = [("Cookie", cookie)]
    assert ask(gateway, "GET", "/", host=host, more=[], body=b"").status == 200
    assert ask(gateway, "GET", "/v1/status", host=host, more=given, body=b"").status == 200
    made = ask(gateway, "POST", "/v1/sessions", host=host, origin=url, more=given, body=b"{}")
    assert made.status == 202
    upgrade = ask(gateway, "GET", "/v1/events", host=host, origin=url, more=given + UPGRADE, body=b"")
    assert upgrade.status == 101
    out = ask(gateway, "POST", "/v1/logout", host=host, origin=url, more=given, body=b"")
    assert out.status == 202 and out.headers["set-cookie"].startswith(f"{name}=; ") and "Max-Age=0" in str(out.headers)
    assert ask(gateway, "GET", "/v1/status", host=host, more=given, body=b"").status == 401


HOSTS = {
    "other port": "box.tailnet.ts.net:8443",
    "the usual port, which no browser writes": "box.tailnet.ts.net:443",
    "the port of plain http": "box.tailnet.ts.net:80",
    "our own port": "box.tailnet.ts.net:{port}",
    "without its port": "box.example",
    "trailing dot": "box.tailnet.ts.net.",
    "subdomain": "a.box.tailnet.ts.net",
    "parent": "tailnet.ts.net",
    "suffix": "evilbox.tailnet.ts.net",
    "as a subdomain of another": "box.tailnet.ts.net.evil.example",
    "with a user": "user@box.tailnet.ts.net",
    "as a user": "box.tailnet.ts.net@evil.example",
    "in capitals": "BOX.tailnet.ts.net",
    "with a scheme": "https://box.tailnet.ts.net",
    "list": "box.tailnet.ts.net, box.example:8443",
    "address without its port": "10.0.0.7",
}


@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS.keys())
@pytest.mark.parametrize("more", [[], UPGRADE], ids=["request", "upgrade"])
def test_a_host_that_only_looks_like_it_is_refused(gateway: GatewayProcess, host: str, more: Headers) -> None:
    token = [("Authorization", f"Bearer {gateway.token}")]
    said = host.replace("{port}", str(gateway.port))
    assert ask(gateway, "GET", "/v1/events", host=said, more=token + more, body=b"").status == 421


ORIGINS = {
    "http instead of https": "http://box.tailnet.ts.net",
    "other port": "https://box.tailnet.ts.net:8443",
    "the usual port": "https://box.tailnet.ts.net:443",
    "trailing dot": "https://box.tailnet.ts.net.",
    "trailing slash": "https://box.tailnet.ts.net/",
    "subdomain": "https://a.box.tailnet.ts.net",
    "parent": "https://tailnet.ts.net",
    "begins like it": "https://box.tailnet.ts.net.evil.example",
    "with a user": "https://user@box.tailnet.ts.net",
    "as a user": "https://box.tailnet.ts.net@evil.example",
    "in capitals": "https://BOX.tailnet.ts.net",
    "capital scheme": "HTTPS://box.tailnet.ts.net",
    "null": "null",
    "another that is served": PORTED,
    "our own on loopback": "http://127.0.0.1:{port}",
}


@pytest.mark.parametrize("origin", ORIGINS.values(), ids=ORIGINS.keys())
@pytest.mark.parametrize("more", [[], UPGRADE], ids=["request", "upgrade"])
def test_an_origin_that_is_not_that_of_the_host_is_refused(gateway: GatewayProcess, origin: str, more: Headers) -> None:
    cookie = [("Cookie", cookie_of(sign_in(gateway, BOX)))]
    said = origin.replace("{port}", str(gateway.port))
    method = "GET" if more else "POST"
    answer = ask(gateway, method, "/v1/events", host="box.tailnet.ts.net", origin=said, more=cookie + more, body=b"")
    assert answer.status == 403


def test_a_public_origin_does_not_knock_on_loopback(gateway: GatewayProcess) -> None:
    token = [("Authorization", f"Bearer {gateway.token}")]
    own = f"127.0.0.1:{gateway.port}"
    assert ask(gateway, "GET", "/v1/status", host=own, origin=BOX, more=token, body=b"").status == 403


def test_a_cookie_counts_only_under_the_name_of_its_address(gateway: GatewayProcess) -> None:
    """A plain address of the same machine cannot plant the cookie of the one behind TLS."""
    value = cookie_of(sign_in(gateway, BOX)).partition("=")[2]
    for name in ("holdfast_443", "holdfast_8443", f"holdfast_{gateway.port}", "__host-holdfast_443"):
        given: Headers = [("Cookie", f"{name}={value}")]
        assert ask(gateway, "GET", "/v1/status", host="box.tailnet.ts.net", more=given, body=b"").status == 401


def test_what_a_proxy_says_about_itself_is_not_believed(gateway: GatewayProcess) -> None:
    told: Headers = [
        ("X-Forwarded-Host", "box.tailnet.ts.net"),
        ("X-Forwarded-Proto", "https"),
        ("Forwarded", "host=box.tailnet.ts.net;proto=https"),
        ("Authorization", f"Bearer {gateway.token}"),
    ]
    assert ask(gateway, "GET", "/v1/status", host="evil.example", more=told, body=b"").status == 421


NONSENSE = [
    "",
    "*",
    "box.example",
    "https://",
    "https://*",
    "https://*.example",
    "https://box.example/",
    "https://box.example/holdfast",
    "https://box.example?x",
    "https://box.example#x",
    "https://user@box.example",
    "https://BOX.example",
    "HTTPS://box.example",
    "https://box.example.",
    "https://box..example",
    "https://-box.example",
    "https://box.example:443",
    "http://box.example:80",
    "https://box.example:0",
    "https://box.example:08443",
    "https://box.example:65536",
    "https://box.example:",
    "https://box_1.example",
    "https://bücher.example",
    "https://127.1",
    "https://10.0.0.256",
    "https://[::1",
    "https://[::0:1]",
    "https://box.example, https://b.example",
    "https://box.example\n",
    "ftp://box.example",
    "wss://box.example",
    "null",
]


@pytest.mark.parametrize("url", NONSENSE)
def test_nonsense_names_its_line_and_what_is_allowed(tmp_path: Path, url: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f'[gateway]\npublic_urls = [\n  "https://good.example",\n  {json.dumps(url)},\n]\n')
    with pytest.raises(ConfigError) as caught:
        load_settings(path)
    assert repr(url) in str(caught.value) and "https://HOST:PORT" in str(caught.value)
    line = 4 if url and "\n" not in url and url.isascii() and url not in "https://good.example" else None
    assert line is None or str(caught.value).startswith(f"{path}:{line}: ")


@pytest.mark.parametrize(
    "url", [BOX, PORTED, PLAIN, "http://box", "https://[fd7a::1]:8443", "https://xn--bcher-kva.example"]
)
def test_an_origin_as_a_browser_says_it_is_taken(tmp_path: Path, url: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f"gateway.public_urls = [{url!r}]\n")
    assert load_settings(path).gateway.public_urls == [url]


def test_one_host_has_one_scheme(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[gateway]\npublic_urls = ["https://box.example", "http://box.example"]\n')
    with pytest.raises(ConfigError, match=r"config\.toml:2: .*box\.example is listed twice"):
        load_settings(path)
