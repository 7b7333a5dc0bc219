"""Settings of several nodes: changed on one, in force on all; other settings in a file are ignored and reported."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.e2e.cluster import ProxiedBrowser, cluster, node_database
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


def test_profiles_of_the_api_are_those_of_every_node_and_are_stored_for_every_node(nodes: Nodes) -> None:
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


def doctor(node: GatewayProcess) -> dict[str, tuple[bool, str]]:
    command = [sys.executable, "-P", "-m", "holdfast", "--home", str(node.home), "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return {one["name"]: (one["ok"], one["detail"]) for one in json.loads(done.stdout)["findings"]}


def test_a_file_that_is_set_back_to_an_older_version_is_said(nodes: Nodes) -> None:
    a, _, c = nodes
    config = c.home / "config.toml"
    own, older = config.read_text(), '[profiles.older]\nmodel = "demo"\n'
    replace_shared(a, older)
    config.write_text(f"{own}\n{older}")  # the same as the newest version
    c.get("/v1/settings/shared")  # it is compared now, and else in a moment
    replace_shared(a, '[profiles.newer]\nmodel = "demo"\n')
    until_on_all(nodes, "newer")
    assert c.get("/healthz")["problem"] == ""  # others have changed them, the file is what it was
    assert doctor(c)["config"][0]

    config.write_text(own)
    c.get("/v1/settings/shared")
    config.write_text(f"{own}\n{older}")
    said = "was set back to an older version of profiles, which is not in force"
    until(lambda: said in c.get("/healthz")["problem"], "it is said")
    assert any(said in one["text"] for one in c.get("/v1/why")["sentences"])
    found = doctor(c)
    assert (found["config"][0], said in found["config"][1]) == (False, True)
    assert (found["gateway"][0], said in found["gateway"][1]) == (True, False), "it is said once"
    config.write_text(own)
    until(lambda: c.get("/healthz")["status"] == "ok", "it is well")


def test_the_doctor_looks_at_the_profiles_in_force(nodes: Nodes) -> None:
    a, b, _ = nodes
    provider = '[providers.paid]\nbase_url = "http://127.0.0.1:9/v1"\napi_key_env = "NOBODY_HAS_THIS_KEY"\n'
    profile = '[profiles.expensive]\nmodel = "paid:m"\nsandbox = "off"\n'
    replace_shared(a, provider + profile)
    found = doctor(b)
    assert found["models"] == (False, "expensive uses paid:m, and NOBODY_HAS_THIS_KEY is not set")
    assert "profiles: demo, expensive" in found["config"][1]
    assert "expensive" in found["sandbox"][1]
    replace_shared(a, "")


def test_settings_of_a_newer_version_are_used_as_far_as_they_are_known_and_never_overwritten(nodes: Nodes) -> None:
    """A newer node has stored them; this one is older."""
    a, *others = nodes
    store_as_newer(a, '[profiles.known]\nmodel = "demo"\ncolour = "red"\n[quotas]\nmost = 3\n')
    newest = a.get("/v1/settings/shared")
    assert "quotas" in newest["text"]
    said = "This node is older and ignores what it does not know: quotas, profiles.known.colour."
    for _ in range(2):
        assert a.until_rest(run(a, "known", "say hello"))
        assert a.get("/healthz")["problem"].endswith(said)
        found = doctor(a)["config"]
        assert (found[0], said in found[1]) == (False, True)
        with pytest.raises(AssertionError, match="quotas is not a setting"):
            holdfast(a, "profiles", "add", "more", "--model", "demo")
        with pytest.raises(AssertionError, match=r"would remove from all nodes: .*quotas"):
            holdfast(a, "config", "push", "-", given='[profiles.known]\nmodel = "demo"\n')
        assert a.get("/v1/settings/shared") == newest
        a.terminate()
        a.start()

    store_as_newer(a, '[board]\nmax_running = "as many as you like"\n')
    latest = a.get("/v1/settings/shared")
    for _ in range(2):
        problem = a.get("/healthz")["problem"]
        assert f"Version {latest['version']} cannot be used by this node, so version {newest['version']} is" in problem
        assert profile_on(a, "known") is not None
        assert a.until_rest(run(a, "known", "say hello"))
        assert not doctor(a)["config"][0]
        a.terminate()
        a.start()
    assert a.get("/v1/settings/shared") == latest
    a.command("PUT", "/v1/settings/shared", {"text": "", "version": latest["version"]})
    until_on_all([a, *others], "known", there=False)
    assert a.get("/healthz")["status"] == "ok"


def replace_shared(node: GatewayProcess, text: str) -> None:
    version = node.get("/v1/settings/shared")["version"]
    node.command("PUT", "/v1/settings/shared", {"text": text, "version": version})


def store_as_newer(node: GatewayProcess, text: str) -> None:
    """Store settings that no node of this version would, and have a node read them."""
    with psycopg.connect(node_database(node), options="-c search_path=holdfast") as db:
        db.execute(
            "INSERT INTO shared_settings SELECT MAX(version) + 1, %s, 'a newer node', 1 FROM shared_settings", [text]
        )
    node.get("/v1/settings/shared")


def test_the_settings_in_force_are_shown_and_can_be_edited_as_text(nodes: Nodes) -> None:
    a, b, _ = nodes
    text = holdfast(a, "config", "shared") + '\n[profiles.typed]\nmodel = "demo"\n'
    assert "version" in holdfast(b, "config", "push", "-", given=text)
    until_on_all(nodes, "typed")
    with pytest.raises(AssertionError, match="changed"):  # it was made from the version before
        holdfast(b, "config", "push", "-", given=text + '\n[profiles.late]\nmodel = "demo"\n')
    assert profile_on(b, "late") is None
    assert "# all nodes" in holdfast(a, "config", "show")
    assert Path(holdfast(a, "config", "path").strip()) == a.home / "config.toml"


def test_a_browser_subscribes_to_pushes_with_the_same_key_on_every_node(nodes: Nodes) -> None:
    browser = ProxiedBrowser()
    assert browser.sign_in(nodes[0], nodes[0].command("POST", "/v1/codes")["code"]) == 202
    assert len({browser.request(node, "GET", "/v1/push").json()["key"] for node in nodes}) == 1
