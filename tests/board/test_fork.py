"""A fork of a worker's session: it works where the worker did, and what the worker cost is counted once."""

from __future__ import annotations

from pathlib import Path

from holdfast.domain.commands import ForkSession, SendMessage
from holdfast.domain.events import session_stream
from holdfast.domain.events.session import ToolCallFinished
from tests.board.rig import BoardRig

CARD = "c0ffee01"
FORK, AGAIN = "fedcba9876543210", "fedcba9876543211"


async def test_a_fork_of_a_workers_session_works_in_its_workspace_and_costs_nothing_yet(home: Path) -> None:
    rig = await BoardRig(home).start()
    await rig.create(CARD, "write a.txt found\ncomplete done")
    card = await rig.until(CARD, lambda card: card.status == "done")
    worker = await rig.rest(card.runs[0].started.session)
    await rig.sessions.fork(worker.id, ForkSession(), session=FORK, caller=rig.caller())
    await rig.sessions.fork(FORK, ForkSession(), session=AGAIN, caller=rig.caller())

    spent = {id: [row.output_tokens for row in await rig.store.turns(id)] for id in (worker.id, FORK)}
    assert spent[worker.id][0] and spent[FORK] == [0]
    assert (await rig.sessions.get(FORK)).size > 0, "what the model will see is not nothing"

    for session in (FORK, AGAIN):
        await rig.say(session, SendMessage(text="read a.txt"))
        await rig.until_session(session, lambda state: state.turns == 2 and state.turn is None)
        records = await rig.store.load(session_stream(session), after=0)
        found = [record.event for record in records if isinstance(record.event, ToolCallFinished)][-1]
        assert (found.outcome, found.output) == ("done", "found\n")
    await rig.close()
