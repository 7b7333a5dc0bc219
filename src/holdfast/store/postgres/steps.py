"""An open transaction for an operation that asks and writes in turn, such as those of devices and of the outbox."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.store.contract import Append
from holdfast.store.decisions import encode_writes
from holdfast.store.postgres.facts import KnownFacts, Needs
from holdfast.store.postgres.queries import statement
from holdfast.store.postgres.transaction import BatchTransaction, do_append
from holdfast.store.postgres.wire import ResultRows, Wire


class Steps:
    """An open transaction for an operation that asks and writes in turn; it has the lock."""

    def __init__(self, wire: Wire, known: KnownFacts, tx: BatchTransaction, within: float) -> None:
        self._wire = wire
        self._known = known
        self._tx = tx
        self._within = within

    @property
    def last_seq(self) -> int:
        """The seq of the last event."""
        return self._known.last_seq

    @property
    def has_peers(self) -> bool:
        """Whether other nodes have the store open."""
        return self._known.has_peers

    async def run(self, query: str, parameters: Mapping[str, object] | None = None) -> ResultRows:
        """Run a named query."""
        (answer,) = await self._wire.run([statement(query, parameters)], within=self._within)
        return answer

    async def count_change(self, what: str) -> None:
        """Count a change of rows beside the log, by which other nodes notice it; they are informed after the commit."""
        await self.run("count_change", {"name": what})
        self._tx.has_news = True

    async def facts(self, needs: Needs) -> BatchTransaction:
        """What is known of these, for the functions of `decisions.py`."""
        answers = await self._wire.run(self._known.statements(needs), within=self._within)
        self._known.take(needs, iter(answers))
        return self._tx

    async def append(self, append: Append, needs: Needs) -> None:
        """Append events in this transaction, too."""
        do_append(await self.facts(needs), append, encode_writes(append))
