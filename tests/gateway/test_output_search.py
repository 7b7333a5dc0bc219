"""The search in the output of one task: all of it, in pages, while it grows, and only as long as somebody waits."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from tests.e2e.gateway import GatewayProcess, Json, until, wait_for
from tests.e2e.tasks import start, until_over

MIB = 1 << 20


def search(gateway: GatewayProcess, task: str, text: str, **query: object) -> Json:
    return dict(gateway.get(f"/v1/tasks/{task}/output/search", q=text, **query))


def everything(gateway: GatewayProcess, task: str, text: str, *, limit: int = 100) -> list[Json]:
    found: list[Json] = []
    page: Json = {"more": True, "next": 0}
    while page["more"]:
        page = search(gateway, task, text, offset=page["next"], limit=limit)
        found += page["matches"]
    return found


def test_all_kept_lines_are_searched_and_the_gap_is_reported(gateway: GatewayProcess, tmp_path: Path) -> None:
    line = "a line without it" + " and more" * 20
    script = f"echo The Needle; yes '{line}' | head -c 12M; echo; printf 'a ne\\033[31medle\\033[0m at the end\\n'"
    task = start(gateway, script, cwd=tmp_path)
    ended = until_over(gateway, task)
    assert ended["dropped_bytes"] > 0
    page = search(gateway, task, "needle")
    first, last = page["matches"]
    assert (first["offset"], first["before"], first["text"], first["line"]) == (4, "The ", "Needle", 0)
    assert (last["before"], last["text"], last["after"]) == ("a ", "needle", " at the end")
    raw = gateway.request("GET", f"/v1/tasks/{task}/output", params={"raw": "true", "offset": last["offset"]})
    assert raw.content[: last["end"] - last["offset"]] == b"ne\x1b[31medle"
    gap = page["dropped"]
    assert gap["end"] - gap["start"] == ended["dropped_bytes"]
    assert (page["more"], page["next"], page["size"]) == (False, ended["output_bytes"], ended["output_bytes"])
    assert [match["offset"] for match in everything(gateway, task, "needle", limit=1)] == [4, last["offset"]]
    assert search(gateway, task, "not there")["matches"] == []
    many = everything(gateway, task, "without", limit=1000)
    assert len(many) > 20_000 and len({match["offset"] for match in many}) == len(many), "each of them once"


def test_what_a_running_command_writes_is_found_from_the_last_cursor_on(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    task = start(gateway, f"printf 'one needle\\nand nee'; {wait_for(go)}; echo 'dle'", cwd=tmp_path)
    page = until(lambda: found if (found := search(gateway, task, "needle"))["size"] == 18 else None, "it wrote")
    assert ([match["offset"] for match in page["matches"]], page["more"], page["state"]) == ([4], False, "running")
    go.touch()
    until_over(gateway, task)
    page = search(gateway, task, "needle", offset=page["next"])
    assert ([match["offset"] for match in page["matches"]], page["state"]) == ([15], "done")


def test_search_is_refused_or_empty_where_there_is_nothing_to_search(gateway: GatewayProcess, tmp_path: Path) -> None:
    task = start(gateway, "true", cwd=tmp_path)
    until_over(gateway, task)
    page = search(gateway, task, "x")
    assert (page["matches"], page["more"], page["size"]) == ([], False, 0)
    for query in ({}, {"q": ""}, {"q": "a\nb"}, {"q": "x" * 201}, {"q": "x", "limit": "0"}):
        answer = gateway.request("GET", f"/v1/tasks/{task}/output/search", params=query)
        assert answer.status_code == 400, query


def bytes_read(gateway: GatewayProcess) -> int:
    return int(Path(f"/proc/{gateway.pid}/io").read_text().split()[1])


def cpu_ticks(gateway: GatewayProcess) -> int:
    return int(Path(f"/proc/{gateway.pid}/stat").read_text().rpartition(")")[2].split()[11])


def test_gateway_answers_others_and_stops_when_the_client_goes(gateway: GatewayProcess, tmp_path: Path) -> None:
    if not os.access(f"/proc/{gateway.pid}/io", os.R_OK):
        pytest.skip("only root sees how much a gateway has read")
    task = start(gateway, "true", cwd=tmp_path)
    until_over(gateway, task)
    with (gateway.home / "tasks" / task / "output.log").open("wb") as file:
        for _ in range(60):  # almost as much as one request searches, and slow to search
            file.write(("n" * 29 + "\xfc\n").encode() * (MIB // 32))
    memory, read = gateway.rss(), bytes_read(gateway)
    busy = socket.create_connection(("127.0.0.1", gateway.port))
    request = f"GET /v1/tasks/{task}/output/search?q={'n' * 30} HTTP/1.1\r\nHost: 127.0.0.1:{gateway.port}\r\n"
    busy.sendall(f"{request}Authorization: Bearer {gateway.token}\r\n\r\n".encode())
    until(lambda: bytes_read(gateway) > read + MIB, "it searches")
    assert gateway.get(f"/v1/tasks/{task}")["id"] == task, "others are answered meanwhile"
    busy.close()

    def rests() -> bool:
        used = cpu_ticks(gateway)
        time.sleep(0.5)
        return cpu_ticks(gateway) == used

    until(rests, "the search has ended")
    assert bytes_read(gateway) < read + 50 * MIB, "before it was through"
    assert gateway.rss() < memory + 30 * MIB
