"""Settings that are changed from a client: in force at once, and the rest of config.toml untouched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.gateway import GatewayProcess

RESET = {"mode": "idle", "idle_minutes": 90, "at_hour": 5}
RETENTION = {
    "tasks_days": 30,
    "tasks_count": 0,
    "tasks_megabytes": 500,
    "sessions_archive_days": 0,
    "sessions_delete_days": 0,
}


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as process:
        yield process.start()


def edit(gateway: GatewayProcess, **values: Any) -> Any:
    return gateway.request("PATCH", "/v1/settings", json=values)


def test_settings_are_written_and_in_force_at_once(gateway: GatewayProcess) -> None:
    config = gateway.home / "config.toml"
    before = gateway.get("/v1/settings")
    assert before["session_reset"] == {"mode": "none", "idle_minutes": 1440, "at_hour": 4}
    assert before["path"] == str(config)
    config.write_text('# mine\n[session_reset]\nnotify = false # quiet\n[profiles.other]\nmodel = "demo"\n')
    changed = edit(gateway, session_reset=RESET, retention=RETENTION, default_profile="other").json()
    assert (changed["session_reset"], changed["retention"], changed["default_profile"]) == (RESET, RETENTION, "other")
    assert gateway.get("/v1/settings") == changed
    assert gateway.get("/v1/retention")["tasks_days"] == 30
    assert [row["name"] for row in gateway.get("/v1/profiles")["profiles"] if row["default"]] == ["other"]
    text = config.read_text()
    assert "# mine" in text and "notify = false # quiet" in text


@pytest.mark.parametrize(
    "values",
    [
        {"default_profile": "nobody"},
        {"session_reset": RESET | {"at_hour": 24}},
        {"retention": RETENTION | {"tasks_days": -1}},
        {"retention": {"tasks_days": 1}},
        {"unheard_of": 1},
    ],
)
def test_wrong_settings_are_refused_and_nothing_is_written(gateway: GatewayProcess, values: dict[str, Any]) -> None:
    config = gateway.home / "config.toml"
    before = config.read_text() if config.exists() else None
    assert edit(gateway, **values).status_code == 400
    assert (config.read_text() if config.exists() else None) == before


def test_file_with_an_error_is_left_alone(gateway: GatewayProcess) -> None:
    config = gateway.home / "config.toml"
    config.write_text("[broken")
    answer = edit(gateway, session_reset=RESET)
    assert answer.status_code == 400 and "config.toml" in answer.json()["error"]["message"]
    assert config.read_text() == "[broken"


def test_overview_says_what_was_spent_and_how_full_the_disk_is(gateway: GatewayProcess) -> None:
    found = gateway.get("/v1/overview")
    assert found["spend"] == {"cost": 0.0, "tokens": 0, "unpriced": 0}
    assert found["disk"]["database"] > 0 and found["disk"]["free"] > 0


def test_code_names_the_addresses_for_other_devices(gateway: GatewayProcess) -> None:
    assert gateway.request("POST", "/v1/codes", json={}).json()["urls"] == []
    (gateway.home / "config.toml").write_text('[gateway]\npublic_urls = ["https://box.example"]\n')
    gateway.terminate()
    gateway.start()
    assert gateway.request("POST", "/v1/codes", json={}).json()["urls"] == ["https://box.example"]


def test_profile_is_added_changed_and_removed(gateway: GatewayProcess, tmp_path: Path) -> None:
    config = gateway.home / "config.toml"
    config.write_text('# mine\n[profiles.other]\nmodel = "demo" # a script\n')
    new = {"name": "coder", "model": "anthropic:m", "cwd": str(tmp_path), "tools": {"write": "ask", "*": "allow"}}
    added = {one["name"]: one for one in gateway.request("POST", "/v1/profiles", json=new).json()["profiles"]}
    assert {key: added["coder"][key] for key in new} == new
    assert (added["coder"]["key_name"], added["coder"]["key_set"]) == ("ANTHROPIC_API_KEY", False)
    assert (added["other"]["key_name"], added["other"]["key_set"]) == ("", True)
    change = {"tools": {"*": "ask"}, "instructions": "Be brief."}
    changed = gateway.request("PATCH", "/v1/profiles/coder", json=change).json()["profiles"]
    (coder,) = [one for one in changed if one["name"] == "coder"]
    assert (coder["tools"], coder["instructions"], coder["model"]) == ({"*": "ask"}, "Be brief.", "anthropic:m")
    built_in = gateway.request("PATCH", "/v1/profiles/demo", json={"instructions": "Be kind."}).json()["profiles"]
    (demo,) = [one for one in built_in if one["name"] == "demo"]
    assert demo["tools"]["*"] == "allow" and demo["instructions"] == "Be kind."  # the rest of it is as it was
    assert edit(gateway, default_profile="coder").status_code == 202
    refused = gateway.request("DELETE", "/v1/profiles/coder")
    assert refused.status_code == 409 and "Choose another one" in refused.json()["error"]["message"]
    assert edit(gateway, default_profile="other").status_code == 202
    left = gateway.request("DELETE", "/v1/profiles/coder").json()["profiles"]
    assert "coder" not in {one["name"] for one in left}
    text = config.read_text()
    assert "coder" not in text and text.startswith("# mine\n") and "# a script" in text


@pytest.mark.parametrize(
    ("method", "path", "body", "code", "said"),
    [
        ("POST", "", {"name": "x y", "model": "demo"}, 400, "name"),
        ("POST", "", {"name": "demo", "model": "demo"}, 400, "exists already"),
        ("POST", "", {"name": "x"}, 400, "model"),
        ("POST", "", {"name": "x", "model": "nobody:m"}, 400, "profiles.x.model"),
        ("POST", "", {"name": "x", "model": "demo", "cwd": "relative"}, 400, "There is no directory"),
        ("POST", "", {"name": "x", "model": "demo", "tools": {"write": "perhaps"}}, 400, "tools"),
        ("POST", "", {"name": "x", "model": "demo", "sandbox": "off"}, 400, "sandbox"),
        ("PATCH", "/nobody", {"model": "demo"}, 404, "There is no profile"),
        ("DELETE", "/nobody", None, 404, "There is no profile"),
        ("DELETE", "/demo", None, 409, "built in"),
    ],
)
def test_wrong_profile_is_refused_and_nothing_is_written(
    gateway: GatewayProcess, method: str, path: str, body: dict[str, Any] | None, code: int, said: str
) -> None:
    answer = gateway.request(method, f"/v1/profiles{path}", json=body)
    assert answer.status_code == code and said in answer.json()["error"]["message"], answer.text
    assert not (gateway.home / "config.toml").exists()
