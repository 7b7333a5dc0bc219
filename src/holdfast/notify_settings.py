"""What can be set in `[notify]` and `[telegram]`: where notifications go, and which ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from holdfast.config import environment

NoticeName = Literal[
    "question", "approval", "blocked", "done", "failed", "stalled", "reset", "stale", "upgrade", "disk_full"
]
USUAL_NOTICES: tuple[NoticeName, ...] = ("question", "approval", "blocked", "done", "failed", "stalled")


WebhookStyle = Literal["standard", "slack", "discord", "ntfy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """[notify.webhooks.NAME]"""

    url: str = ""
    """Where notices are posted to: https://…, or with allow_private http://… too."""
    url_env: str = ""
    """The variable that holds the address, when nobody else may know it."""
    style: WebhookStyle = "standard"
    """The form of the message: that of Standard Webhooks, or what one of these services expects."""
    secret_env: str = ""
    """The variable that holds the secret (whsec_…) with which messages are signed."""
    allow_private: bool = False
    """Whether the address may be this machine or in a private network."""
    on: list[NoticeName] = field(default_factory=lambda: list(USUAL_NOTICES))
    """The kinds of notifications that it gets."""
    only_when_nobody_looks: bool = True
    """Only if for 30 s no visible page and no attached terminal showed what it is about."""
    details: bool = False
    """Whether a message has more than the title: the question, the reason, the last words."""

    def address(self) -> str:
        """Where it is; empty when its variable is not set."""
        return (environment(self.url_env) or "") if self.url_env else self.url


@dataclass(frozen=True, slots=True, kw_only=True)
class AppriseSettings:
    """[notify.apprise.NAME]"""

    url_env: str = ""
    """The variable that holds the address of the service, as Apprise writes it."""
    on: list[NoticeName] = field(default_factory=lambda: list(USUAL_NOTICES))
    """The kinds of notifications that it gets."""
    only_when_nobody_looks: bool = True
    """Only if for 30 s no visible page and no attached terminal showed what it is about."""
    details: bool = False
    """Whether a message has more than the title: the question, the reason, the last words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushSettings:
    """[notify.push]"""

    contact: str = ""
    """Where the operator of a push service can complain: mailto:… or https://…; by default the first public URL."""
    allow_private: bool = False
    """Whether a push service may be on this machine or in a private network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifySettings:
    """[notify]"""

    home_channel: str = ""
    """Where the gateway itself reports, like "webhooks.mine": resets, commands that are no longer needed, upgrades, a
    full disk."""
    push: PushSettings = field(default_factory=PushSettings)
    webhooks: dict[str, WebhookSettings] = field(default_factory=dict)
    apprise: dict[str, AppriseSettings] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramSettings:
    """[telegram]"""

    token_env: str = ""
    """The variable that holds the token of the bot; empty turns it off."""
    allow: list[int] = field(default_factory=list)
    """The people who may talk to agents, by the numbers of their accounts; `holdfast telegram pair` adds to it."""
    approvers: list[int] = field(default_factory=list)
    """The people who may answer approvals."""
    profile: str = ""
    """The agent of new sessions; by default the default profile."""
    api_url: str = "https://api.telegram.org"
    """Where the Bot API is, if it is a server of your own."""
    notify: list[int] = field(default_factory=list)
    """The chats that are notified of other sessions: the number of a person, or of a group (negative)."""
    on: list[NoticeName] = field(default_factory=lambda: list(USUAL_NOTICES))
    """The kinds of notifications that they get."""
    only_when_nobody_looks: bool = True
    """Only if for 30 s no visible page and no attached terminal showed what it is about."""
    details: bool = False
    """Whether a notice has more than the title; without it an approval is answered elsewhere."""

    def token(self) -> str:
        """The token of the bot; empty when its variable is not set."""
        return (environment(self.token_env) or "") if self.token_env else ""


def webhook_problem(url: str, webhook: WebhookSettings) -> str:
    """What is wrong with the address of a webhook, and what would be right; empty when nothing is."""
    from urllib.parse import urlsplit

    scheme, _, rest = url.partition("://")
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return "is no address; write https://HOST/PATH."
    if scheme not in {"http", "https"} or not has_host or not url.isascii() or not url.isprintable() or " " in url:
        return "is no address; write https://HOST/PATH."
    if parts.username is not None or parts.password is not None:
        return "contains a user name or a password, which is not supported; leave it out."
    if scheme == "http" and not webhook.allow_private:
        return (
            "begins with http://, which others can read on the way; write https://, or allow_private = true if it is "
            "on this machine or in a private network."
        )
    if webhook.style == "ntfy" and not rest.partition("/")[2].strip("/"):
        return "needs the topic, like https://ntfy.sh/TOPIC."
    return ""


def telegram_url_problem(url: str) -> str:
    """What is wrong with the address of a Bot API server, and what would be right; empty when nothing is.

    Every address has the token in it, so without TLS it goes no further than this machine or a name without a dot.
    """
    scheme, _, rest = url.partition("://")
    host = rest.rpartition(":")[0] or rest
    if scheme not in {"http", "https"} or not host or "/" in rest or "@" in rest:
        return "is no address; write https://HOST or https://HOST:PORT."
    if scheme == "http" and "." in host and not host.startswith(("127.", "10.", "192.168.")):
        return "begins with http://, and whoever can read on the way gets the token; write https://."
    return ""
