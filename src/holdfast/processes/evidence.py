"""The state of a command by the best evidence: its record, its processes, the kernel, or none.

Without evidence it is lost, and the outcome says what was checked. A record that is damaged is
evidence of nothing; a command that lives is running whatever its files say.
"""

from __future__ import annotations

import asyncio

from holdfast.domain.errors import Corrupt
from holdfast.processes.command import CommandOutcome, CommandState, Ended, Lost, NeverStarted, Running
from holdfast.processes.identity import alive, exit_of, pidfd_status, zombie_status
from holdfast.processes.keeper import boot_id
from holdfast.processes.kill import find_members
from holdfast.processes.spool import Claim, Spool

RECORD_SECONDS = 10.0
"""How long a living keeper has to record the end of its command."""
FIRST_PAUSE_SECONDS = 0.0005
"""The first pause between two reads of the record, which takes a keeper about 1 ms; each pause is longer."""
LONGEST_PAUSE_SECONDS = 0.1
POLL_SECONDS = 1.0
"""How often processes are looked for that a command left behind and that have no keeper."""


def state_of(spool: Spool) -> CommandState | None:
    """Return the state that this directory proves; `None` while a keeper is about to record an end.

    A directory without a claim is claimed here and now, so that a keeper on its way finds it taken.
    """
    end, _ = _end(spool)
    if end is not None:
        return end
    try:
        claim = None if spool.cancel() else spool.claim()
    except Corrupt as error:
        return Lost(spool.id, error.message)
    if claim is None:
        return NeverStarted(spool.id, "cancelled before it began", cancelled=True)
    if claim.boot == boot_id() and alive(claim.command):
        return Running(spool.id, claim.command.pid, claim.began)
    if claim.left_by:
        return state_of_left(spool, claim)
    return outcome_of(spool, claim)


def state_of_left(spool: Spool, claim: Claim) -> CommandState | None:
    """Return the state of the processes that a command left behind: they run while one of them does.

    `None` while a keeper is about to write down how the last of them ended.
    """
    if claim.boot != boot_id():
        return outcome_without_record(spool, claim)
    if found := find_members(spool, claim):
        return Running(spool.id, found[0].pid, claim.began)
    if any(map(alive, claim.keepers)):
        return None
    end = spool.end_of_left(claim)
    return end or Lost(spool.id, "its processes are gone, and nobody recorded how the last of them ended")


def outcome_of(spool: Spool, claim: Claim, *, pidfd: int | None = None) -> CommandOutcome | None:
    """Return how a command ended whose process is gone; `None` if a keeper still lives that will record it."""
    waiting = claim.boot == boot_id() and any(map(alive, claim.keepers))
    end, damage = _end(spool)  # after the look at the keepers: one that was gone has written before
    if end is not None:
        return end
    return None if waiting and not damage else outcome_without_record(spool, claim, pidfd=pidfd)


def outcome_without_record(spool: Spool, claim: Claim, *, pidfd: int | None = None) -> CommandOutcome:
    """Return how a command ended that has no record, by other evidence."""
    if claim.boot != boot_id():
        return Lost(spool.id, "reboot: it was running when the machine went down, and no end was recorded")
    status = zombie_status(claim.command)
    if status is not None:
        return Ended(spool.id, status, "zombie", None)
    status = pidfd_status(pidfd) if pidfd is not None else None
    if status is not None:
        return Ended(spool.id, status, "pidfd", None)
    keepers = " and ".join(f"{one.pid} {'lives' if alive(one) else 'is dead'}" for one in claim.keepers)
    _, damage = _end(spool)
    without = f"; {damage.rstrip('.')}" if damage else " without a record"
    return Lost(spool.id, f"pid {claim.command.pid} is gone{without}; of its keepers {keepers}")


async def wait_for_outcome(spool: Spool, claim: Claim, *, pidfd: int | None = None) -> CommandOutcome:
    """Return the outcome of a command whose process is gone: by its record, else by other evidence, else lost."""
    if claim.left_by:
        return await _wait_for_outcome_of_left(spool, claim)
    deadline = asyncio.get_running_loop().time() + RECORD_SECONDS
    pause = FIRST_PAUSE_SECONDS
    while (outcome := outcome_of(spool, claim, pidfd=pidfd)) is None:
        await asyncio.sleep(pause)
        pause = min(1.5 * pause, LONGEST_PAUSE_SECONDS)
        if asyncio.get_running_loop().time() > deadline:
            return outcome_without_record(spool, claim, pidfd=pidfd)
    return outcome


async def _wait_for_outcome_of_left(spool: Spool, claim: Claim) -> CommandOutcome:
    """Wait until none of them is left: their keepers stay until then; without keepers, poll."""
    while True:
        for keeper in claim.keepers:
            await exit_of(keeper)
        found = await asyncio.to_thread(state_of_left, spool, claim)
        if found is not None and not isinstance(found, Running):
            return found
        await asyncio.sleep(POLL_SECONDS)


def _end(spool: Spool) -> tuple[Ended | NeverStarted | None, str]:
    """Read the record of its end; with what is wrong with it."""
    try:
        return spool.end(), ""
    except Corrupt as error:
        return None, error.message
