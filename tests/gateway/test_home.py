"""The home is its owner's alone, and the settings say where they are wrong."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from holdfast.config import ConfigError, Home
from holdfast.read_settings import load_settings
from holdfast.settings import Settings
from tests.e2e.gateway import GatewayProcess


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_everything_in_the_home_is_private(gateway: GatewayProcess) -> None:
    gateway.until_rest(gateway.create("say hello"))
    found = [gateway.home, *gateway.home.rglob("*")]
    assert {"token", "lock", "gateway.json", "holdfast.db", "gateway.log"} <= {path.name for path in found}
    for path in found:
        assert mode(path) == (0o700 if path.is_dir() else 0o600), path
    assert len(gateway.token) >= 43, "256 bits"


def test_the_token_stays_over_a_restart_and_a_short_one_is_replaced(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        first = gateway.start().token
        gateway.kill9()
        assert gateway.start().token == first
        gateway.kill9()
        (gateway.home / "run" / "token").write_text("short\n")
        assert len(gateway.start().token) >= 43
        assert mode(gateway.home / "run" / "token") == 0o600
        assert gateway.get("/v1/status")["pid"] == gateway.pid


@pytest.mark.parametrize("where", [".", "run"])
@pytest.mark.parametrize("bits", [0o770, 0o707, 0o777, 0o720])
def test_a_home_that_others_can_write_to_is_refused(tmp_path: Path, where: str, bits: int) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    (home.path / where).chmod(bits)
    with pytest.raises(ConfigError, match=r"Others can write to .*chmod 700"):
        home.prepare()


def test_a_home_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    stranger = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: stranger)
    with pytest.raises(ConfigError, match=rf"belongs to user {stranger - 1}, not to you \({stranger}\)"):
        home.prepare()


def test_a_home_that_cannot_be_made_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot be made.*--home"):
        Home(tmp_path / "file").prepare()
    with pytest.raises(ConfigError, match=r"cannot be made.*--home"):
        Home(tmp_path / "file" / "below").prepare()


# --- settings ---------------------------------------------------------------------------------------

WRONG = {
    "unknown table": ("# hello\n[gatewy]\nport = 1\n", 2, "gatewy is not a setting; here you can set: default_profile"),
    "unknown key": ("[gateway]\nport = 1\nprot = 2\n", 3, "gateway.prot is not a setting"),
    "unknown key of a profile": ("[profiles.a]\nmodle = 'x'\n", 2, "profiles.a.modle is not a setting"),
    "unknown dotted key": ("gateway.prot = 1\n", 1, "gateway.prot is not a setting"),
    "unknown key in an inline table": ("\nresume = { attempt = 3 }\n", 2, "resume.attempt is not a setting"),
    "wrong type": ("[resume]\n\nattempts = 'three'\n", 3, "resume.attempts: Expected `int`, got `str`"),
    "wrong type in an inline table": ("\n\ngateway = { port = 'x' }\n", 3, "gateway.port: Expected"),
    "text for a table": ("gateway = 'x'\n", 1, "gateway: Expected `object`"),
    "number for a profile": ("[profiles]\na = 1\nb = 2\n", 2, "profiles.a: Expected `object`"),
    "wrong type in a profile": ("[profiles.a]\n[profiles.b]\nmax_steps = 'x'\n", 3, "profiles.b.max_steps: Expected"),
    "float for an integer": ("[resume]\nattempts = 1.5\n", 2, "resume.attempts: Expected `int`"),
    "too large": ("[gateway]\nport = 70000\n", 2, "gateway.port must lie between 0 and 65535"),
    "negative": ("[resume]\nmax_age_minutes = -1\n", 2, "resume.max_age_minutes must lie between 0"),
    "no steps": ("[profiles.a]\nmax_steps = 0\n", 2, "profiles.a.max_steps must lie between 1"),
    "unknown default": ("\ndefault_profile = 'nobody'\n", 2, "there is no profile 'nobody'; there is: demo"),
    "no TOML": ("[gateway]\nport = \n", 2, "Invalid value"),
    "twice": ("[gateway]\nport = 1\nport = 2\n", 3, "Cannot overwrite a value"),
    "bad name of a key": ("[gateway]\nport = 1\n= 2\n", 3, "Invalid"),
}


@pytest.mark.parametrize(("text", "line", "message"), WRONG.values(), ids=WRONG.keys())
def test_wrong_settings_name_file_line_and_key(tmp_path: Path, text: str, line: int, message: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_settings(path)
    assert str(caught.value).startswith(f"{path}:{line}: "), caught.value
    assert message in str(caught.value)


def test_settings_that_are_no_text_are_explained(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b"default_profile = '\xff'\n")
    with pytest.raises(ConfigError, match=r"config\.toml cannot be read.*utf-8"):
        load_settings(path)


def test_right_settings_are_read(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    default = load_settings(path)
    assert default == Settings(profiles=default.profiles, providers=default.providers)
    path.write_text(
        "default_profile = 'mine'\ngateway.port = 0\n[resume]\nattempts = 0\nmax_age_minutes = 0\n"
        "[profiles.mine]\nmax_steps = 7\ninstructions = '''\nport = 99999999\n'''\n"
    )
    settings = load_settings(path)
    assert (settings.default_profile, settings.gateway.port, settings.resume.attempts) == ("mine", 0, 0)
    assert settings.profiles["mine"].max_steps == 7
    assert sorted(settings.profiles) == ["demo", "mine"]
