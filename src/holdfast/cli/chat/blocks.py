"""What the chat shows, one block under the other. Blocks never change once they were shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Tone = Literal["quiet", "plain", "warning", "bad"]


@dataclass(frozen=True, slots=True)
class Said:
    """A person's message that a turn took."""

    text: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Noted:
    """The runtime tells the session that a task ended."""

    text: str


@dataclass(frozen=True, slots=True)
class Spoke:
    """A finished piece of the agent's answer, in markdown."""

    markdown: str
    joined: bool = False


@dataclass(frozen=True, slots=True)
class Thought:
    """Thinking, folded to one line. How long it took is known only to who was there."""

    number: int
    text: str
    ms: int | None = None


@dataclass(frozen=True, slots=True)
class Called:
    """A tool call that came to an end."""

    number: int
    tool: str
    arguments: str
    result: str
    """done, started, failed, stopped or unknown."""
    output: str
    ms: int
    task: str = ""
    detail: str = ""
    """Its exit code or signal, if that says something."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The agent, or a guard before one of its calls, asks a person."""

    purpose: str
    reason: str
    choices: tuple[str, ...] = ()
    arguments: str = ""
    pattern: str = ""
    shown: tuple[str, ...] = ()
    """Every argument of a call that waits for an approval, line by line."""
    cut: bool = False
    """Some of them are longer than that."""


@dataclass(frozen=True, slots=True)
class Remark:
    """A line of the runtime."""

    text: str
    tone: Tone = "quiet"


@dataclass(frozen=True, slots=True)
class Listing:
    """The answer to a slash command. Its lines may carry our own styling and nothing else."""

    lines: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Divider:
    """Where what the model sees begins anew, or was made shorter."""

    title: str
    lines: tuple[str, ...] = ()
    tone: Tone = "quiet"


Block = Said | Noted | Spoke | Thought | Called | Asked | Remark | Listing | Divider


def family(block: Block) -> str:
    """Blocks of one family stand close to each other; between two families is a blank line."""
    match block:
        case Said():
            return "said"
        case Noted():
            return "noted"
        case Spoke(joined=joined):
            return "joined" if joined else "spoke"
        case Asked():
            return "asked"
        case Listing():
            return "listing"
        case Divider():
            return "divider"
        case Thought() | Called() | Remark():
            return "line"


def gap(before: Block | None, block: Block) -> bool:
    """Whether a blank line stands between these two."""
    kind = family(block)
    if before is None or kind == "joined":
        return False
    return not (kind == "line" and family(before) in ("line", "asked"))
