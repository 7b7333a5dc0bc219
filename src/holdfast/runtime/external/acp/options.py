"""The options of a permission: the agent's own names, and which of them our answers mean. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from holdfast.runtime.external.acp.protocol import PermissionOption

WORDS = {"allow_once": "allow", "allow_always": "session", "reject_once": "deny", "reject_always": "deny"}
"""Our name for the first option of a kind."""
NAME_SHOWN = 120


@dataclass(slots=True)
class Offered:
    """What an agent offers."""

    choices: list[str] = field(default_factory=list)
    """In its own words and order; at least one refuses."""
    means: dict[str, str] = field(default_factory=dict)
    """The choices that `allow`, `session` and `deny` mean."""
    ids: dict[str, str] = field(default_factory=dict)
    """The agent's ids, by its own choice and by our name."""
    refusals: list[str] = field(default_factory=lambda: ["deny"])

    @classmethod
    def of(cls, options: list[PermissionOption], mask: Callable[[str], str]) -> Offered:
        """Return them, each with a name of its own."""
        found = cls()
        for option in options:
            word = WORDS.get(option.kind, "")
            name = " ".join(mask(option.name).split())[:NAME_SHOWN] or word or option.option_id
            if name in found.ids or (name in WORDS.values() and name != word):
                name = f"{name} ({len(found.choices) + 1})"
            found.choices.append(name)
            found.ids[name] = option.option_id
            if word and word not in found.means:
                found.means[word] = name
                found.ids.setdefault(word, option.option_id)
            if word == "deny":
                found.refusals.append(name)
        if "deny" not in found.means:  # it is cancelled then, which every agent understands
            found.choices.append("deny")
            found.means["deny"] = "deny"
        return found

    @property
    def allowing(self) -> str:
        """The choice with which a rule of the profile allows it: once, if the agent offers that; empty if it cannot."""
        return next((word for word in ("allow", "session") if word in self.means), "")
