"""Calls of the tools `kanban_*` by an external agent, over MCP with the token of its run.

The same tools as those of our own workers, under the same rules. There is no turn of ours in which a person could be
asked, so what needs an approval is refused, and the agent learns what it can do instead.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace

from holdfast.domain.errors import HoldfastError
from holdfast.domain.events.parts import Call
from holdfast.models.model import ToolSpec
from holdfast.runtime.agents import Agents
from holdfast.runtime.permissions import strictest_policy
from holdfast.runtime.tools.context import ToolFailed
from holdfast.runtime.tools.tool import AnyTool, Tool, ToolOutput, failed_outcome
from holdfast.sessions import Sessions
from holdfast.worker_access import RunToken


class WorkerCalls:
    """Carries out calls of external workers."""

    def __init__(self, tools: Sequence[AnyTool], sessions: Sessions, agents: Agents) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._sessions = sessions
        self._agents = agents

    @property
    def specs(self) -> list[ToolSpec]:
        """The tools that there are."""
        return [tool.spec for tool in self._tools.values()]

    async def call(self, worker: RunToken, name: str, arguments: str) -> ToolOutput:
        """Carry out a call of a worker. Whether its run is open is checked by the tool, where it writes."""
        tool = self._tools.get(name)
        if tool is None:
            return ToolOutput(
                f"There is no tool {name[:100]!r}; there is: {', '.join(sorted(self._tools))}.", outcome="failed"
            )
        session = await self._sessions.get(worker.session)
        if not session.exists or session.card != worker.card:
            return ToolOutput("Your run is over: its session was deleted. Nothing was changed.", outcome="failed")
        agent = await self._agents.of(session)
        context = replace(agent.tool_context(session), run=worker.run)
        call = Call(call=secrets.token_hex(8), tool=name, arguments=arguments)
        try:
            subject = tool.subject(context, arguments)
            other = await tool.delegated_profile(context, arguments) if isinstance(tool, Tool) else ""
            policy = strictest_policy(
                session,
                call,
                tool,
                subject,
                rules=agent.rules,
                context=context,
                limits=agent.ancestors,
                handed_to=other,
            )
            if isinstance(policy, ToolOutput):
                return policy
            if policy == "ask":
                return _needs_a_person(name, other)
            return await tool.call(context, arguments)
        except (ToolFailed, OSError) as error:
            return failed_outcome(error)
        except HoldfastError as error:
            return failed_outcome(ToolFailed.by(error))


def _needs_a_person(name: str, other: str) -> ToolOutput:
    about = f" for the profile {other!r}" if other else ""
    return ToolOutput(
        f"A person must allow {name}{about}, and cannot be asked here. Nothing was changed. "
        "Say what you want in kanban_block, or in the summary of kanban_complete.",
        outcome="failed",
    )
