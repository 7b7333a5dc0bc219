"""Child, in a venv of the peer's own: its store answers "append for 30 ms now" and "load it all".

Knows nothing of Holdfast: the standard library and the peer, no more.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

SESSION = "bench"
FILLED = "filled"
Append = Callable[[str, str], Awaitable[object]]
Load = Callable[[str], Awaitable[list[Any]]]


def hermes(home: Path) -> tuple[Append, Load]:
    """hermes-agent's SessionDB, as its own gateway uses it."""
    from hermes_state import SessionDB  # type: ignore[import-not-found]

    db = SessionDB(home / "state.db")
    for session in (SESSION, FILLED):
        db.create_session(session, source="bench")

    async def append(session: str, text: str) -> object:
        return db.append_message(session, "user", text)

    async def load(session: str) -> list[Any]:
        return list(db.get_messages_as_conversation(session))

    return append, load


def openai(home: Path) -> tuple[Append, Load]:
    """openai-agents' SQLiteSession."""
    from agents import SQLiteSession  # type: ignore[import-not-found]

    sessions = {name: SQLiteSession(name, home / "openai.db") for name in (SESSION, FILLED)}

    async def append(session: str, text: str) -> object:
        return await sessions[session].add_items([{"role": "user", "content": text}])

    async def load(session: str) -> list[Any]:
        return list(await sessions[session].get_items())

    return append, load


async def answer(append: Append, load: Load, texts: list[str], message: dict[str, Any]) -> dict[str, object]:
    """Do what was asked; how much it was and how long it took."""
    count, started = 0, time.perf_counter()
    match message:
        case {"texts": given}:
            texts[:] = given
        case {"append": seconds}:
            while time.perf_counter() - started < seconds:
                await append(SESSION, texts[count % len(texts)])
                count += 1
        case {"fill": messages}:
            while count < messages:
                await append(FILLED, texts[count % len(texts)])
                count += 1
        case _:
            count = len(await load(FILLED))
    return {"count": count, "seconds": time.perf_counter() - started}


async def main(name: str, home: Path) -> None:
    """Answer until the input ends."""
    append, load = {"hermes": hermes, "openai": openai}[name](home)
    texts: list[str] = []
    print("{}", flush=True)
    while line := sys.stdin.readline():
        print(json.dumps(await answer(append, load, texts, json.loads(line))), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
