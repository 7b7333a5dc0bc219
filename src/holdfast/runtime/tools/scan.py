"""Search files line by line: what `search` starts where there is no ripgrep.

It is a process of its own, standard library only, because a regular expression may run for ever and can
then only be killed. It searches the directory that it is started in and prints like `rg --null`:
the file, a zero byte, the line's number, a colon, the line.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Iterator

COLUMNS = 500
HEAD = 8_192
LINE = 1 << 20


def main() -> int:
    """Read the request, search, print."""
    request = json.loads(sys.argv[1])
    signal.alarm(request["seconds"])  # also when its parent has died
    source = re.escape(request["pattern"]) if request["literal"] else request["pattern"]
    try:
        pattern = re.compile(source, re.IGNORECASE if request["ignore_case"] else 0)
    except (re.error, OverflowError, RecursionError) as error:
        print(f"regex parse error: {error}", file=sys.stderr)  # noqa: T201
        return 2
    kept, dropped = _globs(request["glob"])
    for name in [request["file"]] if request["file"] else _files(set(request["skipped"]), set(request["closed"])):
        if (kept is None or kept.fullmatch(name)) and (dropped is None or not dropped.fullmatch(name)):
            _search(name, pattern)
    return 0


def _files(skipped: set[str], closed: set[str]) -> Iterator[str]:
    """All files below, without links."""
    for directory, directories, names in os.walk(".", onerror=_complain):
        below = f"{directory}/"[2:]
        directories[:] = sorted(name for name in directories if name not in skipped and below + name not in closed)
        for name in sorted(names):
            path = below + name
            if os.path.isfile(path) and not os.path.islink(path):  # noqa: PTH113, PTH114
                yield path


def _search(name: str, pattern: re.Pattern[str]) -> None:
    try:
        with os.fdopen(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if b"\0" in file.read(HEAD):
                return
            file.seek(0)
            number = 1
            while piece := file.readline(LINE):
                line = piece.decode("utf-8", "replace").rstrip("\r\n")
                if pattern.search(line):
                    _print(name, number, line)
                number += piece.endswith(b"\n")
    except OSError as error:
        _complain(error)


def _print(name: str, number: int, line: str) -> None:
    shown = line if len(line) <= COLUMNS else f"{line[:COLUMNS]} [… {len(line) - COLUMNS} characters more]"
    sys.stdout.buffer.write(os.fsencode(name) + f"\0{number}:{shown}\n".encode())


def _complain(error: OSError) -> None:
    print(f"{error.filename}: {error.strerror}", file=sys.stderr)  # noqa: T201


def _globs(glob: str) -> tuple[re.Pattern[str] | None, re.Pattern[str] | None]:
    """What a file must match, and what it must not."""
    if not glob:
        return None, None
    if glob.startswith("!"):
        return None, re.compile(_translate(glob[1:]))
    return re.compile(_translate(glob)), None


def _translate(glob: str) -> str:
    """A glob as a regular expression; without a slash it is about the name alone, at any depth."""
    anywhere = "/" not in glob.rstrip("/")
    out, at, depth = "(?:.*/)?" if anywhere else "", 0, 0
    glob = glob.removeprefix("/")
    while at < len(glob):
        char = glob[at]
        if glob.startswith("**/", at):
            out, at = out + "(?:.*/)?", at + 3
            continue
        if glob.startswith("**", at):
            out, at = out + ".*", at + 2
            continue
        closing = glob.find("]", at + 2) if char == "[" else -1
        if closing > 0:
            inner = glob[at + 1 : closing].replace("\\", "\\\\").replace("[", "\\[")
            out, at = out + "[" + ("^" + inner[1:] if inner.startswith("!") else inner) + "]", closing + 1
            continue
        if char == "{" and "}" in glob[at:]:
            out, depth = out + "(?:", depth + 1
        elif char == "}" and depth:
            out, depth = out + ")", depth - 1
        elif char == "," and depth:
            out += "|"
        else:
            out += {"*": "[^/]*", "?": "[^/]"}.get(char, re.escape(char))
        at += 1
    return "(?s:" + out + ")"


if __name__ == "__main__":
    sys.exit(main())
