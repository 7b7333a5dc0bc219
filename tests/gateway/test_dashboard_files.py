"""The dashboard's files: found by name in a list, so that no path leads anywhere else."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response

from holdfast.gateway.dashboard_files import DashboardFiles, is_public
from tests.e2e.gateway import GatewayProcess

INDEX = b"<!doctype html><title>Holdfast</title>"
SCRIPT = b"console.log(1);" * 200


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "static"
    (root / "assets").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("secret")
    (root / "index.html").write_bytes(INDEX)
    (root / "assets" / "app-4f2a.js").write_bytes(SCRIPT)
    (root / "assets" / "app-4f2a.js.map").write_bytes(b"{}")
    (root / "manifest.webmanifest").write_text("{}")
    (root / "icon.svg").write_text("<svg/>")
    (root / "stolen.txt").symlink_to(tmp_path / "secret.txt")
    (root / "build.json").write_text('{"build": "abc"}')
    return root


def ask(files: DashboardFiles, path: str, **headers: str) -> Response:
    sent = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope: dict[str, Any] = {"type": "http", "method": "GET", "path": path, "headers": sent, "query_string": b""}
    return files.response(Request(scope))


@pytest.mark.parametrize(
    "path", ["/", "/s/0123456789abcdef", "/s/x/y", "/tasks", "/tasks/x", "/settings/x", "/home", "/s/../x"]
)
def test_every_page_is_the_shell(root: Path, path: str) -> None:
    answer = ask(DashboardFiles(root), path)
    assert (answer.status_code, answer.body) == (200, INDEX)
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize("path", ["/sx", "/nothing-here", "/sessions/12"])
def test_unknown_page_is_the_shell_for_a_browser_and_json_for_a_client(root: Path, path: str) -> None:
    files = DashboardFiles(root)
    page = ask(files, path, accept="text/html,*/*;q=0.8")
    assert (page.status_code, page.body) == (404, INDEX)
    assert not is_public(path)  # without a credential only a browser gets it (`guard.py`)
    client = ask(files, path, accept="application/json")
    assert client.status_code == 404 and b"not_found" in bytes(client.body)


def test_page_for_chats_is_served_and_routes_keep_their_methods(gateway: GatewayProcess) -> None:
    html = {"accept": "text/html"}
    for path, status in (("/chats", 200), ("/nothing-here", 404)):
        page = httpx.get(gateway.url + path, headers=html)  # without a credential
        assert (page.status_code, page.headers["content-type"].partition(";")[0]) == (status, "text/html")
    assert httpx.get(gateway.url + "/nothing-here").status_code == 401
    assert gateway.request("GET", "/v1/answers").status_code == 405
    assert gateway.request("GET", "/v1/nothing").status_code == 404
    assert gateway.request("GET", "/v1/nothing", headers=html).json()["error"]["code"] == "not_found"


def test_hashed_assets_are_kept_for_ever_and_packed(root: Path) -> None:
    files = DashboardFiles(root)
    plain = ask(files, "/assets/app-4f2a.js")
    assert plain.body == SCRIPT and plain.headers["content-type"].startswith("text/javascript")
    assert plain.headers["cache-control"] == "public, max-age=31536000, immutable"
    packed = ask(files, "/assets/app-4f2a.js", accept_encoding="gzip, br")
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(bytes(packed.body)) == SCRIPT


@pytest.mark.parametrize(
    ("said", "packed"),
    [
        ("gzip", True),
        ("br, gzip;q=0.5", True),
        ("GZIP; q=1.0", True),
        ("gzip;q=0", False),
        ("gzip; q=0.0, br", False),
        ("br", False),
        ("x-gzip", False),
        ("", False),
    ],
)
def test_a_file_is_compressed_if_the_client_accepts_that(root: Path, said: str, packed: bool) -> None:
    answer = ask(DashboardFiles(root), "/assets/app-4f2a.js", accept_encoding=said)
    assert ("content-encoding" in answer.headers) is packed


def test_a_client_that_has_the_file_gets_304(root: Path) -> None:
    files = DashboardFiles(root)
    first = ask(files, "/")
    again = ask(files, "/", if_none_match=f'"other", W/{first.headers["etag"]}')
    assert (again.status_code, again.body) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    (root / "index.html").write_bytes(INDEX + b"new")
    os.utime(root / "build.json", ns=(1, 1))
    assert ask(files, "/", if_none_match=first.headers["etag"]).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../index.html",
        "/assets/../../secret.txt",
        "/assets//app-4f2a.js",
        "/assets/./app-4f2a.js",
        "/assets/app-4f2a.js/",
        "/assets/app-4f2a.js\0",
        "/assets/app-4f2a.js.map",
        "/assets",
        "/assets/",
        "/stolen.txt",
        "/secret.txt",
        "/other.js",
    ],
)
def test_a_path_trick_finds_nothing(root: Path, path: str) -> None:
    answer = ask(DashboardFiles(root), path)
    assert answer.status_code == 404 and answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path", ["/v1/status", "//", "//s/x", "/..", "/index.html", "/build.json", "/v1", "/metrics/x", "", "*"]
)
def test_nothing_else_is_public(path: str) -> None:
    assert not is_public(path)


def test_files_beside_the_page(root: Path) -> None:
    files = DashboardFiles(root)
    for path, kind in (("/manifest.webmanifest", "application/manifest+json"), ("/icon.svg", "image/svg+xml")):
        answer = ask(files, path)
        assert is_public(path) and answer.status_code == 200 and answer.headers["cache-control"] == "no-cache"
        assert answer.headers["content-type"].startswith(kind)


def test_the_build_is_known_and_a_new_one_is_noticed(root: Path) -> None:
    files = DashboardFiles(root)
    files.refresh()
    assert files.build == "abc"
    (root / "build.json").write_text('{"build": "def"}')
    os.utime(root / "build.json", ns=(5, 5))
    files.refresh()
    assert files.build == "def"


def test_files_that_come_after_the_first_look_are_found(root: Path) -> None:
    files = DashboardFiles(root)
    assert ask(files, "/assets/late-77.js").status_code == 404
    (root / "assets" / "late-77.js").write_text("1")
    os.utime(root / "assets", ns=(7, 7))
    assert ask(files, "/assets/late-77.js").status_code == 200


def test_without_a_build_the_page_says_how_to_make_one(tmp_path: Path) -> None:
    files = DashboardFiles(tmp_path / "nothing")
    for path, status in (("/s/x", 200), ("/nothing-here", 404)):
        answer = ask(files, path, accept="text/html")
        assert answer.status_code == status and b"make web" in bytes(answer.body)
    assert files.build == ""
    assert ask(files, "/assets/app.js").status_code == 404


@pytest.mark.parametrize("path", ["/", "/s/x", "/assets/no-such-file.js", "/healthz", "/v1/build", "/v1/status"])
def test_every_answer_says_once_how_long_it_may_be_kept(gateway: GatewayProcess, path: str) -> None:
    answer = httpx.get(gateway.url + path)
    assert len(answer.headers.get_list("cache-control")) == 1
    policy = answer.headers["content-security-policy"]
    assert "default-src 'self'" in policy and "unsafe" not in policy
    refused = httpx.get(gateway.url + path, headers={"origin": "https://evil.example"})
    assert refused.status_code == 403 and refused.headers.get_list("cache-control") == ["no-store"]


def test_the_build_is_public(gateway: GatewayProcess) -> None:
    assert set(httpx.get(gateway.url + "/v1/build").json()) == {"version", "build"}
