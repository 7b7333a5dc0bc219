"""`make profile`: where the processor time of a turn goes, in a real gateway with the turns of the area `turns`.

The gateway runs twice: as it is, for turns a second, processor time and commits; then with a sampler inside
(`profiled_gateway.py`). The samples give shares; the milliseconds beside them are those shares of the processor time
that a turn takes without the sampler.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import signal
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.__main__ import SCRATCH, children_like_installed
from benchmarks.turn_client import NOTES
from benchmarks.turns import Gateway, fill_home, plural, started

CONVERSATIONS = (64, 1)
SECONDS = 1.5
"""How long a burst is; each has new conversations."""
BURSTS, QUICK_BURSTS = 8, 3
MANY = 100
"""With more earlier messages than this, all bursts have the same conversations."""
ROWS = 25
CALL = "-> "
LOOP = " Runner.run"
GENERATED = "<string>:"
HTTP_LIBRARIES = {"uvicorn", "starlette", "httptools", "websockets", "h11", "anyio"}
CALLS_INTO_C = (
    ("SQLite", re.compile(r"(^|\.)(execute|executemany|executescript|fetchone|fetchmany|fetchall)$")),
    ("HTTP: sockets", re.compile(r"sock\.(send|recv|recv_into|sendmsg)$|_sock\.|\.accept$")),
    ("asyncio", re.compile(r"_selector\.(poll|select)$|_context\.run$")),
    ("pydantic", re.compile(r"pydantic|_core|validate_(python|json)$|to_(python|json)$")),
    ("msgspec", re.compile(r"msgspec\.")),
    (
        "files and paths",
        re.compile(r"^os\.|^_?io\.|(^|\.)(open|lstat|stat|fstat|scandir|readlink|read_text|read_bytes)$"),
    ),
)
"""Libraries in C, by what is called; anything else that is called belongs to the function that calls it."""
OF_PYTHON = {
    "files and paths": {"pathlib", "posixpath", "genericpath", "os", "stat", "fnmatch", "tempfile"},
    "asyncio": {"selectors", "_weakrefset"},
    "threads": {"threading", "concurrent", "queue"},
}
"""Modules of the standard library that serve the same purpose."""


Milliseconds = dict[str, float]


@dataclass(frozen=True, slots=True)
class Cost:
    """Processor time of one turn, in milliseconds."""

    in_loop: float
    """Of the event loop's thread."""
    in_threads: float
    """Of all other threads."""

    @property
    def total(self) -> float:
        """Of the whole gateway."""
        return self.in_loop + self.in_threads


@dataclass(frozen=True, slots=True)
class Samples:
    """Stacks of functions, outermost first, and how much of a turn's processor time belongs to each of them."""

    stacks: list[tuple[list[str], float]]
    count: int

    @classmethod
    def of(cls, lines: Iterable[str], cost: Cost) -> Samples:
        """As the sampler wrote them. The samples of the loop share its time, those of the threads share theirs."""
        found = [json.loads(line) for line in lines]
        stacks = [(trimmed(entry["stack"]), int(entry["samples"])) for entry in found]
        stacks = [(stack, samples) for stack, samples in stacks if package(stack) != "benchmarks"]
        count = sum(samples for _, samples in stacks)
        of_loop = sum(samples for stack, samples in stacks if is_in_loop(stack))
        each = {True: cost.in_loop / max(of_loop, 1), False: cost.in_threads / max(count - of_loop, 1)}
        return cls([(stack, samples * each[is_in_loop(stack)]) for stack, samples in stacks], count)

    def own(self, group: Callable[[list[str]], str]) -> Milliseconds:
        """Time by what the innermost function belongs to."""
        found: Milliseconds = defaultdict(float)
        for stack, milliseconds in self.stacks:
            found[group(stack)] += milliseconds
        return found

    def cumulative(self, wanted: Callable[[str], bool]) -> Milliseconds:
        """Time by every function that was at work, with all that it called."""
        found: Milliseconds = defaultdict(float)
        for stack, milliseconds in self.stacks:
            for function in {entry for entry in stack if not entry.startswith(CALL) and wanted(entry)}:
                found[shown(function)] += milliseconds
        return found


def is_in_loop(stack: list[str]) -> bool:
    """Whether it is a stack of the event loop's thread."""
    return stack[0].endswith(LOOP)


def trimmed(stack: list[str]) -> list[str]:
    """A stack without what starts the event loop, and with methods that `dataclass` made as calls of their callers."""
    within = stack[next((depth for depth, entry in enumerate(stack) if entry.endswith(LOOP)), 0) :]
    if len(within) > 1 and within[-1].startswith(GENERATED):
        within[-1] = f"{CALL}{within[-1].replace('.', ' ').rpartition(' ')[2]} of a dataclass"
    return within


def module(function: str) -> str:
    """The module of a function, as it would be imported."""
    if function.startswith("<frozen "):
        return function.removeprefix("<frozen ").partition(">")[0]
    path = function.partition(" ")[0].rpartition(":")[0].removesuffix(".py").removesuffix("/__init__")
    for root in (r"/site-packages/", r"/src/", r"/lib/python3\.\d+/", r"/(?=benchmarks/)"):
        if found := re.search(rf".*{root}(.*)", path):
            return found[1].replace("/", ".")
    return path.rpartition("/")[2]


def package(stack: list[str]) -> str:
    """What the time belongs to: a layer of Holdfast, HTTP, SQLite, another library, or a module of Python."""
    *_, last = stack
    if last.startswith(CALL):
        for name, pattern in CALLS_INTO_C:
            if pattern.search(last.removeprefix(CALL)):
                return name
    first, _, rest = module(innermost(stack)).partition(".")
    if first == "holdfast":
        return f"holdfast.{rest.partition('.')[0]}"
    if first in HTTP_LIBRARIES:
        return f"HTTP: {first}"
    return next((purpose for purpose, modules in OF_PYTHON.items() if first in modules), first)


def innermost(stack: list[str]) -> str:
    """The innermost function of a stack."""
    return stack[-2] if stack[-1].startswith(CALL) else stack[-1]


def innermost_module(stack: list[str]) -> str:
    """The module of the innermost function, with what it calls in C."""
    return module(innermost(stack))


def innermost_of_holdfast(stack: list[str]) -> str:
    """The innermost module of Holdfast: who asked for it, whichever library did it."""
    ours = (module(entry) for entry in reversed(stack) if of_holdfast(entry))
    return next(ours, "none: the event loop, HTTP libraries, threads")


def function_and_call(stack: list[str]) -> str:
    """The innermost function, and what it calls in C."""
    call = f" {stack[-1]}" if stack[-1].startswith(CALL) else ""
    return shown(innermost(stack)) + call


def shown(function: str) -> str:
    """A function with its module and its line."""
    place, _, name = function.rpartition(" ")
    return f"{module(function)}:{place.rpartition(':')[2]} {name}"


def of_holdfast(function: str) -> bool:
    """Whether the project has it, and not a library."""
    return not function.startswith(CALL) and module(function).startswith("holdfast.")


def main() -> None:
    """Measure, sample, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.turn_profile", description=__doc__)
    parser.add_argument("--conversations", type=int, action="append", metavar="N", help="at once; may be given again")
    parser.add_argument("--earlier", type=int, default=10, metavar="N", help="messages that each has already")
    parser.add_argument("--quick", action="store_true", help="fewer bursts, more noise")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the samples in this directory")
    given = parser.parse_args()
    SCRATCH.mkdir(exist_ok=True)
    children_like_installed()
    scratch = Path(tempfile.mkdtemp(dir=SCRATCH))
    try:
        (scratch / "notes.txt").write_text(NOTES)
        bursts = QUICK_BURSTS if given.quick else BURSTS
        for conversations in given.conversations or CONVERSATIONS:
            file = scratch / f"turns-{conversations}.jsonl"
            for line in profiled(scratch, file, conversations, given.earlier, bursts):
                print(line, flush=True)
            if given.keep is not None:
                given.keep.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, given.keep)
    finally:
        shutil.rmtree(scratch)


def profiled(scratch: Path, file: Path, conversations: int, earlier: int, bursts: int) -> Iterator[str]:
    """The report on so many conversations, line by line."""
    yield f"\n# {plural(conversations)}, {earlier:,} earlier messages each\n"
    sets = 1 if earlier > MANY else bursts + 1
    plain, sampled = (
        asyncio.run(fill_home(scratch, 2, conversations=conversations, earlier=earlier, bursts=sets)) for _ in range(2)
    )
    with started(plain) as gateway:
        gateway.burst(SECONDS)  # warms up
        in_loop = 0.0
        for _ in range(bursts):
            gateway.begin()
            before = loop_seconds(gateway.pid)
            gateway.measure(SECONDS)
            in_loop += loop_seconds(gateway.pid) - before
    in_loop *= 1000 / sum(burst.turns for burst in gateway.taken[1:])
    cost = Cost(in_loop, max(0.0, gateway.a_turn("gateway_cpu") - in_loop))
    yield summary(gateway, cost)
    with started(sampled, "benchmarks.profiled_gateway", str(file)) as gateway:
        gateway.burst(SECONDS)
        for _ in range(bursts):
            gateway.begin()
            os.kill(gateway.pid, signal.SIGUSR1)
            gateway.measure(SECONDS)
            os.kill(gateway.pid, signal.SIGUSR2)
    with file.open() as lines:
        yield from tables(Samples.of(lines, cost), cost)


def summary(gateway: Gateway, cost: Cost) -> str:
    """All bursts without the sampler."""
    counted = gateway.taken[1:]
    turns, seconds = sum(burst.turns for burst in counted), sum(burst.seconds for burst in counted)
    return (
        f"{turns / seconds:.1f} turns/s with {gateway.a_turn('commits'):.1f} commits a turn. "
        f"A turn takes {cost.total:.2f} ms of a processor in the gateway, "
        f"{cost.in_loop:.2f} of it in the event loop's thread, "
        f"and {gateway.a_turn('client_cpu'):.2f} ms in the client."
    )


def loop_seconds(pid: int) -> float:
    """Processor time of the main thread of a process."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9


def tables(samples: Samples, cost: Cost) -> Iterator[str]:
    """The samples for people."""
    yield f"{samples.count:,} samples"
    of_libraries = samples.cumulative(lambda function: not of_holdfast(function))
    for title, found in (
        ("Own time by package", samples.own(package)),
        ("Own time by module", samples.own(innermost_module)),
        ("By the module of Holdfast that asked for it, libraries included", samples.own(innermost_of_holdfast)),
        ("Functions by own time, `->` what they call in C", samples.own(function_and_call)),
        ("Functions of Holdfast by cumulative time", samples.cumulative(of_holdfast)),
        ("Functions of libraries by cumulative time", of_libraries),
    ):
        yield f"\n## {title}\n"
        yield f"{'share':>6}  {'ms a turn':>9}"
        for name, milliseconds in sorted(found.items(), key=lambda pair: -pair[1])[:ROWS]:
            yield f"{milliseconds / cost.total:6.1%}  {milliseconds:9.3f}  {name}"


if __name__ == "__main__":
    main()
