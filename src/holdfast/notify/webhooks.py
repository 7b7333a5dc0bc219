"""Webhooks, signed by the Standard Webhooks convention; or in the form that ntfy, Slack or Discord expect."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import time
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

import msgspec

from holdfast.config import environment
from holdfast.notify.channel import GiveUp, NoticeMessage, Result, Sent, TryAgain
from holdfast.notify.http_poster import HttpAnswer, HttpPoster
from holdfast.notify_settings import WebhookSettings, WebhookStyle, webhook_problem

SECRET = "whsec_"  # noqa: S105  # what every secret begins with
NO_PREVIEWS = 1 << 2
"""Discord looks at no page that is named in a message."""
MARKDOWN = re.compile(r"[\\*_~`|<>\[\]()#]")
encode = msgspec.json.encode


class WebhookRequest(NamedTuple):
    """Where a message goes, and its JSON."""

    url: str
    content: bytes


class Webhook:
    """A webhook of the settings."""

    def __init__(self, settings: WebhookSettings) -> None:
        self._settings = settings
        self._poster = HttpPoster(allow_private=settings.allow_private)
        self.reports_settled = settings.style == "standard"
        self.repeatable = True

    async def send(self, message: NoticeMessage) -> Result:
        """Post it."""
        settings = self._settings
        url = settings.address()
        if problem := webhook_problem(url, settings) if url else "is not set in the environment of the gateway.":
            return TryAgain(f"{settings.url_env or 'Its url'} {problem}")
        request = request_of(message, url, settings.style)
        at = int(time.time())
        headers = {"content-type": "application/json", "webhook-id": message.id, "webhook-timestamp": str(at)}
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
        await self._poster.close()

    async def _post(self, request: WebhookRequest, headers: dict[str, str]) -> Result:
        answer = await self._poster.post(request.url, headers, request.content)
        return _result(answer) if isinstance(answer, HttpAnswer) else answer


def _result(answer: HttpAnswer) -> Result:
    said = f"It answered {answer.status}"
    if answer.is_ok:
        return Sent()
    if answer.may_work_later:
        return TryAgain(f"{said}.", after_ms=answer.retry_after_ms)
    if 300 <= answer.status < 400:
        return GiveUp(f"{said}, and redirects are not followed.", hint="Write the final address.")
    return GiveUp(f"{said}.", hint="Check its address and its secret.")


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
            text = f"{text} <{message.url}|Open>" if message.url else text
            return WebhookRequest(url, encode({"text": text, "unfurl_links": False, "unfurl_media": False}))
        case "discord":
            text = f"**{_for_discord(message.title)}** {_for_discord(message.text)} {message.url}".strip()
            given: dict[str, object] = {"content": text[:2000], "allowed_mentions": {"parse": []}}
            return WebhookRequest(url, encode(given | {"flags": NO_PREVIEWS}))
        case "ntfy":
            parts = urlsplit(url)
            body = {"topic": parts.path.strip("/"), "title": message.title, "message": message.text}
            return WebhookRequest(
                urlunsplit(parts._replace(path="/")), encode(body | ({"click": message.url} if message.url else {}))
            )
        case "standard":
            data = {"matter": message.matter, "kind": message.kind, "title": message.title, "text": message.text}
            data |= {"link": message.link, "url": message.url}
            at = datetime.fromtimestamp(message.at / 1000, UTC).isoformat(timespec="milliseconds")
            whole = {"type": f"notice.{message.kind}", "timestamp": at, "data": data}
            return WebhookRequest(url, encode(whole))


def _for_discord(text: str) -> str:
    """Nothing in it is Markdown: a link says where it leads."""
    return MARKDOWN.sub(r"\\\g<0>", text)


def _for_slack(text: str) -> str:
    """Nothing in it mentions a channel or is a link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
