"""Two gateways on one PostgreSQL: commands stay on the node where they run, and every node knows of them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from tests.e2e.gateway import GatewayProcess, Json, of_kind, until
from tests.e2e.tasks import home_with_commands, start, task, until_over
from tests.postgres_server import shared_server

TIMINGS = {"store.lease": 3.0, "store.look": 0.5}


class Nodes(NamedTuple):
    gpu: GatewayProcess
    laptop: GatewayProcess


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    name, root = f"n{secrets.token_hex(4)}", tmp_path_factory.mktemp("nodes")
    shared_server().sql(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
    with ExitStack() as stack:
        found = []
        for node in Nodes._fields:
            home = root / node
            home.mkdir(mode=0o700)
            (home / "config.toml").write_text(
                f'[store]\nurl = "{shared_server().url(name)}"\n[node]\nname = "{node}"\n'
            )
            found.append(stack.enter_context(home_with_commands(home, timings=TIMINGS)).start())
        yield Nodes(*found)
    shared_server().sql(f"DROP DATABASE {name} WITH (FORCE)")


def read(gateway: GatewayProcess, id: str, **query: object) -> httpx.Response:
    response = gateway.request("GET", f"/v1/tasks/{id}/output", params={"raw": "true", "limit": 1 << 20} | query)
    assert response.status_code == 200, response.text
    return response


def whole(gateway: GatewayProcess, id: str) -> bytes:
    data = b""
    while True:
        piece = read(gateway, id, offset=len(data))
        data += piece.content
        if len(data) >= int(piece.headers["holdfast-size"]) or not piece.content:
            return data


def write(gateway: GatewayProcess, id: str, text: str, *, close: bool = False) -> Json:
    return gateway.command("POST", f"/v1/tasks/{id}/write", {"text": text, "close": close})


def test_a_command_is_read_typed_into_searched_and_stopped_from_another_node(nodes: Nodes, tmp_path: Path) -> None:
    here, there = nodes.laptop, nodes.gpu
    id = start(there, "echo begun; exec sleep 1000", cwd=tmp_path)
    shown = begun(here, id)
    assert (shown["state"], shown["node"]) == ("running", "gpu")
    assert read(here, id, wait=30).content == b"begun\n"
    other = start(there, "cat", cwd=tmp_path, stdin=True)
    assert write(here, other, "marvellous 7391\n") == {"bytes": 16, "of": 16}
    assert read(here, other, wait=30).content == b"marvellous 7391\n"
    assert read(here, other, tail=1).content == b"marvellous 7391\n"
    found = here.get(f"/v1/tasks/{other}/output/search", q="7391")["matches"]
    assert [match["before"] for match in found] == ["marvellous "]
    hits = here.get("/v1/tasks/search", q="7391")["hits"]
    assert [hit["task"] for hit in hits] == [other], "also while it runs elsewhere"
    assert until(lambda: task(here, other)["output_bytes"] == 16 or None, "its node says how much it printed")
    write(here, other, "", close=True)
    assert until_over(here, other)["exit_code"] == 0
    here.command("POST", f"/v1/tasks/{id}/stop", {})
    ended = until_over(here, id)
    assert (ended["state"], ended["node"]) == ("stopped", "gpu")
    assert whole(here, id) == whole(there, id) == b"begun\n"


def test_a_long_output_is_the_same_on_every_node_and_can_be_searched(nodes: Nodes, tmp_path: Path) -> None:
    line = "needle-5521"
    shell = f"seq 200000; echo {line}; head -c 8000000 /dev/zero | tr '\\0' 'x'; echo; echo the end"
    id = start(nodes.gpu, shell, cwd=tmp_path)
    until_over(nodes.laptop, id)
    here, there = read(nodes.laptop, id, tail=1), read(nodes.gpu, id, tail=1)
    assert here.content == there.content == b"the end\n"
    assert here.headers["holdfast-size"] == there.headers["holdfast-size"]
    page = nodes.laptop.get(f"/v1/tasks/{id}/output", offset=1 << 20, limit=64)
    assert page["dropped"]["end"] - page["dropped"]["start"] == task(nodes.gpu, id)["dropped_bytes"] > 0
    assert whole(nodes.laptop, id)[:1000] == whole(nodes.gpu, id)[:1000]
    found = start(nodes.gpu, f"echo {line}-index", cwd=tmp_path)
    until(
        lambda: any(hit["task"] == found for hit in nodes.laptop.get("/v1/tasks/search", q=f"{line}-index")["hits"]),
        "the index has the output of either node",
    )


def test_promise_7_what_runs_on_a_killed_node_is_unknown_and_its_true_end_is_reported_when_it_is_back(
    nodes: Nodes, tmp_path: Path
) -> None:
    gpu, laptop = nodes
    gate = tmp_path / "gate"
    early = start(gpu, "echo kept", cwd=tmp_path)
    until_over(gpu, early)
    shell = f"echo before; while [ ! -e {gate} ]; do sleep 0.05; done; echo after; exit 7"
    ids = [start(gpu, shell, cwd=tmp_path, stdin=True), start(gpu, "exec sleep 1000", cwd=tmp_path)]
    for id in ids:
        begun(laptop, id)
    gpu.kill9()
    unknown = until(
        lambda: found if (found := task(laptop, ids[0]))["state"] == "unknown" else None, "its state is unknown"
    )
    assert unknown["unknown_since"] > 0
    assert "node gpu, where it runs, has been silent for" in unknown["reason"]
    assert unknown["exit_code"] is None
    listed = {one["id"]: one["state"] for one in laptop.get("/v1/tasks", state="running")["tasks"]}
    assert {listed[id] for id in ids} == {"unknown"}
    why = " ".join(one["text"] for one in laptop.get(f"/v1/tasks/{ids[0]}/why")["sentences"])
    assert "Its state is unknown: node gpu" in why and "running" not in why
    for method, path in (("POST", "write"), ("GET", "output")):
        body = {"text": "x"} if method == "POST" else None
        refused = laptop.request(method, f"/v1/tasks/{ids[0]}/{path}", json=body)
        assert (refused.status_code, "has been silent" in refused.text) == (504, True)
    waited = laptop.request("GET", f"/v1/tasks/{ids[0]}/output", params={"raw": "true", "wait": 1})
    assert waited.status_code == 504 or waited.headers["holdfast-state"] == "unknown"
    assert whole(laptop, early) == b"kept\n", "the outputs of what ended before stay readable"
    laptop.command("POST", f"/v1/tasks/{ids[1]}/stop", {})
    gate.touch()
    gpu.start()
    ended = until_over_everywhere(laptop, ids[0])
    assert (ended["state"], ended["exit_code"]) == ("failed", 7)
    assert whole(laptop, ids[0]) == b"before\nafter\n"
    stopped = until_over_everywhere(laptop, ids[1])
    assert stopped["state"] == "stopped", "it obeys what was asked while it was away"


def test_a_session_with_a_private_directory_waits_for_its_node(nodes: Nodes, tmp_path: Path) -> None:
    gpu, laptop = nodes
    session = gpu.create("hang\nsay goodbye", cwd=tmp_path)
    gpu.until_event(session, "ModelRequested")
    before = len(of_kind(laptop.whole_log(), "NodeEnded"))
    gpu.kill9()
    until(lambda: len(of_kind(laptop.whole_log(), "NodeEnded")) > before, "others know that it is lost")
    laptop.send(session, "go on")
    gpu.start_and_let_go()
    records = gpu.until_rest(session)
    resumed = of_kind(records, "TurnResumed")
    assert [one["interruption"] for one in resumed] == ["crash"], "its own node resumed it"


def begun(gateway: GatewayProcess, id: str) -> Json:
    return until(lambda: found if (found := task(gateway, id))["pid"] else None, f"task {id} has begun")


def until_over_everywhere(gateway: GatewayProcess, id: str) -> Json:
    """It has ended; `unknown` is no end."""
    return until(
        lambda: found if (found := task(gateway, id))["state"] not in ("running", "unknown") else None,
        f"task {id} is over",
    )
