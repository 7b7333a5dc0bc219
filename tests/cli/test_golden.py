"""The shapes of --json, one file each in tests/golden/cli: ids, times and places normalised.

    pytest tests/cli/test_golden.py --regenerate

writes them anew; then read the diff. A new key is fine, a changed or vanished one breaks somebody's script.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from holdfast import __version__
from tests.cli.commandline import CommandLine, new_home
from tests.e2e.browser import Browser
from tests.e2e.gateway import GatewayProcess, until

GOLDEN = Path(__file__).parent.parent / "golden" / "cli"
TIMES = {"at", "created_at", "updated_at", "started_at", "finished_at", "duration_ms", "uptime_ms", "away_ms"}
TOKENS = {"input_tokens", "output_tokens", "fixed_tokens"}
"""They count the characters of paths, too."""
TIMES |= {"expires_at", "seen_at", "opened_at", "age_ms", "moved_at"}
WORDS = {"detail", "reason", "message", "content", "rebuilt", "evidence", "why"}
WORDS |= {"activity", "activity_detail", "activity_evidence"}
"""Sentences of other rooms: they are for people, and may be worded better at any time."""
PLACES = {"pid": 1, "stopped": 1, "bytes": 1, "cpu": 1, "memory": 1, "quiet_looks": 1, "cwd": "/cwd"}


def _story(cli: CommandLine, gateway: GatewayProcess) -> dict[str, Any]:
    cwd = str(gateway.home.parent)
    told: dict[str, Any] = {}
    told["run"] = cli.json("run", "say hello", "--cwd", cwd)
    first = told["run"]["session"]
    told["run-failed"] = _lines(cli("run", "fail", "--cwd", cwd, "--json").stdout)[0]
    told["run-detach"] = cli.json("run", "slow 300 a b", "--cwd", cwd, "--detach")
    busy = told["run-detach"]["session"]
    gateway.until_event(busy, "ModelRequested")
    told["send"] = cli.json("send", busy, "say later")
    told["sessions-show"] = cli.json("sessions", "show", busy)
    told["why"] = cli.json("why")
    told["why"]["sentences"] = [sentence | {"text": "WORDS"} for sentence in told["why"]["sentences"]]
    told["status"] = cli.json("status")
    told["stop"] = cli.json("stop", busy)
    gateway.until_rest(busy)
    told["send-wait"] = cli.json("send", first, "echo", "--wait")
    told["sessions-log"] = _lines(cli.ok("sessions", "log", first, "--json"))
    told["sessions-search"] = until(lambda: _found(cli, "later"), "it is found")
    told["sessions-rename"] = cli.json("sessions", "rename", first, "another title")
    told["sessions-archive"] = cli.json("sessions", "archive", first)
    told["sessions-restore"] = cli.json("sessions", "restore", first)
    told["sessions-list"] = cli.json("sessions", "--limit", "3")
    told["sessions-export"] = cli.json("sessions", "export", first, "--format", "jsonl", "-o", f"{cwd}/out.jsonl")
    told["sessions-export-here"] = cli.json("sessions", "export", busy)
    told["sessions-delete"] = cli.json("sessions", "delete", first, "--yes")
    told["open"] = cli.json("open", busy, "--print")
    code = told["open"]["url"].partition("#code=")[2]
    told["open"]["url"] = told["open"]["url"].replace(code, "CODE")
    device = Browser(gateway, name="phone")
    told["devices"] = cli.json("devices")
    told["devices-revoke"] = cli.json("devices", "revoke", device.id)
    told["config-path"] = cli.json("config", "path")
    told["config-check"] = cli.json("config", "check")
    told["config-show"] = cli.json("config", "show")
    told["logs"] = _lines(cli.ok("logs", "--json", "--lines", "1"))
    told["doctor"] = cli.json("doctor")
    told["shutdown"] = cli.json("shutdown")
    gateway.wait_for_end()
    told["doctor-rebuild"] = cli.json("doctor", "--rebuild")
    return {name: _normal(answer, cwd) for name, answer in told.items()}


def _story_of_tasks(cli: CommandLine, gateway: GatewayProcess) -> dict[str, Any]:
    cwd = str(gateway.home.parent)
    told: dict[str, Any] = {}
    told["start"] = json.loads(cli.ok("start", "--name", "greeter", "--cwd", cwd, "--stdin", "--json", "--", "cat"))
    task = told["start"]["task"]
    told["tasks"] = cli.json("tasks")
    told["tasks-why"] = cli.json("why", task)
    told["tasks-why"]["sentences"] = [sentence | {"text": "WORDS"} for sentence in told["tasks-why"]["sentences"]]
    told["tasks-write"] = cli.json("tasks", "write", task, "hello", "--close")
    told["tasks-wait"] = cli.json("tasks", "wait", task)
    told["tasks-log"] = _lines(cli.ok("tasks", "log", task, "--json"))
    told["tasks-pin"] = cli.json("tasks", "pin", task)
    told["tasks-unpin"] = cli.json("tasks", "unpin", task)
    told["tasks-show"] = cli.json("tasks", "show", task)
    told["tasks-history"] = cli.json("tasks", "history", "--limit", "1")
    told["tasks-search"] = until(lambda: _found_in_output(cli, "hello"), "it is found")
    for verb in ("stop", "kill"):
        other = json.loads(cli.ok("start", "--cwd", cwd, "--json", "--", "sleep", "300"))["task"]
        told[f"tasks-{verb}"] = cli.json("tasks", verb, other)
    told["tasks-prune"] = cli.json("tasks", "prune", "--state", "done", "--older-than", "0s")
    told["tasks-pruned"] = cli.json("tasks", "prune", "--state", "done", "--older-than", "0s", "--yes")
    for answer in told.values():
        if isinstance(answer, dict) and "seq" in answer:
            answer["seq"] = 1  # several write at once here
    return {name: _normal(answer, cwd) for name, answer in told.items()}


def _story_of_chapters(cli: CommandLine, gateway: GatewayProcess) -> dict[str, Any]:
    cwd = str(gateway.home.parent)
    told: dict[str, Any] = {}
    session = cli.json("run", "bg sleep 300", "--cwd", cwd)["session"]
    told["sessions-policy"] = cli.json("sessions", "policy", session)
    told["sessions-policy-set"] = cli.json("sessions", "policy", session, "--mode", "none", "--idle-minutes", "5")
    told["sessions-reset"] = cli.json("sessions", "reset", session, "--running", "keep")
    told["why-verbose"] = cli.json("why", session, "--verbose")
    told["why-verbose"]["sentences"] = []
    running = [told["sessions-policy"]["running"], told["why-verbose"]["reset"]["running"]]
    for one in [*running[0], *running[1], *told["why-verbose"]["opened"]["kept"]]:
        one["evidence"] = "WORDS"  # there may be none so early
    told["tasks-stale"] = until(lambda: _stale(cli), "it was measured")
    told["tasks-stale-stop"] = cli.json("tasks", "stale", "--stop", "--yes")
    told["sessions-undo-reset"] = cli.json("sessions", "undo-reset", session)
    told["sessions-compact"] = cli.json("sessions", "compact", session)
    gateway.until_event(session, "SummaryWritten")
    gateway.until_rest(session)
    told["sessions-context"] = cli.json("sessions", "context", session)
    sizes = ("characters", "tokens", "used")  # of instructions and tools, which are worded better at any time
    told["sessions-context"] |= dict.fromkeys(sizes, 1) | {"instructions": "WORDS", "messages": [], "tools": []}
    for answer in told.values():
        if "seq" in answer:
            answer["seq"] = 1  # several write at once here
    return {name: _normal(answer, cwd) for name, answer in told.items()}


def _stale(cli: CommandLine) -> Any:
    found = cli.json("tasks", "stale")
    return found if found["tasks"] else None


def _story_of_cards(cli: CommandLine, gateway: GatewayProcess) -> dict[str, Any]:
    cwd = str(gateway.home.parent)
    told: dict[str, Any] = {}
    told["board-create"] = cli.json("board", "create", "web", "--title", "The site")
    told["board-pause"] = cli.json("board", "pause", "web")
    told["board-list"] = cli.json("board", "list")
    told["board-resume"] = cli.json("board", "resume", "web")
    told["board-archive"] = cli.json("board", "archive", "web")
    told["card-add"] = cli.json("card", "add", "asks", "--body", "block which?", "--profile", "demo")
    card = told["card-add"]["card"]
    until(lambda: cli.json("card", "show", card)["card"]["status"] == "blocked", "it is blocked")
    gateway.until_rest(cli.json("card", "show", card)["card"]["session"])
    told["card-comment"] = cli.json("card", "comment", card, "that one")
    told["card-edit"] = cli.json("card", "edit", card, "--priority", "3")
    told["card-show"] = cli.json("card", "show", card)
    told["card-runs"] = cli.json("card", "runs", card)
    told["card-context"] = cli.json("card", "context", card)
    told["card-why"] = cli.json("card", "why", card)
    told["card-log"] = _lines(cli.ok("card", "log", card, "--json"))[:1]
    other = cli.json("card", "add", "waits", "--triage")["card"]
    told["card-link"] = cli.json("card", "link", card, other)
    told["card-unlink"] = cli.json("card", "unlink", card, other)
    told["card-diff"] = cli.json("card", "diff", card)
    told["board"] = cli.json("board")
    told["card-list"] = cli.json("card", "list", "--status", "triage")
    told["card-promote"] = cli.json("card", "promote", other, "--to", "review")
    told["card-complete"] = cli.json("card", "complete", other)
    told["card-archive"] = cli.json("card", "archive", card)
    for name, answer in told.items():
        if "seq" in answer:
            answer["seq"] = 1
        if name in ("card-why", "card-context"):
            told[name] = answer | {key: "WORDS" for key in ("sentences", "note", "text") if key in answer}
    known = {card: "CARD", other: "OTHER"}
    return {name: _of_cards(_normal(answer, cwd), known) for name, answer in told.items()}


def _of_cards(value: Any, known: dict[str, str]) -> Any:
    text = json.dumps(value)
    for card, name in known.items():
        text = text.replace(card, name)
    return json.loads(text)


def _found_in_output(cli: CommandLine, text: str) -> Any:
    found = cli.json("tasks", "search", text)
    return found if found["hits"] else None


def _lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def _found(cli: CommandLine, text: str) -> Any:
    found = cli.json("sessions", "search", text)
    return found if len(found["hits"]) == 2 else None


def _normal(value: Any, cwd: str, key: str = "") -> Any:
    """The same for every run: what differs is replaced by what kind of thing it is."""
    if isinstance(value, dict):
        return {name: _normal(item, cwd, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_normal(item, cwd, key) for item in value]
    if key in TIMES and value is not None:
        return "TIME" if isinstance(value, str) else 1
    if key in TOKENS and value:
        return 1
    if key in WORDS and (value or key.startswith("activity")):
        return "WORDS"
    if key in PLACES:
        return PLACES[key]
    return _normal_text(value, cwd) if isinstance(value, str) else value


def _normal_text(text: str, cwd: str) -> str:
    text = text.replace(cwd, "/cwd").replace(__version__, "VERSION")
    for pattern, name in (
        (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
        (r"\d{13}-[0-9a-f]{16}", "CURSOR"),
        (r"\b[0-9a-z]{26}\b", "INPUT"),
        (r"\b[0-9a-f]{16}\b", "SESSION"),
    ):
        text = re.sub(pattern, name, text)
    return text


def test_the_shapes_are_the_golden_ones(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """One test, because it is one story."""
    with GatewayProcess(new_home(tmp_path / "home")) as gateway:
        gateway.start()
        answers = _story(CommandLine(gateway.home), gateway)
    with GatewayProcess(new_home(tmp_path / "other")) as gateway:
        gateway.start()
        answers |= _story_of_tasks(CommandLine(gateway.home), gateway)
    with GatewayProcess(new_home(tmp_path / "third")) as gateway:
        gateway.start()
        answers |= _story_of_chapters(CommandLine(gateway.home), gateway)
    with GatewayProcess(new_home(tmp_path / "fourth")) as gateway:
        gateway.start()
        answers |= _story_of_cards(CommandLine(gateway.home), gateway)
    if request.config.getoption("--regenerate"):
        for name, answer in answers.items():
            text = json.dumps(answer, indent=2, ensure_ascii=False, sort_keys=True)
            (GOLDEN / f"{name}.json").write_text(text + "\n")
    golden = {path.stem: json.loads(path.read_text()) for path in GOLDEN.glob("*.json")}
    assert sorted(golden) == sorted(answers)
    for name, expected in golden.items():
        assert answers[name] == expected, name


def test_the_keys_come_sorted(cli: CommandLine) -> None:
    line = cli.ok("run", "say x", "--json")
    assert line.count("\n") == 1
    assert list(json.loads(line)) == ["model", "outcome", "profile", "reason", "session", "text", "turn", "version"]
