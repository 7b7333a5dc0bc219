"""What a session may do at most, besides what its own profile allows.

A session that a person starts is limited by its profile alone. What a tool creates (another agent's session, a card)
is also limited by everything that limited its creator: the creator's profile as it was at that moment becomes one
layer, and the layers that the creator had itself come along. A call needs the consent of every layer, and the
strictest answer wins. So the rights of a descendant are never wider than those of any of its ancestors.

Layers are written into the event that begins the session, the card or the run. They are only ever added to.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.domain.command import SessionMode
from holdfast.domain.events.parts import Policy, Rights, RightsLayer

STRICTNESS: dict[Policy, int] = {"allow": 0, "ask": 1, "deny": 2}
MODE_STRICTNESS: dict[SessionMode, int] = {"profile": 0, "ask": 1, "read": 2}
RULES_SHOWN = 12


NO_LIMITS = Rights()
MODE_LIMITS: dict[SessionMode, str] = {
    "profile": "what its profile allows",
    "ask": "ask a person before every change and every command",
    "read": "only read: change nothing and run no command",
}
"""What an agent may do at most in each mode."""


def inherit(rights: Rights, *, session: str, layer: RightsLayer) -> Rights:
    """Return the rights of what a session creates: its own, with its profile as one more layer."""
    return Rights(layers=_distinct([*rights.layers, layer]), ancestors=[*rights.ancestors, session])


def intersect(first: Rights, second: Rights) -> Rights:
    """Return the rights of a session that continues other work: the limits of both."""
    ancestors = second.ancestors if second.depth > first.depth else first.ancestors
    return Rights(layers=_distinct([*first.layers, *second.layers]), ancestors=ancestors)


def mode_in_force(mode: SessionMode, rights: Rights) -> SessionMode:
    """Return the strictest of a session's own mode and those that it inherited."""
    return strictest_mode(mode, *(layer.mode for layer in rights.layers))


def strictest_mode(*modes: SessionMode) -> SessionMode:
    """Return the mode that allows the least."""
    return max(modes, key=MODE_STRICTNESS.__getitem__)


def covers(limits: Rights, *, mode: SessionMode, profile: str, rights: Rights) -> bool:
    """Whether a session with this profile and these rights has all the limits of another one, which has this mode in
    force, and may do no more.
    """
    if MODE_STRICTNESS[mode_in_force("profile", rights)] < MODE_STRICTNESS[mode]:
        return False
    return all(layer in rights.layers or layer.profile == profile for layer in limits.layers)


def strictest(policies: Iterable[Policy]) -> Policy:
    """Return the strictest policy: deny before ask, ask before allow."""
    return max(policies, key=STRICTNESS.__getitem__)


def root_of(session: str, rights: Rights) -> str:
    """Return the session, started by a person, from which this one descends."""
    return rights.ancestors[0] if rights.ancestors else session


def describe(rights: Rights) -> list[str]:
    """Return the limits as sentences, one for each layer."""
    return [_sentence(layer) for layer in rights.layers]


def _sentence(layer: RightsLayer) -> str:
    rules = [f"{pattern} {policy}" for pattern, policy in layer.rules.items()]
    left = len(rules) - RULES_SHOWN
    shown = ", ".join(rules[:RULES_SHOWN]) + (f" and {left} more" if left > 0 else "")
    parts = [f"tools {shown or 'as by default'}", f"files in {', '.join(layer.paths) or 'its own workspace'}"]
    parts += [f"MCP servers {', '.join(layer.mcp)}"] if layer.mcp else []
    parts += ["no network"] if not layer.network else []
    parts += ["always in a sandbox"] if layer.sandbox == "on" else []
    parts += [MODE_LIMITS[layer.mode]] if layer.mode != "profile" else []
    return f"An agent with the profile {layer.profile} created it. It may do no more than that: {'; '.join(parts)}."


def _distinct(layers: list[RightsLayer]) -> list[RightsLayer]:
    found: list[RightsLayer] = []
    for layer in layers:
        if layer not in found:
            found.append(layer)
    return found
