"""`holdfast open`: the dashboard in a browser, signed in by a one-time code."""

from __future__ import annotations

import sys

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.errors import USAGE, CliError
from holdfast.cli.values import SESSION
from holdfast.client.http import Address, quote


@click.command("open")
@click.argument("session", type=SESSION, required=False)
@click.option("--print", "only_print", is_flag=True, help="Only print the address.")
@click.option("--phone", is_flag=True, help="Print an address for another device: at the first of the public_urls.")
@shared_options
@pass_cli
def command(cli: Cli, session: str | None, only_print: bool, phone: bool) -> None:
    """Open the dashboard, or one SESSION in it; the address signs one browser in, once, within 10 minutes.

    Starts a gateway in the background when none runs. Without a screen, or where CI is set, it only prints.
    """
    address = cli.start_gateway()
    base = _public(address) if phone else address.url
    path = "/"
    if session is not None:
        path = f"/s/{cli.client.get(f'/v1/sessions/{quote(session)}')['session']['id']}"
    code = cli.client.command("POST", "/v1/codes")
    url = f"{base}{path}#code={code['code']}"
    if cli.json:
        cli.print_json({"url": url, "expires_at": code["expires_at"]})
        return
    print(url)
    if only_print or phone:
        return
    sys.stdout.flush()
    if not _shown(cli, url):
        print("no browser was opened here; the address works once, within 10 minutes", file=sys.stderr)


def _public(address: Address) -> str:
    if not address.public_urls:
        raise CliError(
            "The gateway has no address that another device could open.",
            hint='set `public_urls = ["https://…"]` in [gateway] of config.toml and restart it; see docs/deploy.md.',
            code=USAGE,
        )
    return address.public_urls[0]


def _shown(cli: Cli, url: str) -> bool:
    """Open it where there is a screen; a browser for the terminal would only be in the way."""
    from holdfast.config import has_screen, open_in_browser

    return has_screen() and open_in_browser(cli.home.run, url)
