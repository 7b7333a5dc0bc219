"""What a push service wants: messages that only the browser can read (RFC 8291), signed with the gateway's key (VAPID).

With `cryptography` alone: what is needed of the libraries for it is a page of code, and they bring an HTTP client of
their own or are seldom released.
"""

from __future__ import annotations

import asyncio
import base64
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from holdfast.config import write_private
from holdfast.domain.errors import Rejected, Unavailable
from holdfast.store.settings_store import SettingsStore

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey

RECORD = 4096
"""The size of the largest body that every push service takes; a message is one record."""
LARGEST = RECORD - 86 - 17
"""How many bytes of a message fit: the header of the record, the end mark and the tag of the cipher go off."""
VALID_SECONDS = 12 * 3600
POINT = 65
SHARED_KEY = "push.pem"
"""The name of the key among those that nodes share."""


def encrypted(message: bytes, p256dh: str, auth: str) -> bytes:
    """Return a message as the body of a push, by `aes128gcm`: each has a key of its own."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if len(message) > LARGEST:
        raise ValueError(f"a push has at most {LARGEST} bytes")
    receiver, own = _point(p256dh), ec.generate_private_key(ec.SECP256R1())
    shared = own.exchange(ec.ECDH(), receiver)
    ours, theirs = _raw(own.public_key()), _raw(receiver)
    key = _hkdf(shared, salt=from_base64(auth), info=b"WebPush: info\0" + theirs + ours, length=32)
    salt = os.urandom(16)
    cipher = AESGCM(_hkdf(key, salt=salt, info=b"Content-Encoding: aes128gcm\0", length=16))
    nonce = _hkdf(key, salt=salt, info=b"Content-Encoding: nonce\0", length=12)
    head = salt + RECORD.to_bytes(4, "big") + bytes([POINT]) + ours
    return head + cipher.encrypt(nonce, message + b"\x02", None)


def check_keys(p256dh: str, auth: str) -> None:
    """Reject keys of a subscription that nothing can be encrypted for."""
    try:
        _point(p256dh)
        usable = len(from_base64(auth)) == 16
    except ValueError:
        usable = False
    if not usable:
        raise Rejected("keys: these are not the keys of a push subscription.")


def _point(encoded: str) -> EllipticCurvePublicKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), from_base64(encoded))


def _raw(key: EllipticCurvePublicKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _hkdf(secret: bytes, *, salt: bytes, info: bytes, length: int) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), length, salt, info).derive(secret)


class PushKey:
    """The key by which push services know this gateway: a file of the home, made when it is first needed.

    Subscriptions are bound to it: with another one the browsers have to subscribe again. Nodes on one database have one
    in common, there: that of the first of them.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._key: EllipticCurvePrivateKey | None = None

    def public(self) -> str:
        """Return what a browser subscribes with."""
        return to_base64(_raw(self._load().public_key()))

    def authorization(self, url: str, contact: str) -> str:
        """Return the header that a push service at this address accepts for half a day."""
        from cryptography.hazmat.primitives.asymmetric import ec, utils
        from cryptography.hazmat.primitives.hashes import SHA256

        place = urlsplit(url)
        claims = {"aud": f"{place.scheme}://{place.netloc}", "exp": int(time.time()) + VALID_SECONDS, "sub": contact}
        signed = f"{_part({'typ': 'JWT', 'alg': 'ES256'})}.{_part(claims)}"
        r, s = utils.decode_dss_signature(self._load().sign(signed.encode(), ec.ECDSA(SHA256())))
        signature = to_base64(r.to_bytes(32, "big") + s.to_bytes(32, "big"))
        return f"vapid t={signed}.{signature}, k={self.public()}"

    async def share(self, settings: SettingsStore) -> None:
        """Use the key of all nodes; the first node gives its own."""
        known = await settings.key(SHARED_KEY)
        if known is None:
            await asyncio.to_thread(self._load)
            known = await settings.agree_on_key(SHARED_KEY, await asyncio.to_thread(self._file.read_bytes))
        self._key = _parsed(known, "the database")

    def _load(self) -> EllipticCurvePrivateKey:
        if self._key is None:
            self._key = _read(self._file) if self._file.exists() else _made(self._file)
        return self._key


def _read(file: Path) -> EllipticCurvePrivateKey:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise Unavailable(f"The key for push messages cannot be read: {file}.", hint=_hint(file)) from error
    return _parsed(content, str(file), hint=_hint(file))


def _parsed(content: bytes, where: str, *, hint: str = "") -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(content, None)
    except (ValueError, TypeError) as error:
        raise Unavailable(f"The key for push messages cannot be read: {where}.", hint=hint) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise Unavailable(f"This is not a key for push messages: {where}.", hint=hint)
    return key


def _hint(file: Path) -> str:
    return f"Restore {file.name} from a backup, or delete it and turn notifications on again on every device."


def _made(file: Path) -> EllipticCurvePrivateKey:
    """Create the key; it is in its place whole or not at all."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = ec.generate_private_key(ec.SECP256R1())
    content = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        write_private(file, content)
    except OSError as error:
        raise Unavailable(f"The key for push messages cannot be stored: {error.strerror}.") from error
    return key


def _part(claims: Mapping[str, object]) -> str:
    return to_base64(msgspec.json.encode(claims))


def to_base64(data: bytes) -> str:
    """Base64 for addresses, without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def from_base64(text: str) -> bytes:
    """Return the bytes, ValueError if it is anything else."""
    return base64.b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), altchars="-_", validate=True)
