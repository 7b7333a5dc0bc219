"""A real gateway that dies before and after each of its writes, found by counting and not from a list.

One turn with text, tools and a message that steers. After every crash the next gateway finishes what the
last one left, the client repeats what was not acknowledged, and then it is the next write's turn to crash.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path

import httpx
import pytest

from tests.e2e.crashing_gateway import CRASHED
from tests.e2e.gateway import GatewayProcess, Json, check_whole, of_kind, until

SCRIPT = Path(__file__).with_name("crashing_gateway.py")
FIRST = "say one\nwrite f.txt {n}\nslow 0.12 two three four five\nread f.txt"
SECOND = "say six"
CONSTANTS = {"holdfast.runtime.turn.SAVE_SECONDS": 0.05}


@pytest.mark.parametrize("when", ["before", "after"])
def test_promise_1_and_2_a_crash_at_every_write(tmp_path: Path, when: str) -> None:
    gateway = GatewayProcess(tmp_path / "home", script=SCRIPT, constants=CONSTANTS)
    crashes = 0
    left: Script | None = None
    with gateway:
        for at in count(1):
            gateway.arguments = (when, str(at), f"first-of-{at}")
            gateway.start()
            if left is not None:
                left.finish(gateway)
            left = Script(tmp_path, at)
            if left.crashed(gateway):
                crashes += 1
                continue
            left.check(gateway)
            break
    print(f"\n{crashes} crashes {when} a write: 0 lost, 0 doubled, every turn ended")
    assert crashes >= 16, "the turn has more writes than that"


class Script:
    """What one client wants, and what it was told."""

    def __init__(self, cwd: Path, number: int) -> None:
        self.cwd = cwd
        self.number = number
        self.session = ""
        self.acknowledged: dict[str, Json] = {}

    def crashed(self, gateway: GatewayProcess) -> bool:
        """Tell it everything and wait; True when the gateway died meanwhile."""
        try:
            self._tell(gateway)
            until(lambda: self._is_at_rest(gateway), "rest or a crash", pause=0.01)
        except httpx.TransportError:
            assert gateway.wait_for_end() == CRASHED
            return True
        return False

    def finish(self, gateway: GatewayProcess) -> None:
        """After a crash: repeat what was not acknowledged, under the same ids."""
        self._tell(gateway)
        until(lambda: self._is_at_rest(gateway), "rest")
        self.check(gateway)

    def _tell(self, gateway: GatewayProcess) -> None:
        body = {"text": FIRST.format(n=self.number), "cwd": str(self.cwd)}
        self._command(gateway, "/v1/sessions", body, "first")
        self.session = self.acknowledged["first"]["session"]
        body = {"text": SECOND, "mode": "steer"}
        self._command(gateway, f"/v1/sessions/{self.session}/messages", body, "second")

    def _command(self, gateway: GatewayProcess, path: str, body: Json, name: str) -> None:
        if name not in self.acknowledged:
            self.acknowledged[name] = gateway.command("POST", path, body, key=f"{name}-of-{self.number}")

    def _is_at_rest(self, gateway: GatewayProcess) -> bool:
        """Also its worker has gone home, whose last write is no event."""
        state = gateway.session(self.session)["state"]
        return state == "idle" and self.session not in gateway.get("/v1/status")["working"]

    def check(self, gateway: GatewayProcess) -> None:
        records = gateway.events(self.session)
        check_whole(records)
        inputs = of_kind(records, "InputReceived")
        assert [event["input"] for event in inputs] == [f"first-of-{self.number}", f"second-of-{self.number}"]
        for name, accepted in self.acknowledged.items():
            record = records[accepted["version"] - 1]
            assert (record["seq"], record["event"].get("input")) == (accepted["seq"], f"{name}-of-{self.number}")
        finished = of_kind(records, "TurnFinished")
        assert [event["turn"] for event in of_kind(records, "TurnStarted")] == [event["turn"] for event in finished]
        assert {event["outcome"] for event in finished} == {"done"}
        answers = of_kind(records, "ModelResponded")
        steps = [(event["turn"], event["step"]) for event in answers]
        assert len(set(steps)) == len(steps), "each step has one answer"
        said = [line for event in answers for line in event["text"].split("\n")]
        reports = ("write done: ", "read done: ")  # left out where the second message joined in between
        assert [line for line in said if not line.startswith(reports)] == ["one", "two three four five", "six"]
        tools = of_kind(records, "ToolCallFinished")
        assert [(event["tool"], event["outcome"]) for event in tools] == [("write", "done"), ("read", "done")]
        assert tools[1]["output"] == f"{self.number}\n"
        assert (self.cwd / "f.txt").read_text() == f"{self.number}\n"
        detail = gateway.session(self.session)
        assert detail["message_count"] == len(inputs) + len(answers)
        assert detail["version"] == len(records)
