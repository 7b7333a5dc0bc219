"""Deletes files that the last gateway could not delete before it ended."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from pathlib import Path

from holdfast.domain.errors import HoldfastError
from holdfast.domain.task import INLINE
from holdfast.processes.supervisor import Supervisor
from holdfast.store.contract import Store
from holdfast.tasks.defaults import Environments
from holdfast.tasks.log import TaskLog
from holdfast.tasks.plain_text import plain

log = logging.getLogger(__name__)


async def clear_left_over(
    store: Store,
    task_log: TaskLog,
    supervisor: Supervisor,
    environments: Environments,
    *,
    remembered: set[str],
    root: Path,
) -> None:
    """Delete outputs of pruned tasks, outputs that are also in the log, snapshots and environments of ended tasks."""
    running = {row.id: row for row in await store.running_tasks()}
    for task in remembered - running.keys():
        task_log.changes.forget(task)
    for task in environments.kept():
        if task not in running or running[task].pid is not None:
            environments.drop(task)
    known = await store.task_ids()
    needed = {row.left_by for row in running.values()}
    for name in await asyncio.to_thread(_names, root):
        if name in needed:
            continue  # its keepers still use it for the processes that the command left behind
        if name not in known or (known[name] and await _is_in_log(task_log, supervisor, name)):
            log.info("deleting leftover files of task %s", name)
            try:
                await supervisor.remove(name)
            except (HoldfastError, OSError) as error:  # it runs, or is not a task; that must not prevent the start
                log.error("%s in %s belongs to no known task and could not be deleted: %s", name, root, error)


async def clear_pruned(store: Store, supervisor: Supervisor, root: Path) -> None:
    """Delete the outputs of tasks that were pruned on another node."""
    known = await store.task_ids()
    for name in await asyncio.to_thread(_names, root):
        if name not in known:
            with suppress(HoldfastError):
                await supervisor.remove(name)


async def remove_if_in_log(store: Store, task_log: TaskLog, supervisor: Supervisor, task: str) -> None:
    """Delete the directory of an ended command, and the copy of its output, if that is also in the log."""
    with suppress(HoldfastError):
        if await _is_in_log(task_log, supervisor, task):
            await supervisor.remove(task)
            if store.exchange is not None:
                await store.exchange.drop_copies([task])


async def _is_in_log(task_log: TaskLog, supervisor: Supervisor, task: str) -> bool:
    """Return whether the log has all of the output: not if it is long, has control characters, or was stopped."""
    row = await task_log.find(task)
    data = await asyncio.to_thread(lambda: supervisor.output(task).read(0, INLINE + 1).data)
    if row is None or row.state == "stopped" or len(data) > INLINE or plain(data).encode() != data:
        return False
    return await task_log.output(row) == data


def _names(root: Path) -> list[str]:
    return [path.name for path in root.iterdir() if path.is_dir() and not path.name.startswith(".")]
