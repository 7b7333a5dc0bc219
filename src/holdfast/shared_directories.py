"""Which directories are the same on every node: those under `shared` in [cluster] of config.toml.

That two machines have a directory with the same name says nothing. So there is a file with a number in each shared
directory, and the database knows the number: a node that does not find it there has another directory, or no mount.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from contextlib import suppress
from pathlib import Path

from holdfast.profiles import Profiles
from holdfast.store.contract import Store

MARKER = ".holdfast-shared"
BITS, LONGEST_NUMBER = 62, 20


class SharedDirectories:
    """Checks whether a directory is the same on every node."""

    def __init__(self, store: Store, profiles: Profiles) -> None:
        self._store = store
        self._profiles = profiles
        self._known: dict[str, int] = {}
        """The numbers in the database, by directory: they never change."""

    async def why_private(self, directory: str) -> str:
        """Return why a directory may be another one on another node; empty if it is the same for sure."""
        path = Path(await asyncio.to_thread(os.path.realpath, directory))
        problem = f"its directory {directory} is not under `shared` in [cluster] of config.toml"
        for root in self._profiles.settings.cluster.shared:
            real = await asyncio.to_thread(os.path.realpath, root)
            if path.is_relative_to(real) and not (problem := await self._why_not_shared(root)):
                return ""
        return problem

    async def _why_not_shared(self, root: str) -> str:
        if self._store.exchange is None:
            return ""
        try:
            number = await asyncio.to_thread(_read_or_write, Path(root) / MARKER)
        except (OSError, ValueError) as error:
            return f"{root} is not known to be shared: {MARKER} in it cannot be read or written ({error})"
        if root not in self._known:
            self._known[root] = await self._store.exchange.agree(f"shared {root}", number)
        if self._known[root] != number:
            return f"{root} is not shared: other nodes have another directory there ({MARKER} differs)"
        return ""


def _read_or_write(marker: Path) -> int:
    """Return the number in a marker; write one if there is none. Blocks."""
    with (
        suppress(FileExistsError),
        os.fdopen(os.open(marker, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644), "w") as file,
    ):
        file.write(f"{secrets.randbits(BITS)}\n")
        file.flush()
        os.fsync(file.fileno())
    with os.fdopen(os.open(marker, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        number = int(file.read(LONGEST_NUMBER))
    if not 0 <= number < 2**BITS:
        raise ValueError(f"{number} is not one of our numbers")
    return number
