"""The delivery of what is in the outbox: once, in order, tried again with pauses, given up visibly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast.notify.channel import GiveUp, NoticeMessage, Result, Sent, TryAgain, Unsure
from holdfast.notify.destinations import Destination
from holdfast.notify.presence import LOOKING_MS, Presence
from holdfast.notify.sender import (
    COLLAPSE_ABOVE,
    GIVE_UP_MS,
    LEAST_TRIES,
    LONGEST_PAUSE_MS,
    SET_BACK_MS,
    OutboxSender,
)
from holdfast.store.outbox_store import DeliveryKind, DeliveryRow, OutboxPlan, SettledMatter
from holdfast.store.sqlite.store import SqliteStore
from tests.rig import StoppedClock
from tests.store.conformance_outbox import TO, delivery

NOW = 1_700_000_000_000
DAY_MS = 86_400_000


class Notebook:
    """A channel that writes down what it gets, and answers what it is told to."""

    reports_settled = True
    repeatable = True

    def __init__(self) -> None:
        self.messages: list[NoticeMessage] = []
        self.results: list[Result] = []
        self.hold: asyncio.Event | None = None
        self.arrived = asyncio.Event()

    async def send(self, message: NoticeMessage) -> Result:
        self.messages.append(message)
        self.arrived.set()
        if self.hold is not None:
            await self.hold.wait()
        return self.results.pop(0) if self.results else Sent(receipt=f"r{len(self.messages)}")

    async def close(self) -> None: ...


class Fixed:
    """Destinations that do not change."""

    def __init__(self, **all: Destination) -> None:
        self.found = {name.replace("_", "."): one for name, one in all.items()}

    def all(self) -> Mapping[str, Destination]:
        return self.found

    def find(self, name: str) -> Destination | None:
        return self.found.get(name)


class Post:
    """A sender with its surroundings; `round` is one look at what is due, to its end."""

    def __init__(self, store: SqliteStore, channel: Notebook | None = None) -> None:
        self.clock, self.channel, self.store = StoppedClock(NOW), channel or Notebook(), store
        self.channel.hold = None
        self.presence = Presence(self.clock)
        destination = Destination(TO, self.channel, frozenset({"question", "done"}), when_absent=True, details=False)
        self.destinations = Fixed(webhooks_mine=destination)
        self.sender = OutboxSender(
            store.outbox,
            self.destinations,  # type: ignore[arg-type]
            presence=self.presence,
            clock=self.clock,
            mask=lambda text: text.replace("hunter2", "[hidden]"),
            address=lambda: "https://holdfast.example",
        )

    async def plan(self, *rows: DeliveryRow | SettledMatter) -> None:
        await self.store.outbox.plan(OutboxPlan(max(row.seq for row in rows), rows))

    async def round(self) -> None:
        self.sender._pauses.clear()  # the clock of the pauses is the loop's, which does not stand still
        await self.sender._look_for_due()
        while self.sender._busy:
            await asyncio.gather(*self.sender._busy.values())

    async def row(self, id: str) -> DeliveryRow:
        return next(row for row in await self.store.outbox.history(limit=1000) if row.id == id)

    @property
    def told(self) -> list[str]:
        return [message.id for message in self.channel.messages]


@pytest.fixture
async def post(tmp_path: Path) -> AsyncIterator[Post]:
    store = SqliteStore(tmp_path / "holdfast.db")
    found = Post(store)
    yield found
    await found.sender.stop()
    await store.close()


def new(seq: int = 1, kind: DeliveryKind = "question", **changes: object) -> DeliveryRow:
    row = delivery(seq, matter=str(changes.pop("matter", f"wait/{seq}")), kind=kind)
    return replace(row, at=NOW, due_at=NOW, **changes)


async def test_it_is_sent_once_with_no_more_than_the_title(post: Post) -> None:
    row = new(title="Fix hunter2", detail="the plan is hunter2")
    await post.plan(row)
    for _ in range(3):
        await post.round()
    (message,) = post.channel.messages
    assert (message.id, message.title, message.text) == (row.id, "Fix [hidden]", "asks a question")
    assert message.url == f"https://holdfast.example{row.link}"
    found = await post.row(row.id)
    assert (found.state, found.attempts, found.receipt) == ("sent", 1, "r1")


async def test_details_are_sent_where_that_is_allowed_and_masked(post: Post) -> None:
    post.destinations.found[TO] = Destination(TO, post.channel, frozenset(), when_absent=True, details=True)
    await post.plan(new(detail="the plan is hunter2"))
    await post.round()
    assert post.channel.messages[0].text == "asks a question: the plan is [hidden]"
    await post.plan(new(2, kind="reset", detail="make: working\nserve: in use"))
    await post.round()
    assert post.channel.messages[1].text == "asks a question:\nmake: working\nserve: in use"


@pytest.mark.parametrize(
    ("detail", "details", "choices"),
    [("allow ls?", True, ["allow", "deny"]), ("allow ls?", False, ["deny"]), ("allow hunter2?", True, ["deny"])],
)
async def test_nothing_is_allowed_that_was_not_shown(
    post: Post, detail: str, details: bool, choices: list[str]
) -> None:
    post.destinations.found[TO] = Destination(TO, post.channel, frozenset(), when_absent=True, details=details)
    await post.plan(new(detail=detail, wait="w1", choices=["allow", "deny"]))
    await post.round()
    (message,) = post.channel.messages
    assert (message.wait, message.choices) == ("w1", choices)


async def test_what_an_agent_wrote_hides_nothing(post: Post) -> None:
    post.destinations.found[TO] = Destination(TO, post.channel, frozenset(), when_absent=True, details=True)
    title, detail = "Fix \u202eit\x1b[31m red\x07", "key: hun\u200eter2\r\nnext"
    await post.plan(new(title=title, detail=detail, choices=["allow", "deny"]))
    await post.round()
    (message,) = post.channel.messages
    assert message.title == "Fix it red"
    assert message.text == "asks a question: key: [hidden]\nnext", "also a key that was hidden between such signs"
    assert message.choices == ["deny"], "it is not word for word what would be allowed"


async def test_a_channel_with_a_defect_holds_nothing_up(post: Post, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Notebook):
        async def send(self, message: NoticeMessage) -> Result:
            await super().send(message)
            raise TypeError

    broken = Broken()
    post.destinations.found[TO] = Destination(TO, broken, frozenset(), when_absent=True, details=False)
    row = new()
    await post.plan(row)
    await post.round()
    found = await post.row(row.id)
    assert (found.state, found.attempts) == ("pending", 1)
    assert "It failed unexpectedly (TypeError)" in found.error
    assert "failed unexpectedly" in caplog.text
    broken.repeatable = False
    post.clock.move(found.due_at - post.clock.now())
    await post.round()
    assert (await post.row(row.id)).state == "unsure"


async def test_what_fails_is_tried_again_in_order_with_growing_pauses_under_the_same_id(post: Post) -> None:
    first, second = new(1), new(2)
    await post.plan(first, second)
    pauses = []
    post.channel.results = [TryAgain("It answered 500.")] * 12
    for _ in range(12):
        await post.round()
        row = await post.row(first.id)
        assert (row.state, row.error) == ("pending", "It answered 500.")
        pauses.append(row.due_at - post.clock.now())
        post.clock.move(row.due_at - post.clock.now())
        await post.store.outbox.mark(replace(await post.row(second.id), due_at=post.clock.now() + 1))
    assert pauses[:3] == [5_000, 10_000, 20_000]
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_PAUSE_MS
    post.clock.move(1)
    await post.round()
    assert post.told == [first.id] * 13 + [second.id]


async def test_a_destination_that_asks_for_a_pause_gets_it(post: Post) -> None:
    row = new()
    await post.plan(row)
    post.channel.results = [TryAgain("It answered 429.", after_ms=600_000)]
    await post.round()
    assert (await post.row(row.id)).due_at == NOW + 600_000
    post.clock.move(599_999)
    await post.round()
    assert len(post.told) == 1
    post.clock.move(1)
    await post.round()
    assert (await post.row(row.id)).state == "sent"


async def test_it_is_given_up_after_three_days_and_says_so(post: Post) -> None:
    row = new()
    await post.plan(row)
    post.channel.results = [*[TryAgain("It answered 500.")] * (LEAST_TRIES - 1), TryAgain("It answered 502.")]
    for _ in range(LEAST_TRIES - 1):
        await post.round()
        assert (await post.row(row.id)).state == "pending"
        post.clock.move(LONGEST_PAUSE_MS)
    post.clock.move(GIVE_UP_MS)
    await post.round()
    found = await post.row(row.id)
    assert (found.state, found.error) == ("failed", "given up after 3 days; the last problem: It answered 502.")


async def test_what_can_never_work_is_given_up_at_once_and_the_next_is_sent(post: Post) -> None:
    first, second = new(1), new(2)
    await post.plan(first, second)
    post.channel.results = [GiveUp("It answered 404.", hint="Check its address.")]
    await post.round()
    assert ((await post.row(first.id)).state, (await post.row(second.id)).state) == ("failed", "sent")
    assert (await post.row(first.id)).error == "It answered 404. Check its address."


async def test_a_question_that_somebody_looks_at_is_sent_only_when_they_leave(post: Post) -> None:
    row = new()
    await post.plan(row)
    post.presence.look([row.stream])
    await post.round()
    assert post.told == []
    post.clock.move(LOOKING_MS - 1)
    post.presence.look([row.stream])
    await post.round()
    post.clock.move(LOOKING_MS - 1)
    await post.round()
    assert post.told == []
    post.clock.move(1)
    await post.round()
    assert post.told == [row.id]


async def test_an_attached_terminal_counts_as_looking(post: Post) -> None:
    row = new()
    await post.plan(row)
    with post.presence.attached(row.stream):
        for _ in range(3):
            await post.round()
            post.clock.move(LOOKING_MS)
    await post.round()
    assert post.told == []
    post.clock.move(LOOKING_MS)
    await post.round()
    assert post.told == [row.id]


async def test_somebody_who_saw_the_end_is_not_notified(post: Post) -> None:
    row = new(kind="done")
    await post.plan(row)
    post.clock.move(10)
    post.presence.look([row.stream])
    await post.round()
    found = await post.row(row.id)
    assert (found.state, found.error, post.told) == ("dropped", "somebody looked at it", [])


async def test_somebody_who_looked_before_the_end_is_notified(post: Post) -> None:
    row = new(kind="done")
    post.presence.look([row.stream])
    post.clock.move(LOOKING_MS)
    await post.plan(replace(row, at=post.clock.now(), due_at=post.clock.now()))
    await post.round()
    assert post.told == [row.id]


async def test_a_destination_that_got_a_notice_gets_the_settled_message_with_the_receipt(post: Post) -> None:
    row = new()
    await post.plan(row)
    await post.round()
    await post.plan(SettledMatter(matter=row.matter, seq=5, at=NOW, how="answered: allow"))
    await post.round()
    settled = post.channel.messages[-1]
    assert (settled.kind, settled.text, settled.receipt) == ("settled", "answered: allow", "r1")
    assert len(post.channel.messages) == 2


async def test_nobody_misses_that_something_is_settled(post: Post) -> None:
    row = new()
    await post.plan(row)
    await post.round()
    post.channel.results = [GiveUp("It answered 410.")]
    await post.plan(SettledMatter(matter=row.matter, seq=5, at=NOW, how="answered: allow"))
    await post.round()
    found = {one.kind: (one.state, one.error) for one in await post.store.outbox.history(limit=9)}
    assert found["settled"] == ("dropped", "It answered 410.")
    assert (await post.store.outbox.summaries())[TO][1] == 0, "it is not counted as given up"


async def test_settled_while_it_is_being_sent_and_the_sending_fails(post: Post) -> None:
    row = new()
    await post.plan(row)
    post.channel.hold, post.channel.results = asyncio.Event(), [TryAgain("It answered 500.")]
    looking = asyncio.create_task(post.round())
    await post.channel.arrived.wait()
    await post.plan(SettledMatter(matter=row.matter, seq=5, at=NOW, how="answered"))
    post.channel.hold.set()
    await looking
    await post.round()
    assert len(post.channel.messages) == 1, "it was never told, so there is nothing to take back"
    assert {one.state for one in await post.store.outbox.history(limit=9)} == {"dropped"}


async def test_a_channel_without_settled_messages_gets_none(post: Post) -> None:
    post.channel.reports_settled = False
    row = new()
    await post.plan(row)
    await post.round()
    await post.plan(SettledMatter(matter=row.matter, seq=5, at=NOW, how="answered"))
    await post.round()
    assert len(post.channel.messages) == 1
    assert await post.store.outbox.pending(TO) == []


async def test_a_week_offline_becomes_one_message(post: Post) -> None:
    rows = [new(seq, kind="done" if seq % 2 else "question") for seq in range(1, 501)]
    await post.plan(*rows)
    post.clock.move(7 * DAY_MS)
    await post.round()
    (message,) = post.channel.messages
    assert message.kind == "digest"
    assert "500 things happened" in message.text
    assert "question: 250" in message.text
    assert await post.store.outbox.pending(TO) == []
    assert "one notice about 500 was sent instead" in (await post.row(rows[0].id)).error


async def test_a_week_of_failures_becomes_one_message_about_all_of_it(post: Post) -> None:
    seq = 0
    for _ in range(7 * 24):
        rows = [new(seq + number, kind="done") for number in (1, 2, 3)]
        seq += len(rows)
        await post.plan(*(replace(row, at=post.clock.now(), due_at=post.clock.now()) for row in rows))
        post.channel.results = [TryAgain("It cannot be reached.")]
        await post.round()
        post.clock.move(LONGEST_PAUSE_MS)
    post.channel.messages.clear()
    await post.round()
    (message,) = post.channel.messages
    assert message.text.startswith(f"{seq} things happened while this could not be delivered (done: {seq})")
    assert await post.store.outbox.pending(TO) == []
    await post.round()
    assert len(post.channel.messages) == 1


async def test_one_message_about_many_says_what_waits_at_that_moment(post: Post) -> None:
    asked = [replace(new(seq), title=f"Session {seq}", link=f"/s/{seq}") for seq in (1, 2)]
    await post.plan(*asked, *(new(seq, kind="done") for seq in range(3, 9)))
    post.clock.move(DAY_MS)
    post.channel.results = [TryAgain("It cannot be reached.")] * 2
    await post.round()
    assert post.channel.messages[-1].text.endswith("; 2 wait for you, first of all Session 1")
    assert post.channel.messages[-1].link == "/"
    await post.plan(SettledMatter(matter=asked[0].matter, seq=20, at=post.clock.now(), how="answered"))
    post.clock.move(LONGEST_PAUSE_MS)
    await post.round()
    assert post.channel.messages[-1].text.endswith("; one thing waits for you: Session 2")
    assert post.channel.messages[-1].link == "/s/2"
    await post.plan(SettledMatter(matter=asked[1].matter, seq=21, at=post.clock.now(), how="answered"))
    post.clock.move(LONGEST_PAUSE_MS)
    await post.round()
    assert post.channel.messages[-1].text.endswith("; nothing waits for you")
    assert len({message.id for message in post.channel.messages}) == 1


async def test_a_settled_message_is_not_collapsed(post: Post) -> None:
    row = new(1)
    await post.plan(row)
    await post.round()
    await post.plan(SettledMatter(matter=row.matter, seq=2, at=NOW, how="answered"), *(new(n) for n in range(3, 10)))
    post.clock.move(DAY_MS)
    await post.round()
    assert [message.kind for message in post.channel.messages] == ["question", "digest", "settled"]


async def test_a_machine_that_slept_for_days_does_not_give_up_at_the_first_failure(post: Post) -> None:
    row = new()
    await post.plan(row)
    post.clock.move(GIVE_UP_MS)  # the network is not up yet
    post.channel.results = [TryAgain("It cannot be reached.")]
    await post.round()
    assert (await post.row(row.id)).state == "pending"
    post.clock.move(LONGEST_PAUSE_MS)
    await post.round()
    assert (await post.row(row.id)).state == "sent"


async def test_a_look_in_the_future_of_a_clock_that_was_set_back_is_none(post: Post) -> None:
    row = new()
    post.clock.move(30 * DAY_MS)
    post.presence.look([row.stream])
    post.clock.move(-30 * DAY_MS)
    await post.plan(row)
    await post.round()
    assert post.told == [row.id]
    post.presence.look([row.stream])
    assert post.presence.last_look(row.stream) == NOW, "from now on it is right again"


async def test_a_burst_is_not_collapsed(post: Post) -> None:
    rows = [new(seq) for seq in range(1, COLLAPSE_ABOVE + 5)]
    await post.plan(*rows)
    await post.round()
    assert post.told == [row.id for row in rows]


async def test_a_destination_that_was_removed(post: Post) -> None:
    row = new()
    await post.plan(row)
    post.destinations.found.clear()
    await post.round()
    assert (await post.row(row.id)).error == "its destination is gone"


async def test_a_clock_that_is_set_back_holds_up_nothing(post: Post) -> None:
    row = new()
    await post.plan(replace(row, due_at=NOW + 30 * DAY_MS))  # planned before the clock was set right
    await post.round()
    assert post.told == [row.id]
    assert SET_BACK_MS < 30 * DAY_MS


async def test_a_crash_while_it_is_sent_sends_it_again_under_the_same_id(post: Post) -> None:
    row = new()
    await post.plan(row)
    post.channel.hold = asyncio.Event()
    looking = asyncio.create_task(post.round())
    await post.channel.arrived.wait()
    await post.sender.stop()  # as a crash: nothing is recorded
    await asyncio.gather(looking, return_exceptions=True)
    assert (await post.row(row.id)).state == "sending"
    await Post(post.store, post.channel).round()
    assert post.told == [row.id, row.id]
    assert (await post.row(row.id)).state == "sent"


async def crashed_while_sending(post: Post, *rows: DeliveryRow) -> None:
    await post.plan(*rows)
    for row in rows:
        await post.store.outbox.mark(replace(row, state="sending", attempts=1))


async def test_a_crash_where_it_would_be_shown_twice_leaves_it_unsure(post: Post) -> None:
    post.channel.repeatable = False
    row = new(kind="answer")
    await crashed_while_sending(post, row)
    await post.round()
    found = await post.row(row.id)
    assert (found.state, found.error) == ("unsure", "the gateway ended while it was being sent")
    assert [message.kind for message in post.channel.messages] == ["doubt"], "whoever waits for it is told"


async def test_a_clean_end_lets_a_message_that_cannot_be_repeated_arrive(post: Post) -> None:
    post.channel.repeatable = False
    first, second = new(1, kind="answer"), new(2, kind="answer")
    await post.plan(first, second)
    post.channel.hold = asyncio.Event()
    looking = asyncio.create_task(post.round())
    await post.channel.arrived.wait()
    stopping = asyncio.create_task(post.sender.stop())
    await asyncio.sleep(0)
    post.channel.hold.set()
    await asyncio.gather(stopping, looking)
    assert [(await post.row(row.id)).state for row in (first, second)] == ["sent", "pending"]


async def test_a_settled_message_is_sent_again_after_a_crash_while_sending(post: Post) -> None:
    post.channel.repeatable = False
    asked = new(1, matter="wait/a")
    await post.plan(asked)
    await post.round()
    await post.plan(SettledMatter("wait/a", 2, NOW, "answered"))
    (row,) = await post.store.outbox.pending(TO)
    await post.store.outbox.mark(replace(row, state="sending", attempts=1))
    await Post(post.store, post.channel).round()
    assert [message.kind for message in post.channel.messages] == ["question", "settled"]


async def test_what_may_have_arrived_is_marked_and_the_next_one_is_sent(post: Post) -> None:
    post.channel.results = [Unsure("It did not answer.")]
    first, second = new(1), new(2)
    await post.plan(first, second)
    await post.round()
    await post.round()
    assert post.told == [first.id, second.id]
    found = await post.row(first.id)
    assert (found.state, found.error) == ("unsure", "It did not answer.")


async def test_a_notice_that_may_not_have_arrived_is_not_edited(post: Post) -> None:
    post.channel.results = [Unsure("It did not answer.")]
    await post.plan(new(1, matter="wait/a"))
    await post.round()
    await post.plan(SettledMatter("wait/a", 2, NOW, "answered"))
    await post.round()
    assert len(post.told) == 1


async def test_answers_of_a_conversation_all_arrive_however_long_it_took(post: Post) -> None:
    post.destinations.found[TO] = Destination(
        TO, post.channel, frozenset(), when_absent=False, details=True, is_conversation=True
    )
    rows = [new(seq, kind="answer", matter=f"answer/{seq}") for seq in range(1, COLLAPSE_ABOVE + 3)]
    await post.plan(*rows)
    post.clock.move(DAY_MS)
    await post.round()
    assert post.told == [row.id for row in rows]


class Gate:
    def __init__(self) -> None:
        self.waiting, self.open = asyncio.Event(), asyncio.Event()

    async def wait(self) -> None:
        self.waiting.set()
        await self.open.wait()


async def test_what_is_settled_while_it_waits_for_its_turn_is_not_sent(post: Post) -> None:
    gate = Gate()
    post.destinations.found[TO] = Destination(TO, post.channel, frozenset(), when_absent=False, details=True, pace=gate)
    await post.plan(new(1, matter="wait/a"))
    looking = asyncio.create_task(post.round())
    await gate.waiting.wait()
    await post.plan(SettledMatter("wait/a", 2, NOW, "answered"))
    gate.open.set()
    await looking
    assert post.told == []


async def test_what_waits_for_its_turn_is_not_being_sent_yet(post: Post) -> None:
    gate = Gate()
    post.destinations.found[TO] = Destination(TO, post.channel, frozenset(), when_absent=False, details=True, pace=gate)
    row = new()
    await post.plan(row)
    looking = asyncio.create_task(post.round())
    await gate.waiting.wait()
    assert (await post.row(row.id)).state == "pending"
    gate.open.set()
    await looking
    assert (await post.row(row.id)).state == "sent"


async def test_one_destination_that_hangs_does_not_hold_up_another(post: Post) -> None:
    other = Notebook()
    post.destinations.found["webhooks.other"] = Destination(
        "webhooks.other", other, frozenset(), when_absent=False, details=False
    )
    post.channel.hold = asyncio.Event()
    await post.plan(new(1), replace(new(2), destination="webhooks.other"))
    looking = asyncio.create_task(post.round())
    await other.arrived.wait()
    assert len(other.messages) == 1
    post.channel.hold.set()
    await looking


async def test_one_with_a_long_backlog_that_pauses_does_not_hold_up_another(post: Post) -> None:
    other = Notebook()
    post.destinations.found["webhooks.other"] = Destination(
        "webhooks.other", other, frozenset(), when_absent=False, details=False
    )
    await post.plan(*(new(seq) for seq in range(1, 601)), replace(new(601), destination="webhooks.other"))
    post.channel.results = [TryAgain("It answered 429.", after_ms=60_000)]
    await post.sender._look_for_due()
    await asyncio.gather(*post.sender._busy.values())
    await post.sender._look_for_due()
    assert (len(post.channel.messages), len(other.messages)) == (1, 1)


async def test_it_wakes_up_by_itself_when_something_is_due_again(post: Post) -> None:
    await post.plan(replace(new(), due_at=NOW + 60))
    post.sender.start()
    await asyncio.sleep(0)
    post.clock.move(60)
    await post.channel.arrived.wait()
