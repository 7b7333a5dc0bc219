"""What every store must do with turns, waits, chapters, tasks and claims. See `conformance.py`."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from holdfast.domain.errors import Conflict, Fenced, NotFound
from holdfast.domain.events import SYSTEM, AnyEvent, card_stream, session_stream, task_stream
from holdfast.domain.events.actor import THE_CLOCK, Actor, TaskActor
from holdfast.domain.events.chapter import (
    ChapterOpened,
    ChapterRejoined,
    ResetPolicy,
    ResetPolicySet,
    SummaryFailed,
    SummaryRequested,
    SummaryStarted,
    SummaryWritten,
)
from holdfast.domain.events.parts import Delegated, Forked, Rights, ShownArgument, Usage
from holdfast.domain.events.problem import Problem, ProblemCode
from holdfast.domain.events.run_binding import RunBound
from holdfast.domain.events.session import (
    AgentChosen,
    FailureDismissed,
    InputReceived,
    InputsJoined,
    InputWithdrawn,
    NoteReceived,
    Purpose,
    SessionArchived,
    SessionCreated,
    SessionPinned,
    SessionRestored,
    StopRequested,
    ToolCallFinished,
    TurnFinished,
    TurnResumed,
    TurnStarted,
    TurnSuspended,
    TurnUndone,
    WaitAnswered,
    WaitOpened,
)
from holdfast.domain.events.task import TaskLifetimeSet, TaskPinned
from holdfast.store.contract import Append, CommandKey, Lease, Store, Write
from holdfast.store.reads import SessionCursor
from holdfast.store.rows import PartialText
from tests.actors import person
from tests.store.conformance import (
    AT,
    OTHER,
    STREAM,
    A,
    B,
    C,
    Engine,
    asked,
    created,
    deleted,
    ended,
    finished,
    let_in,
    responded,
    said,
    session,
    started,
    task,
    values,
    versions,
    write,
)
from tests.store.conformance_board import card, run, run_over

ME = person("me")


def waits_for(wait: str, purpose: Purpose = "question", turn: int = 1) -> WaitOpened:
    return WaitOpened(turn=turn, wait=wait, purpose=purpose, reason=f"about {wait}")


def failed(turn: int = 1) -> TurnFinished:
    return TurnFinished(turn=turn, outcome="failed", reason="no key")


async def at_work(store: Store, id: str = A) -> str:
    """A session whose first turn runs."""
    stream = await session(store, id, "one")
    await write(store, stream, started(1, f"{id}-0"))
    return stream


class WorkContract:
    """The projections of sessions and tasks follow the events, and what the runtime asks is answered by them."""

    @pytest.fixture
    async def store(self, engine: Engine) -> AsyncIterator[Store]:
        store = await engine.open()
        yield store
        await store.close()

    # --- claims ---------------------------------------------------------------------------------

    async def test_promise_2_a_claim_with_an_append_fences_the_earlier_holder(self, store: Store) -> None:
        await session(store, A)
        old = await store.claim(STREAM, holder="old")
        appended = await store.append(Append((Write(STREAM, (said(),), 1),), AT, claim="new"))
        assert appended.lease is not None
        assert appended.lease.token > old.token
        with pytest.raises(Fenced):
            await write(store, STREAM, asked(), lease=old)
        await write(store, STREAM, asked(), lease=appended.lease)

    async def test_promise_2_a_refused_append_takes_no_lease(self, store: Store) -> None:
        await session(store, A)
        holder = await store.claim(STREAM, holder="old")
        with pytest.raises(Conflict):
            await store.append(Append((Write(STREAM, (said(),), 7),), AT, claim="new"))
        await write(store, STREAM, asked(), lease=holder)
        key = CommandKey("c", "d")
        await write(store, STREAM, said(), command=key)
        again = await store.append(Append((Write(STREAM, (said(),)),), AT, key, claim="new"))
        assert again.duplicate
        assert again.lease is None
        await write(store, STREAM, asked(), lease=holder)

    async def test_promise_2_the_lease_of_a_claim_is_checked_by_the_next_write_of_the_batch(self, store: Store) -> None:
        await session(store, A)
        first = await store.claim(STREAM, holder="t")
        second = await store.append(Append((Write(STREAM, (said(),)),), AT, claim="u"))
        assert second.lease == Lease(STREAM, first.token + 1)
        await store.save_partial(second.lease, PartialText(1, 1, "x", "", AT))
        with pytest.raises(Fenced):
            await store.save_partial(first, PartialText(1, 1, "y", "", AT))

    async def test_promise_2_a_lease_ends_with_the_life_of_its_node(self, engine: Engine) -> None:
        store = await engine.open()
        await session(store, A)
        old = await store.claim(STREAM, holder="t")
        (first,) = await store.nodes()
        assert (first.ended_at, first.ended_reason) == (None, "")
        await store.close()
        store = await engine.open()
        with pytest.raises(Fenced):
            await write(store, STREAM, asked(), lease=old)
        second, ended_life = await store.nodes()
        assert second.life > first.life
        assert second.ended_at is None
        assert ended_life.life == first.life
        assert ended_life.ended_at is not None
        assert ended_life.ended_reason
        new = await store.claim(STREAM, holder="t")
        await write(store, STREAM, asked(), lease=new)
        assert new.token > old.token
        await store.close()

    async def test_events_that_are_copied_keep_their_times(self, store: Store) -> None:
        appended = await store.append(Append((Write(STREAM, (created(A), said()), times=(5, 6)),), AT))
        assert [record.at for record in appended.records] == [5, 6]
        assert values(await store.session(A), "created_at", "updated_at") == (5, 6)

    # --- turns ----------------------------------------------------------------------------------

    async def test_a_turn_that_is_suspended_and_resumed_says_so(self, store: Store) -> None:
        async def turn() -> tuple[object, ...]:
            (row,) = await store.turns(A)
            state = values(await store.session(A), "turn_state")
            return values(row, "state", "resumes", "reason", "finished_at") + state

        await at_work(store)
        assert await turn() == ("running", 0, "", None, "running")
        await write(store, STREAM, TurnSuspended(turn=1, interruption="shutdown", reason="goodbye"))
        assert await turn() == ("suspended", 0, "goodbye", None, "suspended")
        assert [values(row, "id") for row in await store.unfinished_sessions()] == [(A,)]
        await write(store, STREAM, TurnResumed(turn=1, attempt=1, interruption="crash", reason="power", away_ms=5))
        assert await turn() == ("running", 1, "", None, "running")
        await write(store, STREAM, failed(), at=AT + 7)
        assert await turn() == ("failed", 1, "no key", AT + 7, "failed")

    async def test_a_turn_adds_up_what_its_steps_cost(self, store: Store) -> None:
        await at_work(store)
        for step, cost in ((1, None), (2, 0.5), (3, 0.25), (4, None)):
            usage = Usage(input_tokens=2, output_tokens=3, cost=cost)
            await write(store, STREAM, asked(step), replace(responded("x", step), usage=usage))
        (row,) = await store.turns(A)
        assert values(row, "steps", "input_tokens", "output_tokens", "cost") == (4, 8, 12, 0.75)

    async def test_a_failed_turn_is_in_the_inbox_until_a_person_deals_with_it(self, store: Store) -> None:
        async def failures() -> list[object]:
            return [values(row, "session", "turn", "reason", "finished_at") for row in await store.failed_turns()]

        endings: list[AnyEvent] = [
            FailureDismissed(turn=1, by=ME),
            TurnUndone(turn=1, by=ME),
            SessionArchived(by=ME),
            started(2),
            ChapterOpened(chapter=2, rule="person", reason="asked", by=ME),
        ]
        for number, ending in enumerate(endings):
            id = f"{number:016x}"
            stream = await at_work(store, id)
            await write(store, stream, failed(), at=AT + 1)
            assert await failures() == [(id, 1, "no key", AT + 1)]
            await write(store, stream, ending)
            assert await failures() == [], type(ending).__name__
        await at_work(store)
        await write(store, STREAM, failed(), FailureDismissed(turn=7, by=ME))
        await write(store, STREAM, ChapterOpened(chapter=2, rule="idle", reason="idle", by=THE_CLOCK))
        assert len(await failures()) == 1, "neither another turn nor the clock has dealt with it"

    async def test_a_failure_that_was_reported_to_a_card_or_an_agent_is_not_in_the_inbox(self, store: Store) -> None:
        await at_work(store)
        await write(store, card_stream(C), card(C), run(C, session=A), run_over(C, until_turn=1))
        await write(store, STREAM, failed())
        worker = SessionCreated(session=B, profile="demo", cwd="/", title="", by=ME, origin=Delegated(task="t"))
        await write(store, task_stream("t"), task("t", task_kind="agent", worker=B, session=A, call="c1"))
        await write(store, OTHER, worker, said(), started(1, "i"), failed())
        assert await store.failed_turns() == []

    # --- waits ----------------------------------------------------------------------------------

    async def test_a_wait_is_answered_once_or_closed_with_its_turn(self, store: Store) -> None:
        await at_work(store)
        shown = [ShownArgument(name="path", value="/x")]
        opened = WaitOpened(
            turn=1, wait="w1", purpose="approval", reason="write?", call="c", choices=["yes"], until=9, shown=shown
        )
        await write(store, STREAM, opened, at=AT + 1)
        (row,) = await store.waits()
        names = (
            "id",
            "session",
            "title",
            "turn",
            "version",
            "purpose",
            "reason",
            "call",
            "until",
            "opened_at",
            "state",
        )
        assert values(row, *names) == ("w1", A, "one", 1, 4, "approval", "write?", "c", 9, AT + 1, "open")
        assert values(await store.session(A), "turn_state") == ("waiting",)
        await write(store, STREAM, WaitAnswered(turn=1, wait="w1", answer="yes", by=ME), at=AT + 2)
        assert await store.waits() == []
        answered = ("state", "answer", "answered_by", "ended_at")
        assert values(await store.wait("w1"), *answered) == ("answered", "yes", "me", AT + 2)
        assert values(await store.session(A), "turn_state") == ("running",)
        await write(store, STREAM, WaitAnswered(turn=1, wait="w1", answer="no", by=person("other")))
        assert values(await store.wait("w1"), "answer", "answered_by") == ("yes", "me")
        await write(store, STREAM, waits_for("w2"), TurnFinished(turn=1, outcome="stopped", reason="enough"))
        assert values(await store.wait("w2"), *answered) == ("closed", None, None, AT)

    async def test_the_inbox_is_oldest_first_and_without_what_continues_by_itself(self, store: Store) -> None:
        for number, (id, purpose) in enumerate(((A, "question"), (B, "retry"), (C, "resume"))):
            stream = await at_work(store, id)
            await write(store, stream, waits_for(f"{id[:2]}-wait", purpose), at=AT - number)  # type: ignore[arg-type]
        assert [values(row, "id") for row in await store.waits()] == [("ab-wait",), ("aa-wait",)]
        assert values(await store.wait("bb"), "purpose") == ("retry",)
        with pytest.raises(Conflict, match="is the beginning of several"):
            await store.wait("a")
        with pytest.raises(NotFound):
            await store.wait("zz")

    async def test_waits_and_turns_go_with_their_session(self, store: Store) -> None:
        await at_work(store)
        await write(store, STREAM, waits_for("w1"))
        await write(store, SYSTEM, deleted(A))
        assert (await store.waits(), await store.turns(A)) == ([], [])
        with pytest.raises(NotFound):
            await store.wait("w1")

    # --- the row of a session -------------------------------------------------------------------

    async def test_a_session_says_where_it_comes_from(self, store: Store) -> None:
        rights = Rights(ancestors=[C, B])
        birth = {"profile": "demo", "cwd": "/w", "title": "", "by": ME}
        await write(store, STREAM, SessionCreated(**birth, session=A, origin=Forked(parent=B, version=3)))  # type: ignore[arg-type]
        await write(store, OTHER, SessionCreated(**birth, session=B, origin=Delegated(task="t"), rights=rights))  # type: ignore[arg-type]
        assert values(await store.session(A), "parent", "task", "cwd") == (B, "", "/w")
        assert values(await store.session(B), "parent", "task") == ("", "t")

    async def test_only_what_is_said_moves_a_session_in_the_list(self, store: Store) -> None:
        await at_work(store)
        quiet: list[AnyEvent] = [
            asked(),
            ToolCallFinished(turn=1, call="c", tool="t", outcome="done", output="", duration_ms=1),
            NoteReceived(text="x", task="t"),
            StopRequested(turn=1, by=ME),
            SessionPinned(pinned=False, by=ME),
            AgentChosen(profile="other", model="m", by=ME),
            ResetPolicySet(policy=ResetPolicy(mode="idle"), by=ME),
            RunBound(card=C, run=1, cwd="/card"),
        ]
        await write(store, STREAM, *quiet, at=AT + 5)
        row = await store.session(A)
        assert values(row, "updated_at", "version") == (AT, 3 + len(quiet))
        assert values(row, "profile", "model", "cwd") == ("other", "m", "/card")
        await write(store, STREAM, responded("  the \n answer " + "x" * 200), at=AT + 6)
        row = await store.session(A)
        assert values(row, "updated_at", "message_count") == (AT + 6, 2)
        assert str(values(row, "preview")[0]).startswith("the answer xxx")
        await write(store, STREAM, RunBound(card=C, run=2), at=AT + 7)
        assert values(await store.session(A), "cwd", "updated_at") == ("/card", AT + 6)

    async def test_messages_leave_the_queue_when_a_turn_takes_them_or_a_person_withdraws_them(
        self, store: Store
    ) -> None:
        await session(store, A, "one", "two", "three", "four")
        await write(store, STREAM, started(1, "a", "b"), InputsJoined(turn=1, inputs=["c"]))
        assert values(await store.session(A), "queued", "message_count") == (1, 4)
        await write(store, STREAM, InputWithdrawn(input="d", by=ME))
        assert values(await store.session(A), "queued", "message_count") == (0, 3)

    async def test_pinned_sessions_come_first_and_archived_ones_apart(self, store: Store) -> None:
        for number, id in enumerate((A, B, C)):
            await session(store, id, at=AT + number)
        await write(store, STREAM, SessionPinned(pinned=True, by=ME))
        await write(store, OTHER, SessionArchived(by=ME))

        async def listed(*, archived: bool) -> list[object]:
            page = await store.sessions(archived=archived, before=SessionCursor(), limit=9)
            return [values(row, "id")[0] for row in page]

        assert (await listed(archived=False), await listed(archived=True)) == ([A, C], [B])
        await write(store, OTHER, SessionRestored(by=ME))
        await write(store, STREAM, SessionPinned(pinned=False, by=ME))
        assert await listed(archived=False) == [C, B, A]

    async def test_the_sessions_of_a_directory_are_without_those_of_cards(self, store: Store) -> None:
        for id in (A, B, C):
            await session(store, id)
        await write(store, card_stream(A), card(A), run(A, session=B))
        await write(store, session_stream(C), RunBound(card=A, run=2, cwd="/elsewhere"))
        assert [values(row, "id") for row in await store.sessions_in("/", limit=9)] == [(A,)]

    # --- chapters -------------------------------------------------------------------------------

    async def test_only_people_make_a_session_resettable_and_keep_it_fresh(self, store: Store) -> None:
        async def fresh() -> tuple[object, ...]:
            return values(await store.session(A), "first_input_at", "last_active_at")

        def input(by: Actor) -> InputReceived:
            return InputReceived(input="i", text="x", mode="queue", by=by)

        await session(store, A)
        await write(store, STREAM, StopRequested(turn=1, by=ME), input(TaskActor(task="t")), at=AT + 1)
        assert await fresh() == (0, 0)
        assert await store.resettable_sessions(own_policy=False) == []
        await write(store, STREAM, input(ME), at=AT + 2)
        await write(store, STREAM, TurnStarted(turn=1, inputs=["i"], profile="demo"), at=AT + 3)
        assert await fresh() == (AT + 2, AT + 2)
        await write(store, STREAM, finished(1), at=AT + 4)
        assert await fresh() == (AT + 2, AT + 4), "a turn that a person asked for"
        await write(store, STREAM, TurnStarted(turn=2, inputs=["i"], profile="demo", by_person=False), at=AT + 5)
        await write(store, STREAM, finished(2), at=AT + 6)
        assert await fresh() == (AT + 2, AT + 4)
        await write(store, STREAM, AgentChosen(profile="demo", model="", by=ME), at=AT + 7)
        assert await fresh() == (AT + 2, AT + 7)
        await write(store, STREAM, ResetPolicySet(policy=ResetPolicy(mode="idle"), by=ME), at=AT + 8)
        assert await fresh() == (AT + 8, AT + 8), "a rule is not about the time before it"
        for own in (False, True):
            assert [values(row, "id") for row in await store.resettable_sessions(own_policy=own)] == [(A,)]
        await write(store, STREAM, SessionArchived(by=ME))
        assert await store.resettable_sessions(own_policy=False) == []

    async def test_a_new_chapter_is_empty_and_one_that_is_rejoined_begins_now(self, store: Store) -> None:
        names = ("chapter", "chapter_at", "first_input_at", "last_active_at")
        await session(store, A, "one")
        await write(store, STREAM, ChapterOpened(chapter=2, rule="idle", reason="idle", by=THE_CLOCK), at=AT + 1)
        assert values(await store.session(A), *names) == (2, AT + 1, 0, 0)
        await write(store, STREAM, ChapterRejoined(chapter=2, by=ME, since=7), at=AT + 2)
        assert values(await store.session(A), *names) == (1, 7, AT + 2, AT + 2)

    async def test_a_session_whose_context_is_made_shorter_is_unfinished(self, store: Store) -> None:
        async def busy() -> bool:
            return bool(await store.unfinished_sessions())

        def failure(code: ProblemCode) -> SummaryFailed:
            return SummaryFailed(covers_turn=1, attempt=1, problem=Problem(code=code, message=""), retry_at=None)

        def written(source: str) -> SummaryWritten:
            fields = {"model": "m", "tokens_before": 9, "tokens_after": 1, "reason": "", "summary": "s"}
            return SummaryWritten(covers_turn=1, source=source, **fields)  # type: ignore[arg-type]

        wanted = SummaryRequested(instructions="", by=ME)
        begun = SummaryStarted(covers_turn=1, attempt=1, model="m", tokens=9, reason="asked")
        await session(store, A)
        for events, expected in (
            ((wanted,), True),
            ((begun,), True),
            ((failure("interrupted"),), True),
            ((begun, failure("network")), False),
            ((begun,), True),
            ((failure("interrupted"),), False),
            ((wanted, begun, written("digest")), True),
            ((begun, written("model")), False),
            ((wanted, ChapterOpened(chapter=2, rule="person", reason="", by=ME)), False),
        ):
            await write(store, STREAM, *events)
            assert await busy() is expected, events

    async def test_unused_sessions_are_at_rest_unpinned_and_nobody_continues_with_them(self, store: Store) -> None:
        async def unused(*, archived: bool = False) -> list[object]:
            return [values(row, "id")[0] for row in await store.unused_sessions(archived=archived, before=AT + 50)]

        for number, id in enumerate((B, A, C)):
            await session(store, id, at=AT + number)
        assert await unused() == [B, A, C]
        await write(store, task_stream("t"), task("t", session=B))
        await write(store, card_stream(C), card(C), run(C, session=C), run_over(C))
        assert await unused() == [A]
        await write(store, task_stream("t"), ended("t"))
        await write(store, STREAM, SessionPinned(pinned=True, by=ME))
        assert await unused() == [B]
        await write(store, OTHER, said(), at=AT)
        assert await unused() == []
        await write(store, OTHER, InputWithdrawn(input="i", by=ME), SessionArchived(by=ME))
        assert await unused(archived=True) == [B]

    # --- tasks ----------------------------------------------------------------------------------

    async def test_tasks_are_found_by_id_by_worker_and_by_what_they_take(self, store: Store) -> None:
        await write(store, task_stream(A), task(A, task_kind="agent", worker=C))
        await write(store, task_stream(B), task(B, task_kind="agent", worker=C), at=AT + 1)
        assert list(await store.tasks_by_id([B, "nobody"])) == [B]
        assert await store.tasks_of_workers([C, A]) == {C: B}
        sizes = await store.task_event_bytes([A, "nobody"])
        assert sizes["nobody"] == 0
        assert sizes[A] == len((await store.read(task_stream(A), after=0, limit=1)).lines[0])

    async def test_what_is_kept_and_pinned_is_in_the_row(self, store: Store) -> None:
        await write(store, task_stream(A), task(A, lifetime="chapter", argv=["make", "all"]))
        await write(store, task_stream(A), TaskLifetimeSet(task=A, lifetime="persist", by=ME))
        await write(store, task_stream(A), TaskPinned(task=A, pinned=True, by=ME))
        assert values(await store.task(A), "lifetime", "pinned", "version") == ("persist", True, 3)
        await write(store, task_stream(A), ended(A, files=["a.py"], survivors=["7 sleep"], output_bytes=9, preview="x"))
        names = ("state", "exit_code", "reason", "finished_at", "output_bytes", "dropped_bytes", "preview")
        assert values(await store.task(A), *names) == ("done", 0, "exit code 0", AT, 9, 0, "x")

    async def test_descendants_are_agents_at_work_and_cards_not_done(self, store: Store) -> None:
        rights = Rights(ancestors=[C, B])
        worker = SessionCreated(session=A, profile="demo", cwd="/", title="", by=ME, rights=rights)
        await write(store, STREAM, worker)
        await write(store, task_stream("t"), task("t", task_kind="agent", worker=A))
        await write(store, card_stream(A), card(A, rights=rights))
        assert (await store.count_descendants(C), await store.count_descendants(B)) == (2, 0)
        await write(store, task_stream("t"), ended("t"))
        assert await store.count_descendants(C) == 1

    async def test_what_happened_is_counted_in_slots_and_tasks_by_state(self, store: Store) -> None:
        await at_work(store)
        await write(store, STREAM, waits_for("w"), WaitAnswered(turn=1, wait="w", answer="", by=ME), at=AT + 15)
        await write(store, STREAM, failed(), at=AT + 25)
        await write(store, task_stream(A), task(A), ended(A, "lost", output_bytes=9, dropped_bytes=4), at=AT + 25)
        names = ("at", "turns", "tasks", "failed", "waits")
        slots = [values(row, *names) for row in await store.work_since(AT, step=10)]
        assert slots == [(AT + 10, 0, 0, 0, 1), (AT + 20, 1, 1, 2, 0)]
        assert [values(row, "state", "count", "bytes") for row in await store.count_tasks()] == [("lost", 1, 5)]

    # --- devices --------------------------------------------------------------------------------

    async def test_what_happened_since_counts_calls_questions_failures_and_tasks(self, store: Store) -> None:
        for id, outcome in ((A, "done"), (B, "failed"), (C, "lost")):
            await write(store, task_stream(id), task(id), ended(id, outcome))  # type: ignore[arg-type]
        await at_work(store)
        told = InputReceived(input="n", text="it ended", mode="queue", by=TaskActor(task=B), source="task", ref=B)
        call = ToolCallFinished(turn=1, call="c", tool="t", outcome="done", output="", duration_ms=1)
        await write(store, STREAM, call, waits_for("w"), NoteReceived(text="x", task=A), told, responded(), failed())
        since = await store.devices.since(A, after=3, upto=9)
        assert (since.messages, since.first, since.since) == (1, 8, AT)
        assert (since.tool_calls, since.questions, since.failures) == (1, 1, 1)
        assert since.tasks == {"done": 1, "failed": 1, "stopped": 0, "lost": 0}

    async def test_a_device_that_is_dropped_takes_its_codes_and_positions_along(self, store: Store) -> None:
        await let_in(store, "d1")
        await session(store, A)
        await store.devices.mark_seen("d1", A, 1, at=AT)
        await store.devices.add_code("mine", expires_at=AT + 9, at=AT, device="d1")
        assert await store.devices.codes(at=AT) == {"mine": AT + 9}
        await store.devices.drop("d1")
        assert await store.devices.codes(at=AT) == {}
        assert await store.devices.read_positions("d1") == {}

    async def test_the_text_so_far_is_deleted_with_its_session(self, store: Store) -> None:
        await session(store, A)
        lease = await store.claim(STREAM, holder="t")
        await store.save_partial(lease, PartialText(1, 1, "x", "", AT))
        await write(store, SYSTEM, deleted(A))
        assert await store.partial(STREAM) is None
        assert await versions(store, SYSTEM) == [1]
