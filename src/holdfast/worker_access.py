"""How an external agent that works on a card reaches the tools of the board: an address, and a token of its run.

The token names the run and is signed with a key of the home, so nothing about it is stored, and it is good for the next
gateway, too: the agent outlives this one. Whether the run is still open is looked up at each call. The token opens
`/mcp` and nothing else.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from holdfast.config import write_private
from holdfast.domain.errors import Unavailable
from holdfast.domain.session import Session

PATH = "/mcp"
TOKEN_VARIABLE = "HOLDFAST_MCP_TOKEN"  # noqa: S105 (a name)
"""Has the token, for agents that are given tools by their command line, which others can read."""
SERVER = "holdfast"
"""The name of the server, as agents show it."""
KEY_BYTES = 32
SIGNED = re.compile(r"hfrun_([0-9a-f]{1,32})_([1-9][0-9]{0,8})_([0-9a-f]{1,32})_([A-Za-z0-9_-]{43})\Z")


@dataclass(frozen=True, slots=True)
class RunToken:
    """The run that a token was given to."""

    card: str
    run: int
    session: str


@dataclass(frozen=True, slots=True)
class ToolServer:
    """The MCP server that an agent is given."""

    url: str
    token: str
    run: int
    name: str = SERVER


class WorkerAccess:
    """Gives tokens to external workers, and recognises them."""

    def __init__(self, key: Path, url: str) -> None:
        self._path = key
        self._key = b""
        self.url = f"{url}{PATH}" if url else ""
        self._listed: dict[RunToken, asyncio.Event] = {}
        """By run whose agent is being made ready: set when it has listed the tools."""

    def server(self, session: Session) -> ToolServer | None:
        """Return the tools of the run that a session belongs to; None outside of a run."""
        if not session.card or not session.run or not self.url:
            return None
        return ToolServer(self.url, self.token(RunToken(session.card, session.run, session.id)), session.run)

    def mark_listed(self, worker: RunToken) -> None:
        """Note that an agent knows its tools now."""
        if worker in self._listed:
            self._listed[worker].set()

    @contextmanager
    def listing(self, session: Session) -> Iterator[asyncio.Event]:
        """Yield what is set as soon as the agent of a session has listed its tools."""
        worker = RunToken(session.card, session.run, session.id)
        listed = self._listed[worker] = asyncio.Event()
        try:
            yield listed
        finally:
            del self._listed[worker]

    def token(self, of: RunToken) -> str:
        """Return the token of a run."""
        words = f"{of.card}_{of.run}_{of.session}"
        return f"hfrun_{words}_{self._signature(words)}"

    def verify(self, token: str) -> RunToken | None:
        """Return the run of a token that this home gave; None for any other text."""
        found = SIGNED.match(token)
        if found is None:
            return None
        card, run, session, signature = found.groups()
        if not hmac.compare_digest(self._signature(f"{card}_{run}_{session}"), signature):
            return None
        return RunToken(card, int(run), session)

    def _signature(self, words: str) -> str:
        key = self._key = self._key or _load(self._path)
        digest = hmac.digest(key, f"run of a card: {words}".encode(), "sha256")
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _load(path: Path) -> bytes:
    """Return the key of the home; make it when it is first needed."""
    try:
        if not path.exists():
            write_private(path, os.urandom(KEY_BYTES))
        key = path.read_bytes()
    except OSError as error:
        raise Unavailable(f"The key {path} cannot be used: {error.strerror}.") from error
    if len(key) != KEY_BYTES:
        raise Unavailable(
            f"The key {path} is damaged.",
            hint="Delete it and restart the gateway; agents that work on a card get a new token with their next run.",
        )
    return key
