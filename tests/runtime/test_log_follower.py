"""Following the log: trouble with one stream keeps no other waiting, and whatever ends is started again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.domain.errors import Gone, Unavailable
from holdfast.domain.events.session import SessionPinned
from holdfast.store.contract import Append, Subscription, Write
from holdfast.store.log_follower import LogFollower, growing_pause
from holdfast.store.sqlite.store import SqliteStore
from tests.actors import person
from tests.eventually import eventually
from tests.store.conformance import created

A, B = "a" * 16, "b" * 16


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(tmp_path / "holdfast.db")
    yield store
    await store.close()


class Listener:
    """Remembers what it was told; the next errors are raised first."""

    def __init__(self, store: SqliteStore, *, first_pause: float = 0.01) -> None:
        self.heard: list[tuple[str, set[str]]] = []
        self.swept = 0
        self.errors: dict[str, list[Exception]] = {}
        self.follower = LogFollower(
            store,
            self.handle,
            wanted=self.wanted,
            name="the listener",
            sweep=self.sweep,
            sweep_seconds=3600,
            first_pause=first_pause,
        )

    def wanted(self, stream: str, kind: str) -> bool:
        return kind != "SessionPinned"

    async def handle(self, stream: str, kinds: set[str]) -> None:
        if errors := self.errors.get(stream):
            raise errors.pop(0)
        self.heard.append((stream, kinds))

    async def sweep(self) -> None:
        if errors := self.errors.get("sweep"):
            raise errors.pop(0)
        self.swept += 1

    async def has_heard(self, session: str) -> bool:
        return (f"session/{session}", {"SessionCreated"}) in self.heard


async def create(store: SqliteStore, session: str) -> None:
    await store.append(Append((Write(f"session/{session}", (created(session),)),), 1))


async def test_a_stream_that_fails_is_tried_again_and_keeps_no_other_waiting(store: SqliteStore) -> None:
    listener = Listener(store)
    listener.errors[f"session/{A}"] = [Unavailable("The disk is full."), RuntimeError("a bug")]
    await listener.follower.start()
    await create(store, A)
    await create(store, B)
    await eventually(lambda: listener.has_heard(B))
    await eventually(lambda: listener.has_heard(A))

    async def well() -> bool:
        return not listener.follower.state.problem

    await eventually(well)
    assert listener.errors[f"session/{A}"] == []
    assert listener.follower.state.since > 0, "there was a problem"
    await listener.follower.stop()


async def test_the_problem_is_named_while_it_lasts(store: SqliteStore) -> None:
    listener = Listener(store, first_pause=3600)
    listener.errors["sweep"] = [RuntimeError("a bug")]
    await listener.follower.start()

    async def named() -> bool:
        return listener.follower.state.problem == "its sweep is tried again: RuntimeError: a bug"

    await eventually(named)
    await create(store, A)
    await eventually(lambda: listener.has_heard(A))
    assert listener.follower.state.problem
    await listener.follower.stop()


async def test_it_is_called_only_for_what_it_wants(store: SqliteStore) -> None:
    listener = Listener(store)
    await listener.follower.start()
    await create(store, A)
    await eventually(lambda: listener.has_heard(A))
    pinned = SessionPinned(pinned=True, by=person("ann"))
    await store.append(Append((Write(f"session/{A}", (pinned,)),), 1))
    await create(store, B)
    await eventually(lambda: listener.has_heard(B))
    assert [stream for stream, _ in listener.heard].count(f"session/{A}") == 1
    await listener.follower.stop()


async def test_what_was_deleted_is_not_tried_again(store: SqliteStore) -> None:
    listener = Listener(store)
    listener.errors[f"session/{A}"] = [Unavailable("The disk is full."), Gone("It was deleted.")]
    await listener.follower.start()
    await create(store, A)

    async def is_over() -> bool:
        return not listener.errors[f"session/{A}"] and not listener.follower.state.problem

    await eventually(is_over)
    await create(store, B)
    await eventually(lambda: listener.has_heard(B))
    assert not await listener.has_heard(A)
    assert listener.follower.state.problem == ""
    await listener.follower.stop()


async def test_a_following_that_ends_is_started_again_and_sweeps(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = Listener(store)
    await listener.follower.start()

    async def swept() -> bool:
        return listener.swept > 0

    await eventually(swept)
    once = [RuntimeError("the subscription broke")]
    take = type(store.subscribe(None)).drain

    def broken(subscription: Subscription) -> dict[str, set[str]]:
        if once:
            raise once.pop()
        return take(subscription)

    monkeypatch.setattr(type(store.subscribe(None)), "drain", broken)
    await create(store, A)

    async def again() -> bool:
        return listener.swept > 1

    await eventually(again)
    assert listener.follower.state.restarts == 1
    await create(store, B)
    await eventually(lambda: listener.has_heard(B))
    await listener.follower.stop()


def test_the_pause_grows_up_to_a_minute() -> None:
    assert [growing_pause(failures) for failures in (1, 2, 3, 99)] == [0.5, 1.0, 2.0, 60.0]
