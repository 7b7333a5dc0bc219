"""A command in a sandbox has a keeper, an end and reports like any other."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from holdfast.domain.errors import Rejected
from holdfast.processes.command import Ended
from tests.bubblewrap import BUBBLEWRAP, needs_bubblewrap
from tests.eventually import eventually
from tests.processes.rig import ProcessRig, code

pytestmark = needs_bubblewrap


@pytest.fixture
def sandbox(rig: ProcessRig) -> tuple[str, ...]:
    return (*BUBBLEWRAP, "--bind", str(rig.cwd), str(rig.cwd))


async def test_its_end_is_its_own(rig: ProcessRig, sandbox: tuple[str, ...]) -> None:
    outcome, output = await rig.run("echo $HOLDFAST_TASK | cut -c1-4; touch /etc/no; exit 42", sandbox=sandbox)
    assert code(outcome) == 42 and b"Read-only file system" in output
    outcome, _ = await rig.run("kill -9 $$", sandbox=sandbox)
    assert isinstance(outcome, Ended) and outcome.signal == signal.SIGKILL


async def test_it_gets_the_signal_that_asks_it_to_end(rig: ProcessRig, sandbox: tuple[str, ...]) -> None:
    trap = "trap 'echo bye; exit 3' TERM; echo ready; while true; do sleep 0.01; done"
    running = await rig.start(trap, sandbox=sandbox)

    async def ready() -> bool:
        return rig.everything(running.id) == b"ready\n"

    await eventually(ready)
    report = await rig.supervisor.kill(running.id)
    assert report.survivors == ()
    assert code(await rig.supervisor.wait(running.id)) == 3
    assert rig.everything(running.id).endswith(b"bye\n")  # the shell may remark on its sleep before


@pytest.mark.parametrize("victim", ["keeper", "standby"])
async def test_promise_3_in_a_sandbox_it_outlives_a_keeper_and_the_gateway(
    rig: ProcessRig, sandbox: tuple[str, ...], victim: str
) -> None:
    running = await rig.start("read -r word; echo $word; exit 42", sandbox=sandbox, stdin="pipe")
    rig.kill_keepers(running.id, victim)
    await rig.keepers_gone(running.id, victim)
    supervisor = await rig.restart()
    assert await supervisor.attach(running.id) == running
    await supervisor.write(running.id, b"hello\n")
    outcome = await supervisor.wait(running.id)
    assert isinstance(outcome, Ended)
    assert (outcome.code, outcome.by) == (42, "standby" if victim == "keeper" else "keeper")
    assert rig.everything(running.id) == b"hello\n"


async def test_a_sandbox_that_cannot_be_built_is_no_failure_of_the_command(rig: ProcessRig, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    with pytest.raises(Rejected, match=f"the sandbox could not be set up: bwrap: .*{missing}"):
        await rig.start("true", sandbox=(*BUBBLEWRAP, "--bind", missing, missing))
    with pytest.raises(Rejected, match="no-such-program: No such file or directory"):
        await rig.start(("no-such-program",), sandbox=BUBBLEWRAP)
    with pytest.raises(Rejected, match="no-bwrap: No such file or directory"):
        await rig.start("true", sandbox=("no-bwrap",))
