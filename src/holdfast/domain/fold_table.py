"""Which function folds which kind of event into a session: tables that are filled where the functions are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from holdfast.domain.events.parts import Event, EventRef
from holdfast.domain.session import Session

E = TypeVar("E", bound=Event)
Evolve = Callable[[Session, E, EventRef], Session]
"""Returns the session after an event of this kind, apart from its version and the time of its last event."""


class FoldTable(dict[type[Event], Evolve[Any]]):
    """Functions by the kind of event that they fold."""

    def on(self, *kinds: type[E]) -> Callable[[Evolve[E]], Evolve[E]]:
        """Decorate the function for these kinds."""

        def register(evolve: Evolve[E]) -> Evolve[E]:
            self.update(dict.fromkeys(kinds, evolve))
            return evolve

        return register
