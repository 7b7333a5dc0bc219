"""The chat in a real terminal, through whole conversations, with everything that can come between."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from holdfast.cli.chat.connection import OutgoingMessage, SessionRef, send
from holdfast.client.client import Client
from holdfast.client.errors import ApiError
from holdfast.config import Home
from tests.chat.seat import ALT_ENTER, CTRL_C, PROMPT, UP, sit_down
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
    with sit_down(cli, cwd=cwd) as seat:
        seat.until("holdfast · a new session", f"{PROMPT}\nnew session · demo · idle")
        seat.enter("say hello **world**")
        seat.until_idle(f"{PROMPT} say hello **world**\n\nhello world\n\n{PROMPT}")

        seat.enter(ALT_ENTER.join(("slow 1 one two three", WAITS, "say four five six")))
        seat.until("\none two", "· running")
        seat.enter("say second")
        seat.enter("say third")
        shown = seat.until("queued 1 say second\nqueued 2 say third\n", "· 2 queued")
        assert "\nfour five six\n" not in shown
        (cwd / "gate").touch()
        shown = seat.until_idle("\n\nthird")
        assert [shown.count(words) for words in ("\none two three\n", "\nfour five six\n")] == [1, 1]
        assert shown.index("\nfour five six\n") < shown.index(f"{PROMPT} say second") < shown.index("\nthird")
        assert "queued" not in shown

        seat.enter("slow 300 stop me")
        seat.until(f"{PROMPT} slow 300 stop me", "· running")
        seat.type(CTRL_C)
        seat.until_idle("stopped by cli")
        seat.type(CTRL_C)
        seat.until("No turn is running, so there is nothing to stop. Ctrl-D leaves the chat.")

        (cwd / "gate").unlink()
        seat.enter(ALT_ENTER.join((WAITS, "say the work goes on alone")))
        seat.until("· running")
        session = only_session(gateway)
        assert f"detached; the agent continues (running)\ncome back: holdfast chat {session[:8]}" in seat.leave()

    (cwd / "gate").touch()
    gateway.until_rest(session)
    with sit_down(cli, "chat", session[:8], columns=120) as seat:
        shown = seat.until_idle(f"holdfast · “say hello world” · session {session[:8]}", "while away")
        before, _, after = shown.partition("── 1 message while away ──\n")
        assert before.count("the work goes on alone") == 1 and after.count("\nthe work goes on alone\n") == 1
        assert "detached; nothing is running" in seat.leave()
    texts = [event["text"] for event in of_kind(gateway.events(session), "InputReceived")]
    assert len(texts) == 6


def test_what_was_typed_last_is_sent_before_it_leaves(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    with sit_down(cli, cwd=cwd) as seat:
        seat.until("idle")
        seat.type("say quick\r\x04")
        assert "the agent continues" in seat.ended()
    session = only_session(gateway)
    assert of_kind(gateway.until_rest(session), "ModelResponded")[0]["text"] == "quick"


def test_the_gateway_is_killed_and_comes_back(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    """What is typed meanwhile is kept and sent once; the turn is resumed; nothing is shown twice."""
    with sit_down(cli, cwd=cwd) as seat:
        seat.until("idle")
        seat.enter(f"slow 1 one two three{ALT_ENTER}hang")
        seat.until("\none two")
        session = only_session(gateway)
        gateway.kill9()
        seat.until("gateway away, waiting…")
        seat.enter("say typed while away")
        seat.until("not sent yet say typed while away", "1 kept")
        gateway.start_and_let_go()
        shown = seat.until_idle("resumed after", "\n\ntyped while away")
        assert shown.count("\none two three\ndone\n") == 1
        assert shown.count(f"{PROMPT} say typed while away") == 1
        assert "not sent" not in shown
        assert "gateway away" not in shown
        texts = [event["text"] for event in of_kind(gateway.events(session), "InputReceived")]
        assert texts == ["slow 1 one two three\nhang", "say typed while away"]


def test_two_terminals_see_the_same_and_an_approval_is_answered_once(
    gateway: GatewayProcess, cli: CommandLine, cwd: Path
) -> None:
    with sit_down(cli, "chat", "--profile", "careful", cwd=cwd) as one:
        one.until("careful/demo")
        one.enter("read README.md\nwrite note.txt hello")  # the second line is a message of its own
        one.until("⚙ read path=README.md · done", "? Allow write note.txt?", "5 deny")
        session = only_session(gateway)
        with sit_down(cli, cwd=cwd) as two:
            two.until("? Allow write note.txt?", "waits for your approval: 1 allow")
            two.enter("perhaps")
            two.until("It waits for an approval: 1 allow · 2 call")
            (wait,) = gateway.get("/v1/inbox")["waits"]
            two.enter("1")
            for seat in (one, two):
                seat.until_idle("→ allow · cli", "⚙ write path=note.txt", "write done")
            one.enter("slow 1 both see this")
            for seat in (one, two):
                seat.until_idle("\n\nboth see this")
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
    with sit_down(cli, cwd=cwd) as seat:
        seat.until("idle")
        seat.enter("slow 3 nobody stops this")
        seat.until("· running")
        seat.type(f"half{ALT_ENTER}a thought")
        seat.until("  a thought")
        session = only_session(gateway)
        seat.hang_up()
    assert of_kind(gateway.until_rest(session), "TurnFinished")[0]["outcome"] == "done"
    with sit_down(cli, cwd=cwd) as seat:
        seat.until("idle")
        seat.type(UP)
        seat.until(f"{PROMPT} half\n  a thought")


def test_a_session_that_somebody_deletes_takes_nothing_with_it(
    gateway: GatewayProcess, cli: CommandLine, cwd: Path
) -> None:
    with sit_down(cli, cwd=cwd, columns=120) as seat:
        seat.until("idle")
        seat.enter("slow 300 doomed")
        seat.until("· running")
        seat.type("a long draft")
        seat.until(f"{PROMPT} a long draft")
        cli.ok("stop", only_session(gateway))
        seat.until("stopped by")
        cli.ok("sessions", "delete", only_session(gateway), "--yes")
        seat.until("was deleted", "/new starts a session", f"{PROMPT} a long draft")
        seat.type("\r")
        seat.until(f"{PROMPT} a long draft\n  (not sent)")
        seat.enter("/new")
        seat.until("new session · demo · idle")
        seat.enter("say here")
        seat.until_idle("\n\nhere")
        assert "detached; nothing is running" in seat.leave()


def test_what_is_typed_behind_a_command_goes_where_it_leads(
    gateway: GatewayProcess, cli: CommandLine, cwd: Path
) -> None:
    with sit_down(cli, cwd=cwd) as seat:
        seat.until("idle")
        seat.enter("say first")
        seat.until_idle("\n\nfirst")
        session = only_session(gateway)
        seat.type("/new\rsay second\r/rename Another\rsay third\r")
        seat.until_idle("\n\nsecond", "Renamed to “Another”", "\n\nthird")
    assert len(of_kind(gateway.events(session), "InputReceived")) == 1
    (other,) = (row["id"] for row in gateway.get("/v1/sessions")["sessions"] if row["id"] != session)
    said = of_kind(gateway.events(other), "InputReceived", "SessionRenamed")
    words = [event["text"] for event in said if event["kind"] == "InputReceived"]
    assert words == ["say second", "say third"]
    assert said[-1]["kind"] == "InputReceived", "what was typed behind the command waited for it"


def test_ctrl_c_twice_stops_once(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    with sit_down(cli, cwd=cwd) as seat:
        seat.until("idle")
        seat.enter("slow 300 stop me")
        seat.until("· running")
        seat.type(CTRL_C + CTRL_C)
        shown = seat.until_idle("already being stopped. Ctrl-D leaves the chat.", "stopped by cli")
        assert "nothing to stop" not in shown
    assert len(of_kind(gateway.events(only_session(gateway)), "StopRequested")) == 1


def test_an_acknowledgement_that_never_came(gateway: GatewayProcess, cwd: Path) -> None:
    """The session was begun, but nobody heard of it: the next try finds it, and nothing is said twice."""
    with Proxy(gateway, drop_answers=1) as proxy, sit_down(CommandLine(proxy.home), cwd=cwd) as seat:
        seat.until("idle")
        seat.enter("say once")
        seat.until_idle("\n\nonce")
        assert proxy.posts == 2
    records = gateway.events(only_session(gateway))
    assert len(of_kind(records, "InputReceived")) == 1


def test_a_refusal_shows_that_somebody_is_there_again(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    with sit_down(cli, "chat", "--profile", "careful", cwd=cwd) as seat:
        seat.until("idle")
        gateway.kill9()
        seat.enter("say words that matter")
        seat.until("gateway away, waiting…", "not sent yet say words that matter")
        (gateway.home / "config.toml").write_text("[gateway]\nport = 0\n")
        gateway.start()
        seat.until("There is no profile", f"{PROMPT} say words that matter\n  (not sent)", gone="gateway away")
        seat.leave()


def test_a_gateway_that_is_stopped_for_good_loses_nothing(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    with sit_down(cli, cwd=cwd, columns=120) as seat:
        seat.until("idle")
        seat.enter("say one")
        seat.until_idle("\n\none")
        gateway.terminate()
        seat.until("gateway away, waiting…")
        seat.enter("say two")
        seat.until("not sent yet say two")
        seat.enter("/why")
        seat.until("No gateway is running in", "\n\nnot sent yet say two")  # a long path begins a line of its own
        shown = seat.leave()
        assert "not sent: say two\n1 message could not be sent." in shown


def test_lines_commands_files_and_hostile_words(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    with sit_down(cli, "chat", "--new", cwd=cwd, columns=120) as seat:
        seat.until("idle")
        seat.type(f"say one{ALT_ENTER}say two")
        seat.type("\x1b[200~\nsay three\nsay four\x1b[201~")
        seat.type("\r")
        seat.until_idle("\none\ntwo\nthree\nfour\n")
        seat.type("/hel")
        seat.until("/help  list the commands")
        seat.type("\t\r\r")
        seat.until("Ctrl-D              leave; the agent continues")
        seat.type("read @READ")
        seat.until(" README.md")
        seat.type("\t")
        seat.until("read @README.md")
        seat.type("\r\r")
        seat.until_idle("⚙ read path=@README.md · failed")
        seat.enter("/rename A better title")
        seat.until_idle("A better title · demo")
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
            seat.enter(command)
            seat.until(answer)
        gateway.send(only_session(gateway), "say \x1b]0;title\x07\x1b[31mred \u202etxt \x1b[2J end\x1b[")
        shown = seat.until_idle("\nred txt  end[\n")
        assert f"{PROMPT} say red txt  end[\n  (api)\n" in shown
        assert "\u202e" not in seat.raw
        assert "\x1b]" not in seat.raw
        seat.enter("/fork")
        seat.until("Forked by cli from", "A better title (fork)")
        seat.enter("/quit")
        assert "detached; nothing is running" in seat.ended()
    assert "# A better title" in (cwd / "talk.md").read_text()


def test_without_a_gateway_one_is_started(alone: CommandLine, cwd: Path) -> None:
    with sit_down(alone, "chat", "--cwd", str(cwd), NO_COLOR="1") as seat:
        seat.until("started a gateway", f"a new session · {cwd}"[:40])
        seat.enter("say **plain**")
        seat.until_idle("\nplain\n")
        assert "\x1b[36m" not in seat.raw
        seat.leave()


def test_a_terminal_that_can_only_print_is_told_what_to_use(cli: CommandLine, cwd: Path) -> None:
    with sit_down(cli, cwd=cwd, columns=200, TERM="dumb") as seat:
        shown = seat.ended(2)
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


def test_wrong_use_is_told_before_anything_is_drawn(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    cases = {
        ("chat", "ffffffff"): (4, "error: "),
        ("chat", "--profile", "nobody"): (2, "There is no profile nobody."),
        ("chat", "abcd", "--new"): (2, "are for new sessions"),
    }
    for arguments, (code, message) in cases.items():
        with sit_down(cli, *arguments, cwd=cwd) as seat:
            assert message in seat.ended(code)


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
        with sit_down(cli, "chat", "--profile", "thinker", cwd=cwd) as seat:
            seat.until("thinker/loop:loopback · idle")
            seat.enter("think")
            seat.until("✻ thinking… ")
            looked.set()
            shown = seat.until("✻ thought for ", "? Which colour?\n  1 red\n  2 blue", "waits for your answer")
            assert "then that" not in shown
            seat.type("\x14")
            seat.until("  First this, then that.")
            seat.enter("2")
            shown = seat.until_idle("→ blue · cli", "\n\nBlue it is.")
            assert "⚙ question" not in shown
            assert shown.count("I must ask.") == 1
