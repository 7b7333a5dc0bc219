"""The power goes: what counts is what the disk had. A home on a file system in an image, copied in the middle.

The gateway is killed and the image copied as it is, without a sync: what was only in memory is not in it. On
the copy another gateway must find everything that was acknowledged, and every end of a command that was told.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from holdfast.config import Home
from holdfast.lifecycle.doctor import examine
from tests.e2e.gateway import GatewayProcess, check_whole, of_kind
from tests.e2e.tasks import home_with_commands
from tests.seed import new_seed

CUTS = 2
MANY_CUTS = 40
SIZE = "2G"


def test_promise_1_what_was_acknowledged_survives_a_power_cut(tmp_path: Path) -> None:
    trial(tmp_path, cuts=CUTS)


@pytest.mark.proof
def test_promise_1_many_power_cuts(tmp_path: Path) -> None:
    trial(tmp_path, cuts=MANY_CUTS)


def trial(tmp_path: Path, *, cuts: int) -> None:
    rng, messages, ends = random.Random(new_seed()), 0, 0
    image = made(tmp_path / "image")
    with mounted(image, tmp_path / "disk") as disk:
        for number in range(cuts):
            with home_with_commands(disk / "home", log_next_to=tmp_path / f"gateway{number}") as gateway:
                told = talk(gateway.start(), tmp_path, number, seconds=0.3 + rng.random())
            # a new file each time: commands may still use the one before, and would write into the next
            copy = tmp_path / f"copy{number}"
            subprocess.run(["cp", "--sparse=always", str(image), str(copy)], check=True)
            with mounted(copy, tmp_path / f"after{number}") as after:
                copy.unlink()
                check(after / "home", told, log=tmp_path / f"log{number}")
            messages, ends = messages + len(told.inputs), ends + len(told.ended)
    print(f"\n{cuts} power cuts, {messages} messages and {ends} ends of commands told: 0 lost")
    assert messages, "something was acknowledged"


def made(image: Path) -> Path:
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("there is no mkfs.ext4 here")
    subprocess.run(["truncate", "-s", SIZE, str(image)], check=True)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True, capture_output=True)
    return image


@contextmanager
def mounted(image: Path, place: Path) -> Iterator[Path]:
    place.mkdir(exist_ok=True)
    done = subprocess.run(["mount", "-o", "loop", str(image), str(place)], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


class Told:
    """What a client heard before the lights went out, kept outside of the image."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.inputs: list[str] = []
        self.ended: dict[str, tuple[str, int]] = {}


def talk(gateway: GatewayProcess, cwd: Path, number: int, *, seconds: float) -> Told:
    """Say things, run commands, write down what is answered; then kill it in the middle."""
    told = Told(gateway.create(cwd=cwd))
    url, token = gateway.url, gateway.token
    end = threading.Timer(seconds, os.kill, (gateway.pid, signal.SIGKILL))
    with httpx.Client(base_url=url, headers={"authorization": f"Bearer {token}"}) as http:
        try:
            for count in range(10_000):
                key = f"cut-{number}-said-{count}"
                path = f"/v1/sessions/{told.session}/messages"
                answer = http.post(path, json={"text": f"say {count}"}, headers={"idempotency-key": key})
                if answer.status_code == 202:
                    told.inputs.append(key)
                    if count == 0:
                        end.start()
                if count % 10 == 0:
                    body = {"shell": f"exit {count % 250}", "cwd": str(cwd)}
                    http.post("/v1/tasks", json=body, headers={"idempotency-key": f"cut-{number}-run-{count}"})
                    for task in http.get("/v1/tasks").json()["tasks"]:
                        if task["state"] != "running":
                            told.ended[task["id"]] = (task["state"], task["exit_code"])
        except (httpx.TransportError, KeyError):
            pass
    gateway.wait_for_end()
    return told


def check(home: Path, told: Told, *, log: Path) -> None:
    assert [finding for finding in examine(Home(home)) if not finding.ok] == []
    with GatewayProcess(home, log_next_to=log) as gateway:
        gateway.start()
        records = gateway.events(told.session)
        check_whole(records)
        stored = [event["input"] for event in of_kind(records, "InputReceived")]
        assert stored[: len(told.inputs)] == told.inputs
        for id, (state, code) in told.ended.items():
            found = gateway.get(f"/v1/tasks/{id}")
            assert (found["state"], found["exit_code"]) == (state, code)
