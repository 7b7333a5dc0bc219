"""The dashboard's files, and which build of it is served."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from holdfast import __version__
from holdfast.gateway.answers import answer
from holdfast.gateway.contract import returns
from holdfast.gateway.door_shapes import Build
from holdfast.gateway.site import FOLDERS, PAGES
from holdfast.gateway.state import GatewayDep

router = APIRouter(tags=["pages"])


@router.get("/v1/build", **returns(Build))
async def build(at: GatewayDep) -> Response:
    """Which dashboard is served, without a credential."""
    at.site.look()
    return answer(Build(__version__, at.site.build))


async def page(at: GatewayDep, request: Request) -> Response:
    """A page, or a file that pages are made of."""
    return at.site.answer(request)


for name in sorted(PAGES | FOLDERS):
    for path in (f"/{name}", f"/{name}/{{rest:path}}") if name else ("/", "/{name}"):
        router.add_api_route(path, page, methods=["GET", "HEAD"], include_in_schema=False)
