"""Values of keys do not reach the log or a model, however they are written or cut."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.profiles import Profiles
from holdfast.secrets import Secrets

VALUE = 'sk-(a+b)*"quoted"\\$-ÿ'
PEM = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END KEY-----\n"
SHOWN = "[hidden: the value of MY_KEY]"


@pytest.mark.parametrize("form", [VALUE, json.dumps(VALUE)[1:-1], json.dumps(VALUE, ensure_ascii=False)[1:-1]])
def test_a_value_is_masked_however_it_is_written(form: str) -> None:
    assert Secrets({"MY_KEY": VALUE}).mask(f"a {form} b {form}") == f"a {SHOWN} b {SHOWN}"


@pytest.mark.parametrize("at", range(len(VALUE) + 1))
def test_a_value_that_is_cut_in_two_is_masked_in_both_halves(at: int) -> None:
    secrets = Secrets({"MY_KEY": VALUE})
    first, second = secrets.mask("before " + VALUE[:at]), secrets.mask(VALUE[at:] + " after")
    assert not any(VALUE[i : i + 6] in first + second for i in range(len(VALUE) - 5))


def test_lines_of_a_long_key_are_masked_and_short_values_are_not() -> None:
    secrets = Secrets({"MY_KEY": PEM, "OTHER": "none", "UNSET": None})
    assert secrets.mask("> MIIEvQIBADANBgkqhkiG9w0B") == f"> {SHOWN}"
    assert secrets.mask("there is none") == "there is none"


def test_what_servers_are_given_is_a_secret_but_for_what_says_where_things_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[mcp.one]\ncommand = ["x"]\nenv = ["TRACKER_KEY", "DATA_PATH", "HOME", "LANG"]\n')
    monkeypatch.setenv("TRACKER_KEY", "tracker-key-value")
    monkeypatch.setenv("DATA_PATH", str(tmp_path))
    profiles = Profiles(config)
    assert profiles.mask(f"tracker-key-value {tmp_path}") == f"[hidden: the value of TRACKER_KEY] {tmp_path}"
    assert {"TRACKER_KEY", "DATA_PATH"} <= profiles.settings.secret_names
    assert not {"HOME", "LANG"} & profiles.settings.secret_names
