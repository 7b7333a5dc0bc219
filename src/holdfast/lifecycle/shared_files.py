"""The files of a home that hold what all nodes share, when its log moves to PostgreSQL or back: the settings of
config.toml that are not about a machine, and the key for push services.

In the database they are rows. On the way back a file that says something else is kept beside, as `….old`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from holdfast.config import Home, write_private
from holdfast.domain.errors import Conflict
from holdfast.read_settings import load_settings, parse_settings
from holdfast.shared_settings import check_shared, meant, shared_part, with_machine_part


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file of the home as it is to be."""

    path: Path
    content: bytes
    is_replaced: bool
    """Whether what is there now says something else, and is kept."""

    @property
    def former(self) -> Path:
        """Where the file is kept that is there now."""
        return self.path.with_name(f"{self.path.name}.old")

    def write(self) -> None:
        """Put it in its place, and keep the one that was there."""
        if self.is_replaced:
            write_private(self.former, self.path.read_bytes())
        write_private(self.path, self.content)


def settings_of(home: Home) -> str:
    """Return what config.toml of a home says about all nodes; empty if that is nothing. ConfigError if it is wrong."""
    if not home.config.exists():
        return ""
    load_settings(home.config)
    part = shared_part(home.config.read_text("utf-8"))
    check_shared(part)
    return part if meant(part) else ""


def push_key_of(home: Home) -> bytes:
    """Return the key for push services; empty if the home has none."""
    return home.push_key.read_bytes() if home.push_key.exists() else b""


def files_for(home: Home, *, settings: str, push_key: bytes) -> list[NewFile]:
    """Return the files that a home needs to have these, without those that it has. Conflict if one cannot be kept."""
    files = []
    path = home.config.resolve()  # a link to a file elsewhere stays a link
    load_settings(home.config)
    before = path.read_text("utf-8") if path.exists() else ""
    if meant(settings) != meant(before):
        text = with_machine_part(settings, before)
        parse_settings(home.config, text)
        files.append(NewFile(path, text.encode(), is_replaced=bool(meant(before))))
    if push_key and push_key != push_key_of(home):
        files.append(NewFile(home.push_key, push_key, is_replaced=home.push_key.exists()))
    for file in files:
        if file.is_replaced and file.former.exists() and file.former.read_bytes() != file.path.read_bytes():
            what = f"{file.path} differs from the database, and {file.former} exists already."
            raise Conflict(f"{what} Nothing was changed.", hint=f"Move it aside first: mv {file.former} {file.former}2")
    return files
