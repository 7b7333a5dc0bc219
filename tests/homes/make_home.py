"""Makes a home with everything in it that a user could have, and what that version showed of it.

    python -m tests.homes.make_home 0.1

writes `0.1.tar.xz` and `0.1.json` beside this file. They are made once, by the version they are named after; later
versions must be able to open that home and show the same.
"""

from __future__ import annotations

import json
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from tests.e2e.board import create_card, detail, tell_card
from tests.e2e.gateway import GatewayProcess, Json, until
from tests.homes.shown import shown

HERE = Path(__file__).parent
CONFIG = """\
[gateway]
port = 0

[profiles.careful]
model = "demo"
[profiles.careful.tools]
terminal = "ask"
"""
LEFT_OUT = ("run", "logs", "search.db")


def make(gateway: GatewayProcess, work: Path) -> None:
    conversations(gateway, work)
    waits(gateway, work)
    tasks(gateway, work)
    cards(gateway)
    open_turn(gateway, work)


def conversations(gateway: GatewayProcess, work: Path) -> None:
    (work / "notes.txt").write_text("forty-two\n")
    first = gateway.create("say hello", cwd=work)
    for text in ("read notes.txt", "sh echo out; exit 3", "write made.txt one", "recall forty", "fail", "echo"):
        gateway.send(first, text)
    gateway.until_rest(first)
    gateway.command("PATCH", f"/v1/sessions/{first}", {"title": "The first one"})
    fork = str(gateway.command("POST", f"/v1/sessions/{first}/fork", {"title": "A fork"})["session"])
    gateway.send(fork, "say on my own")
    gateway.until_rest(fork)
    gateway.command("POST", f"/v1/sessions/{fork}/archive", {})
    chapters(gateway, work)
    gone = gateway.create("say to be deleted", cwd=work)
    gateway.until_rest(gone)
    gateway.command("DELETE", f"/v1/sessions/{gone}", {})


def chapters(gateway: GatewayProcess, work: Path) -> None:
    session = gateway.create("say before the summary", cwd=work)
    for _ in range(3):
        gateway.send(session, "fill 300")
    gateway.until_rest(session)
    gateway.command("POST", f"/v1/sessions/{session}/compact", {})
    gateway.until_event(session, "SummaryWritten")
    gateway.send(session, "say after the summary")
    gateway.until_rest(session)
    gateway.command("POST", f"/v1/sessions/{session}/reset", {"note": True})
    gateway.send(session, "say in a new chapter")
    gateway.until_rest(session)
    gateway.command("POST", f"/v1/sessions/{session}/reset/policy", {"policy": {"mode": "idle", "idle_minutes": 600}})


def waits(gateway: GatewayProcess, work: Path) -> None:
    asked = []
    for text in ("sh echo allowed", "sh echo denied", "sh echo open"):
        body = {"text": text, "cwd": str(work), "profile": "careful"}
        session = str(gateway.command("POST", "/v1/sessions", body)["session"])
        gateway.until_event(session, "WaitOpened")
        asked.append(session)
    for session, answer in zip(asked, ("allow", "deny"), strict=False):
        [wait] = [one for one in gateway.get("/v1/inbox")["waits"] if one["session"] == session]
        gateway.command("POST", "/v1/answers", {"wait": wait["id"], "answer": answer})
        gateway.until_rest(session)
    delegating = gateway.create("delegate say done by another", cwd=work)
    gateway.until_rest(delegating)
    until(lambda: "done by another" in json.dumps(gateway.events(delegating)), "it was told")
    gateway.until_rest(delegating)


def tasks(gateway: GatewayProcess, work: Path) -> None:
    def start(command: str) -> str:
        return str(gateway.command("POST", "/v1/tasks", {"shell": command, "cwd": str(work)})["task"])

    def over(task: str) -> None:
        until(lambda: gateway.get(f"/v1/tasks/{task}")["state"] != "running", "it is over")

    done, failed, stopped, pruned = start("echo fine"), start("echo bad >&2; exit 4"), start("sleep 600"), start("true")
    for task in (done, failed, pruned):
        over(task)
    gateway.command("POST", f"/v1/tasks/{stopped}/stop", {})
    over(stopped)
    for task in (done, failed, stopped):
        gateway.command("POST", f"/v1/tasks/{task}/pin", {"pinned": True})
    gateway.command("POST", "/v1/tasks/prune", {"confirm": True, "keep_last": 0})
    gateway.command("POST", f"/v1/tasks/{failed}/pin", {"pinned": False})


def cards(gateway: GatewayProcess) -> None:
    def status(card: str, wanted: str) -> None:
        until(lambda: detail(gateway, card)["card"]["status"] == wanted, f"it is {wanted}")

    gateway.command("POST", "/v1/boards", {"board": "web", "title": "Web"})
    done = create_card(gateway, "write report.txt all\ncomplete wrote the report", profile="demo", title="A report")
    blocked = create_card(gateway, "block which language?", profile="demo", title="A question", board="web")
    status(done, "done")
    status(blocked, "blocked")
    tell_card(gateway, blocked, "unblock", {"text": "count\nblock still open"})
    until(lambda: len(detail(gateway, blocked)["runs"]) == 2, "it runs again")
    status(blocked, "blocked")
    tell_card(gateway, blocked, "comments", {"text": "Take English."})
    waiting = create_card(gateway, "complete it", profile="demo", title="Waits", parents=[blocked])
    status(waiting, "todo")
    archived = create_card(gateway, "complete it", profile="demo", title="Put away")
    status(archived, "done")
    tell_card(gateway, archived, "archive")


def open_turn(gateway: GatewayProcess, work: Path) -> None:
    """The gateway is killed while an agent speaks: the next one goes on there."""
    session = gateway.create("slow 2 one two three four", cwd=work)
    gateway.until_event(session, "ModelRequested")
    time.sleep(1)
    gateway.send(session, "say what came after")
    gateway.kill9()


def main(name: str) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as context:
        home, work = Path(context, "home"), Path(context, "work")
        home.mkdir(mode=0o700)
        work.mkdir()
        (home / "config.toml").write_text(CONFIG)
        with GatewayProcess(home) as gateway:
            make(gateway.start(), work)
        with tarfile.open(HERE / f"{name}.tar.xz", "w:xz") as archive:
            archive.add(home, "home", filter=_kept)
        with GatewayProcess(home) as gateway:
            found: Json = shown(gateway.start())
        (HERE / f"{name}.json").write_text(json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


def _kept(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    parts = Path(entry.name).parts
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return None if len(parts) > 1 and parts[1].startswith(LEFT_OUT) else entry


if __name__ == "__main__":
    main(sys.argv[1])
