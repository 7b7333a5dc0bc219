"""Nodes that are set up wrongly or differ from each other: names, homes, clocks, versions."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.e2e.gateway import GatewayProcess, until
from tests.e2e.newer_gateway import VERSION
from tests.e2e.test_nodes import NAMES, PATIENT, Cluster, check_all, cluster, kill_again_and_again
from tests.eventually import PATIENCE

__all__ = ["cluster"]
HOUR = 3600
NEWER = Path(__file__).with_name("newer_gateway.py")


def copy_of(node: GatewayProcess, directory: Path) -> GatewayProcess:
    """Another machine with the same config.toml, and so with the same name."""
    home = directory / f"{node.home.name}-copy"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text((node.home / "config.toml").read_text())
    return GatewayProcess(home, timings=node.timings | {"store.lock": 1.0})


def test_a_second_node_with_a_name_that_is_in_use_does_not_start(cluster: Cluster) -> None:
    alpha = cluster.nodes["alpha"]
    second = copy_of(alpha, cluster.directory)
    child = second.spawn()
    assert child.wait(PATIENCE) == 1
    assert "is called alpha" in second.stderr and "--node NAME" in second.stderr
    session = alpha.create("say hello", cwd=cluster.directory)
    assert alpha.until_rest(session)[-1]["event"]["outcome"] == "done"
    assert [node["state"] for node in alpha.get("/v1/nodes")["nodes"]] == ["alive"] * 3


def test_promise_2_a_node_whose_name_was_taken_while_it_was_frozen_writes_nothing(cluster: Cluster) -> None:
    alpha = cluster.nodes["alpha"]
    session = alpha.create("hang\nsay goodbye", cwd=cluster.directory)
    alpha.until_event(session, "ModelRequested")
    os.kill(alpha.pid, signal.SIGSTOP)
    cluster.wait_until_lost("alpha")
    with copy_of(alpha, cluster.directory) as second:
        second.start()
        os.kill(alpha.pid, signal.SIGCONT)
        said = until(lambda: refusal(alpha), "the first one refuses", seconds=PATIENT)
        assert "is called alpha now; this one has stopped writing" in said
        assert second.request("POST", "/v1/sessions", json={"text": "say hi", "profile": "demo"}).status_code == 202


def refusal(node: GatewayProcess) -> str:
    answer = node.request("POST", "/v1/sessions", json={"text": "say hi", "profile": "demo"})
    return "" if answer.status_code == 202 else str(answer.json()["error"]["message"])


def test_a_home_serves_one_node_at_a_time(cluster: Cluster) -> None:
    alpha = cluster.nodes["alpha"]
    config = alpha.home / "config.toml"
    text = config.read_text()
    config.write_text(text.replace('name = "alpha"', 'name = "delta"'))
    second = GatewayProcess(alpha.home, timings=alpha.timings, log_next_to=cluster.directory / "second")
    assert second.spawn().wait(PATIENCE) == 5
    assert str(alpha.pid) in second.stderr
    config.write_text(text)
    assert {node["name"] for node in alpha.get("/v1/nodes")["nodes"]} == set(NAMES)


def test_promise_1_nodes_whose_clocks_are_hours_apart_lose_and_double_nothing(cluster: Cluster) -> None:
    """One is an hour ahead and one an hour behind; commands keep the true time, as their keepers do."""
    for name, seconds in (("alpha", HOUR), ("beta", -HOUR)):
        cluster.kill(name)
        cluster.nodes[name].clock_seconds = seconds
        cluster.start(name)
    kill_again_and_again(cluster, 6)
    check_all(cluster)
    log = cluster.any().whole_log()
    times = [record["at"] for record in log]
    assert max(times) - min(times) > HOUR * 1000, "no clock was set"


def test_promise_1_two_versions_work_side_by_side(cluster: Cluster) -> None:
    """A newer one migrates the database while older ones work; those go on and can be restarted."""
    cluster.kill("gamma")
    cluster.nodes["gamma"].script = NEWER
    cluster.start("gamma")
    assert cluster.rows("SELECT DISTINCT added_later FROM nodes") == [(7,)]
    kill_again_and_again(cluster, 6)
    check_all(cluster)
    versions = {node["name"]: node["version"] for node in cluster.any().get("/v1/nodes")["nodes"]}
    assert versions["gamma"] == VERSION and versions["alpha"] == versions["beta"] != VERSION
