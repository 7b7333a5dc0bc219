"""Gateways with labels on one PostgreSQL: cards, sessions and commands run on the nodes that they ask for."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.gateway import GatewayProcess, Json, until
from tests.postgres_server import shared_server

TIMINGS = {"store.lease": 2.0, "store.look": 0.2, "runtime.sweep": 1.0, "tasks.retry": 0.1}
LABELS = {"a": ["linux"], "b": ["gpu", "linux"], "c": ["gpu"]}
PATIENT = 120.0


def taken(node: GatewayProcess, path: str, body: Json) -> Json:
    """Send a command that is accepted; return the answer."""
    answer = node.request("POST", path, json=body)
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


@dataclass(slots=True)
class Nodes:
    """Three gateways; c is not started."""

    directory: Path
    a: GatewayProcess
    b: GatewayProcess
    c: GatewayProcess

    def add(self, at: GatewayProcess, /, **card: object) -> str:
        body = {"title": "t", "body": "sh pwd\ncomplete well", "profile": "demo"} | card
        return str(taken(at, "/v1/cards", body)["card"])

    def done(self, node: GatewayProcess, card: str) -> Json:
        """Wait until a card is done; return its last run."""
        found = until(
            lambda: (one := node.get(f"/v1/cards/{card}"))["card"]["status"] == "done" and one, "done", seconds=PATIENT
        )
        return dict(found["runs"][-1])

    def why(self, node: GatewayProcess, path: str) -> str:
        return " ".join(one["text"] for one in node.get(f"{path}/why")["sentences"])

    def wait_until_away(self, name: str) -> None:
        until(
            lambda: next(n for n in self.a.get("/v1/nodes")["nodes"] if n["name"] == name)["state"] == "ended",
            f"{name} is away",
            seconds=PATIENT,
        )


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    name = f"p{secrets.token_hex(4)}"
    server = shared_server()
    server.sql(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
    (tmp_path / "shared").mkdir()
    with ExitStack() as closing:
        closing.callback(server.sql, f"DROP DATABASE {name} WITH (FORCE)")
        made = [closing.enter_context(_node(tmp_path, node, server.url(name))) for node in LABELS]
        for node in made[:2]:
            node.start()
        yield Nodes(tmp_path, *made)


def _node(directory: Path, name: str, url: str) -> GatewayProcess:
    home = directory / name
    home.mkdir(mode=0o700)
    labels = ", ".join(f'"{label}"' for label in LABELS[name])
    (home / "config.toml").write_text(
        f'[store]\nurl = "{url}"\n[node]\nname = "{name}"\nlabels = [{labels}]\n'
        f'[cluster]\nshared = ["{directory}/shared"]\n[board]\nmax_running = 2\n'
        '[profiles.demo]\nmodel = "demo"\ntools = { terminal = "allow" }\n'
        '[profiles.trainer]\nmodel = "demo"\nnodes = ["gpu"]\ntools = { terminal = "allow" }\n'
    )
    return GatewayProcess(home, timings=TIMINGS)


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
    assert "waits for node b, which was last heard" in nodes.why(a, f"/v1/cards/{second}")
    third = nodes.add(a, node="gpu")
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


def test_limit_of_running_cards_holds_over_all_nodes(nodes: Nodes) -> None:
    a, b = nodes.a, nodes.b
    cards = [nodes.add(a, node=node, body="slow 3 one two three\ncomplete well") for node in ("b", "a", "b", "b")]
    seen: set[int] = set()

    def all_done() -> bool:
        found = [card for card in b.get("/v1/cards")["cards"] if card["id"] in cards]  # all of one moment
        seen.add(sum(card["status"] == "running" for card in found))
        return all(card["status"] == "done" for card in found)

    until(all_done, "all are done", seconds=PATIENT)
    assert max(seen) <= 2
    assert [nodes.done(a, card)["node"] for card in cards] == ["b", "a", "b", "b"]


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
    assert "it is for node b, which was last heard" in away.json()["error"]["message"]


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
