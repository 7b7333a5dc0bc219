"""kill -9 of the gateway while commands start and end. What they did is written down outside, by themselves.

Every command marks that it ran, and writes a copy of its output beside. Some are started by a person, some are
the background command of an agent, some a turn waits for. Afterwards: each that was accepted ran
once, with its true code, every byte, told of once, and no turn that hangs.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.e2e.gateway import NO_TLS, GatewayProcess, Json, check_whole, of_kind, until
from tests.e2e.tasks import home_with_commands, output, task
from tests.eventually import PATIENCE
from tests.seed import new_seed

KILLS = 20
MANY_KILLS = 1000
KILLS_IN_A_HOME = 50


def test_promise_3_kill_9_while_commands_start_and_end(tmp_path: Path) -> None:
    seed = new_seed()
    print(f"\n{trial(tmp_path, seed, KILLS)}")


@pytest.mark.proof
def test_promise_3_kill_9_a_thousand_times(tmp_path: Path) -> None:
    seed, total = new_seed(), Counter[str]()
    for number in range(MANY_KILLS // KILLS_IN_A_HOME):
        directory = tmp_path / str(number)
        directory.mkdir()
        total += trial(directory, seed + number, KILLS_IN_A_HOME)
    print(f"\n{total}")


@pytest.mark.parametrize("kills", [2, pytest.param(100, marks=pytest.mark.proof)])
def test_promise_3_what_a_command_left_behind_is_found_again_after_kill_9(tmp_path: Path, kills: int) -> None:
    """A process that lives is in the list, and one that is gone is not, however often the gateway is killed."""
    rng = random.Random(new_seed())
    (tmp_path / "home").mkdir(mode=0o700)
    with home_with_commands(tmp_path / "home") as gateway:
        port = gateway.start().port
        for number in range(kills):
            shell = f"(echo $BASHPID > {number}.pid; while :; do sleep 0.05; done) & sleep 0.1"
            body = {"shell": shell, "cwd": str(tmp_path)}
            first = gateway.command("POST", "/v1/tasks", body)["task"]
            time.sleep(rng.random())
            gateway.kill9()
            gateway.start(port)

            def left(first: str = first) -> list[Json]:
                return [one for one in gateway.get("/v1/tasks", state="running")["tasks"] if one["left_by"] == first]

            until(lambda: left() and left()[0]["pid"], "what it left behind is listed")
            (one,) = left()
            pid = int((tmp_path / f"{number}.pid").read_text())
            assert Path(f"/proc/{pid}").exists() and task(gateway, first)["exit_code"] == 0
            if number % 2:
                gateway.command("POST", f"/v1/tasks/{one['id']}/stop", {"force": True})
            else:
                gateway.kill9()
                os.kill(pid, signal.SIGKILL)
                gateway.start(port)
            until(lambda: not left(), "it is gone from the list")
            assert not Path(f"/proc/{pid}").exists()
            ended = task(gateway, one["id"])
            assert (ended["state"], ended["signal"]) == ("stopped" if number % 2 else "failed", "SIGKILL")


@dataclass(frozen=True, slots=True)
class Work:
    """One command, and what must come of it."""

    number: int
    code: int
    lines: int
    seconds: float
    place: Path

    @property
    def shell(self) -> str:
        loop = f"for i in $(seq 1 {self.lines}); do echo {self.number}-$i; done | tee {self.place}/{self.number}.copy"
        begun = f"echo begun >> {self.place}/{self.number}.ran"
        return f"{begun}; {loop}; sleep {self.seconds:.2f}; exit {self.code}"

    @property
    def runs(self) -> int:
        file = self.place / f"{self.number}.ran"
        return len(file.read_text().splitlines()) if file.exists() else 0

    @property
    def copy(self) -> bytes:
        return (self.place / f"{self.number}.copy").read_bytes()


class Person(threading.Thread):
    """Starts one thing after the other, each until it is acknowledged."""

    def __init__(self, gateway: GatewayProcess, place: Path, seed: int, stop: threading.Event) -> None:
        super().__init__(name="person")
        self._url, self._token = gateway.url, gateway.token
        self._place, self._rng, self._stop_asked = place, random.Random(seed), stop
        self.parent = gateway.create(cwd=place)
        self.started: dict[str, Work] = {}
        self.waited: dict[str, Work] = {}
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            headers = {"authorization": f"Bearer {self._token}"}
            with httpx.Client(base_url=self._url, headers=headers, verify=NO_TLS) as http:
                number = 0
                while not self._stop_asked.is_set():
                    number += 1
                    self._begin(http, number)
                    time.sleep(self._rng.random() * 0.1)
        except BaseException as error:
            self.error = error

    def _begin(self, http: httpx.Client, number: int) -> None:
        rng = self._rng
        work = Work(number, rng.randrange(256), rng.randrange(300), rng.random() * 0.5, self._place)
        if rng.random() < 0.5:
            body = {"shell": work.shell, "cwd": str(self._place), "session": self.parent}
            self.started[self._post(http, "/v1/tasks", body, number)["task"]] = work
        else:
            body = {"text": f"sh {work.shell}", "cwd": str(self._place)}
            self.waited[self._post(http, "/v1/sessions", body, number)["session"]] = work

    def _post(self, http: httpx.Client, path: str, body: Json, number: int) -> Json:
        while True:
            try:
                answer = http.post(path, json=body, headers={"idempotency-key": f"command-{number:06}"})
            except httpx.TransportError:
                time.sleep(0.01)
                continue
            if answer.status_code == 503:
                time.sleep(0.05)
                continue
            assert answer.status_code == 202, answer.text
            accepted: Json = answer.json()
            return accepted


def trial(directory: Path, seed: int, kills: int) -> Counter[str]:
    rng = random.Random(seed)
    (directory / "home").mkdir(mode=0o700)
    (directory / "home" / "config.toml").write_text("[resume]\nattempts = 1000\n")
    with home_with_commands(directory / "home") as gateway:
        port = gateway.start().port
        stop = threading.Event()
        person = Person(gateway, directory, seed, stop)
        person.start()
        try:
            for _ in range(kills):
                time.sleep(rng.random() * 0.3)
                gateway.kill9()
                if rng.random() < 0.2:
                    gateway.launch(port)
                    time.sleep(rng.random() * 0.2)
                    gateway.kill9()
                gateway.start(port)
        finally:
            stop.set()
            person.join(PATIENCE)
        assert person.error is None, person.error
        return reckon(gateway, person) + Counter({"kills": kills})


def reckon(gateway: GatewayProcess, person: Person) -> Counter[str]:
    found = Counter[str]()
    until(lambda: not gateway.get("/v1/tasks", state="running", all=True)["tasks"], "nothing hangs")
    for id, work in person.started.items():
        ended = task(gateway, id)
        assert (work.runs, ended["exit_code"], ended["reason"]) == (1, work.code, f"exit code {work.code}")
        assert output(gateway, id) == work.copy
        found["ended"] += 1
    notes = Counter(event["task"] for event in of_kind(gateway.events(person.parent), "NoteReceived"))
    assert notes == Counter(dict.fromkeys(person.started, 1)), "each is told of once"
    for session, work in person.waited.items():
        records = gateway.until_rest(session)
        check_whole(records)
        (finished,) = of_kind(records, "ToolCallFinished")
        assert work.runs == 1, "a crash before its beginning is no reason not to run it, and it runs once"
        word = "done" if work.code == 0 else "failed"
        assert finished["output"].endswith(f"[{word}: exit code {work.code}]"), finished
        assert finished["output"].startswith(work.copy.decode())
        found["waited for"] += 1
    return found
