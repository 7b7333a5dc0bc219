"""The home is open to its owner alone, and errors in the settings name the line."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.config import ConfigError, Home
from holdfast.lifecycle.doctor import examine
from holdfast.read_settings import load_settings
from holdfast.settings import Settings
from holdfast.store.contract import Finding
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
    with pytest.raises(ConfigError, match=r"Other users can write to .*chmod 700"):
        home.prepare()


def test_home_that_others_can_read_is_closed_and_the_doctor_says_so(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    home.config.write_text("")
    home.token.write_text("x" * 43)
    opened = {home.path: 0o755, home.run: 0o711, home.config: 0o644, home.token: 0o640}
    for path, bits in opened.items():
        path.chmod(bits)
    found = examine(home)[0]
    assert not found.ok and all(str(path) in found.detail for path in opened)
    assert mode(home.path) == 0o755, "the doctor only looks"
    home.check()
    assert [mode(path) for path in opened] == [0o700, 0o700, 0o600, 0o600]
    assert examine(home)[0].ok


def test_doctor_finds_a_home_that_cannot_be_made_or_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = examine(Home(tmp_path / "file" / "home"))[0]
    assert not found.ok and "cannot be created" in found.detail
    disk = tmp_path / "disk"
    disk.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "ro,mode=700", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        found, below = examine(Home(disk))[0], examine(Home(disk / "home"))[0]
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    assert not found.ok and "is read-only" in found.detail
    assert not below.ok and "cannot be created" in below.detail


def test_doctor_names_a_key_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    def models() -> Finding:
        return next(finding for finding in examine(home) if finding.name == "models")

    home.config.write_text("[profiles.writer]\nmodel = 'openai:gpt-5.5'\n")
    found = models()
    assert not found.ok and "writer uses openai:gpt-5.5, and OPENAI_API_KEY is not set" in found.detail
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    assert models().ok


def test_a_home_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    stranger = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: stranger)
    with pytest.raises(ConfigError, match=rf"belongs to user {stranger - 1}, not to you \({stranger}\)"):
        home.prepare()


@pytest.mark.parametrize("verb", [["status"], ["serve"], ["restart"], ["config", "check"], ["doctor"]])
def test_directory_with_other_purpose_is_refused_and_left_as_it_is(tmp_path: Path, verb: list[str]) -> None:
    (tmp_path / "run" / "lock").mkdir(parents=True)
    (tmp_path / "passwd").write_text("root")
    (tmp_path / "config.toml").write_text("title = 'of another program'")
    tmp_path.chmod(0o755)
    command = [sys.executable, "-P", "-m", "holdfast", "--home", str(tmp_path), *verb]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode and "is not a Holdfast home: it holds other files, such as passwd." in said
    assert mode(tmp_path) == 0o755
    assert {path.name for path in tmp_path.iterdir()} == {"run", "passwd", "config.toml"}


@pytest.mark.parametrize("name", ["run.sh", "tasks.py", "logs-2025", ".bashrc"])
def test_file_that_is_only_named_like_one_of_a_home_shows_another_purpose(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    tmp_path.chmod(0o755)
    with pytest.raises(ConfigError, match=f"other files, such as {name}"):
        Home(tmp_path).prepare()
    assert mode(tmp_path) == 0o755


NEW_HOMES = [[], ["run/"], ["lost+found/", "tasks/"], ["config.toml", "config.toml~", ".config.toml.swp"]]


@pytest.mark.parametrize("has", [*NEW_HOMES, ["holdfast.db", "notes"], ["logs/gateway.log", "notes"]])
def test_home_may_have_any_files_once_it_is_one(tmp_path: Path, has: list[str]) -> None:
    for name in has:
        place = tmp_path / name
        place.parent.mkdir(mode=0o700, exist_ok=True)
        if name.endswith("/"):
            place.mkdir(mode=0o700)
        else:
            place.touch()
    tmp_path.chmod(0o755)
    Home(tmp_path).prepare()
    assert mode(tmp_path) == 0o700
    Home(tmp_path).check()


def test_a_home_that_cannot_be_made_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot be created.*--home"):
        Home(tmp_path / "file").prepare()
    with pytest.raises(ConfigError, match=r"cannot be created.*--home"):
        Home(tmp_path / "file" / "below").prepare()


# --- settings ---------------------------------------------------------------------------------------

WRONG = {
    "unknown table": ("# hello\n[gatewy]\nport = 1\n", 2, "gatewy is not a setting; here you can set: default_profile"),
    "unknown key": ("[gateway]\nport = 1\nprot = 2\n", 3, "gateway.prot is not a setting"),
    "unknown key of a profile": ("[profiles.a]\nmodle = 'x'\n", 2, "profiles.a.modle is not a setting"),
    "unknown dotted key": ("gateway.prot = 1\n", 1, "gateway.prot is not a setting"),
    "unknown key in an inline table": ("\nresume = { attempt = 3 }\n", 2, "resume.attempt is not a setting"),
    "wrong type": (
        "[resume]\n\nattempts = 'three'\n",
        3,
        "resume.attempts: write a whole number, not a text in quotes",
    ),
    "wrong type in an inline table": (
        "\n\ngateway = { port = 'x' }\n",
        3,
        "gateway.port: write a whole number, not a text in quotes",
    ),
    "text for a table": ("gateway = 'x'\n", 1, "gateway: write a table"),
    "number for a profile": ("[profiles]\na = 1\nb = 2\n", 2, "profiles.a: write a table"),
    "wrong type in a profile": (
        "[profiles.a]\n[profiles.b]\nmax_steps = 'x'\n",
        3,
        "profiles.b.max_steps: write a whole number, not a text in quotes",
    ),
    "float for an integer": ("[resume]\nattempts = 1.5\n", 2, "resume.attempts: write a whole number"),
    "too large": ("[gateway]\nport = 70000\n", 2, "gateway.port must be between 0 and 65535"),
    "negative": ("[resume]\nmax_age_minutes = -1\n", 2, "resume.max_age_minutes must be between 0"),
    "a key": ('[mcp.a]\nurl = "http://x"\nbearer_env = "sk-proj-1"\n', 3, "mcp.a.bearer_env takes the NAME"),
    "another key": ('[providers.a]\napi_key_env = "gsk_0abcdefghij123456789"\n', 2, "takes the NAME"),
    "no steps": ("[profiles.a]\nmax_steps = 0\n", 2, "profiles.a.max_steps must be between 1"),
    "unknown default": ("\ndefault_profile = 'nobody'\n", 2, "There is no profile 'nobody'. The profiles are: demo"),
    "no address of a provider": (
        "[providers.mine]\nbase_url = 'localhost:9000'\n",
        2,
        "providers.mine.base_url is 'localhost:9000'; write http://HOST:PORT/PATH",
    ),
    "another database": (
        "[store]\nurl = 'mysql://db/holdfast'\n",
        2,
        "store.url begins with 'mysql'; write postgresql://USER@HOST/DATABASE",
    ),
    "no TOML": ("[gateway]\nport = \n", 2, "Invalid value"),
    "twice": ("[gateway]\nport = 1\nport = 2\n", 3, "Cannot overwrite a value"),
    "bad name of a key": ("[gateway]\nport = 1\n= 2\n", 3, "Invalid"),
}
MODES = '"none", "idle", "daily", "both"'
PROVIDERS = "with a provider of: anthropic, llamacpp"
WRONG_RESETS = {
    "unknown key": ("idle_hours = 2", "idle_hours is not a setting; here you can set: mode, idle_minutes, at_hour"),
    "unknown mode": ("mode = 'weekly'", f"mode: write one of: {MODES}."),
    "mode of another type": ("mode = 3", f"mode: write one of: {MODES}."),
    "no minutes": ("idle_minutes = 0", "idle_minutes must be between 1 and 10000000, not 0"),
    "minutes as a text": ("idle_minutes = '30'", "idle_minutes: write a whole number, not a text in quotes"),
    "half minutes": ("idle_minutes = 1.5", "idle_minutes: write a whole number, not a decimal number"),
    "hour 24": ("at_hour = 24", "at_hour must be between 0 and 23, not 24"),
    "hour as a text": ("at_hour = '04:00'", "at_hour: write a whole number, not a text in quotes"),
    "no such zone": (
        "timezone = 'Mars/Olympus'",
        "timezone is 'Mars/Olympus', which this machine does not know; write",
    ),
    "zone that is a path": (
        "timezone = '/etc/localtime'",
        "timezone is '/etc/localtime', which is none; write one like",
    ),
    "zone as a number": ("timezone = 2", "timezone: write a text in quotes, not a whole number"),
    "span without a unit": ("max_postpone = '90'", "max_postpone is '90'; write a number and a unit, like 30s"),
    "span as a number": ("max_postpone = 90", 'max_postpone: write a number and a unit in quotes, like "30s"'),
    "span in words": ("process_max_age = 'a day'", "process_max_age is 'a day'; write a number and a unit"),
    "unknown end of processes": ("on_live_process = 'kill'", 'on_live_process: write one of: "hand_over", "stop_idle"'),
    "note as a text": ("hand_over_note = 'yes'", "hand_over_note: write true or false, not a text in quotes"),
    "notify as a number": ("notify = 1", "notify: write true or false, not a whole number"),
}
WRONG_COMPACTIONS = {
    "unknown key": ("treshold = 2", "treshold is not a setting; here you can set: threshold, limit, keep_recent"),
    "negative threshold": ("threshold = -1", "threshold must be between 0 and 100000000, not -1"),
    "threshold as a text": ("threshold = '80%'", "threshold: write a whole number, not a text in quotes"),
    "limit below the threshold": ("limit = 500", "limit is 500, below the threshold of 100000; write 100000 or more"),
    "negative turns": ("keep_recent = -1", "keep_recent must be between 0 and 1000"),
    "no provider": ("summary_model = 'nowhere:small'", "summary_model is 'nowhere:small'; write `demo` or"),
    "no model": ("summary_model = 'openai:'", PROVIDERS),
    "no time": ("summary_timeout = 0", "summary_timeout must be between 1 and 3600, not 0"),
    "time as a span": ("summary_timeout = '60s'", "summary_timeout: write a whole number, not a text in quotes"),
    "unknown failure": ("on_failure = 'drop'", 'on_failure: write one of: "digest", "pause".'),
}
for table, wrong in (
    ("session_reset", WRONG_RESETS),
    ("profiles.b.session_reset", WRONG_RESETS),
    ("compaction", WRONG_COMPACTIONS),
):
    before = "[profiles.a]\n[profiles.a.session_reset]\nmode = 'none'\n" if "profiles" in table else ""
    lines = before.count("\n") + 2
    for name, (text, message) in wrong.items():
        said = message if message == PROVIDERS else f"{table}.{message}"
        WRONG[f"{table}: {name}"] = (f"{before}[{table}]\n{text}\n", lines, said)
WRONG["tool policy"] = (
    "[profiles.a.tools]\nread = 'ask'\n'x:a *' = 'maybe'\n",
    3,
    'profiles.a.tools.x:a *: write one of: "allow", "ask", "deny"',
)


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
