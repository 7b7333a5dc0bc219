"""The nodes that there are, and which of them fit: what names, labels and profiles say about where work runs."""

from __future__ import annotations

from dataclasses import replace
from socket import gethostname

from holdfast.domain.errors import NodeAway, Rejected
from holdfast.domain.events import session_stream
from holdfast.domain.placement import KnownNode, Placement
from holdfast.domain.session import Session
from holdfast.profiles import Profiles
from holdfast.settings import ProfileSettings
from holdfast.shared_directories import SharedDirectories
from holdfast.store.contract import Store
from holdfast.store.rows import NodeRow
from holdfast.timings import USUAL, RuntimeTimings


class Nodes:
    """Knows the nodes by the store and the settings."""

    def __init__(self, store: Store, profiles: Profiles, timings: RuntimeTimings = USUAL.runtime) -> None:
        self._store = store
        self._profiles = profiles
        self._longest_wait_ms = int(timings.node_wait * 1000)
        self.shared = SharedDirectories(store, profiles)

    async def all(self) -> list[KnownNode]:
        """Return every node that was not forgotten, by name. An embedded store has one, which is always there."""
        if not self._store.is_shared:
            own = self._profiles.settings.node
            return [KnownNode(self._store.node, frozenset({*own.labels, own.name or gethostname()}))]
        found: dict[str, KnownNode] = {}
        for row in await self._store.nodes():  # newest first
            lives = row.ended_at is None
            node = KnownNode(
                row.name,
                frozenset(row.label_list),
                takes_work=lives and not row.draining,
                lives=lives,
                silent_ms=row.silent_ms,
            )
            found.setdefault(row.name, node)
        return [found[name] for name in sorted(found)]

    async def are_several(self) -> bool:
        """Return whether there is more than one, so that it matters which one works on something."""
        return self._store.is_shared and len(await self.all()) > 1

    async def check(self, word: str) -> None:
        """Reject a text that is neither the name nor a label of a node."""
        known = await self.all()
        if word and not any(node.is_called(word) for node in known):
            names = ", ".join(_described(node) for node in known)
            raise Rejected(f"No node is called or labelled {word[:80]!r}.", hint=f"The nodes are: {names}.")

    async def node_for_command(self, word: str) -> str:
        """Return the other node that a command is for; empty if this one fits. NodeAway if none is there."""
        await self.check(word)
        placement, known = Placement(node=word), await self.all()
        if await self.fits_here(placement):
            return ""
        if waits := placement.why_waits(known):
            raise NodeAway(waits.replace("It waits for", "The command was not started: it is for"))
        return next(node.name for node in known if placement.fits(node) and node.takes_work)

    def placement(self, profile: str, node: str) -> Placement:
        """Return where something with this profile may run that asks for this name or label."""
        allowed = self._profiles.settings.profiles.get(profile, ProfileSettings()).nodes
        return Placement(node=node, profile=profile, allowed=tuple(allowed))

    async def of_session(self, session: Session, holder: NodeRow | None, *, node: str | None = None) -> Placement:
        """Return where a session may run: the node that has its directory or its agent has it alone.

        `holder` is the last life that worked on it; `node` is what it is to ask for instead of what it does.
        """
        placement = self.placement(session.profile, session.node if node is None else node)
        last = session.home if holder is None else holder.name
        if not self._store.is_shared or last not in {known.name for known in await self.all()}:
            return placement  # the node was forgotten, or it does not matter
        why = "its agent runs there" if session.driver != "builtin" else await self.shared.why_private(session.cwd)
        return replace(placement, bound_to=last, bound_because=why) if why else placement

    async def waiting(self, session: Session) -> Placement:
        """Return where a session may run that no node works on."""
        return await self.of_session(session, await self.holder(session))

    def why_waits_long(self, placement: Placement, nodes: list[KnownNode], *, waited_ms: int) -> str:
        """Return for which node something has waited for so long that people are notified; empty if it has not."""
        return placement.why_waits_long(nodes, waited_ms=waited_ms, limit_ms=self._longest_wait_ms)

    async def holder(self, session: Session) -> NodeRow | None:
        """Return the last life that worked on a session; None if none did, or if there is only one node."""
        return await self._store.lease_holder(session_stream(session.id)) if self._store.is_shared else None

    async def hosts(self, sessions: list[str]) -> dict[str, str]:
        """Return the nodes of sessions as far as they are known; none where there is only one node."""
        if not await self.are_several():
            return {}
        names = {node.name for node in await self.all()}
        found = await self._store.nodes_of_sessions(sessions)
        return {session: node for session, node in found.items() if node in names}

    async def fits_here(self, placement: Placement) -> bool:
        """Return whether this node may do it."""
        return placement.is_free or any(
            placement.fits(node) for node in await self.all() if node.name == self._store.node
        )


def _described(node: KnownNode) -> str:
    return f"{node.name} ({', '.join(sorted(node.labels))})" if node.labels else node.name
