"""Which nodes may work on something, by their names and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.domain.text import duration


@dataclass(frozen=True, slots=True)
class KnownNode:
    """A node that lives, or that was not forgotten."""

    name: str
    labels: frozenset[str] = frozenset()
    takes_work: bool = True
    """Whether it lives and is not being drained."""
    lives: bool = True
    silent_ms: int = 0
    """For how long it has given no sign of life."""

    def is_called(self, word: str) -> bool:
        """Return whether a text is its name or one of its labels."""
        return word == self.name or word in self.labels


@dataclass(frozen=True, slots=True)
class Placement:
    """On which nodes a card or a session may run. All conditions must agree."""

    node: str = ""
    """The name or label that it asks for; empty is any."""
    profile: str = ""
    allowed: tuple[str, ...] = ()
    """The names and labels that its profile allows; empty is any."""
    bound_to: str = ""
    """The node that has its directory or its agent; empty when any node can do it."""
    bound_because: str = ""

    @property
    def is_free(self) -> bool:
        """Whether it may run on every node."""
        return not (self.node or self.allowed or self.bound_to)

    def fits(self, node: KnownNode) -> bool:
        """Return whether it may run on a node."""
        return (
            (not self.node or node.is_called(self.node))
            and (not self.allowed or any(node.is_called(word) for word in self.allowed))
            and self.bound_to in ("", node.name)
        )

    def why_waits(self, nodes: Sequence[KnownNode]) -> str:
        """Return for which node it waits, and since when that is silent; empty when a node can take it now."""
        fitting = [node for node in nodes if self.fits(node)]
        if any(node.takes_work for node in fitting):
            return ""
        if not fitting:
            return f"It waits for a node that {self._conditions()}, and there is none (`holdfast nodes` lists them)."
        because = f" ({self.bound_because})" if self.bound_because else ""
        return f"It waits for {' or '.join(_state(node) for node in fitting)}{because}."

    def why_waits_long(self, nodes: Sequence[KnownNode], *, waited_ms: int, limit_ms: int) -> str:
        """Return the same for what has waited for longer than the limit; empty if it has not."""
        silent = min((node.silent_ms for node in nodes if self.fits(node)), default=limit_ms)
        return self.why_waits(nodes) if min(waited_ms, silent) >= limit_ms else ""

    def _conditions(self) -> str:
        found = [f"is called or labelled {self.node}"] if self.node else []
        if self.allowed:
            found.append(f"is one of {', '.join(self.allowed)} (`nodes` of profile {self.profile})")
        if self.bound_to:
            found.append(f"is {self.bound_to} ({self.bound_because})")
        return " and ".join(found)


def _state(node: KnownNode) -> str:
    if node.lives:
        return f"node {node.name}, which is being drained"
    return f"node {node.name}, which was last seen {duration(node.silent_ms)} ago"
