"""The chat in a real terminal, through whole conversations, with everything that can come between."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from holdfast.cli.chat.connection import OutgoingMessage, SessionRef, send
from holdfast.client.client import Client
from holdfast.client.errors import ApiError
from holdfast.config import Home
from tests.chat.terminal import ALT_ENTER, CTRL_C, PROMPT, UP, on_terminal
from tests.cli.commandline import CommandLine
from tests.cli.proxy import Proxy
from tests.e2e.gateway import GatewayProcess, of_kind, wait_for
from tests.eventually import PATIENCE
from tests.provider.loopback import Call, Loopback, Pause, Reply, Text, Think

WAITS = f"sh {wait_for(Path('gate'))}"
"""A turn that goes on when there is such a file in its directory."""


def only_session(gateway: GatewayProcess) -> str:
    (row,) = gateway.get("/v1/sessions")["sessions"]
    return str(row["id"])


def test_a_whole_conversation(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    """Begin, stream, queue while busy, stop, detach in the middle, come back."""
    with on_terminal(cli, cwd=cwd) as chat:
        chat.until("holdfast · a new session", f"{PROMPT}\nnew session · demo · idle")
        chat.enter("say hello **world**")
        chat.until_idle(f"{PROMPT} say hello **world**\n\nhello world\n\n{PROMPT}")

        chat.enter(ALT_ENTER.join(("slow 1 one two three", WAITS, "say four five six")))
        chat.until("\none two", "· running")
        chat.enter("say second")
        chat.enter("say third")
        shown = chat.until(" say second\n", " say third\n", "· 2 queued")
        assert re.search(r"^queued \d+ say second\nqueued \d+ say third$", shown, re.MULTILINE)
        assert "\nfour five six\n" not in shown
        (cwd / "gate").touch()
        shown = chat.until_idle("\n\nthird")
        assert [shown.count(words) for words in ("\none two three\n", "\nfour five six\n")] == [1, 1]
        assert shown.index("\nfour five six\n") < shown.index(f"{PROMPT} say second") < shown.index("\nthird")
        assert "queued" not in shown

        chat.enter("slow 300 stop me")
        chat.until(f"{PROMPT} slow 300 stop me", "· running")
        chat.type(CTRL_C)
        chat.until_idle("stopped by cli")
        chat.type(CTRL_C)
        chat.until("No turn is running, so there is nothing to stop. Ctrl-D leaves the chat.")

        (cwd / "gate").unlink()
        chat.enter(ALT_ENTER.join((WAITS, "say the work goes on alone")))
        chat.until("· running")
        session = only_session(gateway)
        assert f"detached; the agent continues (running)\ncome back: holdfast chat {session[:8]}" in chat.leave()

    (cwd / "gate").touch()
    gateway.until_rest(session)
    with on_terminal(cli, "chat", session[:8], columns=120) as chat:
        shown = chat.until_idle(f"holdfast · “say hello world” · session {session[:8]}", "while away")
        before, _, after = shown.partition("── 1 message while away ──\n")
        assert before.count("the work goes on alone") == 1 and after.count("\nthe work goes on alone\n") == 1
        assert "detached; nothing is running" in chat.leave()
    texts = [event["text"] for event in of_kind(gateway.events(session), "InputReceived")]
    assert len(texts) == 6


def test_what_was_typed_last_is_sent_before_it_leaves(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    with on_terminal(cli, cwd=cwd) as chat:
        chat.until("idle")
        chat.type("say quick\r\x04")
        assert "the agent continues" in chat.ended()
    session = only_session(gateway)
    assert of_kind(gateway.until_rest(session), "ModelResponded")[0]["text"] == "quick"


def test_the_gateway_is_killed_and_comes_back(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    """What is typed meanwhile is kept and sent once; the turn is resumed; nothing is shown twice."""
    with on_terminal(cli, cwd=cwd) as chat:
        chat.until("idle")
        chat.enter(f"slow 1 one two three{ALT_ENTER}hang")
        chat.until("\none two")
        session = only_session(gateway)
        gateway.kill9()
        chat.until("gateway away, waiting…")
        chat.enter("say typed while away")
        chat.until("not sent yet say typed while away", "1 not sent yet")
        gateway.start_and_let_go()
        shown = chat.until_idle("resumed after", "\n\ntyped while away")
        assert shown.count("\none two three\ndone\n") == 1
        assert shown.count(f"{PROMPT} say typed while away") == 1
        assert "not sent" not in shown
        assert "gateway away" not in shown
        texts = [event["text"] for event in of_kind(gateway.events(session), "InputReceived")]
        assert texts == ["slow 1 one two three\nhang", "say typed while away"]


def test_two_terminals_see_the_same_and_an_approval_is_answered_once(
    gateway: GatewayProcess, cli: CommandLine, cwd: Path
) -> None:
    with on_terminal(cli, "chat", "--profile", "careful", cwd=cwd) as one:
        one.until("careful/demo")
        one.enter("read README.md\nwrite note.txt hello")  # the second line is a message of its own
        one.until("⚙ read path=README.md · done", "? Allow write note.txt?", "5 deny")
        session = only_session(gateway)
        with on_terminal(cli, cwd=cwd) as two:
            two.until("? Allow write note.txt?", "waits for your approval: 1 allow")
            two.enter("perhaps")
            two.until("It waits for an approval: 1 allow · 2 call")
            (wait,) = gateway.get("/v1/inbox")["waits"]
            two.enter("1")
            for chat in (one, two):
                chat.until_idle("→ allow · cli", "⚙ write path=note.txt", "write done")
            one.enter("slow 1 both see this")
            for chat in (one, two):
                chat.until_idle("\n\nboth see this")
            answers = two.conversation.partition("→ allow")[2]
            assert answers
            assert one.conversation.partition("→ allow")[2] == answers
            message = OutgoingMessage(
                "answer", SessionRef(session), {"wait": wait["id"], "answer": "deny"}, "deny", 0.0
            )
            with pytest.raises(ApiError, match="cli answered this already: allow"):
                send(Client(Home(gateway.home)), message)
    assert (cwd / "note.txt").read_text() == "hello\n"


def test_closing_the_terminal_detaches_and_keeps_the_draft(
    gateway: GatewayProcess, cli: CommandLine, cwd: Path
) -> None:
    with on_terminal(cli, cwd=cwd) as chat:
        chat.until("idle")
        chat.enter("slow 3 nobody stops this")
        chat.until("· running")
        chat.type(f"half{ALT_ENTER}a thought")
        chat.until("  a thought")
        session = only_session(gateway)
        chat.hang_up()
    assert of_kind(gateway.until_rest(session), "TurnFinished")[0]["outcome"] == "done"
    with on_terminal(cli, cwd=cwd) as chat:
        chat.until("idle")
        chat.type(UP)
        chat.until(f"{PROMPT} half\n  a thought")


def test_a_session_that_somebody_deletes_takes_nothing_with_it(
    gateway: GatewayProcess, cli: CommandLine, cwd: Path
) -> None:
    with on_terminal(cli, cwd=cwd, columns=120) as chat:
        chat.until("idle")
        chat.enter("slow 300 doomed")
        chat.until("· running")
        chat.type("a long draft")
        chat.until(f"{PROMPT} a long draft")
        cli.ok("stop", only_session(gateway))
        chat.until("stopped by")
        cli.ok("sessions", "delete", only_session(gateway), "--yes")
        chat.until("was deleted", "/new starts a session", f"{PROMPT} a long draft")
        chat.type("\r")
        chat.until(f"{PROMPT} a long draft\n  (not sent)")
        chat.enter("/new")
        chat.until("new session · demo · idle")
        chat.enter("say here")
        chat.until_idle("\n\nhere")
        assert "detached; nothing is running" in chat.leave()


def test_input_after_a_command_goes_to_the_session_that_it_opens(
    gateway: GatewayProcess, cli: CommandLine, cwd: Path
) -> None:
    with on_terminal(cli, cwd=cwd) as chat:
        chat.until("idle")
        chat.enter("say first")
        chat.until_idle("\n\nfirst")
        session = only_session(gateway)
        chat.type("/new\rsay second\r/rename Another\rsay third\r")
        chat.until_idle("\n\nsecond", "Renamed to “Another”", "\n\nthird")
    assert len(of_kind(gateway.events(session), "InputReceived")) == 1
    (other,) = (row["id"] for row in gateway.get("/v1/sessions")["sessions"] if row["id"] != session)
    said = of_kind(gateway.events(other), "InputReceived", "SessionRenamed")
    words = [event["text"] for event in said if event["kind"] == "InputReceived"]
    assert words == ["say second", "say third"]
    assert said[-1]["kind"] == "InputReceived", "what was typed behind the command waited for it"


def test_ctrl_c_twice_stops_once(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    with on_terminal(cli, cwd=cwd) as chat:
        chat.until("idle")
        chat.enter("slow 300 stop me")
        chat.until("· running")
        chat.type(CTRL_C + CTRL_C)
        shown = chat.until_idle("already being stopped. Ctrl-D leaves the chat.", "stopped by cli")
        assert "nothing to stop" not in shown
    assert len(of_kind(gateway.events(only_session(gateway)), "StopRequested")) == 1


def test_an_acknowledgement_that_never_came(gateway: GatewayProcess, cwd: Path) -> None:
    """The session was begun, but nobody heard of it: the next try finds it, and nothing is said twice."""
    with Proxy(gateway, drop_answers=1) as proxy, on_terminal(CommandLine(proxy.home), cwd=cwd) as chat:
        chat.until("idle")
        chat.enter("say once")
        chat.until_idle("\n\nonce")
        assert proxy.posts == 2
    records = gateway.events(only_session(gateway))
    assert len(of_kind(records, "InputReceived")) == 1


def test_a_refusal_shows_that_somebody_is_there_again(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    with on_terminal(cli, "chat", "--profile", "careful", cwd=cwd) as chat:
        chat.until("idle")
        gateway.kill9()
        chat.enter("say words that matter")
        chat.until("gateway away, waiting…", "not sent yet say words that matter")
        (gateway.home / "config.toml").write_text("[gateway]\nport = 0\n")
        gateway.start()
        chat.until("There is no profile", f"{PROMPT} say words that matter\n  (not sent)", gone="gateway away")
        chat.leave()


def test_a_gateway_that_is_stopped_for_good_loses_nothing(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    with on_terminal(cli, cwd=cwd, columns=120) as chat:
        chat.until("idle")
        chat.enter("say one")
        chat.until_idle("\n\none")
        gateway.terminate()
        chat.until("gateway away, waiting…")
        chat.enter("say two")
        chat.until("not sent yet say two")
        chat.enter("/why")
        chat.until("No gateway is running in", "\n\nnot sent yet say two")  # a long path begins a line of its own
        shown = chat.leave()
        assert "not sent: say two\n1 message could not be sent." in shown


def test_lines_commands_files_and_hostile_text(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    with on_terminal(cli, "chat", "--new", cwd=cwd, columns=120) as chat:
        chat.until("idle")
        chat.type(f"say one{ALT_ENTER}say two")
        chat.type("\x1b[200~\nsay three\nsay four\x1b[201~")
        chat.type("\r")
        chat.until_idle("\none\ntwo\nthree\nfour\n")
        chat.type("/hel")
        chat.until("/help  list the commands")
        chat.type("\t\r\r")
        chat.until("Ctrl-D              leave; the agent continues")
        chat.type("read @READ")
        chat.until(" README.md")
        chat.type("\t")
        chat.until("read @README.md")
        chat.type("\r\r")
        chat.until_idle("⚙ read path=@README.md · failed")
        chat.enter("/rename A better title")
        chat.until_idle("A better title · demo")
        for command, answer in {
            "/context": "tools: read",
            "/why": "Idle. Turn 2 ",
            "/inbox": "Nothing waits for you.",
            "/sessions": "MSGS",
            "/export talk.md": "bytes of",
            "/open": "[1] read · failed",
            "/nonsense": "There is no /nonsense.",
            "/model nonsense": "is not a model: write `demo` or PROVIDER:MODEL",
            "/undo": "Turn 2 was undone by cli",
        }.items():
            chat.enter(command)
            chat.until(answer)
        gateway.send(only_session(gateway), "say \x1b]0;title\x07\x1b[31mred \u202etxt \x1b[2J end\x1b[")
        shown = chat.until_idle("\nred txt  end[\n")
        assert f"{PROMPT} say red txt  end[\n  (api)\n" in shown
        assert "\u202e" not in chat.raw
        assert "\x1b]" not in chat.raw
        chat.enter("/fork")
        chat.until("Forked by cli from", "A better title (fork)")
        chat.enter("/quit")
        assert "detached; nothing is running" in chat.ended()
    assert "# A better title" in (cwd / "talk.md").read_text()


def test_without_a_gateway_one_is_started(alone: CommandLine, cwd: Path) -> None:
    with on_terminal(alone, "chat", "--cwd", str(cwd), NO_COLOR="1") as chat:
        chat.until("started a gateway", f"a new session · {cwd}"[:40])
        chat.enter("say **plain**")
        chat.until_idle("\nplain\n")
        assert "\x1b[36m" not in chat.raw
        chat.leave()


def test_a_dumb_terminal_gets_a_hint_what_to_use_instead(cli: CommandLine, cwd: Path) -> None:
    with on_terminal(cli, cwd=cwd, columns=200, TERM="dumb") as chat:
        shown = chat.ended(2)
    assert "error: The chat needs a terminal with a movable cursor" in shown
    assert 'holdfast run "…"' in shown
    assert "--wait" in shown


def test_only_the_chat_itself_pays_for_its_imports(cli: CommandLine) -> None:
    program = "import sys; from holdfast.cli.root import run; run(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    for arguments in (["--help"], ["chat", "--help"], ["chat"], ["sessions"]):
        command = [sys.executable, "-c", program, *arguments]
        done = subprocess.run(
            command, env=cli.environment(), capture_output=True, text=True, check=True, timeout=PATIENCE
        )
        assert not {"prompt_toolkit", "rich", "asyncio"} & set(done.stderr.split())


def test_without_a_terminal_it_says_what_to_use(cli: CommandLine) -> None:
    for arguments in ([], ["chat"]):
        done = cli(*arguments)
        assert done.returncode == 2
        assert done.stderr.startswith("error: The chat needs a terminal")
        assert "holdfast run" in done.stderr


def test_wrong_use_is_reported_before_anything_is_drawn(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    cases = {
        ("chat", "ffffffff"): (4, "error: "),
        ("chat", "--profile", "nobody"): (2, "There is no profile nobody."),
        ("chat", "abcd", "--new"): (2, "are for new sessions"),
    }
    for arguments, (code, message) in cases.items():
        with on_terminal(cli, *arguments, cwd=cwd) as chat:
            assert message in chat.ended(code)


def test_thinking_and_a_question(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    """With a model that thinks aloud: folded, opened by a key, and its question answered in place."""
    looked = threading.Event()
    question = Call("question", {"text": "Which colour?", "choices": ["red", "blue"]})
    with Loopback() as server:
        server.script(
            Reply(Think(["First ", "this, ", "then that."]), Pause(until=looked), Text("I must ask."), question),
            Reply("Blue it is."),
        )
        with (gateway.home / "config.toml").open("a") as file:
            file.write(f'\n[providers.loop]\nbase_url = "{server.openai_url}"\n')
            file.write('[profiles.thinker]\nmodel = "loop:loopback"\n')
        with on_terminal(cli, "chat", "--profile", "thinker", cwd=cwd) as chat:
            chat.until("thinker/loop:loopback · idle")
            chat.enter("think")
            chat.until("✻ thinking… ")
            looked.set()
            shown = chat.until("✻ thought for ", "? Which colour?\n  1 red\n  2 blue", "waits for your answer")
            assert "then that" not in shown
            chat.type("\x14")
            chat.until("  First this, then that.")
            chat.enter("2")
            shown = chat.until_idle("→ blue · cli", "\n\nBlue it is.")
            assert "⚙ question" not in shown
            assert shown.count("I must ask.") == 1
