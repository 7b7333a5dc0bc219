"""The verbs about the gateway: status, why, logs, doctor, config, completion."""

from __future__ import annotations

import json
import subprocess

from tests.cli.commandline import PROGRAM, CommandLine
from tests.e2e.gateway import GatewayProcess, until
from tests.eventually import PATIENCE


def test_status_and_why_show_a_running_turn(shared: GatewayProcess, cli: CommandLine) -> None:
    session = cli.json("run", "slow 300 a b", "--detach")["session"]
    shown = until(lambda: text if session in (text := cli.ok("status")) else None, "it is at work")
    for fact in (f"pid {shared.pid}", shared.url, str(shared.home)):
        assert fact in shown
    why = cli.ok("why", session[:8])
    assert f"session/{session}, " in why
    assert session in cli.ok("why")
    cli.ok("stop", session)
    shared.until_rest(session)


def test_logs_are_readable_and_need_no_gateway(alone: CommandLine, cli: CommandLine) -> None:
    done = alone("logs")
    assert (done.returncode, done.stdout) == (0, "")
    assert "No log yet" in done.stderr
    log = alone.home / "logs" / "gateway.log"
    log.parent.mkdir(parents=True)
    entry = {"at": "2026-01-02T03:04:05.678Z", "level": "error", "logger": "holdfast.app", "message": "m", "trace": "t"}
    log.write_text("first\n" + json.dumps(entry) + "\nbroken \x1b[31m{\n")
    shown = alone.ok("logs", "--lines", "2", env={"TZ": "UTC"})
    assert shown == "2026-01-02 03:04:05  error    app  m\nt\nbroken [31m{\n"
    assert [json.loads(line) for line in alone.ok("logs", "--json").splitlines()][1] == entry
    assert "listens on" in cli.ok("logs")


def test_logs_follow_through_a_rotation(alone: CommandLine) -> None:
    log = alone.home / "logs" / "gateway.log"
    log.parent.mkdir(parents=True)
    log.write_text("one\n")
    following = alone.spawn("logs", "--follow")
    assert following.stdout is not None
    assert following.stdout.readline() == "one\n"
    with log.open("a") as stream:
        stream.write("two\n")
    assert following.stdout.readline() == "two\n"
    log.rename(log.with_suffix(".1"))
    log.write_text("three\n")
    assert following.stdout.readline() == "three\n"
    following.terminate()
    following.communicate(timeout=PATIENCE)


def test_doctor_examines_and_rebuilds(gateway: GatewayProcess) -> None:
    cli = CommandLine(gateway.home)
    cli.ok("run", "say hello")
    assert cli.json("doctor")["ok"]
    done = cli("doctor", "--rebuild")
    assert done.returncode == 5
    assert f"pid {gateway.pid}" in done.stderr
    gateway.kill9()
    assert cli.json("doctor")["ok"]
    assert "events" in cli.ok("doctor", "--rebuild")
    (gateway.home / "config.toml").write_text("default_profile = 3\n")
    done = cli("doctor")
    assert done.returncode == 1
    assert "FAIL  config" in done.stdout


def test_config_is_shown_located_and_checked(alone: CommandLine) -> None:
    path = alone.home / "config.toml"
    assert alone.ok("config", "path") == f"{path}\n"
    assert "port = 0" in alone.ok("config")
    assert alone.json("config", "show")["settings"]["gateway"]["port"] == 0
    assert alone.ok("config", "check") == f"{path} is valid\n"
    path.write_text("[gateway]\nport = 'x'\n")
    done = alone("config", "check")
    assert done.returncode == 2
    assert f"{path}:2: gateway.port" in done.stderr
    done = alone("config", "check", "--json")
    assert done.returncode == 2
    assert not json.loads(done.stdout)["ok"]


def test_the_shown_config_is_a_config(alone: CommandLine) -> None:
    shown, settings = alone.ok("config", "show"), alone.json("config", "show")["settings"]
    (alone.home / "config.toml").write_text(shown)
    assert alone.json("config", "show")["settings"] == settings


def test_completion_knows_verbs_and_ids(cli: CommandLine, alone: CommandLine) -> None:
    session = cli.json("run", "say complete me")["session"]

    def complete(line: CommandLine, words: str) -> list[str]:
        env = line.environment(_HOLDFAST_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(words.count(" ")))
        program = "from holdfast.cli.main import main; main()"
        done = subprocess.run(
            [PROGRAM[0], "-c", program], env=env, capture_output=True, text=True, timeout=PATIENCE, check=True
        )
        return done.stdout.split()

    assert complete(cli, "holdfast se") == ["plain,send", "plain,sessions", "plain,serve"]
    assert complete(cli, "holdfast sessions lo") == ["plain,log"]
    assert f"plain,{session}" in complete(cli, f"holdfast stop {session[:4]}")
    assert f"plain,{session}" in complete(alone, f"holdfast --home {cli.home} sessions log ")
    assert complete(alone, "holdfast stop ") == []
    for shell in ("bash", "zsh", "fish"):
        assert "_HOLDFAST_COMPLETE" in cli.ok("completion", shell)
