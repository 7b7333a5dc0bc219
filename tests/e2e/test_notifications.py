"""Notifications of a real gateway that is killed: every event is sent, under one id."""

from __future__ import annotations

import random
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest

import holdfast
from tests.e2e.gateway import GatewayProcess, Json, until
from tests.e2e.tasks import home_with_commands, task, tasks_of
from tests.seed import new_seed

KILLS = 3
MANY_KILLS = 60


class Hook:
    """A receiver that keeps what it gets; while `gate` is closed it does not answer."""

    def __init__(self) -> None:
        self.received: list[tuple[str, Json]] = []
        self.gate = threading.Event()
        self.gate.set()

    def texts(self) -> set[str]:
        return {body["data"]["title"] for _, body in self.received}


@contextmanager
def listening() -> Iterator[tuple[Hook, int]]:
    hook = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            hook.received.append((self.headers["webhook-id"], msgspec.json.decode(body)))
            hook.gate.wait()
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hook, server.server_port
    finally:
        hook.gate.set()
        server.shutdown()
        server.server_close()


def new_home(directory: Path, port: int, more: str = "") -> Path:
    home = directory / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(
        f'[notify.webhooks.mine]\nurl = "http://127.0.0.1:{port}/hook"\nallow_private = true\n'
        f"only_when_nobody_looks = false\n{more}"
    )
    return home


def test_promise_5_killed_while_it_sends_it_sends_again_under_the_same_id(tmp_path: Path) -> None:
    with listening() as (hook, port), GatewayProcess(new_home(tmp_path, port)) as gateway:
        gateway.start()
        hook.gate.clear()
        session = gateway.create("say hello")
        until(lambda: hook.received or None, "the receiver was asked")
        gateway.kill9()
        hook.gate.set()
        gateway.start()
        until(lambda: len(hook.received) == 2 or None, "it was asked again")
        found = until(
            lambda: [one for one in gateway.get("/v1/notify/log")["deliveries"] if one["state"] == "sent"] or None,
            "that it has it is recorded",
        )
        assert [(one["kind"], one["link"], one["attempts"]) for one in found] == [("done", f"/s/{session}", 2)]
        assert len({id for id, _ in hook.received}) == 1


def test_what_is_answered_before_it_was_sent_is_not_sent(tmp_path: Path) -> None:
    rules = '\n[profiles.demo]\nmodel = "demo"\n[profiles.demo.tools]\nread = "ask"\n'
    with listening() as (hook, port), GatewayProcess(new_home(tmp_path, port, rules)) as gateway:
        gateway.start()
        hook.gate.clear()  # it is busy with another message
        gateway.create("say first")
        until(lambda: hook.received or None, "the first message")
        session = gateway.create("read config.toml")
        wait = until(lambda: next(iter(gateway.get("/v1/inbox")["waits"]), None), "it asks")
        gateway.command("POST", "/v1/answers", {"wait": wait["id"], "answer": "deny"})
        gateway.until_event(session, "TurnFinished")
        hook.gate.set()
        until(lambda: "read config.toml" in hook.texts() or None, "its end is told")
        kinds = [body["type"] for _, body in hook.received if body["data"]["title"] == "read config.toml"]
        assert kinds == ["notice.done"]


HOME_CHANNEL = """[notify]
home_channel = "webhooks.home"
[notify.webhooks.home]
url = "http://127.0.0.1:{port}/home"
allow_private = true
on = []
[session_reset]
mode = "daily"
at_hour = 6
timezone = "UTC"
hand_over_note = false
"""
LATE = Path(__file__).with_name("late_gateway.py")


def test_a_daily_reset_with_two_preview_servers_is_reported_in_the_home_channel(tmp_path: Path) -> None:
    """The next morning the session is reset, and whoever reads only that line knows what still runs, and why."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir(mode=0o700)
    work.mkdir()
    more = {"timings": {"lifecycle.reset_check": 0.1}, "script": LATE}
    with listening() as (hook, port), home_with_commands(home, arguments=("0",), **more) as gateway:
        (home / "config.toml").write_text(HOME_CHANNEL.format(port=port))
        gateway.start()
        session = gateway.create("bg python3 -m http.server 0 --bind 127.0.0.1\nbg sleep 4000", cwd=work)
        gateway.until_rest(session)
        running = [one["id"] for one in tasks_of(gateway, session)]
        gateway.kill9()
        assert hook.received == [], "the home channel is not told of turns"
        gateway.arguments = ("24",)
        gateway.start()
        told = until(lambda: next((body for _, body in hook.received if "reset" in body["type"]), None), "it is told")
        assert told["data"]["text"] == (
            "was reset, since the daily hour has passed (at_hour = 6); kept running (on_live_process = hand_over): "
            "python3 -m http.server 0 --bind 127.0.0.1, sleep 4000"
        )
        assert (told["data"]["title"], told["data"]["link"]) == (gateway.session(session)["title"], f"/s/{session}")
        assert [task(gateway, id)["state"] for id in running] == ["running", "running"]
        assert gateway.get(f"/v1/sessions/{session}/context")["chapter"] == 2


def test_another_version_of_the_gateway_is_reported_in_the_home_channel(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    with listening() as (hook, port), GatewayProcess(home) as gateway:
        (home / "config.toml").write_text(HOME_CHANNEL.format(port=port))
        gateway.start()
        gateway.kill9()
        gateway.start()
        gateway.kill9()
        with closing(sqlite3.connect(home / "holdfast.db")) as db, db:  # as an earlier version left it
            db.execute("UPDATE nodes SET version = '0.0.9'")
        gateway.start()
        told = until(lambda: hook.received or None, "it is told")
        assert [(body["type"], body["data"]["text"]) for _, body in told] == [
            ("notice.upgrade", f"runs in version {holdfast.__version__} now; before it was 0.0.9")
        ]


def kills(directory: Path, count: int, seed: int) -> None:
    """Sessions end while the gateway is killed at random moments; each end is told, and each under one id."""
    choose = random.Random(seed)
    with listening() as (hook, port), GatewayProcess(new_home(directory, port)) as gateway:
        gateway.start()
        expected = set()
        for number in range(count):
            text = f"say number {number}"
            gateway.create(text, key=f"kill-{seed}-{number:06}")
            expected.add(text)
            threading.Event().wait(choose.uniform(0, 0.3))
            gateway.kill9()
            gateway.start()
        until(lambda: expected <= hook.texts() | collapsed(gateway) or None, "every end was told")
        ids: dict[str, set[str]] = {}
        for id, body in hook.received:
            ids.setdefault(body["data"]["matter"], set()).add(id)
        assert all(len(found) == 1 for found in ids.values()), ids


def collapsed(gateway: GatewayProcess) -> set[str]:
    """What one message told instead of many, where they had waited for long: on a slow machine."""
    log = gateway.get("/v1/notify/log", limit=1000)["deliveries"]
    return {one["title"] for one in log if one["reason"].startswith("one notice about")}


def test_promise_5_kill_9_between_the_end_of_a_turn_and_its_notice(tmp_path: Path) -> None:
    kills(tmp_path, KILLS, new_seed())


@pytest.mark.proof
def test_promise_5_kill_9_between_the_end_of_a_turn_and_its_notice_many_times(tmp_path: Path) -> None:
    kills(tmp_path, MANY_KILLS, new_seed())
