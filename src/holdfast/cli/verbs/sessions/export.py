"""`holdfast sessions export`: the conversation as a file."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.screen import clean, escaped_json
from holdfast.cli.values import SESSION


@click.command("export")
@click.argument("session", type=SESSION)
@click.option(
    "--format",
    "form",
    type=click.Choice(["markdown", "jsonl"]),
    default="markdown",
    show_default=True,
    help="To read, or every record as it is stored.",
)
@click.option(
    "--output", "-o", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Where to; else here."
)
@shared_options
@pass_cli
def command(cli: Cli, session: str, form: str, output: Path | None) -> None:
    """Write the conversation of SESSION to a file or to standard output."""
    id = cli.client.sessions.get(session).session.id
    content = cli.client.text(f"/v1/sessions/{id}/export", format=form)
    result: dict[str, object] = {"session": id, "format": form, "bytes": len(content)}
    if output is not None:
        output.write_bytes(content)
        result["file"] = str(output)
    else:
        result["content"] = content.decode("utf-8", "replace")
    if cli.json:
        cli.print_json(result)
    elif output is not None:
        print(f"{output}: {len(content):,} bytes of {form}")
    elif sys.stdout.isatty():
        text = content.decode("utf-8", "replace")
        print(escaped_json(text) if form == "jsonl" else clean(text), end="")
    else:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
