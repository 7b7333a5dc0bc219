"""Tasks: start a command or an agent, put a turn into the background, run again what has ended."""

from __future__ import annotations

import secrets

from starlette.requests import Request
from starlette.responses import Response

from holdfast.domain.commands import DetachTurn
from holdfast.domain.errors import Rejected
from holdfast.domain.rights import NO_LIMITS, strictest_mode
from holdfast.domain.task_commands import RerunTask, StartAgent, StartCommand
from holdfast.gateway.openapi import Routes
from holdfast.gateway.requests import (
    check_profile,
    find_session,
    may_run_here,
    parse_command,
    session_of,
    task_of,
    working_directory,
)
from holdfast.gateway.responses import accepted
from holdfast.gateway.state import Gateway, gateway_of
from holdfast.schemas.tasks import TaskAccepted
from holdfast.store.rows import TaskRow
from holdfast.tasks.log import agent_started, command_started
from holdfast.tasks.rerun import rerun

routes = Routes("tasks")


async def _parent(gateway: Gateway, given: str | None) -> str:
    return (await find_session(gateway, given)).id if given is not None else ""


@routes.command("/v1/tasks", StartCommand, TaskAccepted)
async def start_command(request: Request) -> Response:
    """Run a command that keeps running when the gateway ends."""
    gateway = gateway_of(request)
    command, caller = await parse_command(request, StartCommand, subject="")
    if (command.shell is None) == (command.argv is None):
        raise Rejected("Give either `shell` (a command line) or `argv` (a list of arguments).")
    if (command.until is not None) != (command.lifetime == "until"):
        raise Rejected("`until` must be given with the lifetime `until`, and only then.")
    task, session = secrets.token_hex(8), await _parent(gateway, command.session)
    there = await gateway.nodes.node_for_command(command.node)
    cwd = command.cwd or "/" if there else await working_directory(gateway, command.cwd)
    started = command_started(command, task=task, cwd=cwd, by=caller.by, session=session)
    key = caller.replying(session=started.session).key
    if there:
        return accepted(TaskAccepted, await gateway.task_queries.start_there(there, started, key, env=command.env))
    return accepted(TaskAccepted, await gateway.tasks.start_command(started, env=command.env, command=key))


@routes.command("/v1/tasks/agents", StartAgent, TaskAccepted)
async def start_agent(request: Request) -> Response:
    """Start an agent in the background, in a session of its own."""
    gateway = gateway_of(request)
    command, caller = await parse_command(request, StartAgent, subject="")
    profile = command.profile or gateway.profiles.default
    check_profile(gateway, profile)
    task = secrets.token_hex(8)
    here, session = await may_run_here(gateway, profile, command.node), await _parent(gateway, command.session)
    cwd = await working_directory(gateway, command.cwd, here=here)
    started = agent_started(command, task=task, cwd=cwd, by=caller.by, session=session)
    said = caller.replying(session=task)  # the session of an agent task has the id of the task
    parents = [(await gateway.sessions.get(session)).mode_in_force] if session else []
    mode = strictest_mode(command.mode, *parents)
    appended = await gateway.agent_tasks.start(started, profile=profile, caller=said, mode=mode, node=command.node)
    return accepted(TaskAccepted, appended)


@routes.command("/v1/sessions/{id}/detach", DetachTurn, TaskAccepted)
async def detach_turn(request: Request) -> Response:
    """Turn the running turn into a background task."""
    gateway = gateway_of(request)
    row = await session_of(request)
    _, caller = await parse_command(request, DetachTurn, subject=row.id)
    said = caller.replying(session=row.id)
    return accepted(TaskAccepted, await gateway.agent_tasks.background(row.id, task=secrets.token_hex(8), caller=said))


@routes.command("/v1/tasks/{id:task}/rerun", RerunTask, TaskAccepted)
async def rerun_task(request: Request) -> Response:
    """Run an ended command or agent again: a new task with the same command or prompt in the same directory."""
    gateway = gateway_of(request)
    row = await task_of(request)
    command, caller = await parse_command(request, RerunTask, subject=row.id)
    known = await gateway.store.find_command(caller.key)
    if known is not None:
        return accepted(TaskAccepted, known)
    started = rerun(await gateway.tasks.task_log.started(row.id), row, task=secrets.token_hex(8), by=caller.by)
    if row.kind == "process":
        key, there = caller.replying(session="").key, await _node_again(gateway, row)
        if there:
            return accepted(TaskAccepted, await gateway.task_queries.start_there(there, started, key, env=None))
        await working_directory(gateway, started.cwd)
        return accepted(TaskAccepted, await gateway.tasks.start_command(started, env=command.env, command=key))
    worker = await gateway.sessions.get(row.worker)
    check_profile(gateway, worker.profile)
    here = await may_run_here(gateway, worker.profile, worker.node)
    await working_directory(gateway, started.cwd, here=here)
    rights = None if worker.rights == NO_LIMITS else worker.rights
    said = caller.replying(session=started.task)
    appended = await gateway.agent_tasks.start(
        started, profile=worker.profile, caller=said, rights=rights, mode=worker.mode, node=worker.node
    )
    return accepted(TaskAccepted, appended)


async def _node_again(gateway: Gateway, row: TaskRow) -> str:
    """Return the other node on which a command has run; empty if that is this one, or was forgotten."""
    is_known = any(node.name == row.node for node in await gateway.nodes.all())
    return await gateway.nodes.node_for_command(row.node) if is_known else ""
