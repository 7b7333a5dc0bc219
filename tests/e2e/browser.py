"""A browser as the gateway sees it: it signs in with a code, keeps a cookie, sends its origin."""

from __future__ import annotations

from typing import Any

import httpx
from websockets.sync.client import ClientConnection, connect

from tests.e2e.gateway import NO_TLS, GatewayProcess
from tests.eventually import PATIENCE


class Browser:
    """One device."""

    def __init__(self, gateway: GatewayProcess, *, name: str | None = None) -> None:
        self._gateway = gateway
        code = gateway.command("POST", "/v1/codes")["code"]
        answer = log_in(gateway, code, name=name)
        assert answer.status_code == 202, answer.text
        self.id = str(answer.json()["device"])
        self.cookie = answer.headers["set-cookie"].partition(";")[0]

    def request(self, method: str, path: str, *, origin: str | None = "", **more: Any) -> httpx.Response:
        """With its cookie and our origin; `None` says none."""
        said = self._gateway.url if origin == "" else origin
        headers = {"cookie": self.cookie} | ({"origin": said} if said is not None else {})
        url = self._gateway.url + path
        return httpx.request(method, url, headers=headers, timeout=PATIENCE, verify=NO_TLS, **more)

    def get(self, path: str) -> Any:
        answer = self.request("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def unread(self, session: str) -> int:
        return int(self.get(f"/v1/sessions/{session}")["session"]["unread"])

    def see(self, session: str, version: int) -> httpx.Response:
        return self.request("POST", "/v1/seen", json={"session": session, "version": version})

    def socket(self, path: str = "/v1/events", *, origin: str | None = "") -> ClientConnection:
        said: Any = self._gateway.url if origin == "" else origin
        headers = {"Cookie": self.cookie}
        url = self._gateway.url.replace("http", "ws", 1)
        return connect(url + path, origin=said, additional_headers=headers, proxy=None, open_timeout=PATIENCE)


def log_in(
    gateway: GatewayProcess, code: str, *, origin: str | None = "", name: str | None = None, agent: str = ""
) -> httpx.Response:
    said = gateway.url if origin == "" else origin
    headers = {"user-agent": agent} | ({"origin": said} if said is not None else {})
    body = {"code": code} | ({"name": name} if name is not None else {})
    return httpx.post(gateway.url + "/v1/login", json=body, headers=headers, timeout=PATIENCE, verify=NO_TLS)
