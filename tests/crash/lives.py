"""The lives that the children of `forked_lives.py` lead. They speak to the test in lines."""

from __future__ import annotations

import asyncio
import ctypes
import functools
import resource
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path

from holdfast.domain.command import InputMode
from holdfast.domain.errors import Unavailable
from holdfast.domain.events.session import ModelRequested
from tests.eventually import eventually
from tests.forked_lives import tell
from tests.rig import QUICK_DISK
from tests.runtime.rig import STREAM, Rig, call, seen


def script(session: str, number: int) -> tuple[str, InputMode]:
    """The N-th message to a session: words, tools, an effect that must not be repeated, some that steer."""
    mode: InputMode = "steer" if number % 5 == 4 else "queue"
    match number % 4:
        case 1:
            return f"call {call('post', letter=f'{session}-{number}')}\nsay posted", mode
        case 2:
            return f"call {call('write', path=session, content=str(number))}\nsay written", mode
        case _:
            return f"say {number}", mode


async def feed(home: str, start: dict[str, int], last: int) -> None:
    """A gateway and its clients: each sends what was not acknowledged yet, up to the last.

    An acknowledgement goes to the test after the append has returned, and before the next message.
    """
    rig = await Rig(Path(home)).start()

    async def client(session: str, number: int) -> None:
        await rig.create(session=session)
        while number < last:
            text, mode = script(session, number)
            await rig.say(text, f"{session}-{number}", mode, session=session)
            tell("ack", session, number)
            number += 1
            if number % 3 == 0:
                await rig.rest(session=session)
        await rig.rest(session=session)

    async def at_work() -> None:
        with rig.store.subscribe(None) as changes:
            while True:
                await asyncio.sleep(1)
                await changes.wait()
                changes.drain()
                tell("at work")

    sign = asyncio.create_task(at_work())  # what was sent in a thousand lives takes a while, and is no hanging
    await asyncio.gather(*(client(session, number) for session, number in start.items()))
    sign.cancel()
    await rig.close()


# --- a sick disk ----------------------------------------------------------------------------------

SESSION = "e" * 16
MESSAGES = 6
NEVER, ONCE, STAY, KILL = range(4)


async def endure(home: str, how: int, at: int, opened: bool) -> None:
    """Send some messages and see them worked on, with a fault at the N-th change of a database file.

    It is counted from the first open of a new home, or from the moment when it has been opened. A disk
    that stays sick is well again as soon as somebody has noticed and has seen that reads go on.
    """
    shim = ctypes.CDLL(None)
    shim.fault_arm(NEVER if opened else how, at)
    try:
        rig = Rig(Path(home), timings=QUICK_DISK)
    except Unavailable:
        tell("refused")
        shim.fault_arm(NEVER, 0)
        rig = Rig(Path(home), timings=QUICK_DISK)
    if opened:
        shim.fault_arm(how, at)
    await rig.start()
    healer = asyncio.create_task(_heal(rig, shim))
    await _insist(lambda: rig.create(session=SESSION))
    for number in range(MESSAGES):
        text, _ = script(SESSION, number)
        await _insist(functools.partial(rig.say, text, f"{SESSION}-{number}", session=SESSION))
        tell("ack", number)
    await rig.rest(session=SESSION)
    tell("well", rig.store.health.writable, shim.fault_hits())
    healer.cancel()
    shim.fault_arm(NEVER, 0)
    await rig.close()


async def _heal(rig: Rig, shim: ctypes.CDLL) -> None:
    async def sick() -> bool:
        return not rig.store.health.writable

    await eventually(sick)
    tell("sick", len(await rig.records(SESSION)))
    shim.fault_arm(NEVER, 0)


async def _insist(act: Callable[[], Awaitable[object]]) -> None:
    """As a client does: the same again under the same id, until it is taken."""
    while True:
        try:
            await act()
        except Unavailable:
            tell("refused")
            await asyncio.sleep(0.05)
        else:
            return


# --- a full disk ----------------------------------------------------------------------------------


async def fill_up(home: str) -> None:
    """No file may grow for a while, in the middle of an answer."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    rig = await Rig(Path(home), timings=QUICK_DISK).start()
    await rig.create("hold one")
    await rig.until(seen(ModelRequested))
    before = len(await rig.records())

    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    for _ in range(3):
        try:
            await rig.say("say two", "m2")
        except Unavailable as error:
            tell("refused", error.retry_after)
    tell("sick", rig.store.health.writable, rig.store.health.problem.startswith("The disk does not take writes"))
    rig.model.go.set()  # the answer is there now, and waits to be written
    await eventually(lambda: _answered(rig))
    tell("reads", len(await rig.records()) == before, len(await rig.store.unfinished_sessions()))
    tell("searches", len(await rig.store.search("nothing", limit=1)))

    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    await eventually(lambda: _writable(rig))
    tell("well")
    await rig.say("say two", "m2")
    await rig.rest()
    tell("ended")
    await rig.close()


async def _answered(rig: Rig) -> bool:
    return rig.streaming.get(STREAM) is None


async def _writable(rig: Rig) -> bool:
    return rig.store.health.writable


LIVES: dict[str, Callable[..., Coroutine[None, None, None]]] = {"feed": feed, "endure": endure, "fill_up": fill_up}
