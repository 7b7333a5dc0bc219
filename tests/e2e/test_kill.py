"""kill -9 under writing clients. What was acknowledged is written down here, outside of the gateway.

Several clients say things to several sessions, each under an id of its own; whatever is not acknowledged
is said again under the same id. Meanwhile the gateway is killed at random moments, also while it starts.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from holdfast.config import Home
from holdfast.lifecycle.doctor import examine
from tests.e2e.gateway import NO_TLS, GatewayProcess, Json, check_whole, of_kind
from tests.eventually import PATIENCE
from tests.seed import new_seed

KILLS = 20
MANY_KILLS = 1000
KILLS_IN_A_HOME = 50
CLIENTS = 4
SESSIONS = 3


def test_promise_1_kill_9_under_writing_clients(tmp_path: Path) -> None:
    Trial(tmp_path, seed=new_seed()).run(kills=KILLS)


@pytest.mark.proof
def test_promise_1_kill_9_a_thousand_times(tmp_path: Path) -> None:
    seed = new_seed()
    for number in range(MANY_KILLS // KILLS_IN_A_HOME):
        directory = tmp_path / str(number)
        directory.mkdir()
        Trial(directory, seed=seed + number).run(kills=KILLS_IN_A_HOME)


@dataclass(slots=True)
class Message:
    """What a client said, and the acknowledgement that it got in the end."""

    key: str
    session: str
    text: str
    tries: int = 0
    accepted: Json = field(default_factory=dict)


class Client(threading.Thread):
    """Says one thing after the other, each until it is acknowledged."""

    def __init__(
        self, name: str, *, url: str, token: str, sessions: list[str], seed: int, stop: threading.Event
    ) -> None:
        super().__init__(name=name)
        self._url = url
        self._token = token
        self._sessions = sessions
        self._rng = random.Random(f"{seed} {name}")
        self._stop_asked = stop
        self.said: list[Message] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            headers = {"authorization": f"Bearer {self._token}"}
            with httpx.Client(base_url=self._url, headers=headers, verify=NO_TLS) as http:
                while not self._stop_asked.is_set():
                    self._say(http)
                    time.sleep(self._rng.random() * 0.02)
        except BaseException as error:
            self.error = error

    def _say(self, http: httpx.Client) -> None:
        number = len(self.said)
        text = f"say {self.name} {number}"
        if self._rng.random() < 0.3:
            text = f"write {self.name} {number}\n{text}"
        message = Message(f"{self.name}-number-{number}", self._rng.choice(self._sessions), text)
        self.said.append(message)
        while not message.accepted:
            message.tries += 1
            try:
                answer = http.post(
                    f"/v1/sessions/{message.session}/messages",
                    json={"text": message.text},
                    headers={"idempotency-key": message.key},
                )
            except httpx.TransportError:
                time.sleep(0.01)
                continue
            if answer.status_code == 503:  # it is about to end, or too many come back at once
                time.sleep(0.05)
                continue
            assert answer.status_code == 202, answer.text
            message.accepted = answer.json()


class Trial:
    """One home, its clients, its kills, and the reckoning."""

    def __init__(self, directory: Path, *, seed: int) -> None:
        print(f"\nseed {seed}")
        self.rng = random.Random(seed)
        self.seed = seed
        self.directory = directory
        self.gateway = GatewayProcess(directory / "home")
        self.gateway.home.mkdir(mode=0o700)
        (self.gateway.home / "config.toml").write_text("[resume]\nattempts = 1000\n")

    def run(self, *, kills: int) -> None:
        with self.gateway.start() as gateway:
            port = gateway.port
            sessions = [gateway.create(cwd=self.directory) for _ in range(SESSIONS)]
            stop = threading.Event()
            clients = [
                Client(f"client{n}", url=gateway.url, token=gateway.token, sessions=sessions, seed=self.seed, stop=stop)
                for n in range(CLIENTS)
            ]
            for client in clients:
                client.start()
            try:
                gateway.kill9()
                for _ in range(kills - 1):
                    self._kill(port)
                gateway.start(port)
            finally:
                stop.set()
                for client in clients:
                    client.join(PATIENCE)
            for client in clients:
                assert client.error is None, client.error
            for session in sessions:
                gateway.until_state(session, "idle")
            self._reckon(sessions, [message for client in clients for message in client.said], kills)
            assert gateway.terminate() == 0
        findings = examine(Home(gateway.home))
        assert all(finding.ok for finding in findings), findings

    def _kill(self, port: int) -> None:
        """At a random moment of its work, or, one time in five, of its start."""
        if self.rng.random() < 0.2:
            self.gateway.launch(port)
            time.sleep(self.rng.uniform(0, 0.25))
        else:
            self.gateway.start(port)
            time.sleep(self.rng.uniform(0.01, 0.3))
        self.gateway.kill9()

    def _reckon(self, sessions: list[str], said: list[Message], kills: int) -> None:
        stored: Counter[str] = Counter()
        turns = answers = interrupted = resumed = 0
        for session in sessions:
            records = self.gateway.events(session)
            mine = {message.key: message for message in said if message.session == session}
            self._check_inputs(records, mine, stored)
            self._check_turns(records, mine)
            turns += len(of_kind(records, "TurnStarted"))
            answers += len(of_kind(records, "ModelResponded"))
            interrupted += len(of_kind(records, "ModelInterrupted"))
            resumed += len(of_kind(records, "TurnResumed"))
            assert self.gateway.session(session)["message_count"] == len(of_kind(records, "InputReceived")) + sum(
                bool(event["text"]) for event in of_kind(records, "ModelResponded")
            )
        lost = [message.key for message in said if stored[message.key] == 0]
        doubled = [key for key, times in stored.items() if times > 1]
        assert not lost and not doubled and len(stored) == len(said), (lost, doubled)
        tries = sum(message.tries for message in said)
        late = sum(message.accepted["duplicate"] for message in said)
        print(
            f"{kills} kills, {len(said)} acknowledged in {tries} tries ({late} had been stored without an"
            f" acknowledgement), {turns} turns, {answers} answers, {interrupted} cut, {resumed} resumed:"
            " 0 lost, 0 doubled, 0 reordered, every turn ended"
        )

    def _check_inputs(self, records: list[Json], mine: dict[str, Message], stored: Counter[str]) -> None:
        """Everything once, as it was said, where its acknowledgement says, each client's in its order."""
        check_whole(records)
        last: dict[str, int] = {}
        for record in records:
            event = record["event"]
            if event["kind"] != "InputReceived":
                continue
            message = mine[event["input"]]
            stored[message.key] += 1
            assert event["text"] == message.text
            assert (message.accepted["version"], message.accepted["seq"]) == (record["version"], record["seq"])
            client, _, number = message.key.partition("-number-")
            assert int(number) > last.get(client, -1), "reordered"
            last[client] = int(number)

    def _check_turns(self, records: list[Json], mine: dict[str, Message]) -> None:
        """Every turn ends, every message is answered once and whole, every tool call has one outcome."""
        started = of_kind(records, "TurnStarted")
        finished = of_kind(records, "TurnFinished")
        assert [event["turn"] for event in finished] == [event["turn"] for event in started]
        assert {event["outcome"] for event in finished} <= {"done"}
        assert sorted(key for event in started for key in event["inputs"]) == sorted(mine)
        answers: dict[int, list[Json]] = {}
        for event in of_kind(records, "ModelResponded"):
            answers.setdefault(event["turn"], []).append(event)
        for event in started:
            (key,) = event["inputs"]
            given = answers[event["turn"]]
            assert [answer["step"] for answer in given] == list(range(1, len(given) + 1))
            last_line = mine[key].text.rpartition("\n")[2].removeprefix("say ")
            assert given[-1]["text"].rpartition("\n")[2] == last_line
            assert not given[-1]["calls"]
        calls = [call["call"] for event in of_kind(records, "ModelResponded") for call in event["calls"]]
        ended = of_kind(records, "ToolCallFinished")
        assert [event["call"] for event in ended] == calls
        assert {event["outcome"] for event in ended} <= {"done"}
