"""Homes of earlier versions are moved to PostgreSQL and back by one command each, and show the same in every place."""

from __future__ import annotations

import json
import secrets
import tarfile
from pathlib import Path

import pytest

from tests.cli.commandline import CommandLine
from tests.e2e.gateway import GatewayProcess
from tests.homes.shown import shown
from tests.homes.test_old_homes import HOMES, NEVER_TOO_OLD, texts
from tests.postgres_server import shared_server

REMARK = "# a remark that stays"


@pytest.mark.parametrize("archive", HOMES, ids=lambda path: path.name.removesuffix(".tar.xz"))
def test_promise_1_a_home_shows_the_same_in_postgres_and_after_the_way_back(archive: Path, tmp_path: Path) -> None:
    name = f"h{secrets.token_hex(4)}"
    shared_server().sql(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
    address, home = shared_server().url(name), tmp_path / "home"
    with tarfile.open(archive) as packed:
        packed.extraction_filter = getattr(tarfile, "data_filter", None)
        packed.extractall(tmp_path)
    with (home / "config.toml").open("a") as config:
        config.write(f"{NEVER_TOO_OLD}\n{REMARK}\n")
    settings = (home / "config.toml").read_text()
    expected = json.loads(archive.with_name(archive.name.replace(".tar.xz", ".json")).read_text())
    cli = CommandLine(home)
    there = cli.json("store", "copy", str(home), address, "--switch")
    assert there["switched"] and there["events"] > 300
    assert f'url = "{address}"' in (home / "config.toml").read_text()
    assert REMARK in (home / "config.toml").read_text()
    with GatewayProcess(home) as gateway:
        in_postgres = shown(gateway.start())
        running = cli("store", "copy", address, str(tmp_path / "other"))
        assert running.returncode == 5 and "A gateway uses" in running.stderr
        assert gateway.terminate() == 0
    (home / "holdfast.db").rename(tmp_path / "holdfast.db")
    back = cli.json("store", "copy", address, str(home), "--switch")
    assert back["events"] > there["events"], "the gateway went on"
    assert (home / "config.toml").read_text().strip() == settings.strip()
    with GatewayProcess(home) as gateway:
        in_sqlite = shown(gateway.start())
    shared_server().sql(f"DROP DATABASE {name} WITH (FORCE)")
    for found in (in_postgres, in_sqlite):
        for kind in ("tasks", "cards", "inbox"):
            assert found[kind] == expected[kind], kind
        assert found["sessions"].keys() == expected["sessions"].keys()
        for id, session in expected["sessions"].items():
            now = found["sessions"][id]
            assert (now["title"], now["state"]) == (session["title"], session["state"])
            assert not texts(session["transcript"]) - texts(now["transcript"]), id
    assert in_sqlite == in_postgres
