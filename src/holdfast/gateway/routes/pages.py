"""The dashboard's files, and which build of it is served."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from holdfast import __version__
from holdfast.gateway.dashboard_files import FOLDERS, PAGES
from holdfast.gateway.openapi import Routes
from holdfast.gateway.responses import json_response
from holdfast.gateway.state import gateway_of
from holdfast.schemas.devices import Build

routes = Routes("pages")


@routes.get("/v1/build", Build)
async def build(request: Request) -> Response:
    """Which dashboard is served, without a credential."""
    gateway = gateway_of(request)
    gateway.dashboard.refresh()
    return json_response(Build(__version__, gateway.dashboard.build))


async def page(request: Request) -> Response:
    """A page, or a file that pages are made of."""
    gateway = gateway_of(request)
    return gateway.dashboard.response(request)


for name in sorted(PAGES | FOLDERS):
    for path in (f"/{name}", f"/{name}/{{rest:path}}") if name else ("/", "/{name}"):
        routes.page(path, page)
