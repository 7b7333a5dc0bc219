"""The scripts of the documentation, as they are printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from holdfast.client import Client
from holdfast.client.cards import BoardApi, CardApi
from holdfast.client.sessions import SessionApi
from holdfast.client.tasks import TaskApi
from tests.cli.commandline import CommandLine
from tests.e2e.gateway import GatewayProcess, check_whole, of_kind, until
from tests.eventually import PATIENCE

ROOT = Path(__file__).parent.parent.parent
PROMPT = "slow 20 one two three"


def script(page: str, heading: str) -> str:
    """The first program below a heading."""
    found = re.search(rf"^#+ {heading}\n.*?```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.S | re.M)
    assert found is not None
    return found.group(1)


def test_promise_4_the_script_of_the_readme_continues_through_a_kill_9(gateway: GatewayProcess) -> None:
    program = script("README.md", "From Python")
    assert PROMPT in program
    assert len(program.splitlines()) <= 13
    hanging = program.replace(f'"{PROMPT}"', repr("say a b\nhang"))
    environment = CommandLine(gateway.home).environment()
    with subprocess.Popen(
        [sys.executable, "-c", hanging], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as running:
        session = str(until(lambda: gateway.get("/v1/status")["working"], "something is at work")[0])
        gateway.until_event(session, "ModelRequested")
        gateway.kill9()
        gateway.start_and_let_go()
        out, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, out, err) == (0, "a b\ndone\n", "")
    records = gateway.events(session)
    check_whole(records)
    assert len(of_kind(records, "InputReceived")) == 1
    assert len(of_kind(records, "ModelInterrupted")) == 1


def test_the_scripts_of_the_page_run(alone: CommandLine) -> None:
    page = "docs/python.md"
    tasks = script(page, "Tasks").replace("sleep 1", "true")
    program = script(page, "From Python") + "from holdfast.client import OutputPiece\n" + tasks
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=alone.environment(),
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "hello done\nline 1\nline 2\nline 3\n0\n"), done.stderr


def test_every_method_is_documented() -> None:
    lines = (ROOT / "docs/python.md").read_text("utf-8").splitlines()
    for title, documented in {
        "client": Client,
        "client.sessions": SessionApi,
        "client.tasks": TaskApi,
        "client.cards": CardApi,
        "client.boards": BoardApi,
    }.items():
        listed = next(line for line in lines if line.startswith(f"| `{title}` |"))
        methods = {name for name in dir(documented) if not name.startswith("_")} - (
            LOW if documented is Client else set()
        )
        assert not [name for name in sorted(methods) if f"`{name}`" not in listed], title


LOW = {
    "address",
    "command",
    "command_body",
    "get",
    "healthy",
    "lines",
    "must_answer",
    "post",
    "raw",
    "read",
    "started_at",
    "text",
}
"""What the methods are made of."""
