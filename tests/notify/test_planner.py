"""From the log to the outbox: what each event tells, to whom, and what a crash leaves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast.config import Home
from holdfast.domain.events import SYSTEM, AnyEvent, session_stream, task_stream
from holdfast.domain.events.actor import Actor, ServiceActor
from holdfast.domain.events.card import CardBlocked, CardCompleted, CardEdited, CardMoved, CardUnblocked, RunFinished
from holdfast.domain.events.chapter import Blocker, ChapterOpened, ResetPostponed, ResetRule, Survivor
from holdfast.domain.events.external_agent import IMPORTED
from holdfast.domain.events.parts import Delegated, NotifyChoice, ShownArgument
from holdfast.domain.events.session import (
    Purpose,
    SessionCreated,
    SessionTellSet,
    TurnFinished,
    WaitAnswered,
    WaitOpened,
)
from holdfast.domain.events.system import GatewayStarted, StaleListed
from holdfast.domain.events.task import TaskFinished, TaskPruned, TaskTellSet, TurnEnded
from holdfast.profiles import Profiles
from holdfast.store.contract import Store
from tests.actors import person
from tests.rig import GatewayRig
from tests.store.conformance import AT, A, B, created, deleted, ended, responded, said, started, task, write
from tests.store.conformance_board import card, put, run, then

CONFIG = """
[notify]
home_channel = "webhooks.home"
[notify.webhooks.mine]
url = "https://example.invalid/hook"
[notify.webhooks.home]
url = "https://example.invalid/home"
on = ["failed"]
"""
BOARD = ServiceActor(name="board")


class Watch:
    """A gateway that plans and sends nothing."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.rig = GatewayRig(home, Profiles(home / "config.toml"))
        self.planner = self.rig.gateway.notify.planner

    @property
    def store(self) -> Store:
        return self.rig.store

    async def begin(self) -> None:
        """Look from where the last gateway was; only when it is asked to."""
        self.planner._position = self.planner._stored = await self.store.outbox.begin()

    async def told(self, to: str = "webhooks.mine") -> list[tuple[str, str, str]]:
        """What waits to be told, oldest first."""
        await self.planner.plan_new()
        return [(row.kind, row.title, row.summary) for row in await self.store.outbox.pending(to)]


@pytest.fixture
async def watch(tmp_path: Path) -> AsyncIterator[Watch]:
    Home(tmp_path).prepare()
    (tmp_path / "config.toml").write_text(CONFIG)
    found = Watch(tmp_path)
    await found.begin()
    yield found
    await found.rig.close()


def opened(purpose: Purpose = "question", wait: str = "w" * 16) -> WaitOpened:
    return WaitOpened(turn=1, wait=wait, purpose=purpose, reason="which **one**?")


def answered(answer: str = "that one") -> WaitAnswered:
    return WaitAnswered(turn=1, wait="w" * 16, answer=answer, by=person())


def over(outcome: str = "done", turn: int = 1) -> TurnFinished:
    return TurnFinished(turn=turn, outcome=outcome, reason="the reason")  # type: ignore[arg-type]


async def at_work(store: Store, *events: AnyEvent, id: str = A) -> None:
    await write(store, session_stream(id), created(id, "Fix it"), said(), started(1, "i"), *events)


@pytest.mark.parametrize(
    ("purpose", "kind", "summary"),
    [
        ("question", "question", "asks a question"),
        ("approval", "approval", "asks for an approval"),
        ("resume", "question", "asks whether to continue"),
        ("compaction", "question", "asks whether to continue"),
    ],
)
async def test_a_wait_is_notified_until_it_is_answered(watch: Watch, purpose: Purpose, kind: str, summary: str) -> None:
    await at_work(watch.store, opened(purpose))
    assert await watch.told() == [(kind, "Fix it", summary)]
    (row,) = await watch.store.outbox.pending("webhooks.mine")
    assert (row.detail, row.link, row.stream) == ("which one?", f"/s/{A}", session_stream(A))
    await write(watch.store, session_stream(A), answered())
    assert await watch.told() == []


@pytest.mark.parametrize(
    ("shown", "choices"),
    [
        ([ShownArgument("command", "ls *.py *"), ShownArgument("cwd", "/src")], ["allow", "deny"]),
        ([ShownArgument("command", "ls *.py *"), ShownArgument("cwd", "/src\n")], ["deny"]),
        ([], ["deny"]),
        ([ShownArgument("command", "ls *.py *"), ShownArgument("background", "true")], ["deny"]),
        ([ShownArgument("command", "ls *.py *", left_out=3)], ["deny"]),
        ([ShownArgument("command", "something else")], ["deny"]),
        ([ShownArgument("command", "ls *.py *\nrm x")], ["deny"]),
        ([ShownArgument("command", "ls \u202e")], ["deny"]),
        ([ShownArgument("command", "x" * 121)], ["deny"]),
    ],
)
async def test_only_a_call_that_is_shown_as_a_whole_can_be_allowed(
    watch: Watch, shown: list[ShownArgument], choices: list[str]
) -> None:
    command = shown[0].value if shown and shown[0].value != "something else" else "ls *.py *"
    await at_work(watch.store, replace(opened("approval"), reason=f"allow terminal {command}?", shown=shown))
    await watch.told()
    (row,) = await watch.store.outbox.pending("webhooks.mine")
    assert (row.wait, row.choices) == ("w" * 16, choices)
    if "allow" in choices:
        assert row.detail == "allow terminal ls *.py *? In /src"


async def test_an_imported_turn_causes_no_notice(watch: Watch) -> None:
    await at_work(watch.store, TurnFinished(turn=1, outcome="done", reason=IMPORTED))
    assert await watch.told() == []


async def test_a_question_offers_its_choices(watch: Watch) -> None:
    await at_work(watch.store, replace(opened(), choices=["red", "blue"]))
    await watch.told()
    (row,) = await watch.store.outbox.pending("webhooks.mine")
    assert (row.wait, row.choices) == ("w" * 16, ["red", "blue"])


async def test_a_retry_waits_for_nobody(watch: Watch) -> None:
    await at_work(watch.store, opened("retry"))
    assert await watch.told() == []


async def test_an_answer_that_somebody_wrote_is_not_repeated(watch: Watch) -> None:
    await at_work(watch.store, opened(), answered("my password is x"))
    await watch.told()
    (row,) = await watch.store.outbox.history(limit=9, destination="webhooks.mine")
    assert row.error == "settled before it was sent: answered by cli"


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [("done", [("done", "Fix it", "has answered")]), ("failed", [("failed", "Fix it", "failed")]), ("stopped", [])],
)
async def test_the_end_of_a_turn(watch: Watch, outcome: str, expected: list[tuple[str, str, str]]) -> None:
    await at_work(watch.store, responded("It is **fixed**."), over(outcome))
    assert await watch.told() == expected
    if outcome == "done":
        assert [row.detail for row in await watch.store.outbox.pending("webhooks.mine")] == ["It is fixed."]


async def test_the_next_message_makes_the_last_answer_old(watch: Watch) -> None:
    await at_work(watch.store, responded(), over())
    assert len(await watch.told()) == 1
    await write(watch.store, session_stream(A), said("thanks", "i2"))
    assert await watch.told() == []


async def test_the_turn_of_an_agent_that_another_started_is_notified_as_its_task(watch: Watch) -> None:
    born = SessionCreated(session=A, profile="demo", cwd="/", title="Helper", by=person(), origin=Delegated(task=A))
    await write(watch.store, session_stream(A), born, said(), started(1, "i"), responded(), over())
    await write(watch.store, task_stream(A), task(A, task_kind="agent", worker=A), ended(A))
    assert [kind for kind, *_ in await watch.told()] == ["done"]
    assert [title for _, title, _ in await watch.told()] == [f"build {A}"]


async def test_the_end_of_a_task(watch: Watch) -> None:
    await write(watch.store, task_stream(A), task(A, title="tests"), ended(A, "failed"))
    await write(watch.store, task_stream(B), task(B, foreground=True), ended(B, "failed"))
    assert await watch.told() == [("failed", "tests", "failed")]
    assert await watch.told("webhooks.home") == [("failed", "tests", "failed")]


async def test_a_task_that_was_stopped_is_no_news(watch: Watch) -> None:
    await write(watch.store, task_stream(A), task(A), ended(A, "stopped"))
    assert await watch.told() == []


async def test_a_turn_in_the_background_is_notified_once(watch: Watch) -> None:
    await at_work(watch.store, responded("It is fixed."), over())
    end = TaskFinished(task=B, outcome="done", reason="", end=TurnEnded(session=A, turn=1))
    await write(watch.store, task_stream(B), task(B, task_kind="agent", worker=A), end)
    assert await watch.told() == [("done", "Fix it", "has answered")]


def choice(tell: NotifyChoice) -> TaskTellSet:
    return TaskTellSet(task=A, tell=tell, by=person())


async def test_a_task_with_notifications_always(watch: Watch) -> None:
    await write(watch.store, task_stream(A), task(A, title="tests"), choice("always"), ended(A, "done"))
    assert await watch.told("webhooks.home") == [("done", "tests", "is done")], "it is told of failures only"
    rows = [*await watch.store.outbox.pending("webhooks.home"), *await watch.store.outbox.pending("webhooks.mine")]
    assert [row.when_absent for row in rows] == [False, False], "also while somebody looks"


@pytest.mark.parametrize("tell", ["never", "default"])
async def test_a_task_with_notifications_never_or_by_the_rules(watch: Watch, tell: NotifyChoice) -> None:
    await write(watch.store, task_stream(A), task(A, tell="always"), choice(tell), ended(A, "failed"))
    expected = 0 if tell == "never" else 1
    assert (len(await watch.told()), len(await watch.told("webhooks.home"))) == (expected, expected)
    assert all(row.when_absent for row in await watch.store.outbox.pending("webhooks.mine"))


async def test_a_foreground_task_is_notified_where_a_person_asked_for_it(watch: Watch) -> None:
    await write(watch.store, task_stream(A), task(A, foreground=True), choice("always"), ended(A, "done"))
    assert [kind for kind, *_ in await watch.told()] == ["done"]


@pytest.mark.parametrize(("tell", "mine", "home"), [("always", 1, 1), ("never", 0, 0), ("default", 1, 0)])
async def test_what_a_person_chose_for_a_card(watch: Watch, tell: NotifyChoice, mine: int, home: int) -> None:
    await put(watch.store, card(A, "running", title="The login"))
    await then(watch.store, A, CardEdited(card=A, tell=tell, by=person()))
    await then(watch.store, A, CardBlocked(card=A, block_kind="needs_input", reason="Which key?", by=BOARD))
    assert (len(await watch.told()), len(await watch.told("webhooks.home"))) == (mine, home)


@pytest.mark.parametrize(("tell", "mine", "home"), [("always", 1, 1), ("never", 0, 0), ("default", 1, 0)])
async def test_what_a_person_chose_for_a_session(watch: Watch, tell: NotifyChoice, mine: int, home: int) -> None:
    await at_work(watch.store, SessionTellSet(tell=tell, by=person()), opened())
    assert (len(await watch.told()), len(await watch.told("webhooks.home"))) == (mine, home)


@pytest.mark.parametrize(("tell", "home"), [("always", 1), ("never", 0)])
async def test_what_was_chosen_for_a_card_or_an_agent_holds_for_its_questions(
    watch: Watch, tell: NotifyChoice, home: int
) -> None:
    await put(watch.store, card(A))
    await then(watch.store, A, CardEdited(card=A, tell=tell, by=person()))
    await then(watch.store, A, run(A, session=A))
    await at_work(watch.store, opened())
    assert len(await watch.told("webhooks.home")) == home
    born = SessionCreated(session=B, profile="demo", cwd="/", title="Helper", by=person(), origin=Delegated(task=B))
    await write(watch.store, task_stream(B), task(B, task_kind="agent", worker=B, tell=tell))
    await write(watch.store, session_stream(B), born, said(), started(1, "i"), opened(wait="v" * 16))
    assert len(await watch.told("webhooks.home")) == 2 * home


@pytest.mark.parametrize("tell", ["always", "never"])
async def test_a_choice_is_not_about_the_reports_of_the_gateway(watch: Watch, tell: NotifyChoice) -> None:
    by = ServiceActor(name="reset clock")
    reset = ChapterOpened(chapter=2, rule="daily", reason="it is six", by=by, kept=[survivor("npm run dev")])
    await at_work(watch.store, over("stopped"), SessionTellSet(tell=tell, by=person()), reset)
    assert await watch.told() == []
    assert [kind for kind, *_ in await watch.told("webhooks.home")] == ["reset"]


@pytest.mark.parametrize("noun", ["session", "task"])
async def test_what_was_deleted_causes_no_notice(watch: Watch, noun: str) -> None:
    await at_work(watch.store, responded(), over())
    await write(watch.store, task_stream(A), task(A), ended(A, "done"))
    assert len(await watch.told()) == 2
    pruned = TaskPruned(task=A, title="", state="done", bytes=0, by=person())
    await write(watch.store, SYSTEM, deleted(A) if noun == "session" else pruned)
    assert len(await watch.told()) == 1


async def test_a_blocked_card_is_notified_until_somebody_deals_with_it(watch: Watch) -> None:
    await put(watch.store, card(A, "running", title="The login"))
    await then(watch.store, A, CardBlocked(card=A, block_kind="needs_input", reason="Which **key**?", by=BOARD))
    assert await watch.told() == [("blocked", "HF-1 The login", "is blocked")]
    await then(watch.store, A, CardUnblocked(card=A, by=person()))
    assert await watch.told() == []


@pytest.mark.parametrize(("by", "count"), [(BOARD, 1), (person(), 0)])
async def test_what_a_person_did_causes_no_notice(watch: Watch, by: Actor, count: int) -> None:
    await put(watch.store, card(A), card(B))
    await then(watch.store, A, CardCompleted(card=A, summary="done it", by=by))
    assert len(await watch.told()) == count
    await then(watch.store, B, CardMoved(card=B, status="review", reason="look at it", by=by))
    assert len(await watch.told()) == 2 * count


async def test_the_turn_of_a_worker_is_notified_as_its_card_and_a_frozen_one_as_stalled(watch: Watch) -> None:
    await put(watch.store, card(A, title="The login"))
    await then(watch.store, A, run(A, session=B))
    await at_work(watch.store, responded(), over("failed"), id=B)
    assert await watch.told() == []
    await then(watch.store, A, RunFinished(card=A, run=1, outcome="failed", reason="30 min", failure="frozen"))
    assert [(kind, title) for kind, title, _ in await watch.told()] == [("stalled", "HF-1 The login")]


def survivor(title: str, rule: str = "it is a server") -> Survivor:
    return Survivor(task=B, title=title, pid=1, activity="serving", evidence="port 3000", age_ms=1, rule=rule)


async def test_a_reset_names_what_it_kept_and_stopped_by_rule_and_not_all_of_many(watch: Watch) -> None:
    kept = [survivor(f"server {number}") for number in range(6)]
    stopped = [survivor("make " + "x" * 100, rule="its lifetime is the chapter")]
    by = ServiceActor(name="reset clock")
    opened = ChapterOpened(chapter=2, rule="idle", reason="nobody was here", by=by, kept=kept, stopped=stopped)
    await at_work(watch.store, over("stopped"), opened)
    ((_, _, summary),) = await watch.told("webhooks.home")
    assert summary == (
        "was reset, since nobody was here; kept running (it is a server): server 0, server 1, server 2, server 3 and 2 "
        f"more; stopped (its lifetime is the chapter): make {'x' * 54}…"
    )


async def test_a_reset_that_was_skipped_says_why_without_the_words_of_anybody(watch: Watch) -> None:
    blockers = [
        Blocker(by="process", reason="process 1 'build' working"),
        Blocker(by="process", reason="process 2 'tests' working"),
        Blocker(by="question", reason="turn 1 has been waiting for 2 h: which key?"),
    ]
    postponed = ResetPostponed(rule="daily", due_at=1, until=None, next_check=2, blockers=blockers)
    await at_work(watch.store, over("stopped"), postponed)
    ((kind, title, summary),) = await watch.told("webhooks.home")
    said = "was not reset when it was due, since one of its commands is working, it waits for an answer"
    assert (kind, title, summary) == ("reset", "Fix it", said)
    assert await watch.told() == []


@pytest.mark.parametrize(("rule", "count"), [("daily", 1), ("person", 0)])
async def test_a_reset_by_a_rule_says_in_the_home_channel_what_it_kept(
    watch: Watch, rule: ResetRule, count: int
) -> None:
    kept = survivor("npm run dev")
    await at_work(watch.store, over())
    await write(
        watch.store,
        session_stream(A),
        ChapterOpened(chapter=2, rule=rule, reason="it is six", by=ServiceActor(name="reset clock"), kept=[kept]),
    )
    said = "was reset, since it is six; kept running (it is a server): npm run dev"
    assert await watch.told("webhooks.home") == [("reset", "Fix it", said)] * count
    details = [row.detail for row in await watch.store.outbox.pending("webhooks.home")]
    assert details == ["npm run dev: serving, port 3000"] * count
    assert "reset" not in [kind for kind, *_ in await watch.told()]


async def test_the_gateway_reports_an_upgrade_and_what_is_stale(watch: Watch) -> None:
    for before, version in (("", "0.1.0"), ("0.1.0", "0.1.0"), ("0.1.0", "0.2.0")):
        await write(watch.store, SYSTEM, GatewayStarted(pid=1, version=version, boot="b", version_before=before))
    await write(watch.store, SYSTEM, StaleListed(tasks=[A], reasons=["A preview server that nobody used for 3 days."]))
    assert await watch.told("webhooks.home") == [
        ("upgrade", "Holdfast", "runs in version 0.2.0 now; before it was 0.1.0"),
        ("stale", "Holdfast", "1 running command is no longer needed"),
    ]


async def test_an_action_counts_as_looking(watch: Watch) -> None:
    presence = watch.rig.gateway.notify.presence
    await at_work(watch.store, opened())
    await put(watch.store, card(A))
    await then(watch.store, A, CardMoved(card=A, status="todo", reason="", by=BOARD))
    await watch.told()
    assert presence.last_look(session_stream(A)) == AT, "a person sent the message"
    assert presence.last_look(f"card/{A}") == 0, "nobody but the board was there"


async def test_promise_5_what_was_committed_before_a_crash_is_planned_once(watch: Watch, tmp_path: Path) -> None:
    await at_work(watch.store, opened())  # committed, and the gateway is killed before it plans anything
    await watch.rig.close()
    for _ in range(3):
        again = Watch(tmp_path)
        await again.begin()
        assert len(await again.told()) == 1
        await again.rig.close()
    watch.rig = GatewayRig(tmp_path, Profiles(tmp_path / "config.toml"))


async def test_without_a_destination_nothing_is_planned_and_a_new_one_gets_later_events(
    watch: Watch, tmp_path: Path
) -> None:
    (tmp_path / "config.toml").write_text("")
    await at_work(watch.store, opened())
    await watch.planner._sweep()
    (tmp_path / "config.toml").write_text(CONFIG)
    assert await watch.told() == []
    await at_work(watch.store, opened(wait="v" * 16), id=B)
    assert len(await watch.told()) == 1


async def test_a_session_that_was_deleted_meanwhile_causes_no_notice(watch: Watch) -> None:
    await at_work(watch.store, opened())
    await write(watch.store, SYSTEM, deleted(A))
    assert await watch.told() == []
