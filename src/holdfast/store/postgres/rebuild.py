"""Rebuilds the projections from the stored events, as `doctor --rebuild` does. No gateway may run meanwhile."""

from __future__ import annotations

from holdfast.domain.events import Record
from holdfast.store.contract import PAGE_BYTES, Append, Write
from holdfast.store.postgres.connections import TURN, WRITER, Database, connect
from holdfast.store.postgres.facts import KnownFacts, MissingFacts, Needs, needs_of_append
from holdfast.store.postgres.log_reads import checked
from holdfast.store.postgres.queries import statement
from holdfast.store.postgres.transaction import BatchTransaction
from holdfast.store.postgres.wire import SqlStatement, Wire
from holdfast.store.projection import project
from holdfast.store.replay import Replay
from holdfast.store.tables import PROJECTIONS

PAGE = 2_000
TRIP_SECONDS = 600.0


async def rebuild_projections(database: Database) -> tuple[int, set[str]]:
    """Return how many events were used, and the streams that stop at one that cannot be read. In one transaction."""
    settings = WRITER | {"statement_timeout": 0, "idle_in_transaction_session_timeout": 0}
    wire = await connect(database, settings)
    try:
        turn = statement("take_turn", {"key": TURN, "schema": database.schema})
        emptied = [SqlStatement(f"DELETE FROM {table}") for table in PROJECTIONS]  # noqa: S608  # only names of ours
        await _run(wire, [SqlStatement("BEGIN"), turn, *emptied])
        made = await _replay(wire)
        await _run(wire, [statement("recount"), SqlStatement("COMMIT")])
        return made
    finally:
        wire.close()


async def _run(wire: Wire, statements: list[SqlStatement]) -> None:
    await wire.run(statements, within=TRIP_SECONDS)


async def _replay(wire: Wire) -> tuple[int, set[str]]:
    count, after, replay = 0, 0, Replay()
    while True:
        asked = {"after": after, "limit": PAGE, "size": PAGE_BYTES}
        (answer,) = await wire.run([statement("lines_to_index", asked)], within=TRIP_SECONDS)
        if not answer.rows:
            return count, replay.stopped
        after = int(answer.rows[-1][2])
        damaged: list[bytes] = []
        page = checked(answer, PAGE, PAGE_BYTES, skipped=damaged)
        for line in damaged:
            replay.stop(line)
        records = [record for line in page.lines if (record := replay.read(line)) is not None]
        count += len(records)
        await _project(wire, records)


async def _project(wire: Wire, records: list[Record]) -> None:
    """Write the rows of a page: what is known of them is asked first, and what was forgotten to ask, later."""
    known, needs = KnownFacts(0), Needs()
    for record in records:
        needs.add(needs_of_append(Append((Write(record.stream, (record.event,)),), record.at)))
    needs.streams.clear()
    needs.card_number = False
    while True:
        known.take(needs, iter(await wire.run(known.statements(needs), within=TRIP_SECONDS)))
        tx = BatchTransaction(known, {})
        try:
            for record in records:
                project(record, tx)
        except MissingFacts as missing:
            needs = missing.needs
            continue
        await _run(wire, tx.statements())
        return
