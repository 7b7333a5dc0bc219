"""Webhooks, signed by the Standard Webhooks convention; or in the form that ntfy, Slack or Discord expect."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

import msgspec
from httpcore2 import AsyncConnectionPool, NetworkError, ProtocolError, TimeoutException

from holdfast.config import environment
from holdfast.notify.addresses import PrivateAddress, connection_pool
from holdfast.notify.channel import GiveUp, NoticeMessage, Result, Sent, TryAgain
from holdfast.settings import WebhookSettings, WebhookStyle, webhook_problem

SECONDS = 15.0
"""How long a connection, and how long an answer may take."""
AGAIN_LATER = frozenset({408, 425, 429})
SECRET = "whsec_"  # noqa: S105  # what every secret begins with
encode = msgspec.json.encode


class WebhookRequest(NamedTuple):
    """Where a message goes, and its JSON."""

    url: str
    content: bytes


class Webhook:
    """A webhook of the settings."""

    def __init__(self, settings: WebhookSettings) -> None:
        self._settings = settings
        self._pool: AsyncConnectionPool | None = None
        self.tells_settled = settings.style == "standard"

    async def send(self, message: NoticeMessage) -> Result:
        """Post it."""
        settings = self._settings
        url = settings.address()
        if problem := webhook_problem(url, settings) if url else "is not set in the environment of the gateway.":
            return TryAgain(f"{settings.url_env or 'Its url'} {problem}")
        request = request_of(message, url, settings.style)
        at = int(time.time())
        headers = {"content-type": "application/json", "user-agent": "holdfast"}
        headers |= {"webhook-id": message.id, "webhook-timestamp": str(at)}
        if settings.secret_env:
            secret = environment(settings.secret_env)
            if not secret:
                return TryAgain(f"{settings.secret_env} is not set in the environment of the gateway.")
            try:
                headers["webhook-signature"] = signature(message.id, at, request.content, secret)
            except ValueError:
                return TryAgain(f"{settings.secret_env} is no secret of a webhook: whsec_ and base64 is expected.")
        return await self._post(request, headers)

    async def close(self) -> None:
        """Close the connections."""
        if self._pool is not None:
            await self._pool.aclose()

    async def _post(self, request: WebhookRequest, headers: dict[str, str]) -> Result:
        if self._pool is None:
            self._pool = connection_pool(allow_private=self._settings.allow_private)
        limits = {"connect": SECONDS, "read": SECONDS, "write": SECONDS, "pool": SECONDS}
        given = [(name.encode(), value.encode()) for name, value in {"host": _host(request.url), **headers}.items()]
        try:
            async with self._pool.stream(
                "POST", request.url, headers=given, content=request.content, extensions={"timeout": limits}
            ) as answer:
                return _result(answer.status, {name.lower(): value for name, value in answer.headers})
        except PrivateAddress as error:
            return GiveUp(f"{error}.", hint="Set allow_private = true if it is meant.")
        except TimeoutException:
            return TryAgain(f"{_host(request.url)} did not answer within {SECONDS:.0f} s.")
        except (NetworkError, ProtocolError, OSError) as error:
            return TryAgain(f"{_host(request.url)} cannot be reached: {str(error) or type(error).__name__}.")


def _result(status: int, headers: dict[bytes, bytes]) -> Result:
    if 200 <= status < 300:
        return Sent()
    if status in AGAIN_LATER or status >= 500:
        return TryAgain(
            f"It answered {status}.", after_ms=_retry_after(headers.get(b"retry-after", b"").decode("latin-1"))
        )
    if 300 <= status < 400:
        return GiveUp(f"It answered {status}, and redirects are not followed.", hint="Write the final address.")
    return GiveUp(f"It answered {status}.", hint="Check its address and its secret.")


def _retry_after(value: str) -> int:
    """The milliseconds that a `Retry-After` asks for; 0 when it says nothing that can be understood."""
    if value.isascii() and value.isdigit():
        return int(value[:9]) * 1000
    try:
        return max(0, int((parsedate_to_datetime(value).timestamp() - time.time()) * 1000))
    except (TypeError, ValueError):
        return 0


def signature(id: str, at: int, content: bytes, secret: str) -> str:
    """Return the header by which a receiver knows who sent it. ValueError if the secret is none."""
    try:
        key = base64.b64decode(secret.removeprefix(SECRET), validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error
    signed = hmac.digest(key, b"%b.%d.%b" % (id.encode(), at, content), hashlib.sha256)
    return f"v1,{base64.b64encode(signed).decode()}"


# --- the forms ----------------------------------------------------------------------------------


def request_of(message: NoticeMessage, url: str, style: WebhookStyle) -> WebhookRequest:
    """Return a message in the form that the receiver expects."""
    match style:
        case "slack":
            text = f"*{_for_slack(message.title)}* {_for_slack(message.text)}"
            return WebhookRequest(url, encode({"text": f"{text} <{message.url}|Open>" if message.url else text}))
        case "discord":
            text = f"**{message.title}** {message.text} {message.url}".strip()
            return WebhookRequest(url, encode({"content": text[:2000], "allowed_mentions": {"parse": []}}))
        case "ntfy":
            parts = urlsplit(url)
            given = {"topic": parts.path.strip("/"), "title": message.title, "message": message.text}
            return WebhookRequest(
                urlunsplit(parts._replace(path="/")), encode(given | ({"click": message.url} if message.url else {}))
            )
        case "standard":
            data = {"matter": message.matter, "kind": message.kind, "title": message.title, "text": message.text}
            data |= {"link": message.link, "url": message.url}
            at = datetime.fromtimestamp(message.at / 1000, UTC).isoformat(timespec="milliseconds")
            whole = {"type": f"notice.{message.kind}", "timestamp": at, "data": data}
            return WebhookRequest(url, encode(whole))


def _for_slack(text: str) -> str:
    """Nothing in it mentions a channel or is a link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _host(url: str) -> str:
    return urlsplit(url).netloc
