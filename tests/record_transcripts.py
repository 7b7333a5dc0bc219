"""Record the logs of tests/golden/transcript anew, from real conversations with the demo agent.

    python -m tests.record_transcripts [NAME …]

What a client receives of each conversation, records and deltas in their order, is written to `NAME.json` with ids,
times and paths made the same for everybody. `pytest tests/domain/test_transcript.py --regenerate` then writes the
items that are expected of it, to be read as a diff.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.gateway import GatewayProcess, until

GOLDEN = Path(__file__).parent / "golden" / "transcript"
CONFIG = """
[profiles.careful]
model = "demo"
[profiles.careful.tools]
"write" = "ask"
"""
Json = dict[str, Any]


class Conversation:
    """One session, and everything that a client which follows it receives, over crashes too."""

    def __init__(self, gateway: GatewayProcess, cwd: Path, profile: str = "demo") -> None:
        self.gateway = gateway
        body = {"cwd": str(cwd), "profile": profile, "title": "A conversation"}
        self.id = str(gateway.command("POST", "/v1/sessions", body)["session"])
        self.input: list[Json] = []
        self._follow()

    def _follow(self) -> None:
        self._thread = threading.Thread(target=self._read, args=(self.gateway.url, self.gateway.token), daemon=True)
        self._thread.start()

    def _read(self, url: str, token: str) -> None:
        headers = {"authorization": f"Bearer {token}", "accept": "text/event-stream"}
        try:
            with httpx.stream(
                "GET",
                f"{url}/v1/sessions/{self.id}/events",
                params={"after": self.version},
                headers=headers,
                timeout=None,
            ) as answer:
                for line in answer.iter_lines():
                    found = json.loads(line[5:]) if line.startswith("data:") else {}
                    if "event" in found or "offset" in found:
                        self.input.append(found)
        except httpx.HTTPError:
            return  # the gateway was killed or has ended

    @property
    def records(self) -> list[Json]:
        return [one for one in self.input if "event" in one]

    @property
    def version(self) -> int:
        return int(self.records[-1]["version"]) if self.records else 0

    def command(self, method: str, path: str, body: Json | None = None) -> Json:
        return self.gateway.command(method, f"/v1/sessions/{self.id}{path}", body)

    def say(self, text: str, mode: str = "queue") -> str:
        return str(self.command("POST", "/messages", {"text": text, "mode": mode})["input"])

    def answer(self, answer: str, note: str = "") -> None:
        wait = self.until("WaitOpened")["event"]["wait"]
        self.gateway.command("POST", "/v1/answers", {"wait": wait, "answer": answer, "note": note})
        self.until("WaitAnswered")

    def until(self, kind: str, count: int = 1) -> Json:
        """The record of the last event of this kind that came, once there are so many."""
        found = until(
            lambda: seen if len(seen := [r for r in self.records if r["event"]["kind"] == kind]) >= count else None,
            f"{count} {kind}",
        )
        return dict(found[-1])

    def until_text(self, pieces: int = 1) -> None:
        """Until so many pieces of an answer came that is being streamed."""
        before = len(self.input)
        until(lambda: sum("offset" in one for one in self.input[before:]) >= pieces, "text")

    def rest(self) -> None:
        self.gateway.until_state(self.id, "idle")
        version = int(self.gateway.session(self.id)["version"])
        until(lambda: self.version >= version, "all of it came")

    def restart(self, *, kill: bool) -> None:
        """End the gateway, with or without a warning, and start it again."""
        if kill:
            self.gateway.kill9()
        else:
            self.gateway.terminate()
        self._thread.join()
        self.gateway.start()
        self._follow()


def plain_turn(talk: Conversation) -> None:
    talk.say("say Hello. The file says:\nread notes.txt")
    talk.rest()


def commands(talk: Conversation) -> None:
    talk.say("sh echo fine\nsh echo no >&2; exit 3\nbg sleep 300")
    talk.rest()
    talk.say("sh sleep 300")
    talk.until("ToolCallStarted", 4)
    talk.command("POST", "/stop", {})
    talk.rest()


def questions(talk: Conversation) -> None:
    talk.say('call question {"text": "Which colour?", "choices": ["red", "blue"]}\nwrite a.txt one')
    talk.answer("blue")
    talk.until("WaitOpened", 2)
    talk.answer("allow")
    talk.rest()
    talk.say("write b.txt two")
    talk.until("WaitOpened", 3)
    talk.answer("deny", "not there")
    talk.rest()


def queue(talk: Conversation) -> None:
    talk.say("slow 4 a long answer that gives everybody time to change their mind\nsay done")
    talk.until_text()
    first, second, third = talk.say("say first"), talk.say("say second"), talk.say("say third")
    talk.command("PATCH", f"/queue/{first}", {"text": "say first, reworded"})
    talk.command("PATCH", f"/queue/{third}", {"place": 1})
    talk.command("DELETE", f"/queue/{second}")
    talk.say("say this joins", "steer")
    talk.rest()
    talk.say("slow 30 this is interrupted")
    talk.until_text()
    talk.say("say instead", "interrupt")
    talk.rest()


def reset(talk: Conversation) -> None:
    talk.say("say one\nbg sleep 300")
    talk.rest()
    talk.command("POST", "/reset", {"running": "keep"})
    talk.say("say two")
    talk.rest()
    talk.command("POST", "/reset", {"running": "stop", "note": True})
    talk.until("ChapterOpened", 2)
    talk.rest()
    talk.command("POST", "/reset/undo", {})
    talk.say("say three")
    talk.rest()
    talk.command("POST", "/undo", {})
    talk.until("TurnUndone")


def compaction(talk: Conversation) -> None:
    talk.say("say some words")
    talk.rest()
    talk.say("fill 90")
    talk.rest()
    talk.say("summary fail")
    talk.rest()
    talk.command("POST", "/compact", {"instructions": ""})
    talk.until("SummaryFailed")
    talk.say("summary ok")
    talk.rest()
    talk.command("POST", "/compact", {"instructions": "keep the numbers"})
    talk.until("SummaryWritten")
    talk.rest()


def task_note(talk: Conversation) -> None:
    talk.say('call terminal {"command": "sleep 0.5; echo built", "background": true, "notify": true}\nsay it runs')
    talk.until("TurnFinished", 2)
    talk.rest()


def crash(talk: Conversation) -> None:
    talk.say("slow 6 words that are cut by a crash and said again\nsay and on")
    talk.until_text(5)
    talk.restart(kill=True)
    talk.rest()
    talk.say("sh sleep 2; echo survived")
    talk.until("ToolCallStarted")
    talk.restart(kill=True)
    talk.rest()


def failed_call(talk: Conversation) -> None:
    talk.say("slow 1 half of an answer\nfail")
    talk.rest()
    talk.command("POST", "/dismiss", {})
    talk.until("FailureDismissed")


def everything(talk: Conversation) -> None:
    """One conversation with what the others have, and what people do to a session."""
    talk.command("PATCH", "", {"title": "Everything"})
    talk.command("POST", "/pin", {"pinned": True})
    talk.command("POST", "/reset/policy", {"policy": {"mode": "idle", "idle_minutes": 600}})
    talk.say('say Let us begin.\ncall question {"text": "Which one?", "choices": ["this", "that"]}\nwrite c.txt three')
    talk.answer("that")
    talk.until("WaitOpened", 2)
    talk.answer("deny", "not now")
    talk.rest()
    talk.command("POST", "/agent", {"profile": "demo"})
    talk.say("slow 5 this takes a while\nsh exit 3\nsay done")
    talk.until_text()
    withdrawn, changed = talk.say("say never"), talk.say("say something")
    talk.command("DELETE", f"/queue/{withdrawn}")
    talk.command("PATCH", f"/queue/{changed}", {"text": "say something else"})
    talk.say("say by the way", "steer")
    talk.command("POST", "/detach", {})
    talk.rest()
    talk.say("slow 8 words that a shutdown cuts, and a crash as well")
    talk.until_text(4)
    talk.restart(kill=False)
    talk.until_text(4)
    talk.restart(kill=True)
    talk.rest()
    talk.say('call terminal {"command": "sleep 0.5; echo built", "background": true, "notify": true}')
    talk.until("TurnFinished", 6)
    talk.rest()
    talk.say("slow 1 half of an answer\nfail")
    talk.rest()
    talk.command("POST", "/dismiss", {})
    talk.say("sh sleep 300")
    talk.until("ToolCallStarted", 3)
    talk.command("POST", "/stop", {})
    talk.rest()
    talk.command("POST", "/compact", {"instructions": "keep the numbers"})
    talk.until("SummaryWritten")
    talk.rest()
    talk.say("bg sleep 300")
    talk.rest()
    talk.command("POST", "/reset", {"running": "stop"})
    talk.until("ChapterOpened")
    talk.command("POST", "/reset/undo", {})
    talk.say("say goodbye")
    talk.rest()
    talk.command("POST", "/undo", {})
    talk.command("POST", "/archive", {"running": "stop"})
    talk.command("POST", "/restore", {})
    talk.until("SessionRestored")


CONVERSATIONS: dict[str, tuple[str, Callable[[Conversation], None]]] = {
    "plain-turn": ("demo", plain_turn),
    "commands": ("demo", commands),
    "questions": ("careful", questions),
    "queue": ("demo", queue),
    "reset": ("demo", reset),
    "compaction": ("demo", compaction),
    "task-note": ("demo", task_note),
    "crash": ("demo", crash),
    "failed-call": ("demo", failed_call),
    "everything": ("careful", everything),
}


def normalized(text: str, directory: Path) -> str:
    """The same log with the ids, process ids and paths that everybody would get."""
    text = text.replace(str(directory), "/home/me")
    ids: dict[str, str] = {}
    for found in re.findall(r'(?<=")(?:[0-9a-f]{16}|[0-9a-f]{11}[0-9a-z]{15})(?=[".])', text):
        ids.setdefault(found, f"{len(ids) + 1:08x}00000000")
    for found, number in ids.items():
        text = text.replace(found, number).replace(found[:8], number[:8])
    return re.sub(r'(pid"?:?) \d+', r"\1 4711", text)


def main() -> None:
    GOLDEN.mkdir(exist_ok=True)
    wanted = sys.argv[1:] or [*CONVERSATIONS]
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        work = directory / "project"
        work.mkdir()
        (work / "notes.txt").write_text("the notes\n")
        home = directory / "home"
        home.mkdir()
        (home / "config.toml").write_text(CONFIG)
        with GatewayProcess(home).start() as gateway:
            for name in wanted:
                profile, script = CONVERSATIONS[name]
                talk = Conversation(gateway, work, profile)
                script(talk)
                zero = talk.records[0]["at"]
                for one in talk.records:
                    one["seq"], shift = one["version"], 1_750_000_000_000 - zero
                    one["at"] += shift
                text = json.dumps({"input": talk.input}, indent=1, ensure_ascii=False)
                (GOLDEN / f"{name}.json").write_text(normalized(text, directory) + "\n")
                print(name, len(talk.records), "records", len(talk.input) - len(talk.records), "deltas")


if __name__ == "__main__":
    main()
