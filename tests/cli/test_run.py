"""`run` and `send`: the answer, the ids, the reasons; and what a terminal shows."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from tests.cli.commandline import CommandLine, rest_of
from tests.e2e.gateway import GatewayProcess, kinds, until, wait_for

DEMO_ANSWERS = "the demo agent answers (profile demo): a script, no AI"


def test_run_prints_the_answer_and_who_gave_it(cli: CommandLine) -> None:
    done = cli("run", "say hello")
    assert (done.returncode, done.stdout) == (0, "hello\n")
    session = cli.json("sessions")["sessions"][0]["id"]
    assert done.stderr == f"session {session[:8]} · {DEMO_ANSWERS}\n"


def test_the_answers_of_all_steps_are_joined_by_blank_lines(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("alpha")
    script = "say before\nread a.txt\nsay after"
    assert cli.ok("run", "--cwd", str(tmp_path), script) == "before\n\nread done: alpha\nafter\n"


def test_it_works_where_it_was_called(shared: GatewayProcess, cli: CommandLine) -> None:
    session = cli.json("run", "--detach", "say hello")["session"]
    assert shared.session(session)["cwd"] == str(Path.cwd())


def test_a_prompt_may_come_from_standard_input(cli: CommandLine) -> None:
    assert cli.ok("run", "-", stdin="say grüße\nsay 你好\n".encode()) == "grüße\n你好\n"


def test_detach_prints_the_id_and_how_to_look(shared: GatewayProcess, cli: CommandLine) -> None:
    done = cli("run", "--detach", "slow 300 a b c")
    session = done.stdout.strip()
    assert done.returncode == 0
    assert f"holdfast sessions log {session} --follow" in done.stderr
    assert shared.session(session)["message_count"] == 1
    shared.until_event(session, "TurnStarted")
    assert cli.ok("stop", session).startswith(session)
    shared.until_rest(session)


def test_a_failed_turn_is_exit_code_1_with_reason_and_hint(cli: CommandLine) -> None:
    done = cli("run", "say first\nfail")
    assert done.returncode == 1
    assert done.stderr.splitlines()[0].endswith(DEMO_ANSWERS)
    assert done.stderr.splitlines()[1:] == [
        "error: The demo agent failed because the message asked for it.",
        "  hint: Send another message; the session still works.",
    ]
    done = cli("run", "fail", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["outcome"] == "failed"


def test_a_stopped_turn_is_exit_code_1(shared: GatewayProcess, cli: CommandLine) -> None:
    session = cli.json("run", "--detach", "slow 300 a b c")["session"]
    shared.until_event(session, "ModelRequested")
    waiting = cli.spawn("send", session, "slow 300 x", "--mode", "interrupt", "--wait")
    until(lambda: kinds(shared.events(session)).count("TurnStarted") == 2, "the second turn runs")
    cli.ok("stop", session[:6])
    out, err = rest_of(waiting)
    assert (waiting.returncode, out) == (1, "")
    assert "error: The turn was stopped: stopped by cli." in err
    assert f"holdfast sessions log {session}" in err


def test_send_waits_for_the_turn_of_its_own_message(cli: CommandLine) -> None:
    session = cli.json("run", "say one")["session"]
    cli.ok("send", session, "slow 0.5 not this")
    assert cli.ok("send", session[:8], "count", "--wait").startswith("I have seen 3 user messages")


def test_a_message_that_steers_joins_the_turn(shared: GatewayProcess, cli: CommandLine, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    session = cli.json("run", "--detach", f"sh {wait_for(gate)}\nsay end")["session"]
    sending = cli.spawn("send", session, "say steered", "--mode", "steer", "--wait", "--json")
    until(lambda: kinds(shared.events(session)).count("InputReceived") == 2, "it was said")
    gate.touch()
    answer = json.loads(rest_of(sending)[0])
    assert answer["turn"] == 1
    assert "steered" in answer["text"]


def test_ctrl_c_detaches_and_the_work_continues(gateway: GatewayProcess, tmp_path: Path) -> None:
    cli, gate = CommandLine(gateway.home), tmp_path / "gate"
    running = cli.spawn("run", f"sh {wait_for(gate)}\nsay going on", "--profile", "demo")
    until(lambda: gateway.followers() == 1, "it waits for the answer")
    (session,) = (row["id"] for row in gateway.get("/v1/sessions")["sessions"])
    running.send_signal(signal.SIGINT)
    _, err = rest_of(running)
    assert running.returncode == 0
    assert f"detached; the agent continues: holdfast sessions log {session} --follow" in err
    assert "TurnFinished" not in kinds(gateway.events(session))
    gate.touch()
    gateway.until_rest(session)
    assert "agent     terminal done: [done: exit code 0]\n" in (log := cli.ok("sessions", "log", session))
    assert "going on" in log


# --- on a terminal ---------------------------------------------------------------------------------


def test_a_terminal_shows_text_as_it_is_streamed_and_tools_in_one_line(cli: CommandLine, tmp_path: Path) -> None:
    script = "slow 0.4 one two\nwrite a.txt x\nsay three"
    with cli.terminal("run", "--cwd", str(tmp_path), script) as terminal:
        assert terminal.wait() == 0
    _, first, tool, *rest = terminal.text.splitlines()
    assert first == "one two"
    assert tool.startswith("⚙ write path=a.txt content=x · done · ")
    assert rest[0] == ""
    assert rest[-1] == "three"


def test_what_an_agent_says_cannot_command_the_terminal(cli: CommandLine) -> None:
    with cli.terminal("run", "say \x1b[31mred\x07", NO_COLOR="1") as terminal:
        assert terminal.wait() == 0
    assert terminal.raw.partition(" · ")[2] == f"{DEMO_ANSWERS}\n[31mred\n"
    assert cli.ok("run", "say \x1b[31mred") == "\x1b[31mred\n"


def test_colours_are_for_terminals_and_can_be_refused(cli: CommandLine) -> None:
    with cli.terminal("sessions", "show", "ffff") as terminal:
        assert terminal.wait() == 4
    assert "\x1b[" in terminal.raw
    with cli.terminal("sessions", "show", "ffff", NO_COLOR="1") as plain:
        assert plain.wait() == 4
    assert plain.raw == terminal.text
    assert "\x1b" not in cli("sessions", "show", "ffff").stderr
