"""The client: what can be asked of a gateway, typed."""

from __future__ import annotations

from holdfast import __version__
from holdfast.client.http import HttpClient
from holdfast.config import Home

USER_AGENT = f"holdfast-python/{__version__}"


class Client(HttpClient):
    """A client of the gateway of a home."""

    def __init__(self, home: Home, *, user_agent: str = USER_AGENT) -> None:
        super().__init__(home, user_agent=user_agent)
