"""`holdfast nodes`: the gateways that work on one PostgreSQL database."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli
from holdfast.cli.groups import NounGroup
from holdfast.cli.render.why import render_why
from holdfast.cli.screen import Column, ago, clean, duration, plural, table
from holdfast.cli.values import TEXT
from holdfast.client.http import quote
from holdfast.schemas.gateway import Why
from holdfast.schemas.nodes import NodeChanged, NodeList, NodeView

NODES = (
    Column("NODE"),
    Column("LABELS"),
    Column("STATE"),
    Column("VERSION"),
    Column("SINCE"),
    Column("LAST SEEN"),
    Column("WORKS ON", flexible=True),
)


@click.group(cls=NounGroup, default="list")
def nodes() -> None:
    """List the gateways that work on one PostgreSQL database, drain and forget them. Without a verb: list."""


@nodes.verb("Show", "list")
def list_nodes(cli: Cli) -> None:
    """List the nodes: their state, when each started and was last seen, and what it works on."""
    cli.show(cli.client.get("/v1/nodes"), NodeList, lambda found: table(NODES, [_cells(node) for node in found.nodes]))


def _cells(node: NodeView) -> list[str]:
    work = [*([plural(len(node.sessions), "session")] if node.sessions else []), *node.duties]
    work += [plural(len(node.tasks), "command")] if node.tasks else []
    name = f"{clean(node.name)} (this one)" if node.here else clean(node.name)
    heard = f"{duration(node.silent_ms)} ago" if node.heard_at else "-"
    shown = clean(node.ended_reason) if node.state == "ended" else ", ".join(work) or "-"
    return [
        name,
        clean(", ".join(node.labels)) or "-",
        node.state,
        node.version,
        ago(node.started_at) if node.started_at else "-",
        heard,
        shown,
    ]


@nodes.verb("Show")
@click.argument("name", type=TEXT)
def why(cli: Cli, name: str) -> None:
    """Show the state of node NAME, what it works on, and what waits for it."""
    cli.show(cli.client.get(f"/v1/nodes/{quote(name)}/why"), Why, render_why)


@nodes.verb("Change")
@click.argument("name", type=TEXT)
def drain(cli: Cli, name: str) -> None:
    """Hand over the work of node NAME to others, and shut it down when its commands have ended."""
    found = cli.client.post(NodeChanged, f"/v1/nodes/{quote(name)}/drain")
    cli.result(
        f"{clean(found.name)} hands over what it works on, and shuts down when its commands have ended", name=found.name
    )


@nodes.verb("Change")
@click.argument("name", type=TEXT)
def forget(cli: Cli, name: str) -> None:
    """Forget node NAME, which will not come back. Its commands are lost; other nodes continue the rest."""
    found = cli.client.post(NodeChanged, f"/v1/nodes/{quote(name)}", method="DELETE")
    gone = f"; lost with it: {', '.join(found.lost_tasks)}" if found.lost_tasks else ""
    cli.result(f"{clean(found.name)} is forgotten{gone}", name=found.name, lost_tasks=found.lost_tasks)
