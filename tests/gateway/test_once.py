"""A request that is repeated under the same key gets the first answer, and has no second effect."""

from __future__ import annotations

from collections import Counter
from functools import partial

from holdfast.gateway.state import ANSWERS_KEPT, OncePerKey
from holdfast.schemas.tasks import WriteResult
from holdfast.store.contract import CommandKey
from tests.e2e.board import create_card, until_card
from tests.e2e.gateway import GatewayProcess, until


def test_a_repeated_write_types_once(gateway: GatewayProcess) -> None:
    task = gateway.command("POST", "/v1/tasks", {"shell": "cat", "stdin": True})["task"]
    until(lambda: gateway.get(f"/v1/tasks/{task}")["pid"], "it runs")
    first = gateway.command("POST", f"/v1/tasks/{task}/write", {"text": "one\n"}, key="typed-once-1")
    again = gateway.command("POST", f"/v1/tasks/{task}/write", {"text": "one\n"}, key="typed-once-1")
    assert first == again == {"bytes": 4, "of": 4}
    other = gateway.request("POST", f"/v1/tasks/{task}/write", json={"text": "two\n"}, key="typed-once-1")
    assert other.status_code == 409
    gateway.command("POST", f"/v1/tasks/{task}/write", {"text": "end\n", "close": True}, key="typed-once-2")
    gateway.until_ended(task)
    assert gateway.get(f"/v1/tasks/{task}/output")["text"] == "one\nend\n"


def test_a_prune_counts_the_events_and_the_files_of_a_task_too(gateway: GatewayProcess) -> None:
    task = gateway.command("POST", "/v1/tasks", {"shell": "echo hello"})["task"]
    ended = gateway.until_ended(task)
    would_go = gateway.command("POST", "/v1/tasks/prune", {"keep_last": 0})
    events = sum(len(str(record)) for record in gateway.get(f"/v1/tasks/{task}/events")["events"])
    others = would_go["count"] - 1
    assert ended["output_bytes"] == len("hello\n")
    assert would_go["bytes"] > events / 2 + others


def test_a_repeated_stop_gets_the_first_answer_whatever_the_task_is(gateway: GatewayProcess) -> None:
    command = gateway.command("POST", "/v1/tasks", {"shell": "sleep 60"})["task"]
    agent = gateway.command("POST", "/v1/tasks/agents", {"prompt": "slow 60 a b c"})["task"]
    card = until_card(gateway, create_card(gateway, "slow 60 a b c", profile="demo"), "running")
    for task in (command, agent, card["runs"][0]["task"]):
        stop, key = f"/v1/tasks/{task}/stop", f"stop-once-{task}"
        until(lambda task=task: state_of(gateway, task) == "running", "it runs")  # type: ignore[misc]
        first = gateway.command("POST", stop, {}, key=key)
        assert not first["duplicate"] and first["task"] == task
        assert gateway.command("POST", stop, {}, key=key) == first | {"duplicate": True}, "while it ends"
        until(lambda task=task: state_of(gateway, task) == "stopped", "it ends")  # type: ignore[misc]
        assert gateway.command("POST", stop, {}, key=key) == first | {"duplicate": True}, "and when it has ended"
        assert gateway.request("POST", stop, json={"force": True}, key=key).status_code == 409
        assert gateway.request("POST", stop, json={}, key=f"{key}-again").status_code == 409


def state_of(gateway: GatewayProcess, task: str) -> str:
    return str(gateway.get(f"/v1/tasks/{task}")["state"])


async def test_answers_are_kept_for_the_last_keys_only_so_that_a_gateway_does_not_grow() -> None:
    answers, acted = OncePerKey(), Counter[str]()

    async def act(id: str) -> WriteResult:
        acted[id] += 1
        return WriteResult(bytes=1, of=1)

    ids = [f"key-{number}" for number in range(ANSWERS_KEPT + 1)]
    for id in (*ids, ids[-1], ids[1], ids[0]):
        await answers.once(CommandKey(id, "digest"), partial(act, id))
    assert [acted[id] for id in (ids[0], ids[1], ids[-1])] == [2, 1, 1]
