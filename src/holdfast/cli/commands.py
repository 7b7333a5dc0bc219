"""Giving a command to a session, for the verbs that do no more than that."""

from __future__ import annotations

from holdfast.cli.context import Cli
from holdfast.cli.screen import clean
from holdfast.client.http import Json, quote


def tell(cli: Cli, method: str, session: str, action: str, body: Json | None, *, done: str) -> None:
    """Give the command; say what was done, or where it stands in the log."""
    accepted = cli.client.command(method, f"/v1/sessions/{quote(session)}{action}", body)
    if cli.json:
        cli.print_json({key: accepted[key] for key in ("session", "version", "seq")})
    else:
        print(f"{accepted['session']}: {clean(done)}")
