"""Nodes in responses: the gateways that work on one database."""

from __future__ import annotations

import msgspec


class NodeView(msgspec.Struct, frozen=True, kw_only=True):
    """A node, by the last life that is known of it."""

    name: str
    state: str
    """`alive`, `draining` or `ended`."""
    here: bool
    """Whether it is the one that answers."""
    labels: list[str] = []
    """What it has (`labels` in [node] of its config.toml), besides its name."""
    version: str
    started_at: int
    heard_at: int
    """When it last gave a sign of life, by the clock of the database; 0 where there is one node."""
    silent_ms: int
    ended_at: int | None
    ended_reason: str
    sessions: list[str]
    """The sessions that it works on; those at rest are left out."""
    duties: list[str]
    """What it does for all nodes, such as `board`."""
    tasks: list[str]
    """The commands that run there, as far as is known."""


class NodeList(msgspec.Struct, frozen=True):
    """All nodes by name."""

    nodes: list[NodeView]


class NodeChanged(msgspec.Struct, frozen=True):
    """A node that is drained or was forgotten."""

    name: str
    lost_tasks: list[str] = []
    """The commands that are lost with it."""
