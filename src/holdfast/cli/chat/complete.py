"""Completion: slash commands, what they take, and files behind an `@`. It never waits for the gateway."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from holdfast.cli.chat.passthrough import completed_by
from holdfast.cli.chat.slash import BY_NAME, COMMANDS
from holdfast.cli.chat.view import View
from holdfast.cli.screen import SHORT_ID, one_line, shorten
from holdfast.client.client import Client
from holdfast.domain.errors import HoldfastError

FRESH_SECONDS = 5.0
LISTED = 100
MOST = 40
SCANNED = 20_000
SECONDS = 0.15
SKIPPED = frozenset({".git", ".hg", ".venv", "node_modules", "__pycache__", ".mypy_cache", ".ruff_cache"})
ARGUMENTS = {"resume": "session", "profile": "profile", "model": "model"}
Choices = list[tuple[str, str]]


class Catalog:
    """The names to complete: sessions, profiles, models, tasks. Fetched in a thread, at most every few seconds."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, Choices] = {}
        self._fetched: dict[str, float] = {}

    def get(self, what: str) -> Choices:
        """Return the names that are known now, and fetch them again for the next time."""
        now = time.monotonic()
        if now - self._fetched.get(what, 0.0) > FRESH_SECONDS:
            self._fetched[what] = now
            threading.Thread(target=self._fetch, args=(what,), name=f"catalog {what}", daemon=True).start()
        return self._known.get(what, [])

    def _fetch(self, what: str) -> None:
        fetch = {
            "session": self._sessions,
            "profile": self._profiles,
            "model": self._models,
            "task": self._tasks,
            "card": self._cards,
            "board": self._boards,
        }[what]
        try:
            self._known[what] = fetch()
        except HoldfastError:
            self._known.pop(what, None)

    def _sessions(self) -> Choices:
        rows = self._client.sessions.list(limit=LISTED).sessions
        return [(row.id[:SHORT_ID], shorten(one_line(row.title), 50)) for row in rows]

    def _tasks(self) -> Choices:
        rows = self._client.tasks.list(limit=LISTED).tasks
        return [(row.id[:SHORT_ID], f"{row.state} · {shorten(one_line(row.title), 40)}") for row in rows]

    def _cards(self) -> Choices:
        rows = self._client.cards.list().cards[:LISTED]
        return [(row.label, f"{row.status} · {shorten(one_line(row.title), 40)}") for row in rows]

    def _boards(self) -> Choices:
        return [(row.id, one_line(row.title)) for row in self._client.boards.list().boards]

    def _profiles(self) -> Choices:
        return [(one_line(profile.name), one_line(profile.model)) for profile in self._client.profiles().profiles]

    def _models(self) -> Choices:
        found = self._client.models().detected
        named = [(one_line(f"{known.provider}:{model}"), "") for known in found for model in known.models]
        return [("default", "the profile's own"), *named]


class ChatCompleter(Completer):
    """Completes the line at the cursor."""

    def __init__(self, catalog: Catalog, view: Callable[[], View]) -> None:
        self._catalog = catalog
        self._view = view

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Return the completions at the cursor."""
        del complete_event
        before = document.text_before_cursor
        path = mention(before)
        if path is not None:
            return [Completion(found, start_position=-len(path)) for found in matches(Path(self._view().cwd), path)]
        if not before.startswith("/") or "\n" in before:
            return []
        name, blank, argument = before[1:].partition(" ")
        return list(self._arguments(name, argument) if blank else _verbs(name))

    def _arguments(self, name: str, argument: str) -> Iterator[Completion]:
        known = BY_NAME.get(name)
        *before, word = argument.split(" ")
        choices: Choices = []
        if known is not None and known.runs:
            wanted = completed_by(" ".join([known.runs, *before]))
            choices = self._catalog.get(wanted) if isinstance(wanted, str) else wanted
        elif name in ARGUMENTS and not before:
            choices = self._catalog.get(ARGUMENTS[name])
        elif name == "open" and not before:
            calls = reversed(self._view().calls)
            choices = [(str(one.number), one_line(one.call.tool)) for one in calls]
        for choice, meta in choices:
            if choice.startswith(word) or (word and word.lower() in meta.lower()):
                yield Completion(choice, start_position=-len(word), display_meta=meta)


def _verbs(typed: str) -> Iterator[Completion]:
    for verb in COMMANDS:
        if verb.name.startswith(typed):
            yield Completion(
                f"/{verb.name}{' ' if verb.takes else ''}",
                start_position=-len(typed) - 1,
                display=f"/{verb.name} {verb.takes}".rstrip(),
                display_meta=verb.does,
            )


def completes_while_typing(text: str) -> bool:
    """Complete while typing only after a slash at the beginning, or an `@`."""
    return (text.startswith("/") and "\n" not in text) or mention(text) is not None


# --- files, within a bounded time and number ------------------------------------------------------


def mention(before_cursor: str) -> str | None:
    """The path that is being typed behind an `@`, if one is."""
    at = max(before_cursor.rfind(" "), before_cursor.rfind("\n"), before_cursor.rfind("\t")) + 1
    word = before_cursor[at:]
    return word[1:] if word.startswith("@") else None


def matches(cwd: Path, typed: str, *, clock: Callable[[], float] = time.monotonic) -> list[str]:
    """Paths below `cwd` that begin like this; then those that have it in their name, anywhere below."""
    if typed.startswith(("/", "~")) or ".." in typed.split("/"):
        return []
    place, _, start = typed.rpartition("/")
    here = cwd / place if place else cwd
    found = [_path(place, entry) for entry in _listed(here) if _fits(entry.name, start)]
    found.sort(key=lambda path: (not path.endswith("/"), path))
    if len(found) < MOST and start and not place:
        known = set(found)
        found += [path for path in _below(cwd, start.lower(), clock() + SECONDS, clock) if path not in known]
    return found[:MOST]


def _fits(name: str, start: str) -> bool:
    return name.startswith(start) and (start.startswith(".") or not name.startswith("."))


def _listed(place: Path) -> list[os.DirEntry[str]]:
    """The entries of a directory that can be written on a line; none if it cannot be read."""
    try:
        with os.scandir(place) as entries:
            return [entry for _, entry in zip(range(SCANNED), entries, strict=False) if entry.name.isprintable()]
    except OSError:
        return []


def _below(cwd: Path, part: str, deadline: float, clock: Callable[[], float]) -> Iterator[str]:
    """Walk level by level, so that near files come first."""
    places = deque([""])
    scanned = found = 0
    while places and found < MOST and scanned < SCANNED and clock() < deadline:
        place = places.popleft()
        for entry in sorted(_listed(cwd / place), key=lambda entry: entry.name):
            scanned += 1
            if entry.name in SKIPPED or entry.name.startswith("."):
                continue
            path = _path(place, entry)
            if path.endswith("/"):
                places.append(path.rstrip("/"))
            if part in entry.name.lower():
                found += 1
                yield path


def _path(place: str, entry: os.DirEntry[str]) -> str:
    """Relative to the session's directory; a directory ends with a slash. Links are not followed."""
    path = f"{place}/{entry.name}" if place else entry.name
    try:
        return f"{path}/" if entry.is_dir(follow_symlinks=False) else path
    except OSError:
        return path
