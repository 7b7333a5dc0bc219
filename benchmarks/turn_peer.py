"""Child, in a venv of the peers' own: the same turns as ours, by a runtime that also stores every step.

A turn is: the model asks for a tool, the tool reads a file, the model answers. The model answers at once. Knows nothing
of Holdfast: the standard library and the peer, no more.

    turn_peer.py langgraph|dbos HOME FILE

{"sessions": [id, …], "earlier": n} begins conversations that have n messages already. {"seconds": s} lets all of them
make turns for so long; {"load": id} reads one of them from the disk.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TEXT = "x" * 370


@dataclass(frozen=True, slots=True)
class Runtime:
    """What a peer can do."""

    turn: Callable[[str], Awaitable[None]]
    fill: Callable[[str, int], Awaitable[None]]
    load: Callable[[str], Awaitable[int]]
    """How many messages it read."""


async def langgraph(home: Path, notes: Path) -> Runtime:
    """LangGraph with a checkpoint after every step, on SQLite that syncs every commit."""
    import aiosqlite  # type: ignore[import-not-found]
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage  # type: ignore[import-not-found]
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver  # type: ignore[import-not-found]
    from langgraph.graph import END, START, MessagesState, StateGraph  # type: ignore[import-not-found]

    connection = await aiosqlite.connect(home / "langgraph.db")
    saver = AsyncSqliteSaver(connection)
    await saver.setup()
    await connection.execute("PRAGMA synchronous=FULL")

    async def model(state: dict[str, Any]) -> dict[str, Any]:
        if isinstance(state["messages"][-1], HumanMessage):
            call = {"name": "read", "args": {"path": "notes.txt"}, "id": "1"}
            return {"messages": [AIMessage("", tool_calls=[call])]}
        return {"messages": [AIMessage(f"read done: {state['messages'][-1].content}")]}

    async def read(_: dict[str, Any]) -> dict[str, Any]:
        return {"messages": [ToolMessage(notes.read_text(), tool_call_id="1")]}

    def after_model(state: dict[str, Any]) -> str:
        return "read" if state["messages"][-1].tool_calls else END

    builder = StateGraph(MessagesState)
    builder.add_node("model", model)
    builder.add_node("read", read)
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", after_model, ["read", END])
    builder.add_edge("read", "model")
    graph = builder.compile(checkpointer=saver)

    def thread(session: str) -> dict[str, Any]:
        return {"configurable": {"thread_id": session}}

    async def turn(session: str) -> None:
        message = {"messages": [HumanMessage("read notes.txt")]}
        ended = await graph.ainvoke(message, thread(session), durability="sync")
        assert ended["messages"][-1].content == f"read done: {notes.read_text()}"

    async def fill(session: str, messages: int) -> None:
        past = [AIMessage(TEXT) if number % 2 else HumanMessage(TEXT) for number in range(messages)]
        await graph.aupdate_state(thread(session), {"messages": past}, as_node="model")

    async def load(session: str) -> int:
        return len((await graph.aget_state(thread(session))).values["messages"])

    return Runtime(turn, fill, load)


async def dbos(home: Path, notes: Path) -> Runtime:
    """DBOS on SQLite: the turn is a workflow, the model's answers and the tool's result are its steps."""
    from dbos import DBOS  # type: ignore[import-not-found]

    DBOS(config={"name": "bench", "system_database_url": f"sqlite:///{home / 'dbos.db'}", "log_level": "ERROR"})

    @DBOS.step()  # type: ignore[untyped-decorator]
    async def model(_: str, result: str) -> str:
        return f"read done: {result}" if result else "read notes.txt"

    @DBOS.step()  # type: ignore[untyped-decorator]
    async def read() -> str:
        return notes.read_text()

    @DBOS.workflow()  # type: ignore[untyped-decorator]
    async def work(session: str, _: str) -> str:
        await model(session, "")
        return str(await model(session, await read()))

    DBOS.launch()

    async def turn(session: str) -> None:
        assert await work(session, "read notes.txt") == f"read done: {notes.read_text()}"

    async def fill(_: str, __: int) -> None:
        """It stores no conversation: whoever uses it does."""

    async def load(_: str) -> int:
        return 0

    return Runtime(turn, fill, load)


async def turns(runtime: Runtime, session: str, until: float) -> int:
    """Turns of one conversation, one after the other; how many."""
    count = 0
    while count == 0 or time.perf_counter() < until:
        await runtime.turn(session)
        count += 1
    return count


async def answer(runtime: Runtime, sessions: list[str], message: dict[str, Any]) -> dict[str, float]:
    """Do what was asked; how much it was, how long it took, and the processor time."""
    count, cpu, started = 0, time.process_time(), time.perf_counter()
    match message:
        case {"sessions": given, "earlier": earlier}:
            sessions[:] = given
            for session in sessions:
                await runtime.fill(session, earlier)
        case {"seconds": seconds}:
            count = sum(await asyncio.gather(*(turns(runtime, one, started + seconds) for one in sessions)))
        case _:
            count = await runtime.load(message["load"])
    return {"count": count, "seconds": time.perf_counter() - started, "cpu": time.process_time() - cpu}


async def main(name: str, home: Path, notes: Path) -> None:
    """Answer until the input ends."""
    runtime = await {"langgraph": langgraph, "dbos": dbos}[name](home, notes)
    sessions: list[str] = []
    print("{}", flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        print(json.dumps(await answer(runtime, sessions, json.loads(line))), flush=True)
    os._exit(0)  # their threads would keep it alive


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))
