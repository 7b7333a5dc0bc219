"""Child: one node of a cluster, which appends, claims and starts cards with many writers as long as it is told."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import islice
from pathlib import Path
from typing import Any

from tests.actors import person

from benchmarks.workload import Workload, fill, now
from holdfast.domain.events import card_stream
from holdfast.domain.events.card import CardCreated, RunStarted
from holdfast.store.contract import Append, Write
from holdfast.store.postgres.connections import Database
from holdfast.store.postgres.store import PostgresStore, open_store

AT_ONCE = 200


class Node:
    """A store among several on one database."""

    def __init__(self, store: PostgresStore, work: Workload) -> None:
        self._store, self._work = store, work
        self._streams: list[str] = []
        self._cards: list[str] = []

    async def fill(self, sessions: int) -> None:
        """So many sessions of 100 events each."""
        for _ in range(sessions):
            events = islice(self._work.turns(tools=False), 100)
            self._streams.append(await fill(self._store, self._work.id(8), events))

    async def add_cards(self, count: int) -> None:
        """So many more cards that are ready."""
        made = [self._work.id(4) for _ in range(count)]
        for start in range(0, count, AT_ONCE):
            writes = [Write(card_stream(id), (self._card(id),), expect=0) for id in made[start : start + AT_ONCE]]
            await self._store.append(Append(tuple(writes), now()))
        self._cards += made

    def _card(self, id: str) -> CardCreated:
        text = self._work.text()
        by = person("bench")
        return CardCreated(card=id, board="default", title=text[:60], body=text, by=by, status="ready", profile="demo")

    async def append(self, writer: int) -> None:
        """One more message to the session of a writer."""
        await self._store.append(self._work.message(self._streams[writer]))

    async def claim(self, _: int) -> None:
        """The lease of a session that nobody has."""
        await self._store.claim(f"session/{self._work.id(8)}", holder="bench")

    async def start_card(self, _: int) -> None:
        """The run of a card that is ready, by its version."""
        card, session, task = self._cards.pop(), self._work.id(8), self._work.id(8)
        run = RunStarted(
            card=card,
            run=1,
            session=session,
            task=task,
            profile="demo",
            resumed_run=0,
            after_turn=0,
            workspace="/tmp",
            workspace_state="",
        )
        await self._store.append(Append((Write(card_stream(card), (run,), expect=1),), now()))

    async def repeat(self, work: Callable[[int], Awaitable[None]], writers: int, seconds: float) -> dict[str, Any]:
        """Let each writer do it again and again, each waiting for its own; how often, and how long that took."""
        started = time.perf_counter()

        async def one(writer: int) -> int:
            done = 0
            while time.perf_counter() < started + seconds:
                await work(writer)
                done += 1
            return done

        counts = await asyncio.gather(*(one(writer) for writer in range(writers)))
        return {"count": sum(counts), "seconds": time.perf_counter() - started}

    async def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        """Do what was asked."""
        match message:
            case {"sessions": count}:
                await self.fill(count)
            case {"cards": count}:
                await self.add_cards(count)
            case {"do": name, "writers": writers, "seconds": seconds}:
                work = {"append": self.append, "claim": self.claim, "start": self.start_card}[name]
                return await self.repeat(work, writers, seconds)
            case _:
                raise ValueError(message)
        return {}


async def main(url: str, name: str, seed: int) -> None:
    """Answer until the input ends."""
    store = await open_store(Database(url), Path("/nowhere"), node=name)
    try:
        node = Node(store, Workload(seed))
        print("{}", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps(await node.answer(json.loads(line))), flush=True)
    finally:
        await store.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
