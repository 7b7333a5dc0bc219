"""External agents: which are installed on this machine."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from holdfast.gateway.openapi import Routes
from holdfast.gateway.requests import QueryShape, parse_query
from holdfast.gateway.responses import json_response
from holdfast.gateway.state import gateway_of
from holdfast.runtime.external.installed import list_agents
from holdfast.schemas.agents import AgentList

routes = Routes("agents")


class AgentsQuery(QueryShape, frozen=True):
    """What to find out."""

    versions: bool = False


@routes.get("/v1/agents", AgentList, query=AgentsQuery)
async def agents(request: Request) -> Response:
    """List the external agents of the catalogue; with `versions`, ask those that are installed for theirs."""
    query = parse_query(request, AgentsQuery)
    return json_response(await list_agents(gateway_of(request).profiles.settings, versions=query.versions))
