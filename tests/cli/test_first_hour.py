"""What a user meets in the first hour: hints that work as printed, who answers, settings, and slips."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.commandline import CommandLine, new_home
from tests.e2e.gateway import GatewayProcess, until


def hint_of(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 2, done
    return done.stderr.partition("hint: ")[2].strip()


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        (["run", "say", "hello"], 'Put the text in quotes: holdfast run "say hello"'),
        (["run", "--profile", "demo", "say", "$x"], 'Put the text in quotes: holdfast run "say \\$x"'),
        (["run", "say", "-x"], 'Put the text in quotes: holdfast run "…"'),
        (["send", "abcd", "say", "hello"], 'Put the text in quotes: holdfast send abcd "say hello"'),
        (["start", "ls", "-la"], "Put -- before the command: holdfast start -- ls -la"),
        (["start", "--name", "x", "ls", "-la"], "Put -- before the command: holdfast start -- CMD…"),
        (["run", "--profil", "demo", "x"], "See `holdfast run --help`."),
    ],
    ids=" ".join,
)
def test_a_text_without_quotes_is_answered_with_quotes(alone: CommandLine, typed: list[str], hint: str) -> None:
    assert hint_of(alone(*typed)) == hint


def test_hints_repeat_the_home_that_was_given(shared: GatewayProcess, tmp_path: Path) -> None:
    """Before the verb and behind it; in the hints of the command line and of the gateway."""
    elsewhere = CommandLine(tmp_path / "nowhere")
    home = str(shared.home)
    told = elsewhere("--home", home, "run", "--profile", "demo", "--detach", "say hello")
    session = told.stdout.strip()
    assert f"holdfast --home {home} sessions log {session} --follow" in told.stderr
    assert f"holdfast --home {home} tasks log" in elsewhere.ok("tasks", "show", session, "--home", home)
    assert f"`holdfast --home {home} sessions`" in elsewhere("sessions", "show", "zz", "--home", home).stderr
    same = CommandLine(shared.home)("sessions", "show", "zz", "--home", home)
    assert "`holdfast sessions`" in same.stderr, "every other call finds it by itself"


@pytest.mark.parametrize("before", [True, False], ids=["tasks --json show", "tasks show --json"])
def test_options_may_come_before_the_verb_of_a_noun(cli: CommandLine, shared: GatewayProcess, before: bool) -> None:
    task = cli.json("run", "--profile", "demo", "--detach", "say hello")["task"]
    options = ["--json", "--home", str(shared.home)]
    words = ["tasks", *options, "show", task] if before else ["tasks", "show", task, *options]
    assert json.loads(cli.ok(*words))["id"] == task
    assert "tasks" in json.loads(cli.ok("tasks", "--json"))


def test_the_answering_model_is_shown_and_in_the_json(cli: CommandLine) -> None:
    told = cli("run", "--profile", "demo", "say hello")
    assert (told.stdout, told.returncode) == ("hello\n", 0)
    assert "the demo agent answers (profile demo): a script, no AI" in told.stderr
    found = cli.json("run", "--profile", "demo", "say hello")
    assert (found["profile"], found["model"]) == ("demo", "demo")
    again = cli("send", found["session"], "say more", "--wait")
    assert "the demo agent answers (profile demo)" in again.stderr


def test_a_model_without_a_key_is_named_with_what_to_do(cli: CommandLine) -> None:
    told = cli("run", "--model", "openai:some-model", "hello")
    assert told.returncode == 1
    assert "openai:some-model answers" in told.stderr
    assert "hint: Set it in this terminal, run `holdfast restart`, then send a message to continue." in told.stderr


def test_leaving_a_run_in_json_says_so(cli: CommandLine, shared: GatewayProcess) -> None:
    process = cli.spawn("run", "--profile", "demo", "slow 300 one two three", "--json")
    assert process.stderr is not None
    line = process.stderr.readline()
    assert "the demo agent answers" in line
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    told = json.loads(out)
    assert (process.returncode, told["outcome"]) == (130, None)
    assert told["reason"] == "detached by Ctrl-C; the agent continues"
    assert shared.session(told["session"])["state"] == "running"
    assert "detached" in err
    cli.ok("stop", told["session"])


def test_a_wait_that_timed_out_has_its_own_exit_code(cli: CommandLine) -> None:
    task = json.loads(cli.ok("start", "--json", "--", "sleep", "300"))["task"]
    timed_out = cli("tasks", "wait", task, "--timeout", "0s")
    assert timed_out.returncode == 124
    assert "still running" in timed_out.stdout
    cli.ok("tasks", "kill", task)
    assert cli("tasks", "wait", task).returncode == 1


def test_models_and_profiles_need_no_gateway(alone: CommandLine) -> None:
    found = alone("profiles", "--json", env={"OPENAI_API_KEY": "sk-not-a-key"})
    shown = {profile["name"]: profile for profile in json.loads(found.stdout)["profiles"]}
    assert (shown["openai"]["default"], shown["demo"]["default"]) == (True, False)
    assert "no gateway is running" in found.stderr
    assert "OPENAI_API_KEY is set" in alone.ok("models", env={"OPENAI_API_KEY": "sk-not-a-key"})
    assert not (alone.home / "run" / "gateway.json").exists()
    assert "added plain" in alone.ok("profiles", "add", "plain", "--model", "demo")
    assert "demo" in alone.ok("profiles", "show", "plain")


def test_a_profile_is_changed_and_removed(alone: CommandLine) -> None:
    alone.ok("profiles", "add", "plain", "--model", "demo", "--instructions", "Be brief.")
    assert "changed plain" in alone.ok("profiles", "edit", "plain", "--cwd", str(alone.home))
    shown = json.loads(alone.ok("profiles", "show", "plain", "--json"))
    assert (shown["model"], shown["instructions"], shown["cwd"]) == ("demo", "Be brief.", str(alone.home))
    assert "Nothing to change" in alone("profiles", "edit", "plain").stderr
    alone.ok("profiles", "default", "plain")
    refused = alone("profiles", "remove", "plain")
    assert refused.returncode == 2 and "Choose another one" in refused.stderr
    alone.ok("profiles", "default", "demo")
    assert "removed plain" in alone.ok("profiles", "remove", "plain")
    assert alone("profiles", "edit", "plain", "--model", "demo").returncode == 4
    assert "built in" in alone("profiles", "remove", "demo").stderr


def test_a_profile_that_cannot_be_written_is_reported(alone: CommandLine) -> None:
    (alone.home / "config.toml").chmod(0o400)
    refused = alone("profiles", "add", "plain", "--model", "demo")
    assert refused.returncode == 2
    assert "cannot be changed: it is read-only" in refused.stderr


def test_the_settings_in_force_are_shown_with_their_origin(alone: CommandLine) -> None:
    (alone.home / "config.toml").write_text(
        "[gateway]\nport = 0\n[session_reset]\nat_hour = 5\n[compaction]\nthreshold = 1000\n[profiles.a]\n"
    )
    shown = alone.ok("config", "show", env={"OPENAI_API_KEY": "sk-not-a-key"}).splitlines()
    assert "port = 0  # config.toml" in shown
    assert "at_hour = 5  # config.toml" in shown
    assert "idle_minutes = 1440  # default" in shown
    assert "limit = 1250  # default: a quarter more than the threshold, if the model's window is not known" in shown
    assert 'default_profile = "openai"  # detected' in shown
    assert not [line for line in shown if "not set" in line or "null" in line]
    found = alone.json("config", "show")
    assert found["settings"]["profiles"]["a"]["session_reset"]["at_hour"] == 5
    assert found["origins"]["profiles.a.session_reset.at_hour"] == "[session_reset]"
    assert found["home_from"] == "HOLDFAST_HOME"


def test_a_context_has_one_size(cli: CommandLine) -> None:
    session = cli.json("run", "--profile", "demo", "say one two three")["session"]
    found = cli.json("sessions", "context", session)
    assert (found["tokens"], found["counted"]) == (found["used"], True)
    shown = cli.ok("sessions", "context", session)
    assert shown.count(" token") == 1
    assert f"{found['tokens']} tokens (counted by demo); summarised above 100,000, at most 125,000 (by" in shown


def test_an_answer_without_an_expected_key_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    """As of a gateway of another version: a real server on loopback that leaves something out."""
    home = new_home(tmp_path / "home")
    script = (
        "import http.server, json, os, pathlib, sys\n"
        "class Answer(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        "        self.send_response(200); self.send_header('holdfast-version', '9'); self.end_headers()\n"
        "        self.wfile.write(b'{\"pid\": 1}')\n"
        "server = http.server.HTTPServer(('127.0.0.1', 0), Answer)\n"
        "run = pathlib.Path(sys.argv[1]) / 'run'; run.mkdir(mode=0o700)\n"
        "(run / 'token').write_text('t')\n"
        "(run / 'gateway.json').write_text(json.dumps({'pid': os.getpid(), 'url': f'http://127.0.0.1:{server.server_port}'}))\n"
        "server.serve_forever()\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(home)], stderr=subprocess.DEVNULL) as server:
        try:
            until((home / "run" / "gateway.json").exists, "it listens")
            done = CommandLine(home)("status")
        finally:
            server.kill()
    assert done.returncode == 1
    assert "The answer of the gateway does not fit (Object missing required field" in done.stderr
    assert "`holdfast restart`" in done.stderr


def test_completion_uses_a_home_behind_the_verb(cli: CommandLine, shared: GatewayProcess, tmp_path: Path) -> None:
    session = cli.json("run", "--profile", "demo", "say to be completed")["session"]
    for words in (["sessions", "show", "--home", str(shared.home)], ["--home", str(shared.home), "sessions", "show"]):
        typed = " ".join(["holdfast", *words, session[:4]])
        env = CommandLine(tmp_path / "nowhere").environment(
            _HOLDFAST_COMPLETE="bash_complete", COMP_WORDS=typed, COMP_CWORD=str(len(words) + 1)
        )
        done = subprocess.run(
            [sys.executable, "-c", "from holdfast.cli.root import root; root(prog_name='holdfast')"],
            capture_output=True,
            text=True,
            env=env,
            check=False,
        )
        assert session in done.stdout, done


def test_a_watched_board_is_plain_where_no_colour_is_wanted(cli: CommandLine) -> None:
    with cli.terminal("board", "watch", NO_COLOR="1") as terminal:
        terminal.until("Ctrl-C: leave")
        assert terminal.raw == terminal.text, "no colours, only moves of the cursor"
        terminal.interrupt()
        assert terminal.wait() == 0
