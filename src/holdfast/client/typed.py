"""Requests with typed responses, tried again while the gateway restarts.

Once a gateway was reached, one that is away is waited for as long as the patience lasts. A command carries the same id
in every try, so it is carried out once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from holdfast.client.http import REQUEST_SECONDS, HttpClient, new_id
from holdfast.client.lenient import decode
from holdfast.client.reconnect import wait_until_reachable
from holdfast.config import Home

T = TypeVar("T")


class TypedClient(HttpClient):
    """Reads and commands whose responses are structs of `holdfast.schemas`."""

    def __init__(self, home: Home, *, user_agent: str, patience: float) -> None:
        super().__init__(home, user_agent=user_agent)
        self.patience = patience
        self._was_reached = False

    def read(self, kind: type[T], target: str, /, **query: object) -> T:
        """What is found there."""
        return decode(self._patiently(partial(self.text, target, **query)), kind)

    def post(
        self,
        kind: type[T],
        target: str,
        /,
        *,
        method: str = "POST",
        id: str | None = None,
        seconds: float = REQUEST_SECONDS,
        **fields: object,
    ) -> T:
        """Give a command; fields that are None are left out. `id` is minted here unless the caller has one."""
        body = {name: value for name, value in fields.items() if value is not None}
        ask = partial(self.command_body, method, target, body, id=id or new_id(), seconds=seconds)
        return decode(self._patiently(ask), kind)

    def _patiently(self, ask: Callable[[], bytes]) -> bytes:
        waits = self._was_reached and self.patience > 0
        body = wait_until_reachable(ask, patience=self.patience) if waits else ask()
        self._was_reached = True
        return body
