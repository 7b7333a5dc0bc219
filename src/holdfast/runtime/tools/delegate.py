"""The tool `delegate`: another agent works on something, in a session of its own, in the background."""

from __future__ import annotations

from typing import Annotated

import msgspec

from holdfast.domain.errors import HoldfastError
from holdfast.domain.events.actor import AgentActor
from holdfast.domain.task import task_of_call
from holdfast.domain.task_commands import StartAgent
from holdfast.runtime.creation import Creation
from holdfast.runtime.tools.context import ToolContext, ToolFailed
from holdfast.runtime.tools.tool import CommandEnd, Tool, ToolOutput
from holdfast.sessions import Caller
from holdfast.store.contract import CommandKey
from holdfast.tasks.agents import AgentTasks
from holdfast.tasks.log import agent_started
from holdfast.tasks.queries import TaskQueries


class DelegateArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What another agent is to do."""

    prompt: Annotated[
        str, msgspec.Meta(min_length=1, description="Everything that it needs to know; it sees nothing else.")
    ]
    profile: Annotated[str, msgspec.Meta(description="The profile of the agent; by default yours.")] = ""
    notify: Annotated[bool, msgspec.Meta(description="Wake this conversation when it is done.")] = True


class Delegate:
    """Starts agents for agents."""

    def __init__(self, agent_tasks: AgentTasks, task_queries: TaskQueries, creation: Creation) -> None:
        self._agent_tasks = agent_tasks
        self._task_queries = task_queries
        self._creation = creation

    @property
    def tool(self) -> Tool[DelegateArguments]:
        """The tool."""
        return Tool(
            "delegate",
            "Start another agent in the background. You are notified when it is done.",
            "keyed",
            DelegateArguments,
            self.run,
            subject_field="prompt",
            default_policy="ask",
            file_changes="none",
        )

    async def run(self, context: ToolContext, arguments: DelegateArguments) -> ToolOutput:
        """Start the agent, unless this call has started it before."""
        task = task_of_call(context.session, context.call)
        profile = arguments.profile or context.profile
        command = StartAgent(prompt=arguments.prompt, notify=arguments.notify)
        by = AgentActor(session=context.session, call=context.call)
        started = agent_started(command, task=task, cwd=str(context.cwd), by=by, session=context.session)
        key = CommandKey(f"delegate-{task}", task)
        caller = Caller(key, started.by)
        try:
            if not await self._agent_tasks.was_started(key):
                if not await self._agent_tasks.may_run_here(profile):
                    raise ToolFailed(
                        f"Agents with the profile {profile} do not run on this machine (`nodes` in config.toml), and "
                        "what you delegate works in your directory. Choose another profile."
                    )
                async with self._creation.granted(context, profile=profile) as rights:
                    await self._agent_tasks.start(started, profile=profile, caller=caller, rights=rights)
            row = await self._task_queries.find(task)
        except HoldfastError as error:
            raise ToolFailed.by(error) from error
        return ToolOutput(
            f"Task {task} is {row.state}: the agent {profile} works on it in the background.",
            task=task,
            end=CommandEnd(running=row.state == "running"),
        )
