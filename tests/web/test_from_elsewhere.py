"""From elsewhere: a phone behind a TLS proxy, and a link that was clicked on another site."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.gateway import GatewayProcess, until
from tests.web.conftest import Driver, why_not
from tests.web.user import CHROMIUM, OTHERS, new_context

BOX, ELSEWHERE = "https://box.tailnet.ts.net", "http://elsewhere.example"


class Proxy:
    """Ends TLS and passes the bytes on as they are, with the Host that the browser sent."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self.target = 0
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                threading.Thread(target=self._pass_on, args=(connection,), daemon=True).start()

    def _pass_on(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            inside = self._context.wrap_socket(connection, server_side=True)
            with inside, socket.create_connection(("127.0.0.1", self.target)) as up:
                back = threading.Thread(target=_pump, args=(up, inside), daemon=True)
                back.start()
                _pump(inside, up)
                back.join()

    def close(self) -> None:
        self._listening.close()


def _pump(one: socket.socket, other: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := one.recv(65536):
            other.sendall(piece)
    with contextlib.suppress(OSError):
        other.shutdown(socket.SHUT_WR)


class Site(BaseHTTPRequestHandler):
    """Another site: its only page is what stands in the query."""

    page = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(self.page)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    if reason := why_not():
        pytest.skip(reason)
    at = tmp_path_factory.mktemp("tls")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    names = ["-subj", "/CN=box", "-keyout", str(at / "key"), "-out", str(at / "certificate")]
    subprocess.run([*command.split(), *names], check=True, capture_output=True)
    found = Proxy(at / "certificate", at / "key")
    yield found
    found.close()


@pytest.fixture(scope="module")
def site() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def browser(proxy: Proxy, site: ThreadingHTTPServer, driver: Driver) -> Iterator[Browser]:
    """It finds the public name at the proxy and the other site at its server."""
    rules = f"MAP box.tailnet.ts.net:443 127.0.0.1:{proxy.port}, MAP elsewhere.example:80 127.0.0.1:{site.server_port}"
    with driver.active() as playwright:
        found = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=[f"--host-resolver-rules={rules}", "--ignore-certificate-errors"]
        )
    yield found
    with driver.active():
        found.close()


@pytest.fixture
def gateway(tmp_path: Path, proxy: Proxy) -> Iterator[GatewayProcess]:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(f"[gateway]\npublic_urls = {json.dumps([BOX])}\n")
    with GatewayProcess(home) as process:
        proxy.target = process.start().port
        yield process


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = new_context(browser, ignore_https_errors=True)
    yield context.new_page()
    context.close()


def sign_in(page: Page, gateway: GatewayProcess, base: str) -> None:
    page.goto(f"{base}/#code={gateway.command('POST', '/v1/codes')['code']}")
    page.wait_for_url("**/home")


def test_a_phone_signs_in_behind_a_tls_proxy_and_speaks(page: Page, gateway: GatewayProcess) -> None:
    sign_in(page, gateway, BOX)
    (cookie,) = page.context.cookies()
    assert (cookie["name"], cookie["secure"], cookie["sameSite"]) == ("__Host-holdfast_443", True, "Strict")
    session = gateway.create()
    page.goto(f"{BOX}/s/{session}")
    box = page.get_by_label("Message", exact=True)
    box.fill("say through the tunnel")
    box.press("Enter")
    expect(page.locator(OTHERS, has_text="through the tunnel").first).to_be_visible()
    until(lambda: gateway.get("/v1/devices")["devices"][0]["connected"] >= 1, "its sockets come through, too")


@pytest.mark.parametrize("public", [True, False], ids=["behind the proxy", "on loopback"])
def test_a_link_on_another_site_opens_the_session(page: Page, gateway: GatewayProcess, public: bool) -> None:
    base = BOX if public else gateway.url
    sign_in(page, gateway, base)
    session = gateway.create("say what the link leads to")
    gateway.until_rest(session)
    Site.page = f'<a href="{base}/s/{session}">there</a>'.encode()
    page.goto(ELSEWHERE)
    with page.expect_response(f"{base}/s/{session}") as came:
        page.get_by_text("there").click()
    assert came.value.status == 200
    site = came.value.request.all_headers().get("sec-fetch-site")
    assert site == "cross-site" or came.value.from_service_worker  # which asks for the page itself
    expect(page.get_by_label("Message", exact=True)).to_be_visible()
    expect(page.get_by_text("what the link leads to").first).to_be_visible()
    page.reload()
    expect(page.get_by_text("what the link leads to").first).to_be_visible()


def test_another_site_gets_no_frame_and_no_answer(page: Page, gateway: GatewayProcess) -> None:
    sign_in(page, gateway, gateway.url)
    Site.page = f"""<iframe src="{gateway.url}/s/x"></iframe><script>
      const ask = (path, more) => fetch("{gateway.url}" + path, more).then((a) => a.type + a.status, () => "refused");
      window.found = Promise.all([ask("/s/x", {{mode: "no-cors", credentials: "include"}}), ask("/v1/status")]);
    </script>""".encode()
    page.goto("about:blank")  # what our own page asked for is over
    statuses: list[int] = []
    page.on("response", lambda answer: statuses.append(answer.status) if gateway.url in answer.url else None)
    page.goto(ELSEWHERE)
    assert page.evaluate("window.found")[1] == "refused"
    page.wait_for_load_state("networkidle")
    assert statuses and set(statuses) == {403}
    assert "Message" not in (page.frames[1].content() if len(page.frames) > 1 else "")


def test_a_window_that_another_site_opened_is_not_in_its_hands(page: Page, gateway: GatewayProcess) -> None:
    sign_in(page, gateway, gateway.url)
    Site.page = b"<title>elsewhere</title>"
    page.goto(ELSEWHERE)
    with page.context.expect_page() as opened:
        page.evaluate(f"window.held = window.open('{gateway.url}/home')")
    opened.value.wait_for_url("**/home")
    page.wait_for_function("window.held.closed")
    assert opened.value.evaluate("window.opener") is None
