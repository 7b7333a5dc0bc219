"""The settings and keys that all nodes share. Only where there can be several nodes: one node has its own files."""

from __future__ import annotations

from abc import ABC, abstractmethod

import msgspec

SETTINGS = "settings"
"""What is subscribed to for changes of the settings."""


class SettingsRow(msgspec.Struct, frozen=True):
    """One version of the settings."""

    version: int
    """From 1."""
    text: str
    """TOML, as in config.toml."""
    changed_by: str
    changed_at: int


class SettingsStore(ABC):
    """The versions of the settings, of which the newest is in force, and the keys by name."""

    @abstractmethod
    async def newest(self) -> SettingsRow | None:
        """Return the settings in force; None before the first node has stored its own."""

    @abstractmethod
    async def versions(self) -> list[SettingsRow]:
        """Return all versions that are kept, newest first."""

    @abstractmethod
    async def add(self, row: SettingsRow) -> bool:
        """Store a version, and wake every node. False if somebody else was first with that version."""

    @abstractmethod
    async def agree_on_key(self, name: str, key: bytes) -> bytes:
        """Return the key that all nodes have under a name: that of the node that was the first to give one."""

    @abstractmethod
    async def key(self, name: str) -> bytes | None:
        """Return the key under a name, if there is one."""
