"""Devices: browsers that signed in with a one-time code and have a cookie.

Their rows are also kept in memory, so that the guard can check a cookie without waiting. Where several gateways work on
one store, each reads them again as soon as another has changed them, and before it refuses a cookie or a code that it
does not know: it may be a moment old. Secrets are stored as hashes.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import re
import secrets
import threading
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path

from holdfast.clock import Clock
from holdfast.domain.errors import Conflict, HoldfastError, NotFound, Rejected, Unauthorized, Unavailable
from holdfast.gateway.streams import Streams
from holdfast.notify.push import PushSubscriptions
from holdfast.schemas.devices import DeviceView, SignInCode
from holdfast.store.contract import Store, Subscription
from holdfast.store.device_store import DEVICES, DeviceRow
from holdfast.timings import USUAL, GatewayTimings

CODE_MS = 10 * 60_000
YEAR_MS = 365 * 24 * 3600 * 1000
"""How long a cookie is valid after its last use."""
NAME_LIMIT = 80
SHORTEST = 4
USED = "This sign-in code was used or is older than 10 min. Run `holdfast open` for a new one."
NOT_STORED = (
    "The gateway keeps trying. If it ends before the revocation is stored, it will accept the device again: revoke "
    "it again then."
)
AGAIN_SECONDS = 2.0
NO_DEVICE = "The bearer token is not a device."
BROWSERS = {"Edg": "Edge", "OPR": "Opera", "Firefox": "Firefox", "Chrome": "Chrome", "Safari": "Safari"}
SYSTEMS = {"Android": "Android", "iPhone": "iPhone", "iPad": "iPad", "Windows": "Windows", "Mac OS X": "macOS"}
log = logging.getLogger(__name__)


def hashed(secret: str) -> str:
    """Return the hash under which a secret is stored. A plain hash is enough: secrets are long and random."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


class Devices:
    """The browsers that are signed in."""

    def __init__(
        self,
        store: Store,
        streams: Streams,
        push: PushSubscriptions,
        clock: Clock,
        revocations: Revocations,
        timings: GatewayTimings = USUAL.gateway,
    ) -> None:
        self._seen_ms = timings.device_seen * 1000
        self._store = store.devices
        self._streams = streams
        self._push = push
        self._clock = clock
        self._revocations = revocations
        self._by_hash: dict[str, DeviceRow] = {}
        self._codes: dict[str, int] = {}
        """Expiry of each valid code by its hash, so that a wrong code is refused without asking the database."""
        self._revoked: set[str] = set()
        self._own_changes = 0
        """How often this gateway itself has changed what is in memory."""
        self._reading: asyncio.Task[None] | None = None
        self._changes = store.subscribe(DEVICES) if store.is_shared else None
        self._writing: set[asyncio.Task[None]] = set()

    async def load(self) -> None:
        """Read the stored devices; store revocations that the last gateway could not."""
        self._revoked |= await asyncio.to_thread(self._revocations.open)
        await self._read()
        for device in self._revoked:
            self._push.forget(device)
            self._in_background(self._drop_later(device))
        if self._changes is not None:
            self._in_background(self._follow(self._changes))

    # --- other gateways --------------------------------------------------------------------------

    async def _follow(self, changes: Subscription) -> None:
        """Read the devices again whenever another gateway has changed them; and now and then, as all followers do."""
        with changes:
            is_stale = False
            while True:
                if not is_stale:
                    await changes.wait()
                changes.drain()
                is_stale = not await self._try_refresh()
                if is_stale:
                    await asyncio.sleep(AGAIN_SECONDS)

    async def _try_refresh(self) -> bool:
        try:
            await self.refresh()
            await self._push.load()
        except HoldfastError as error:
            log.warning("the devices could not be read again: %s", error)
            return False
        return True

    async def refresh(self) -> None:
        """Know what other gateways have stored up to now. Those who ask at the same time share a read."""
        if self._changes is None:
            return
        if self._reading is not None:  # it may have begun too early
            await asyncio.wait({self._reading})
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())
        await asyncio.shield(self._reading)

    async def _read(self) -> None:
        while True:
            before = self._own_changes
            rows, codes = await self._store.all(), await self._store.codes(at=self._clock.now())
            if before == self._own_changes:
                break
        known = self._by_hash
        found = {row.hash: row for row in rows if row.id not in self._revoked}
        self._by_hash = {
            hash: replace(row, seen_at=max(row.seen_at, known[hash].seen_at)) if hash in known else row
            for hash, row in found.items()
        }
        self._codes = codes
        for device in {row.id for row in known.values()} - {row.id for row in found.values()}:
            self._end(device)

    # --- signing in ------------------------------------------------------------------------------

    async def add_code(self, *, device: str = "") -> SignInCode:
        """Create a code that signs one browser in, once. It ends with the device that asked for it."""
        code, now = secrets.token_urlsafe(24), self._clock.now()
        expires_at = now + CODE_MS
        await self._store.add_code(hashed(code), expires_at=expires_at, at=now, device=device)
        self._own_changes += 1
        self._codes = {hash: until for hash, until in self._codes.items() if until > now}
        self._codes[hashed(code)] = expires_at
        return SignInCode(code, expires_at)

    async def is_code(self, code: str) -> bool:
        """Return whether a code can be used. It has 192 random bits, so that guessing is hopeless."""
        if hashed(code) not in self._codes:
            await self.refresh()
        return self._codes.get(hashed(code), 0) > self._clock.now()

    async def sign_in(self, code: str, name: str, *, known: str) -> tuple[DeviceRow, str]:
        """Return the device and the value of its cookie. A `known` device stays the same, with its read positions."""
        if not await self.is_code(code):
            raise Unauthorized(USED)
        secret, now = secrets.token_urlsafe(32), self._clock.now()
        device = DeviceRow(secrets.token_hex(8), hashed(secret), name, now, now)
        if known:
            device = replace(self.get(known), hash=device.hash, seen_at=now)  # with the name that it was given
        used = await self._store.sign_in(hashed(code), device, revoked=self._revocations.pending)
        self._own_changes += 1
        self._codes.pop(hashed(code), None)
        if not used:
            raise Unauthorized(USED)
        if known and not self.knows(known):  # revoked while it signed in again
            await self._store.drop(known)
            raise Unauthorized(USED)
        self._by_hash = {hash: row for hash, row in self._by_hash.items() if row.id != device.id}
        self._by_hash[device.hash] = device
        return device, secret

    async def rename(self, device: str, name: str) -> DeviceRow:
        """Give a device another name. Rejected if nothing of it can be read."""
        given = name_of(name, "")
        if not name.strip() or given != name.strip():
            raise Rejected("name: letters, digits and other visible characters only.")
        await self._store.rename(device, given)
        self._own_changes += 1
        row = replace(self.get(device), name=given)
        self._by_hash[row.hash] = row
        return row

    def who(self, cookie: bytes) -> str | None:
        """Return the device with this cookie."""
        device = self._by_hash.get(hashed(cookie.decode("latin-1")))
        if device is None or self._clock.now() - device.seen_at > YEAR_MS:
            return None
        return device.id

    def mark_used(self, device: str) -> None:
        """Note that a device was used; stored now and then, in the background."""
        row, now = self.get(device), self._clock.now()
        if now - row.seen_at > self._seen_ms:
            self._by_hash[row.hash] = replace(row, seen_at=now)
            self._in_background(self._touch(device, now))

    def _in_background(self, writing: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(writing)
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def _touch(self, device: str, now: int) -> None:
        try:
            await self._store.touch(device, at=now)
        except HoldfastError as error:
            log.warning("the last use of device %s could not be stored: %s", device, error)

    # --- looking --------------------------------------------------------------------------------

    def get(self, device: str) -> DeviceRow:
        """Return the device with exactly this id."""
        for row in self._by_hash.values():
            if row.id == device:
                return row
        if not device:
            raise NotFound(NO_DEVICE)
        raise NotFound(f"There is no device {device[:40]}.", hint="`holdfast devices` lists them.")

    def knows(self, device: str) -> bool:
        """Return whether there is a device with this id."""
        return any(row.id == device for row in self._by_hash.values())

    async def find(self, prefix: str) -> DeviceRow:
        """Return the device with this id or unique prefix; it may have signed in on another node a moment ago."""
        try:
            return self._find(prefix)
        except NotFound:
            await self.refresh()
        return self._find(prefix)

    def _find(self, prefix: str) -> DeviceRow:
        fits = [row for row in self._by_hash.values() if len(prefix) >= SHORTEST and row.id.startswith(prefix)]
        if len(fits) > 1:
            raise Conflict(f"{prefix} matches several devices: {', '.join(row.id for row in fits)}.")
        return fits[0] if fits else self.get(prefix)

    def all(self, current: str) -> list[DeviceView]:
        """Return all devices, oldest first."""
        rows = sorted(self._by_hash.values(), key=lambda row: (row.created_at, row.id))
        return [self.shown(row, current) for row in rows]

    def shown(self, row: DeviceRow, current: str) -> DeviceView:
        """Return a device as the API shows it."""
        return DeviceView(
            id=row.id,
            name=row.name,
            created_at=row.created_at,
            seen_at=row.seen_at,
            current=row.id == current,
            connected=self._streams.connected(row.id),
        )

    # --- signing out ----------------------------------------------------------------------------------

    async def revoke(self, device: str) -> DeviceRow:
        """Sign a device out and end its streams at once, even if that cannot be stored now."""
        row = self.get(device)
        self._by_hash.pop(row.hash, None)
        self._end(device)
        try:
            await self._store.drop(device)
        except Unavailable as error:
            stored = await asyncio.to_thread(self._revocations.add, device)
            self._in_background(self._drop_later(device))
            if not stored:
                message = f"{row.name} is signed out, but that is not stored yet. {error.message}"
                raise Unavailable(message, hint=NOT_STORED, retry_after=error.retry_after) from error
        return row

    def _end(self, device: str) -> None:
        """End the streams of a device that is signed out, and send it nothing more."""
        self._revoked.add(device)
        self._streams.cut(device)
        self._push.forget(device)

    async def _drop_later(self, device: str) -> None:
        log.warning("the revocation of device %s is not in the database yet", device)
        while True:
            try:
                await self._store.drop(device)
            except Unavailable:
                await asyncio.sleep(AGAIN_SECONDS)
                continue
            await asyncio.to_thread(self._revocations.done, device)
            log.info("the revocation of device %s is in the database now", device)
            return


def name_of(given: str | None, agent: str) -> str:
    """Return the name of a device: the given one, else its browser and system."""
    said = "".join(character for character in given or "" if character.isprintable()).strip()
    if said:
        return said[:NAME_LIMIT]
    browser = next((word for mark, word in BROWSERS.items() if mark in agent), "A browser")
    system = next((word for mark, word in SYSTEMS.items() if mark in agent), "Linux" if "Linux" in agent else "")
    return f"{browser} on {system}" if system else browser


SIZE = 4096
"""Enough for 240 devices."""
LINE = re.compile(rb"[0-9a-f]{16}\n")


class Revocations:
    """The devices that are revoked and still in the database, in a small file whose space is reserved.

    On a full disk nothing can be added to the database, but bytes that a file already has can be overwritten. So a
    revoked device stays revoked even if the gateway is killed before there is space again. The file is read at every
    start and emptied when all of it is in the database.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._lines: list[str] = []
        """The lines of the file; more than `pending` until all are done."""
        self.pending: frozenset[str] = frozenset()

    def open(self) -> frozenset[str]:
        """Read what an earlier gateway could not store, and reserve the space for the next time."""
        try:
            found = self._path.read_bytes() if self._path.exists() else b""
            self._lines = [line.decode().strip() for line in LINE.findall(found)]
            if len(found) < SIZE:
                self._write()
        except OSError as error:
            log.warning("no space is reserved for revocations on a full disk: %s", error)
        self.pending = frozenset(self._lines)
        return self.pending

    def add(self, device: str) -> bool:
        """Store a revocation; return whether that worked."""
        with self._lock:
            self.pending |= {device}
            self._lines.append(device)
            try:
                self._write()
            except OSError as error:
                log.warning("the revocation of device %s cannot be stored: %s", device, error)
                return False
            return True

    def done(self, device: str) -> None:
        """Remove a revocation that is in the database. The file is emptied with the last one, so no line ever moves."""
        with self._lock:
            self.pending -= {device}
            if self.pending:
                return
            self._lines = []
            try:
                self._write()
            except OSError as error:
                log.warning("%s could not be emptied, which is harmless: %s", self._path, error)

    def _write(self) -> None:
        """Write in place: a new file would need space."""
        text = "".join(f"{line}\n" for line in self._lines).encode()
        if len(text) > SIZE:
            raise OSError("too many at once")
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.pwrite(file, text.ljust(SIZE, b"\0"), 0)
            os.fsync(file)
        finally:
            os.close(file)
