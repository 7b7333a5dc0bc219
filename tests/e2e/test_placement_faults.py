"""Placement when nodes die, are drained or forgotten before they have started their work."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.life import config
from tests.e2e.agents import end_agents
from tests.e2e.gateway import GatewayProcess, Json, of_kind, until
from tests.e2e.labelled_nodes import PATIENT, Nodes, answered, labelled_nodes, new_session, taken
from tests.e2e.tasks import start

LEASE = 10.0
"""So long a node counts as there that is frozen: long enough to be given work."""


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    memory = tmp_path / "memory"
    memory.mkdir()
    with labelled_nodes(tmp_path, settings=config(f"memory={memory}"), timings={"store.lease": LEASE}) as nodes:
        until(lambda: "board" in _node(nodes.a, "a")["duties"], "a has the board", seconds=PATIENT)
        yield nodes


def _node(at: GatewayProcess, name: str) -> Json:
    return dict(next(node for node in at.get("/v1/nodes")["nodes"] if node["name"] == name))


def _hosts(at: GatewayProcess, session: str) -> str:
    return str(at.get(f"/v1/sessions/{session}")["session"]["host"])


def _of_card(at: GatewayProcess, card: str, *wanted: str) -> list[Json]:
    return [event for event in of_kind(at.whole_log(), *wanted) if event["card"] == card]


def _assigned(at: GatewayProcess, card: str) -> list[str]:
    """The nodes that were to start it, in order; empty is none any more."""
    return [event["node"] for event in _of_card(at, card, "RunAssigned")]


def _freeze(node: GatewayProcess) -> None:
    """Until the end of its lease it counts as there, and does nothing."""
    os.kill(node.pid, signal.SIGSTOP)


def test_work_of_a_node_that_dies_before_it_has_begun_goes_to_another(nodes: Nodes) -> None:
    a, b, c = nodes.a, nodes.b, nodes.c
    _freeze(b)
    card = nodes.add(a, node="gpu")
    session = new_session(a, nodes.directory / "shared", text="say hello", node="gpu")
    until(lambda: _assigned(a, card) == ["b"], "b is to start it", seconds=PATIENT)
    assert "Node b is about to start it." in nodes.why(a, f"/v1/cards/{card}")
    b.kill9()
    until(lambda: _assigned(a, card) == ["b", ""], "the board takes it back", seconds=PATIENT)
    assert "It waits for node b, which was last seen" in nodes.why(a, f"/v1/sessions/{session}")
    c.start()
    assert (nodes.done(a, card)["node"], answered(a, session)) == ("c", "c")
    assert _assigned(a, card) == ["b", "", "c"]
    (run,) = _of_card(a, card, "RunFinished")
    assert (run["run"], run["uses_attempt"]) == (1, False)
    assert len(of_kind(a.events(session), "TurnStarted")) == 1
    b.start()
    until(lambda: _node(a, "b")["state"] == "alive", "b is back", seconds=PATIENT)
    assert len(_of_card(b, card, "RunStarted")) == 1


def test_what_waits_for_a_node_goes_elsewhere_when_that_is_drained_and_then_forgotten(nodes: Nodes) -> None:
    a, b, c = nodes.a, nodes.b, nodes.c
    private, shared = nodes.directory / "private", nodes.directory / "shared"
    private.mkdir()
    begun = new_session(b, private, text="say first")
    assert answered(a, begun) == "b"
    _freeze(b)
    labelled, named = nodes.add(a, node="gpu"), nodes.add(a, node="b")
    talk_labelled, talk_named = (new_session(a, shared, text="say hello", node=node) for node in ("gpu", "b"))
    until(lambda: _assigned(a, labelled) == _assigned(a, named) == ["b"], "b is to start them", seconds=PATIENT)

    taken(a, "/v1/nodes/b/drain", {})
    c.start()
    assert (nodes.done(a, labelled)["node"], answered(a, talk_labelled)) == ("c", "c")
    until(lambda: _assigned(a, named) == ["b", ""], "the board takes it back", seconds=PATIENT)
    for path in (f"/v1/cards/{named}", f"/v1/sessions/{talk_named}"):
        assert "It waits for node b, which is being drained" in nodes.why(a, path)
    os.kill(b.pid, signal.SIGCONT)
    assert b.wait_for_end() == 0
    taken(a, f"/v1/sessions/{begun}/messages", {"text": "say second"})
    assert not _of_card(a, named, "RunStarted") and not of_kind(a.events(talk_named), "TurnStarted")

    forgotten = a.request("DELETE", "/v1/nodes/b")
    assert forgotten.status_code == 202, forgotten.text
    assert answered(a, begun, 2) in "ac"  # nobody else had its directory
    for path in (f"/v1/cards/{named}", f"/v1/sessions/{talk_named}"):
        until(
            lambda: "a node that is called or labelled b, and there is none" in nodes.why(a, path),  # noqa: B023
            f"{path} waits for a node that is not there",
            seconds=PATIENT,
        )
    assert a.request("PATCH", f"/v1/cards/{named}", json={"node": "c"}).status_code == 202
    taken(a, f"/v1/sessions/{talk_named}/node", {"node": "c"})
    assert (nodes.done(a, named)["node"], answered(a, talk_named)) == ("c", "c")


def test_session_of_a_node_that_is_drained_continues_elsewhere_while_its_commands_run(nodes: Nodes) -> None:
    a, b, c = nodes.a, nodes.b, nodes.c
    shared = nodes.directory / "shared"
    talk, at_work = (new_session(a, shared, text, node="gpu") for text in ("say hello", "slow 60 one two three"))
    assert answered(a, talk) == "b"
    until(lambda: "Node b works on it" in nodes.why(a, f"/v1/sessions/{at_work}"), "b works", seconds=PATIENT)
    stays = start(b, "exec sleep 1000", cwd=shared)
    c.start()
    taken(a, "/v1/nodes/b/drain", {})
    until(lambda: b.request("GET", "/readyz").status_code == 503, "b knows it", seconds=PATIENT)
    taken(a, f"/v1/sessions/{talk}/messages", {"text": "say again"})
    assert answered(a, talk, 2) == "c"
    until(lambda: "c" in _hosts(a, at_work), "c has taken the turn", seconds=PATIENT)
    taken(a, f"/v1/sessions/{at_work}/stop", {})
    assert _node(a, "b")["state"] == "draining", "its command runs"
    taken(a, f"/v1/tasks/{stays}/stop", {})
    assert b.wait_for_end() == 0


def test_session_of_an_external_agent_stays_on_the_node_where_its_agent_runs(nodes: Nodes) -> None:
    a, b = nodes.a, nodes.b
    shared = nodes.directory / "shared"
    session = new_session(a, shared, text="!say hello", profile="scripted", node="b")
    card = nodes.add(a, node="b", profile="scripted", body='!tool kanban_block {"kind": "needs_input", "reason": "x"}')
    assert answered(a, session) == "b"
    until(lambda: a.get(f"/v1/cards/{card}")["card"]["status"] == "blocked", "blocked", seconds=PATIENT)
    moved = a.request("POST", f"/v1/sessions/{session}/node", json={"node": "a"})
    assert (moved.status_code, moved.json()["error"]["message"]) == (409, "It stays on node b: its agent runs there.")
    edited = a.request("PATCH", f"/v1/cards/{card}", json={"node": "a"})
    assert (edited.status_code, "It stays on node b: the agent of run 1 runs there." in edited.text) == (409, True)
    end_agents(b)
    nodes.wait_until_away("b")
    taken(a, f"/v1/sessions/{session}/messages", {"text": "!say again"})
    why = nodes.why(a, f"/v1/sessions/{session}")
    assert ("It waits for node b, which was last seen" in why, "(its agent runs there)." in why) == (True, True), why
    assert f"Session {session} waits for it." in nodes.why(a, "/v1/nodes/b")
    b.start()
    assert answered(a, session, 2) == "b"
    end_agents(b)


def test_card_that_is_archived_through_another_node_leaves_no_workspace(nodes: Nodes) -> None:
    a, b = nodes.a, nodes.b
    empty, full, last = (
        nodes.add(a, node="b", body=f"sh {command}\ncomplete well") for command in ("pwd", "touch notes.txt", "pwd")
    )
    places = {card: Path(nodes.done(a, card)["workspace"]) for card in (empty, full, last)}
    assert all(place.is_dir() for place in places.values())

    assert taken(a, f"/v1/cards/{empty}/archive", {})["kept"] == ""
    assert not places[empty].exists()
    kept = f"notes.txt in {places[full]}"
    assert taken(a, f"/v1/cards/{full}/archive", {})["kept"] == kept
    assert a.get(f"/v1/cards/{full}")["kept"] == kept
    (places[full] / "notes.txt").unlink()
    released = a.request("POST", f"/v1/cards/{full}/release")
    assert (released.json()["kept"], places[full].exists()) == ("", False)

    b.kill9()
    nodes.wait_until_away("b")
    kept = taken(a, f"/v1/cards/{last}/archive", {})["kept"]
    assert "it is not known what is on node b, which does not answer" in kept
    assert kept == a.get(f"/v1/cards/{last}")["kept"]
    b.start()
    until(lambda: not places[last].exists(), "b has removed it", seconds=PATIENT)

    frozen = nodes.add(a, node="b", body="sh pwd\ncomplete well")
    place = Path(nodes.done(a, frozen)["workspace"])
    _freeze(b)  # so that it does not hear the request
    assert "which does not answer" in taken(a, f"/v1/cards/{frozen}/archive", {})["kept"]
    os.kill(b.pid, signal.SIGCONT)
    until(lambda: not place.exists(), "b has removed it although nobody could ask it", seconds=PATIENT)
