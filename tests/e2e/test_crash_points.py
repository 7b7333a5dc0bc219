"""A real gateway that dies before and after each of its writes, found by counting and not from a list.

One turn with text, tools and a message that steers. After every crash the next gateway finishes what the
last one left, the client repeats what was not acknowledged, and then it is the next write's turn to crash.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.crash_points import SCRIPT, Client, crash_at_every_write
from tests.e2e.gateway import GatewayProcess, Json, check_whole, of_kind, until

FIRST = "say one\nwrite f.txt {n}\nslow 0.12 two three four five\nread f.txt"
SECOND = "say six"
TIMINGS = {"runtime.save": 0.05}


@pytest.mark.parametrize("when", ["before", "after"])
def test_promise_1_and_2_a_crash_at_every_write(tmp_path: Path, when: str) -> None:
    gateway = GatewayProcess(tmp_path / "home", script=SCRIPT, timings=TIMINGS)
    crashes = crash_at_every_write(gateway, lambda at: Talk(tmp_path, at), when=when, every=2)
    print(f"\n{crashes} crashes {when} a write: 0 lost, 0 doubled, every turn ended")
    assert crashes >= 5, "the turn has more writes than that, also when some are committed together"


class Talk(Client):
    """Two messages; what was acknowledged is not said again."""

    first = "first"

    def __init__(self, cwd: Path, number: int) -> None:
        super().__init__(cwd, number)
        self.acknowledged: dict[str, Json] = {}

    def tell(self, gateway: GatewayProcess) -> None:
        body = {"text": FIRST.format(n=self.number), "cwd": str(self.cwd)}
        self.session = self._once(gateway, "/v1/sessions", body, "first")["session"]
        body = {"text": SECOND, "mode": "steer"}
        self._once(gateway, f"/v1/sessions/{self.session}/messages", body, "second")
        until(lambda: self.is_at_rest(gateway), "rest")

    def _once(self, gateway: GatewayProcess, path: str, body: Json, name: str) -> Json:
        if name not in self.acknowledged:
            self.acknowledged[name] = self.command(gateway, path, body, name)
        return self.acknowledged[name]

    def check(self, gateway: GatewayProcess) -> None:
        records = gateway.events(self.session)
        check_whole(records)
        inputs = of_kind(records, "InputReceived")
        assert [event["input"] for event in inputs] == [self.key("first"), self.key("second")]
        for name, accepted in self.acknowledged.items():
            record = records[accepted["version"] - 1]
            assert (record["seq"], record["event"].get("input")) == (accepted["seq"], self.key(name))
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
