"""A file system in memory, where there is one: for tests about the order of writes, not about the disk."""

from __future__ import annotations

from pathlib import Path

MEMORY = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
