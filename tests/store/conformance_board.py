"""What every store must do with boards, cards, runs and links. See `conformance.py`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from holdfast.domain.errors import Conflict, NotFound, VersionConflict
from holdfast.domain.events import AnyEvent, board_stream, card_stream, session_stream
from holdfast.domain.events.actor import THE_BOARD
from holdfast.domain.events.card import (
    BoardArchived,
    BoardCreated,
    BoardPaused,
    BoardResumed,
    CardBlocked,
    CardCommented,
    CardCompleted,
    CardCreated,
    CardEdited,
    CardFollowed,
    CardLinked,
    CardMoved,
    CardStatus,
    CardUnblocked,
    CardUnlinked,
    RunFinished,
    RunHeartbeat,
    RunReminded,
    RunStarted,
)
from holdfast.domain.events.parts import Rights
from holdfast.store.contract import Append, Appended, CommandKey, Store, Write
from holdfast.store.reads import CardFilter, StartQuery
from tests.actors import person
from tests.store.conformance import AT, A, B, C, Engine, created, finished, responded, started, values, write

ME = person("me")
ALL = CardFilter()


def card(
    id: str,
    status: CardStatus = "ready",
    *,
    board: str = "home",
    title: str = "",
    profile: str = "demo",
    priority: int = 0,
    parents: tuple[str, ...] = (),
    rights: Rights | None = None,
) -> CardCreated:
    return CardCreated(
        card=id,
        board=board,
        title=title or f"card {id[:4]}",
        body="what to do",
        by=ME,
        status=status,
        profile=profile,
        priority=priority,
        parents=list(parents),
        rights=rights,
    )


def run(id: str, number: int = 1, *, session: str = A, resumed: int = 0, after_turn: int = 0) -> RunStarted:
    return RunStarted(
        card=id,
        run=number,
        session=session,
        task=f"task of {number}",
        profile="demo",
        resumed_run=resumed,
        after_turn=after_turn,
        workspace="/w",
        workspace_state="fresh",
        fresh_reason="" if resumed else "the first run",
    )


def run_over(id: str, number: int = 1, **more: object) -> RunFinished:
    fields: dict[str, object] = {"card": id, "run": number, "outcome": "failed", "reason": "the model is away"} | more
    return RunFinished(**fields)  # type: ignore[arg-type]


async def put(store: Store, *made: CardCreated, at: int = AT) -> None:
    for event in made:
        await write(store, card_stream(event.card), event, at=at)


async def then(store: Store, id: str, *events: AnyEvent, at: int = AT) -> None:
    await write(store, card_stream(id), *events, at=at)


class BoardContract:
    """The projections of the board follow its events, and what the dispatcher asks is answered by them."""

    @pytest.fixture
    async def store(self, engine: Engine) -> AsyncIterator[Store]:
        store = await engine.open()
        yield store
        await store.close()

    async def test_a_board_is_paused_resumed_and_archived(self, store: Store) -> None:
        async def board() -> tuple[object, ...]:
            (row,) = await store.cards.boards()
            return values(row, "id", "title", "paused_by", "archived", "created_at", "version")

        stream = board_stream("home")
        await write(store, stream, BoardCreated(board="home", title="Home", by=ME))
        assert await board() == ("home", "Home", "", False, AT, 1)
        await write(store, stream, BoardPaused(board="home", by=ME), at=AT + 1)
        assert await board() == ("home", "Home", "me", False, AT, 2)
        await write(store, stream, BoardArchived(board="home", by=ME))
        assert await board() == ("home", "Home", "me", True, AT, 3)
        await write(store, stream, BoardResumed(board="home", by=ME))
        assert await board() == ("home", "Home", "", False, AT, 4)

    async def test_boards_are_listed_oldest_first_with_the_number_of_their_cards(self, store: Store) -> None:
        for at, board in ((AT, "b"), (AT - 1, "c"), (AT, "a")):
            await write(store, board_stream(board), BoardCreated(board=board, title="", by=ME), at=at)
        await put(store, card(A, board="a"), card(B, board="a"), card(C, "archived", board="b"))
        assert [values(row, "id") for row in await store.cards.boards()] == [("c",), ("a",), ("b",)]
        assert await store.cards.counts() == {"a": 2}

    async def test_a_card_is_found_by_its_id_and_by_a_unique_prefix(self, store: Store) -> None:
        await put(store, card(A), card(B), card(C))
        for prefix, id in ((A, A), ("aa", A), ("b", B), ("abc", C)):
            assert values(await store.cards.card(prefix), "id") == (id,)
        with pytest.raises(Conflict, match=f"is the beginning of several card IDs: {A}, {C}"):
            await store.cards.card("a")
        for unknown in ("c", A + "0", "%"):
            with pytest.raises(NotFound):
                await store.cards.card(unknown)

    async def test_cards_are_numbered_in_the_order_of_the_log_also_when_they_come_at_once(self, store: Store) -> None:
        ids = [f"{number:02x}" * 4 for number in range(160, 200)]
        done = await asyncio.gather(*(write(store, card_stream(id), card(id)) for id in ids))
        two = (Write(card_stream("d0" * 4), (card("d0" * 4),)), Write(card_stream("d1" * 4), (card("d1" * 4),)))
        done.append(await store.append(Append(two, AT)))
        created = sorted((record for one in done for record in one.records), key=lambda record: record.seq)
        assert [record.event.number for record in created] == list(range(1, 43))  # type: ignore[union-attr]
        for record in created:
            row = await store.cards.card(record.stream.removeprefix("card/"))
            assert row.number == record.event.number  # type: ignore[union-attr]
        assert await store.load(card_stream(ids[0]), after=0) == list(done[0].records), "the log says it, too"

    async def test_a_refused_or_repeated_create_takes_no_number(self, store: Store) -> None:
        async def create(id: str, key: str, expect: int = 0) -> Appended:
            made = Write(card_stream(id), (card(id),), expect=expect)
            return await store.append(Append((made,), AT, command=CommandKey(key, id)))

        outcomes = await asyncio.gather(
            create(A, "one-command"), create(A, "another-one"), create(B, "third-one", expect=7), create(C, "last-one"),
            return_exceptions=True,
        )  # fmt: skip
        assert [type(outcome) for outcome in outcomes] == [Appended, VersionConflict, VersionConflict, Appended]
        assert (await create(A, "one-command")).duplicate
        assert [(await store.cards.card(id)).number for id in (A, C)] == [1, 2]

    async def test_a_number_is_not_given_again_after_the_store_was_reopened(self, engine: Engine) -> None:
        for id, number in ((A, 1), (B, 2), (C, 3)):
            store = await engine.open()
            await put(store, card(id))
            assert (await store.cards.card(id)).number == number
            await store.close()

    async def test_a_card_that_is_copied_with_its_number_keeps_it(self, store: Store) -> None:
        await put(store, replace(card(A), number=41), card(B))
        assert [(await store.cards.card(id)).number for id in (A, B)] == [41, 42]

    async def test_a_card_is_found_by_its_number(self, store: Store) -> None:
        await put(store, card("3abc0000"), card("2abc0000"), card("5bbb0000"))
        for name in ("HF-2", "hf-2", "Hf2", "2", "hf-002"):
            assert (await store.cards.card(name)).id == "2abc0000", name
        assert (await store.cards.card("3")).id == "5bbb0000", "a number, since so short a prefix is none"
        assert (await store.cards.card("3ABC")).id == "3abc0000"
        for unknown in ("HF-4", "hf-0", "HF-", "HF-2x", "-2", "2 "):
            with pytest.raises(NotFound):
                await store.cards.card(unknown)

    async def test_digits_that_are_a_number_and_the_beginning_of_an_id_are_refused(self, store: Store) -> None:
        await put(store, replace(card(A), number=12345678), card("12345678"), replace(card(B), number=1234))
        assert (await store.cards.card("12345678")).id == "12345678", "a whole id names its card"
        assert (await store.cards.card("HF-12345678")).id == A
        with pytest.raises(Conflict, match="1234 is the number of card HF-1234 and the beginning of the id 12345678"):
            await store.cards.card("1234")
        assert (await store.cards.card("12345")).id == "12345678"
        assert (await store.cards.card("HF-1234")).id == B

    async def test_the_row_of_a_card_follows_what_is_said_about_it(self, store: Store) -> None:
        async def row(*names: str) -> tuple[object, ...]:
            return values(await store.cards.card(A), *names)

        await put(store, card(A, "triage", title="one", priority=3))
        assert await row("board", "title", "profile", "workspace", "priority", "status", "done", "created_by") == (
            "home",
            "one",
            "demo",
            "scratch",
            3,
            "triage",
            False,
            "me",
        )
        await then(store, A, CardEdited(card=A, by=ME, title="two", priority=0), at=AT + 1)
        assert await row("title", "profile", "priority", "moved_at", "updated_at", "version") == (
            "two",
            "demo",
            0,
            AT,
            AT + 1,
            2,
        )
        await then(store, A, CardCommented(card=A, comment="c", text="hm", by=ME), at=AT + 2)
        await then(store, A, CardFollowed(card=A, session=B, following=True, by=ME), at=AT + 3)
        assert await row("comments", "updated_at", "version") == (1, AT + 3, 4)
        await then(store, A, CardMoved(card=A, status="scheduled", reason="later", by=ME, at=AT + 99), at=AT + 4)
        assert await row("status", "reason", "scheduled_at", "moved_at") == ("scheduled", "later", AT + 99, AT + 4)
        await then(store, A, CardBlocked(card=A, block_kind="needs_input", reason="which?", by=ME), at=AT + 5)
        assert await row("status", "reason", "block_kind", "scheduled_at") == ("blocked", "which?", "needs_input", None)
        await then(store, A, CardUnblocked(card=A, by=ME, reason="this one"), at=AT + 6)
        assert await row("status", "reason", "block_kind", "moved_at") == ("ready", "this one", "", AT + 6)
        await then(store, A, CardCompleted(card=A, summary="all of it", by=ME), at=AT + 7)
        assert await row("status", "done", "reason", "version") == ("done", True, "all of it", 8)
        await then(store, A, CardMoved(card=A, status="archived", reason="", by=ME))
        assert await row("status", "done") == ("archived", True), "what was done stays done in the archive"
        await then(store, A, CardMoved(card=A, status="todo", reason="again", by=ME))
        assert await row("status", "done") == ("todo", False)

    async def test_cards_are_listed_most_urgent_first_filtered_and_in_pages(self, store: Store) -> None:
        await put(store, card(A, "ready", title="Öl the Door"), card(B, "todo", priority=5), at=AT + 1)
        await put(store, card(C, "archived", profile="other"), card("d" * 16, board="work"), at=AT)

        async def found(wanted: CardFilter, *, offset: int = 0, limit: int = 9) -> list[str]:
            rows = await store.cards.cards(wanted, offset=offset, limit=limit)
            return [str(values(row, "id")[0])[0:2] for row in rows]

        assert await found(ALL) == ["bb", "dd", "aa"]
        assert await found(ALL, offset=1, limit=1) == ["dd"]
        assert await found(CardFilter(archived=True)) == ["bb", "ab", "dd", "aa"]
        assert await found(CardFilter(status="archived")) == ["ab"]
        assert await found(CardFilter(board="work")) == ["dd"]
        assert await found(CardFilter(profile="other", archived=True)) == ["ab"]
        assert await found(CardFilter(text="hf-2")) == await found(CardFilter(text="HF-2")) == ["bb"]
        assert await found(CardFilter(text="the DOOR")) == await found(CardFilter(text="öL")) == ["aa"]

    # --- links ----------------------------------------------------------------------------------

    async def test_links_are_kept_once_and_taken_away(self, store: Store) -> None:
        await put(store, card(A), card(B, "todo", parents=(A,)), card(C, "todo"))
        for _ in range(2):
            await then(store, C, CardLinked(card=C, parent=A, by=ME))
        assert sorted(await store.cards.links()) == [(A, C), (A, B)]
        assert [values(row, "id") for row in await store.cards.children(A)] == [(C,), (B,)]
        assert [values(row, "id") for row in await store.cards.parents(C)] == [(A,)]
        await then(store, B, CardUnlinked(card=B, parent=A, by=ME), at=AT + 5)
        assert await store.cards.links() == [(A, C)]
        assert values(await store.cards.card(B), "updated_at", "version") == (AT + 5, 2)

    async def test_a_card_is_promoted_when_its_time_has_come_or_all_its_parents_are_done(self, store: Store) -> None:
        await put(store, card(A), card(B, "todo", parents=(A, C)), card(C))
        assert await store.cards.to_promote(AT) == []
        await then(store, A, CardCompleted(card=A, summary="", by=ME))
        assert await store.cards.to_promote(AT) == []
        await then(store, C, CardCompleted(card=C, summary="", by=ME))
        await then(store, C, CardMoved(card=C, status="archived", reason="", by=ME))
        assert await store.cards.to_promote(AT) == [B]
        await then(store, B, CardMoved(card=B, status="scheduled", reason="", by=ME, at=AT + 10))
        assert await store.cards.to_promote(AT + 9) == []
        assert await store.cards.to_promote(AT + 10) == [B]

    # --- what a dispatcher asks -----------------------------------------------------------------

    async def test_what_can_start_is_ready_has_room_and_waits_for_nothing(self, store: Store) -> None:
        blocked_by_parent, other_board, other_profile = "d" * 16, "e" * 16, "f" * 16
        await put(store, card(A), card(B, priority=1), card(C, "todo"), card(blocked_by_parent, parents=(C,)))
        await put(store, card(other_board, board="work"), card(other_profile, profile="other"))

        async def found(*, now: int = AT, limit: int = 9, exclude: tuple[str, ...] = ()) -> list[object]:
            wanted = StartQuery(boards=["home"], profiles=["demo"], limit=limit, exclude=list(exclude))
            return [values(row, "id", "board", "profile") for row in await store.cards.to_start(wanted, now=now)]

        assert await found() == [(B, "home", "demo"), (A, "home", "demo")]
        assert await found(limit=1) == [(B, "home", "demo")]
        assert await found(exclude=(B,)) == [(A, "home", "demo")]
        await then(store, A, run(A), run_over(A, retry_at=AT + 50))
        assert await found(exclude=(B,)) == []
        assert await found(exclude=(B,), now=AT + 50) == [(A, "home", "demo")]
        assert await found(exclude=(B,), now=AT - 1) == [(A, "home", "demo")], "the clock was set back"
        await then(store, A, CardUnblocked(card=A, by=ME))
        assert await found(exclude=(B,)) == [(A, "home", "demo")], "a person does not wait for a retry"

    async def test_cards_that_only_a_person_can_move_are_in_the_inbox(self, store: Store) -> None:
        await write(store, board_stream("home"), BoardCreated(board="home", title="", by=ME))
        await write(store, board_stream("old"), BoardCreated(board="old", title="", by=ME))
        await write(store, board_stream("old"), BoardArchived(board="old", by=ME))
        review, nobody, behind, parent = "d" * 16, "e" * 16, "f" * 16, "0" * 16
        await put(store, card(review, "review"), at=AT + 3)
        await put(store, card(A), card(nobody, profile="gone"), card(B, "blocked"), card(C, "blocked", board="old"))
        await put(store, card(parent), card(behind, "todo", parents=(parent,)), at=AT + 1)

        async def found() -> list[object]:
            return [values(row, "id")[0] for row in await store.cards.for_people(["demo"])]

        assert await found() == [B, nobody, review]
        await then(store, parent, CardMoved(card=parent, status="archived", reason="no", by=ME))
        assert await found() == [B, nobody, behind, review], "it waits for a card that will never be done"

    # --- runs -----------------------------------------------------------------------------------

    async def test_promise_2_a_run_has_its_card_and_its_session_until_it_ends(self, store: Store) -> None:
        await put(store, card(A))
        await then(store, A, run(A, session=B), at=AT + 1)
        names = ("status", "run", "session", "warning", "reason", "moved_at", "version")
        assert values(await store.cards.card(A), *names) == ("running", 1, B, "the first run", "", AT + 1, 2)
        (row,) = await store.cards.open_runs()
        assert values(row, "card", "run", "session", "board", "outcome", "finished_at") == (
            A,
            1,
            B,
            "home",
            "running",
            None,
        )
        found = await store.cards.open_run_of(B)
        assert found is not None
        assert values(found, "card", "run", "task", "workspace", "after_turn", "started_at") == (
            A,
            1,
            "task of 1",
            "/w",
            0,
            AT + 1,
        )
        assert await store.cards.open_run_of(A) is None
        await then(store, A, RunHeartbeat(card=A, run=1, note="half"), RunReminded(card=A, run=1), at=AT + 2)
        await then(
            store, A, run_over(A, failure="network", uses_attempt=True, until_turn=3, retry_at=AT + 9), at=AT + 3
        )
        assert await store.cards.open_runs() == []
        assert await store.cards.open_run_of(B) is None
        (ended,) = await store.cards.runs(A)
        assert values(ended, "outcome", "failure", "reason", "counts", "note", "until_turn", "finished_at") == (
            "failed",
            "network",
            "the model is away",
            True,
            "half",
            3,
            AT + 3,
        )
        assert values(await store.cards.card(A), "status", "reason", "retry_at", "updated_at", "version") == (
            "ready",
            "the model is away",
            AT + 9,
            AT + 3,
            5,
        )

    async def test_a_card_that_moved_while_it_ran_stays_there_when_the_run_ends(self, store: Store) -> None:
        await put(store, card(A))
        await then(store, A, run(A), CardCompleted(card=A, summary="did it", by=THE_BOARD))
        await then(store, A, run_over(A, outcome="done", reason="it is done"))
        assert values(await store.cards.card(A), "status", "done", "retry_at") == ("done", True, None)

    async def test_a_run_costs_what_the_turns_of_its_session_cost_while_it_ran(self, store: Store) -> None:
        stream = session_stream(A)
        await put(store, card(B))
        await write(store, stream, created(A))
        for turn in (1, 2, 3):
            await write(store, stream, started(turn), responded(turn=turn), finished(turn))
        await then(store, B, run(B, after_turn=1), run_over(B, until_turn=2))
        await then(store, B, run(B, 2, resumed=1, after_turn=2))
        first, second = await store.cards.runs(B)
        assert values(first, "run", "resumes", "fresh_because", "input_tokens", "output_tokens", "cost") == (
            1,
            0,
            "the first run",
            2,
            3,
            None,
        )
        assert values(second, "run", "resumes", "fresh_because", "input_tokens") == (2, 1, "", 2)

    async def test_the_board_is_there_after_reopening(self, engine: Engine) -> None:
        store = await engine.open()
        await put(store, card(A), card(B, "todo", parents=(A,)))
        await then(store, A, run(A, session=C))
        before = await store.cards.card(A), await store.cards.open_runs(), await store.cards.links()
        await store.close()
        store = await engine.open()
        assert (await store.cards.card(A), await store.cards.open_runs(), await store.cards.links()) == before
        await store.close()
