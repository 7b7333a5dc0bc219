"""Tasks: commands and agents in the background, and their output."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from holdfast.client.http import HttpClient, quote
from holdfast.client.lenient import decode
from holdfast.client.output import OutputItem, OutputPiece, follow_output, stored_output
from holdfast.schemas.changes import FileChanges
from holdfast.schemas.tasks import (
    OutputHits,
    OutputMatches,
    PruneResult,
    TaskAccepted,
    TaskPage,
    TaskView,
    WriteResult,
)

if TYPE_CHECKING:
    from holdfast.domain.command import SessionMode
    from holdfast.domain.events.parts import NotifyChoice
    from holdfast.domain.events.task import Lifetime, TaskOutcome

WAIT_SECONDS = 20
PIECE = 16_384
"""How many characters are sent in one request; the gateway takes 65,536."""


class TaskApi:
    """Queries and commands about tasks. An ID may be shortened to a unique prefix of 4 or more characters."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    def list(
        self,
        *,
        state: str = "",
        kind: str = "",
        session: str = "",
        text: str = "",
        foreground: bool = False,
        limit: int = 50,
        before: str = "",
    ) -> TaskPage:
        """A page of all tasks, newest first; with `foreground` also commands that a turn waits or waited for."""
        return self._client.read(
            TaskPage,
            "/v1/tasks",
            state=state or None,
            kind=kind or None,
            session=session or None,
            text=text or None,
            all=foreground,
            limit=limit,
            before=before or None,
        )

    def get(self, id: str) -> TaskView:
        """One task."""
        return self._client.read(TaskView, _path(id))

    def start_command(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | None = None,
        name: str | None = None,
        env: dict[str, str] | None = None,
        session: str | None = None,
        lifetime: Lifetime = "persist",
        stdin: bool = False,
        tell: NotifyChoice = "default",
    ) -> TaskAccepted:
        """Run a command that outlives the gateway: a shell command line, or a list of arguments."""
        words = None if isinstance(command, str) else list(command)
        return self._client.post(
            TaskAccepted,
            "/v1/tasks",
            shell=command if words is None else None,
            argv=words,
            cwd=cwd,
            name=name,
            env=env,
            session=session,
            lifetime=lifetime,
            stdin=stdin,
            tell=tell,
        )

    def start_agent(
        self,
        prompt: str,
        *,
        profile: str | None = None,
        cwd: str | None = None,
        title: str | None = None,
        session: str | None = None,
        mode: SessionMode | None = None,
        tell: NotifyChoice = "default",
    ) -> TaskAccepted:
        """Start an agent in the background, in its own session, whose ID is the task's."""
        return self._client.post(
            TaskAccepted,
            "/v1/tasks/agents",
            prompt=prompt,
            profile=profile,
            cwd=cwd,
            title=title,
            session=session,
            mode=mode,
            tell=tell,
        )

    def detach(self, session: str) -> TaskAccepted:
        """Make the running turn of a session a task; 409 if none is running."""
        return self._client.post(TaskAccepted, f"/v1/sessions/{quote(session)}/detach")

    def output(self, id: str, *, raw: bool = False, offset: int = 0, tail: int = 0) -> Iterator[OutputPiece]:
        """The output so far, from an offset on or only the last lines; as clean text, or unchanged with `raw`."""
        return stored_output(self._client, quote(id), raw=raw, offset=offset, tail=tail)

    def follow_output(self, id: str, *, raw: bool = False, offset: int = 0, tail: int = 0) -> Iterator[OutputItem]:
        """The output so far and new output, until the task has ended; waits for a gateway that restarts."""
        return follow_output(self._client, quote(id), raw=raw, offset=offset, tail=tail, patience=self._client.patience)

    def search_output(
        self, id: str, text: str, *, offset: int = 0, limit: int = 100, context: int = 200
    ) -> OutputMatches:
        """Search its output, in upper or lower case. If there is `more`, continue with `next` as the offset."""
        return self._client.read(
            OutputMatches, f"{_path(id)}/output/search", q=text, offset=offset, limit=limit, context=context
        )

    def diff(self, id: str) -> FileChanges:
        """How the files that it changed differ from the commit at which it began, as they are now."""
        return self._client.read(FileChanges, f"{_path(id)}/diff")

    def wait(self, id: str, *, seconds: float = math.inf) -> TaskView:
        """The task when it has ended, or as it is after this many seconds; waits for a gateway that restarts."""
        deadline = time.monotonic() + seconds
        while True:
            left = math.ceil(max(0.0, min(WAIT_SECONDS, deadline - time.monotonic())))
            task = self._client.read(TaskView, f"{_path(id)}/wait", seconds=left)
            if not task.is_open or time.monotonic() >= deadline:
                return task

    def stop(self, id: str, *, force: bool = False) -> TaskAccepted:
        """Stop it, forced after 5 s; with `force` at once."""
        return self._client.post(TaskAccepted, f"{_path(id)}/stop", force=force)

    def rerun(self, id: str, *, env: dict[str, str] | None = None) -> TaskAccepted:
        """Run an ended command or agent again, as a new task."""
        return self._client.post(TaskAccepted, f"{_path(id)}/rerun", env=env)

    def write(self, id: str, text: str, *, close: bool = False) -> WriteResult:
        """Write to the input of a command that keeps it open; `close` closes it if everything was taken."""
        taken = 0
        for start in range(0, len(text), PIECE):
            written = self._write(id, text[start : start + PIECE])
            taken += written.bytes
            if written.bytes < written.of:
                return WriteResult(bytes=taken, of=len(text.encode()))
        if close:
            self._write(id, "", close=True)
        return WriteResult(bytes=taken, of=taken)

    def _write(self, id: str, text: str, *, close: bool = False) -> WriteResult:
        # Not tried again after a restart of the gateway, which has forgotten what was typed under this id.
        return decode(
            self._client.command_body("POST", f"{_path(id)}/write", {"text": text, "close": close}), WriteResult
        )

    def pin(self, id: str, *, pinned: bool = True) -> TaskAccepted:
        """Protect it from pruning, or remove the protection."""
        return self._client.post(TaskAccepted, f"{_path(id)}/pin", pinned=pinned)

    def set_notifications(self, id: str, choice: NotifyChoice) -> TaskAccepted:
        """Choose whether people are notified of its end, whatever the rules of the destinations say."""
        return self._client.post(TaskAccepted, f"{_path(id)}/tell", tell=choice)

    def stale(self) -> TaskPage:
        """Running commands that nobody seems to need."""
        return self._client.read(TaskPage, "/v1/tasks/stale")

    def search(self, text: str, *, limit: int = 50) -> OutputHits:
        """Search the output of all tasks for a text, newest first."""
        return self._client.read(OutputHits, "/v1/tasks/search", q=text, limit=limit)

    def prune(
        self,
        *,
        older_than_ms: int | None = None,
        larger_than: int | None = None,
        keep_last: int | None = None,
        state: TaskOutcome | None = None,
        confirm: bool = False,
    ) -> PruneResult:
        """Delete ended tasks that match all conditions; without `confirm` only list them."""
        return self._client.post(
            PruneResult,
            "/v1/tasks/prune",
            older_than_ms=older_than_ms,
            larger_than=larger_than,
            keep_last=keep_last,
            state=state,
            confirm=confirm,
        )


def _path(task: str) -> str:
    return f"/v1/tasks/{quote(task)}"
