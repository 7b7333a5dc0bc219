"""How long turns were worked on, by a clock that nobody can set and that stands still while the machine sleeps.

Of the time before this gateway only the log tells.
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
    """The time that was spent on the open turn of each session. Waiting for a person is no work."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._worked: dict[str, _Worked] = {}

    def spent_ms(self, session: Session) -> int:
        """Milliseconds of work on its open turn so far; 0 when none is open."""
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
        """Count what is done meanwhile, unless it is to wait for a person."""
        waits = session.turn is not None and session.turn.wait is not None and session.turn.wait.purpose != "retry"
        self.spent_ms(session)
        began = self._monotonic()
        try:
            yield
        finally:
            if (known := self._worked.get(session.id)) is not None and not waits:
                known.ms += (self._monotonic() - began) * 1000
