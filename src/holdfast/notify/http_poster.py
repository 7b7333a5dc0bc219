"""Posts to addresses that somebody wrote into the settings or that a browser gave us, and says what an answer means."""

from __future__ import annotations

import asyncio
import time
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from urllib.parse import urlsplit

from httpcore2 import AsyncConnectionPool, NetworkError, ProtocolError, TimeoutException

from holdfast.notify.addresses import PrivateAddress, connection_pool, failure_words
from holdfast.notify.channel import GiveUp, TryAgain

SECONDS = 15.0
"""How long a connection, and how long the next piece of an answer may take."""
WHOLE_SECONDS = 30.0
"""How long all of it may take."""
AGAIN_LATER = frozenset({408, 425, 429})


class HttpAnswer(NamedTuple):
    """The status of an answer, and for how long it asks to wait."""

    status: int
    retry_after_ms: int = 0

    @property
    def is_ok(self) -> bool:
        """Whether the receiver has it."""
        return 200 <= self.status < 300

    @property
    def may_work_later(self) -> bool:
        """Whether it is worth trying again."""
        return self.status in AGAIN_LATER or self.status >= 500


class HttpPoster:
    """Posts over connections that are kept for a while, by default to public addresses only."""

    def __init__(self, *, allow_private: bool, seconds: float = WHOLE_SECONDS) -> None:
        self._allow_private = allow_private
        self._seconds = seconds
        self._pool: AsyncConnectionPool | None = None

    async def post(self, url: str, headers: dict[str, str], content: bytes) -> HttpAnswer | TryAgain | GiveUp:
        """Return the answer, or why there is none."""
        if self._pool is None:
            self._pool = connection_pool(allow_private=self._allow_private)
        limits = {"connect": SECONDS, "read": SECONDS, "write": SECONDS, "pool": SECONDS}
        host = urlsplit(url).netloc.rpartition("@")[2]
        given = {"host": host, "user-agent": "holdfast", **headers}
        encoded = [(name.encode(), value.encode()) for name, value in given.items()]
        try:
            # One limit for all of it besides that of each step: a receiver may send a byte every few seconds.
            async with (
                asyncio.timeout(self._seconds),
                self._pool.stream(
                    "POST", url, headers=encoded, content=content, extensions={"timeout": limits}
                ) as answer,
            ):
                found = {name.lower(): value for name, value in answer.headers}
                return HttpAnswer(answer.status, _retry_after(found.get(b"retry-after", b"").decode("latin-1")))
        except PrivateAddress as error:
            return GiveUp(f"{error}.", hint="Set allow_private = true if it is meant.")
        except (TimeoutException, TimeoutError):
            return TryAgain(f"{host} did not answer in time.")
        except UnicodeError:
            return GiveUp(f"{host} cannot be the name of a host.", hint="Check its address.")
        except (NetworkError, ProtocolError, OSError) as error:
            return TryAgain(f"{host} cannot be reached: {failure_words(error)}.")

    async def close(self) -> None:
        """Close the connections."""
        if self._pool is not None:
            await self._pool.aclose()


def _retry_after(value: str) -> int:
    """The milliseconds that a `Retry-After` asks for; 0 when it says nothing that can be understood."""
    if value.isascii() and value.isdigit():
        return int(value[:9]) * 1000
    try:
        return max(0, int((parsedate_to_datetime(value).timestamp() - time.time()) * 1000))
    except (TypeError, ValueError):
        return 0
