"""Chapters from the command line: reset and undo, what runs is asked about, when and why, stale, compact."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.commandline import CommandLine, Terminal, new_home
from tests.e2e.gateway import GatewayProcess, of_kind, until

QUICK = {"lifecycle.reset_check": 0.2, "minute_ms": 1_000}
"""A minute of `idle_minutes` is a second here."""
BECAUSE = {"archive": "its session was archived", "delete": "its session was deleted"}
BUSY = "while :; do echo x; sleep 0.1; done"
CONFIG = """
[session_reset]
idle_minutes = 2
max_postpone = "3s"
[compaction]
threshold = 100000
[profiles.careful]
model = "demo"
[profiles.careful.tools]
"*" = "allow"
[profiles.careful.session_reset]
at_hour = 3
"""


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    """A gateway whose clock looks often; what it started is ended with it."""
    home = new_home(tmp_path / "home")
    with (home / "config.toml").open("a") as file:
        file.write(CONFIG)
    with GatewayProcess(home, timings=QUICK) as gateway:
        yield gateway.start()
        for task in gateway.get("/v1/tasks", state="running", all="true")["tasks"]:
            gateway.request("POST", f"/v1/tasks/{task['id']}/stop", json={"force": True})  # it may have ended just now
            assert gateway.until_ended(task["id"])["state"] != "running"


@pytest.fixture
def cli(gateway: GatewayProcess) -> CommandLine:
    return CommandLine(gateway.home)


def resting(gateway: GatewayProcess, text: str, cwd: Path) -> str:
    session = gateway.create(text, cwd=cwd)
    gateway.until_rest(session)
    return session


def only_task(gateway: GatewayProcess) -> str:
    (task,) = gateway.get("/v1/tasks", state="running")["tasks"]
    return str(task["id"])


# --- a chapter and back -----------------------------------------------------------------------------


def test_a_reset_and_back(cli: CommandLine, gateway: GatewayProcess, tmp_path: Path) -> None:
    session = resting(gateway, "say before", tmp_path)
    done = cli("sessions", "reset", session[:8], "--note")
    assert done.returncode == 0
    assert done.stdout.startswith(f"{session}: chapter 2 begins\n  Note of the agent: 1 user message so far")
    assert done.stderr == f"undo: holdfast sessions undo-reset {session[:8]}\n"
    assert "chapter 2; " in cli.ok("sessions", "context", session)
    assert re.search(
        r"chapter    2, opened (just now|\d+ s ago): cli asked for it", cli.ok("sessions", "show", session)
    )
    gateway.send(session, "count")
    answers = of_kind(gateway.until_event(session, "ModelResponded", count=2), "ModelResponded")
    assert answers[-1]["text"] == "I have seen 1 user message; the first was: count"
    gateway.until_rest(session)
    assert cli.ok("sessions", "undo-reset", session).startswith(f"{session}: the model sees the previous chapter again")
    log = cli.ok("sessions", "log", session)
    assert "chapter   2 begins: cli asked for it" in log
    assert f"undo: holdfast sessions undo-reset {session[:8]}" in log
    assert "chapter   Chapter 2 was undone by cli: the model sees the chapter before it again." in log
    exported = cli.ok("sessions", "export", session)
    assert "\n---\n\n*Chapter 2 begins, " in exported
    assert " Chapter 2 was undone by cli: the model sees" in exported
    again = cli("sessions", "undo-reset", session)
    assert (again.returncode, again.stderr) == (5, "error: There is no reset to undo.\n")


def test_what_is_at_work_is_refused_and_nobody_is_asked(
    cli: CommandLine, gateway: GatewayProcess, tmp_path: Path
) -> None:
    session = gateway.create(f"bg {BUSY}\nslow 300 a b", cwd=tmp_path)
    gateway.until_event(session, "ToolCallFinished")
    for verb in ("reset", "archive", "delete"):
        with cli.terminal("sessions", verb, session) as terminal:
            assert terminal.wait() == 5
        assert "The session is running." in terminal.text
        assert f"holdfast stop {session}" in terminal.text
    cli.ok("stop", session)


# --- what still runs --------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["reset", "archive", "delete"])
def test_where_nobody_can_be_asked_it_says_what_runs_and_does_nothing(
    cli: CommandLine, gateway: GatewayProcess, tmp_path: Path, verb: str
) -> None:
    session = resting(gateway, "bg sleep 300", tmp_path)
    task = only_task(gateway)
    version = gateway.session(session)["version"]
    done = cli("sessions", verb, session)
    assert (done.returncode, done.stdout) == (5, "")
    assert f"1 still running in the background: {task[:8]} sleep 300 (" in done.stderr
    assert "hint: Choose what happens to them: --running keep or --running stop." in done.stderr
    if verb != "archive":
        done = cli("sessions", verb, session, "--yes")
        assert done.returncode == 5
        assert "--yes does not choose for you" in done.stderr
    assert gateway.session(session)["version"] == version
    chosen = ("--running", "stop", *(() if verb == "archive" else ("--yes",)))
    cli.ok("sessions", verb, session, *chosen)
    ended = gateway.until_ended(task)
    because = f"a reset of session {session}: a person chose to stop it" if verb == "reset" else BECAUSE[verb]
    assert (ended["state"], ended["ended_by"]) == ("stopped", f"cli ({because})")
    shown = " ".join(cli.ok("tasks", "show", task).split())
    assert f"at the request of cli ({because})" in shown


def asked(terminal: Terminal, task: str) -> None:
    terminal.until("Still running: k keep them running, s stop them, c cancel")
    assert task[:8] in terminal.text
    assert "sleep 300" in terminal.text


def test_on_a_terminal_it_asks(cli: CommandLine, gateway: GatewayProcess, tmp_path: Path) -> None:
    session = resting(gateway, "bg sleep 300", tmp_path)
    task = only_task(gateway)
    with cli.terminal("sessions", "archive", session, columns=80) as terminal:
        asked(terminal, task)
        terminal.type("c\n")
        assert terminal.wait() == 1
    assert "error: Cancelled; nothing was changed." in terminal.text
    assert not gateway.session(session)["archived"]
    with cli.terminal("sessions", "reset", session, "--yes") as terminal:
        assert terminal.wait() == 5, "nobody is asked with --yes"
    assert "--yes does not choose for you" in terminal.text
    with cli.terminal("sessions", "reset", session, columns=80) as terminal:
        asked(terminal, task)
        terminal.type("perhaps\n")
        terminal.until("k, s or c?")
        terminal.type("k\n")
        assert terminal.wait() == 0
    assert f"Kept: {task[:8]} sleep 300" in terminal.text
    assert gateway.get(f"/v1/tasks/{task}")["lifetime"] == "persist"
    with cli.terminal("sessions", "delete", session) as terminal:
        asked(terminal, task)
        terminal.type("stop\n")
        terminal.until("for good?")
        terminal.type("y\n")
        assert terminal.wait() == 0
    assert gateway.until_ended(task)["state"] == "stopped"


# --- when it is reset by itself ---------------------------------------------------------------------


def rows(text: str) -> dict[str, list[str]]:
    return {line.split()[0]: line.split(None, 2)[1:] for line in text.splitlines() if line.strip()}


def test_the_policy_says_what_holds_and_who_said_so(cli: CommandLine, gateway: GatewayProcess, tmp_path: Path) -> None:
    session = str(gateway.command("POST", "/v1/sessions", {"profile": "careful", "cwd": str(tmp_path)})["session"])
    shown = cli.ok("sessions", "policy", session)
    assert "reset    never automatically (mode = none)" in shown
    found = rows(shown)
    assert found["mode"] == ["none", "the default"]
    assert found["max_postpone"] == ["3s", "[session_reset]"]
    assert found["at_hour"] == ["3", "profile careful"]
    cli.ok("sessions", "policy", session, "--mode", "daily", "--no-notify")
    found = rows(cli.ok("sessions", "policy", session, "--timezone", "Europe/Berlin", "--max-postpone", "0s"))
    assert found["mode"] == ["daily", "this session"]
    assert found["notify"] == ["no", "this session"]
    assert found["timezone"] == ["Europe/Berlin", "this session"]
    assert found["max_postpone"] == ["0s", "this session"]
    policy = cli.json("sessions", "policy", session)["policy"]
    assert policy == {"mode": "daily", "notify": False, "timezone": "Europe/Berlin", "max_postpone": "0s"}
    assert "session   The reset rules of this session were set by cli: reset every day" in cli.ok(
        "sessions", "log", session
    )
    assert rows(cli.ok("sessions", "policy", session, "--clear"))["mode"] == ["none", "the default"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--max-postpone", "soon"), "max_postpone is 'soon'; write a number and a unit, like 30s, 90m, 2h or 7d."),
        (("--timezone", "Mars/Olympus"), "which this machine does not know; write one like Europe/Berlin."),
        (("--mode", "weekly"), "'weekly' is not one of 'none', 'idle', 'daily', 'both'"),
        (("--at-hour", "24"), "24 is not in the range 0<=x<=23"),
    ],
)
def test_a_wrong_policy_names_what_would_be_right(
    cli: CommandLine, gateway: GatewayProcess, given: tuple[str, str], said: str
) -> None:
    done = cli("sessions", "policy", gateway.create(), *given)
    assert done.returncode == 2
    assert said in done.stderr


def test_why_in_full_shows_who_postpones_a_reset_and_what_became_of_it(
    cli: CommandLine, gateway: GatewayProcess, tmp_path: Path
) -> None:
    """Postponed by what works, and not for longer than the rule says."""
    session = resting(gateway, f"bg {BUSY}", tmp_path)
    task = only_task(gateway)
    assert "postponed" not in cli.ok("why", session, "--verbose")
    cli.ok("sessions", "policy", session, "--mode", "idle", "--max-postpone", "1h")
    gateway.until_event(session, "ResetPostponed")
    short = cli.ok("why", session)
    assert "A reset (idle) was due" in short
    full = cli.ok("why", session, "--verbose")
    assert full.startswith("Idle. Turn 1 finished")
    pid = gateway.get(f"/v1/tasks/{task}")["pid"]
    for name, value in (("postponed by", "process"), ("task", task), ("pid", str(pid)), ("command", BUSY)):
        assert f"\n{name:12}  {value}\n" in full, full
    for name in ("due at", "at most until", "checked again", "evidence", "activity", "age"):
        assert f"\n{name} " in full, full
    assert "The idle reset was due at" in cli.ok("sessions", "log", session)
    assert "postponed" in cli.ok("sessions", "policy", session)
    cli.ok("sessions", "policy", session, "--max-postpone", "0s")
    gateway.until_event(session, "ChapterOpened")
    full = cli.ok("why", session, "--verbose")
    assert f"handed over  {task} {BUSY}" in full
    assert "rule         on_live_process = hand_over" in full
    found = cli.json("why", session, "--verbose")
    assert found["opened"]["chapter"] == found["reset"]["chapter"]["chapter"] == 2
    assert found["reset"]["chapter"]["unseen"]
    nobody = cli("why", "--verbose")
    assert (nobody.returncode, "--verbose needs an ID." in nobody.stderr) == (2, True)


# --- stale ------------------------------------------------------------------------------------------


def test_stale_commands_are_listed_with_the_reason_and_ended_when_asked(
    cli: CommandLine, gateway: GatewayProcess, tmp_path: Path
) -> None:
    session = resting(gateway, "bg sleep 300\nbg sleep 301", tmp_path)
    assert cli.ok("tasks", "stale").startswith("Nothing is stale: ")
    cli.ok("sessions", "reset", session, "--running", "keep")
    until(lambda: len(cli.json("tasks", "stale")["tasks"]) == 2, "both were measured")
    done = cli("tasks", "stale", env={"COLUMNS": "60"})
    assert done.stdout.count("\n          idle, and it outlived the chapter that started it\n") == 2
    assert "holdfast tasks stale --stop" in done.stderr
    pinned = next(task for task in cli.json("tasks", "stale")["tasks"] if task["title"] == "sleep 301")["id"]
    assert "idle, and it outlived the chapter that started it" in cli.ok("tasks", "show", pinned)
    nobody = cli("tasks", "stale", "--stop")
    assert (nobody.returncode, "add --yes" in nobody.stderr) == (2, True)
    wrong = cli("tasks", "stale", "--yes")
    assert (wrong.returncode, "--yes needs --stop." in wrong.stderr) == (2, True)
    with cli.terminal("tasks", "stale", "--stop", columns=100) as terminal:
        terminal.until("Stop 2 commands?")
        terminal.type("n\n")
        assert terminal.wait() == 1
    assert "Nothing was stopped." in terminal.text
    with cli.terminal("tasks", "stale", "--stop", columns=100) as terminal:
        terminal.until("Stop 2 commands?")
        cli.ok("tasks", "pin", pinned)  # while the question stands
        terminal.type("y\n")
        assert terminal.wait() == 0
    assert f"{pinned[:8]}: is no longer stale, so it was not stopped" in terminal.text
    assert "stopped after" in terminal.text
    assert gateway.get(f"/v1/tasks/{pinned}")["state"] == "running"
    cli.ok("tasks", "unpin", pinned)
    (ended,) = cli.json("tasks", "stale", "--stop", "--yes")["stopped"]
    assert (ended["id"], ended["state"]) == (pinned, "stopped")


# --- compaction -------------------------------------------------------------------------------------


def test_compact_says_what_came_of_it(cli: CommandLine, gateway: GatewayProcess, tmp_path: Path) -> None:
    session = resting(gateway, "say one", tmp_path)
    gateway.send(session, "say two")
    gateway.until_event(session, "TurnFinished", count=2)
    assert cli.ok("sessions", "compact", session, "keep the names").startswith(f"{session}: summary requested")
    gateway.until_event(session, "SummaryWritten")
    gateway.until_rest(session)
    log = cli.ok("sessions", "log", session)
    assert "compact   A shorter context was requested by cli: keep the names." in log
    assert "compact   demo writes a summary of the turns up to 1: cli asked for it." in log
    assert "compact   A summary replaces the turns up to 1 for the model (" in log
    assert "*A summary replaces the turns up to 1 for the model (" in cli.ok("sessions", "export", session)
    assert "a summary replaces the turns up to 1; " in cli.ok("sessions", "context", session)
    gateway.send(session, "summary fail")
    gateway.until_event(session, "TurnFinished", count=3)
    cli.ok("sessions", "compact", session)
    gateway.until_event(session, "SummaryFailed")
    log = cli.ok("sessions", "log", session)
    assert "No summary (attempt 1): The demo agent wrote no summary because the message asked for that." in log
    assert "It will be tried again" in log


def test_while_it_is_written_the_list_says_so_and_a_second_one_is_refused(
    cli: CommandLine, gateway: GatewayProcess, tmp_path: Path
) -> None:
    session = resting(gateway, "summary hang", tmp_path)
    cli.ok("sessions", "compact", session)
    gateway.until_event(session, "SummaryStarted")
    assert "compacting" in cli.ok("sessions")
    assert "has been summarising its context for" in cli.ok("why", session)
    done = cli("sessions", "compact", session)
    assert (done.returncode, "is being summarised already" in done.stderr) == (5, True)


def test_a_context_without_a_summary_waits_and_is_answered_by_a_number(
    cli: CommandLine, gateway: GatewayProcess, tmp_path: Path
) -> None:
    config = gateway.home / "config.toml"
    small = "threshold = 300\non_failure = 'pause'\nkeep_recent = 0"
    config.write_text(config.read_text().replace("threshold = 100000", small))
    session = resting(gateway, "summary fail", tmp_path)
    gateway.send(session, "fill 500")
    gateway.until_event(session, "SummaryFailed")
    gateway.until_rest(session)
    gateway.send(session, "say more")
    gateway.until_state(session, "waiting")
    (wait,) = cli.json("inbox")["waits"]
    assert wait["purpose"] == "compaction"
    inbox = cli.ok("inbox")
    assert f"holdfast answer {wait['id']} 'try again'\n  holdfast answer {wait['id']} digest\n" in inbox
    assert f"`holdfast answer {wait['id']} digest`" in cli.ok("why", session)
    wrong = cli("answer", wait["id"], "perhaps")
    assert (wrong.returncode, "answered with one of: try again, digest." in wrong.stderr) == (2, True)
    cli.ok("answer", wait["id"], "2")
    gateway.until_event(session, "TurnFinished", count=3)
    (digest,) = of_kind(gateway.events(session), "SummaryWritten")
    assert digest["source"] == "digest"
    assert "A digest replaces the turns up to 2 for the model" in cli.ok("sessions", "log", session)
    assert "made by a rule, without a model" in cli.ok("sessions", "log", session)
