"""The files of the dashboard, which anyone may load: they contain no data of the user.

The files are listed once and looked up by name in that list, so a requested path is never opened as a file.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from dataclasses import dataclass
from mimetypes import guess_type
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from holdfast.gateway.responses import error_response

STATIC = Path(__file__).with_name("static")
PAGES = frozenset({"", "home", "new", "s", "chats", "tasks", "board", "card", "settings"})
"""The first parts of the paths of pages; the dashboard itself decides what to show there."""
FOLDERS = frozenset({"assets", "icons"})
PAGE = r"(?!(?:v1|healthz|readyz|metrics|assets|icons)(?:/|\Z))[A-Za-z][A-Za-z0-9_-]*(?:/.*)?"
"""The path of a page without its first slash, also of one that does not exist: the dashboard says so."""
PAGE_PATH = re.compile(rf"/(?:{PAGE})?\Z")
FILE = re.compile(r"/[A-Za-z0-9][A-Za-z0-9._-]*\.(?:webmanifest|js|png|svg|ico|txt)\Z")
HTML = "text/html"
FOR_EVER = "public, max-age=31536000, immutable"
ASK_AGAIN = "no-cache"
GZIP = re.compile(r"(?:^|[,\s])gzip\s*(?:,|$|;\s*q=(?:1|0\.0*[1-9]))", re.IGNORECASE)
WORTH_PACKING = 1_024
TYPES = {".webmanifest": "application/manifest+json", ".js": "text/javascript", ".woff2": "font/woff2"}
NOT_BUILT = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>Holdfast</title>
<body><h1>Holdfast is running</h1>
<p>The dashboard is not built into this copy. Build it: <code>make web</code>, then load this page again.</p>
<p>Or use it from a terminal: <code>holdfast run "say hello"</code></p></body></html>
"""


def is_page(path: str) -> bool:
    """Return whether it is the path of a page, also of one that does not exist."""
    return PAGE_PATH.match(path) is not None


def is_known_page(path: str) -> bool:
    """Return whether it is the path of a page that exists."""
    return is_page(path) and path[1:].partition("/")[0] in PAGES


def is_public(path: str) -> bool:
    """Return whether it is the path of a page or of a file that pages load."""
    return is_known_page(path) or path[1:].partition("/")[0] in FOLDERS or FILE.match(path) is not None


@dataclass(slots=True)
class File:
    """A file with its headers."""

    body: bytes
    kind: str
    etag: str
    cache: str
    packed: bytes | None = None

    def gzipped(self) -> bytes | None:
        """Return the compressed body; None if compression is not worth it."""
        if self.packed is None and len(self.body) > WORTH_PACKING and not self.kind.startswith(("image/p", "font/")):
            self.packed = gzip.compress(self.body, 6, mtime=0)
        return self.packed


class DashboardFiles:
    """The built dashboard in a directory. It may be missing, and it may be rebuilt at any time."""

    def __init__(self, root: Path = STATIC) -> None:
        self._root = root
        self._files: dict[str, File] = {}
        self._listed: tuple[int, ...] = ()
        self.build = ""

    def refresh(self) -> None:
        """List the files again if the build has changed."""
        now = tuple(_changed(self._root / name) for name in ("", "assets", "build.json"))
        if now != self._listed:
            self._listed = now
            self._files = self._list()
            self.build = _build(self._root / "build.json")

    def _list(self) -> dict[str, File]:
        if not self._root.is_dir():
            return {}
        root = self._root.resolve()
        found = [path for path in sorted(root.rglob("*")) if path.is_file() and path.resolve().is_relative_to(root)]
        return {f"/{path.relative_to(root).as_posix()}": _file(path, root) for path in found if path.suffix != ".map"}

    def response(self, request: Request) -> Response:
        """Return the file at this path; for every page, index.html."""
        self.refresh()
        path = str(request.scope["path"])
        known = not is_page(path) or is_known_page(path)
        if not known and HTML not in request.headers.get("accept", ""):
            return _missing("There is no such route.", hint="GET /v1/openapi.json lists the routes.")
        file = self._files.get("/index.html" if is_page(path) else path)
        if file is not None:
            return _sent(file, request, found=known)
        if is_page(path):
            return Response(NOT_BUILT, 200 if known else 404, {"cache-control": "no-store"}, "text/html")
        return _missing("There is no such file in this build of the dashboard.")


def _missing(message: str, *, hint: str = "") -> Response:
    response = error_response(404, "not_found", message, hint=hint)
    response.headers["cache-control"] = "no-store"
    return response


def _sent(file: File, request: Request, *, found: bool = True) -> Response:
    headers = {"cache-control": file.cache, "etag": file.etag, "vary": "accept-encoding"}
    known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
    if found and (file.etag in known or known == ["*"]):
        return Response(status_code=304, headers=headers)
    body = file.body
    if GZIP.search(request.headers.get("accept-encoding", "")) and (packed := file.gzipped()) is not None:
        body, headers["content-encoding"] = packed, "gzip"
    return Response(body, status_code=200 if found else 404, media_type=file.kind, headers=headers)


def _file(path: Path, root: Path) -> File:
    body = path.read_bytes()
    kind = TYPES.get(path.suffix) or guess_type(path.name)[0] or "application/octet-stream"
    hashed = path.relative_to(root).parts[0] == "assets"
    tag = hashlib.sha256(body).hexdigest()[:20]
    return File(body, kind, f'"{tag}"', FOR_EVER if hashed else ASK_AGAIN)


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _build(stamp: Path) -> str:
    try:
        return str(json.loads(stamp.read_bytes())["build"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
