"""`make agents`: every agent that can be installed, at work for a real gateway with the loopback model; prints a table.

    python -m tests.agents.matrix [NAME…] [--driver acp|command] [--write]     # --write: also into docs/agents.md

Each agent has one session with three turns: it writes a file; it writes another one while the gateway is killed -9 with
the permission open (as a command: in the middle of the answer); it is killed -9 itself in the middle of an answer, and
must say a word that only its first process was told. An agent that fails stays in the table, with what was seen.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.agents.real_agents import AGENTS, ROOT, TOOLS, NotInstalled, RealAgent, npm, program_of, run
from tests.agents.real_rig import RealRig, real_rig
from tests.e2e.agents import answer
from tests.e2e.gateway import Json, of_kind, until

PAGE = ROOT / "docs" / "agents.md"
BEGIN, END = "<!-- the table of make agents -->", "<!-- its end -->"
HEAD = "| agent | driver | version | writes a file | gateway killed -9 | killed -9 itself | s |"
RULE = re.sub(r"[^|]+", " --- ", HEAD)
DRIVERS = ("acp", "command")
EVERY = [(name, driver) for driver in DRIVERS for name, agent in AGENTS.items() if driver == "acp" or agent.is_cli]
SECONDS = 240.0
"""For each thing that must happen."""


def install(agent: RealAgent, driver: str) -> Path:
    """Return its program; install it if it is not there."""
    package = (agent.cli_package if driver == "command" else "") or agent.package
    name = f"{agent.name}-command" if package != agent.package else agent.name
    program = program_of(agent, place=name, driver=driver)
    if program.exists():
        return program
    place = TOOLS / name
    place.mkdir(parents=True, exist_ok=True)
    if "==" in agent.package:
        uv = str(ROOT / ".tools" / "bin" / "uv")
        run([uv, "venv", "--quiet", "--clear", "--python", f">={agent.python}", "."], cwd=place)
        run([uv, "pip", "install", "--quiet", "--python", "bin/python", agent.package], cwd=place)
    else:
        (place / "package.json").write_text('{"private": true}')
        npm("install", package, cwd=place)
    return program


def try_agent(agent: RealAgent, driver: str) -> list[str]:
    """Return its row."""
    begun = time.monotonic()
    try:
        program = install(agent, driver)
    except NotInstalled as error:
        return [agent.name, driver, "not installed", _short(error), "", "", ""]
    row = [agent.name, driver]
    with tempfile.TemporaryDirectory(
        prefix=f"agents-{agent.name}-", dir="/var/tmp", ignore_cleanup_errors=True
    ) as directory:
        with real_rig(agent, program, Path(directory), driver=driver) as rig:
            rig.model.released.set()
            session = rig.create(f"The word is APPLE10. [[write {rig.work}/a.txt|hello]]")
            row.append("")
            killed = gateway_killed_at_work if driver == "command" else gateway_killed
            row += [_outcome(scene, rig, session) for scene in (writes, killed, agent_killed)]
            attached = of_kind(rig.gateway.events(session), "AgentAttached")
            row[2] = attached[0]["version"] if attached else "?"
            row[2] = row[2] or (agent.cli_package or agent.package).rpartition("@")[2]
    return [*row, f"{time.monotonic() - begun:.0f}"]


def _outcome(scene: Callable[[RealRig, str], str], rig: RealRig, session: str) -> str:
    try:
        return scene(rig, session)
    except AssertionError as error:
        return f"**fails**: {_short(error)}"


# --- the three turns ------------------------------------------------------------------------------


def writes(rig: RealRig, session: str) -> str:
    """It writes a file, after it was allowed to."""
    asked = _until_over(rig, session, turns=1)
    _assert_done(rig, session)
    _assert_file(rig, "a.txt")
    return "yes, asked" if asked else "yes, did not ask"


def gateway_killed(rig: RealRig, session: str) -> str:
    """It asks, the gateway is killed, and the answer is given to another one."""
    before = len(of_kind(rig.gateway.events(session), "AgentAttached"))
    rig.gateway.send(session, f"[[write {rig.work}/b.txt|hello]]")
    wait = _wait_or_end(rig, session, turns=2)
    if wait is None:
        return "did not ask"
    rig.gateway.kill9()
    rig.gateway.start()
    again = _wait_or_end(rig, session, turns=2)
    assert again is not None and again["id"] == wait["id"], "the permission is not open any more"
    assert not (rig.work / "b.txt").exists(), "it did not wait for the answer"
    _until_over(rig, session, turns=2)
    _assert_done(rig, session)
    _assert_file(rig, "b.txt")
    records = rig.gateway.events(session)
    assert len(of_kind(records, "AgentAttached")) == before, "another process had to be started"
    answers = [one for one in of_kind(records, "WaitAnswered") if one["wait"] == wait["id"]]
    assert len(answers) == 1, f"{len(answers)} answers"
    return "same process, one answer"


def gateway_killed_at_work(rig: RealRig, session: str) -> str:
    """The gateway is killed in the middle of its answer; the process goes on, and another gateway reads on."""
    before = len(of_kind(rig.gateway.events(session), "ModelResponded"))
    rig.model.held.clear()
    rig.model.released.clear()
    rig.gateway.send(session, f"[[write {rig.work}/b.txt|hello]] [[hold]]")
    assert rig.model.held.wait(SECONDS), "it did not ask its model"
    rig.gateway.kill9()
    rig.gateway.start()
    rig.model.released.set()
    _until_over(rig, session, turns=2)
    _assert_done(rig, session)
    _assert_file(rig, "b.txt")
    records = rig.gateway.events(session)
    assert not of_kind(records, "TurnResumed", "ModelInterrupted"), "it was interrupted"
    said = [one["text"] for one in of_kind(records, "ModelResponded")[before:] if one["text"]]
    assert said == ["I remember: APPLE10"], f"it said: {said}"
    return "same process, each word once"


def agent_killed(rig: RealRig, session: str) -> str:
    """It is killed in the middle of an answer, and remembers."""
    rig.model.held.clear()
    rig.model.released.clear()
    rig.gateway.send(session, "Go on. [[hold]]")
    assert rig.model.held.wait(SECONDS), "it did not ask its model"
    rig.kill_agent()
    rig.model.released.set()
    _until_over(rig, session, turns=3)
    _assert_done(rig, session)
    records = rig.gateway.events(session)
    *_, last = of_kind(records, "AgentAttached")
    said = of_kind(records, "ModelResponded")[-1]["text"]
    assert "APPLE10" in said, f"it said: {said}"
    if last["how"] == "new":
        return f"**not resumed** ({_short(last['reason'])}), so it was given a summary of the conversation"
    directory = rig.gateway.home / "tasks" / last["task"]
    sent = next(directory / name for name in ("stdin", "stdin.closed") if (directory / name).exists()).read_bytes()
    assert b"APPLE10" not in sent, "it was told the word again"
    return f"{last['how']}, context {last['context']}, remembers"


def _wait_or_end(rig: RealRig, session: str, *, turns: int) -> Json | None:
    """Return what it asks; None once so many turns have ended."""

    def look() -> list[Json] | None:
        if len(of_kind(rig.gateway.events(session), "TurnFinished")) >= turns:
            return [{}]
        return list(rig.gateway.get("/v1/inbox")["waits"])

    found = until(look, "it asks or is done", seconds=SECONDS, pause=0.1) or [{}]
    return found[0] or None


def _until_over(rig: RealRig, session: str, *, turns: int) -> bool:
    """Allow whatever it asks until so many turns have ended; return whether it asked."""
    asked = False
    while (wait := _wait_or_end(rig, session, turns=turns)) is not None:
        assert wait["purpose"] == "approval", f"it waits: {wait['reason']}"
        asked = True
        answer(rig.gateway, wait["id"], "allow")
        until(lambda: not [one for one in rig.gateway.get("/v1/inbox")["waits"] if one["id"] == wait["id"]], "answered")
    return asked


def _assert_done(rig: RealRig, session: str) -> None:
    *_, end = of_kind(rig.gateway.events(session), "TurnFinished")
    assert end["outcome"] == "done", f"{end['outcome']}: {end['reason']}"


def _assert_file(rig: RealRig, name: str) -> None:
    file = rig.work / name
    assert file.exists(), f"{name} was not written"
    assert file.read_text().strip() == "hello", f"{name} has another text"


def _short(error: object) -> str:
    return re.sub(r"\s+", " ", str(error)).replace("|", "/")[:160]


# --- the table ------------------------------------------------------------------------------------


def write_table(rows: dict[tuple[str, str], str]) -> None:
    """Put rows into the page, by agent and driver; those of others stay as they are."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    table, _, after = rest.partition(END)
    cells = {line: [cell.strip() for cell in line.split("|")] for line in table.splitlines() if line.startswith("|")}
    known = {(cell[1], cell[2]): line for line, cell in cells.items()} | rows
    lines = [HEAD, RULE, *(known[pair] for pair in EVERY if pair in known)]
    PAGE.write_text(before + "\n".join([BEGIN, *lines, END]) + after)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--driver", choices=DRIVERS)
    given = parser.parse_args()
    print(f"{HEAD}\n{RULE}", flush=True)
    rows = {}
    for name, driver in EVERY:
        if name in (given.names or AGENTS) and driver == (given.driver or driver):
            rows[name, driver] = "| " + " | ".join(try_agent(AGENTS[name], driver)) + " |"
            print(rows[name, driver], flush=True)
    if given.write:
        write_table(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
