"""Which sessions another node can continue, when the node that worked on them has ended or was lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from holdfast.domain.resume import Break
from holdfast.domain.session import Session
from holdfast.store.rows import NodeRow


class WakeSession(msgspec.Struct, frozen=True, tag=True):
    """Asks a node to work on a session that the asking one may not work on."""

    session: str


async def why_bound(session: Session, holder: NodeRow | None, *, node: str) -> str:
    """Return why this node cannot continue what another one worked on; empty if it can."""
    if holder is None or holder.name == node:
        return ""
    if session.driver != "builtin":
        return f"its agent runs on node {holder.name}"
    if not await asyncio.to_thread(Path(session.cwd).is_dir):  # a network file system may hang
        return f"its directory {session.cwd} is not on node {node}"
    return ""


def break_of(holder: NodeRow) -> Break:
    """Return the break of a turn whose node has ended. Its length is that of the store's clock."""
    cause = f"node {holder.name}, which worked on it, was lost"
    return Break(holder.silent_ms, cause, node_lost=True)
