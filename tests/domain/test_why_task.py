"""`why` for a task: in every state a sentence that is true, and that rests on the event that it names."""

from __future__ import annotations

from holdfast.domain.events import AnyEvent, Record
from holdfast.domain.events.task import (
    CommandKilled,
    CommandLost,
    Lifetime,
    ProcessStarted,
    TaskBackgrounded,
    TaskFinished,
    TaskKind,
    TaskPinned,
    TaskResumed,
    TaskStarted,
    TaskStopRequested,
    TurnEnded,
)
from holdfast.domain.why import why_task
from tests.actors import person

ID = "0123456789abcdef"


def started(of: TaskKind = "process", *, lifetime: Lifetime = "persist", worker: str = "") -> TaskStarted:
    return TaskStarted(
        task=ID,
        task_kind=of,
        title="make",
        command="make",
        cwd="/",
        by=person("cli"),
        session="feed",
        worker=worker,
        lifetime=lifetime,
    )


def told(*events: AnyEvent, activity: str = "") -> list[tuple[str, str]]:
    """Each sentence with the kind of the event that it rests on; an event comes every minute, the last just now."""
    records = [
        Record(seq=n, stream=f"task/{ID}", version=n, at=n * 60_000, event=event) for n, event in enumerate(events, 1)
    ]
    sentences = why_task(records, now=len(events) * 60_000 + 5_000, activity=activity)
    assert all(sentence.at == records[sentence.version - 1].at for sentence in sentences)
    return [(type(records[sentence.version - 1].event).__name__, sentence.text) for sentence in sentences]


def test_before_and_while_it_runs() -> None:
    assert told(started())[0] == (
        "TaskStarted",
        "It has been starting for 5 s: no process is known so far.",
    )
    running = told(started(), ProcessStarted(task=ID, pid=7), activity="working (cpu 99%)")
    assert running[0] == ("ProcessStarted", "The command has been running for 5 s as pid 7 and is working (cpu 99%).")
    assert running[1] == ("TaskStarted", "The task was started 1 min 5 s ago by cli from session feed: make")
    assert running[2] == ("TaskStarted", "Lifetime: until it ends or is stopped.")


def test_its_end_with_evidence_and_survivors() -> None:
    stop = TaskStopRequested(task=ID, by=person("ann"), reason="by force", force=True)
    end = TaskFinished(
        task=ID,
        outcome="stopped",
        reason="stopped by ann (by force): killed by SIGKILL",
        end=CommandKilled(signal="SIGKILL", evidence="recorded by its keeper"),
        output_bytes=10,
        dropped_bytes=4,
        survivors=["8 daemon"],
    )
    assert told(started(), ProcessStarted(task=ID, pid=7), stop, end)[:5] == [
        ("TaskFinished", "The task was stopped 5 s ago: stopped by ann (by force): killed by SIGKILL."),
        ("TaskFinished", "Evidence: recorded by its keeper."),
        ("TaskFinished", "These of its processes were still running: 8 daemon."),
        ("TaskFinished", "Of 10 bytes of output 4 in the middle were dropped: it was too long."),
        ("TaskStopRequested", "ann asked for its end 1 min 5 s ago (by force)."),
    ]


def test_a_lost_one_says_its_evidence_once() -> None:
    end = TaskFinished(
        task=ID,
        outcome="lost",
        reason="the machine was restarted",
        end=CommandLost(evidence="the machine was restarted"),
    )
    assert [text for _, text in told(started(), end)][:2] == [
        "The task was lost 5 s ago: the machine was restarted.",
        "The task was started 1 min 5 s ago by cli from session feed: make",
    ]


def test_an_agent_that_went_on() -> None:
    done = TaskFinished(task=ID, outcome="done", reason="done", end=TurnEnded(session="beef", turn=1))
    first = told(started("agent", worker="beef"), done, TaskResumed(task=ID, turn=2))[0]
    assert first == (
        "TaskResumed",
        "It has been working again for 5 s, in turn 2 of session beef (see `holdfast why beef`).",
    )
    assert told(started("agent", worker=ID))[0][1] == f"Its agent has been working for 5 s in session {ID}."


def test_what_happened_meanwhile() -> None:
    pinned = TaskPinned(task=ID, pinned=True, by=person("ann"))
    detached = TaskBackgrounded(task=ID, reason="its turn waited 120 s")
    texts = [text for _, text in told(started(lifetime="session"), ProcessStarted(task=ID, pid=7), detached, pinned)]
    assert texts[1:3] == [
        "It went to the background 1 min 5 s ago: its turn waited 120 s.",
        "It is pinned by ann, so it is not pruned.",
    ]
    assert texts[-1] == "Lifetime: until its session is archived or deleted."
    unpinned = told(started(), pinned, TaskPinned(task=ID, pinned=False, by=person("ann")))
    assert not [text for _, text in unpinned if "pinned" in text]
