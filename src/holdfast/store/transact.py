"""Read, decide, append; and decide again if another write came in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from holdfast.clock import Clock
from holdfast.domain.errors import Conflict, Rejected, VersionConflict
from holdfast.store.contract import Append, Appended, CommandKey, Store, Write

TRIES = 1000
"""Each lost race is the success of another caller, so this ends; with many callers it takes more than a few."""

Decide = Callable[[], Awaitable[tuple[Write, ...]]]
"""Reads the state as it is now and returns what to write, each with the version it was decided on."""


async def transact(store: Store, clock: Clock, decide: Decide, *, command: CommandKey | None = None) -> Appended:
    """Append what `decide` returns, all or nothing.

    A refusal by `decide` may come from the state that an earlier try of the same command made; then that try's
    result is returned. A conflict that is not about a version (the command id means something else) is raised.
    """
    before: list[tuple[str, int | None]] = []
    for _ in range(TRIES):
        try:
            writes = await decide()
        except (Conflict, Rejected):
            known = None if command is None else await store.find_command(command)
            if known is None:
                raise
            return known
        try:
            return await store.append(Append(writes, clock.now(), command=command))
        except VersionConflict:
            expected = [(write.stream, write.expect) for write in writes]
            if expected == before:
                raise  # the streams that it was decided on have not moved
            before = expected
    raise Conflict("It changed too often at the same time.", hint="Try again.")
