"""Answers what other nodes ask of this one: about its commands and its workspaces, and to work on a session."""

from __future__ import annotations

import msgspec

from holdfast.board.cleanup import WorkspaceCleanup, WorkspaceRequest
from holdfast.runtime.moves import WakeSession
from holdfast.runtime.runner import Runner
from holdfast.tasks.remote_tasks import TaskRequest
from holdfast.tasks.task_answers import TaskAnswers


class NodeRequests:
    """Carries out the requests of other nodes."""

    def __init__(self, runner: Runner, tasks: TaskAnswers, cleanup: WorkspaceCleanup) -> None:
        self._runner = runner
        self._tasks = tasks
        self._cleanup = cleanup

    async def answer(self, body: bytes) -> bytes:
        """Carry out a request; return the answer."""
        match msgspec.msgpack.decode(body, type=TaskRequest | WakeSession | WorkspaceRequest):
            case WakeSession(session=session):
                self._runner.take_over(session)
                return b""
            case WorkspaceRequest() as request:
                return await self._cleanup.answer(request)
            case request:
                return await self._tasks.answer(request)
