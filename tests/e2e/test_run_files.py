"""`run/` is deleted under a live gateway: it comes back, and there are never two gateways on one home."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from holdfast.config import Home
from holdfast.lifecycle.doctor import examine
from tests.e2e.gateway import GatewayProcess, check_whole, kinds, until
from tests.eventually import PATIENCE


def test_promise_2_run_is_deleted_under_load_and_a_second_gateway_is_refused(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.start()
        run, before, token = gateway.home / "run", gateway.address, gateway.token
        session = gateway.create()
        with ThreadPoolExecutor(1) as pool:
            sending = pool.submit(lambda: [gateway.send(session, f"say {number}") for number in range(40)])
            for _ in range(2):
                shutil.rmtree(run)
                second = gateway.spawn()
                assert second.wait(PATIENCE) == 5, "it is refused, whatever became of the lock file"
                until(lambda: gateway.address == before and (run / "lock").exists(), "the files are there again")
            sending.result()
        assert gateway.token == token and (run / "token").stat().st_mode & 0o777 == 0o600
        assert (run / "lock").read_text() == f"{gateway.pid}\n"
        third = gateway.spawn()
        assert third.wait(PATIENCE) == 5 and f"pid {gateway.pid}" in gateway.stderr
        records = gateway.until_rest(session)
        check_whole(records)
        assert kinds(records).count("InputReceived") == kinds(records).count("TurnFinished") == 40
        assert f"pid {gateway.pid}" in next(one.detail for one in examine(Home(gateway.home)) if one.name == "gateway")


def test_log_names_the_file_that_was_written_again_and_no_other(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        token = gateway.start().token

        def written() -> list[str]:
            return [line["message"] for line in gateway.log if line["message"].startswith("written to ")]

        before = written()
        (gateway.home / "run" / "token").unlink()
        told = until(lambda: written()[len(before) :], "it says so")
        assert told == [f"written to {gateway.home / 'run'}: token"]
        assert gateway.token == token


def test_gateway_ends_when_its_home_is_gone(tmp_path: Path) -> None:
    """What it would still write could be found by nobody."""
    with GatewayProcess(tmp_path / "home") as gateway:
        url = gateway.start().url
        assert httpx.get(f"{url}/healthz").status_code == 200
        gateway.home.rename(tmp_path / "elsewhere")
        assert gateway.wait_for_end() == 0
    assert not gateway.home.exists()
