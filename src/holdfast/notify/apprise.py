"""Apprise: one library for the hundred services that have no channel of their own here. An extra: `holdfast[apprise]`.

It resolves names and connects by itself, so the rules of `addresses.py` do not hold for it; that is why its address is
only taken from a variable, which nobody but the owner of the gateway sets. It says little about what went wrong.
"""

from __future__ import annotations

import asyncio
import logging
import re
from typing import TYPE_CHECKING

from holdfast.config import environment
from holdfast.notify.channel import GiveUp, NoticeMessage, Result, Sent, TryAgain
from holdfast.notify.http_poster import HttpAnswer
from holdfast.notify_settings import AppriseSettings

if TYPE_CHECKING:
    from apprise import AppriseResult

SECONDS = 20.0
"""How long one message may take."""
STATUS = re.compile(r"\berror=(\d{3})\b")
"""How Apprise writes the status of an answer into its log."""
MENTION = re.compile(r"@(?=\w)|<(?=[!@#])")
"""What some services read as a mention of people or of a whole channel."""


class AppriseChannel:
    """A service behind an address of Apprise."""

    reports_settled = False
    repeatable = True  # a message may come twice; a lost one would be worse, and Apprise does not say which it was

    def __init__(self, settings: AppriseSettings) -> None:
        self._settings = settings

    async def send(self, message: NoticeMessage) -> Result:
        """Send it in a thread, since Apprise waits for the network."""
        name = self._settings.url_env
        address = environment(name)
        if not address:
            return TryAgain(f"{name} is not set in the environment of the gateway.")
        try:
            async with asyncio.timeout(SECONDS + 5):
                return await asyncio.to_thread(_send, name, address, message)
        except TimeoutError:
            return TryAgain(f"The service did not answer within {SECONDS:.0f} s.")

    async def close(self) -> None:
        """Nothing is kept open."""


def _send(name: str, address: str, message: NoticeMessage) -> Result:
    try:
        from apprise import Apprise, AppriseAsset, AppriseResultStatus
    except ImportError as error:
        return TryAgain(f"Apprise is not installed ({error}); pip install 'holdfast[apprise]', then holdfast restart.")
    logging.getLogger("apprise").propagate = False  # it may write an address, and so a key, into the log
    asset = AppriseAsset(
        app_id="Holdfast", app_desc="Holdfast", http_redirects=False, async_mode=False, service_timeout=SECONDS
    )
    service = Apprise.instantiate(address, asset=asset)
    if service is None:
        return TryAgain(f"{name} is no address that Apprise understands.")
    box = Apprise(asset=asset)
    box.add(service)
    text = f"{message.text}\n{message.url}" if message.url else message.text
    result = box.notify(body=_plain(text), title=_plain(message.title), body_format="text", timeout=SECONDS)
    if result.status == AppriseResultStatus.SUCCESS:
        return Sent()
    if result.status == AppriseResultStatus.TIMEOUT:
        return TryAgain(f"The service did not answer within {SECONDS:.0f} s.")
    return _failure(result)


def _failure(result: AppriseResult) -> Result:
    """What went wrong. The words of Apprise are not repeated: they may contain an address, and so a key."""
    found = (STATUS.search(entry.message) for entry in result.logs())
    status = next((int(match[1]) for match in found if match is not None), 0)
    if not status:
        return TryAgain("The service cannot be reached, or did not take it; Apprise does not say which.")
    if HttpAnswer(status).may_work_later:
        return TryAgain(f"It answered {status}.")
    return GiveUp(f"It answered {status}.", hint="Check its address.")


def _plain(text: str) -> str:
    """Nothing in it mentions anybody, whatever an agent wrote."""
    return MENTION.sub(lambda found: f"{found[0]}\u200b", text)
