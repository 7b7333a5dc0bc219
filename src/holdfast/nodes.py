"""The nodes that there are, and which of them fit: what names, labels and profiles say about where work runs."""

from __future__ import annotations

from socket import gethostname

from holdfast.domain.errors import NodeAway, Rejected
from holdfast.domain.placement import KnownNode, Placement
from holdfast.profiles import Profiles
from holdfast.settings import ProfileSettings
from holdfast.shared_directories import SharedDirectories
from holdfast.store.contract import Store


class Nodes:
    """Knows the nodes by the store and the settings."""

    def __init__(self, store: Store, profiles: Profiles) -> None:
        self._store = store
        self._profiles = profiles
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
        """Reject a word that is neither the name nor a label of a node."""
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

    async def fits_here(self, placement: Placement) -> bool:
        """Return whether this node may do it."""
        return placement.is_free or any(
            placement.fits(node) for node in await self.all() if node.name == self._store.node
        )


def _described(node: KnownNode) -> str:
    return f"{node.name} ({', '.join(sorted(node.labels))})" if node.labels else node.name
