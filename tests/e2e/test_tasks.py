"""Commands that outlive the gateway, and the archive of everything that ran, on a real gateway."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.actors import by
from tests.e2e.gateway import GatewayProcess, Json, kinds, of_kind, until, wait_for
from tests.e2e.tasks import home_with_commands, marked, output, start, task, tasks_of, until_over

SLOW_TO_WRITE = {"tasks.soon": 3600.0}
"""The log does not know the process of a command that a turn waits for before its end."""


@pytest.fixture
def gateway(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[GatewayProcess]:
    with home_with_commands(tmp_path / "home", timings=getattr(request, "param", {})) as process:
        yield process.start()


def result(records: list[Json]) -> Json:
    (finished,) = of_kind(records, "ToolCallFinished")
    return finished


# --- in the foreground ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gateway", "end"), [(SLOW_TO_WRITE, "kill -9"), ({}, "goodbye")], indirect=["gateway"], ids=["kill -9", "goodbye"]
)
def test_promise_3_a_foreground_command_continues_and_the_turn_too(
    gateway: GatewayProcess, tmp_path: Path, end: str
) -> None:
    go = tmp_path / "go"
    session = gateway.create(f"sh echo begun >> marks; {wait_for(go)}; echo done; exit 3", cwd=tmp_path)
    until((tmp_path / "marks").exists, "the command runs")
    began = time.monotonic()
    (running,) = tasks_of(gateway, session)
    assert (running["state"], running["foreground"]) == ("running", True)
    if end == "kill -9":
        assert (running["pid"], running["activity"]) == (None, "starting")
        gateway.kill9()
    else:
        assert gateway.terminate() == 0
    assert marked(gateway.home), "the command is still there"
    gateway.start()
    ran = int((time.monotonic() - began) * 1000)
    go.touch()
    records = gateway.until_rest(session)
    assert result(records)["output"] == "done\n[failed: exit code 3]"
    assert result(records)["outcome"] == "done"
    assert result(records)["duration_ms"] >= ran, "counted from its beginning, not from the restart"
    (ended,) = tasks_of(gateway, session)
    assert (ended["exit_code"], ended["state"]) == (3, "failed")
    assert ended["pid"] is not None
    assert (tmp_path / "marks").read_text() == "begun\n", "it ran once"
    assert "NoteReceived" not in kinds(records), "whoever waited for it needs no note"


@pytest.mark.parametrize("gateway", [SLOW_TO_WRITE], indirect=True, ids=["slow to write"])
def test_promise_3_it_ended_while_nobody_was_there(gateway: GatewayProcess, tmp_path: Path) -> None:
    go = tmp_path / "go"
    session = gateway.create(f"sh touch up; {wait_for(go)}; echo alone > alone; echo told; kill -9 $$", cwd=tmp_path)
    until((tmp_path / "up").exists, "the command runs")
    gateway.kill9()
    go.touch()
    until(lambda: (tmp_path / "alone").exists() and not marked(gateway.home), "it ended by itself")
    records = gateway.start().until_rest(session)
    assert result(records)["output"] == "told\n[failed: killed by SIGKILL]"
    (ended,) = tasks_of(gateway, session)
    assert (ended["exit_code"], ended["signal"], ended["evidence"]) == (None, "SIGKILL", "recorded by its keeper")
    finished = next(r for r in gateway.whole_log() if r["event"]["kind"] == "TaskFinished")
    assert ended["finished_at"] == finished["event"]["ended_at"] < finished["at"], "when it ended, not when we saw it"


def test_the_short_output_of_a_foreground_command_is_in_the_log_and_nowhere_else(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    session = gateway.create("sh printf 'one\\ntwo'", cwd=tmp_path)
    gateway.until_rest(session)
    (ended,) = tasks_of(gateway, session)
    until(lambda: not (gateway.home / "tasks" / ended["id"]).exists(), "its directory is gone")
    assert output(gateway, ended["id"]) == b"one\ntwo"
    assert gateway.get("/v1/tasks")["tasks"] == [], "and it is in no list unless one asks for all"
    (kept,) = [record["event"] for record in gateway.whole_log() if record["event"].get("output")]
    assert (kept["kind"], kept["output"]) == ("ToolCallFinished", "one\ntwo\n[done: exit code 0]")
    gateway.command("DELETE", f"/v1/sessions/{session}", {})
    assert gateway.request("GET", f"/v1/tasks/{ended['id']}/output").status_code == 410, "it went with its session"


def test_an_output_that_its_call_does_not_have_word_for_word_stays_in_its_file(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    session = gateway.create("sh printf '\\033[1mbold\\033[0m'\nsh printf 'plain'", cwd=tmp_path)
    gateway.until_rest(session)
    plain, bold = tasks_of(gateway, session)
    until(lambda: not (gateway.home / "tasks" / plain["id"]).exists(), "its directory is gone")
    assert (gateway.home / "tasks" / bold["id"] / "output.log").read_bytes() == b"\033[1mbold\033[0m"


def test_a_long_output_is_bounded_for_the_model_and_whole_in_the_archive(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    session = gateway.create("sh seq 1 60000", cwd=tmp_path)
    told = result(gateway.until_rest(session))["output"]
    whole = "".join(f"{number}\n" for number in range(1, 60001))
    assert told.startswith("1\n2\n") and told.endswith("60000\n[done: exit code 0]") and len(told) < 40_000
    assert f"of {len(whole)} bytes left out" in told
    (ended,) = tasks_of(gateway, session)
    assert output(gateway, ended["id"]) == whole.encode()


def test_escape_sequences_do_not_reach_the_model(gateway: GatewayProcess, tmp_path: Path) -> None:
    session = gateway.create(r"sh printf '\033[31mred\033[0m \033]0;title\007 10%%\r20%%\n'", cwd=tmp_path)
    assert result(gateway.until_rest(session))["output"] == "20%\n[done: exit code 0]"
    (ended,) = tasks_of(gateway, session)
    shown = gateway.get(f"/v1/tasks/{ended['id']}/output")["text"]
    assert "\x1b[31mred\x1b[0m" in shown and "\x1b]" not in shown, "a screen gets colours and nothing else"


def test_a_stopped_turn_takes_its_command_with_it_and_leaves_the_others(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    session = gateway.create("bg sleep 60\nsh sleep 61", cwd=tmp_path)
    foreground = until(
        lambda: next((one for one in tasks_of(gateway, session) if one["foreground"] and one["pid"]), None), "both run"
    )
    gateway.command("POST", f"/v1/sessions/{session}/stop")
    gateway.until_rest(session)
    ended = until_over(gateway, foreground["id"])
    assert (ended["state"], ended["ended_by"]) == ("stopped", "the runtime (its turn ended)")
    (background,) = gateway.get("/v1/tasks")["tasks"]
    assert background["state"] == "running"


def test_a_command_whose_turn_was_stopped_while_nobody_was_there_is_ended(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    """The turn's end is in the log, and we are killed before the first signal."""
    gateway.kill9()
    gateway.timings["tasks.stop_grace"] = 3600.0
    gateway.start()
    session = gateway.create("sh trap '' TERM; echo up > up; while true; do sleep 0.1; done", cwd=tmp_path)
    until((tmp_path / "up").exists, "it runs")
    (running,) = tasks_of(gateway, session)
    gateway.command("POST", f"/v1/sessions/{session}/stop")
    gateway.until_rest(session)
    gateway.kill9()
    assert marked(gateway.home)
    gateway.timings["tasks.stop_grace"] = 0.1
    gateway.start()
    assert until_over(gateway, running["id"])["state"] == "stopped"


# --- in the background ------------------------------------------------------------------------------


def test_promise_3_the_archive_of_a_task_that_ended_three_restarts_ago(gateway: GatewayProcess, tmp_path: Path) -> None:
    id = start(gateway, "seq 1 1000; echo needle-in-the-middle; seq 1 1000; exit 7", cwd=tmp_path, name="the count")
    before = until_over(gateway, id)
    written = output(gateway, id)
    for number in range(3):
        if number % 2:
            gateway.terminate()
        else:
            gateway.kill9()
        gateway.start()
    assert task(gateway, id) == before
    assert (before["title"], before["state"], before["exit_code"], before["started_by"]) == (
        "the count",
        "failed",
        7,
        "api",
    )
    assert output(gateway, id) == written and b"needle" in written
    assert gateway.get(f"/v1/tasks/{id}/output", tail=2)["text"] == "999\n1000\n"
    hits = until(lambda: gateway.get("/v1/tasks/search", q="needle-in-the")["hits"], "it is indexed")
    assert [hit["task"] for hit in hits] == [id]
    plan = gateway.command("POST", "/v1/tasks/prune", {"state": "failed"})
    assert (plan["pruned"], plan["count"], plan["bytes"] > len(written)) == (False, 1, True), "with its events"
    assert task(gateway, id) == before, "a preview deletes nothing"
    done = gateway.command("POST", "/v1/tasks/prune", {"state": "failed", "confirm": True})
    assert (done["pruned"], done["count"], done["bytes"]) == (True, 1, plan["bytes"])
    assert gateway.request("GET", f"/v1/tasks/{id}").status_code == 410
    assert not (gateway.home / "tasks" / id).exists()
    until(lambda: gateway.get("/v1/tasks/search", q="needle-in-the")["hits"] == [], "nor is it found any more")


def test_all_clients_see_the_same_processes(gateway: GatewayProcess, tmp_path: Path) -> None:
    server = (
        "python3 -u -c 'import socket,time; s=socket.socket(); s.bind((\"127.0.0.1\",0)); s.listen(); time.sleep(60)'"
    )
    first = gateway.create(f"bg {server}", cwd=tmp_path)
    gateway.until_rest(first)
    start(gateway, "sleep 60", cwd=tmp_path)

    def told_apart() -> list[Json] | None:
        found: list[Json] = gateway.get("/v1/tasks", state="running")["tasks"]
        return found if {one["activity"] for one in found} == {"serving", "idle"} else None

    seen = until(told_apart, "both are told apart")
    listing = gateway.create("tasks", cwd=tmp_path)
    told = result(gateway.until_rest(listing))["output"]
    lines = {line.partition(",")[0]: line for line in told.splitlines()}
    assert set(lines) == {one["id"] for one in seen}
    for one in seen:
        assert one["activity"] in lines[one["id"]] and f"pid {one['pid']}" in lines[one["id"]]
        assert "(of another session)" in lines[one["id"]]
    gateway.send(first, "tasks")
    own = gateway.until_event(first, "TurnFinished", count=2)
    assert of_kind(own, "ToolCallFinished")[-1]["output"].splitlines()[0].startswith(seen[-1]["id"]), "its own first"


def test_a_tree_is_ended_as_a_whole_and_reported_once(gateway: GatewayProcess, tmp_path: Path) -> None:
    session = gateway.create("bg (setsid sleep 70 &); (setsid sleep 71 &); echo up; sleep 72", cwd=tmp_path)
    gateway.until_rest(session)
    (running,) = gateway.get("/v1/tasks")["tasks"]
    until(lambda: len(marked(gateway.home)) >= 3, "all of it runs")
    gateway.kill9()
    gateway.start()
    gateway.command("POST", f"/v1/tasks/{running['id']}/stop", {"force": True}, key="stop-it-now")
    gateway.command("POST", f"/v1/tasks/{running['id']}/stop", {"force": True}, key="stop-it-now")
    ended = until_over(gateway, running["id"])
    assert (ended["state"], ended["ended_by"], ended["signal"]) == ("stopped", "api (by force)", "SIGKILL")
    until(lambda: not marked(gateway.home), "nobody is left")
    (note,) = of_kind(gateway.events(session), "NoteReceived")
    assert note["task"] == running["id"] and "ended as stopped: stopped by api (by force)" in note["text"]
    again = gateway.request("POST", f"/v1/tasks/{running['id']}/stop", json={})
    assert (again.status_code, "has already ended" in again.text) == (409, True)
    gateway.send(session, "count")
    gateway.until_event(session, "TurnFinished", count=2)
    context = gateway.get(f"/v1/sessions/{session}/context")["messages"]
    assert [message["text"] for message in context].count(note["text"]) == 1, "the model hears of it in its next turn"


def test_what_is_typed_reaches_a_command_that_waits_for_it(gateway: GatewayProcess, tmp_path: Path) -> None:
    id = start(gateway, "read name; echo hello $name; cat; echo end", cwd=tmp_path, stdin=True)
    gateway.command("POST", f"/v1/tasks/{id}/write", {"text": "you\n"})
    until(lambda: output(gateway, id) == b"hello you\n", "it answers")
    gateway.kill9()
    gateway.start()
    gateway.command("POST", f"/v1/tasks/{id}/write", {"text": "still here\n", "close": True})
    assert until_over(gateway, id)["exit_code"] == 0
    assert output(gateway, id) == b"hello you\nstill here\nend\n"
    plain = start(gateway, "sleep 30", cwd=tmp_path)
    assert gateway.request("POST", f"/v1/tasks/{plain}/write", json={"text": "x"}).status_code == 400


def test_files_that_a_command_changed_are_known_where_there_is_git(gateway: GatewayProcess, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    plain = start(gateway, "echo", cwd=work)
    assert until_over(gateway, plain)["files"] is None, "not known, and not none"
    prepare = (
        "git init -q . && echo a > a && echo b > b && git add . && git -c user.name=x -c user.email=x commit -qm one"
    )
    until_over(gateway, start(gateway, prepare, cwd=work))
    (work / "dirty").write_text("before")
    id = start(gateway, "echo more >> a; echo new > c; rm b", cwd=work)
    assert until_over(gateway, id)["files"] == ["a", "b", "c"]

    until_over(gateway, start(gateway, "git add . && git -c user.name=x -c user.email=x commit -qm two", cwd=work))
    found = gateway.get(f"/v1/tasks/{id}/diff")
    changes = [(file["path"], file["change"], file["added"], file["removed"]) for file in found["files"]]
    assert changes == [("a", "changed", 1, 0), ("b", "deleted", 0, 1), ("c", "added", 1, 0)], "also after a commit"
    assert "+more\n" in found["diff"] and "dirty" not in found["diff"]
    assert "at which it began" in found["compared_with"]
    unknown = gateway.get(f"/v1/tasks/{plain}/diff")
    assert (unknown["files"], unknown["compared_with"]) == ([], "which files it changed is not known")


# --- lifetimes --------------------------------------------------------------------------------------


def test_a_command_ends_with_its_session_or_continues_by_its_lifetime(gateway: GatewayProcess, tmp_path: Path) -> None:
    sessions = [gateway.create("bg sleep 60", cwd=tmp_path) for _ in range(2)]
    for session in sessions:
        gateway.until_rest(session)
    own = {session: tasks_of(gateway, session)[0]["id"] for session in sessions}
    persistent = start(gateway, "sleep 60", cwd=tmp_path, session=sessions[0])
    refused = gateway.request("POST", f"/v1/sessions/{sessions[0]}/archive", json={})
    assert refused.status_code == 409 and own[sessions[0]] in refused.text, "whoever archives says what becomes of it"
    gateway.command("POST", f"/v1/sessions/{sessions[0]}/archive", {"running": "keep"})
    gateway.command("DELETE", f"/v1/sessions/{sessions[1]}", {"running": "stop"})
    deleted = until_over(gateway, own[sessions[1]])
    assert deleted["state"] == "stopped" and "its session was deleted" in deleted["ended_by"]
    assert [task(gateway, id)["state"] for id in (own[sessions[0]], persistent)] == ["running", "running"]


def test_a_command_ends_when_its_time_is_over_also_after_a_restart(gateway: GatewayProcess, tmp_path: Path) -> None:
    soon = int(time.time() * 1000) + 1_000
    id = start(gateway, "sleep 60", cwd=tmp_path, lifetime="until", until=soon)
    gateway.kill9()
    gateway.start()
    ended = until_over(gateway, id)
    assert (ended["state"], ended["ended_by"]) == ("stopped", "the runtime (its time limit had passed)")
    assert ended["finished_at"] >= soon


# --- agents -----------------------------------------------------------------------------------------


def test_a_delegated_prompt_is_a_session_of_its_own_and_its_end_is_reported_once(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    session = gateway.create("delegate write made.txt hello\nsay on", cwd=tmp_path)
    parent = gateway.until_event(session, "TurnFinished", count=2)
    (child,) = gateway.get("/v1/tasks", kind="agent")["tasks"]
    assert (child["state"], child["session"], child["worker"]) == ("done", session, child["id"])
    assert (child["files"], gateway.session(child["id"])["task"]) == (["made.txt"], child["id"])
    (told,) = (event for event in of_kind(parent, "InputReceived") if event["ref"] == child["id"])
    assert "Files changed: made.txt" in told["text"]
    directory = gateway.home / "tasks" / child["id"]
    until((directory / "summary.txt").exists, "its files are there")
    assert (directory / "summary.txt").read_text() == child["summary"]
    logged = [json.loads(line)["event"] for line in (directory / "log.jsonl").read_text("utf-8").splitlines()]
    answers = [event for event in logged if event["kind"] == "ModelResponded"]
    assert "made.txt" in answers[0]["calls"][0]["arguments"]
    assert [event["tool"] for event in logged if event["kind"] == "ToolCallFinished"] == ["write"]
    assert answers[-1]["text"] == child["summary"]
    words = child["summary"].strip()[:30]
    hits = until(lambda: gateway.get("/v1/tasks/search", q=words)["hits"], "what the agent said is found")
    assert child["id"] in [hit["task"] for hit in hits]
    gateway.send(child["id"], "say once more")
    again = until(
        lambda: found if (found := task(gateway, child["id"]))["summary"] == "once more" else None, "it went on"
    )
    assert again["state"] == "done"
    gateway.until_event(session, "TurnFinished", count=3)


def test_a_delegated_prompt_is_worked_on_also_when_its_session_is_gone(gateway: GatewayProcess, tmp_path: Path) -> None:
    go = tmp_path / "go"
    session = gateway.create(f"delegate sh {wait_for(go)}", cwd=tmp_path)
    gateway.until_event(session, "TurnFinished")
    (child,) = gateway.get("/v1/tasks", kind="agent")["tasks"]
    assert (child["state"], child["lifetime"]) == ("running", "persist")
    gateway.command("DELETE", f"/v1/sessions/{session}", {"running": "keep"})
    go.touch()
    assert until_over(gateway, child["id"])["summary"] == "terminal done: [done: exit code 0]"


def test_a_running_turn_becomes_a_task_where_it_is(gateway: GatewayProcess, tmp_path: Path) -> None:
    session = gateway.create("hang\nwrite it.txt x", cwd=tmp_path)
    gateway.until_event(session, "ModelRequested")
    accepted = gateway.command("POST", f"/v1/sessions/{session}/detach", key="detach-this-turn")
    again = gateway.command("POST", f"/v1/sessions/{session}/detach", key="detach-this-turn")
    assert (again["task"], again["duplicate"]) == (accepted["task"], True)
    refused = gateway.request("POST", f"/v1/sessions/{session}/detach", json={})
    assert (refused.status_code, accepted["task"] in refused.text) == (409, True)
    gateway.kill9()
    gateway.start_and_let_go()
    ended = until_over(gateway, accepted["task"])
    assert (ended["state"], ended["kind"], ended["worker"], ended["files"]) == ("done", "agent", session, ["it.txt"])
    gateway.send(session, "say next")
    gateway.until_event(session, "TurnFinished", count=2)
    assert task(gateway, accepted["task"]) == ended, "only that turn was the task"
    nothing = gateway.request("POST", f"/v1/sessions/{session}/detach", json={})
    assert (nothing.status_code, "No turn is running" in nothing.text) == (409, True)


def test_files_that_an_agent_changed_are_known_or_said_not_to_be(gateway: GatewayProcess, tmp_path: Path) -> None:
    def files(prompt: str, cwd: Path) -> list[str] | None:
        id = gateway.command("POST", "/v1/tasks/agents", {"prompt": prompt, "cwd": str(cwd)})["task"]
        found: list[str] | None = until_over(gateway, id)["files"]
        return found

    bare, work = tmp_path / "bare", tmp_path / "work"
    bare.mkdir()
    work.mkdir()
    assert files("write a.txt x\nread a.txt", bare) == ["a.txt"]
    assert files("write a.txt y\nsh echo z > b.txt", bare) == ["a.txt"], "nobody watched the command"
    until_over(gateway, start(gateway, "git init -q .", cwd=work))
    assert files("write a.txt y\nsh echo z > b.txt", work) == ["a.txt", "b.txt"]
    until(lambda: not list((gateway.home / "tasks").glob(".before-*")), "what was noted down before is gone")


def test_an_agent_task_is_stopped_by_stopping_its_turn(gateway: GatewayProcess, tmp_path: Path) -> None:
    accepted = gateway.command("POST", "/v1/tasks/agents", {"prompt": "slow 60 a b c", "cwd": str(tmp_path)})
    gateway.until_event(accepted["task"], "ModelRequested")
    gateway.command("POST", f"/v1/tasks/{accepted['task']}/stop", {})
    assert until_over(gateway, accepted["task"])["state"] == "stopped"


# --- bad input --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"argv": ["no-such-program"]}, "No such file"),
        ({"argv": ["/etc/passwd"]}, "Permission denied"),
        ({"argv": ["/bin/true", "x" * 1_000_000]}, "Argument list too long"),
    ],
    ids=["not found", "not executable", "too long"],
)
def test_what_cannot_be_started_is_a_failed_task_with_the_reason(
    gateway: GatewayProcess, tmp_path: Path, body: Json, reason: str
) -> None:
    id = gateway.command("POST", "/v1/tasks", body | {"cwd": str(tmp_path)})["task"]
    ended = until_over(gateway, id)
    assert (ended["state"], ended["exit_code"], ended["pid"]) == ("failed", None, None)
    assert ended["reason"].startswith("never started: ") and reason in ended["reason"]


def test_a_start_that_makes_no_sense_is_refused(gateway: GatewayProcess, tmp_path: Path) -> None:
    wrong: list[tuple[Json, int]] = [
        ({}, 400),
        ({"shell": "true", "argv": ["true"]}, 400),
        ({"shell": "true", "cwd": "/no/such/place"}, 400),
        ({"shell": "true", "lifetime": "until"}, 400),
        ({"shell": "true", "until": 5}, 400),
        ({"shell": "true", "session": "ffff"}, 404),
        ({"shell": "true", "env": {"A=B": "c"}}, 400),
        ({"shell": "tr\0ue"}, 400),
    ]
    for body, status in wrong:
        answer = gateway.request("POST", "/v1/tasks", json={"cwd": str(tmp_path)} | body)
        assert (body, answer.status_code) == (body, status)
    assert gateway.get("/v1/tasks", all="true")["tasks"] == []


def test_the_same_command_id_starts_once(gateway: GatewayProcess, tmp_path: Path) -> None:
    body = {"shell": "echo x >> ran", "cwd": str(tmp_path)}
    first = gateway.command("POST", "/v1/tasks", body, key="start-just-once")
    until_over(gateway, first["task"])
    second = gateway.command("POST", "/v1/tasks", body, key="start-just-once")
    assert (second["task"], second["duplicate"]) == (first["task"], True)
    assert (tmp_path / "ran").read_text() == "x\n"


def test_what_a_command_makes_is_not_closed_like_the_home(gateway: GatewayProcess, tmp_path: Path) -> None:
    until_over(gateway, start(gateway, "echo x > made", cwd=tmp_path))
    before = os.umask(0o022)
    os.umask(before)
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o666 & ~before


def test_keys_are_not_in_the_environment_of_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with home_with_commands(tmp_path / "home") as gateway:
        gateway.start()
        id = start(gateway, "env", cwd=tmp_path)
        until_over(gateway, id)
        names = {line.partition(b"=")[0] for line in output(gateway, id).splitlines()}
        assert b"PATH" in names and not names & {b"OPENAI_API_KEY", b"ANTHROPIC_API_KEY", b"HOLDFAST_HOME"}
        told = start(gateway, "echo $GREETING-$PATH", cwd=tmp_path, env={"GREETING": "hi"})
        until_over(gateway, told)
        assert output(gateway, told).startswith(b"hi-")
        everything = b"".join(path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file())
        assert b"GREETING=" not in everything.replace(b"$GREETING", b"")


def test_a_key_that_a_command_prints_is_in_its_output_and_not_in_the_log(tmp_path: Path) -> None:
    """Any variable can be named as a key; the command must not have it in its words."""
    key, home = os.environ["PATH"], tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text('[providers.mine]\nwire = "openai"\napi_key_env = "PATH"\n')
    with home_with_commands(home) as gateway:
        gateway.start()
        id = start(gateway, f"printf %s%s '{key[:4]}' '{key[4:]}'", cwd=tmp_path)
        assert until_over(gateway, id)["preview"] == "[hidden: the value of PATH]"
        assert output(gateway, id) == key.encode()
        assert not [record for record in gateway.whole_log() if key in str(record)]


# --- pruning ----------------------------------------------------------------------------------------


def test_promise_6_a_prune_that_is_killed_in_the_middle_is_finished_at_the_next_start(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    ids = [start(gateway, f"echo {number}", cwd=tmp_path) for number in range(3)]
    for id in ids:
        until_over(gateway, id)
    gateway.command("POST", f"/v1/tasks/{ids[0]}/pin", {})
    running = start(gateway, "sleep 60", cwd=tmp_path)
    kept = gateway.home / "tasks" / ids[1]
    copy = {path.name: path.read_bytes() for path in kept.iterdir()}
    done = gateway.command("POST", "/v1/tasks/prune", {"confirm": True})
    assert {one["id"] for one in done["tasks"]} == set(ids[1:]), "neither what is pinned nor what runs"
    gateway.kill9()
    kept.mkdir(mode=0o700)  # as if it had been killed after the event and before the files
    for name, data in copy.items():
        (kept / name).write_bytes(data)
    gateway.start()
    until(lambda: not kept.exists(), "the files of a pruned task are gone")
    assert gateway.request("GET", f"/v1/tasks/{ids[1]}").status_code == 410
    assert (task(gateway, ids[0])["pinned"], task(gateway, running)["state"]) == (True, "running")
    assert output(gateway, ids[0]) == b"0\n"


def test_retention_is_off_unless_a_rule_says_so_and_is_named(gateway: GatewayProcess, tmp_path: Path) -> None:
    ids = [start(gateway, f"echo {number}", cwd=tmp_path) for number in range(3)]
    for id in ids:
        until_over(gateway, id)
    gateway.kill9()
    gateway.timings["lifecycle.first_retention"] = 0.1
    gateway.start()
    assert len(gateway.get("/v1/tasks")["tasks"]) == 3
    gateway.kill9()
    (gateway.home / "config.toml").write_text("[retention]\ntasks_count = 1\n")
    gateway.start()
    until(lambda: len(gateway.get("/v1/tasks")["tasks"]) == 1, "the rule was applied")
    pruned = of_kind(gateway.whole_log(), "TaskPruned")
    assert {by(event) for event in pruned} == {"the retention rule tasks_count = 1"}
