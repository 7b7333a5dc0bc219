"""What a machine offers by itself: keys without their values, servers that answer in time."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.config import ConfigError
from holdfast.edit_settings import add_profile, allow_always, edit_file, set_default
from holdfast.models.detect import detect, is_stranger, listening_users
from holdfast.read_settings import load_settings
from holdfast.settings import ProviderSettings, Settings

KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY")


async def serving(answer: bytes) -> tuple[asyncio.Server, str]:
    """A server that says this to whoever asks."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
        except asyncio.IncompleteReadError:
            pass  # on a busy machine a client may leave before it has asked
        finally:
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    return server, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


def models(*names: str) -> bytes:
    body = json.dumps({"object": "list", "data": [{"id": name} for name in names]}).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + body


def only(**providers: ProviderSettings) -> Settings:
    return replace(Settings(), providers=providers)


async def test_a_key_is_named_and_never_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-very-secret")
    keyed = {name: p for name, p in load_settings(tmp_path / "none").providers.items() if p.api_key_env}
    [found] = await detect(only(**keyed))
    assert (found.provider, found.how) == ("anthropic", "ANTHROPIC_API_KEY is set")
    assert "secret" not in repr(found)
    assert len(found.models) == 1


def test_a_server_of_another_person_is_known_by_its_socket() -> None:
    line = "   0: 0100007F:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  {uid}        0 1\n"
    tables = "  sl  local_address rem_address st\n" + line.format(port=11434, state="0A", uid=1001)
    tables += line.format(port=11434, state="01", uid=1002) + line.format(port=8080, state="0A", uid=1003)
    assert listening_users(11434, tables) == {1001}
    assert is_stranger(1001, own=1000) and is_stranger(1001, own=0)
    assert not any(is_stranger(uid, own=1000) for uid in (1000, 0, 998, 65534))


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
async def test_a_server_of_another_person_is_not_detected() -> None:
    server, url = await serving(models("qwen"))
    async with server:
        os.fchown(server.sockets[0].fileno(), 1001, 1001)
        assert await detect(only(local=ProviderSettings(base_url=url))) == []


async def test_a_server_is_asked_for_its_models() -> None:
    server, url = await serving(models("nomic-embed-text", "qwen"))
    async with server:
        [found] = await detect(only(local=ProviderSettings(base_url=url)))
    assert found.models == ("qwen",)


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 404 Not Found\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n<html>", b"\xff"])
async def test_another_kind_of_server_is_left_alone(answer: bytes) -> None:
    server, url = await serving(answer)
    async with server:
        assert await detect(only(local=ProviderSettings(base_url=url))) == []


async def test_nobody_there_and_nobody_far_away_is_asked() -> None:
    far = ProviderSettings(base_url="http://models.example.com/v1")
    assert await detect(only(here=ProviderSettings(base_url="http://127.0.0.1:1/v1"), far=far)) == []


def test_changes_keep_the_rest_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('# mine\n[profiles.a]  # first\nmodel = "demo"\n')
    edit_file(path, add_profile("b", {"model": "demo", "instructions": "Be kind."}))
    edit_file(path, allow_always("a", "write:docs/*", model="demo"))
    edit_file(path, set_default("b"))
    settings = load_settings(path)
    assert settings.default_profile == "b"
    assert settings.profiles["a"].tools == {"write:docs/*": "allow"}
    assert "# mine" in path.read_text()
    assert "# first" in path.read_text()


def test_always_keeps_the_model_of_a_profile_that_was_only_detected(tmp_path: Path) -> None:
    """It is in no file yet; without its model the demo agent would answer from then on."""
    path = tmp_path / "config.toml"
    edit_file(path, allow_always("openai", "write:docs/*", model="openai:gpt-5.5"))
    edit_file(path, allow_always("openai", "edit:*", model="openai:gpt-5.5"))
    found = load_settings(path).profiles["openai"]
    assert (found.model, found.tools) == ("openai:gpt-5.5", {"write:docs/*": "allow", "edit:*": "allow"})


def test_a_change_that_would_break_it_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[profiles.a]\nmodel = "demo"\n')
    with pytest.raises(ConfigError, match="nobody"):
        edit_file(path, set_default("nobody"))
    with pytest.raises(ConfigError, match="nonsense"):
        edit_file(path, add_profile("b", {"model": "nonsense"}))
    with pytest.raises(ConfigError, match="already"):
        edit_file(path, add_profile("a", {"model": "demo"}))
    assert path.read_text() == '[profiles.a]\nmodel = "demo"\n'
    assert list(tmp_path.iterdir()) == [path]
