"""A full disk is reported once, without the outbox, and again after it had space in between."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from holdfast.notify.channel import TryAgain
from holdfast.notify.destinations import Destination
from holdfast.notify.service import MEANING, DiskWatch
from holdfast.store.contract import StoreHealth
from tests.notify.test_sender import Notebook, Post, post  # noqa: F401  # a fixture
from tests.store.conformance_outbox import TO


async def test_a_full_disk(post: Post) -> None:  # noqa: F811
    store = SimpleNamespace(health=StoreHealth())
    quiet = Notebook()
    post.destinations.found = {
        TO: Destination(TO, post.channel, frozenset({"disk_full"}), when_absent=True, details=False),
        "webhooks.other": Destination("webhooks.other", quiet, frozenset({"done"}), when_absent=True, details=False),
    }
    watch = DiskWatch(cast(Any, store), cast(Any, post.destinations), post.sender)
    await watch.look()
    assert post.channel.messages == []
    store.health = StoreHealth(writable=False, problem="The disk is full.", since=1)
    post.channel.results = [TryAgain("away")]
    for _ in range(4):
        await watch.look()
    assert [message.text for message in post.channel.messages] == [f"The disk is full. {MEANING}"] * 2, (
        "until it arrived"
    )
    store.health = StoreHealth()
    await watch.look()
    store.health = StoreHealth(writable=False, problem="The disk is full.", since=2)
    await watch.look()
    assert len(post.channel.messages) == 3
    assert quiet.messages == []
