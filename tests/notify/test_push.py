"""Web Push: what a push service gets, that only the browser can read it, and what each answer means."""

from __future__ import annotations

import stat
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from msgspec.structs import replace

from holdfast.domain.errors import Rejected, Unavailable
from holdfast.notify.channel import GiveUp, NoticeMessage, Sent, TryAgain
from holdfast.notify.push import KEPT_SECONDS, PushChannel, PushSubscriptions, check_endpoint, content_of
from holdfast.notify.push_encryption import LARGEST, PushKey, encrypted
from holdfast.notify_settings import PushSettings
from holdfast.store.device_store import PushRow
from holdfast.store.sqlite.store import SqliteStore
from tests.notify.conformance import MESSAGE, ChannelContract
from tests.notify.push_service import BrowserSubscription, PushService, push_service
from tests.store.conformance import AT, let_in

ANSWERS: dict[str, tuple[int, dict[str, str]]] = {
    "ok": (201, {}),
    "busy": (429, {"retry-after": "7"}),
    "broken": (500, {}),
    "refused": (410, {}),
    "nonsense": (99, {}),
}


class Phone:
    """A device `d1` with a subscription, as the other side of a channel."""

    def __init__(self, store: SqliteStore, service: PushService, key: Path, stack: ExitStack) -> None:
        self.store, self.service, self._stack = store, service, stack
        self.settings = PushSettings(allow_private=True)
        self.push = PushSubscriptions(
            store.devices, PushKey(key), settings=lambda: self.settings, contact=lambda: "https://holdfast.example"
        )
        self.subscription = service.subscribe()

    async def turn_on(self) -> None:
        await let_in(self.store, "d1")
        await self.push.save(self.row())

    def row(self, subscription: BrowserSubscription | None = None, *, device: str = "d1") -> PushRow:
        given = (subscription or self.subscription).json
        return PushRow(
            device=device,
            endpoint=given["endpoint"],
            p256dh=given["keys"]["p256dh"],
            auth=given["keys"]["auth"],
            kinds=["question"],
            when_absent=True,
            details=False,
            changed_at=AT,
        )

    def channel(self) -> PushChannel:
        return PushChannel(self.row(), self.push)

    def ids(self) -> list[str]:
        return [message["id"] for message in self.service.messages]

    def answer(self, what: str) -> None:
        self.service.answer = ANSWERS[what]

    async def go_away(self) -> None:
        await self.push.close()
        self._stack.close()


@pytest.fixture
async def phone(tmp_path: Path) -> AsyncIterator[Phone]:
    store = SqliteStore(tmp_path / "holdfast.db")
    with ExitStack() as stack:
        found = Phone(store, stack.enter_context(push_service()), tmp_path / "push.pem", stack)
        await found.turn_on()
        yield found
        await found.push.close()
    await store.close()
    assert found.service.refused == []


class TestPush(ChannelContract):
    @pytest.fixture
    def service(self, phone: Phone) -> Phone:
        return phone


async def test_only_the_browser_reads_it_and_the_service_knows_who_sent_it(phone: Phone) -> None:
    assert await phone.channel().send(MESSAGE) == Sent()
    (found,) = phone.service.pushed
    assert found.message == {
        "id": MESSAGE.id,
        "matter": "wait/a",
        "kind": "question",
        "title": "Fix <the> build",
        "text": "asks a question: which & why?",
        "link": "/s/a",
        "at": MESSAGE.at,
        "wait": "",
        "choices": [],
    }
    assert found.key == phone.push.key.public()
    assert found.claims["sub"] == "https://holdfast.example"
    assert 0 < found.claims["exp"] - time.time() <= 24 * 3600, "push services refuse more"
    assert (found.headers["ttl"], found.headers["urgency"]) == (str(KEPT_SECONDS), "high")
    assert "wait/a" not in str(found.headers)


async def test_newer_messages_replace_older_ones_about_the_same_matter(phone: Phone) -> None:
    channel = phone.channel()
    for message in (MESSAGE, replace(MESSAGE, kind="settled"), replace(MESSAGE, matter="card/b", kind="done")):
        await channel.send(message)
    first, settled, other = phone.service.pushed
    assert first.headers["topic"] == settled.headers["topic"] != other.headers["topic"]
    assert [one.headers["urgency"] for one in phone.service.pushed] == ["high", "normal", "normal"]


@pytest.mark.parametrize("text", ["x" * 20_000, "\u202e\U0001f600" * 5_000, "\x01" * 9_000, '"\\\n' * 4_000])
async def test_a_long_text_is_cut_to_what_every_service_takes_and_then_nothing_can_be_allowed(
    phone: Phone, text: str
) -> None:
    message = replace(MESSAGE, title=text, text=text, wait="w1", choices=["allow", "deny"])
    assert await phone.channel().send(message) == Sent()
    (found,) = phone.service.pushed
    assert 3_000 < found.size <= 4096
    assert found.message["text"].endswith("…")
    assert found.message["choices"] == ["deny"]


def test_a_text_that_fits_is_left_as_it_is() -> None:
    message = replace(MESSAGE, text="x" * 3_000, wait="w1", choices=["allow", "deny"])
    assert b"x" * 3_000 in content_of(message)
    assert b'"allow"' in content_of(message)


def test_a_longer_message_is_not_encrypted(phone_keys: dict[str, str]) -> None:
    assert len(encrypted(b"x" * LARGEST, **phone_keys)) == 4096
    with pytest.raises(ValueError, match="at most"):
        encrypted(b"x" * (LARGEST + 1), **phone_keys)


@pytest.fixture
def phone_keys() -> dict[str, str]:
    with push_service() as service:
        keys: dict[str, str] = service.subscribe().json["keys"]
    return keys


def test_the_same_message_is_never_encrypted_twice_in_the_same_way(phone_keys: dict[str, str]) -> None:
    assert len({encrypted(b"the same", **phone_keys) for _ in range(5)}) == 5


@pytest.mark.parametrize("status", [404, 410])
async def test_a_subscription_that_has_ended_is_removed_and_says_so(phone: Phone, status: int) -> None:
    phone.service.answer = (status, {})
    result = await phone.channel().send(MESSAGE)
    assert isinstance(result, GiveUp)
    assert str(status) in result.problem
    assert "Settings → Notifications" in result.hint
    (row,) = phone.push.rows.values()
    assert (row.endpoint, row.p256dh, row.auth) == ("", "", "")
    assert str(status) in row.ended
    assert await phone.store.devices.pushes() == [row]
    again = phone.row(phone.service.subscribe())
    await phone.push.save(again)
    await phone.push.end(replace(phone.row(), ended="an answer that comes late"))
    assert list(phone.push.rows.values()) == await phone.store.devices.pushes() == [again]


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (201, {}, Sent()),
        (202, {}, Sent()),
        (500, {}, TryAgain("The push service answered 500.")),
        (503, {"retry-after": "120"}, TryAgain("The push service answered 503.", after_ms=120_000)),
        (429, {"retry-after": "7"}, TryAgain("The push service answered 429.", after_ms=7_000)),
        (429, {}, TryAgain("The push service answered 429.")),
    ],
)
async def test_what_an_answer_means(phone: Phone, status: int, headers: dict[str, str], expected: object) -> None:
    phone.service.answer = (status, headers)
    assert await phone.channel().send(MESSAGE) == expected
    assert not next(iter(phone.push.rows.values())).ended


@pytest.mark.parametrize("status", [400, 401, 403, 413, 301, 307])
async def test_what_is_given_up_leaves_the_subscription(phone: Phone, status: int) -> None:
    phone.service.answer = (status, {"location": f"{phone.service.origin}/push/s0"})
    result = await phone.channel().send(MESSAGE)
    assert isinstance(result, GiveUp)
    assert str(status) in result.problem
    assert len(phone.service.pushed) == 1, "redirects are not followed"
    assert not next(iter(phone.push.rows.values())).ended


# --- where pushes may go ----------------------------------------------------------------------------


async def test_a_private_address_is_refused_when_it_is_given_and_when_something_is_sent(phone: Phone) -> None:
    phone.settings = PushSettings()
    with pytest.raises(Rejected, match="begins with https"):
        await phone.push.save(phone.row())
    result = await phone.channel().send(MESSAGE)
    assert isinstance(result, GiveUp)
    assert "not a public address" in result.problem
    assert phone.service.pushed == []


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://127.0.0.1/x", "127.0.0.1, which is not a public address"),
        ("https://localhost:8443/x", "which is not a public address"),
        ("https://10.0.0.1/x", "not a public address"),
        ("https://169.254.169.254/latest/meta-data", "not a public address"),
        ("https://[::1]/x", "not a public address"),
        ("https://[::ffff:127.0.0.1]/x", "not a public address"),
        ("https://2130706433/x", "not a public address"),
        ("http://example.com/x", "begins with https"),
        ("ftp://example.com/x", "begins with https"),
        ("file:///etc/passwd", "begins with https"),
        ("https://user:secret@example.com/x", "begins with https"),
        ("https:///x", "begins with https"),
        ("https://example.com:99999/x", "no address"),
        ("https://[::1/x", "no address"),
        ("https://1.1.1.1/x\r\nhost: evil", "no address"),
        ("https://1.1.1.1/a b", "no address"),
        ("https://exämple.com/x", "begins with https"),
        ("", "begins with https"),
    ],
)
async def test_hostile_endpoints(url: str, said: str) -> None:
    with pytest.raises(Rejected) as error:
        await check_endpoint(url, allow_private=False)
    assert said in str(error.value)
    assert "secret" not in str(error.value)


async def test_a_public_address_is_taken() -> None:
    await check_endpoint("https://1.1.1.1/push/x", allow_private=False)


@pytest.mark.parametrize("keys", [{"p256dh": ""}, {"p256dh": "AAAA"}, {"p256dh": "B" * 87}, {"p256dh": "ü"}])
async def test_keys_that_nothing_can_be_encrypted_for(phone: Phone, keys: dict[str, Any]) -> None:
    for wrong in (keys, {"auth": "AAAA"}, {"auth": "!"}):
        with pytest.raises(Rejected, match="not the keys of a push subscription"):
            await phone.push.save(replace(phone.row(), **wrong))


# --- whose it is --------------------------------------------------------------------------------------


async def test_a_device_that_was_signed_out_gets_nothing(phone: Phone) -> None:
    phone.push.forget("d1")
    assert phone.push.rows == {}
    await phone.push.load()  # the database may not know it yet
    assert phone.push.rows == {}
    await phone.push.save(phone.row())  # it asked just before
    assert phone.push.rows == {}
    await phone.store.devices.drop("d1")
    assert await phone.store.devices.pushes() == []


async def test_the_same_browser_as_another_device_is_not_notified_twice(phone: Phone) -> None:
    await let_in(phone.store, "d2")
    await phone.push.save(phone.row(device="d2"))
    assert list(phone.push.rows) == ["d2"]
    assert [row.device for row in await phone.store.devices.pushes()] == ["d2"]


def test_nobody_reads_an_endpoint_in_a_log() -> None:
    row = PushRow(
        device="d1",
        endpoint="https://x/secret",
        p256dh="secret",
        auth="secret",
        kinds=[],
        when_absent=True,
        details=False,
        changed_at=0,
    )
    assert "secret" not in f"{row} {row!r}"


# --- the key --------------------------------------------------------------------------------------------


def test_the_key_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "push.pem"
    first = PushKey(file)
    assert not file.exists()
    public = first.public()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert PushKey(file).public() == public == first.public()
    assert [path.name for path in tmp_path.iterdir()] == ["push.pem"]


def test_half_a_key_that_a_crash_left_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "push.pem.new").write_text("-----BEGIN")
    assert PushKey(tmp_path / "push.pem").public()


OTHER_CURVE = ec.generate_private_key(ec.SECP384R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize(
    "content", [b"", b"nonsense", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", OTHER_CURVE]
)
async def test_a_key_that_cannot_be_read_is_not_replaced_in_silence(
    phone: Phone, tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "push.pem"
    file.write_bytes(content)
    with pytest.raises(Unavailable, match=r"push\.pem"):
        PushKey(file).public()
    assert file.read_bytes() == content
    phone.push.key = PushKey(file)
    result = await phone.channel().send(MESSAGE)
    assert isinstance(result, TryAgain)
    assert "Restore push.pem" in result.problem


def test_a_message_names_no_more_than_it_must() -> None:
    fields = set(NoticeMessage.__struct_fields__) - {"url", "receipt", "detail"}
    given = content_of(MESSAGE)
    assert all(f'"{name}"'.encode() in given for name in fields)
