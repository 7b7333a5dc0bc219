"""`holdfast models`: what was detected on this machine."""

from __future__ import annotations

import click

from holdfast.cli.agents import models
from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.hints import with_home
from holdfast.cli.screen import Column, table
from holdfast.client.lenient import convert
from holdfast.schemas.gateway import ModelList

COLUMNS = (Column("PROVIDER"), Column("BECAUSE"), Column("MODELS", flexible=True))
NOTHING = """No model was found, so the demo agent answers. To get a real one, either
  set OPENAI_API_KEY, ANTHROPIC_API_KEY or OPENROUTER_API_KEY and `holdfast restart`, or
  start a local server (Ollama, LM Studio, llama-server, vLLM) on its usual port."""


@click.command("models")
@shared_options
@pass_cli
def command(cli: Cli) -> None:
    """Show the models that can be used without configuration: by keys and by local servers."""
    found = models(cli)
    if cli.json:
        cli.print_json(found)
    elif detected := convert(found, ModelList).detected:
        rows = [[known.provider, known.how, ", ".join(known.models)] for known in detected]
        click.echo(table(COLUMNS, rows))
    else:
        click.echo(with_home(NOTHING))
