"""A conversation survives kill -9, SIGTERM and a closed terminal while every client watches."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.followers import FORMS, Follower, Seen, collect, page, stream
from tests.e2e.gateway import GatewayProcess, Json, check_whole, kinds, of_kind

WORDS = [f"word{n}" for n in range(25)]
PAUSE = 0.04
SLOW = f"slow {PAUSE * len(WORDS)} {' '.join(WORDS)}\nhang"
WHOLE = " ".join(WORDS) + "\ndone"
"""It hangs after its words, so that it is in the middle of its answer however slow the machine is."""
LAST_SAVED = 0.3
"""How many seconds of an answer may be missing in its partial after kill -9."""
ENDS = ["kill -9", "SIGTERM", "SIGHUP", "SIGINT", "POST /v1/shutdown"]


def end(gateway: GatewayProcess, how: str) -> None:
    """Make it end; it does not wait for an answer that takes a day."""
    if how == "kill -9":
        gateway.kill9()
    elif how == "POST /v1/shutdown":
        answer = gateway.request("POST", "/v1/shutdown")
        assert (answer.status_code, answer.json()) == (202, {"pid": gateway.pid})
        assert gateway.wait_for_end() == 0
    else:
        assert gateway.terminate(signal.Signals[how]) == 0


@pytest.mark.parametrize("how", ENDS)
async def test_promise_1_and_4_a_slow_turn_survives(tmp_path: Path, how: str) -> None:
    """In the middle of an answer, with two followers, and with a message queued meanwhile."""
    with GatewayProcess(tmp_path / "home").start() as gateway:
        session = gateway.create(SLOW)
        followers = [Follower(form, gateway, f"/v1/sessions/{session}/events") for form in FORMS]
        following = [asyncio.create_task(follower.follow(is_second_end)) for follower in followers]
        await collect(stream("ws", gateway, followers[0].path), lambda seen: len(words_of(seen)) >= 15)
        queued = await asyncio.to_thread(gateway.send, session, "say after that", key="queued-meanwhile")
        shown = " ".join(WORDS[:15])
        await asyncio.to_thread(end, gateway, how)
        await asyncio.to_thread(gateway.start_and_let_go)
        await asyncio.gather(*following)
        await asyncio.to_thread(gateway.until_state, session, "idle")
        records = gateway.events(session)
        stored = page(gateway, followers[0].path, limit=2000)
        system = [record for record in gateway.whole_log() if record["stream"] == "system"]

    check_whole(records)
    for follower in followers:
        assert follower.attached > 1, "it was cut and came back"
        assert follower.log == stored, "the same sequence without a gap"
        hears_everything(follower)
    assert [event["text"] for event in of_kind(records, "InputReceived")] == [SLOW, "say after that"]
    assert records[queued["version"] - 1]["event"]["input"] == "queued-meanwhile"
    (partial,) = of_kind(records, "ModelInterrupted")
    was_shown(partial["text"], shown, missing=LAST_SAVED if how == "kill -9" else 0.0)
    assert [event["text"] for event in of_kind(records, "ModelResponded")] == [WHOLE, "after that"]
    assert [event["outcome"] for event in of_kind(records, "TurnFinished")] == ["done", "done"]
    (resumed,) = of_kind(records, "TurnResumed")
    goodbye = how != "kill -9"
    assert kinds(records).count("TurnSuspended") == int(goodbye)
    assert resumed["reason"] == ("the gateway was shut down" if goodbye else "the gateway was killed or crashed")
    assert partial["reason"] == resumed["reason"]
    order = [kind for kind in kinds(records) if kind not in ("SessionCreated", "InputReceived", "TurnSuspended")]
    assert order == [
        *("TurnStarted", "ModelRequested", "ModelInterrupted", "TurnResumed", "ModelRequested", "ModelResponded"),
        *("TurnFinished", "TurnStarted", "ModelRequested", "ModelResponded", "TurnFinished"),
    ]
    assert kinds(system) == ["GatewayStarted", *(["GatewayStopped"] if goodbye else []), "GatewayStarted"]


def words_of(seen: list[Seen]) -> list[str]:
    """What was spoken so far; on a busy machine several words come at once."""
    return "".join(str(one.json["text"]) for one in seen if one.kind == "delta").split()


def is_second_end(record: dict[str, Any]) -> bool:
    event = record["event"]
    return (event["kind"], event.get("turn")) == ("TurnFinished", 2)


def was_shown(partial: str, shown: str, *, missing: float) -> None:
    """The partial is what had arrived, but for the last moment."""
    assert " ".join(WORDS).startswith(partial)
    words, seen = len(partial.split()), len(shown.split())
    assert words >= seen - missing / PAUSE - 1, f"{words} of {seen} words that were shown"


def hears_everything(follower: Follower) -> None:
    """On each connection the words come from the beginning of the answer that is being spoken, without a hole."""
    heard: dict[tuple[int, int, int], str] = {}
    for delta in follower.spoken:
        key = (delta["attached"], delta["turn"], delta["asked"])
        assert delta["offset"] == len(heard.get(key, ""))
        heard[key] = heard.get(key, "") + delta["text"]
    assert all(text == "after that" or WHOLE.startswith(text) for text in heard.values())
    assert max(map(len, heard.values())) > len(WHOLE) / 2


def test_promise_4_nobody_watches_and_it_continues(tmp_path: Path) -> None:
    """Detached: the client that began it is long gone, and nobody asks until it is done."""
    with GatewayProcess(tmp_path / "home").start() as gateway:
        session = gateway.create(f"{SLOW}\nwrite f.txt done\nread f.txt", cwd=tmp_path)
        gateway.until_event(session, "ModelRequested")
        gateway.kill9()
        gateway.start_and_let_go()
        records = gateway.until_rest(session)
    assert of_kind(records, "ModelResponded")[-1]["text"] == "read done: done"
    assert (tmp_path / "f.txt").read_text() == "done\n"


def test_promise_1_killed_again_and_again_it_ends_all_the_same(tmp_path: Path) -> None:
    """Three kills in one answer: three partials, one answer."""
    with GatewayProcess(tmp_path / "home").start() as gateway:
        session = gateway.create(SLOW)
        for kill in range(1, 4):
            gateway.until_event(session, "ModelRequested", count=kill)
            gateway.kill9()
            if kill < 3:
                gateway.start()
        gateway.start_and_let_go()
        records = gateway.until_rest(session)
    assert kinds(records).count("ModelInterrupted") == 3
    assert [event["attempt"] for event in of_kind(records, "ModelRequested")] == [1, 2, 3, 4]
    assert [event["attempt"] for event in of_kind(records, "TurnResumed")] == [1, 2, 3]
    assert [event["text"] for event in of_kind(records, "ModelResponded")] == [WHOLE]


# --- old work and work without progress wait for a person -------------------------------------------


@contextlib.contextmanager
def configured(directory: Path, text: str) -> Any:
    home = directory / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(text)
    with GatewayProcess(home).start() as gateway:
        yield gateway


def waits(gateway: GatewayProcess, session: str, reason: str) -> Json:
    """It waits, and says so in every place."""
    found = gateway.until_state(session, "waiting")
    sentence = gateway.why(session)[0]
    assert "waiting for a person" in sentence["text"]
    assert reason in sentence["text"]
    assert "Send a message to continue, or stop it." in sentence["text"]
    records = gateway.events(session)
    assert records[sentence["version"] - 1]["event"]["kind"] == "WaitOpened"
    turn = gateway.get(f"/v1/sessions/{session}")["turns"][-1]
    assert (turn["state"], reason in turn["reason"]) == ("waiting", True)
    assert any(session in one["text"] for one in gateway.get("/v1/why")["sentences"])
    return found


@pytest.mark.parametrize("how", ["kill -9", "SIGTERM"])
def test_promise_5_old_interrupted_work_waits_for_a_person(tmp_path: Path, how: str) -> None:
    with configured(tmp_path, "[resume]\nmax_age_minutes = 0\n") as gateway:
        session = gateway.create(SLOW)
        gateway.until_event(session, "ModelRequested")
        end(gateway, how)
        gateway.start()
        waits(gateway, session, "too long to be resumed automatically")
        end(gateway, how)
        gateway.start_and_let_go()
        waits(gateway, session, "too long to be resumed automatically")
        assert kinds(gateway.events(session)).count("WaitOpened") == 1, "it is asked once"
        gateway.send(session, "say I am back")
        records = gateway.until_rest(session)
    assert [event["text"] for event in of_kind(records, "ModelResponded")] == [WHOLE, "I am back"]
    assert [event["outcome"] for event in of_kind(records, "TurnFinished")] == ["done", "done"]
    assert kinds(records).count("WaitAnswered") == 1
    assert of_kind(records, "WaitAnswered")[0]["by"]["client"] == "api"


def test_promise_5_old_interrupted_work_can_be_stopped(tmp_path: Path) -> None:
    with configured(tmp_path, "[resume]\nmax_age_minutes = 0\n") as gateway:
        session = gateway.create(SLOW)
        gateway.until_event(session, "ModelRequested")
        gateway.kill9()
        gateway.start()
        waits(gateway, session, "too long to be resumed")
        gateway.command("POST", f"/v1/sessions/{session}/stop")
        records = gateway.until_rest(session)
    assert of_kind(records, "TurnFinished")[-1]["outcome"] == "stopped"
    assert not of_kind(records, "ModelResponded")


def test_promise_5_resuming_without_progress_has_a_budget(tmp_path: Path) -> None:
    with configured(tmp_path, "[resume]\nattempts = 2\n") as gateway:
        session = gateway.create(SLOW)
        for request in range(1, 4):
            gateway.until_event(session, "ModelRequested", count=request)
            gateway.kill9()
            gateway.start()
        waits(gateway, session, "2 times in a row")
        assert kinds(gateway.events(session)).count("TurnResumed") == 2
        gateway.send(session, "say go on")
        gateway.until_event(session, "ModelRequested", count=4)
        gateway.kill9()
        gateway.start()
        records = gateway.until_event(session, "TurnResumed", count=3)
        assert of_kind(records, "TurnResumed")[-1]["attempt"] == 1, "a person's word begins the count anew"


def test_promise_5_a_shutdown_does_not_use_the_budget_up(tmp_path: Path) -> None:
    with configured(tmp_path, "[resume]\nattempts = 1\n") as gateway:
        session = gateway.create(SLOW)
        for request in range(1, 5):
            gateway.until_event(session, "ModelRequested", count=request)
            assert gateway.terminate() == 0
            gateway.start()
        records = gateway.until_event(session, "ModelRequested", count=5)
    assert kinds(records).count("WaitOpened") == 0
