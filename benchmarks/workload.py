"""What is written: seeded texts, conversations with a realistic mix of events, stores full of sessions."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path

from tests.actors import person

from holdfast.config import Home
from holdfast.domain.events import AnyEvent, session_stream
from holdfast.domain.events.parts import Call, Usage
from holdfast.domain.events.session import (
    InputReceived,
    ModelRequested,
    ModelResponded,
    SessionCreated,
    ToolCallFinished,
    ToolCallStarted,
    TurnFinished,
    TurnStarted,
)
from holdfast.store.contract import Append, CommandKey, Store, Write
from holdfast.store.sqlite.store import SqliteStore

TEXT_CHARACTERS = 370
"""Makes an InputReceived of about 480 bytes."""
BATCH = 1_000


class Workload:
    """Everything that is random comes from one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        letters = "eeeettaaooiinnsshhrrddlluucmfwygpbvk"
        self._words = ["".join(self._random.choices(letters, k=self._random.randint(2, 9))) for _ in range(2_000)]
        self._texts = [self._text(TEXT_CHARACTERS) for _ in range(500)]

    def _text(self, characters: int) -> str:
        return " ".join(self._random.choices(self._words, k=characters // 3))[:characters]

    def text(self) -> str:
        """Something that a person could have said."""
        return self._random.choice(self._texts)

    def id(self, bytes: int = 16) -> str:
        """As the gateway mints them: 16 bytes for a command, 8 for a session."""
        return self._random.randbytes(bytes).hex()

    def message(self, stream: str) -> Append:
        """One more thing said to a session, under a command id that begins with the time, as ours do."""
        id = f"{now():011x}{self.id()}"
        event = InputReceived(input=id, text=self.text(), mode="queue", by=person("bench"))
        return Append((Write(stream, (event,)),), now(), command=CommandKey(id, "d" * 32))

    def messages(self) -> Iterator[AnyEvent]:
        """Endless words of a person whom nobody answers."""
        while True:
            yield InputReceived(input=self.id(), text=self.text(), mode="queue", by=person("bench"))

    def turns(self, *, tools: bool) -> Iterator[AnyEvent]:
        """An endless conversation: with tools nine events a turn, without them a plain chat of five."""
        turn = 0
        while True:
            turn += 1
            id, call = self.id(), f"{turn}.1"
            yield InputReceived(input=id, text=self.text(), mode="queue", by=person("bench"))
            yield TurnStarted(turn=turn, inputs=[id], profile="demo")
            if tools:
                wanted = Call(call=call, tool="read", arguments='{"path":"notes/plan.md"}')
                yield from self._step(turn, 1, [wanted])
                yield ToolCallStarted(turn=turn, call=call, tool="read", effect="pure")
                yield ToolCallFinished(
                    turn=turn, call=call, tool="read", outcome="done", output=self.text(), duration_ms=3
                )
            yield from self._step(turn, 2 if tools else 1, [])
            yield TurnFinished(turn=turn, outcome="done", reason="the model was done")

    def _step(self, turn: int, step: int, calls: list[Call]) -> Iterator[AnyEvent]:
        yield ModelRequested(turn=turn, step=step, attempt=1, model="demo", context_version=turn)
        yield ModelResponded(
            turn=turn,
            step=step,
            text=self.text(),
            thinking="",
            calls=calls,
            finish_reason="tool_calls" if calls else "stop",
            usage=Usage(input_tokens=1_000, output_tokens=90),
            duration_ms=812,
        )


def now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def created(session: str, cwd: str = "/") -> SessionCreated:
    """The first event of every session."""
    return SessionCreated(session=session, profile="demo", cwd=cwd, title="bench", by=person("bench"))


@asynccontextmanager
async def opened(home: Path) -> AsyncIterator[SqliteStore]:
    """A store in a directory of its own."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    store = SqliteStore(Home(home).database)
    try:
        yield store
    finally:
        await store.close()


async def fill(store: Store, session: str, events: Iterable[AnyEvent], *, cwd: str = "/") -> str:
    """Store a session of these events, many in one transaction; the name of its stream."""
    stream = session_stream(session)
    rest = iter((created(session, cwd), *events))
    while part := tuple(islice(rest, BATCH)):
        await store.append(Append((Write(stream, part),), now()))
    return stream


async def rest(store: SqliteStore) -> None:
    """Wait until the search index has followed, so that it does not run beside what is measured next."""
    events = (await store.counts()).events
    while await store.indexed() != events:
        await asyncio.sleep(0.05)
