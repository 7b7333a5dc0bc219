"""A real gateway that dies before and after each write of a reset, its undo, a summary and the words between them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.crash_points import SCRIPT, Client, crash_at_every_write, patient_home
from tests.e2e.gateway import GatewayProcess, Json, check_whole, of_kind, until
from tests.e2e.tasks import home_with_commands, task, tasks_of


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.proof)])
@pytest.mark.parametrize("when", ["before", "after"])
def test_promise_6_a_crash_at_every_write_of_a_reset_and_a_summary(tmp_path: Path, when: str, every: int) -> None:
    opened = home_with_commands(patient_home(tmp_path), script=SCRIPT)
    writes = crash_at_every_write(opened, lambda at: Chapters(tmp_path, at), when=when, every=every)
    print(f"{writes} writes, a crash {when} every {every}: 0 messages lost or doubled, one reset, one summary")
    assert writes >= 12, "it has more writes than that"


class Chapters(Client):
    """Words, a reset that stops a command, words, the undo, a summary, words."""

    first = "reset"

    def tell(self, gateway: GatewayProcess) -> None:
        body: Json = {"text": "say one\nbg sleep 600", "cwd": str(self.cwd)}
        self.session = self.command(gateway, "/v1/sessions", body, "first")["session"]
        path = f"/v1/sessions/{self.session}"
        self._rest(gateway)
        self.command(gateway, f"{path}/reset", {"running": "stop", "note": True}, "reset")
        self.command(gateway, f"{path}/messages", {"text": "say two"}, "second")
        self._rest(gateway)
        self.command(gateway, f"{path}/reset/undo", {}, "undo")
        self.command(gateway, f"{path}/compact", {"instructions": "briefly"}, "short")
        gateway.until_event(self.session, "SummaryWritten", count=2)
        self.command(gateway, f"{path}/messages", {"text": "count"}, "third")
        until(lambda: self._commands_are_over(gateway), "the end of the command that the reset stopped is written")
        self._rest(gateway)

    def _commands_are_over(self, gateway: GatewayProcess) -> bool:
        return all(one["state"] != "running" for one in tasks_of(gateway, self.session))

    def _rest(self, gateway: GatewayProcess) -> None:
        until(lambda: self.is_at_rest(gateway), "rest")

    def check(self, gateway: GatewayProcess) -> None:
        records = gateway.events(self.session)
        check_whole(records)
        inputs = [event["input"] for event in of_kind(records, "InputReceived")]
        assert inputs == [self.key(name) for name in ("first", "second", "third")]
        assert [event["outcome"] for event in of_kind(records, "TurnFinished")] == ["done"] * 3
        [reset] = of_kind(records, "ChapterOpened")
        [running] = tasks_of(gateway, self.session)
        assert [one["task"] for one in reset["stopped"]] == [running["id"]] and reset["hand_over"]
        until(lambda: task(gateway, running["id"])["state"] == "stopped", "its end was wanted, so it ends")
        assert len(of_kind(records, "ChapterRejoined")) == 1
        note, summary = of_kind(records, "SummaryWritten")
        assert (note["purpose"], note["summary"]) == ("hand_over", reset["hand_over"]), "written once"
        assert (summary["source"], summary["covers_turn"]) == ("model", 1)
        said = of_kind(records, "ModelResponded")[-1]["text"]
        assert "I have seen 2 user messages" in said and "say two" in said, "the summary, then what it left"
