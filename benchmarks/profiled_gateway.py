"""Child: a real gateway that looks at itself, a few hundred times in each second of processor time.

    python -m benchmarks.profiled_gateway FILE serve …

runs `holdfast serve …`. SIGUSR1 begins to sample, SIGUSR2 pauses. When the gateway ends, the samples are written to the
file: JSON lines, each with the number of samples and the functions of one stack, outermost first.

A profiler that sees every call makes small functions look expensive, and one that takes the wall clock counts waiting.
Here the kernel sends SIGPROF when the process has used some milliseconds of a processor, and the sample belongs to the
thread that used most of them; not to the event loop's if that waits. Where the innermost function calls something in C,
that call is the last entry.
"""

from __future__ import annotations

import ast
import asyncio
import json
import linecache
import runpy
import signal
import sys
import threading
import time
from collections import Counter
from functools import cache
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType

SAMPLE_SECONDS = 0.001
"""The kernel rounds it up to its own tick, often 4 ms."""
NOTICED_SECONDS = 0.0001
"""A thread that has used less than this since the last sample was idle."""
WAIT = asyncio.Runner.run.__code__
"""The innermost Python function while the event loop waits, or does its own work: uvloop has no Python code."""
Stack = tuple[tuple[CodeType, int], ...]
"""From the innermost function outwards: its code, and for the innermost the instruction that it is at."""


class Sampler:
    """Collects the stacks that use the processor."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._stacks: Counter[Stack] = Counter()
        self._used: dict[int, float] = {}
        """Processor time of each thread at the last sample."""

    def start(self, *_: object) -> None:
        """Begin to sample."""
        signal.signal(signal.SIGPROF, self._sample)
        signal.siginterrupt(signal.SIGPROF, False)
        signal.setitimer(signal.ITIMER_PROF, SAMPLE_SECONDS, SAMPLE_SECONDS)

    def _sample(self, _: int, here: FrameType | None) -> None:
        frames = sys._current_frames()
        total = {id: time.clock_gettime(time.pthread_getcpuclockid(id)) for id in frames}
        used = {id: seconds - self._used.get(id, 0.0) for id, seconds in total.items()}
        self._used = total
        loop = threading.get_ident()
        others = {id: seconds for id, seconds in used.items() if id != loop}
        if here is not None and here.f_code is WAIT and max(others.values(), default=0.0) > NOTICED_SECONDS:
            del used[loop]  # it waits, so another thread runs at this moment
        busiest = max(used, key=lambda thread: used[thread])
        self._stacks[_stack(here if busiest == loop else frames[busiest])] += 1

    def pause(self, *_: object) -> None:
        """Sample no more, until it is started again."""
        signal.setitimer(signal.ITIMER_PROF, 0)

    def write(self) -> None:
        """Write what was seen."""
        self.pause()
        with self._file.open("w") as out:
            for stack, samples in self._stacks.items():
                out.write(json.dumps({"samples": samples, "stack": _described(stack)}) + "\n")


def _stack(frame: FrameType | None) -> Stack:
    found: list[tuple[CodeType, int]] = []
    while frame is not None:
        found.append((frame.f_code, -1 if found else frame.f_lasti))
        frame = frame.f_back
    return tuple(found)


def _described(stack: Stack) -> list[str]:
    """Outermost first: FILE:LINE NAME of each function, and `-> CALL` where the innermost one is calling."""
    names = [f"{code.co_filename}:{code.co_firstlineno} {code.co_qualname}" for code, _ in reversed(stack)]
    call = called(*stack[0])
    return [*names, f"-> {call}"] if call else names


@cache
def called(code: CodeType, instruction: int) -> str:
    """What the source calls at an instruction, such as `os.lstat`; nothing where it is not at a call."""
    position = next(islice(code.co_positions(), instruction // 2, None), (None, None, None, None))
    first, last, start, end = position
    if first is None or last is None or start is None or end is None:
        return ""
    lines = [line.encode() for line in linecache.getlines(code.co_filename)[first - 1 : last]]
    if not lines:
        return ""
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    try:
        expression = ast.parse(b"(" + b"".join(lines) + b")", mode="eval").body
    except SyntaxError:
        return ""
    return ast.unparse(expression.func) if isinstance(expression, ast.Call) else ""


def main() -> None:
    """Serve until somebody says goodbye."""
    sampler = Sampler(Path(sys.argv.pop(1)))
    signal.signal(signal.SIGUSR1, sampler.start)
    signal.signal(signal.SIGUSR2, sampler.pause)
    try:
        runpy.run_module("holdfast", run_name="__main__", alter_sys=True)
    finally:
        sampler.write()


if __name__ == "__main__":
    main()
