"""Gateways with labels on one PostgreSQL: cards, sessions and commands run on the nodes that they ask for."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.board import most_at_work
from tests.e2e.gateway import GatewayProcess, of_kind, until, wait_for
from tests.e2e.labelled_nodes import (
    LABELS,
    MAX_RUNNING,
    PATIENT,
    Nodes,
    answered,
    inbox_entry,
    labelled_nodes,
    new_session,
    taken,
)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    with labelled_nodes(tmp_path) as nodes:
        yield nodes


def test_card_runs_on_the_node_that_it_asks_for_and_waits_while_that_is_away(nodes: Nodes) -> None:
    a, b = nodes.a, nodes.b
    assert [(n["name"], n["labels"]) for n in a.get("/v1/nodes")["nodes"]] == [("a", ["linux"]), ("b", LABELS["b"])]
    first = nodes.add(a, node="b")
    run = nodes.done(a, first)
    assert (run["node"], str(nodes.directory / "b") in run["workspace"]) == ("b", True)
    assert a.get(f"/v1/cards/{first}")["card"]["host"] == "b"
    trained = nodes.add(a, profile="trainer")
    assert nodes.done(b, trained)["node"] == "b"

    b.kill9()
    nodes.wait_until_away("b")
    second = nodes.add(a, node="b")
    assert "waits for node b, which was last seen" in nodes.why(a, f"/v1/cards/{second}")
    third = nodes.add(a, node="gpu")
    entry = inbox_entry(a, "card_not_startable", second)
    assert (entry["node"], "It waits for node b" in entry["what"], len(entry["commands"])) == ("b", True, 1)
    page = a.get("/v1/cards", why="true")
    assert "waits for node b" in page["why"][third]
    b.start()
    assert nodes.done(a, second)["node"] == "b"
    assert nodes.done(a, third)["node"] == "b"


def test_card_is_moved_to_another_node_unless_its_directory_is_private(nodes: Nodes) -> None:
    a, b = nodes.a, nodes.b
    tried = nodes.add(a, node="b", body="block later")
    until(lambda: a.get(f"/v1/cards/{tried}")["card"]["status"] == "blocked", "blocked", seconds=PATIENT)
    b.kill9()
    nodes.wait_until_away("b")
    card = nodes.add(a, node="b")
    moved = a.request("PATCH", f"/v1/cards/{card}", json={"node": "a"})
    assert moved.status_code == 202, moved.text
    assert nodes.done(a, card)["node"] == "a"

    refused = a.request("PATCH", f"/v1/cards/{tried}", json={"node": "a"})
    assert refused.status_code == 409
    assert "It stays on node b: its directory" in refused.json()["error"]["message"]
    unknown = a.request("PATCH", f"/v1/cards/{card}", json={"node": "mars"})
    assert unknown.status_code == 400
    assert "The nodes are: a (linux), b (gpu, linux)." in unknown.json()["error"]["hint"]


def test_card_waits_for_a_label_that_was_removed_and_says_so(nodes: Nodes) -> None:
    a, b = nodes.a, nodes.b
    b.kill9()
    nodes.wait_until_away("b")
    card = nodes.add(a, node="gpu")
    config = b.home / "config.toml"
    config.write_text(config.read_text().replace('"gpu", "linux"', '"linux"'))
    b.start()
    told = "It waits for a node that is called or labelled gpu, and there is none"
    until(lambda: told in nodes.why(a, f"/v1/cards/{card}"), "the label is gone", seconds=PATIENT)
    nodes.c.start()
    assert nodes.done(a, card)["node"] == "c"


def test_card_with_a_private_directory_runs_on_the_node_that_took_it(nodes: Nodes) -> None:
    a, b = nodes.a, nodes.b
    private = nodes.directory / "private"
    private.mkdir()
    card = nodes.add(b, workspace=f"dir:{private}")
    run = nodes.done(a, card)
    assert (run["node"], run["workspace"]) == ("b", str(private))
    assert a.get(f"/v1/cards/{card}")["card"]["node"] == "b"
    shared = nodes.add(b, workspace=f"dir:{nodes.directory / 'shared'}")
    assert a.get(f"/v1/cards/{shared}")["card"]["node"] == ""


def test_limit_of_running_cards_holds_over_all_nodes(nodes: Nodes) -> None:
    a, b, gate = nodes.a, nodes.b, nodes.directory / "gate"
    body = f"sh {wait_for(gate)}\ncomplete well"
    cards = [nodes.add(a, node=node, body=body) for node in ("b", "a", "b", "b")]

    def all_run_or_wait() -> bool:
        page = b.get("/v1/cards", why="true")
        running = [card for card in page["cards"] if card["status"] == "running"]
        waiting = [reason for reason in page["why"].values() if "which is the limit" in reason]
        return len(running) + len(waiting) == len(cards)

    until(all_run_or_wait, "they run, or wait because of the limit", seconds=PATIENT)
    gate.touch()
    assert [nodes.done(a, card)["node"] for card in cards] == ["b", "a", "b", "b"]
    assert most_at_work(a.whole_log()) == MAX_RUNNING


def test_command_is_started_on_the_node_that_it_asks_for(nodes: Nodes) -> None:
    a, b = nodes.a, nodes.b
    key = secrets.token_hex(12)
    body = {"shell": "echo done-$((40 + 2)); exit 3", "cwd": "/", "node": "gpu"}
    answers = [a.request("POST", "/v1/tasks", json=body, key=key) for _ in range(2)]  # the second is a retry
    assert [answer.status_code for answer in answers] == [202, 202]
    task = answers[0].json()["task"]
    assert answers[1].json()["task"] == task
    ended = a.until_ended(task)
    assert (ended["node"], ended["exit_code"]) == ("b", 3)
    assert sum(one["id"] == task for one in b.get("/v1/tasks")["tasks"]) == 1
    missing = a.request("POST", "/v1/tasks", json=body | {"cwd": "/is/not/there"})
    assert (missing.status_code, "is not a directory on that node" in missing.text) == (400, True)
    kept = a.request("POST", "/v1/tasks", json=body | {"env": {"A": "1"}})
    assert (kept.status_code, "leave `env` out" in kept.text) == (400, True)

    b.kill9()
    nodes.wait_until_away("b")
    away = a.request("POST", "/v1/tasks", json=body)
    assert away.status_code == 504
    assert "it is for node b, which was last seen" in away.json()["error"]["message"]


def test_session_runs_on_the_node_that_it_or_its_profile_asks_for(nodes: Nodes) -> None:
    a, b = nodes.a, nodes.b
    on_b = nodes.directory / "only-for-the-name"
    asked = new_session(a, on_b, text="say hello", node="b")  # the directory is not checked here
    assert answered(a, asked) == "b"
    assert a.get(f"/v1/sessions/{asked}")["node"] == "b"
    trained = new_session(a, nodes.directory, profile="trainer")
    assert answered(b, trained) == "b"
    later = str(taken(a, "/v1/sessions", {"profile": "trainer", "cwd": str(nodes.directory)})["session"])
    taken(a, f"/v1/sessions/{later}/messages", {"text": "say later"})
    assert answered(a, later) == "b"
    task = taken(a, "/v1/tasks/agents", {"prompt": "say there", "profile": "demo", "node": "gpu"})["session"]
    assert answered(a, task) == "b"
    here = new_session(a, nodes.directory)
    assert answered(b, here) == "a"
    assert {one["id"]: one["host"] for one in b.get("/v1/sessions")["sessions"]}[asked] == "b"
    for nowhere in ("relative", "/a\0b"):
        body = {"text": "t", "profile": "demo", "node": "b", "cwd": nowhere}
        assert "is not the absolute path" in a.request("POST", "/v1/sessions", json=body).text
    unknown = a.request("POST", "/v1/sessions", json={"text": "t", "profile": "demo", "node": "mars"})
    assert (unknown.status_code, "No node is called or labelled 'mars'" in unknown.text) == (400, True)


def test_agents_that_are_started_for_a_node_run_there_again_or_are_refused(nodes: Nodes) -> None:
    a, b = nodes.a, nodes.b
    asked = new_session(a, nodes.directory, text='call delegate {"prompt": "say no", "profile": "trainer"}\nsay asked')
    until(lambda: a.get("/v1/inbox")["entries"], "it asks", seconds=PATIENT)
    wait = a.get("/v1/inbox")["entries"][0]["id"]
    taken(a, "/v1/answers", {"wait": wait, "answer": "allow"})
    assert answered(a, asked) == "a"
    assert "Agents with the profile trainer do not run on this machine" in str(
        of_kind(a.events(asked), "ToolCallFinished")
    )

    first = str(taken(a, "/v1/tasks/agents", {"prompt": "say there", "profile": "demo", "node": "gpu"})["session"])
    assert answered(a, first) == "b"
    again = str(taken(a, f"/v1/tasks/{first}/rerun", {})["session"])
    assert (answered(a, again), a.get(f"/v1/sessions/{again}")["node"]) == ("b", "gpu")

    command = a.request("POST", "/v1/tasks", json={"shell": "pwd", "cwd": str(b.home), "node": "gpu"}).json()["task"]
    assert a.until_ended(command)["node"] == "b"
    repeated = str(taken(a, f"/v1/tasks/{command}/rerun", {"env": {"A": "1"}})["task"])
    assert (a.until_ended(repeated)["node"], a.until_ended(repeated)["exit_code"]) == ("b", 0)


def test_session_whose_node_is_away_waits_and_is_moved(nodes: Nodes) -> None:
    a, b = nodes.a, nodes.b
    idle = new_session(a, nodes.directory / "shared", text="say first", node="b")
    assert answered(a, idle) == "b"
    moved = taken(a, f"/v1/sessions/{idle}/node", {"node": "a"})  # at rest, while b lives
    assert moved["session"] == idle
    taken(b, f"/v1/sessions/{idle}/messages", {"text": "say second"})
    assert answered(b, idle, turn=2) == "a"

    at_work = new_session(a, nodes.directory / "shared", text="slow 300 one two three", node="b")
    until(lambda: "Node b works on it" in nodes.why(a, f"/v1/sessions/{at_work}"), "b works", seconds=PATIENT)
    busy = a.request("POST", f"/v1/sessions/{at_work}/node", json={"node": "a"})
    assert (busy.status_code, busy.json()["error"]["message"]) == (409, "Node b works on it.")
    b.kill9()
    nodes.wait_until_away("b")
    waits = new_session(a, nodes.directory / "shared", text="say moved", node="b")
    assert "It waits for node b, which was last seen" in nodes.why(a, f"/v1/sessions/{waits}")
    assert "It waits for node b, which was last seen" in nodes.why(a, f"/v1/sessions/{at_work}")
    entry = inbox_entry(a, "session_not_startable", waits)
    assert entry["commands"] == [f"holdfast sessions move {waits} --node NAME"]
    assert (entry["node"], "waits for node b" in entry["what"]) == ("b", True)
    taken(a, f"/v1/sessions/{waits}/node", {"node": "a"})
    assert answered(a, waits) == "a"
    assert not [e for e in a.get("/v1/inbox")["entries"] if e["id"] == waits]


def test_session_stays_undisturbed_where_it_is_when_that_fits_what_it_is_to_ask_for(nodes: Nodes) -> None:
    a = nodes.a
    private = nodes.directory / "private"
    private.mkdir()
    bound = new_session(a, private, text="say first", node="gpu")  # only its lease says that b has the directory
    assert answered(a, bound) == "b"
    taken(a, f"/v1/sessions/{bound}/node", {"node": ""})
    refused = a.request("POST", f"/v1/sessions/{bound}/node", json={"node": "a"})
    assert (refused.status_code, "It stays on node b: its directory" in refused.text) == (409, True)

    at_work = new_session(a, nodes.directory / "shared", text="slow 3 one two three", node="b")
    until(lambda: "Node b works on it" in nodes.why(a, f"/v1/sessions/{at_work}"), "b works", seconds=PATIENT)
    taken(a, f"/v1/sessions/{at_work}/node", {"node": "gpu"})
    assert answered(a, at_work) == "b"
    events = a.get(f"/v1/sessions/{at_work}/events", limit=1000)["events"]
    assert [e["event"]["kind"] for e in events][-3:] == ["NodeChosen", "ModelResponded", "TurnFinished"]


def test_session_goes_where_its_new_profile_runs_or_says_that_it_cannot(nodes: Nodes) -> None:
    a = nodes.a
    private = nodes.directory / "private"
    private.mkdir()
    movable, bound = new_session(a, nodes.directory / "shared"), new_session(a, private)
    for session in (movable, bound):
        assert answered(a, session) == "a"
        taken(a, f"/v1/sessions/{session}/agent", {"profile": "trainer"})
        taken(a, f"/v1/sessions/{session}/messages", {"text": "say again"})
    assert answered(a, movable, turn=2) == "b"
    for node in (a, nodes.b):
        assert "It waits for a node that is one of gpu" in nodes.why(node, f"/v1/sessions/{bound}")
    unused = str(taken(a, "/v1/sessions", {"profile": "demo", "cwd": str(private)})["session"])
    taken(a, f"/v1/sessions/{unused}/agent", {"profile": "trainer"})
    taken(a, f"/v1/sessions/{unused}/messages", {"text": "say first"})
    found = inbox_entry(a, "session_not_startable", unused)["commands"]
    assert found == [f"holdfast sessions agent {unused} --profile NAME"]  # to forget a node that lives is refused


def test_session_with_a_private_directory_stays_on_its_node(nodes: Nodes) -> None:
    a, b = nodes.a, nodes.b
    private = nodes.directory / "private"
    private.mkdir()
    labelled = new_session(a, private, node="gpu")
    created = new_session(b, private)
    assert (answered(a, labelled), answered(a, created)) == ("b", "b")
    fork = str(taken(a, f"/v1/sessions/{created}/fork", {})["session"])
    fork_of_labelled = str(taken(a, f"/v1/sessions/{labelled}/fork", {})["session"])
    for session in (labelled, created, fork, fork_of_labelled):
        refused = a.request("POST", f"/v1/sessions/{session}/node", json={"node": "a"})
        assert refused.status_code == 409, refused.text
        assert "It stays on node b: its directory" in refused.json()["error"]["message"]
    taken(a, "/v1/nodes/b/drain", {})
    nodes.wait_until_away("b")
    for session in (labelled, created, fork):
        taken(a, f"/v1/sessions/{session}/messages", {"text": "say again"})
        why = nodes.why(a, f"/v1/sessions/{session}")
        assert (" waits for " in why, " node b" in why, "its directory" in why) == (True, True, True), why
    assert inbox_entry(a, "session_not_startable", created)["commands"] == ["holdfast nodes forget b"]
    b.wait_for_end()
    b.start()
    assert (answered(a, labelled, 2), answered(a, created, 2), answered(a, fork, 2)) == ("b", "b", "b")


def test_gateway_without_other_nodes_knows_its_own_name_and_labels_only(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text('[node]\nname = "laptop"\nlabels = ["gpu"]\n')
    with GatewayProcess(home) as gateway:
        gateway.start()
        for word in ("local", "laptop", "gpu"):
            body = {"title": word, "body": "complete well", "profile": "demo", "node": word}
            path = f"/v1/cards/{taken(gateway, '/v1/cards', body)['card']}"
            while (card := gateway.get(path)["card"])["status"] != "done":
                time.sleep(0.05)
            assert card["host"] == ""
        refused = gateway.request("POST", "/v1/cards", json={"title": "t", "profile": "demo", "node": "mars"})
        assert (refused.status_code, refused.json()["error"]["message"]) == (
            400,
            "No node is called or labelled 'mars'.",
        )
        assert refused.json()["error"]["hint"] == "The nodes are: local (gpu, laptop)."
