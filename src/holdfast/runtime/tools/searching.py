"""`search`: lines that match, found by ripgrep if it is there, else by our own `scan.py`.

Either is a process of its own: bounded in time and matches, and killed when the call is cut. Both search
hidden and ignored files, and neither follows links, looks into binary files or into `SKIPPED` directories.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Annotated

import msgspec

from holdfast.runtime.tools.context import ToolContext, ToolFailed, printable
from holdfast.runtime.tools.reading import WINDOW_CHARS, open_text
from holdfast.runtime.tools.tool import Tool, ToolOutput

MATCHES = 100
SECONDS = 30
OUTPUT_LINE = 1 << 20
SKIPPED = (".git", ".hg", ".svn", "node_modules", ".venv", "__pycache__", ".tox", ".mypy_cache", ".ruff_cache")
SCAN = Path(__file__).with_name("scan.py")
ENVIRONMENT = {"LC_ALL": "C.UTF-8", "PATH": os.defpath}
BAD_PATTERN = "regex parse error"


class SearchArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to look for, and where."""

    pattern: Annotated[str, msgspec.Meta(min_length=1, max_length=10_000, description="A regular expression.")]
    path: Annotated[str, msgspec.Meta(description="A directory or a file, relative to the working directory.")] = "."
    glob: Annotated[str, msgspec.Meta(max_length=1_000, description="Which files: *.py, src/**/*.ts, !*.md")] | None = (
        None
    )
    literal: Annotated[bool, msgspec.Meta(description="The pattern is plain text.")] = False
    ignore_case: Annotated[bool, msgspec.Meta(description="Upper and lower case are the same.")] = False
    limit: Annotated[
        int, msgspec.Meta(ge=1, le=1_000, description=f"How many matches to show; {MATCHES} if not given.")
    ] = MATCHES


@dataclass(slots=True)
class SearchHits:
    """What a search brings."""

    where: str
    limit: int
    lines: list[str] = field(default_factory=list)
    cut: str = ""
    complaints: list[str] = field(default_factory=list)

    def text(self) -> str:
        """The matches, after what has to be known about them."""
        said = [self.cut] if self.cut else []
        if self.complaints:
            said.append(f"{len(self.complaints)} could not be read, the first: {self.complaints[0][:500]}")
        head = f"[{'; '.join(said)}]\n" if said else ""
        left_out = f"No matches. Not searched, unless named as path: {', '.join(SKIPPED)}; binary files; links."
        return head + ("\n".join(self.lines) or left_out)


async def _search(context: ToolContext, arguments: SearchArguments, seconds: int) -> ToolOutput:
    for text, name in ((arguments.pattern, "pattern"), (arguments.glob or "", "glob")):
        if "\0" in text or "\n" in text:
            raise ToolFailed(f"The {name} must be one line of text.")
    where, file, shown = await context.mounts.run_in_thread(lambda _: _locate(context, arguments.path))
    why_not = ""
    for command in _commands(arguments, file, context.closed_below(where), seconds):
        found = SearchHits(shown, arguments.limit)
        with context.directory(where) as directory:
            await _run(command, f"/proc/self/fd/{directory}", found, seconds)
        why_not = next((line for line in found.complaints if BAD_PATTERN in line), "")
        if not why_not:
            return ToolOutput(found.text())
    raise ToolFailed(f"The pattern is not a regular expression: {why_not.partition(BAD_PATTERN + ':')[2].strip()}.")


def _locate(context: ToolContext, path: str) -> tuple[Path, str, str]:
    """The directory to search, the one file in it if a file was given, and how the directory is shown."""
    target = context.resolve(path)
    if target.is_dir():
        return target, "", context.display(target)
    open_text(context, target, path).close()
    return target.parent, target.name, context.display(target.parent)


def _commands(arguments: SearchArguments, file: str, closed: list[str], seconds: int) -> Iterator[list[str]]:
    """How it can be done, the best first. What ripgrep does not understand, Python may."""
    ripgrep = shutil.which("rg")
    if ripgrep is not None:
        yield [
            ripgrep,
            *("--no-config", "--color=never", "--no-heading", "--with-filename", "--line-number", "--null", "--crlf"),
            *("--hidden", "--no-ignore", "--sort=path", "--max-columns=500", "--max-columns-preview"),
            *(["--fixed-strings"] if arguments.literal else []),
            *(["--ignore-case"] if arguments.ignore_case else []),
            *([f"--glob={arguments.glob}"] if arguments.glob else []),
            *(f"--glob=!{name}/" for name in SKIPPED),
            *(f"--glob=!/{_literally(path)}/" for path in closed),
            f"--regexp={arguments.pattern}",
            f"./{file}",
        ]
    request = {
        "pattern": arguments.pattern,
        "literal": arguments.literal,
        "ignore_case": arguments.ignore_case,
        "glob": arguments.glob or "",
        "file": file,
        "skipped": SKIPPED,
        "closed": closed,
        "seconds": seconds + 5,
    }
    yield [sys.executable, "-I", "-S", str(SCAN), json.dumps(request)]


def _literally(path: str) -> str:
    """A path as a glob that means just it."""
    return re.sub(r"([^\w/.-])", r"\\\1", path)


async def _run(command: list[str], where: str, found: SearchHits, seconds: int) -> None:
    with tempfile.TemporaryFile() as complaints:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=where,
            env=ENVIRONMENT,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=complaints,
            limit=OUTPUT_LINE,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(seconds):
                await _collect(process, found)
        except TimeoutError:
            found.cut = f"stopped after {seconds} s, there may be more; narrow the path or the glob"
        finally:
            await _end(process)
        found.complaints = _complaints(complaints)


async def _collect(process: Process, found: SearchHits) -> None:
    assert process.stdout is not None
    room = WINDOW_CHARS
    async for raw in process.stdout:
        name, _, rest = raw.rstrip(b"\r\n").partition(b"\0")
        number, colon, line = rest.partition(b":")
        if not colon or not number.isdigit():
            continue  # a remark of ripgrep on a file that turned out to be binary
        path = printable(os.fsdecode(name).removeprefix("./"))
        path = path if found.where == "." else f"{found.where.rstrip('/')}/{path}"
        match = f"{path}:{int(number)}:{line.decode('utf-8', 'replace')}"
        room -= len(match) + 1
        if len(found.lines) == found.limit or room < 0:
            found.cut = f"the first {len(found.lines)} matches, there are more; narrow the pattern, path or glob"
            return
        found.lines.append(match)


async def _end(process: Process) -> None:
    """Kill it if it is still there, and read what is in the pipe, without which its end is not noticed."""
    assert process.stdout is not None
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
    while await process.stdout.read(OUTPUT_LINE):
        continue
    await process.wait()


def _complaints(file: IO[bytes]) -> list[str]:
    """What could not be read, a line each; an error in the pattern is several lines and stays together."""
    file.seek(0)
    text = file.read(OUTPUT_LINE).decode("utf-8", "replace")
    if BAD_PATTERN in text:
        return [re.sub(r"\s+", " ", text).strip()]
    return [printable(line) for line in text.splitlines() if line.strip()]


def search_tool(seconds: int = SECONDS) -> Tool[SearchArguments]:
    """The tool, with the time that it may take."""
    return Tool(
        "search",
        "Find the lines of text files that match a regular expression, as FILE:LINE:TEXT. "
        f"Directories like {', '.join(SKIPPED[:5])} are skipped unless they are named as path.",
        "pure",
        SearchArguments,
        lambda context, arguments: _search(context, arguments, seconds),
        default_policy="allow",
        file_changes="none",
    )


SEARCH = search_tool()
