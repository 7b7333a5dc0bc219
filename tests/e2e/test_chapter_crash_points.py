"""A real gateway that dies before and after each write of a reset, its undo, a summary and the words between them."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import httpx
import pytest

from tests.e2e.crashing_gateway import CRASHED
from tests.e2e.gateway import GatewayProcess, Json, check_whole, of_kind, until
from tests.e2e.tasks import home_with_commands, task, tasks_of

SCRIPT = Path(__file__).with_name("crashing_gateway.py")


@pytest.mark.parametrize("when", ["before", pytest.param("after", marks=pytest.mark.proof)])
def test_promise_6_a_crash_at_every_write_of_a_reset_and_a_summary(tmp_path: Path, when: str) -> None:
    crashes = 0
    left: Script | None = None
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "home" / "config.toml").write_text("[resume]\nattempts = 1000\n")
    with home_with_commands(tmp_path / "home", script=SCRIPT) as gateway:
        for at in count(1):
            gateway.arguments = (when, str(at), f"reset-of-{at:04}")
            gateway.start()
            if left is not None:
                left.finish(gateway)
            left = Script(tmp_path, at)
            if left.crashed(gateway):
                crashes += 1
                continue
            left.check(gateway)
            break
    print(f"\n{crashes} crashes {when} a write: 0 messages lost or doubled, one reset, one summary")
    assert crashes >= 16, "it has more writes than that"


class Script:
    """One client: words, a reset that stops a command, words, the undo, a summary, words."""

    def __init__(self, cwd: Path, number: int) -> None:
        self.cwd = cwd
        self.number = number
        self.session = ""

    def crashed(self, gateway: GatewayProcess) -> bool:
        try:
            self._tell(gateway)
        except httpx.TransportError:
            assert gateway.wait_for_end() == CRASHED
            return True
        return False

    def finish(self, gateway: GatewayProcess) -> None:
        """After a crash: all of it again, under the same ids."""
        self._tell(gateway)
        self.check(gateway)

    def _tell(self, gateway: GatewayProcess) -> None:
        body: Json = {"text": "say one\nbg sleep 600", "cwd": str(self.cwd)}
        self.session = self._command(gateway, "/v1/sessions", body, "first")["session"]
        path = f"/v1/sessions/{self.session}"
        self._rest(gateway)
        self._command(gateway, f"{path}/reset", {"running": "stop", "note": True}, "reset")
        self._command(gateway, f"{path}/messages", {"text": "say two"}, "second")
        self._rest(gateway)
        self._command(gateway, f"{path}/reset/undo", {}, "undo")
        self._command(gateway, f"{path}/compact", {"instructions": "briefly"}, "short")
        gateway.until_event(self.session, "ContextCompacted")
        self._command(gateway, f"{path}/messages", {"text": "count"}, "third")
        self._rest(gateway)

    def _command(self, gateway: GatewayProcess, path: str, body: Json, name: str) -> Json:
        return gateway.command("POST", path, body, key=f"{name}-of-{self.number:04}")

    def _rest(self, gateway: GatewayProcess) -> None:
        until(lambda: self._is_at_rest(gateway), "rest", pause=0.01)

    def _is_at_rest(self, gateway: GatewayProcess) -> bool:
        state = gateway.session(self.session)["state"]
        return state == "idle" and self.session not in gateway.get("/v1/status")["working"]

    def check(self, gateway: GatewayProcess) -> None:
        records = gateway.events(self.session)
        check_whole(records)
        inputs = [event["input"] for event in of_kind(records, "InputReceived")]
        assert inputs == [f"{name}-of-{self.number:04}" for name in ("first", "second", "third")]
        assert [event["outcome"] for event in of_kind(records, "TurnFinished")] == ["done"] * 3
        [reset] = of_kind(records, "ChapterOpened")
        [running] = tasks_of(gateway, self.session)
        assert [one["task"] for one in reset["stopped"]] == [running["id"]] and reset["hand_over"]
        until(lambda: task(gateway, running["id"])["state"] == "stopped", "its end was wanted, so it ends")
        assert len(of_kind(records, "ChapterRejoined")) == 1
        [summary] = of_kind(records, "ContextCompacted")
        assert (summary["source"], summary["covers"]) == ("model", 1)
        said = of_kind(records, "ModelResponded")[-1]["text"]
        assert "I have seen 2 user messages" in said and "say two" in said, "the summary, then what it left"
