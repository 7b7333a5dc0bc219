"""`holdfast logs`: the gateway's own log. Works without a gateway, since it may be why there is none."""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.screen import clean, dim

POLL_SECONDS = 0.2
COLORS = {"warning": "yellow", "error": "red", "critical": "red"}


@click.command("logs")
@click.option("--follow", "-f", "stay", is_flag=True, help="Stay and show what comes; Ctrl-C leaves.")
@click.option("--lines", "-n", type=click.IntRange(min=0), default=50, show_default=True, help="How many lines.")
@shared_options
@pass_cli
def command(cli: Cli, stay: bool, lines: int) -> None:
    """Show the end of the gateway's log. With --json as it is stored, one object a line."""
    path = cli.home.log
    if not path.exists() and not stay:
        click.echo(f"No log yet: no gateway has run in {cli.home.path}.", err=True)
        return
    try:
        for line in _following(path, lines) if stay else _last(path, lines):
            click.echo(_as_json(line) if cli.json else _readable(line))
    except KeyboardInterrupt:
        print(file=sys.stderr)


def _last(path: Path, lines: int) -> Iterator[str]:
    with path.open("rb") as log:
        yield from _end(log, lines)


def _end(log: BinaryIO, lines: int) -> list[str]:
    return [line.decode("utf-8", "replace").rstrip("\n") for line in deque(log, lines)]


def _following(path: Path, lines: int) -> Iterator[str]:
    """Like `tail -F`: a rotated file is followed by its successor."""
    while not path.exists():
        time.sleep(POLL_SECONDS)
    log = path.open("rb")
    try:
        yield from _end(log, lines)
        rest = b""
        while True:
            if piece := log.read():
                *whole, rest = (rest + piece).split(b"\n")
                yield from (line.decode("utf-8", "replace") for line in whole)
                continue
            if _rotated(path, log):
                log.close()
                log = path.open("rb")
            else:
                time.sleep(POLL_SECONDS)
    finally:
        log.close()


def _rotated(path: Path, log: BinaryIO) -> bool:
    import os

    try:
        return not os.path.samestat(path.stat(), os.fstat(log.fileno()))
    except FileNotFoundError:
        return False


def _parsed(line: str) -> dict[str, object] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _as_json(line: str) -> str:
    """What a crash wrote beside the log is no JSON; it becomes a message."""
    return line if _parsed(line) is not None else json.dumps({"message": line}, ensure_ascii=False)


def _readable(line: str) -> str:
    entry = _parsed(line)
    if entry is None:
        return clean(line)
    at, level, logger, message = (str(entry.get(name, "")) for name in ("at", "level", "logger", "message"))
    shown = f"{level:<7}"
    if level in COLORS:
        shown = click.style(shown, fg=COLORS[level])
    trace = f"\n{clean(str(entry['trace']))}" if entry.get("trace") else ""
    return f"{dim(_local(at))}  {shown}  {dim(logger.removeprefix('holdfast.'))}  {clean(message)}{trace}"


def _local(at: str) -> str:
    """`2026-11-15T22:00:01.123Z` as local date and time."""
    import calendar

    try:
        seconds = calendar.timegm(time.strptime(at[:19], "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return at
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
