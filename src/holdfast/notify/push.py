"""Web Push: each device that turned it on is a destination, also while none of its tabs is open.

The message is encrypted for the browser. Its push service learns when something is sent, how urgent it is and how long
it is; and by `Topic`, which is a hash, that a newer message replaces an older one that was not delivered yet.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from socket import SOCK_STREAM, gaierror
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from holdfast.domain.errors import HoldfastError, Rejected
from holdfast.notify.addresses import is_public
from holdfast.notify.channel import GiveUp, NoticeMessage, Result, Sent, TryAgain
from holdfast.notify.http_poster import HttpAnswer, HttpPoster
from holdfast.notify.push_encryption import LARGEST, PushKey, check_keys, encrypted
from holdfast.notify_settings import PushSettings
from holdfast.store.device_store import DeviceStore, PushRow
from holdfast.store.outbox_store import ASKING

PREFIX = "push."
"""What the name of a destination begins with; then comes the id of the device."""
KEPT_SECONDS = 3 * 86_400
"""For how long a push service keeps a message for a browser that is away."""
ENDED = frozenset({404, 410})
NOBODY = "mailto:nobody@example.com"
TURN_ON_AGAIN = "Turn notifications on again in Settings → Notifications on that device."


class PushSubscriptions:
    """The devices that take pushes, with the channel to each. Also kept in memory, as the devices are."""

    def __init__(
        self, store: DeviceStore, key: PushKey, *, settings: Callable[[], PushSettings], contact: Callable[[], str]
    ) -> None:
        """`contact` is the address of the dashboard, used if the settings have no contact."""
        self._store = store
        self._settings = settings
        self._contact = contact
        self._posters: dict[bool, HttpPoster] = {}
        self._forgotten: set[str] = set()
        self.key = key
        self.rows: Mapping[str, PushRow] = {}
        """By device, also those that have ended. Another object after every change."""

    async def load(self) -> None:
        """Read what is stored."""
        stored = await self._store.pushes()
        self.rows = {row.device: row for row in stored if row.device not in self._forgotten}

    async def close(self) -> None:
        """Let go of connections."""
        for poster in self._posters.values():
            await poster.close()
        self._posters.clear()

    async def save(self, row: PushRow) -> None:
        """Keep the subscription of a device. Rejected if nothing can or may be sent there."""
        check_keys(row.p256dh, row.auth)
        await check_endpoint(row.endpoint, allow_private=self._settings().allow_private)
        await self._store.save_push(row)
        if row.device in self._forgotten:  # revoked meanwhile
            return
        others = {id: one for id, one in self.rows.items() if one.endpoint != row.endpoint}
        self.rows = others | {row.device: row}

    async def delete(self, device: str) -> None:
        """Somebody turned it off."""
        await self._store.delete_push(device)
        self._remove(device)

    async def end(self, row: PushRow) -> None:
        """Keep only why it has ended."""
        await self._store.end_push(row)
        if (known := self.rows.get(row.device)) is not None and known.endpoint == row.endpoint:
            self.rows = {**self.rows, row.device: replace(row, endpoint="", p256dh="", auth="")}

    def forget(self, device: str) -> None:
        """Send nothing more to a device that was signed out; its row goes with that of the device."""
        self._forgotten.add(device)
        self._remove(device)

    def _remove(self, device: str) -> None:
        self.rows = {id: row for id, row in self.rows.items() if id != device}

    async def post(self, url: str, headers: dict[str, str], body: bytes) -> HttpAnswer | TryAgain | GiveUp:
        """Send something to a push service, signed."""
        settings = self._settings()
        poster = self._posters.setdefault(settings.allow_private, HttpPoster(allow_private=settings.allow_private))
        contact = settings.contact or self._contact()
        signed = self.key.authorization(url, contact if contact.startswith(("https:", "mailto:")) else NOBODY)
        return await poster.post(url, {"authorization": signed, **headers}, body)


class PushChannel:
    """The way to the browser of one device."""

    reports_settled = True
    repeatable = True

    def __init__(self, row: PushRow, subscriptions: PushSubscriptions) -> None:
        self._row = row
        self._subscriptions = subscriptions

    async def send(self, message: NoticeMessage) -> Result:
        """Hand it to the push service of the browser."""
        row = self._row
        headers = {
            "content-encoding": "aes128gcm",
            "content-type": "application/octet-stream",
            "ttl": str(KEPT_SECONDS),
            "urgency": "high" if message.kind in ASKING or message.kind == "test" else "normal",
            "topic": hashlib.sha256(message.matter.encode()).hexdigest()[:32],
        }
        try:
            body = encrypted(content_of(message), row.p256dh, row.auth)
            answer = await self._subscriptions.post(row.endpoint, headers, body)
        except HoldfastError as error:
            return TryAgain(f"{error.message} {error.hint}".strip())
        return await self._result(answer) if isinstance(answer, HttpAnswer) else answer

    async def close(self) -> None:
        """The connections belong to all subscriptions."""

    async def _result(self, answer: HttpAnswer) -> Result:
        said = f"The push service answered {answer.status}"
        if answer.is_ok:
            return Sent()
        if answer.may_work_later:
            return TryAgain(f"{said}.", after_ms=answer.retry_after_ms)
        if answer.status in ENDED:
            ended = f"{said}: the browser no longer takes notifications under this subscription, so it was removed."
            await self._subscriptions.end(replace(self._row, ended=ended))
            return GiveUp(ended, hint=TURN_ON_AGAIN)
        if answer.status in {401, 403}:
            return GiveUp(
                f"{said}: it does not accept the key of this gateway, or its clock is wrong.", hint=TURN_ON_AGAIN
            )
        return GiveUp(f"{said}.", hint=TURN_ON_AGAIN)


def content_of(message: NoticeMessage) -> bytes:
    """Return what the service worker of the dashboard gets (`web/public/sw.js`), cut to what fits."""
    given = {
        "id": message.id,
        "matter": message.matter[:200],
        "kind": message.kind,
        "title": message.title[:200],
        "text": message.text,
        "link": message.link[:500],
        "at": message.at,
        "wait": message.wait,
        "choices": message.choices,
    }
    text = message.text
    while len(content := msgspec.json.encode(given)) > LARGEST:
        text = text[: len(text) * 3 // 4]  # without any it fits
        given |= {"text": f"{text}…", "choices": [choice for choice in message.choices if choice == "deny"]}
    return content


async def check_endpoint(url: str, *, allow_private: bool) -> None:
    """Reject an address that no push service of a browser has. A name that cannot be resolved now is tried later."""
    try:
        place = urlsplit(url)
        port = place.port or (443 if place.scheme == "https" else 80)
    except ValueError:
        raise Rejected("endpoint: this is no address.") from None
    plain = place.scheme == "http" and allow_private
    if not (place.scheme == "https" or plain) or not place.hostname or "@" in place.netloc or not url.isascii():
        raise Rejected("endpoint: a push service has an address that begins with https://.")
    if not url.isprintable() or " " in url:
        raise Rejected("endpoint: this is no address.")
    if allow_private:
        return
    try:
        found = await asyncio.get_running_loop().getaddrinfo(place.hostname, port, type=SOCK_STREAM)
    except (gaierror, UnicodeError):
        return
    for *_, address in found:
        if not is_public(ip_address(str(address[0]).partition("%")[0])):
            raise Rejected(
                f"endpoint: {place.hostname} is {address[0]}, which is not a public address.",
                hint="If this is your own push service, set allow_private = true under [notify.push] in config.toml.",
            )
