"""A real gateway that dies before and after each write of a turn that starts commands and an agent.

After every crash the next gateway finishes what the last one left: each command ran once, with its true code,
the agent worked once, and whoever started them was told of each once.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.actors import by
from tests.e2e.crash_points import SCRIPT, Client, crash_at_every_write, patient_home
from tests.e2e.gateway import GatewayProcess, Json, check_whole, of_kind, until
from tests.e2e.tasks import home_with_commands, tasks_of

TEXT = "sh echo x >> {n}.waited; exit 3\nbg echo x >> {n}.left; exit 4\ndelegate write {n}.txt deep"


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.proof)])
@pytest.mark.parametrize("when", ["before", "after"])
def test_promise_3_and_5_a_crash_at_every_write(tmp_path: Path, when: str, every: int) -> None:
    opened = home_with_commands(patient_home(tmp_path), script=SCRIPT)
    writes = crash_at_every_write(opened, lambda at: Errand(tmp_path, at), when=when, every=every)
    print(f"{writes} writes, a crash {when} every {every}: every command ran once and was told of once")
    assert writes >= 15, "it has more writes than that"


class Errand(Client):
    """One session that starts a command it waits for, one that it leaves, and an agent."""

    first = "errand"

    def tell(self, gateway: GatewayProcess) -> None:
        body = {"text": TEXT.format(n=self.number), "cwd": str(self.cwd)}
        self.session = self.command(gateway, "/v1/sessions", body, "errand")["session"]
        until(lambda: self.is_at_rest(gateway), "rest")

    def is_at_rest(self, gateway: GatewayProcess) -> bool:
        tasks = tasks_of(gateway, self.session)
        told = [event for event in self._events(gateway) if event["kind"] == "TurnFinished"]
        states = [one["state"] for one in gateway.get("/v1/sessions", limit=500)["sessions"]]
        rest = set(states) <= {"idle"} and not gateway.get("/v1/status")["working"]
        return rest and len(told) == 2 and len(self._kept(tasks)) == 3 and all(t["state"] != "running" for t in tasks)

    def _events(self, gateway: GatewayProcess) -> list[Json]:
        return [record["event"] for record in gateway.events(self.session)]

    def _kept(self, tasks: list[Json]) -> list[Json]:
        """Without those that a crash kept from beginning: they were begun anew."""
        return [task for task in tasks if not task["reason"].startswith("never started")]

    def check(self, gateway: GatewayProcess) -> None:
        records = gateway.events(self.session)
        check_whole(records)
        for name in ("waited", "left"):
            assert (self.cwd / f"{self.number}.{name}").read_text() == "x\n", "it ran once"
        assert (self.cwd / f"{self.number}.txt").read_text() == "deep\n"
        kept = {task["call"]: task for task in self._kept(tasks_of(gateway, self.session))}
        waited, left, agent = (kept[f"1.{step}.0"] for step in (1, 2, 3))
        assert (waited["exit_code"], left["exit_code"], agent["state"]) == (3, 4, "done")
        finished = of_kind(records, "ToolCallFinished")
        assert [event["outcome"] for event in finished] == ["done", "done", "done"]
        assert finished[0]["output"] == "[failed: exit code 3]"
        notes = [event["task"] for event in of_kind(records, "NoteReceived")]
        assert notes.count(left["id"]) == 1 and waited["id"] not in notes
        told = [by(event) for event in of_kind(records, "InputReceived")]
        assert told.count(f"task {agent['id']}") == 1 and len(told) == 2
        assert agent["files"] == [f"{self.number}.txt"]
        worker = gateway.events(agent["id"])
        check_whole(worker)
        assert len(of_kind(worker, "TurnStarted")) == 1
