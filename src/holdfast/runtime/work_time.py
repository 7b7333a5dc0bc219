"""How long turns were worked on, by the monotonic clock, which cannot be set and stops while the machine sleeps.

The time before this gateway is known from the log only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from holdfast.domain.next_step import worked_by_log
from holdfast.domain.session import Session


@dataclass(slots=True)
class _Worked:
    turn: int
    ms: float


class WorkTime:
    """The time spent on the open turn of each session, without waiting for a person."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._worked: dict[str, _Worked] = {}

    def spent_ms(self, session: Session) -> int:
        """Return the milliseconds of work on a session's open turn; 0 when none is open."""
        turn = session.turn
        if turn is None:
            self._worked.pop(session.id, None)
            return 0
        known = self._worked.get(session.id)
        if known is None or known.turn != turn.number:
            known = self._worked[session.id] = _Worked(turn.number, worked_by_log(turn, now=turn.last_done.at))
        return int(known.ms)

    @contextmanager
    def measured(self, session: Session) -> Iterator[None]:
        """Count the time in this block as work, unless it waits for a person."""
        waits = session.turn is not None and session.turn.wait is not None and session.turn.wait.purpose != "retry"
        self.spent_ms(session)
        began = self._monotonic()
        try:
            yield
        finally:
            if (known := self._worked.get(session.id)) is not None and not waits:
                known.ms += (self._monotonic() - began) * 1000
