"""`holdfast config show`: the values in force, each with where it comes from."""

from __future__ import annotations

import json
from typing import Any

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.screen import dim

CONFIG, DEFAULT, BUILT_IN, DETECTED = "config.toml", "default", "built in", "detected"
LIMIT = f"{DEFAULT}: a quarter more than the threshold, if the model's window is not known"
UNSET = (("default_profile",), ("compaction", "limit"))
"""Here an empty value means that another one is taken."""
Values = dict[str, Any]
Keys = tuple[str, ...]


@click.command("show")
@shared_options
@pass_cli
def command(cli: Cli) -> None:
    """Show the settings in force, as config.toml would have them, each with where it comes from."""
    path = cli.home.config
    values, origins = _in_force(cli)
    home_from = "--home" if cli.chosen_home else "HOLDFAST_HOME" if _home_of_environment() else DEFAULT
    if cli.json:
        flat = {".".join(keys): origin for keys, origin in origins.items()}
        home = {"home": str(cli.home.path), "home_from": home_from}
        cli.print_json({"path": str(path), "exists": path.exists(), "settings": values, "origins": flat} | home)
        return
    click.echo(dim(f"# home: {cli.home.path} ({home_from})"))
    click.echo(dim(f"# {path}" + ("" if path.exists() else " does not exist: these are the defaults")))
    _print_table(values, (), origins)


def _home_of_environment() -> bool:
    from holdfast.config import environment

    return environment("HOLDFAST_HOME") is not None


def _in_force(cli: Cli) -> tuple[Values, dict[Keys, str]]:
    """Every value, with what takes the place of those that are not set; and where each comes from, by its keys."""
    import tomllib
    from dataclasses import asdict

    from holdfast.cli.settings import read
    from holdfast.settings import BUILT_IN_PROVIDERS, DEMO

    settings = read(cli.home)
    path = cli.home.config
    written = tomllib.loads(path.read_text("utf-8")) if path.exists() else {}
    values: Values = asdict(settings)
    origins: dict[Keys, str] = {}
    for keys in _leaves(values, ()):
        built_in = (keys[0] == "providers" and keys[1] in BUILT_IN_PROVIDERS) or keys[:2] == ("profiles", DEMO)
        origins[keys] = CONFIG if _is_in(written, keys) else BUILT_IN if built_in else DEFAULT
    for keys, (value, origin) in _instead(cli, values).items():
        table = values
        for key in keys[:-1]:
            table = table[key]
        if table[keys[-1]] is None or (keys in UNSET and not table[keys[-1]]):
            table[keys[-1]] = value
            origins[keys] = origin
    return values, origins


def _instead(cli: Cli, values: Values) -> dict[Keys, tuple[object, str]]:
    """What holds where nothing is set, and who says so."""
    from holdfast.app import DEFAULT_PORT
    from holdfast.cli.agents import known_profiles
    from holdfast.domain.reset import ResetRules

    usual = ResetRules()
    resets: Values = {
        "mode": usual.mode,
        "idle_minutes": usual.idle_ms // 60_000,
        "at_hour": usual.at_hour,
        "timezone": usual.timezone,
        "max_postpone": f"{usual.max_postpone_ms // 3_600_000}h",
        "process_max_age": f"{usual.process_max_age_ms // 3_600_000}h",
        "on_live_process": usual.on_live_process,
        "hand_over_note": usual.hand_over_note,
        "notify": usual.notify,
    }
    threshold = values["compaction"]["threshold"]
    default = next((one for one in known_profiles(cli)["profiles"] if one["default"]), None)
    found: dict[Keys, tuple[object, str]] = {
        ("gateway", "port"): (DEFAULT_PORT, f"{DEFAULT}, or any free port if it is taken"),
        ("compaction", "limit"): (threshold + threshold // 4, LIMIT),
    }
    if default is not None:
        found[("default_profile",)] = (default["name"], DETECTED if default["origin"] == "detected" else DEFAULT)
    for name, value in resets.items():
        found["session_reset", name] = (value, DEFAULT)
    for profile in values["profiles"]:
        found["profiles", profile, "resume"] = (values["board"]["resume"], "[board]")
        for name, value in resets.items():
            general = values["session_reset"][name]
            inherited = value if general is None else general
            found["profiles", profile, "session_reset", name] = (inherited, "[session_reset]")
    return found


def _leaves(values: Values, above: Keys) -> list[Keys]:
    found: list[Keys] = []
    for name, value in values.items():
        found += _leaves(value, (*above, name)) if isinstance(value, dict) and value else [(*above, name)]
    return found


def _is_in(written: object, keys: Keys) -> bool:
    for key in keys:
        if not isinstance(written, dict) or key not in written:
            return False
        written = written[key]
    return True


def _print_table(values: Values, keys: Keys, origins: dict[Keys, str]) -> None:
    """The plain values first, then the tables, as TOML wants it. What a profile inherits is not repeated."""
    tables = {name: value for name, value in values.items() if isinstance(value, dict)}
    plain = {
        name: value for name, value in values.items() if name not in tables and not origins[*keys, name].startswith("[")
    }
    if keys and plain:
        click.echo(f"\n[{'.'.join(map(_key, keys))}]")
    for name, value in plain.items():
        click.echo(f"{_key(name)} = {json.dumps(value, ensure_ascii=False)}{dim(f'  # {origins[*keys, name]}')}")
    for name, table in tables.items():
        _print_table(table, (*keys, name), origins)


def _key(name: str) -> str:
    """Bare where TOML allows it, else quoted."""
    return name if name.isascii() and name.replace("_", "").replace("-", "").isalnum() else json.dumps(name)
