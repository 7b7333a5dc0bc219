"""`holdfast config show`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.screen import dim


@click.command("show")
@shared_options
@pass_cli
def command(cli: Cli) -> None:
    """Show the settings in force, as they would stand in config.toml."""
    from dataclasses import asdict

    from holdfast.cli.settings import read

    path = cli.home.config
    settings = asdict(read(cli.home))
    if cli.json:
        cli.print_json({"path": str(path), "exists": path.exists(), "settings": settings})
        return
    click.echo(dim(f"# {path}" + ("" if path.exists() else " (not there: these are the defaults)")))
    _table(settings, ())


def _table(values: dict[str, object], keys: tuple[str, ...]) -> None:
    """The plain values first, then the tables, as TOML wants it."""
    import json

    tables = {name: value for name, value in values.items() if isinstance(value, dict)}
    plain = {name: value for name, value in values.items() if name not in tables}
    if keys and plain:
        click.echo(f"\n[{'.'.join(map(_key, keys))}]")
    for name, value in plain.items():
        shown = json.dumps(value, ensure_ascii=False)
        click.echo(dim(f"# {name} is not set") if value is None else f"{_key(name)} = {shown}")
    for name, table in tables.items():
        _table(table, (*keys, name))


def _key(name: str) -> str:
    """Bare where TOML allows it, else quoted."""
    import json

    return name if name.isascii() and name.replace("_", "").replace("-", "").isalnum() else json.dumps(name)
