"""Directories for tests: in memory, where the order of writes matters and not the disk; and with a short path."""

from __future__ import annotations

from pathlib import Path

MEMORY = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
SHORT = Path("/tmp")
"""For sockets, whose paths have at most 107 bytes, however long that of TMPDIR is."""
