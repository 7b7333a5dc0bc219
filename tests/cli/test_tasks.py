"""Tasks from the command line: start, look, read, end, prune; every command is ended when its test is."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.commandline import PROGRAM, CommandLine, end_gateway, rest_of
from tests.e2e.gateway import GatewayProcess, Json, of_kind, until
from tests.eventually import PATIENCE

COUNTING = "for i in $(seq 60); do echo line $i; sleep 0.01; case $i in 20|40) read go;; esac; done; exit 3"
"""Goes on at line 20 and at line 40 when it is told to."""
COUNTED = "".join(f"line {number}\n" for number in range(1, 61))


@pytest.fixture(autouse=True)
def nothing_is_left(gateway: GatewayProcess) -> Iterator[None]:
    """Commands outlive the gateway on purpose, so they are ended through it."""
    yield
    if not gateway.address:
        gateway.start()
    for task in gateway.get("/v1/tasks", state="running", all="true")["tasks"]:
        gateway.request("POST", f"/v1/tasks/{task['id']}/stop", json={"force": True})  # it may have ended just now
        assert gateway.until_ended(task["id"])["state"] != "running"


@pytest.fixture
def cli(gateway: GatewayProcess) -> CommandLine:
    return CommandLine(gateway.home)


def start(cli: CommandLine, *words: str, options: tuple[str, ...] = ()) -> str:
    return cli.ok("start", *options, "--", *words).strip()


def ended(cli: CommandLine, *words: str, options: tuple[str, ...] = ()) -> str:
    """The id of a command that has ended."""
    task = start(cli, *words, options=options)
    cli("tasks", "wait", task)
    return task


# --- starting and looking -------------------------------------------------------------------------


def test_a_command_from_its_start_to_its_end(cli: CommandLine, gateway: GatewayProcess) -> None:
    done = cli("start", "--name", "the answer", "--", "sh", "-c", "read line; echo got $line; exit 3")
    task = done.stdout.strip()
    assert f"holdfast tasks log {task} --follow" in done.stderr
    waited = cli("tasks", "wait", task[:6])
    assert (waited.returncode, waited.stdout.partition(" after ")[0]) == (1, f"{task}: failed")
    assert cli.ok("tasks", "log", task) == "got\n"
    shown = cli.ok("tasks", "show", task)
    for words in (
        "the answer",
        "sh -c 'read line; echo got $line; exit 3'",
        "exit code      3",
        "by cli",
        "by itself",
        "recorded by its keeper",
        "persist: until it ends or is stopped",
        "files changed",
        f"holdfast tasks log {task}",
    ):
        assert words in shown
    assert "Nothing is running in the background. Try:" in cli.ok("tasks")
    assert task[:8] in cli.ok("tasks", "history")


def test_done_is_0_and_a_timeout_is_124(cli: CommandLine) -> None:
    assert cli("tasks", "wait", start(cli, "true")).returncode == 0
    running = cli("tasks", "wait", start(cli, "sleep", "300"), "--timeout", "0s")
    assert (running.returncode, "still running" in running.stdout) == (124, True)


def test_several_arguments_are_unchanged_and_a_single_one_is_for_the_shell(cli: CommandLine, tmp_path: Path) -> None:
    assert cli.ok("tasks", "log", ended(cli, "printf", "%s;", "a b", "$HOME", "--x")) == "a b;$HOME;--x;\n"
    assert (
        cli.ok("tasks", "log", ended(cli, "echo a | tr a b; pwd", options=("--cwd", str(tmp_path))))
        == f"b\n{tmp_path}\n"
    )


def test_a_command_gets_the_environment_of_its_terminal_which_is_not_stored(
    cli: CommandLine, gateway: GatewayProcess
) -> None:
    secret = "nobody-writes-this-down"
    task = cli("start", "--", 'echo "${#MINE} $MY"', env={"MINE": secret, "MY": "own"}).stdout.strip()
    cli("tasks", "wait", task)
    assert cli.ok("tasks", "log", task) == f"{len(secret)} own\n"
    assert secret not in json.dumps(gateway.whole_log())
    kept = [path for path in (gateway.home / "tasks" / task).rglob("*") if path.is_file()]
    assert kept and not [path for path in kept if secret.encode() in path.read_bytes()]


def test_what_cannot_be_started_says_so(cli: CommandLine) -> None:
    done = cli("start", "--", "no-such-program-anywhere")
    assert done.returncode == 1
    assert "error: The command could not start: " in done.stderr
    assert "none: it never started" in cli.ok("tasks", "show", done.stdout.strip())


def test_wrong_use_is_explained(cli: CommandLine) -> None:
    wrong: list[tuple[list[str], int, str]] = [
        (["start"], 2, "The command is missing."),
        (["start", "--lifetime", "session", "--", "true"], 2, "Add --session ID."),
        (["start", "--until", "2h", "--lifetime", "persist", "--", "true"], 2, "cannot be combined"),
        (["start", "--until", "soon", "--", "true"], 2, "'soon' is not a time"),
        (["start", "--session", "ffff", "--", "true"], 4, "There is no session ffff"),
        (["tasks", "show", "ffff"], 4, "There is no task ffff"),
        (["tasks", "show", "zz"], 4, "is not the ID of a task"),
        (["tasks", "history", "--since", "2x"], 2, "'2x' is not a time"),
        (["tasks", "prune", "--larger-than", "much"], 2, "'much' is not a size"),
        (["tasks", "prune", "--older-than", "1y"], 2, "'1y' is not a duration"),
        (["tasks", "log", "ffff", "--tail", "3", "--since", "4"], 2, "cannot be combined"),
        (["tasks", "log", "ffff", "--raw", "--json"], 2, "cannot be combined"),
        (["tasks", "write", "ffff"], 2, "There is no TEXT to type."),
        (["tasks", "sotp", "ffff"], 2, "No such command 'sotp'"),
    ]
    for arguments, code, words in wrong:
        done = cli(*arguments)
        assert (done.returncode, words in done.stderr) == (code, True), done


def test_empty_states_name_the_next_step(cli: CommandLine) -> None:
    assert "Try: holdfast start -- sleep 60" in cli.ok("tasks")
    assert "No tasks yet. Try: holdfast start" in cli.ok("tasks", "history")
    assert "holdfast tasks search TEXT" in cli.ok("tasks", "history", "--state", "lost")
    assert "try a shorter one" in cli.ok("tasks", "search", "nothing like it")
    assert "There is no task to delete (ended more than 7 days ago)." in cli.ok("tasks", "prune")


def test_history_is_filtered(cli: CommandLine) -> None:
    good, bad = ended(cli, "true"), ended(cli, "false", options=("--name", "a special one"))
    agent = cli.json("run", "say x", "--detach")["task"]
    cli("tasks", "wait", agent)

    def found(*options: str) -> list[str]:
        return [task["id"] for task in cli.json("tasks", "history", *options)["tasks"]]

    assert found() == [agent, bad, good]
    assert found("--kind", "agent") == [agent]
    assert found("--state", "failed") == [bad]
    assert found("--search", "SPECIAL") == [bad]
    assert found("--since", "1h") == [agent, bad, good]
    assert found("--since", "2099-01-01") == []
    page = cli.json("tasks", "history", "--limit", "2")
    assert [task["id"] for task in page["tasks"]] == [agent, bad]
    assert found("--before", page["next"]) == [good]


def test_a_table_of_what_runs_fits_80_columns(cli: CommandLine) -> None:
    task = start(cli, "sleep", "300", options=("--name", "a title that is much longer than what is left of the line"))
    with cli.terminal("tasks", columns=80) as terminal:
        assert terminal.wait() == 0
    head, row = terminal.text.splitlines()
    assert head.split() == ["ID", "KIND", "SESSION", "STATE", "ACTIVITY", "AGE", "OUTPUT", "WHAT"]
    assert row.startswith(task[:8]) and row.endswith("…") and len(row) <= 80


# --- the output -----------------------------------------------------------------------------------


def test_parts_of_the_output(cli: CommandLine) -> None:
    task = ended(cli, "seq 1 100")
    whole = cli.ok("tasks", "log", task)
    assert whole == "".join(f"{number}\n" for number in range(1, 101))
    assert cli.ok("tasks", "log", task, "--tail", "2") == "99\n100\n"
    assert cli.ok("tasks", "log", task, "--since", "285") == whole[285:]
    assert cli.ok("tasks", "log", task, "--follow") == whole


def test_raw_is_byte_for_byte_and_clean_commands_no_terminal(cli: CommandLine, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    task = ended(cli, f"head -c 2500000 /dev/urandom | tee {copy}")
    cli.ok("tasks", "log", task)
    out = tmp_path / "out"
    with out.open("wb") as file:
        subprocess.run(
            [*PROGRAM, "tasks", "log", task, "--raw"], stdout=file, env=cli.environment(), timeout=PATIENCE, check=True
        )
    assert hashlib.sha256(out.read_bytes()).digest() == hashlib.sha256(copy.read_bytes()).digest()
    coloured = ended(cli, r"printf 'a\033[31mred\033[0m\033]0;title\007\033[2Jb\n'")
    assert cli.ok("tasks", "log", coloured) == "aredb\n"
    with cli.terminal("tasks", "log", coloured) as terminal:
        terminal.wait()
    assert terminal.raw.startswith("a\x1b[31mred\x1b[0mb\n")


def test_it_says_where_bytes_were_dropped(cli: CommandLine, gateway: GatewayProcess) -> None:
    task = start(cli, "head -c 12000000 /dev/zero | tr '\\0' x; echo; read go; echo the end", options=("--stdin",))
    until(lambda: gateway.get(f"/v1/tasks/{task}/output", offset=1 << 20)["dropped"], "bytes are dropped")
    cli.ok("tasks", "write", task, "go")
    cli.ok("tasks", "wait", task)
    shown = cli.json("tasks", "show", task)
    assert shown["dropped_bytes"] > 0
    out = cli.ok("tasks", "log", task)
    mark = next(line for line in out.splitlines() if line.startswith("[bytes "))
    start_at, end_at = (int(number) for number in mark[len("[bytes ") : -len(" were dropped]")].split("\N{EN DASH}"))
    assert end_at - start_at == shown["dropped_bytes"]
    assert out.endswith("the end\n")
    raw = cli("tasks", "log", task, "--raw")
    assert len(raw.stdout) == shown["output_bytes"] - shown["dropped_bytes"]
    assert mark in raw.stderr and "dropped" not in raw.stdout
    assert "were dropped" in cli.ok("tasks", "show", task)


@pytest.mark.parametrize("raw", [False, True], ids=["clean", "raw"])
def test_following_survives_kill_9_without_gap_or_double(cli: CommandLine, gateway: GatewayProcess, raw: bool) -> None:
    task = start(cli, COUNTING, options=("--stdin",))
    follower = cli.spawn("tasks", "log", task, "--follow", *(["--raw"] if raw else []))
    assert follower.stdout is not None
    first = follower.stdout.readline()
    for lines in (20, 40):
        size = sum(map(len, COUNTED.splitlines(keepends=True)[:lines]))
        until(lambda size=size: _printed(gateway, task) == size, "it prints")  # type: ignore[misc]
        gateway.kill9()
        gateway.start()
        cli.ok("tasks", "write", task, "go")
    out, err = rest_of(follower)
    assert (follower.returncode, first + out) == (0, COUNTED)
    assert err.count("the gateway is away") == err.count("the gateway is back") >= 1
    assert gateway.get(f"/v1/tasks/{task}")["exit_code"] == 3


def _printed(gateway: GatewayProcess, task: str) -> int:
    return int(gateway.get(f"/v1/tasks/{task}")["output_bytes"])


def test_waiting_survives_kill_9(cli: CommandLine, gateway: GatewayProcess, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    task = start(cli, f"while ! [ -e {gate} ]; do sleep 0.05; done; echo through")
    waiting = cli.spawn("tasks", "wait", task)
    assert waiting.stderr is not None
    assert waiting.stderr.readline().startswith(f"waiting for {task}")
    gateway.kill9()
    gate.touch()
    gateway.start()
    out, _ = rest_of(waiting)
    assert (waiting.returncode, "done" in out) == (0, True)


def test_patience_ends_and_says_how_to_continue(cli: CommandLine, gateway: GatewayProcess) -> None:
    task = start(cli, "echo begun; sleep 300")
    follower = cli.spawn("tasks", "log", task, "--follow", "--patience", "0.3")
    assert follower.stdout is not None
    assert follower.stdout.readline() == "begun\n"
    gateway.kill9()
    _, err = rest_of(follower)
    assert follower.returncode == 3
    assert f"holdfast tasks log {task} --follow --since 6" in err
    gateway.start()


def test_the_archive_is_the_same_after_restarts_and_found_by_its_output(
    cli: CommandLine, gateway: GatewayProcess
) -> None:
    task = ended(cli, "seq 1 5000; echo a needle in the middle; seq 1 5000; exit 7")
    before = cli.json("tasks", "show", task)
    for _ in range(3):
        gateway.kill9()
        gateway.start()
    assert cli.json("tasks", "show", task) == before
    assert before["exit_code"] == 7
    assert cli.ok("tasks", "log", task).count("\n") == 10_001
    hit = until(lambda: cli.json("tasks", "search", "needle in the")["hits"], "it is found")[0]
    assert (hit["task"], "a needle in the middle" in hit["snippet"]) == (task, True)
    assert task[:8] in cli.ok("tasks", "search", "needle in the")
    assert cli.ok("tasks", "log", task, "--grep", "NEEDLE in") == "23895: a needle in the middle\n"
    match = cli.json("tasks", "log", task, "--grep", "needle")
    assert (match["task"], match["offset"], match["line"], match["before"]) == (task, 23895, 23893, "a ")
    assert cli("tasks", "log", task, "--grep", "not there").returncode == 1
    assert cli("tasks", "log", task, "--grep", "x", "--tail", "3").returncode == 2


def test_an_ended_command_runs_again_with_this_environment(cli: CommandLine) -> None:
    task = ended(cli, "echo $0 $USER_WORD", options=("--name", "words"))
    again = cli("tasks", "rerun", task[:8]).stdout.strip()
    assert again != task
    cli("tasks", "wait", again)
    assert cli.json("tasks", "show", again)["title"] == "words"
    assert cli.ok("tasks", "log", again) == cli.ok("tasks", "log", task)
    assert cli("tasks", "rerun", start(cli, "sleep", "600")).returncode == 5


# --- changing -------------------------------------------------------------------------------------


def test_stop_and_kill_say_how_it_ended(cli: CommandLine) -> None:
    assert "stopped by cli: killed by SIGTERM" in cli.ok("tasks", "stop", start(cli, "sleep", "300"))
    stubborn = start(cli, "trap '' TERM; echo ready; while :; do sleep 1; done")
    until(lambda: cli.ok("tasks", "log", stubborn) == "ready\n", "it is ready")
    assert "stopped by cli (by force): killed by SIGKILL" in cli.ok("tasks", "kill", stubborn)
    again = cli("tasks", "kill", stubborn)
    assert (again.returncode, "has already ended: stopped" in again.stderr) == (5, True)
    assert "at the request of cli (by force)" in cli.ok("tasks", "show", stubborn)


def test_typing_into_a_command(cli: CommandLine) -> None:
    task = start(cli, "cat", options=("--stdin",))
    assert "6 bytes written" in cli.ok("tasks", "write", task, "first")
    assert cli("tasks", "write", task, "-", "--close", stdin=b"zwei\ndrei").returncode == 0
    cli.ok("tasks", "wait", task)
    assert cli.ok("tasks", "log", task) == "first\nzwei\ndrei\n"
    assert cli("tasks", "write", task, "late").returncode != 0


def test_a_command_that_does_not_read_takes_no_more_and_says_so(cli: CommandLine) -> None:
    task = start(cli, "sleep", "300", options=("--stdin",))
    done = cli("tasks", "write", task, "-", stdin=b"x" * 3_000_000)
    assert done.returncode == 1
    assert "the command does not read its input" in done.stderr


def test_prune_shows_first_and_never_takes_what_is_pinned_or_runs(cli: CommandLine, gateway: GatewayProcess) -> None:
    kept, gone, running = ended(cli, "echo kept"), ended(cli, "echo gone"), start(cli, "sleep", "300")
    cli.ok("tasks", "pin", kept)
    shown = cli.ok("tasks", "prune", "--older-than", "0s")
    assert gone[:8] in shown and kept[:8] not in shown and running[:8] not in shown
    freed = re.search(r"would delete 1 task and free ([\d.]+) KiB", shown)
    assert freed and 0.5 < float(freed[1]) < 20, "its events and the record of its end count, too"
    assert cli.ok("tasks", "log", gone) == "gone\n"
    assert f"deleted 1 task and freed {freed[1]} KiB" in cli.ok("tasks", "prune", "--older-than", "0s", "--yes")
    assert cli("tasks", "log", gone).returncode == 4
    assert not (gateway.home / "tasks" / gone).exists()
    cli.ok("tasks", "unpin", kept)
    assert cli.json("tasks", "prune", "--state", "failed")["count"] == 0
    assert cli.json("tasks", "prune", "--larger-than", "1k")["count"] == 0
    assert cli.json("tasks", "prune", "--keep-last", "1")["count"] == 0
    assert cli.json("tasks", "prune", "--keep-last", "0", "--yes")["count"] == 1
    assert [task["id"] for task in cli.json("tasks", "history")["tasks"]] == [running]


def test_until_a_time_and_the_reason_of_the_runtime(cli: CommandLine) -> None:
    task = start(cli, "sleep", "300", options=("--until", "1s"))
    cli("tasks", "wait", task)
    assert "its time limit had passed" in cli.ok("tasks", "show", task)
    assert "asked for its end" in cli.ok("why", task)


# --- agents and sessions --------------------------------------------------------------------------


def test_detach_is_an_agent_task_that_send_continues(cli: CommandLine, gateway: GatewayProcess) -> None:
    told = cli.json("run", "say hello", "--detach")
    assert told["task"] == told["session"] and told["version"] == 2
    assert cli("tasks", "wait", told["task"]).returncode == 0
    log = cli("tasks", "log", told["task"])
    assert log.stdout == "hello\n"
    assert f"holdfast sessions log {told['session']}" in log.stderr
    assert f"task       {told['task']}" in cli.ok("sessions", "show", told["session"])
    cli.ok("send", told["task"], "say more", "--wait")
    assert cli.ok("tasks", "log", told["task"], "--follow") == "more\n"
    shown = cli.ok("tasks", "show", told["task"])
    assert "said last" in shown and f"holdfast sessions log {told['session']}" in shown


def test_a_detached_turn_is_reached_by_the_id_of_its_task(cli: CommandLine, gateway: GatewayProcess) -> None:
    session = gateway.create("slow 300 a b c")
    gateway.until_event(session, "ModelRequested")
    task = gateway.command("POST", f"/v1/sessions/{session}/detach", {})["task"]
    assert cli.json("send", task, "say and this")["session"] == session
    assert f"Turn 1 was made background task {task[:8]}" in cli.ok("sessions", "log", session)
    assert "Its agent has been working for" in cli.ok("why", task)
    assert "stopped" in cli.ok("tasks", "stop", task)


def test_a_message_to_a_command_is_refused(cli: CommandLine) -> None:
    task = start(cli, "sleep", "300")
    done = cli("send", task, "hello")
    assert (done.returncode, "is a command, not an agent" in done.stderr) == (5, True)
    assert cli("send", "ffff", "hello").returncode == 4
    stop = cli("stop", task)
    assert (stop.returncode, f"holdfast tasks stop {task}" in stop.stderr) == (4, True)


def test_stop_says_what_ends_with_the_turn_and_what_continues(cli: CommandLine, gateway: GatewayProcess) -> None:
    session = gateway.create("bg sleep 301\nsh sleep 302")
    tasks = until(lambda: _both(gateway, session), "both run")
    goes_on, ends = tasks["sleep 301"], tasks["sleep 302"]
    said = cli.ok("stop", session)
    assert f"ends with it:  process {ends[:8]} sleep 302" in said
    assert f"keeps running: process {goes_on[:8]} sleep 301" in said
    assert gateway.until_ended(ends)["state"] == "stopped"
    assert gateway.get(f"/v1/tasks/{goes_on}")["state"] == "running"


def _both(gateway: GatewayProcess, session: str) -> dict[str, str] | None:
    found = gateway.get("/v1/tasks", session=session, all="true", state="running")["tasks"]
    tasks = {task["title"]: str(task["id"]) for task in found if task["pid"] is not None}
    return tasks if len(tasks) == 2 else None


def test_the_transcript_distinguishes_notes_from_messages(cli: CommandLine, gateway: GatewayProcess) -> None:
    session = gateway.create("bg echo from the background")
    gateway.until_event(session, "NoteReceived")
    log = cli.ok("sessions", "log", session)
    task = gateway.get("/v1/tasks", session=session)["tasks"][0]["id"]
    assert f"· task {task}" in log
    assert f"note      The background command {task}" in log
    assert log.count("  you  ") == 1
    assert "## Note, " in cli.ok("sessions", "export", session)


def test_why_names_tasks_and_every_sentence_an_event(cli: CommandLine, gateway: GatewayProcess) -> None:
    task = start(cli, "sleep", "300")
    sentence = next(s for s in cli.json("why")["sentences"] if task in s["text"])
    assert sentence["stream"] == f"task/{task}"
    assert "has been running for" in cli.ok("why", task[:8])
    cli.ok("tasks", "stop", task)
    found = cli.json("why", task)
    assert found["subject"] == f"task {task}"
    records = {r["version"]: r for r in gateway.whole_log() if r["stream"] == f"task/{task}"}
    kinds = [records[s["version"]]["event"]["kind"] for s in found["sentences"]]
    assert kinds[:2] == ["TaskFinished", "TaskFinished"] and kinds[-1] == "TaskStarted"
    assert "TaskStopRequested" in kinds
    assert all(records[s["version"]]["at"] == s["at"] for s in found["sentences"])
    assert "none running" in cli.ok("status")


def test_all_clients_see_the_same_tasks(cli: CommandLine, gateway: GatewayProcess) -> None:
    """The agent's list, the command line and the API."""
    ids = {start(cli, "sleep", "300"), start(cli, "sleep", "301")}
    session = gateway.create("tasks")
    told = of_kind(gateway.until_rest(session), "ToolCallFinished")[0]["output"]
    assert {line.partition(",")[0] for line in told.splitlines()} == ids
    assert {task["id"] for task in cli.json("tasks")["tasks"]} == ids
    assert {task["id"] for task in _running(gateway)} == ids
    assert gateway.get("/v1/status")["tasks"] == 2
    assert "2 running (holdfast tasks)" in cli.ok("status")


def _running(gateway: GatewayProcess) -> list[Json]:
    return list(gateway.get("/v1/tasks", state="running")["tasks"])


def test_start_starts_a_gateway_when_none_runs(gateway: GatewayProcess, cli: CommandLine) -> None:
    gateway.terminate()
    done = cli("start", "--", "echo", "hi")
    assert "started a gateway" in done.stderr
    assert cli("tasks", "wait", done.stdout.strip()).returncode == 0
    cli.ok("shutdown")
    end_gateway(gateway.home)
    gateway.start()
