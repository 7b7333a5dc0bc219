"""Settings of several nodes: changed on one, in force on all; what a file says besides is neither obeyed nor hidden."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cluster import ProxiedBrowser, cluster
from tests.e2e.gateway import GatewayProcess, Json, until

Nodes = list[GatewayProcess]
LS = "sh ls"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    only_hints = {"store.sweep": 3600.0}
    with cluster(tmp_path_factory.mktemp("nodes"), **only_hints) as found:
        yield found


def holdfast(node: GatewayProcess, *words: str, given: str = "") -> str:
    command = [sys.executable, "-P", "-m", "holdfast", "--home", str(node.home), *words]
    done = subprocess.run(command, capture_output=True, text=True, input=given, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def profile_on(node: GatewayProcess, name: str) -> Json | None:
    return next((one for one in node.get("/v1/profiles")["profiles"] if one["name"] == name), None)


def until_on_all(nodes: Nodes, name: str, *, there: bool = True) -> None:
    for node in nodes:
        until(lambda node=node: (profile_on(node, name) is not None) == there, f"{name} on every node")  # type: ignore[misc]


def run(node: GatewayProcess, profile: str, text: str) -> str:
    created = node.command("POST", "/v1/sessions", {"text": text, "profile": profile})
    return str(created["session"])


def test_a_rule_that_was_answered_on_one_node_holds_on_the_others(nodes: Nodes) -> None:
    a, b, c = nodes
    holdfast(a, "profiles", "add", "careful", "--model", "demo")
    until_on_all(nodes, "careful")
    assert "careful" not in (a.home / "config.toml").read_text()
    first = run(a, "careful", LS)
    a.until_event(first, "WaitOpened")
    (wait,) = [one for one in a.get("/v1/inbox")["waits"] if one["session"] == first]
    answered = a.command("POST", "/v1/answers", {"wait": wait["id"], "answer": "always"})
    assert not answered.get("warning")
    a.until_rest(first)
    for node in (b, c):
        until(lambda node=node: bool((profile_on(node, "careful") or {}).get("tools")), "the rule is known")  # type: ignore[misc]
        session = run(node, "careful", LS)
        kinds = [one["event"]["kind"] for one in node.until_rest(session)]
        assert "WaitOpened" not in kinds and "ToolCallStarted" in kinds


def test_profiles_of_the_api_are_those_of_every_node_and_go_on_every_node(nodes: Nodes) -> None:
    a, b, _ = nodes
    a.command("POST", "/v1/profiles", {"name": "made", "model": "demo"})
    until_on_all(nodes, "made")
    assert b.until_rest(run(b, "made", "say hello"))
    b.command("DELETE", "/v1/profiles/made")
    until_on_all(nodes, "made", there=False)


def test_who_changed_them_is_known_and_a_change_of_an_old_version_is_refused(nodes: Nodes) -> None:
    a, b, _ = nodes
    before = a.get("/v1/settings/shared")
    text = before["text"] + "\n[board]\nmax_running = 7\n"
    after = b.command("PUT", "/v1/settings/shared", {"text": text, "version": before["version"]})
    assert (after["version"], after["changed_by"]) == (before["version"] + 1, "api on node b")
    late = a.request("PUT", "/v1/settings/shared", json={"text": text, "version": before["version"]})
    assert late.status_code == 409
    for wrong in ("[board\n", "[board]\nmax_running = -1\n", 'default_profile = "nobody"\n', "[gateway]\nport = 1\n"):
        refused = a.request("PUT", "/v1/settings/shared", json={"text": wrong, "version": after["version"]})
        assert refused.status_code in (400, 422), wrong
    assert a.get("/v1/settings/shared") == after


def test_what_a_file_says_besides_is_ignored_and_said_until_it_is_pushed(nodes: Nodes) -> None:
    _, b, c = nodes
    config = c.home / "config.toml"
    own = config.read_text()
    config.write_text(f'{own}\n[profiles.mine]\nmodel = "demo"\n')
    c.terminate()
    c.start()
    health = c.get("/healthz")
    assert health["status"] == "degraded" and "sets profiles, which is not in force" in health["problem"]
    assert any("holdfast config push" in one["text"] for one in c.get("/v1/why")["sentences"])
    assert profile_on(c, "mine") is None
    b.command("POST", "/v1/profiles", {"name": "kept", "model": "demo"})
    until_on_all([b, c], "kept")
    with pytest.raises(AssertionError, match=r"would remove from all nodes: .*profiles.kept"):
        holdfast(c, "config", "push")
    assert profile_on(c, "mine") is None
    holdfast(c, "config", "push", "--remove")
    assert profile_on(c, "kept") is None
    until_on_all([b, c], "mine")
    assert c.get("/healthz")["status"] == "ok"
    b.command("POST", "/v1/profiles", {"name": "later", "model": "demo"})
    until_on_all([b, c], "later")
    assert c.get("/healthz")["status"] == "ok"  # the file was in force once
    config.write_text(own)


def test_the_settings_in_force_are_shown_and_can_be_edited_as_text(nodes: Nodes) -> None:
    a, b, _ = nodes
    text = holdfast(a, "config", "shared") + '\n[profiles.typed]\nmodel = "demo"\n'
    assert "version" in holdfast(b, "config", "push", "-", given=text)
    until_on_all(nodes, "typed")
    assert "# all nodes" in holdfast(a, "config", "show")
    assert Path(holdfast(a, "config", "path").strip()) == a.home / "config.toml"


def test_a_browser_subscribes_to_pushes_with_the_same_key_on_every_node(nodes: Nodes) -> None:
    browser = ProxiedBrowser()
    assert browser.sign_in(nodes[0], nodes[0].command("POST", "/v1/codes")["code"]) == 202
    assert len({browser.request(node, "GET", "/v1/push").json()["key"] for node in nodes}) == 1
