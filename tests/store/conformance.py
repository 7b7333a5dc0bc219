"""What every store must do, in tests. `holdfast/store/contract.py` says the same in words.

An engine is plugged in by a subclass whose fixture `engine` can open a store, again and again at the
same place (see test_sqlite.py). Nothing in here knows which engine it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Protocol

import msgspec
import pytest
from msgspec import structs

from holdfast.domain.errors import Conflict, Fenced, Gone, LostDuty, NotFound, Unavailable
from holdfast.domain.events import SYSTEM, AnyEvent, Record, decode, session_stream, task_stream
from holdfast.domain.events.parts import Usage
from holdfast.domain.events.problem import Problem
from holdfast.domain.events.session import (
    InputReceived,
    ModelFailed,
    ModelInterrupted,
    ModelRequested,
    ModelResponded,
    SessionArchived,
    SessionCreated,
    SessionRenamed,
    ToolCallFinished,
    TurnFinished,
    TurnStarted,
)
from holdfast.domain.events.system import GatewayStarted, SessionDeleted
from holdfast.domain.events.task import (
    ProcessStarted,
    TaskBackgrounded,
    TaskFinished,
    TaskOutcome,
    TaskPinned,
    TaskPruned,
    TaskResumed,
    TaskStarted,
    TaskStopRequested,
)
from holdfast.store.contract import DUTY_LEASE, Append, Appended, CommandKey, Hit, Lease, Store, Write
from holdfast.store.device_store import DeviceRow, PushRow
from holdfast.store.reads import SessionCursor, TaskFilter
from holdfast.store.rows import PartialText, StoreCounts, TaskRow
from tests.actors import person
from tests.eventually import eventually

A, B, C = "a" * 16, "b" * 16, "ab" + "c" * 14
STREAM, OTHER = session_stream(A), session_stream(B)
AT = 1_000
SEARCH_LIMIT = 10
EVERYTHING = TaskFilter()


class Engine(Protocol):
    """A place where a store lives."""

    async def open(self) -> Store:
        """Open it, as the next gateway after this one would."""


# --- events in one line ---------------------------------------------------------------------------


def created(session: str, title: str = "", node: str = "") -> SessionCreated:
    return SessionCreated(session=session, profile="demo", cwd="/", title=title, by=person("t"), node=node)


def said(text: str = "hello", input: str = "i") -> InputReceived:
    return InputReceived(input=input, text=text, mode="queue", by=person("t"))


def started(turn: int = 1, *inputs: str) -> TurnStarted:
    return TurnStarted(turn=turn, inputs=list(inputs), profile="demo")


def finished(turn: int = 1) -> TurnFinished:
    return TurnFinished(turn=turn, outcome="done", reason="enough")


def asked(step: int = 1) -> ModelRequested:
    return ModelRequested(turn=1, step=step, attempt=1, model="m", context_version=1)


def responded(text: str = "hi", step: int = 1, turn: int = 1) -> ModelResponded:
    usage = Usage(input_tokens=2, output_tokens=3)
    return ModelResponded(
        turn=turn, step=step, text=text, thinking="", calls=[], finish_reason="stop", usage=usage, duration_ms=1
    )


def deleted(session: str) -> SessionDeleted:
    return SessionDeleted(session=session, title="", events=1, by=person("t"))


async def write(
    store: Store,
    stream: str,
    *events: AnyEvent,
    expect: int | None = None,
    command: CommandKey | None = None,
    lease: Lease | None = None,
    at: int = AT,
) -> Appended:
    return await store.append(Append((Write(stream, events, expect),), at, command, lease))


async def session(store: Store, id: str, *texts: str, at: int = AT, node: str = "") -> str:
    """A session with these messages; `node` has its directory."""
    stream = session_stream(id)
    events = [said(text, f"{id}-{number}") for number, text in enumerate(texts)]
    await write(store, stream, created(id, node=node), *events, at=at)
    return stream


def device(id: str, *, at: int = AT) -> DeviceRow:
    return DeviceRow(id, f"hash of {id}", f"name of {id}", at, at)


def pushed(device: str, endpoint: str) -> PushRow:
    return PushRow(device, endpoint, "a key", "a secret", ["question", "done"], True, False, AT)


async def let_in(store: Store, *ids: str, at: int = AT) -> None:
    for id in ids:
        await store.devices.add_code(id, expires_at=at + 1, at=at)
        assert await store.devices.sign_in(id, device(id, at=at))


def values(row: object, *names: str) -> tuple[object, ...]:
    """These fields of a row."""
    return tuple(getattr(row, name) for name in names)


async def versions(store: Store, stream: str) -> list[int]:
    return [record.version for record in await store.load(stream, after=0)]


async def events(store: Store, stream: str) -> list[AnyEvent]:
    return [record.event for record in await store.load(stream, after=0)]


# --------------------------------------------------------------------------------------------------


def task(id: str, **more: object) -> TaskStarted:
    by = {"type": "person", "client": "me"}
    fields: dict[str, object] = {"title": f"build {id}", "command": "make", "cwd": "/", "by": by}
    return msgspec.convert({"kind": "TaskStarted", "task_kind": "process", "task": id} | fields | more, TaskStarted)


def ended(id: str, outcome: TaskOutcome = "done", **more: object) -> TaskFinished:
    fields: dict[str, object] = {"outcome": outcome, "reason": "exit code 0", "end": {"type": "exited", "code": 0}}
    return msgspec.convert({"kind": "TaskFinished", "task": id} | fields | more, TaskFinished)


def command_result(task: str, output: str) -> ToolCallFinished:
    """The result of a call that waited for a command."""
    return ToolCallFinished(
        turn=1, call="1.1.0", tool="terminal", outcome="done", output=output, duration_ms=1, task=task
    )


class StoreContract:
    """The promises of a store."""

    @pytest.fixture
    async def store(self, engine: Engine) -> AsyncIterator[Store]:
        store = await engine.open()
        yield store
        await store.close()

    # --- append ---------------------------------------------------------------------------------

    async def test_an_append_returns_its_version_and_seq(self, store: Store) -> None:
        first = await write(store, STREAM, created(A), said())
        second = await write(store, STREAM, asked(), expect=2)
        assert (first.stream, first.version, first.seq) == (STREAM, 2, 2)
        assert (second.version, second.seq, second.duplicate) == (3, 3, False)
        assert second.records == (Record(seq=3, stream=STREAM, version=3, at=AT, event=asked()),)

    async def test_the_stored_bytes_are_the_wire_bytes(self, store: Store) -> None:
        text = 'quotes " \\ and \n lines, 世界 🦀 \x7f \u2028'
        appended = await write(store, STREAM, created(A), said(text))
        page = await store.read(STREAM, after=0, limit=10)
        assert page.lines == tuple(msgspec.json.encode(record) for record in appended.records)
        assert tuple(map(decode, page.lines)) == appended.records

    async def test_expecting_another_version_is_a_conflict_and_stores_nothing(self, store: Store) -> None:
        await session(store, A, "one")
        for wrong in (0, 1, 3):
            with pytest.raises(Conflict, match=f"version 2, not at {wrong}"):
                await write(store, STREAM, said("two"), expect=wrong)
        assert await versions(store, STREAM) == [1, 2]

    async def test_several_streams_are_written_all_or_not_at_all(self, store: Store) -> None:
        await session(store, A)
        both = (Write(OTHER, (created(B),)), Write(STREAM, (said(),), expect=7))
        with pytest.raises(Conflict):
            await store.append(Append(both, AT))
        with pytest.raises(NotFound):
            await store.read(OTHER, after=0, limit=1)
        await store.append(Append((both[0], Write(STREAM, (said(),), expect=1)), AT))
        assert await versions(store, STREAM) == [1, 2]
        assert await versions(store, OTHER) == [1]

    async def test_a_write_without_events_only_guards_a_version(self, store: Store) -> None:
        await session(store, A)
        guarded = Append((Write(OTHER, (created(B),)), Write(STREAM, (), expect=1)), AT)
        assert (await store.append(guarded)).stream == OTHER
        assert await versions(store, STREAM) == [1]

    async def test_a_refused_append_leaves_its_neighbours_alone(self, store: Store) -> None:
        await session(store, A)
        jobs = [write(store, STREAM, said(input=str(n)), expect=99 if n % 3 == 0 else None) for n in range(60)]
        results = await asyncio.gather(*jobs, return_exceptions=True)
        accepted = [result for result in results if isinstance(result, Appended)]
        assert len(accepted) == 40
        assert all(isinstance(result, Appended | Conflict) for result in results)
        assert await versions(store, STREAM) == list(range(1, 42))
        assert sorted(result.version for result in accepted) == list(range(2, 42))

    async def test_of_many_writers_that_expect_the_same_version_one_wins(self, store: Store) -> None:
        await session(store, A)
        jobs = [write(store, STREAM, said(input=str(n)), expect=1) for n in range(20)]
        results = await asyncio.gather(*jobs, return_exceptions=True)
        assert [type(result) for result in results].count(Appended) == 1
        assert await versions(store, STREAM) == [1, 2]

    @pytest.mark.parametrize("writes", [(), (Write(STREAM, (said(),)), Write(STREAM, (said(),)))])
    async def test_an_append_that_makes_no_sense_is_a_bug(self, store: Store, writes: tuple[Write, ...]) -> None:
        with pytest.raises(ValueError, match=r"without writes|two writes"):
            await store.append(Append(writes, AT))
        await session(store, B)
        assert await versions(store, OTHER) == [1], "and it harms nobody else"

    async def test_after_closing_it_takes_nothing(self, engine: Engine) -> None:
        store = await engine.open()
        await store.close()
        with pytest.raises(Unavailable):
            await write(store, STREAM, created(A))

    async def test_promise_1_what_was_acknowledged_is_there_after_reopening(self, engine: Engine) -> None:
        store = await engine.open()
        appended = await write(store, STREAM, created(A), said())
        await store.close()
        again = await engine.open()
        assert await again.load(STREAM, after=0) == list(appended.records)
        assert (await write(again, STREAM, asked())).seq == 3
        await again.close()

    # --- commands -------------------------------------------------------------------------------

    async def test_a_command_that_is_retried_is_stored_once_and_answered_alike(self, store: Store) -> None:
        key = CommandKey("c1", "digest")
        first = await write(store, STREAM, created(A), said(), expect=0, command=key)
        await write(store, STREAM, asked())
        again = await write(store, STREAM, created(A), said(), expect=0, command=key)
        assert (again.stream, again.version, again.seq) == (first.stream, first.version, first.seq)
        assert again.duplicate
        assert again.records == ()
        assert await versions(store, STREAM) == [1, 2, 3]

    async def test_a_command_id_used_for_something_else_is_a_conflict(self, store: Store) -> None:
        await write(store, STREAM, created(A), command=CommandKey("c1", "digest"))
        with pytest.raises(Conflict, match="used before for another command"):
            await write(store, STREAM, said(), command=CommandKey("c1", "another"))
        with pytest.raises(Conflict):
            await store.find_command(CommandKey("c1", "another"))
        assert await versions(store, STREAM) == [1]

    async def test_a_retry_gets_the_reply_of_the_first_time(self, store: Store) -> None:
        first = await write(store, STREAM, created(A), command=CommandKey("c1", "digest", '{"session":"one"}'))
        again = await write(store, STREAM, said(), command=CommandKey("c1", "digest", '{"session":"two"}'))
        found = await store.find_command(CommandKey("c1", "digest"))
        assert found is not None
        assert (first.reply, again.reply, found.reply) == ('{"session":"one"}',) * 3

    async def test_a_command_sent_many_times_at_once_is_stored_once(self, store: Store) -> None:
        await session(store, A)
        key = CommandKey("c1", "digest")
        results = await asyncio.gather(*(write(store, STREAM, said(), command=key) for _ in range(20)))
        assert [result.duplicate for result in results].count(False) == 1
        assert {result.version for result in results} == {2}
        assert await versions(store, STREAM) == [1, 2]

    async def test_a_refused_command_may_be_tried_again(self, store: Store) -> None:
        await session(store, A)
        key = CommandKey("c1", "digest")
        with pytest.raises(Conflict):
            await write(store, STREAM, said(), expect=7, command=key)
        assert await store.find_command(key) is None
        assert not (await write(store, STREAM, said(), expect=1, command=key)).duplicate

    async def test_commands_are_remembered_across_restart_and_deletion(self, engine: Engine) -> None:
        key = CommandKey("c1", "digest")
        store = await engine.open()
        first = await write(store, STREAM, created(A), command=key)
        await write(store, SYSTEM, deleted(A))
        await store.close()
        store = await engine.open()
        found = await store.find_command(key)
        assert found is not None
        assert (found.stream, found.version, found.seq) == (first.stream, first.version, first.seq)
        await store.close()

    # --- leases: promise 2 ----------------------------------------------------------------------

    async def test_promise_2_the_holder_writes_and_an_earlier_one_is_refused(self, store: Store) -> None:
        await session(store, A, "one")
        old = await store.claim(STREAM, holder="old")
        await write(store, STREAM, started(1, "i"), lease=old)
        new = await store.claim(STREAM, holder="new")
        assert new.token > old.token
        with pytest.raises(Fenced):
            await write(store, STREAM, asked(), lease=old)
        await write(store, STREAM, asked(), lease=new)
        assert await versions(store, STREAM) == [1, 2, 3, 4]

    async def test_promise_2_a_refused_holder_writes_nothing_anywhere(self, store: Store) -> None:
        await session(store, A)
        old = await store.claim(STREAM, holder="old")
        await store.claim(STREAM, holder="new")
        writes = (Write(OTHER, (created(B),)), Write(STREAM, (asked(),)))
        with pytest.raises(Fenced):
            await store.append(Append(writes, AT, command=CommandKey("c1", "d"), lease=old))
        with pytest.raises(NotFound):
            await store.read(OTHER, after=0, limit=1)
        assert await store.find_command(CommandKey("c1", "d")) is None

    async def test_promise_2_what_is_written_for_a_duty_needs_its_latest_lease(self, store: Store) -> None:
        old = await store.claim("duty/board", holder="t")
        new = await store.claim("duty/board", holder="t")
        for duty, key in ((old, "c1"), (new, "c2")):
            DUTY_LEASE.set(duty)
            append = Append((Write(STREAM, (created(A),), expect=0),), AT, command=CommandKey(key, "d"))
            DUTY_LEASE.set(None)
            if duty is old:
                with pytest.raises(LostDuty, match="duty/board"):
                    await store.append(append)
                with pytest.raises(NotFound):
                    await store.read(STREAM, after=0, limit=1)
            else:
                await store.append(append)
        assert await versions(store, STREAM) == [1]

    async def test_promise_2_the_fence_is_checked_in_the_transaction_of_the_write(self, store: Store) -> None:
        """Claim and write race in the same batches; whoever writes holds the latest token, always."""
        await session(store, A)
        wrote: list[int] = []

        async def work(number: int) -> None:
            lease = await store.claim(STREAM, holder=str(number))
            for _ in range(3):
                try:
                    appended = await write(store, STREAM, said(input=str(lease.token)), lease=lease)
                except Fenced:
                    return
                wrote.append(appended.version)

        await asyncio.gather(*(work(number) for number in range(20)))
        tokens = [int(event.input) for event in await events(store, STREAM) if isinstance(event, InputReceived)]
        assert tokens == sorted(tokens), "after a later token no earlier one"
        assert len(tokens) == len(wrote)

    async def test_promise_2_the_worker_of_a_deleted_session_is_refused(self, store: Store) -> None:
        await session(store, A)
        lease = await store.claim(STREAM, holder="t")
        await write(store, SYSTEM, deleted(A))
        with pytest.raises(Fenced):
            await write(store, STREAM, asked(), lease=lease)
        with pytest.raises(Fenced):
            await store.save_partial(lease, PartialText(1, 1, "x", "", AT))

    async def test_promise_2_a_new_owner_fences_every_earlier_holder(self, engine: Engine) -> None:
        store = await engine.open()
        await session(store, A)
        old = await store.claim(STREAM, holder="t")
        await store.close()
        store = await engine.open()
        with pytest.raises(Fenced):
            await write(store, STREAM, asked(), lease=old)
        assert (await store.claim(STREAM, holder="t")).token > old.token, "tokens are never used again"
        await store.close()

    async def test_promise_2_what_is_said_needs_no_lease(self, store: Store) -> None:
        await session(store, A)
        lease = await store.claim(STREAM, holder="t")
        await write(store, STREAM, said())
        await write(store, STREAM, started(1, "i"), lease=lease)
        assert await versions(store, STREAM) == [1, 2, 3]

    async def test_a_lease_is_of_one_stream(self, store: Store) -> None:
        await session(store, A)
        await session(store, B)
        lease = await store.claim(STREAM, holder="t")
        await store.claim(OTHER, holder="u")
        await write(store, STREAM, asked(), lease=lease)

    # --- the partial ----------------------------------------------------------------------------

    async def test_the_text_so_far_is_one_row_overwritten(self, engine: Engine) -> None:
        store = await engine.open()
        await session(store, A, "one")
        lease = await store.claim(STREAM, holder="t")
        assert await store.partial(STREAM) is None
        for text in ("h", "he", "hel"):
            await store.save_partial(lease, PartialText(1, 1, text, "hm", AT))
        assert await store.partial(STREAM) == PartialText(1, 1, "hel", "hm", AT)
        await store.close()
        store = await engine.open()
        assert await store.partial(STREAM) == PartialText(1, 1, "hel", "hm", AT)
        await store.close()

    async def test_promise_2_an_earlier_holder_does_not_overwrite_it(self, store: Store) -> None:
        await session(store, A, "one")
        old = await store.claim(STREAM, holder="old")
        new = await store.claim(STREAM, holder="new")
        await store.save_partial(new, PartialText(1, 1, "new", "", AT))
        with pytest.raises(Fenced):
            await store.save_partial(old, PartialText(1, 1, "old", "", AT))
        assert await store.partial(STREAM) == PartialText(1, 1, "new", "", AT)

    @pytest.mark.parametrize(
        "end",
        [
            responded(),
            ModelInterrupted(turn=1, step=1, text="hel", thinking="", reason="cut"),
            ModelFailed(turn=1, step=1, problem=Problem(code="internal", message="y")),
        ],
        ids=lambda event: type(event).__name__,
    )
    async def test_the_end_of_a_step_drops_its_text_so_far(self, store: Store, end: AnyEvent) -> None:
        await session(store, A, "one")
        lease = await store.claim(STREAM, holder="t")
        await write(store, STREAM, started(1, "i"), asked(), lease=lease)
        await store.save_partial(lease, PartialText(1, 1, "hel", "", AT))
        await write(store, STREAM, end, lease=lease)
        assert await store.partial(STREAM) is None

    async def test_the_end_of_another_step_keeps_it(self, store: Store) -> None:
        await session(store, A, "one")
        lease = await store.claim(STREAM, holder="t")
        await store.save_partial(lease, PartialText(1, 2, "hel", "", AT))
        await write(store, STREAM, responded(step=1), lease=lease)
        assert await store.partial(STREAM) == PartialText(1, 2, "hel", "", AT)

    # --- read -----------------------------------------------------------------------------------

    @pytest.mark.parametrize("limit", [1, 3, 100])
    async def test_a_cursor_walks_through_a_stream_and_the_log_without_a_gap(self, store: Store, limit: int) -> None:
        for number in range(12):
            await session(store, f"{number:016x}", *"abc")
        stream = session_stream(f"{5:016x}")
        assert [record.version for record in await walk_stream(store, stream, limit)] == [1, 2, 3, 4]
        assert [record.seq for record in await walk_log(store, limit)] == list(range(1, 49))

    async def test_streams_written_in_turn_are_read_from_any_version(self, engine: Engine) -> None:
        store = await engine.open()
        for version in range(1, 50):
            if version == 24:  # what was known by heart is forgotten in the middle
                await store.close()
                store = await engine.open()
            for id in (A, B):
                event = created(id) if version == 1 else said(input=f"{id}{version}")
                await write(store, session_stream(id), event, at=AT + version)
        for id in (A, B):
            stream = session_stream(id)
            whole = await store.load(stream, after=0)
            assert [record.version for record in whole] == list(range(1, 50))
            for after in range(50):
                assert await store.load(stream, after=after) == whole[after:]
                page = await store.read(stream, after=after, limit=7)
                assert [decode(line) for line in page.lines] == whole[after : after + 7]
                assert (await store.devices.since(id, after=after, upto=49)).since == AT + max(1, after)
        for version in (1, 15, 16, 17, 32, 33, 49):
            await let_in(store, f"d{version}", at=AT + version)
            assert await store.devices.read_position(f"d{version}", A) == version
        await store.close()

    async def test_large_events_come_in_several_pages(self, store: Store) -> None:
        await write(store, STREAM, created(A), *(said("x" * 300_000, str(n)) for n in range(150)))
        page = await store.read(STREAM, after=0, limit=1_000)
        assert page.more
        assert len(page.lines) < 151
        assert [record.version for record in await walk_stream(store, STREAM, 1_000)] == list(range(1, 152))
        assert len(await store.load(STREAM, after=0)) == 151
        assert len(await store.load(STREAM, after=140)) == 11

    async def test_a_page_ends_near_the_size_that_was_asked_for(self, store: Store) -> None:
        await session(store, A, *["x" * 1_000] * 20)
        page = await store.read(STREAM, after=0, limit=100, size=5_000)
        assert page.more
        assert 5_000 <= sum(map(len, page.lines)) < 8_000
        page = await store.read_all(after=0, limit=100, size=5_000)
        assert page.more
        assert 5_000 <= sum(map(len, page.lines)) < 8_000

    async def test_a_long_stream_is_loaded_to_its_end(self, store: Store) -> None:
        await write(store, STREAM, created(A), *(said(input=str(n)) for n in range(4_100)))
        assert await versions(store, STREAM) == list(range(1, 4_102))
        assert [record.version for record in await store.load(STREAM, after=4_099)] == [4_100, 4_101]

    async def test_at_the_end_there_is_an_empty_page(self, store: Store) -> None:
        await session(store, A)
        for page in (
            await store.read(STREAM, after=1, limit=10),
            await store.read_all(after=1, limit=10),
            await store.read(SYSTEM, after=0, limit=10),
        ):
            assert page.lines == ()
            assert not page.more
        assert await store.load(STREAM, after=1) == []

    async def test_a_cursor_from_another_life_of_the_log_is_a_conflict(self, store: Store) -> None:
        await session(store, A)
        with pytest.raises(Conflict, match="ahead of"):
            await store.read(STREAM, after=2, limit=10)
        with pytest.raises(Conflict, match="ahead of"):
            await store.read_all(after=2, limit=10)

    async def test_what_never_was_is_not_found_and_what_was_deleted_is_gone(self, store: Store) -> None:
        with pytest.raises(Conflict):
            await write(store, STREAM, said(), expect=1)
        with pytest.raises(NotFound):
            await store.read(STREAM, after=0, limit=1)
        await session(store, A, "one")
        await write(store, SYSTEM, deleted(A))
        with pytest.raises(Conflict):
            await write(store, STREAM, said())
        for after in (0, 1, 2):
            with pytest.raises(Gone):
                await store.read(STREAM, after=after, limit=1)
        assert await store.load(STREAM, after=0) == []

    async def test_promise_6_a_deletion_leaves_its_trace_and_nothing_else(self, store: Store) -> None:
        await session(store, A, "one")
        await session(store, B, "two")
        lease = await store.claim(STREAM, holder="t")
        await store.save_partial(lease, PartialText(1, 1, "x", "", AT))
        await write(store, SYSTEM, deleted(A))
        assert await store.partial(STREAM) is None
        assert [record.stream for record in await walk_log(store, 10)] == [OTHER, OTHER, SYSTEM]
        with pytest.raises(Conflict, match="deleted"):
            await write(store, STREAM, said())
        assert (await write(store, OTHER, said())).seq == 6, "no seq is used twice"

    # --- sessions -------------------------------------------------------------------------------

    async def test_a_session_is_found_by_its_id_and_by_a_unique_prefix(self, store: Store) -> None:
        for id in (A, B, C):
            await session(store, id)
        assert [(await store.session(prefix)).id for prefix in (A, "aa", "b", "abc")] == [A, A, B, C]
        with pytest.raises(Conflict, match=f"is the beginning of several session IDs: {A}, {C}"):
            await store.session("a")
        for unknown in ("c", A + "0", "zz", "%", "'"):
            with pytest.raises(NotFound):
                await store.session(unknown)

    async def test_a_whole_id_that_is_also_a_prefix_is_no_ambiguity(self, store: Store) -> None:
        await session(store, "abcd")
        await session(store, "abcdef")
        assert (await store.session("abcd")).id == "abcd"

    async def test_a_deleted_session_is_gone_by_prefix_too(self, store: Store) -> None:
        await session(store, A)
        await write(store, SYSTEM, deleted(A))
        for prefix in (A, "aaaa"):
            with pytest.raises(Gone):
                await store.session(prefix)

    async def test_the_list_is_newest_first_and_pages_without_a_gap(self, store: Store) -> None:
        for number in range(10):
            await session(store, f"{number:016x}", "hi", at=AT + number // 2)
        await write(store, session_stream(f"{3:016x}"), SessionArchived(by=person("t")))
        seen: list[str] = []
        cursor = SessionCursor()
        while page := await store.sessions(archived=False, before=cursor, limit=3):
            seen += [row.id for row in page]
            cursor = SessionCursor(page[-1].updated_at, page[-1].id, pinned=False)
        assert [int(id, 16) for id in seen] == [8, 9, 6, 7, 4, 5, 2, 0, 1]
        archived = await store.sessions(archived=True, before=SessionCursor(), limit=3)
        assert [row.id for row in archived] == [f"{3:016x}"]

    async def test_titles_are_found_in_either_case_of_any_alphabet(self, store: Store) -> None:
        await session(store, A, "Übergabe der Straße")
        await session(store, B, "something else")
        for text, found in {"übergabe": [A], "STRASSE": [A], "thing": [B], "": [A, B], "nowhere": []}.items():
            page = await store.sessions(archived=False, before=SessionCursor(), limit=9, text=text)
            assert sorted(row.id for row in page) == found

    async def test_the_projections_follow_the_events(self, store: Store) -> None:
        await session(store, A, "first line\nsecond", "another")
        assert [row.id for row in await store.unfinished_sessions()] == [A]
        await write(store, STREAM, started(1, "i"), asked(), responded("the answer"))
        row = await store.session(A)
        assert (row.title, row.queued, row.turn, row.turn_state) == ("first line", 1, 1, "running")
        assert (row.preview, row.message_count, row.version) == ("the answer", 3, 6)
        await write(store, STREAM, finished(1), started(2, "j"), finished(2), SessionRenamed(title="x", by=person("t")))
        assert await store.unfinished_sessions() == []
        assert (await store.session(A)).title == "x"
        first, second = await store.turns(A)
        assert (first.state, first.steps, first.input_tokens, first.output_tokens) == ("done", 1, 2, 3)
        assert second.finished_at == AT

    async def test_the_count_of_messages_equals_the_stored_messages(self, store: Store) -> None:
        await session(store, A, "one", "two")
        await write(store, STREAM, started(1, "i"), asked(), responded("", 1), asked(2), responded("text", 2))
        stored = [
            event
            for event in await events(store, STREAM)
            if isinstance(event, InputReceived) or (isinstance(event, ModelResponded) and event.text)
        ]
        assert (await store.session(A)).message_count == len(stored) == 3
        counts = await store.counts()
        assert counts == StoreCounts(sessions=1, archived=0, messages=3, events=8, seq=8)

    async def test_the_count_of_events_follows_what_is_written_and_what_is_deleted(self, store: Store) -> None:
        async def counted() -> bool:
            return (await store.counts()).events == len((await store.read_all(after=0, limit=100)).lines)

        assert await counted()
        await session(store, A, "one")
        assert await counted()
        await session(store, B, "two", "three")
        assert await counted()
        await write(store, SYSTEM, deleted(A))
        assert await counted()
        await write(store, task_stream(C), task(C), ended(C))
        await write(store, SYSTEM, TaskPruned(task=C, title="t", state="done", bytes=0, by=person("t")))
        assert await counted()

    # --- subscriptions --------------------------------------------------------------------------

    async def test_promise_1_a_follower_wakes_after_the_commit_and_finds_the_event(self, store: Store) -> None:
        await session(store, A)
        with store.subscribe(STREAM) as changes:
            for version in range(2, 30):
                job = asyncio.create_task(write(store, STREAM, said(input=str(version))))
                await changes.wait()
                assert changes.drain() == {STREAM: {"InputReceived"}}
                assert (await versions(store, STREAM))[-1] == version
                await job

    async def test_a_follower_gets_its_stream_and_a_follower_of_all_gets_everything(self, store: Store) -> None:
        with store.subscribe(STREAM) as one, store.subscribe(None) as all_:
            await session(store, A, "x")
            await session(store, B)
            await write(store, SYSTEM, GatewayStarted(pid=1, version="1", boot="b"))
            assert one.drain() == {STREAM: {"SessionCreated", "InputReceived"}}
            assert all_.drain() == {
                STREAM: {"SessionCreated", "InputReceived"},
                OTHER: {"SessionCreated"},
                SYSTEM: {"GatewayStarted"},
            }
            assert one.drain() == {}

    async def test_a_follower_gets_only_the_kinds_that_it_wants(self, store: Store) -> None:
        with store.subscribe(None, lambda stream, kind: stream == STREAM and kind == "InputReceived") as changes:
            await session(store, B, "another stream")
            await session(store, A)
            assert changes.drain() == {}
            await write(store, STREAM, said(), started(1, "i"))
            await changes.wait()
            assert changes.drain() == {STREAM: {"InputReceived"}}

    async def test_lines_at_hand_are_the_stored_lines(self, store: Store) -> None:
        with store.subscribe(STREAM) as changes:
            await session(store, A, *map(str, range(40)))
            await changes.wait()
            for after in range(42):
                stored = await store.read(STREAM, after=after, limit=100)
                assert store.recent(STREAM, after=after) in (None, stored.lines)
            assert store.recent(STREAM, after=41) == ()
            await write(store, SYSTEM, deleted(A))
            assert store.recent(STREAM, after=0) is None
        assert store.recent(OTHER, after=0) is None, "nobody follows it"

    async def test_a_hint_wakes_only_followers_of_its_stream(self, store: Store) -> None:
        with store.subscribe(STREAM) as one, store.subscribe(OTHER) as other, store.subscribe(None) as all_:
            store.hint(STREAM)
            await one.wait()
            assert one.drain() == {STREAM: set()}
            assert other.drain() == all_.drain() == {}

    async def test_a_follower_that_has_left_gets_nothing(self, store: Store) -> None:
        with store.subscribe(STREAM) as changes:
            pass
        await session(store, A)
        assert changes.drain() == {}

    # --- search ---------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        ("text", "query"),
        [
            ("The quick brown fox", "quick br"),
            ("The quick brown fox", "QUICK"),
            ("substrings inside words", "rings ins"),
            ("a 100% sure_thing", "100%"),
            ("a 100% sure_thing", "sure_t"),
            ("a 50% chance", "0%"),
            ("snake_case", "e_"),
            ('he said "hello"', '"hello"'),
            ('he said "hi"', 'i"'),
            ("it's", "it's"),
            ("back\\slash", "k\\s"),
            ("back\\slash", "\\"),
            ("AND OR NOT (x) *", "OR NOT (x) *"),
            ("今天天气很好", "天气很"),
            ("今天天气很好", "天气"),
            ("Größe und Maß", "GRÖSSE".replace("SS", "ß")),
            ("Öl im Feuer", "öl"),
            ("emoji 🦀 here", "🦀"),
            ("two\nlines", "o\nl"),
        ],
    )
    async def test_a_text_is_found_by_any_part_of_it(self, store: Store, text: str, query: str) -> None:
        await session(store, A, "something else", text)
        [hit] = await found(store, query)
        assert (hit.session, hit.version, hit.at, hit.role) == (A, 3, AT, "user")
        assert hit.snippet

    @pytest.mark.parametrize("query", ["100_", "0_", "q%k", "_", "%", "''", "no such text", "x\0y", "a\0"])
    async def test_what_looks_like_a_pattern_is_none(self, store: Store, query: str) -> None:
        await session(store, A, "100 quick x y")
        await found(store, "quick")
        assert await store.search(query, limit=SEARCH_LIMIT) == []

    async def test_search_is_newest_first_and_limited_and_has_the_role(self, store: Store) -> None:
        await session(store, A, "needle one")
        await write(store, STREAM, started(1, "i"), asked(), responded("needle two"))
        await session(store, B, "needle three")
        hits = await found(store, "needle", lambda hits: len(hits) == 3)
        assert [(hit.session, hit.role) for hit in hits] == [(B, "user"), (A, "agent"), (A, "user")]
        assert len(await store.search("needle", limit=2)) == 2
        assert len(await store.search("ne", limit=2)) == 2

    async def test_a_deleted_session_is_not_found(self, store: Store) -> None:
        await session(store, A, "needle")
        await session(store, B, "needle")
        await found(store, "needle", lambda hits: len(hits) == 2)
        await write(store, SYSTEM, deleted(A))
        [hit] = await found(store, "needle", lambda hits: len(hits) == 1)
        assert hit.session == B
        assert [hit.session for hit in await store.search("ne", limit=SEARCH_LIMIT)] == [B]

    async def test_search_catches_up_after_a_restart(self, engine: Engine) -> None:
        store = await engine.open()
        await session(store, A, *(f"needle {number}" for number in range(1_200)))
        await store.close()
        store = await engine.open()
        hits = await found(store, "needle 1199")
        assert [hit.version for hit in hits] == [1_201]
        await write(store, STREAM, said("another needle"))
        await found(store, "another")
        await store.close()

    async def test_search_does_not_stop_behind_large_texts(self, store: Store) -> None:
        await session(store, A, *("x" * 300_000 for _ in range(10)), "needle")
        assert [hit.version for hit in await found(store, "needle")] == [12]

    # --- health ---------------------------------------------------------------------------------

    # --- devices: beside the log ----------------------------------------------------------------

    async def test_a_code_lets_one_device_in_and_outlives_a_restart(self, engine: Engine) -> None:
        store = await engine.open()
        await store.devices.add_code("good", expires_at=AT + 10, at=AT)
        await store.devices.add_code("old", expires_at=AT + 1, at=AT)
        assert not await store.devices.sign_in("wrong", device("d0"))
        await store.close()
        store = await engine.open()
        assert not await store.devices.sign_in("old", device("d1", at=AT + 1))
        assert await store.devices.sign_in("good", device("d2", at=AT + 2))
        assert not await store.devices.sign_in("good", device("d3", at=AT + 2))
        await store.devices.touch("d2", at=AT + 5)
        await store.close()
        store = await engine.open()
        assert await store.devices.all() == [replace(device("d2", at=AT + 2), seen_at=AT + 5)]
        await store.devices.drop("d2")
        assert await store.devices.all() == []
        await store.close()

    async def test_the_code_of_a_device_whose_revocation_is_not_written_yet_lets_nobody_in(self, store: Store) -> None:
        await let_in(store, "d1")
        await store.devices.add_code("code", expires_at=AT + 10, at=AT, device="d1")
        assert not await store.devices.sign_in("code", device("d2"), revoked=frozenset({"d1"}))
        assert await store.devices.all() == []

    async def test_a_code_signs_in_one_of_many_concurrent_browsers(self, store: Store) -> None:
        await store.devices.add_code("code", expires_at=AT + 10, at=AT)
        tries = [store.devices.sign_in("code", device(f"d{number}")) for number in range(20)]
        assert sum(await asyncio.gather(*tries)) == 1
        assert len(await store.devices.all()) == 1

    async def test_cursors_only_grow_and_go_with_their_session_or_device(self, store: Store) -> None:
        await let_in(store, "d1", "d2")
        await session(store, A, "one", "two")
        assert await store.devices.mark_seen("d1", A, 2, at=AT) == 2
        assert await store.devices.mark_seen("d1", A, 1, at=AT) == 2
        assert (await store.devices.read_positions("d1"), await store.devices.read_positions("d2")) == ({A: 2}, {})
        assert await store.devices.last_session("d1") == A
        with pytest.raises(Conflict):
            await store.devices.mark_seen("d1", A, 4, at=AT)
        with pytest.raises(NotFound):
            await store.devices.mark_seen("d1", B, 1, at=AT)
        with pytest.raises(NotFound):
            await store.devices.mark_seen("nobody", A, 1, at=AT)
        await write(store, SYSTEM, deleted(A))
        assert (await store.devices.read_positions("d1"), await store.devices.last_session("d1")) == ({}, "")

    async def test_a_push_subscription_belongs_to_one_device_and_is_deleted_with_it(self, engine: Engine) -> None:
        store = await engine.open()
        await let_in(store, "d1", "d2")
        for row in (pushed("d1", "https://a"), pushed("d1", "https://b"), pushed("d2", "https://c")):
            await store.devices.save_push(row)
        await store.close()
        store = await engine.open()
        assert await store.devices.pushes() == [pushed("d1", "https://b"), pushed("d2", "https://c")]
        await store.devices.save_push(pushed("d2", "https://b"))  # the browser signed in as another device
        assert await store.devices.pushes() == [pushed("d2", "https://b")]
        with pytest.raises(NotFound):
            await store.devices.save_push(pushed("nobody", "https://b"))
        assert await store.devices.pushes() == [pushed("d2", "https://b")]
        await store.devices.drop("d2")
        assert await store.devices.pushes() == []
        await store.devices.save_push(pushed("d1", "https://b"))
        await store.devices.delete_push("d1")
        assert await store.devices.pushes() == []
        await store.close()

    async def test_a_push_subscription_that_has_ended_keeps_only_its_rules(self, store: Store) -> None:
        await let_in(store, "d1", "d2")
        for device in ("d1", "d2"):
            await store.devices.save_push(pushed(device, f"https://{device}"))
            await store.devices.end_push(structs.replace(pushed(device, f"https://{device}"), ended="it answered 410"))
        (first, _) = await store.devices.pushes()
        assert values(first, "endpoint", "p256dh", "auth", "ended") == ("", "", "", "it answered 410")
        assert first.kinds == ["question", "done"]
        await store.devices.save_push(pushed("d1", "https://new"))
        await store.devices.end_push(structs.replace(pushed("d1", "https://d1"), ended="late"))
        assert (await store.devices.pushes())[0] == pushed("d1", "https://new")

    async def test_when_somebody_looked_only_grows_and_begins_with_the_device(self, store: Store) -> None:
        await let_in(store, "d1")
        began = await store.devices.reviewed_at("d1")
        assert began == (await store.devices.all())[0].created_at
        assert await store.devices.mark_reviewed("d1", at=began + 9) == began + 9
        assert await store.devices.mark_reviewed("d1", at=began + 5) == began + 9
        assert await store.devices.reviewed_at("d1") == began + 9
        with pytest.raises(NotFound):
            await store.devices.mark_reviewed("nobody", at=began)

    async def test_unread_are_the_agents_finished_texts_behind_the_cursor(self, store: Store) -> None:
        await session(store, A, "one", at=AT)
        await write(store, STREAM, started(1, "i"), asked(), responded("before"), finished(1), at=AT)
        await let_in(store, "d", at=AT + 1)
        assert await store.devices.unread("d", [A, B]) == {A: 0, B: 0}
        assert await store.devices.read_position("d", A) == 6
        await write(store, STREAM, started(2), asked(), responded("after"), responded(" "), finished(2), at=AT + 2)
        assert await store.devices.unread("d", [A]) == {A: 1}
        since = await store.devices.since(A, after=await store.devices.read_position("d", A), upto=11)
        assert (since.messages, since.first, since.since) == (1, 9, AT)
        assert (await store.devices.since(A, after=6, upto=8)).messages == 0  # what comes while it is counted
        await store.devices.mark_seen("d", A, 9, at=AT + 3)
        assert await store.devices.unread("d", [A]) == {A: 0}

    async def test_a_store_in_order_says_so(self, store: Store) -> None:
        await session(store, A)
        assert store.health.writable
        assert store.health.problem == ""
        assert store.search_state.problem == ""

    async def test_commits_are_counted(self, store: Store) -> None:
        count, seconds = store.commit_stats
        await session(store, A)
        await write(store, STREAM, said())
        assert store.commit_stats[0] == count + 2
        assert store.commit_stats[1] > seconds

    # --- tasks ----------------------------------------------------------------------------------

    async def test_the_row_of_a_task_follows_its_events(self, store: Store) -> None:
        await write(store, task_stream(A), task(A, session=B, foreground=True, notify=True))
        row = await store.task(A)
        assert (row.state, row.foreground, row.started_at, row.pid) == ("running", 1, AT, None)
        await write(store, task_stream(A), ProcessStarted(task=A, pid=7), TaskBackgrounded(task=A, reason="slow"))
        await write(store, task_stream(A), TaskStopRequested(task=A, by=person("me"), reason="enough", force=False))
        row = await store.task(A)
        assert (row.pid, row.foreground, row.stop_by, row.version) == (7, 0, "me", 4)
        assert [row.id for row in await store.running_tasks()] == [A]
        await write(
            store,
            task_stream(A),
            ended(A, "stopped", end={"type": "killed", "signal": "SIGTERM"}, ended_at=AT + 5),
            at=AT + 9,
        )
        row = await store.task(A)
        assert (row.state, row.signal, row.finished_at, row.exit_code) == (
            "stopped",
            "SIGTERM",
            AT + 5,
            None,
        )
        assert await store.running_tasks() == []
        await write(store, task_stream(A), TaskStopRequested(task=A, by=person("other"), reason="", force=True))
        assert (await store.task(A)).stop_by == "me", "who ended it does not change afterwards"
        await write(store, task_stream(A), TaskResumed(task=A, turn=2))
        row = await store.task(A)
        assert (row.state, row.finished_at, row.stop_by) == ("running", None, "")
        for said in ("something", ""):
            await write(store, task_stream(A), ended(A, summary=said))
            assert (await store.task(A)).summary == "something", "what it said last"

    async def test_the_archive_is_newest_first_filtered_and_pages_without_a_gap(self, store: Store) -> None:
        for number in range(7):
            id = f"{number:016x}"
            more = {
                "foreground": number == 3,
                "session": A if number % 2 else B,
                "task_kind": "agent" if number == 6 else "process",
            }
            await write(store, task_stream(id), task(id, **more), at=AT + number // 2)
            if number < 5:
                await write(store, task_stream(id), ended(id, "failed" if number == 1 else "done"), at=AT + 10)

        async def found(wanted: TaskFilter = EVERYTHING, limit: int = 10) -> list[int]:
            rows, cursor = list[TaskRow](), SessionCursor()
            while page := await store.tasks(wanted, before=cursor, limit=limit):
                rows += page
                cursor = SessionCursor(page[-1].started_at, page[-1].id)
            return [int(row.id, 16) for row in rows]

        assert await found() == await found(limit=2) == [6, 4, 5, 2, 0, 1]
        assert await found(TaskFilter(foreground=True), limit=3) == [6, 4, 5, 2, 3, 0, 1]
        assert await found(TaskFilter(kind="agent")) == [6]
        assert await found(TaskFilter(state="failed")) == [1]
        assert await found(TaskFilter(state="running")) == [6, 5]
        assert await found(TaskFilter(session=A)) == [5, 1]
        assert await found(TaskFilter(since=AT + 2)) == [6, 4, 5]
        assert await found(TaskFilter(text="BUILD 0000000000000004")) == [4]
        assert [int(row.id, 16) for row in await store.ended_tasks()] == [0, 1, 2, 3, 4]
        over = [id for id, left in (await store.task_ids()).items() if left]
        assert over == [f"{3:016x}"]

    async def test_promise_6_a_pruned_task_leaves_its_trace_and_nothing_else(self, store: Store) -> None:
        for id in (A, B):
            await write(store, task_stream(id), task(id), ended(id, output=f"the output of {id}"))
        await write(store, task_stream(B), TaskPinned(task=B, pinned=True, by=person("me")))
        assert [row.id for row in await store.ended_tasks()] == [A], "what is pinned may not be pruned"

        async def hits(count: int) -> bool:
            return len(await store.search_outputs("the output of", limit=SEARCH_LIMIT)) == count

        await eventually(lambda: hits(2))
        pruned = TaskPruned(task=A, title="build", state="done", bytes=3, by=person("me"))
        await write(store, SYSTEM, pruned)
        assert pruned in await events(store, SYSTEM)
        with pytest.raises(Gone):
            await store.task(A)
        with pytest.raises(Gone):
            await store.read(task_stream(A), after=0, limit=1)
        with pytest.raises(Conflict):
            await write(store, task_stream(A), task(A))
        assert (await store.task(B[:5])).id == B
        await eventually(lambda: hits(1))
        with pytest.raises(NotFound):
            await store.task("ffff")

    @pytest.mark.parametrize("gone", ["task", "session"])
    async def test_promise_6_an_output_that_is_the_result_of_a_call_is_found_once_as_both(
        self, store: Store, gone: str
    ) -> None:
        await session(store, A)
        await write(store, task_stream(B), task(B, foreground=True), ended(B, output="a needle\n"))
        await write(store, STREAM, command_result(B, "a needle\n[done: exit code 0]"))

        async def hits(conversations: int, outputs: int) -> bool:
            said = [hit.session for hit in await store.search("needle", limit=9)]
            printed = [hit.task for hit in await store.search_outputs("needle", limit=9)]
            return (said, printed) == ([A] * conversations, [B] * outputs)

        await eventually(lambda: hits(1, 1))
        if gone == "task":
            await write(store, SYSTEM, TaskPruned(task=B, title="build", state="done", bytes=3, by=person("me")))
            await eventually(lambda: hits(1, 0))
        else:
            await write(store, SYSTEM, SessionDeleted(session=A, title="", events=2, by=person("me")))
            await eventually(lambda: hits(0, 0))


async def found(store: Store, query: str, enough: Callable[[list[Hit]], bool] = bool) -> list[Hit]:
    """The hits, once there are enough: search is at most a second behind."""

    async def look() -> list[Hit] | None:
        hits = await store.search(query, limit=SEARCH_LIMIT)
        return hits if enough(hits) else None

    hits = await eventually(look)
    assert hits is not None
    return hits


async def walk_stream(store: Store, stream: str, limit: int) -> list[Record]:
    """Page by page, as a client does that comes back with its cursor."""
    records: list[Record] = []
    while lines := (await store.read(stream, after=records[-1].version if records else 0, limit=limit)).lines:
        assert len(lines) <= limit
        records += map(decode, lines)
    return records


async def walk_log(store: Store, limit: int) -> list[Record]:
    records: list[Record] = []
    while lines := (await store.read_all(after=records[-1].seq if records else 0, limit=limit)).lines:
        assert len(lines) <= limit
        records += map(decode, lines)
    return records
