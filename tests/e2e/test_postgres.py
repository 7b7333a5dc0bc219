"""A gateway whose log is in PostgreSQL: killed in the middle of a turn, and started with addresses that are wrong."""

from __future__ import annotations

import secrets
from pathlib import Path

import psycopg
import pytest

from holdfast.app import AskedStore, serve
from holdfast.config import Home, command_environment
from holdfast.settings import Settings, StoreSettings
from tests.e2e.gateway import GatewayProcess, check_whole, kinds
from tests.postgres_server import shared_server


def with_store(home: Path, line: str) -> Path:
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(f"[store]\n{line}\n")
    return home


def test_promise_1_a_killed_gateway_resumes_from_the_database(tmp_path: Path) -> None:
    name = f"e{secrets.token_hex(4)}"
    shared_server().sql(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
    home = with_store(tmp_path / "home", f'url = "{shared_server().url(name)}"')
    with GatewayProcess(home) as gateway:
        gateway.start()
        session = gateway.create("hang\nsay goodbye")
        gateway.until_event(session, "ModelRequested")
        gateway.kill9()
        gateway.start_and_let_go()
        records = gateway.until_rest(session)
        check_whole(records)
        assert "TurnResumed" in kinds(records)
        assert records[-1]["event"]["outcome"] == "done"
        assert not (home / "holdfast.db").exists()
        with psycopg.connect(shared_server().url(name)) as db:
            stored = db.execute(
                "SELECT data FROM holdfast.events WHERE stream = %s ORDER BY version", [f"session/{session}"]
            )
            assert len(stored.fetchall()) == len(records)
        assert gateway.terminate() == 0
    shared_server().sql(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.parametrize(
    ("line", "asked", "code", "said"),
    [
        ('url = "postgresql://me:hunter2@h/db"', "", 2, "holds a password"),
        ('url_env = "NO_SUCH_VARIABLE"', "", 2, "NO_SUCH_VARIABLE is not set"),
        ('url = "postgresql://h/db"\nurl_env = "X"', "", 2, "either a url or a url_env"),
        ("", "postgresql://me:hunter2@h/db", 2, "holds a password"),
        ("", "host=h password=hunter2", 2, "holds a password"),
        ('url = "postgresql://h/db"\n[node]\nname = "local"', "", 2, "A node cannot be called local"),
        ("", "nonsense", 1, "cannot be read"),
        ("", "postgresql://127.0.0.1:1/db", 1, "db on 127.0.0.1:1 cannot be reached"),
    ],
)
def test_an_address_that_cannot_be_used_is_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, asked: str, code: int, said: str
) -> None:
    home = with_store(tmp_path / "home", line)
    assert serve(Home(home), port=0, background=True, store=AskedStore(asked)) == code
    shown = capsys.readouterr().err
    assert said in shown
    assert "hunter2" not in shown + "".join(path.read_text() for path in home.rglob("*.log"))
    assert not (home / "holdfast.db").exists()


def test_commands_inherit_nothing_that_leads_to_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MY_DATABASE", "PGPASSWORD", "PGPASSFILE", "PGSERVICE", "PGSERVICEFILE"):
        monkeypatch.setenv(name, "x")
    hidden = Settings(store=StoreSettings(url_env="MY_DATABASE")).hidden_names
    left = command_environment(hidden)
    assert not {"MY_DATABASE", "PGPASSWORD", "PGPASSFILE", "PGSERVICE", "PGSERVICEFILE"} & left.keys()
    assert "PATH" in left
