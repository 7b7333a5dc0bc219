"""External agents on the board, end to end: a real gateway, real processes, and the tools of the board over MCP."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.agents.life import CLI, config
from tests.e2e.agents import answer, end_agents, running_agents, waiting
from tests.e2e.board import create_card, detail, tell_card, until_card
from tests.e2e.gateway import GatewayProcess, Json, check_whole, of_kind, until

DONE = '!tool kanban_complete {"summary": "all is well"}'


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    memory, home = tmp_path / "memory", tmp_path / "home"
    memory.mkdir()
    home.mkdir(mode=0o700)
    settings = config(f"memory={memory}") + config(f"memory={memory}", "amnesia").replace("scripted]", "forgetful]")
    settings += config("no-tools").replace("scripted]", "without_tools]")
    (tmp_path / "login").write_text("no")
    settings += config(f"memory={memory}", f"login={tmp_path / 'login'}").replace("scripted]", "logged_out]")
    argv = ["env", f"SCRIPTED_HOME={memory}", sys.executable, "-I", "-S", str(CLI)]
    for name, agent, format in (("cli", "claude", "claude"), ("plain", "", "text")):
        settings += f'[profiles.{name}]\ndriver = "command"\nagent = "{agent}"\nargv = {json.dumps([*argv, format])}\n'
    settings += "unrestricted = true\n"  # of the last one: nothing is known of a plain program
    (home / "config.toml").write_text(settings)
    with GatewayProcess(home) as gateway:
        gateway.start()
        yield gateway
        end_agents(gateway)


def start_again(gateway: GatewayProcess) -> None:
    """At the same address, as a gateway of a person does."""
    port = httpx.URL(gateway.url).port
    gateway.kill9()
    gateway.start(port)


def add(gateway: GatewayProcess, *lines: str, profile: str = "scripted", resume: str = "auto") -> str:
    return create_card(gateway, "\n".join(lines), profile=profile, resume=resume)


def session_of(gateway: GatewayProcess, card: str) -> str:
    runs = until(lambda: detail(gateway, card)["runs"], "a run began")
    return str(runs[-1]["session"])


def said(gateway: GatewayProcess, session: str) -> str:
    return "".join(event["text"] for event in of_kind(gateway.events(session), "ModelResponded"))


def call(server: Json, tool: str, **arguments: Any) -> httpx.Response:
    headers = {header["name"]: header["value"] for header in server["headers"]}
    headers["Accept"] = "application/json, text/event-stream"
    params = {"name": tool, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return httpx.post(str(server["url"]), json=body, headers=headers, timeout=60)


def test_it_completes_its_card_without_asking_for_the_tools(gateway: GatewayProcess) -> None:
    card = add(gateway, "!tool kanban_show", '!tool kanban_heartbeat {"note": "half"}', DONE, "!say that was it")
    found = until_card(gateway, card, "done", "blocked")
    assert (found["card"]["status"], found["summary"]) == ("done", "all is well")
    session = session_of(gateway, card)
    records = gateway.until_rest(session)
    check_whole(records)
    assert "that was it" in said(gateway, session)
    assert not of_kind(records, "WaitOpened")
    assert [run["outcome"] for run in found["runs"]] == ["done"]


def test_promise_1_the_gateway_is_killed_while_a_permission_is_open(gateway: GatewayProcess) -> None:
    card = add(gateway, "!ask a deploy it", DONE)
    wait = waiting(gateway)
    session = session_of(gateway, card)
    start_again(gateway)
    assert waiting(gateway)["id"] == wait["id"]
    assert answer(gateway, wait["id"], "allow") == 202
    found = until_card(gateway, card, "done", "blocked")
    assert found["summary"] == "all is well"
    assert [(run["session"], run["outcome"]) for run in found["runs"]] == [(session, "done")]
    records = gateway.until_rest(session)
    check_whole(records)
    assert len(of_kind(records, "WaitAnswered")) == len(of_kind(records, "AgentAttached")) == 1


def test_a_card_waits_for_a_log_in_and_continues_in_the_same_run(gateway: GatewayProcess, tmp_path: Path) -> None:
    card = add(gateway, DONE, profile="logged_out")
    wait = waiting(gateway)
    assert wait["purpose"] == "login" and detail(gateway, card)["card"]["status"] == "running"
    start_again(gateway)
    assert waiting(gateway)["id"] == wait["id"]
    assert answer(gateway, wait["id"], "try again") == 202
    again = until(lambda: found if (found := waiting(gateway))["id"] != wait["id"] else None, "it asks again")
    (tmp_path / "login").write_text("yes")
    assert answer(gateway, again["id"], "try again") == 202
    found = until_card(gateway, card, "done", "blocked")
    assert found["summary"] == "all is well" and [run["outcome"] for run in found["runs"]] == ["done"]


def test_a_block_a_comment_and_the_same_session_again(gateway: GatewayProcess) -> None:
    card = add(gateway, "The word is PLUM.", '!tool kanban_block {"reason": "which one?"}')
    until_card(gateway, card, "blocked")
    session = session_of(gateway, card)
    gateway.until_rest(session)
    tell_card(gateway, card, "unblock", {"text": f"the blue one\n!remember\n{DONE}"})
    found = until_card(gateway, card, "done")
    assert [(run["session"], run["outcome"]) for run in found["runs"]] == [(session, "blocked"), (session, "done")]
    gateway.until_rest(session)
    first, second = of_kind(gateway.events(session), "AgentAttached")
    assert (second["how"], second["context"], second["remote"]) == ("resume", "proven", first["remote"])
    assert (first["run"], second["run"]) == (1, 2)
    assert "The word is PLUM." in said(gateway, session), "it remembers the first run by itself"
    ended = gateway.get(f"/v1/tasks/{first['task']}")
    assert ended["state"] == "stopped" and "another process" in ended["reason"]


def test_promise_2_the_token_is_invalid_after_its_run(gateway: GatewayProcess, tmp_path: Path) -> None:
    file = tmp_path / "server"
    card = add(gateway, f"!server {file}", '!tool kanban_block {"reason": "which one?"}')
    until_card(gateway, card, "blocked")
    [server] = json.loads(file.read_text())
    for tool, arguments in (
        ("kanban_list", {}),
        ("kanban_show", {}),
        ("kanban_comment", {"card": card, "text": "I am back"}),
        ("kanban_create", {"title": "another one"}),
        ("kanban_heartbeat", {"note": "still here"}),
    ):
        result = call(server, tool, **arguments).json()["result"]
        assert result["isError"] and "run is over" in result["content"][0]["text"], tool
    again = call(server, "kanban_complete", summary="done after all").json()["result"]
    assert "already stored" in again["content"][0]["text"]
    found = detail(gateway, card)
    assert found["card"]["status"] == "blocked" and not found["comments"]
    assert len(gateway.get("/v1/cards")["cards"]) == 1
    tell_card(gateway, card, "unblock", {"text": "!hang"})
    until_card(gateway, card, "running")
    result = call(server, "kanban_complete", summary="by the run before").json()["result"]
    assert detail(gateway, card)["card"]["status"] == "running", "the token of run 1 does not end run 2"


def test_the_token_opens_nothing_else_and_others_do_not_open_it(gateway: GatewayProcess, tmp_path: Path) -> None:
    file = tmp_path / "server"
    add(gateway, f"!server {file}", "!hang")
    [server] = until(lambda: json.loads(file.read_text()) if file.exists() and file.stat().st_size else None, "given")
    [header] = server["headers"]
    own = {header["name"]: header["value"]}
    for path in ("/v1/sessions", "/v1/status", "/metrics", "/v1/inbox"):
        assert httpx.get(f"{gateway.url}{path}", headers=own).status_code == 401
    for wrong in (gateway.token, header["value"][7:-1] + "x", header["value"][7:].replace("_1_", "_2_"), "x"):
        refused = call({**server, "headers": [{"name": "Authorization", "value": f"Bearer {wrong}"}]}, "kanban_show")
        assert refused.status_code == 401, wrong
    page = [*server["headers"], {"name": "Origin", "value": "http://evil.example"}]
    assert call({**server, "headers": page}, "kanban_show").status_code == 403
    assert httpx.get(server["url"], headers=own).status_code == 405
    assert "a card" in call(server, "kanban_show").json()["result"]["content"][0]["text"]


def test_a_report_is_stored_once_however_often_it_is_sent(gateway: GatewayProcess, tmp_path: Path) -> None:
    file = tmp_path / "server"
    card = add(gateway, f"!server {file}", "!hang")
    [server] = until(lambda: json.loads(file.read_text()) if file.exists() and file.stat().st_size else None, "given")
    for _ in range(2):
        assert not call(server, "kanban_create", title="a part of it").json()["result"]["isError"]
    assert len(gateway.get("/v1/cards")["cards"]) == 2
    assert "is done" in call(server, "kanban_complete", summary="first").json()["result"]["content"][0]["text"]
    assert "already" in call(server, "kanban_block", reason="second").json()["result"]["content"][0]["text"]
    found = detail(gateway, card)
    assert (found["card"]["status"], found["summary"]) == ("done", "first")


def test_what_needs_an_approval_is_refused_with_a_reason(gateway: GatewayProcess) -> None:
    card = add(gateway, '!tool kanban_create {"title": "for others", "profile": "without_tools"}', DONE)
    until_card(gateway, card, "done")
    session = session_of(gateway, card)
    gateway.until_rest(session)
    assert "A person must allow kanban_create for the profile 'without_tools'" in said(gateway, session)
    assert len(gateway.get("/v1/cards")["cards"]) == 1


def test_a_worker_that_ends_without_result_is_reminded(gateway: GatewayProcess) -> None:
    card = add(gateway, "!say I am done, I think")
    session = session_of(gateway, card)
    gateway.until_event(session, "RunReleased")
    [run, *_] = detail(gateway, card)["runs"]
    assert run["outcome"] == "failed" and "was reminded and still did not" in run["reason"]
    assert [event["source"] for event in of_kind(gateway.events(session), "InputReceived")][:2] == ["run", "reminder"]


def test_one_without_tools_over_http_blocks_its_card(gateway: GatewayProcess) -> None:
    card = add(gateway, DONE, profile="without_tools")
    found = until_card(gateway, card, "blocked")
    assert "cannot work on a card" in found["card"]["reason"]


def test_one_that_was_killed_is_resumed_in_the_same_run(gateway: GatewayProcess, tmp_path: Path) -> None:
    card = add(gateway, "The word is PLUM.", f"!touch {tmp_path}/begun", "!hang")
    until((tmp_path / "begun").exists, "it works")
    tell_card(gateway, card, "comments", {"text": f"!remember\n{DONE}"})
    [pid] = running_agents(gateway)
    os.killpg(pid, signal.SIGKILL)
    found = until_card(gateway, card, "done", "blocked")
    assert [run["outcome"] for run in found["runs"]] == ["done"]
    session = session_of(gateway, card)
    gateway.until_rest(session)
    first, second = of_kind(gateway.events(session), "AgentAttached")
    assert (second["remote"], second["context"], second["run"]) == (first["remote"], "proven", 1)
    assert "The word is PLUM." in said(gateway, session)


def test_an_agent_that_forgot_gets_an_account_and_with_the_policy_resume_the_card_is_blocked(
    gateway: GatewayProcess,
) -> None:
    block = '!tool kanban_block {"reason": "which one?"}'
    card = add(gateway, "The word is PLUM.", block, profile="forgetful", resume="resume")
    until_card(gateway, card, "blocked")
    gateway.until_rest(session_of(gateway, card))
    tell_card(gateway, card, "unblock", {"text": "the blue one"})
    reason = until(
        lambda: found["reason"] if "remember" in (found := detail(gateway, card)["card"])["reason"] else None, "blocked"
    )
    assert "does not remember what the run before did" in reason
    other = add(gateway, "The word is PLUM.", block, profile="forgetful")
    until_card(gateway, other, "blocked")
    session = session_of(gateway, other)
    gateway.until_rest(session)
    tell_card(gateway, other, "unblock", {"text": f"the blue one\n{DONE}"})
    found = until_card(gateway, other, "done")
    assert len({run["session"] for run in found["runs"]}) == 1
    *_, last = of_kind(gateway.events(session), "AgentAttached")
    assert last["context"] == "unproven"
    sent = (gateway.home / "tasks" / last["task"] / "stdin").read_text()
    assert "You do not remember this conversation" in sent and "PLUM" in sent


def test_a_fresh_run_begins_when_the_old_process_is_gone(gateway: GatewayProcess) -> None:
    card = add(gateway, '!tool kanban_block {"reason": "which one?"}')
    until_card(gateway, card, "blocked")
    first = session_of(gateway, card)
    gateway.until_rest(first)
    (attached,) = of_kind(gateway.events(first), "AgentAttached")
    gateway.command("PATCH", f"/v1/cards/{card}", {"body": DONE})
    tell_card(gateway, card, "unblock", {"fresh": True})
    found = until_card(gateway, card, "done")
    assert found["runs"][1]["session"] != first
    ended = gateway.get(f"/v1/tasks/{attached['task']}")
    assert ended["state"] == "stopped" and ended["finished_at"] <= found["runs"][1]["started_at"]


def test_a_command_line_agent_blocks_is_resumed_and_completes(gateway: GatewayProcess) -> None:
    card = add(gateway, "The word is PLUM.", '!tool kanban_block {"reason": "which one?"}', profile="cli")
    until_card(gateway, card, "blocked")
    session = session_of(gateway, card)
    gateway.until_rest(session)
    tell_card(gateway, card, "unblock", {"text": f"the blue one\n!remember\n{DONE}"})
    found = until_card(gateway, card, "done")
    assert [(run["session"], run["outcome"]) for run in found["runs"]] == [(session, "blocked"), (session, "done")]
    records = gateway.until_rest(session)
    assert "The word is PLUM." in said(gateway, session), "it remembers the first run by itself"
    stored = json.dumps(records) + (gateway.home / "logs" / "gateway.log").read_text()
    tasks = gateway.get("/v1/tasks", kind="process")["tasks"]
    stored += json.dumps([gateway.get(f"/v1/tasks/{row['id']}") for row in tasks])
    assert "hfrun_" not in stored, "the token is in no log and in no command line"


def test_a_command_line_agent_without_tools_blocks_its_card(gateway: GatewayProcess) -> None:
    card = add(gateway, "!say done", profile="plain")
    found = until_card(gateway, card, "blocked")
    assert "it has no tools to report with" in found["card"]["reason"]
