"""Three gateways on one PostgreSQL database, and a browser that reaches them under one address, as behind a proxy."""

from __future__ import annotations

import contextlib
import secrets
import socket
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from tests.e2e.gateway import NO_TLS, GatewayProcess
from tests.eventually import PATIENCE
from tests.postgres_server import shared_server

PUBLIC = "https://holdfast.example"
NAMES = ("a", "b", "c")


@contextlib.contextmanager
def cluster(directory: Path, **timings: object) -> Iterator[list[GatewayProcess]]:
    """The gateways `a`, `b` and `c`, which a proxy serves as `PUBLIC`."""
    name = f"e{secrets.token_hex(4)}"
    server = shared_server()
    server.sql(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
    try:
        with contextlib.ExitStack() as stack:
            nodes = []
            for node in NAMES:
                home = directory / node
                home.mkdir(mode=0o700)
                config = f'[store]\nurl = "{server.url(name)}"\n[node]\nname = "{node}"\n'
                (home / "config.toml").write_text(f'{config}[gateway]\npublic_urls = ["{PUBLIC}"]\n')
                nodes.append(stack.enter_context(GatewayProcess(home, timings=timings)))
                nodes[-1].launch()
            yield [node.wait_until_up() for node in nodes]
    finally:
        server.sql(f"DROP DATABASE {name} WITH (FORCE)")


def node_database(node: GatewayProcess) -> str:
    """The address of the database that a node works on."""
    address: str = tomllib.loads((node.home / "config.toml").read_text())["store"]["url"]
    return address


class ProxiedBrowser:
    """One device whose requests a proxy hands to whichever node it likes."""

    def __init__(self) -> None:
        self.cookie = ""
        self.id = ""

    def sign_in(self, node: GatewayProcess, code: str) -> int:
        """Return the status of the answer."""
        answer = self.request(node, "POST", "/v1/login", json={"code": code, "name": "phone"})
        if answer.status_code == 202:
            self.id = str(answer.json()["device"])
            self.cookie = answer.headers["set-cookie"].partition(";")[0]
        return answer.status_code

    def request(self, node: GatewayProcess, method: str, path: str, **more: Any) -> httpx.Response:
        url = f"{node.url}{path}"
        return httpx.request(method, url, headers=self._headers(), timeout=PATIENCE, verify=NO_TLS, **more)

    def socket(self, node: GatewayProcess, path: str) -> ClientConnection:
        url = PUBLIC.replace("https", "ws", 1) + path
        taken = socket.create_connection(("127.0.0.1", node.port), PATIENCE)
        headers, origin = {"Cookie": self.cookie}, Origin(PUBLIC)
        return connect(url, origin=origin, additional_headers=headers, proxy=None, open_timeout=PATIENCE, sock=taken)

    def _headers(self) -> dict[str, str]:
        return {"host": PUBLIC.partition("//")[2], "origin": PUBLIC, "cookie": self.cookie}
