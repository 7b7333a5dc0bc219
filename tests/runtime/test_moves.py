"""Sessions that a node leaves to another one."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from holdfast.domain.commands import CreateSession
from holdfast.profiles import Profiles
from holdfast.sessions import Caller
from holdfast.store.contract import CommandKey
from holdfast.store.postgres.connections import Database
from holdfast.store.postgres.exchange import PostgresExchange
from holdfast.store.postgres.store import PostgresStore
from holdfast.timings import USUAL, StoreTimings
from tests.actors import person
from tests.eventually import PATIENCE, eventually
from tests.postgres_server import schemas
from tests.rig import GatewayRig

TIMINGS = replace(USUAL, store=StoreTimings(look=0.05, lease=PATIENCE))
SESSION = "5" * 16


def a_node(home: Path, database: Database, *, allowed: str) -> GatewayRig:
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(f'[profiles.demo]\nmodel = "demo"\nnodes = ["{allowed}"]\n')
    store = PostgresStore(database, home / "tasks", TIMINGS.store, home.name)
    return GatewayRig(home, Profiles(home / "config.toml"), store=store, timings=TIMINGS)


def count_requests(node: GatewayRig, heard: list[str]) -> None:
    """Note each request of another node before it is answered."""
    exchange = node.store.exchange
    assert isinstance(exchange, PostgresExchange) and exchange._answer is not None
    answer = exchange._answer

    async def count(body: bytes) -> bytes:
        heard.append(node.store.node)
        return await answer(body)

    exchange.answer_with(count)


async def test_nodes_that_disagree_do_not_hand_a_session_to_and_fro(tmp_path: Path) -> None:
    """Each has other settings: one is older, and cannot use the newest."""
    database = schemas.take()
    async with asyncio.timeout(PATIENCE), AsyncExitStack() as closing:
        one = a_node(tmp_path / "one", database, allowed="two")
        two = a_node(tmp_path / "two", database, allowed="one")
        for node in (one, two):
            closing.push_async_callback(node.close)
            assert isinstance(node.store, PostgresStore)
            await node.store.announce()
        caller = Caller(CommandKey("create-it", "digest"), person("test"))
        asked = CreateSession(text="say hello")
        await one.sessions.create(asked, session=SESSION, profile="demo", cwd="/", caller=caller, here=False)

        heard: list[str] = []
        for node in (one, two):
            count_requests(node, heard)

        async def is_told() -> bool:
            return bool(heard) and not one.runner.working and not two.runner.working

        one.runner.wake(SESSION)
        await eventually(is_told)
        await asyncio.sleep(0.5)
        assert heard == ["two"]
    schemas.give_back(database)
