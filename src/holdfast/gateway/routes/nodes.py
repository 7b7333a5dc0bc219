"""Nodes: the gateways that work on one database. Draining and forgetting them."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from holdfast.board.inbox import MOST_SESSIONS
from holdfast.domain.commands import ChooseNode
from holdfast.domain.errors import Conflict, Corrupt, NotFound
from holdfast.domain.events import SYSTEM, session_stream
from holdfast.domain.session import Session
from holdfast.domain.text import duration
from holdfast.gateway.openapi import Routes
from holdfast.gateway.requests import by_whom, parse_command, session_of
from holdfast.gateway.responses import accepted, json_response
from holdfast.gateway.state import Gateway, gateway_of
from holdfast.runtime.moves import why_bound
from holdfast.schemas.gateway import Statement, Why
from holdfast.schemas.nodes import NodeChanged, NodeList, NodeView
from holdfast.schemas.sessions import Accepted
from holdfast.store.rows import NodeRow
from holdfast.tasks.log import lost

routes = Routes("nodes")


@routes.get("/v1/nodes", NodeList)
async def list_nodes(request: Request) -> Response:
    """List the nodes: which live, since when, and what they work on."""
    return json_response(NodeList(await _views(gateway_of(request))))


@routes.get("/v1/nodes/{name}/why", Why)
async def why_node(request: Request) -> Response:
    """Explain how a node is, and what waits for it."""
    gateway = gateway_of(request)
    view = await _find(gateway, request)
    at = view.ended_at or view.heard_at or view.started_at
    texts = _sentences(view)
    if view.state == "ended":
        texts += [f"Session {session} waits for it." for session in await _waiting_for(gateway, view.name)]
    sentences = [Statement(text=text, stream=SYSTEM, version=0, at=at) for text in texts if text]
    return json_response(Why(f"node {view.name}", sentences))


@routes.post("/v1/nodes/{name}/drain", NodeChanged)
async def drain_node(request: Request) -> Response:
    """Have a node hand over its sessions and duties, and shut down when its commands have ended."""
    gateway = gateway_of(request)
    view = await _find(gateway, request)
    if view.state == "ended":
        raise Conflict(f"Node {view.name} does not run.", hint="`holdfast nodes forget` frees what waits for it.")
    await gateway.store.drain_node(view.name)
    return json_response(NodeChanged(view.name), status=202)


@routes.post("/v1/nodes/{name}", NodeChanged, method="DELETE")
async def forget_node(request: Request) -> Response:
    """Forget a node that will not come back: its commands are lost, and what waits for it is free."""
    gateway = gateway_of(request)
    view = await _find(gateway, request)
    if view.state != "ended":
        raise Conflict(f"Node {view.name} is alive.", hint="Drain it, or stop its gateway first.")
    reason = f"node {view.name}, where it ran, was forgotten by {by_whom(request)}"
    for task in view.tasks:
        await gateway.tasks.task_log.finish(lost(task, reason))
    await gateway.store.forget_node(view.name)
    await gateway.runner.sweep()
    return json_response(NodeChanged(view.name, view.tasks), status=202)


async def node_statements(gateway: Gateway, session: Session) -> list[Statement]:
    """Return which node works on a session that is not at rest, or why it waits for one."""
    if session.activity == "idle":
        return []
    holder = await gateway.nodes.holder(session)
    placement = await gateway.nodes.of_session(session, holder)
    waits = placement.why_waits(await gateway.nodes.all())
    lives = holder is not None and holder.ended_at is None
    if holder is not None and lives and (session.turn is not None or not waits):
        text, at = f"Node {holder.name} works on it.", holder.started_at
        return [] if holder.name == gateway.store.node else [Statement(text=text, stream=SYSTEM, version=0, at=at)]
    if holder is None or lives or holder.name == gateway.store.node:
        at = session.queue[0].received.at if session.queue else gateway.clock.now()
        found = Statement(text=waits, stream=session_stream(session.id), version=session.version, at=at)
        return [found] if waits else []
    if not waits and (bound := await why_bound(session, holder, node=gateway.store.node)):
        waits = f"This node cannot take it over: {bound}."
    follows = f". {waits}" if waits else "; another node takes it over."
    text = f"Node {holder.name}, which worked on it, has ended: {holder.ended_reason}{follows}"
    return [Statement(text=text, stream=SYSTEM, version=0, at=holder.ended_at or 0)]


@routes.command("/v1/sessions/{id}/node", ChooseNode)
async def choose_node(request: Request) -> Response:
    """Let a session run on another node. Refused while one works on it, or if only one has its directory or agent."""
    gateway, row = gateway_of(request), await session_of(request)
    command, caller = await parse_command(request, ChooseNode, subject=row.id)
    if await gateway.store.find_command(caller.key) is None:
        await _check_move(gateway, await gateway.sessions.get(row.id), command.node)
    return accepted(Accepted, await gateway.sessions.execute(row.id, command, caller))


async def _check_move(gateway: Gateway, session: Session, node: str) -> None:
    await gateway.nodes.check(node)
    holder, nodes = await gateway.nodes.holder(session), await gateway.nodes.all()
    placement = await gateway.nodes.of_session(session, holder, node=node)
    if not any(placement.fits(known) for known in nodes):
        if placement.bound_to:
            hint = "A session can be moved if its directory is under `shared` in [cluster] (docs/cluster.md)."
            raise Conflict(f"It stays on node {placement.bound_to}: {placement.bound_because}.", hint=hint)
        raise Conflict(placement.why_waits(nodes).replace("It waits for", "It would wait for"))
    at_work = session.activity != "idle" and holder is not None and holder.ended_at is None
    if at_work and holder is not None and not any(placement.fits(one) for one in nodes if one.name == holder.name):
        hint = f"`holdfast stop {session.id}` stops its turn; then it can be moved."
        raise Conflict(f"Node {holder.name} works on it.", hint=hint)


async def _views(gateway: Gateway) -> list[NodeView]:
    store = gateway.store
    newest: dict[str, NodeRow] = {}
    for row in await store.nodes():
        newest.setdefault(row.name, row)
    labels = {node.name: sorted(node.labels) for node in await gateway.nodes.all()}
    work = await store.work_of_nodes()
    running = [row for row in await store.running_tasks() if row.kind == "process"]
    return [
        NodeView(
            name=name,
            state="ended" if row.ended_at is not None else "draining" if row.draining else "alive",
            here=name == store.node,
            labels=labels.get(name, []),
            version=row.version,
            started_at=row.started_at,
            heard_at=row.heard_at,
            silent_ms=row.silent_ms,
            ended_at=row.ended_at,
            ended_reason=row.ended_reason,
            sessions=[one.stream.removeprefix("session/") for one in work if one.node == name and one.is_session],
            duties=[one.stream.removeprefix("duty/") for one in work if one.node == name and not one.is_session],
            tasks=[task.id for task in running if task.node == name],
        )
        for name, row in sorted(newest.items())
    ]


async def _find(gateway: Gateway, request: Request) -> NodeView:
    name = request.path_params["name"]
    found = next((view for view in await _views(gateway) if view.name == name), None)
    if found is None:
        raise NotFound(f"There is no node {name}.", hint="`holdfast nodes` lists them.")
    return found


def _sentences(view: NodeView) -> list[str]:
    commands = f"{len(view.tasks)} commands" if len(view.tasks) != 1 else "1 command"
    if view.state == "ended":
        left = f" {commands} ran there; how they ended is known when it is back." if view.tasks else ""
        return [f"It has ended: {view.ended_reason}.{left}"]
    heard = f"; it gave a sign of life {duration(view.silent_ms)} ago" if view.heard_at else ""
    found = [f"It is {view.state} with version {view.version}{heard}."]
    if view.state == "draining":
        found.append("It takes nothing new, and shuts down when nothing is left.")
    if view.sessions:
        found.append(f"It works on {', '.join(view.sessions)}.")
    if view.tasks:
        found.append(f"Commands that run there: {', '.join(view.tasks)}.")
    if view.duties:
        found.append(f"For all nodes it does: {', '.join(view.duties)}.")
    return found


async def _waiting_for(gateway: Gateway, name: str) -> list[str]:
    """Return the sessions with something to do that no other node can work on."""
    nodes, found = await gateway.nodes.all(), []
    for row in (await gateway.store.unclaimed_sessions(node=""))[:MOST_SESSIONS]:
        try:
            placement = await gateway.nodes.waiting(await gateway.sessions.get(row.id))
        except Corrupt:  # it cannot be read, and waits for no node
            continue
        if placement.why_waits(nodes) and any(placement.fits(node) for node in nodes if node.name == name):
            found.append(row.id)
    return found
