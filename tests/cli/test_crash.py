"""The gateway is killed in the middle: whoever waits gets the whole answer, without gaps or doubles.

The agent says some words and hangs, and goes on only after a restart: the middle is as long as a test needs.
"""

from __future__ import annotations

import json
import random

from holdfast.cli.render.answer import AGAIN
from holdfast.client.client import Client
from holdfast.client.events import RecordReceived, follow_records
from holdfast.config import Home
from tests.cli.commandline import CommandLine, rest_of
from tests.cli.proxy import Proxy
from tests.e2e.gateway import GatewayProcess, check_whole, of_kind, until

MIDDLE = "say a b\nhang"
WHOLE = "a b\ndone\n"


def _running_session(gateway: GatewayProcess) -> str:
    """Its id, once something of the answer is on the disk."""
    session = str(until(lambda: gateway.get("/v1/status")["working"], "something is at work")[0])
    gateway.until_event(session, "ModelRequested")
    return session


def test_run_through_kill_9_ends_with_the_whole_answer(gateway: GatewayProcess) -> None:
    cli = CommandLine(gateway.home)
    running = cli.spawn("run", MIDDLE)
    session = _running_session(gateway)
    gateway.kill9()
    gateway.start_and_let_go()
    out, err = rest_of(running)
    assert (running.returncode, out) == (0, WHOLE)
    assert err.count("the gateway is away") <= 1  # none if it is back before anybody asks for it
    records = gateway.events(session)
    check_whole(records)
    assert len(of_kind(records, "InputReceived")) == 1
    assert len(of_kind(records, "ModelInterrupted")) == 1


def test_a_terminal_marks_the_cut_text(gateway: GatewayProcess) -> None:
    with CommandLine(gateway.home).terminal("run", MIDDLE) as terminal:
        terminal.until("a b")
        gateway.kill9()
        terminal.until("the gateway is away")
        gateway.start_and_let_go()
        assert terminal.wait() == 0
    before, _, after = terminal.text.partition(AGAIN + "\n")
    assert before.split("\n")[1].startswith("a b")  # after the line that names who answers
    assert after == WHOLE


def test_a_clean_shutdown_is_survived_too(gateway: GatewayProcess) -> None:
    running = CommandLine(gateway.home).spawn("run", MIDDLE, "--json")
    _running_session(gateway)
    assert gateway.terminate() == 0
    gateway.start_and_let_go()
    out, _ = rest_of(running)
    assert running.returncode == 0
    assert json.loads(out)["text"] == WHOLE.strip()


def test_patience_ends_and_says_how_to_come_back(gateway: GatewayProcess) -> None:
    running = CommandLine(gateway.home).spawn("run", MIDDLE, "--patience", "0.5")
    session = _running_session(gateway)
    gateway.kill9()
    out, err = rest_of(running)
    assert (running.returncode, out) == (3, "")
    assert f"holdfast sessions log {session} --follow" in err


def test_a_turn_that_waits_for_a_person_says_so(gateway: GatewayProcess) -> None:
    """Here nothing is resumed by itself."""
    (gateway.home / "config.toml").write_text("[resume]\nattempts = 0\n")
    cli = CommandLine(gateway.home)
    running = cli.spawn("run", MIDDLE)
    session = _running_session(gateway)
    gateway.kill9()
    gateway.start_and_let_go()
    gateway.until_event(session, "WaitOpened")
    cli.ok("send", session, "say go on")
    out, err = rest_of(running)
    assert (running.returncode, out) == (0, WHOLE)
    assert "the turn waits for you" in err
    assert f"holdfast send {session}" in err
    assert "waiting   Turn 1 waits for you" in cli.ok("sessions", "log", session)


def test_an_answer_that_was_lost_on_the_way_is_asked_for_again_and_stored_once(gateway: GatewayProcess) -> None:
    with Proxy(gateway, drop_answers=2) as proxy:
        done = CommandLine(proxy.home)("run", "say once")
    assert (done.returncode, done.stdout) == (0, "once\n")
    assert proxy.posts == 3
    assert [row["message_count"] for row in gateway.get("/v1/sessions")["sessions"]] == [2]


def test_a_stream_cut_at_random_bytes_has_no_gaps_and_no_doubles(gateway: GatewayProcess) -> None:
    session = gateway.create("\n".join(["say word"] * 3))
    for number in range(12):
        gateway.send(session, f"say number {number}")
    expected = gateway.until_rest(session)
    seed = random.randrange(10**6)
    with Proxy(gateway, cut_after=random.Random(seed)) as proxy:
        seen: list[object] = []
        for piece in follow_records(Client(Home(proxy.home)), session, after=0):
            if isinstance(piece, RecordReceived):
                seen.append(piece.record)
            if len(seen) == len(expected):
                break
    assert seen == expected, f"seed {seed}"
    assert proxy.connections > 3, f"seed {seed}"
