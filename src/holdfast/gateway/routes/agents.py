"""External agents: which are installed on this machine, and the sessions that they had in their own terminals."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from holdfast.domain.commands import AdoptSession
from holdfast.gateway.openapi import Routes
from holdfast.gateway.requests import QueryShape, parse_command, parse_query
from holdfast.gateway.responses import accepted, json_response
from holdfast.gateway.state import gateway_of
from holdfast.runtime.external.adoption.adopt import Adoptions
from holdfast.runtime.external.installed import list_agents
from holdfast.schemas.agents import AgentList, AgentSessions
from holdfast.schemas.sessions import Accepted

routes = Routes("agents")


class AgentsQuery(QueryShape, frozen=True):
    """What to find out."""

    versions: bool = False


@routes.get("/v1/agents", AgentList, query=AgentsQuery)
async def agents(request: Request) -> Response:
    """List the external agents of the catalogue; with `versions`, ask those that are installed for theirs."""
    query = parse_query(request, AgentsQuery)
    return json_response(await list_agents(gateway_of(request).profiles.settings, versions=query.versions))


class AgentSessionsQuery(QueryShape, frozen=True):
    """How many."""

    limit: Annotated[int, Meta(ge=1, le=200)] = 20


@routes.get("/v1/agents/{agent}/sessions", AgentSessions, query=AgentSessionsQuery)
async def agent_sessions(request: Request) -> Response:
    """List the sessions that an external agent had in its own terminal, newest first."""
    query = parse_query(request, AgentSessionsQuery)
    return json_response(await _adoptions(request).sessions_of(request.path_params["agent"], limit=query.limit))


@routes.command("/v1/agents/{agent}/adopt", AdoptSession)
async def adopt_session(request: Request) -> Response:
    """Create a session that continues one of an external agent; its history is imported, its file only read."""
    agent = request.path_params["agent"]
    command, caller = await parse_command(request, AdoptSession, subject=agent)
    return accepted(Accepted, await _adoptions(request).adopt(agent, command, caller))


def _adoptions(request: Request) -> Adoptions:
    gateway = gateway_of(request)
    return Adoptions(gateway.store, gateway.sessions, gateway.profiles, gateway.clock)
