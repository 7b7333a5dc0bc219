"""Starting in the background like tmux, and distinguishing a running gateway from what a dead one left behind."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

from holdfast import __version__
from holdfast.client.http import alive
from tests.cli.commandline import CommandLine, end_gateway, pid_of
from tests.e2e.gateway import GatewayProcess, of_kind, until, wait_for
from tests.eventually import PATIENCE

EVERYTHING_ELSE = [
    ["stop", "abcd"],
    ["sessions"],
    ["sessions", "show", "abcd"],
    ["sessions", "log", "abcd", "--follow"],
    ["sessions", "search", "text"],
    ["sessions", "delete", "abcd", "--yes"],
    ["why"],
    ["status"],
    ["shutdown"],
]


@pytest.mark.parametrize("arguments", EVERYTHING_ELSE, ids=" ".join)
def test_only_run_and_send_start_a_gateway(alone: CommandLine, arguments: list[str]) -> None:
    done = alone(*arguments)
    assert done.returncode == 3
    hint = "  hint: `holdfast restart` starts one in the background, `holdfast serve` in this terminal.\n"
    hint = "" if arguments == ["shutdown"] else hint
    assert done.stderr == f"error: No gateway is running in {alone.home}.\n{hint}"
    assert not (alone.home / "run").exists()


def test_run_starts_one_and_later_calls_use_it(alone: CommandLine) -> None:
    first = alone("run", "say one")
    pid = pid_of(alone.home)
    assert (first.returncode, first.stdout) == (0, "one\n")
    assert first.stderr.startswith(f"started a gateway (pid {pid})\n")
    second = alone("run", "say two")
    assert (second.returncode, second.stdout) == (0, "two\n")
    assert "started a gateway" not in second.stderr
    assert os.getsid(pid) == pid
    assert alone.ok("shutdown").startswith(f"the gateway (pid {pid}) has ended")
    assert not alive(pid)


def test_three_at_once_share_one_gateway(alone: CommandLine) -> None:
    runs = [alone.spawn("run", f"say {number}") for number in range(3)]
    answers = [run.communicate(timeout=PATIENCE) for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0], answers
    assert [out for out, _ in answers] == ["0\n", "1\n", "2\n"]
    assert "".join(err for _, err in answers).count("started a gateway") == 1
    assert alone.json("status")["sessions"] == 3
    alone.ok("shutdown")
    until(lambda: not _gateways(alone.home), "nobody was left behind who waited for the lock")


def _gateways(home: Path) -> list[int]:
    """The processes that serve this home."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and f"{home}\0serve\0".encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def test_a_gateway_that_is_about_to_end_is_waited_for(gateway: GatewayProcess) -> None:
    """The lock is still held when the next one is started."""
    cli = CommandLine(gateway.home)
    running = cli.json("run", "slow 300 a b c", "--detach")["session"]
    gateway.request("POST", "/v1/shutdown")
    done = cli("run", "say next")
    gateway.wait_for_end()
    assert (done.returncode, done.stdout) == (0, "next\n"), done
    cli.ok("stop", running)


def test_a_gateway_that_cannot_start_says_why(alone: CommandLine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (alone.home / "config.toml").write_text(f"[gateway]\nport = {port}\n")
        done = alone("run", "say x")
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: The gateway could not be started: Port {port} cannot be used: Address")
    assert done.stderr.count("in use") == 1 and "--port" not in done.stderr
    assert "`port` in [gateway] of config.toml" in done.stderr
    (alone.home / "config.toml").write_text("[gateway]\nprot = 1\n")
    done = alone("run", "say x")
    assert done.returncode == 2
    assert "config.toml:2: gateway.prot is not a setting" in done.stderr


def test_restart_keeps_the_port_and_what_runs(gateway: GatewayProcess, tmp_path: Path) -> None:
    cli, gate = CommandLine(gateway.home), tmp_path / "gate"
    session = cli.json("run", f"sh {wait_for(gate)}\nsay a b c", "--detach")["session"]
    gateway.until_event(session, "ToolCallStarted")
    port, pid = gateway.port, gateway.pid
    started = gateway.address["started_at"]
    done = cli.json("restart")
    assert done == {"pid": pid, "stopped": pid, "url": f"http://127.0.0.1:{port}"}
    assert gateway.address["started_at"] > started
    gate.touch()
    until(lambda: cli.json("sessions", "show", session)["session"]["state"] == "idle", "the turn ends")
    log = cli.ok("sessions", "log", session)
    assert "a b c" in log
    assert "suspended" in log


def test_restart_with_wrong_settings_keeps_the_running_gateway(gateway: GatewayProcess) -> None:
    cli = CommandLine(gateway.home)
    before = gateway.address
    (gateway.home / "config.toml").write_text("[gateway]\nprot = 1\n")
    done = cli("restart")
    assert done.returncode == 2
    assert "was not restarted" in done.stderr and "config.toml:2: gateway.prot is not a setting" in done.stderr
    assert gateway.address == before and cli.json("status")["pid"] == gateway.pid


def test_restart_starts_a_gateway_where_none_runs(alone: CommandLine) -> None:
    assert "started one at" in alone.ok("restart")
    assert alone.json("status")["pid"] == pid_of(alone.home)


def test_restart_takes_a_key_that_was_exported_since(gateway: GatewayProcess) -> None:
    cli = CommandLine(gateway.home)
    assert cli("restart", env={"NEW_KEY": "x y"}).returncode == 0
    session = gateway.wait_until_up().create('sh echo "<$NEW_KEY>"')
    assert "<x y>" in str(of_kind(gateway.until_rest(session), "ToolCallFinished"))


def test_restart_by_an_agent_does_not_put_the_gateway_into_its_task(gateway: GatewayProcess, tmp_path: Path) -> None:
    """Ending the agent's command ends whatever descends from it; the gateway does not."""
    cli, done = CommandLine(gateway.home), tmp_path / "done"
    started = gateway.address["started_at"]
    restart = f"{sys.executable} -m holdfast --home {gateway.home} restart && touch {done}; sleep 600"
    task = cli.ok("start", "--", restart).strip()
    until(done.exists, "the agent's restart is through")
    assert gateway.address["started_at"] > started
    cli.ok("tasks", "kill", task)
    assert cli.json("tasks", "show", task)["state"] == "stopped"
    assert cli.json("status")["pid"] == gateway.pid


def test_command_of_a_task_starts_no_gateway(alone: CommandLine) -> None:
    """It would end with the task."""
    done = alone("run", "say x", env={"HOLDFAST_TASK": "0123456789abcdef.00"})
    assert done.returncode == 3 and "would end with the task" in done.stderr
    assert not (alone.home / "run").exists()


def test_client_waits_for_a_gateway_that_is_starting(alone: CommandLine) -> None:
    """As in `holdfast serve & holdfast status`."""
    serving = alone.spawn("serve")
    try:
        run = alone.home / "run"
        until(lambda: (run / "starting").exists() or (run / "gateway.json").exists(), "it is starting")
        assert alone.json("status")["pid"] == serving.pid
    finally:
        serving.terminate()
        serving.communicate(timeout=PATIENCE)


def test_verbs_about_waiting_and_running_work_start_a_gateway(alone: CommandLine) -> None:
    session = ["start", "--session", "abcd", "--", "true"]
    for arguments in (["inbox"], ["answer", "abcd", "--allow"], ["tasks", "stop", "abcd"], session):
        done = alone(*arguments)
        assert done.returncode == (0 if arguments == ["inbox"] else 4), done
        assert f"started a gateway (pid {pid_of(alone.home)})" in done.stderr
        end_gateway(alone.home)


def test_frozen_gateway_is_named_by_every_verb(gateway: GatewayProcess) -> None:
    cli = CommandLine(gateway.home)
    os.kill(gateway.pid, signal.SIGSTOP)
    try:
        asked = [cli.spawn(*arguments) for arguments in (["status"], ["sessions"], ["stop", "abcd"], ["run", "say x"])]
        said = [verb.communicate(timeout=PATIENCE)[1] for verb in asked]
    finally:
        os.kill(gateway.pid, signal.SIGCONT)
    assert [verb.returncode for verb in asked] == [3] * 4
    assert all(f"error: The gateway (pid {gateway.pid}) does not answer.\n" in words for words in said), said


def test_shutdown_names_the_commands_that_continue(gateway: GatewayProcess) -> None:
    cli = CommandLine(gateway.home)
    task = cli.ok("start", "--", "sleep 600").strip()
    pid = cli.json("tasks", "show", task)["pid"]
    ended = threading.Thread(target=gateway.wait_for_end)
    ended.start()
    shown = cli.ok("shutdown")
    ended.join()
    assert "1 command still running:" in shown and f"{task}  pid {pid}  sleep 600" in shown
    assert alive(pid)
    os.killpg(pid, signal.SIGKILL)


# --- what a dead gateway left behind ------------------------------------------------------------------


def _leave_address(home: Path, pid: int, port: int) -> None:
    (home / "run").mkdir(mode=0o700, exist_ok=True)
    (home / "run" / "token").write_text("x" * 43)
    (home / "run" / "gateway.json").write_text(json.dumps({"pid": pid, "url": f"http://127.0.0.1:{port}"}))


def _dead_pid() -> int:
    ended = subprocess.Popen(["true"])
    ended.wait()
    return ended.pid


def test_after_kill_9_nothing_runs_until_somebody_starts_it(gateway: GatewayProcess) -> None:
    gateway.kill9()
    cli = CommandLine(gateway.home)
    assert (gateway.home / "run" / "gateway.json").exists()
    assert cli("status").returncode == 3
    done = cli("run", "say again")
    assert (done.returncode, done.stdout) == (0, "again\n")
    assert "started a gateway" in done.stderr


def test_a_port_that_is_somebody_elses_is_not_our_gateway(alone: CommandLine, shared: GatewayProcess) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        free = silent.getsockname()[1]
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    left = {
        "a dead pid": (_dead_pid(), shared.port),
        "nobody listens": (os.getpid(), free),
        "another server": (os.getpid(), server.server_port),
        "the gateway of another home": (os.getpid(), shared.port),
    }
    try:
        for what, (pid, port) in left.items():
            _leave_address(alone.home, pid, port)
            assert alone("status").returncode == 3, what
        done = alone("run", "say mine")
        assert (done.returncode, done.stdout) == (0, "mine\n")
    finally:
        server.shutdown()
        server.server_close()


def test_a_broken_address_is_no_address(alone: CommandLine) -> None:
    _leave_address(alone.home, 1, 1)
    address = alone.home / "run" / "gateway.json"
    for content in (
        "",
        "[]",
        '{"pid": "x"}',
        '{"pid": 1, "url": "nowhere"}',
        "\x00",
    ):
        address.write_text(content)
        assert alone("status").returncode == 3, content
    address.unlink()


def test_another_version_is_reported_once_with_the_remedy(cli: CommandLine) -> None:
    program = "import holdfast; holdfast.__version__ = '9.9.9'; from holdfast.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "run", "say x"],
        capture_output=True,
        text=True,
        env=cli.environment(),
        timeout=PATIENCE,
        check=True,
    )
    assert done.stdout == "x\n"
    warning = f"the gateway is {__version__}, this client is 9.9.9: run `holdfast restart`"
    assert done.stderr.startswith(f"warning: {warning}\n")


def test_a_home_that_others_can_write_to_is_refused(alone: CommandLine) -> None:
    alone.home.chmod(0o777)
    for arguments in (["status"], ["run", "say x"]):
        done = alone(*arguments)
        assert done.returncode == 2
        assert f"chmod 700 {alone.home}" in done.stderr


def test_healthz_needs_no_credential(shared: GatewayProcess) -> None:
    assert httpx.get(f"{shared.url}/healthz").json()["pid"] == shared.pid
