"""The routes of the HTTP API, declared with the structs that they take and return, and the OpenAPI document.

The structs are msgspec's and also validate requests (`requests.py`). The routing itself is Starlette's.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast import __version__
from holdfast.domain.commands import AnyCommand
from holdfast.gateway.guard import PUBLIC
from holdfast.schemas.gateway import Error
from holdfast.schemas.sessions import Accepted

DESCRIPTION = (
    "A durable runtime for AI agents. A command is answered once it is on disk; clients read events by cursor."
)
ERRORS = {
    400: "malformed, a wrong value or an unknown field",
    401: "no credential, or a wrong one",
    403: "a foreign origin",
    404: "not found",
    409: "a conflict: an ambiguous id, a lost race, or not possible in this state",
    410: "deleted",
    413: "too large",
    421: "a foreign host",
    500: "an internal error",
    503: "not ready: the gateway is starting, or another program has locked the database",
    504: "another node, which alone could do it, does not answer",
    507: "the disk cannot be written, for example because it is full",
}
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Made by the client: a retry with the same key is stored once.",
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{8,64}$"},
}
REFERENCE = "#/components/schemas/{name}"
Handler = Callable[[Request], Awaitable[Response]]
Shape = type[msgspec.Struct]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiOperation:
    """One method of one path."""

    method: str
    path: str
    handler: Handler
    name: str
    summary: str
    result: Shape | None
    """None if it returns one of `media` instead of JSON."""
    status: int = 200
    body: Shape | None = None
    query: Shape | None = None
    has_key: bool = False
    """Whether it is a command that is stored once per Idempotency-Key."""
    media: tuple[str, ...] = ()
    """Media types that it returns instead of JSON, or on request."""


@dataclass(slots=True)
class Routes:
    """The operations of one module, and its routes outside of the documented API."""

    tag: str
    operations: list[ApiOperation] = field(default_factory=list)
    undocumented: list[Route] = field(default_factory=list)

    def get(
        self, path: str, result: Shape | None, *, query: Shape | None = None, media: tuple[str, ...] = ()
    ) -> Callable[[Handler], Handler]:
        """Declare a handler that only reads."""
        return self._declare("GET", path, result=result, query=query, media=media)

    def command(
        self, path: str, body: Shape | None, result: Shape = Accepted, *, method: str = "POST"
    ) -> Callable[[Handler], Handler]:
        """Declare a handler that takes a command and responds once it is committed."""
        return self._declare(method, path, result=result, status=202, body=body, has_key=True)

    def post(
        self, path: str, result: Shape, *, body: Shape | None = None, method: str = "POST", status: int = 202
    ) -> Callable[[Handler], Handler]:
        """Declare a handler that changes something without a command in the log."""
        return self._declare(method, path, result=result, status=status, body=body)

    def add_command(
        self, path: str, command: Shape, handler: Handler, result: Shape = Accepted, *, method: str = "POST"
    ) -> None:
        """Declare a handler of a command, with the docstring of the command as its description."""
        name, summary = re.sub(r"(?<!^)(?=[A-Z])", "_", command.__name__).lower(), (command.__doc__ or "").strip()
        self._add(method, path, handler, name, summary, result=result, status=202, body=command, has_key=True)

    def page(self, path: str, handler: Handler) -> None:
        """Declare a route that the OpenAPI document does not contain."""
        self.undocumented.append(Route(path, handler))

    @property
    def routes(self) -> list[Route]:
        """All routes for Starlette."""
        of_api = [Route(one.path, one.handler, methods=[one.method]) for one in self.operations]
        return [*of_api, *self.undocumented]

    def _declare(self, method: str, path: str, **more: Any) -> Callable[[Handler], Handler]:
        def declare(handler: Handler) -> Handler:
            self._add(method, path, handler, handler.__name__, (handler.__doc__ or "").strip(), **more)
            return handler

        return declare

    def _add(self, method: str, path: str, handler: Handler, name: str, summary: str, **more: Any) -> None:
        more |= {"method": method, "path": path, "handler": handler, "name": name, "summary": summary}
        self.operations.append(ApiOperation(**more))


def describe(parts: Iterable[Routes]) -> dict[str, Any]:
    """Return the OpenAPI document."""
    paths: dict[str, dict[str, Any]] = {}
    shapes: set[Shape] = {Error, *AnyCommand.__args__}
    for part in parts:
        for operation in part.operations:
            path = Route(operation.path, operation.handler).path_format
            paths.setdefault(path, {})[operation.method.lower()] = _described(operation, part.tag)
            shapes |= {shape for shape in (operation.result, operation.body) if shape is not None}
    _, components = msgspec.json.schema_components(shapes, ref_template=REFERENCE)
    for command in AnyCommand.__args__:
        components[command.__name__]["required"] = [
            field.encode_name for field in msgspec.structs.fields(command) if field.required
        ]
    return {
        "openapi": "3.1.0",
        "info": {"title": "Holdfast", "version": __version__, "description": DESCRIPTION},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}}},
        "security": [{"bearer": []}],
    }


def _described(operation: ApiOperation, tag: str) -> dict[str, Any]:
    responses = {str(operation.status): _success(operation)}
    responses |= {str(code): {"description": words} | _json(Error) for code, words in ERRORS.items()}
    found: dict[str, Any] = {
        "tags": [tag],
        "operationId": operation.name,
        "summary": operation.summary.partition("\n")[0],
        "description": operation.summary,
        "parameters": _parameters(operation),
        "responses": responses,
    }
    if operation.body is not None:
        required = any(field.required for field in msgspec.structs.fields(operation.body))
        found["requestBody"] = {"required": required} | _json(operation.body)
    if operation.path in PUBLIC:
        found["security"] = []
    return found


def _success(operation: ApiOperation) -> dict[str, Any]:
    texts = {kind: {"schema": {"type": "string"}} for kind in operation.media}
    if operation.result is None:
        return {"description": "A text.", "content": texts}
    found = _json(operation.result)
    return {"description": (operation.result.__doc__ or "").strip(), "content": found["content"] | texts}


def _parameters(operation: ApiOperation) -> list[dict[str, Any]]:
    names = Route(operation.path, operation.handler).param_convertors
    found: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names
    ]
    if operation.query is not None:
        _, components = msgspec.json.schema_components([operation.query], ref_template=REFERENCE)
        for name, schema in components[operation.query.__name__]["properties"].items():
            described = {"description": schema.pop("description")} if "description" in schema else {}
            found.append(
                {"name": name, "in": "query", "required": "default" not in schema, "schema": schema} | described
            )
    return [*found, IDEMPOTENCY_KEY] if operation.has_key else found


def _json(shape: Shape) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": {"$ref": REFERENCE.format(name=shape.__name__)}}}}
