"""Child: starts four commands and is then killed; started again, says of how many it has the output and the code.

    survivor.py begin|look WHO HOME

Runs in a venv of the peer's own, or in ours.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path

COMMANDS = {code: f"echo output-{code}; sleep 1.5; echo end-{code}; exit {code}" for code in (0, 3, 7, 42)}


def whole(code: int, output: str, found: object) -> bool:
    """Whether all of it is known, and true."""
    return f"output-{code}" in output and f"end-{code}" in output and found == code


def hermes(action: str, home: Path) -> int:
    """hermes-agent's registry, as its gateway uses it: spawn, then recover from the checkpoint."""
    from tools.process_registry import ProcessRegistry  # type: ignore[import-not-found]

    registry, ids = ProcessRegistry(), home / "ids.json"
    if action == "begin":
        ids.write_text(json.dumps([[code, registry.spawn_local(line).id] for code, line in COMMANDS.items()]))
        return 0
    registry.recover_from_checkpoint()
    known = 0
    for code, id in json.loads(ids.read_text()):
        polled, log = registry.poll(id), registry.read_log(id)
        known += whole(code, str(log.get("output", "")), polled.get("exit_code"))
    return known


async def holdfast(action: str, home: Path) -> int:
    """Our supervisor: start, then attach."""
    from holdfast.processes.command import CommandSpec, Ended
    from holdfast.processes.supervisor import Supervisor

    supervisor = Supervisor(home / "tasks")
    known = 0
    for code, line in COMMANDS.items():
        id = f"{code:08x}"
        if action == "begin":
            await supervisor.start(CommandSpec(id, line, home, {"PATH": os.environ["PATH"]}))
        else:
            found = await supervisor.attach(id)
            output = supervisor.output(id).read(0, 1000).data.decode()
            known += whole(code, output, found.code if isinstance(found, Ended) else None)
    return known


def main(action: str, who: str, home: Path) -> None:
    """Answer, and if it was a beginning, wait to be killed."""
    known = asyncio.run(holdfast(action, home)) if who == "holdfast" else hermes(action, home)
    print(json.dumps({"known": known}), flush=True)
    if action == "begin":
        time.sleep(60)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
