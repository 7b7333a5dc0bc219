"""Changes to config.toml: in any style of writing only the intended value changes, or the error says why not."""

from __future__ import annotations

import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from holdfast.config import ConfigError
from holdfast.edit_settings import add_profile, allow_always, change_profile, edit_file, remove_profile, set_default
from holdfast.read_settings import load_settings

WRITTEN = {
    "nothing": "",
    "only a comment": "# mine\n",
    "no last newline": '[profiles.a]\nmodel = "demo"',
    "tables": '# mine\n[profiles.a] # first\nmodel = "demo"\n',
    "interleaved tables": (
        '[profiles.a] # first\nmodel = "demo"\n\n[gateway]\nport = 0\n\n[profiles.b]\nmodel = "demo"\n'
        '[profiles.b.tools]\n"*" = "ask" # all of them\n[resume]\nattempts = 2\n[profiles.a.tools]\nread = "ask"\n'
    ),
    "a table below comes first": '[profiles.a.tools]\nread = "ask"\n[mcp]\n[profiles.a]\nmodel = "demo"\n',
    "dotted keys": 'profiles.a.model = "demo" # first\nprofiles.b.model = "demo"\n[gateway]\nport = 0\n',
    "dotted keys below": 'profiles.a.model = "demo"\nprofiles.a.tools.read = "ask" # why not\n[gateway]\nport = 0\n',
    "dotted keys in a table": '[board]\n[profiles]\na.model = "demo" # first\na.tools.read = "ask"\n[mcp]\n',
    "dotted tools": '[profiles.a]\nmodel = "demo"\ntools.write = "ask" # first\n[gateway]\nport = 0\n',
    "inline tables": '[profiles]\na = { model = "demo", tools = { write = "ask" } } # first\n',
    "inline tables only": 'profiles = { a = { model = "demo" } } # first\n[gateway]\nport = 0\n',
    "an inline table of tools": '[profiles.a]\nmodel = "demo"\ntools = { read = "ask" } # first\n[gateway]\nport = 0\n',
    "quoted names": '["profiles"."a"]\nmodel = "demo"\n["gateway"]\nport = 0\n',
    "spaces": ' [ profiles . a ]\nmodel = "demo"\n[gateway]\nport = 0\n [ profiles.a.tools ]\n',
    "other line endings": '[profiles.a]\r\nmodel = "demo"\r\n[gateway]\r\nport = 0\r\n',
    "a text that looks like a table": (
        '[profiles.a]\nmodel = "demo"\ninstructions = """\n[profiles.a.tools]\n"""\n[gateway]\nport = 0\n'
    ),
    "dotted keys and a text like a table": (
        'profiles.a.model = "demo"\nprofiles.a.tools.read = "ask"\nprofiles.a.instructions = """\n[profiles]\n"""\n'
    ),
}


def expected(text: str, keys: list[str], value: object) -> dict[str, Any]:
    settings = tomllib.loads(text)
    here = settings
    for key in keys[:-1]:
        here = here.setdefault(key, {})
    here[keys[-1]] = value
    return settings


@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN)
def test_a_change_fits_into_any_valid_file_and_keeps_its_comments(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"

    def comments() -> list[str]:
        return [line.partition("#")[2] for line in path.read_text().splitlines() if "#" in line]

    path.write_bytes(text.encode())
    before = comments()
    edit_file(path, set_default("demo"))
    edit_file(path, allow_always("a", "terminal:git *", model="demo"))
    edit_file(path, allow_always("a", "read", model="demo"))
    edit_file(path, add_profile("new one", {"model": "demo", "instructions": 'Two lines:\n"\\" and \x7f.'}))
    wanted = expected(text, ["default_profile"], "demo")
    wanted.setdefault("profiles", {}).setdefault("a", {"model": "demo"}).setdefault("tools", {}).update(
        {"terminal:git *": "allow", "read": "allow"}
    )
    wanted["profiles"]["new one"] = {"model": "demo", "instructions": 'Two lines:\n"\\" and \x7f.'}
    assert tomllib.loads(path.read_bytes().decode()) == wanted
    assert comments() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_broken_file_is_named_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[gateway]\nport = 0\n[profiles.a\n")
    with pytest.raises(ConfigError, match=r"config.toml:3"):
        edit_file(path, allow_always("a", "read", model="demo"))
    assert path.read_text() == "[gateway]\nport = 0\n[profiles.a\n"


def test_a_read_only_file_is_named_and_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for root, who could write it anyhow."""
    path = tmp_path / "config.toml"
    path.write_text('default_profile = "demo" # chosen\n')
    path.chmod(0o400)
    with pytest.raises(ConfigError, match="cannot be changed: it is read-only"):
        edit_file(path, add_profile("b", {"model": "demo"}))
    assert path.read_text() == 'default_profile = "demo" # chosen\n'
    assert list(tmp_path.iterdir()) == [path]


def test_the_rights_of_the_file_and_a_link_to_it_are_kept(tmp_path: Path) -> None:
    real, path = tmp_path / "dotfiles" / "holdfast.toml", tmp_path / "config.toml"
    real.parent.mkdir()
    real.write_text("[gateway]\nport = 0\n")
    real.chmod(0o640)
    path.symlink_to(real)
    edit_file(path, add_profile("b", {"model": "demo"}))
    assert path.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert "b" in load_settings(real).profiles


def test_what_somebody_else_wrote_meanwhile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file changes between the reading and the writing, as under an editor."""
    import holdfast.edit_settings as editing

    path = tmp_path / "config.toml"
    path.write_text("[gateway]\nport = 0\n")
    original, others = editing._replace, ["[gateway]\nport = 1\n"]

    def replace(target: Path, draft: BinaryIO, before: bytes, after: bytes) -> bool:
        if others:
            target.write_text(others.pop())
        return original(target, draft, before, after)

    monkeypatch.setattr(editing, "_replace", replace)
    edit_file(path, add_profile("b", {"model": "demo"}))
    found = load_settings(path)
    assert (found.gateway.port, "b" in found.profiles) == (1, True)


def test_concurrent_edits_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    names = [f"p{number}" for number in range(20)]
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(lambda name: edit_file(path, add_profile(name, {"model": "demo"})), names))
    assert set(names) <= set(load_settings(path).profiles)
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_never_stays_the_same_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import holdfast.edit_settings as editing

    path = tmp_path / "config.toml"
    monkeypatch.setattr(editing, "_replace", lambda *_: False)
    with pytest.raises(ConfigError, match="keeps changing it"):
        edit_file(path, add_profile("b", {"model": "demo"}))


@pytest.mark.parametrize("text", [text for text in WRITTEN.values() if "profiles" in text])
def test_a_profile_is_removed_however_it_is_written_and_nothing_else_is(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(text.encode())
    wanted = load_settings(path).profiles
    del wanted["a"]
    before = tomllib.loads(text)
    try:
        edit_file(path, remove_profile("a"))
    except ConfigError as error:
        assert "edit it by hand" in str(error) and path.read_bytes() == text.encode()
        assert '"""' in text  # only a value of several lines may be in the way
    else:
        after = tomllib.loads(path.read_text())
        assert load_settings(path).profiles == wanted
        assert {key: after.get(key) for key in before if key != "profiles"} == {
            key: value for key, value in before.items() if key != "profiles"
        }


@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN)
def test_rules_of_a_profile_are_replaced_as_a_whole(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(text.encode())
    for tools in ({"*": "deny", "write:docs/*": "allow"}, {"read": "ask"}, {}):
        edit_file(path, change_profile("a", {"tools": tools}, otherwise={"model": "demo"}))
        profile = load_settings(path).profiles["a"]
        assert (profile.tools, profile.model) == (tools, "demo")
