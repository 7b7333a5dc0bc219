"""Removes the workspaces of archived cards, each on the node that has it. Unsaved work is kept."""

from __future__ import annotations

import msgspec

from holdfast.board import workspace
from holdfast.board.cards import Cards
from holdfast.domain.card import Card
from holdfast.domain.errors import HoldfastError
from holdfast.nodes import Nodes
from holdfast.store.contract import Store

ANSWER_SECONDS = 10.0


class WorkspaceRequest(msgspec.Struct, frozen=True, tag=True):
    """Asks a node why it keeps the workspace of an archived card; with `remove`, to remove it if it can."""

    card: str
    remove: bool


class WorkspaceCleanup:
    """Removes workspaces, and asks other nodes to remove theirs."""

    def __init__(self, store: Store, *, cards: Cards, nodes: Nodes) -> None:
        self._store = store
        self._cards = cards
        self._nodes = nodes
        root = cards.root
        self.pending = {path.name for path in root.iterdir()} if root.is_dir() else set[str]()
        """Cards whose workspace may have to be removed; at first all, since the last gateway may have been killed."""

    async def clean(self, card: Card) -> str:
        """Remove the workspaces of an archived card unless they have unsaved work; return why one was kept."""
        there = await self._ask_others(WorkspaceRequest(card.id, remove=True), card)
        return "; ".join(filter(None, [await self._clean_here(card), *there]))

    async def unsaved_work(self, card: Card) -> str:
        """Return the unsaved work in the workspaces of a card; empty when there is none."""
        there = await self._ask_others(WorkspaceRequest(card.id, remove=False), card)
        return "; ".join(filter(None, [await self._unsaved_work_here(card), *there]))

    async def answer(self, request: WorkspaceRequest) -> bytes:
        """Carry out the request of another node."""
        card = await self._cards.get(request.card)
        kept = await (self._clean_here(card) if request.remove else self._unsaved_work_here(card))
        return kept.encode()

    def note_moved(self, id: str) -> None:
        """Look later whether a card was archived, perhaps through another node that could not ask this one."""
        if self._store.is_shared and (self._cards.root / id).is_dir():
            self.pending.add(id)

    async def clean_later(self, id: str) -> None:
        """Remove the workspace of a card whose worker was still running when the card was archived."""
        card = await self._cards.get(id)
        if card.status == "archived":
            await self._clean_here(card)
        else:
            self.pending.discard(id)

    async def _clean_here(self, card: Card) -> str:
        busy = await self._user_of_workspace(card)
        if busy:
            self.pending.add(card.id)
            return f"its worker is still active ({busy}); it is removed later if nothing would be lost"
        self.pending.discard(card.id)
        root, mounts = self._cards.root, self._cards.mounts
        try:
            lost = await mounts.run_within(None, lambda: workspace.unsaved_work(card, root))
            if not lost and (await self._cards.get(card.id)).status == "archived":
                await mounts.run_within(None, lambda: workspace.remove(card, root))
        except (workspace.Unusable, OSError) as error:
            return str(error)
        return lost

    async def _unsaved_work_here(self, card: Card) -> str:
        root = self._cards.root
        try:
            return await self._cards.mounts.run_within(None, lambda: workspace.unsaved_work(card, root))
        except (workspace.Unusable, OSError) as error:
            return str(error)

    async def _user_of_workspace(self, card: Card) -> str:
        """Return what may still write to its workspace."""
        left = await self._cards.processes.all(card)
        return f"task {left[0].id} is running" if left else await self._cards.processes.previous_worker(card)

    async def _ask_others(self, request: WorkspaceRequest, card: Card) -> list[str]:
        """Return the answers of the other nodes that have a workspace of a card in their home."""
        nodes = {run.started.node for run in card.runs} - {self._store.node}
        if self._store.exchange is None or not nodes or card.workspace.startswith("dir:"):
            return []
        return [await self._ask(node.name, request) for node in await self._nodes.all() if node.name in nodes]

    async def _ask(self, node: str, request: WorkspaceRequest) -> str:
        assert self._store.exchange is not None
        away = f"it is not known what is on node {node}, which does not answer; it removes that unless it would be lost"
        if not any(known.lives for known in await self._nodes.all() if known.name == node):
            return away
        try:
            answer = await self._store.exchange.ask(node, msgspec.msgpack.encode(request), within=ANSWER_SECONDS)
        except HoldfastError:
            return away
        return answer.decode()
