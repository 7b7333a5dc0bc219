"""Chapters in the chat: dividers, questions about running commands, unseen resets, and compaction."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli.chat.attach import while_away
from holdfast.cli.chat.blocks import DividerBlock, NoticeBlock
from tests.chat.story import Story
from tests.chat.terminal import CTRL_C, on_terminal
from tests.cli.commandline import CommandLine, new_home
from tests.e2e.gateway import GatewayProcess, kinds, of_kind

QUICK = {"lifecycle.reset_check": 0.2, "minute_ms": 1_000}
"""A minute of `idle_minutes` is a second here."""
CONFIG = """
[session_reset]
idle_minutes = 1
max_postpone = "1h"
[compaction]
threshold = 300
keep_recent = 0
on_failure = "pause"
"""
BUSY = "while :; do echo x; sleep 0.1; done"


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


def only_session(gateway: GatewayProcess) -> str:
    (row,) = gateway.get("/v1/sessions")["sessions"]
    return str(row["id"])


def task_of(gateway: GatewayProcess, title: str) -> dict[str, str]:
    found = gateway.get("/v1/tasks")["tasks"]
    return next(task for task in found if task["title"] == title)


# --- in a terminal ----------------------------------------------------------------------------------


def test_a_reset_and_back(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    with on_terminal(cli, cwd=cwd) as chat:
        chat.until("idle")
        chat.enter("/reset")
        chat.until("This session has no messages yet.")
        chat.enter("say before")
        chat.until_idle("\n\nbefore")
        chat.enter("/reset note")
        chat.enter("count")  # waits until the chapter has begun
        shown = chat.until_idle("I have seen 1 user message; the first was: count")
        assert "── chapter 2: the model starts with an empty context ───" in shown
        assert "\n   because cli asked for it\n" in shown
        assert "\n   Note of the agent: 1 user message so far; the first was: say before\n" in shown
        assert "\n   /undo-reset brings the earlier context back\n" in shown
        chat.enter("/undo-reset")
        chat.enter("count")
        chat.until_idle("── chapter 2 undone by cli ───", "I have seen 3 user messages; the first was: say before")
        chat.enter("/undo-reset")
        chat.until("There is no reset to undo.")
        chat.enter("/reset now")
        chat.until("/reset takes no argument, or `note`")


def test_what_runs_is_shown_and_asked_about(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    """Keep, stop, cancel; what is no answer is neither guessed nor sent."""
    question = "/reset, with commands running: k keep · s stop · c cancel"
    with on_terminal(cli, cwd=cwd, rows=60) as chat:
        chat.until("idle")
        chat.enter("bg sleep 300")
        chat.until_idle("terminal started")
        session = only_session(gateway)
        chat.enter("/reset")
        chat.until("sleep 300\nstill running: k keep: handed over to the new chapter", f"{question}\n\n?")
        chat.enter("what is this?")
        chat.until("Nothing was sent. First answer this: k keep · s stop · c cancel.")
        chat.type(CTRL_C)
        chat.until("Nothing was changed.", gone=question)
        assert "ChapterOpened" not in kinds(gateway.events(session))
        chat.type("/reset\rsay behind it\r")
        chat.until(question)
        chat.enter("k")
        shown = chat.until_idle("Kept: ", "sleep 300 (", "\n\nbehind it\n")
        assert shown.index("Kept: ") < shown.index("say behind it\n"), "it waited for the choice"
        chat.enter("/new")
        chat.until("/new, with commands running: k keep · s stop · c cancel", "it continues in the old session")
        chat.enter("keep")
        chat.until("new session · demo · idle")
        assert task_of(gateway, "sleep 300")["state"] == "running"
        chat.enter("/resume " + session[:8])
        chat.until(f"session {session[:8]}")
        chat.enter("/new")
        chat.until("/new, with commands running: k keep")
        chat.enter("s")
        chat.until("asked to end: ", "new session · demo · idle")
        task = task_of(gateway, "sleep 300")["id"]
        assert gateway.until_ended(task)["state"] == "stopped"
        chat.enter("say next")
        chat.until_idle("\n\nnext")
    texts = [event["text"] for event in of_kind(gateway.events(session), "InputReceived")]
    assert texts == ["bg sleep 300", "say behind it"]


def test_a_reset_that_nobody_saw_is_shown_until_somebody_writes(
    gateway: GatewayProcess, cli: CommandLine, cwd: Path
) -> None:
    """And why it waits before, in one dim line above the prompt."""
    with on_terminal(cli, cwd=cwd, columns=120) as chat:
        chat.until("idle")
        chat.enter(f"bg {BUSY}")
        chat.until_idle("terminal started")
        session = only_session(gateway)
        cli.ok("sessions", "policy", session, "--mode", "idle")
        chat.until("The reset rules of this session were set by cli: reset when idle", "The idle reset was due at")
        assert chat.look().count("The idle reset was due at") == 1
        chat.leave()
    cli.ok("sessions", "policy", session, "--max-postpone", "0s")
    gateway.until_event(session, "ChapterOpened")
    for columns in (80, 120):
        with on_terminal(cli, "chat", session, columns=columns) as chat:
            shown = chat.until_idle("── reset ", "while you were away ───")
            assert "\n   because no user activity for " in shown
            assert "\n   Kept: " in shown
            assert "\n   Note of the agent: 1 user message so far" in shown
            assert "\n   /undo-reset brings the earlier context back\n" in shown
            assert "the model starts with an empty context" not in shown, "the same is not told twice"
            if columns == 120:
                chat.enter("/stale")
                chat.until("is working, in use, pinned or started by a person")
                cli.ok("sessions", "policy", session, "--mode", "none")
                chat.enter("say back")
                chat.until_idle("\n\nback")
    with on_terminal(cli, "chat", session) as chat:
        shown = chat.until_idle("── chapter 2: the model starts with an empty context ───")
        assert "while you were away" not in shown


def test_a_context_is_made_shorter(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    """What is done is said while it is done; a summary that fails is asked about, a digest is marked as one."""
    with on_terminal(cli, cwd=cwd, columns=120, rows=60) as chat:
        chat.until("idle")
        chat.enter("say one")
        chat.until_idle("\n\none")
        chat.enter("/compact keep the names")
        shown = chat.until_idle("── summary of the turns up to 1 ──")
        assert "A shorter context was requested by cli: keep the names.\n" in shown
        chat.enter("summary hang")
        chat.until_idle("My next summaries: hang.")
        chat.enter("/compact")
        chat.until("… making the context shorter by demo · ", "demo · compacting ")
        chat.enter("summary fail")  # goes first
        chat.until("The summary was interrupted: something else came first. Nothing is lost.")
        chat.until("No summary (attempt 1): The demo agent wrote no summary", "It will be tried again")
        chat.enter("fill 500")
        chat.until("fill fill")
        gateway.until_event(only_session(gateway), "SummaryFailed", count=3)
        chat.enter("say more")
        chat.until("1 try again\n  2 digest\n", "waits for your choice: 1 try again · 2 digest\n\n?")
        chat.enter("perhaps")
        chat.until("It waits for one of: 1 try again · 2 digest.")
        chat.enter("2")
        shown = chat.until("→ digest · cli", "── digest of the turns up to 4 ──", "\n\nmore\n")
        assert "It was made by a rule, without a model" in " ".join(shown.split())
        chat.enter("/context")
        chat.until("chapter 1; a digest replaces the turns up to 4; ", "; summarised above 300, at most")


# --- without one ------------------------------------------------------------------------------------

PROBLEM = {"code": "summary_timeout", "message": "It took longer than 5 s.", "hint": ""}
POSTPONED = {"rule": "idle", "due_at": 0, "until": None, "next_check": 0}


def test_only_the_latest_reason_for_a_postponement_counts() -> None:
    story = Story().begin()
    for reason in ("turn 1 is open", "process a works"):
        blockers = [{"by": "turn", "reason": reason}]
        assert story.happened("ResetPostponed", **POSTPONED, blockers=blockers) == []
    assert story.view.postponed.endswith("and is postponed: process a works.")
    story.said("i2", "back again")
    assert story.view.postponed == ""


def test_a_summary_that_fails_and_a_digest_are_marked() -> None:
    story = Story().begin()
    (first,) = story.happened("SummaryFailed", covers_turn=1, attempt=2, problem=PROBLEM, retry_at=None)
    assert isinstance(first, NoticeBlock)
    assert first.tone == "warning"
    assert first.text == (
        "No summary (attempt 2): It took longer than 5 s. It will be tried again after the next turn or on request."
    )
    sizes = {"tokens_before": 1_200, "tokens_after": 34}
    (digest,) = story.happened(
        "SummaryWritten", covers_turn=1, summary="s", source="digest", model="", reason="too long", **sizes
    )
    assert isinstance(digest, DividerBlock)
    assert (digest.title, digest.tone) == ("digest of the turns up to 1", "warning")
    assert "(1,200 → 34 tokens): too long. It was made by a rule" in digest.lines[0]


def test_it_is_compacting_from_the_wish_to_the_summary() -> None:
    story = Story().begin()
    story.answered("hi")
    story.finished()
    story.happened("SummaryRequested", instructions="", by="web")
    assert (story.view.state, story.view.at_work) == ("compacting", True)
    story.happened("SummaryStarted", covers_turn=1, attempt=1, model="m", tokens=5, reason="r")
    story.said("i2", "more")
    assert story.view.state == "queued"
    story.happened(
        "SummaryWritten",
        covers_turn=1,
        summary="s",
        source="model",
        model="m",
        reason="r",
        tokens_before=5,
        tokens_after=4,
    )
    assert story.view.compacting_since is None


def test_a_reset_is_among_what_happened_while_away() -> None:
    story = Story().begin()
    story.changes.clear()
    story.happened("ChapterOpened", chapter=2, reason="r", by="cli")
    assert while_away(change for _, change in story.changes) == "1 reset"
