"""Three gateways on one PostgreSQL, killed and frozen while they talk, work on cards and run commands.

Every acknowledgement is kept outside of them, and every command leaves a line in a file that no gateway writes.
"""

from __future__ import annotations

import os
import random
import secrets
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.e2e.board import most_at_work
from tests.e2e.gateway import GatewayProcess, Json, check_whole, kinds, of_kind, until, wait_for
from tests.postgres_server import shared_server
from tests.seed import new_seed

NAMES = ("alpha", "beta", "gamma")
MAX_RUNNING = 3
WORDS = "one two three four five six"
TIMINGS = {"store.lease": 3.0, "store.look": 0.2, "runtime.sweep": 1.0, "tasks.retry": 0.1}
PATIENT = 240.0


@dataclass(slots=True)
class Cluster:
    """Gateways on one database, and all that they acknowledged."""

    url: str
    directory: Path
    nodes: dict[str, GatewayProcess]
    up: set[str] = field(default_factory=set)
    sessions: dict[str, list[str]] = field(default_factory=dict)
    """Of each session the ids of its inputs, in the order in which they were acknowledged."""
    cards: list[str] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    acknowledged: dict[tuple[str, int], int] = field(default_factory=dict)
    """By stream and version: the seq."""

    @property
    def effects(self) -> Path:
        """Where commands write."""
        return self.directory / "effects"

    def start(self, name: str) -> None:
        self.nodes[name].start()
        self.up.add(name)

    def kill(self, name: str) -> None:
        self.up.discard(name)
        self.nodes[name].kill9()

    def tell(self, path: str, body: Json) -> Json:
        """A command to whoever answers, under one id, so that it counts once."""
        key = secrets.token_hex(12)

        def told() -> Json | None:
            node = self.nodes[random.choice(sorted(self.up))]
            try:
                answer = node.request("POST", path, json=body, key=key)
            except httpx.TransportError:
                return None
            assert answer.status_code in (202, 503, 507), answer.text
            return dict(answer.json()) if answer.status_code == 202 else None

        found = until(told, f"somebody takes {path}", seconds=PATIENT)
        self.acknowledged[found["stream"], found["version"]] = found["seq"]
        return found

    def talk(self) -> None:
        id = secrets.token_hex(6)
        text = f"slow 0.6 {WORDS}\nsh echo {id} >> {self.effects}; exit 3\nsay {id}"
        body = {"text": text, "cwd": str(self.directory), "profile": "demo"}
        answer = self.tell("/v1/sessions", body)
        self.sessions[answer["session"]] = [answer["input"]]

    def say_more(self, session: str) -> None:
        answer = self.tell(f"/v1/sessions/{session}/messages", {"text": "say more"})
        self.sessions[session].append(answer["input"])

    def add_card(self) -> None:
        body = {"title": "c", "body": f"slow 0.4 {WORDS}\ncomplete well", "profile": "demo"}
        self.cards.append(self.tell("/v1/cards", body)["card"])

    def run_command(self) -> None:
        id = secrets.token_hex(6)
        shell = f"sleep 0.5; echo {id} >> {self.effects}; exit 7"
        self.tasks.append(self.tell("/v1/tasks", {"shell": shell, "cwd": "/"})["task"])

    def rows(self, query: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.url, options="-c search_path=holdfast") as db:
            return db.execute(query.encode()).fetchall()

    def busiest(self) -> str:
        """The node that works on most sessions with an open turn."""
        query = """SELECT n.name FROM sessions s
            JOIN leases l ON l.stream = 'session/' || s.id JOIN nodes n USING (life)
            WHERE n.ended_at IS NULL AND s.turn_state = 'running' GROUP BY 1 ORDER BY count(*) DESC, 1"""
        names = [str(name) for (name,) in self.rows(query)]
        return next((name for name in names if name in self.up), "")

    def hang(self) -> tuple[str, str, str]:
        """A session whose model does not answer, the node that works on it, and another one."""
        session = self.nodes["alpha"].create("hang\nsay goodbye", cwd=self.directory)
        self.nodes["alpha"].until_event(session, "ModelRequested")
        worker = self.busiest()  # a sweep of another node may have been first
        return session, worker, next(name for name in NAMES if name != worker)

    def is_alive(self, name: str) -> bool:
        return bool(self.rows(f"SELECT 1 FROM nodes WHERE name = '{name}' AND ended_at IS NULL"))

    def wait_until_lost(self, name: str) -> None:
        until(lambda: not self.is_alive(name), f"{name} is lost", seconds=PATIENT)

    def any(self) -> GatewayProcess:
        return self.nodes[sorted(self.up)[0]]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    name = f"n{secrets.token_hex(4)}"
    server = shared_server()
    server.sql(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
    with ExitStack() as closing:
        closing.callback(server.sql, f"DROP DATABASE {name} WITH (FORCE)")
        nodes = {node: closing.enter_context(new_node(tmp_path, node, server.url(name))) for node in NAMES}
        found = Cluster(server.url(name), tmp_path, nodes)
        for node in nodes:
            found.start(node)
        yield found


def new_node(directory: Path, name: str, url: str) -> GatewayProcess:
    home = directory / name
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(
        f'[store]\nurl = "{url}"\n[node]\nname = "{name}"\n[resume]\nattempts = 99\n'
        f'[board]\nmax_running = {MAX_RUNNING}\n[cluster]\nshared = ["{directory}"]\n'
        '[profiles.demo]\nmodel = "demo"\ntools = { terminal = "allow" }\n'
    )
    return GatewayProcess(home, timings=TIMINGS)


def check_all(cluster: Cluster) -> Counter[str]:
    """Nothing was lost, doubled, reordered or run twice."""
    node = cluster.any()
    log = node.whole_log()
    assert [record["seq"] for record in log] == list(range(1, len(log) + 1))
    stored = {(record["stream"], record["version"]): record["seq"] for record in log}
    assert cluster.acknowledged.items() <= stored.items()
    effects = Counter(cluster.effects.read_text().split())
    assert set(effects.values()) == {1}, "a command ran twice"
    outcomes: Counter[str] = Counter()
    for session, inputs in cluster.sessions.items():
        records = node.events(session)
        check_whole(records)
        assert [event["input"] for event in of_kind(records, "InputReceived")] == inputs
        assert [event["outcome"] for event in of_kind(records, "TurnFinished")] == ["done"] * len(inputs)
        answers = [(event["turn"], event["step"]) for event in of_kind(records, "ModelResponded")]
        assert answers == sorted(set(answers)), "a step was answered twice"
        (call,) = of_kind(records, "ToolCallFinished")
        outcomes[call["outcome"]] += 1
        if call["outcome"] == "done":
            assert call["exit_code"] == 3
    for card in cluster.cards:
        events = [record for record in log if record["stream"] == f"card/{card}"]
        assert (kinds(events).count("RunStarted"), kinds(events).count("CardCompleted")) == (1, 1)
    assert most_at_work(log) <= MAX_RUNNING, "two nodes ran the board"
    for task in cluster.tasks:
        assert node.get(f"/v1/tasks/{task}")["exit_code"] == 7
    return outcomes


def kill_again_and_again(cluster: Cluster, kills: int) -> None:
    random.seed(new_seed())
    for number in range(kills):
        cluster.talk()
        cluster.add_card()
        cluster.run_command()
        victim = until(cluster.busiest, "a node works", seconds=PATIENT)
        if number % 3 == 0:
            cluster.say_more(random.choice([*cluster.sessions]))
        cluster.kill(victim)
        if number % 2:  # else it is back before the others have missed it
            cluster.wait_until_lost(victim)
        cluster.start(victim)
    wait_until_done(cluster)


def wait_until_done(cluster: Cluster, *, seconds: float = PATIENT) -> None:
    """Wait until every session, card and command has ended."""

    def left() -> list[tuple[object, ...]]:
        return cluster.rows(
            """SELECT 'session', id, turn_state, queued FROM sessions WHERE queued > 0 OR turn_state <> 'done'
            UNION ALL SELECT 'card', id, status || ' ' || reason, run FROM cards WHERE status <> 'done'
            UNION ALL SELECT 'task', id, state || ' on ' || node, 0 FROM tasks WHERE state = 'running'"""
        )

    try:
        until(lambda: not left(), "all work is done", seconds=seconds, pause=0.1)
    except AssertionError as error:
        raise AssertionError(f"{error}: {len(left())} are left, such as {left()[:9]}") from None


def test_promise_1_nothing_is_lost_or_done_twice_when_nodes_are_killed(cluster: Cluster) -> None:
    kill_again_and_again(cluster, 12)
    check_all(cluster)


@pytest.mark.proof
@pytest.mark.timeout(7200)
def test_promise_1_nothing_is_lost_or_done_twice_in_500_kills(cluster: Cluster) -> None:
    kill_again_and_again(cluster, 500)
    print(check_all(cluster))


def test_promise_2_a_frozen_node_that_wakes_up_writes_nothing(cluster: Cluster) -> None:
    session, worker, another = cluster.hang()
    frozen, other = cluster.nodes[worker], cluster.nodes[another]
    os.kill(frozen.pid, signal.SIGSTOP)
    records = other.until_event(session, "TurnResumed", seconds=PATIENT)
    resumed = of_kind(records, "TurnResumed")[0]
    assert (resumed["interruption"], resumed["attempt"]) == ("node_lost", 0)
    assert f"node {worker}, which worked on it, was lost" in resumed["reason"]
    os.kill(frozen.pid, signal.SIGCONT)
    until(lambda: cluster.is_alive(worker), "it is back", seconds=PATIENT)
    frozen.send(session, "say it again", mode="interrupt")
    records = other.until_rest(session)
    check_whole(records)
    assert kinds(records).count("TurnResumed") == 1
    steps = [(event["turn"], event["step"]) for event in of_kind(records, "ModelRequested")]
    assert Counter(steps) == {(1, 1): 2, (2, 1): 1}
    assert records == frozen.events(session)


def test_promise_7_a_command_on_a_dead_node_is_unknown_until_the_node_is_back(cluster: Cluster) -> None:
    gate = cluster.directory / "gate"
    session = cluster.any().create(f"sh {wait_for(gate)}; exit 7\nsay bye", cwd=cluster.directory)
    rows = until(lambda: cluster.rows("SELECT id, node FROM tasks WHERE pid IS NOT NULL"), "it has begun")
    ((task, worker),) = [(str(task), str(node)) for task, node in rows]
    cluster.kill(worker)
    other = cluster.any()
    records = other.until_rest(session, seconds=PATIENT)
    (call,) = of_kind(records, "ToolCallFinished")
    assert (call["outcome"], call["task"]) == ("unknown", task)
    assert f"node {worker}, where it runs, is away" in call["output"]
    assert other.get(f"/v1/tasks/{task}")["state"] == "unknown"
    gate.touch()
    cluster.start(worker)
    ended = other.until_ended(task)
    assert (ended["state"], ended["exit_code"]) == ("failed", 7)


def test_a_drained_node_hands_over_and_ends_when_nothing_is_left(cluster: Cluster) -> None:
    gate = cluster.directory / "gate"
    session, name, another = cluster.hang()
    worker, other = cluster.nodes[name], cluster.nodes[another]
    task = worker.command("POST", "/v1/tasks", {"shell": f"{wait_for(gate)}; exit 7", "cwd": "/"})["task"]
    other.request("POST", f"/v1/nodes/{name}/drain")
    records = other.until_event(session, "TurnResumed", seconds=PATIENT)
    assert [event["interruption"] for event in of_kind(records, "TurnResumed")] == ["shutdown"]
    nodes = {node["name"]: node for node in other.get("/v1/nodes")["nodes"]}
    assert (nodes[name]["state"], nodes[name]["tasks"]) == ("draining", [task])
    assert session not in nodes[name]["sessions"] and not nodes[name]["duties"]
    assert other.request("DELETE", f"/v1/nodes/{name}").status_code == 409
    gate.touch()
    assert worker.wait_for_end() == 0
    assert other.get(f"/v1/tasks/{task}")["exit_code"] == 7
    assert other.request("DELETE", f"/v1/nodes/{name}").status_code == 202
    assert [node["name"] for node in other.get("/v1/nodes")["nodes"]] == [left for left in NAMES if left != name]


def test_a_forgotten_node_loses_its_commands(cluster: Cluster) -> None:
    alpha, beta = cluster.nodes["alpha"], cluster.nodes["beta"]
    task = alpha.command("POST", "/v1/tasks", {"shell": "sleep 999", "cwd": "/"})["task"]
    pid = until(lambda: alpha.get(f"/v1/tasks/{task}")["pid"], "it has begun")
    cluster.kill("alpha")
    cluster.wait_until_lost("alpha")
    sentences = beta.get("/v1/nodes/alpha/why")["sentences"]
    assert "1 command ran there" in sentences[0]["text"]
    assert beta.request("DELETE", "/v1/nodes/alpha").json() == {"name": "alpha", "lost_tasks": [task]}
    assert "was forgotten" in beta.until_ended(task)["reason"]
    os.kill(pid, signal.SIGKILL)
