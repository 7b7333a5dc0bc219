"""What projections are made anew from: the events of each stream, up to the first that cannot be read."""

from __future__ import annotations

from holdfast.domain.errors import Corrupt
from holdfast.domain.events import Record, decode, location


class Replay:
    """Decodes stored lines, and notes which streams stop."""

    def __init__(self) -> None:
        self._ends: dict[str, int] = {}
        """By stream, the version of the first event that cannot be read."""

    @property
    def stopped(self) -> set[str]:
        """The streams with an event that cannot be read."""
        return {*self._ends}

    def stop(self, line: bytes) -> None:
        """Let the stream of a damaged line end before it."""
        if (where := location(line)) is not None:
            self._ends[where.stream] = min(where.version, self._ends.get(where.stream, where.version))

    def read(self, line: bytes) -> Record | None:
        """Return a record; `None` if its stream has ended before it, or ends here."""
        try:
            record = decode(line)
        except Corrupt:
            self.stop(line)
            return None
        return record if record.version < self._ends.get(record.stream, record.version + 1) else None
