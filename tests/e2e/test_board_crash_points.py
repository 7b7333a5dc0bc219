"""A real gateway that is gone before or after a write of a card's life: claim, start, block, unblock, complete.

Every point is tried inside a process (`tests/board/test_points.py`); here some of them, with `os._exit`.
"""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.e2e.board import create_card, detail, tell_card, until_card
from tests.e2e.crash_points import SCRIPT, patient_home
from tests.e2e.crashing_gateway import CRASHED
from tests.e2e.gateway import GatewayProcess, check_whole, of_kind, until

BODY = "write a.txt one\nblock which colour?"
ANSWER = "read a.txt\ncomplete it is blue"


def test_promise_1_and_2_a_crash_in_the_life_of_a_card(tmp_path: Path) -> None:
    assert crashes_at(tmp_path, "after", (5, 12, 20)) == 3


@pytest.mark.proof
@pytest.mark.parametrize("when", ["before", "after"])
def test_promise_1_and_2_many_crashes_in_the_life_of_a_card(tmp_path: Path, when: str) -> None:
    crashes = crashes_at(tmp_path, when, tuple(range(1, 37)))
    print(f"\n{crashes} crashes {when} a write: two runs, one end, every word heard once")
    assert crashes >= 18


def crashes_at(tmp_path: Path, when: str, points: tuple[int, ...]) -> int:
    """How many of the points were reached; after each the next gateway finishes what the last one left."""
    crashes = 0
    with GatewayProcess(patient_home(tmp_path), script=SCRIPT) as gateway:
        for at in points:
            gateway.arguments = (when, str(at), f"create-{at:04}")
            gateway.start()
            card = Life(at)
            try:
                card.live(gateway)
            except httpx.TransportError:
                assert gateway.wait_for_end() == CRASHED
                crashes += 1
                gateway.arguments = (when, "1000000", "nothing")
                gateway.start()
                card.live(gateway)
            card.check(gateway)
            gateway.kill9()
    return crashes


class Life:
    """What one client wants; all of it can be said again."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.card = ""

    def live(self, gateway: GatewayProcess) -> None:
        self.card = create_card(gateway, BODY, key=f"create-{self.number:04}", profile="demo")
        until_card(gateway, self.card, "blocked", "done")
        tell_card(gateway, self.card, "unblock", {"text": ANSWER}, key=f"unblock-{self.number:04}")
        done = until_card(gateway, self.card, "done")
        gateway.until_rest(done["card"]["session"])
        until(lambda: not gateway.get("/v1/status")["working"], "its worker has gone home")

    def check(self, gateway: GatewayProcess) -> None:
        found = detail(gateway, self.card)
        assert [(run["outcome"], run["resumes"], run["counts"]) for run in found["runs"]] == [
            ("blocked", 0, False),
            ("done", 1, False),
        ]
        records = gateway.until_rest(found["card"]["session"])
        check_whole(records)
        assert [event["tool"] for event in of_kind(records, "ToolCallFinished")] == [
            "write",
            "kanban_block",
            "read",
            "kanban_complete",
        ]
        asked = [event["text"] for event in of_kind(records, "InputReceived")]
        assert asked[0] == BODY and asked[1].endswith(f"wrote:]\n{ANSWER}") and len(asked) == 2
