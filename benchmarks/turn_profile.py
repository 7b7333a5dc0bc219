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
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.__main__ import SCRATCH, children_like_installed
from benchmarks.turn_client import NOTES
from benchmarks.turns import Burst, fill_home, plural, started

CONVERSATIONS = (64, 1)
SECONDS, QUICK_SECONDS = 12.0, 4.0
ROWS = 25
WRITE_SECONDS = 60.0
CALL = "-> "
LOOP = " BaseEventLoop._run_once"
GENERATED = "<string>:"
HTTP_LIBRARIES = {"uvicorn", "starlette", "fastapi", "httptools", "websockets", "h11", "anyio"}
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


@dataclass(frozen=True, slots=True)
class Samples:
    """Stacks of functions, outermost first, and how many samples found each of them."""

    stacks: list[tuple[list[str], int]]

    @classmethod
    def of(cls, lines: Iterable[str]) -> Samples:
        """As the sampler wrote them."""
        found = [json.loads(line) for line in lines]
        return cls([(trimmed(entry["stack"]), entry["samples"]) for entry in found])

    @property
    def total(self) -> int:
        """All of them."""
        return sum(samples for _, samples in self.stacks)

    def own(self, group: Callable[[list[str]], str]) -> Counter[str]:
        """Samples by what the innermost function belongs to."""
        found: Counter[str] = Counter()
        for stack, samples in self.stacks:
            found[group(stack)] += samples
        return found

    def cumulative(self, wanted: Callable[[str], bool]) -> Counter[str]:
        """Samples by every function that was at work, with all that it called."""
        found: Counter[str] = Counter()
        for stack, samples in self.stacks:
            for function in {entry for entry in stack if not entry.startswith(CALL) and wanted(entry)}:
                found[shown(function)] += samples
        return found


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
    parser.add_argument("--quick", action="store_true", help="shorter, with more noise")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the samples in this directory")
    given = parser.parse_args()
    SCRATCH.mkdir(exist_ok=True)
    children_like_installed()
    scratch = Path(tempfile.mkdtemp(dir=SCRATCH))
    try:
        (scratch / "notes.txt").write_text(NOTES)
        seconds = QUICK_SECONDS if given.quick else SECONDS
        for conversations in given.conversations or CONVERSATIONS:
            file = scratch / f"turns-{conversations}.jsonl"
            for line in profiled(scratch, file, conversations, given.earlier, seconds):
                print(line, flush=True)
            if given.keep is not None:
                given.keep.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, given.keep)
    finally:
        shutil.rmtree(scratch)


def profiled(scratch: Path, file: Path, conversations: int, earlier: int, seconds: float) -> Iterator[str]:
    """The report on so many conversations, line by line."""
    yield f"\n# {plural(conversations)}, {earlier:,} earlier messages each\n"
    plain, sampled = (
        asyncio.run(fill_home(scratch, 2, conversations=conversations, earlier=earlier, bursts=2)) for _ in range(2)
    )
    with started(plain) as gateway:
        gateway.burst(seconds / 4)  # warms up
        before = loop_seconds(gateway.pid)
        burst = gateway.burst(seconds)
        yield summary(burst, loop_seconds(gateway.pid) - before)
    with started(sampled, "benchmarks.profiled_gateway", str(file)) as gateway:
        gateway.burst(seconds / 4)
        os.kill(gateway.pid, signal.SIGUSR1)
        gateway.burst(seconds)
        os.kill(gateway.pid, signal.SIGUSR2)
        wait_for(file)
    with file.open() as lines:
        yield from tables(Samples.of(lines), 1000 * burst.gateway_cpu / burst.turns)


def summary(burst: Burst, loop: float) -> str:
    """A burst without the sampler; `loop` is the processor time of the event loop's thread."""
    a_turn = 1000 / burst.turns
    return (
        f"{burst.turns / burst.seconds:.1f} turns/s with {burst.commits / burst.turns:.1f} commits a turn. "
        f"A turn takes {burst.gateway_cpu * a_turn:.2f} ms of a processor in the gateway, "
        f"{loop / burst.gateway_cpu:.0%} of it in the event loop's thread, "
        f"and {burst.client_cpu * a_turn:.2f} ms in the client."
    )


def loop_seconds(pid: int) -> float:
    """Processor time of the main thread of a process."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9


def wait_for(file: Path) -> None:
    """Until the samples are written."""
    until = time.monotonic() + WRITE_SECONDS
    while not file.exists():
        if time.monotonic() > until:
            raise TimeoutError("the gateway wrote no samples")
        time.sleep(0.05)


def tables(samples: Samples, milliseconds: float) -> Iterator[str]:
    """The samples for people; `milliseconds` is the processor time of a turn."""
    yield f"{samples.total:,} samples, one for every {milliseconds / samples.total:.4f} ms of a turn"
    of_libraries = samples.cumulative(lambda function: not of_holdfast(function))
    for title, found, rows in (
        ("Own time by package", samples.own(package), ROWS),
        ("Own time by module", samples.own(innermost_module), ROWS),
        ("By the module of Holdfast that asked for it, libraries included", samples.own(innermost_of_holdfast), ROWS),
        ("Functions by own time, `->` what they call in C", samples.own(function_and_call), ROWS),
        ("Functions of Holdfast by cumulative time", samples.cumulative(of_holdfast), ROWS),
        ("Functions of libraries by cumulative time", of_libraries, ROWS),
    ):
        yield f"\n## {title}\n"
        yield f"{'share':>6}  {'ms a turn':>9}"
        for name, count in found.most_common(rows):
            share = count / samples.total
            yield f"{share:6.1%}  {share * milliseconds:9.3f}  {name}"


if __name__ == "__main__":
    main()
