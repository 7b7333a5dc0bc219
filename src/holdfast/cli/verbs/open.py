"""`holdfast open`: the dashboard in a browser, signed in by a one-time code."""

from __future__ import annotations

import sys

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.gateway import quote
from holdfast.cli.start import ensure
from holdfast.cli.values import SESSION


@click.command("open")
@click.argument("session", type=SESSION, required=False)
@click.option("--print", "only_print", is_flag=True, help="Only print the address; another device can open it too.")
@shared_options
@pass_cli
def command(cli: Cli, session: str | None, only_print: bool) -> None:
    """Open the dashboard, or one SESSION in it; the address signs one browser in, once, within 10 minutes.

    Starts a gateway in the background when none runs.
    """
    base = ensure(cli.gateway).url
    path = "/"
    if session is not None:
        path = f"/s/{cli.gateway.get(f'/v1/sessions/{quote(session)}')['session']['id']}"
    code = cli.gateway.command("POST", "/v1/codes")
    url = f"{base}{path}#code={code['code']}"
    if cli.json:
        cli.print_json({"url": url, "expires_at": code["expires_at"]})
        return
    print(url)
    if only_print:
        return
    sys.stdout.flush()
    if not _shown(url):
        print("no browser was opened here; the address works once, within 10 minutes", file=sys.stderr)


def _shown(url: str) -> bool:
    """Open it where there is a screen; a browser for the terminal would only be in the way."""
    from holdfast.config import environment

    if sys.platform != "darwin" and not (environment("DISPLAY") or environment("WAYLAND_DISPLAY")):
        return False
    import webbrowser

    return webbrowser.open(url)
