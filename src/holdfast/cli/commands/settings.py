"""`holdfast config`, `profiles` and `models`: the settings of a home, its agents, and the models of this machine."""

from __future__ import annotations

import json
from typing import Any, TextIO

import click

from holdfast.cli.context import Cli
from holdfast.cli.errors import NOT_FOUND, USAGE, CliError, exit_code
from holdfast.cli.groups import NounGroup, verb
from holdfast.cli.hints import program, with_home
from holdfast.cli.screen import Column, clean, details_short, dim, table
from holdfast.cli.settings_access import (
    CORRECT,
    edit_settings,
    find_shared,
    print_shared,
    read_settings,
    replace_shared,
    settings_in_force,
    without_version,
)
from holdfast.cli.values import TEXT
from holdfast.client.errors import GatewayNotRunning
from holdfast.client.http import Json
from holdfast.client.lenient import convert
from holdfast.config import ConfigError
from holdfast.domain.errors import HoldfastError
from holdfast.external_agents import installed_agents
from holdfast.schemas.gateway import ModelList, ProfileList, ProfileView

CONFIG, DEFAULT, BUILT_IN, DETECTED = "config.toml", "default", "built in", "detected"
ALL_NODES = "all nodes"
LIMIT = f"{DEFAULT}: a quarter more than the threshold, if the model's window is not known"
UNSET = (("default_profile",), ("compaction", "limit"))
"""Here an empty value means that another one is taken."""
NOT_SHARED = "This home shares no settings with other nodes: its log is in SQLite."
Values = dict[str, Any]
Keys = tuple[str, ...]
PROFILES = (Column("NAME"), Column("MODEL", flexible=True), Column("FROM"), Column(""))
MODELS = (Column("PROVIDER"), Column("BECAUSE"), Column("MODELS", flexible=True))
NO_MODELS = """No model was found, so the demo agent answers: a script, no AI.
To use a real model, do one of these:
- set OPENAI_API_KEY, ANTHROPIC_API_KEY or OPENROUTER_API_KEY in this terminal,
  then run `holdfast restart`
- start Ollama, LM Studio, llama-server or vLLM on its usual port"""


@click.group(cls=NounGroup, default="show")
def config() -> None:
    """Show or check the settings. Without a verb: show."""


@config.verb("Verbs")
def show(cli: Cli) -> None:
    """Show the settings in force, as config.toml would have them, each with where it comes from."""
    path = cli.home.config
    values, origins = _in_force(cli)
    home_from = "--home" if cli.chosen_home else "HOLDFAST_HOME" if _home_of_environment() else DEFAULT
    if cli.json:
        flat = {".".join(keys): origin for keys, origin in origins.items()}
        home = {"home": str(cli.home.path), "home_from": home_from}
        cli.print_json({"path": str(path), "exists": path.exists(), "settings": values, "origins": flat} | home)
        return
    cli.echo(dim(f"# home: {cli.home.path} ({home_from})"))
    cli.echo(dim(f"# {path}" + ("" if path.exists() else " does not exist: these are the defaults")))
    _print_table(cli, values, (), origins)


@config.verb("Verbs")
def path(cli: Cli) -> None:
    """Print where the settings are, or would be."""
    path = cli.home.config
    cli.result(str(path), path=str(path), exists=path.exists())


@config.verb("Verbs")
def check(cli: Cli) -> int:
    """Check the settings without starting anything; an error names the line.

    Warnings name rules that allow more than they seem to, or that never apply; the settings are valid all the same.
    """
    path = cli.home.config
    try:
        settings = read_settings(cli.home)
    except HoldfastError as error:
        if not cli.json:
            raise
        cli.print_json({"path": str(path), "ok": False, "problem": error.message, "warnings": []})
        return exit_code(error)
    from holdfast.rules.warnings import rule_warnings

    warnings = rule_warnings(settings)
    valid = f"{path} is valid" if path.exists() else f"{path} does not exist, so the defaults are in force"
    cli.result(valid, path=str(path), ok=True, problem="", warnings=warnings)
    for warning in [] if cli.json else warnings:
        cli.note(f"warning: {clean(warning)}")
    return 0


@config.verb("Several nodes")
def shared(cli: Cli) -> None:
    """Print the settings that all nodes on one PostgreSQL database share, as TOML."""
    found = find_shared(cli, start=True)
    if found is None:
        raise CliError(NOT_SHARED, hint=f"Its settings are in {cli.home.config}.", code=USAGE)
    print_shared(cli, found)


@config.verb("Several nodes")
@click.argument("file", required=False, type=click.File("r", encoding="utf-8"), metavar="[FILE]")
@click.option("--remove", is_flag=True, help="Also remove the settings that FILE does not have.")
def push(cli: Cli, file: TextIO | None, *, remove: bool) -> None:
    """Replace the settings that all nodes share with those in FILE; by default config.toml.

    `-` reads standard input. Sections about one machine ([gateway], [store], [node], [cluster]) are left out. Every
    node uses the new settings within seconds.
    """
    from holdfast.shared_settings import removed_by, shared_part

    now = find_shared(cli, start=True)
    if now is None:
        raise CliError(NOT_SHARED, hint=f"Edit {cli.home.config}; the gateway reads it again at once.", code=USAGE)
    try:
        based_on, text = without_version(cli.home.config.read_text("utf-8") if file is None else file.read())
        wanted = shared_part(text)
    except (OSError, ValueError) as error:
        raise CliError(f"This cannot be read: {error}.", code=USAGE) from error
    if not remove and (gone := ", ".join(removed_by(now.text, wanted))):
        hint = f"`{program()} config shared` prints what is in force, to be edited; --remove removes these."
        raise CliError(f"This would remove from all nodes: {gone}. Nothing was changed.", hint=hint, code=USAGE)
    found = replace_shared(cli, wanted, version=based_on or now.version)
    cli.result(f"these are the settings of all nodes now: version {found.version}", version=found.version)


def _home_of_environment() -> bool:
    from holdfast.config import environment

    return environment("HOLDFAST_HOME") is not None


def _in_force(cli: Cli) -> tuple[Values, dict[Keys, str]]:
    """Every value, with what takes the place of those that are not set; and where each comes from, by its keys."""
    from dataclasses import asdict

    from holdfast.settings import BUILT_IN_PROVIDERS, DEMO, OF_THE_MACHINE

    settings, written, is_shared = settings_in_force(cli)
    values: Values = asdict(settings)
    origins: dict[Keys, str] = {}
    for keys in _leaves(values, ()):
        built_in = (keys[0] == "providers" and keys[1] in BUILT_IN_PROVIDERS) or keys[:2] == ("profiles", DEMO)
        where = ALL_NODES if is_shared and keys[0] not in OF_THE_MACHINE else CONFIG
        origins[keys] = where if _is_in(written, keys) else BUILT_IN if built_in else DEFAULT
    for keys, (value, origin) in _instead(cli, values).items():
        table = values
        for key in keys[:-1]:
            table = table[key]
        if table[keys[-1]] is None or (keys in UNSET and not table[keys[-1]]):
            table[keys[-1]] = value
            origins[keys] = origin
    return values, origins


def _instead(cli: Cli, values: Values) -> dict[Keys, tuple[object, str]]:
    """The defaults, and where each comes from."""
    from holdfast.app import DEFAULT_PORT
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
    known = convert(_ask(cli, "profiles", quietly=True), ProfileList).profiles
    default = next((profile for profile in known if profile.default), None)
    found: dict[Keys, tuple[object, str]] = {
        ("gateway", "port"): (DEFAULT_PORT, f"{DEFAULT}, or any free port if it is taken"),
        ("compaction", "limit"): (threshold + threshold // 4, LIMIT),
    }
    if default is not None:
        found[("default_profile",)] = (default.name, DETECTED if default.origin == "detected" else DEFAULT)
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


def _print_table(cli: Cli, values: Values, keys: Keys, origins: dict[Keys, str]) -> None:
    """The plain values first, then the tables, as TOML wants it. What a profile inherits is not repeated."""
    tables = {name: value for name, value in values.items() if isinstance(value, dict)}
    plain = {
        name: value for name, value in values.items() if name not in tables and not origins[*keys, name].startswith("[")
    }
    if keys and plain:
        cli.echo(f"\n[{'.'.join(map(_key, keys))}]")
    for name, value in plain.items():
        cli.echo(f"{_key(name)} = {json.dumps(value, ensure_ascii=False)}{dim(f'  # {origins[*keys, name]}')}")
    for name, inner in tables.items():
        _print_table(cli, inner, (*keys, name), origins)


def _key(name: str) -> str:
    """Bare where TOML allows it, else quoted."""
    return name if name.isascii() and name.replace("_", "").replace("-", "").isalnum() else json.dumps(name)


# --- profiles -------------------------------------------------------------------------------------


@click.group(cls=NounGroup, default="list")
def profiles() -> None:
    """List, show, add, change and remove profiles, and choose the default one. Without a verb: list."""


@profiles.verb("Show", "list")
def list_profiles(cli: Cli) -> None:
    """List the profiles, with where they come from."""
    problem = cli.show(_ask(cli, "profiles"), ProfileList, _profiles_table).problem
    if problem and not cli.json:
        cli.note(f"config.toml has an error, so the previous settings are still in force: {clean(problem)}")


def _worker(profile: ProfileView) -> str:
    """Return what does the work: a model, or an external agent."""
    return f"agent {profile.agent}" if profile.agent else profile.model


def _profiles_table(known: ProfileList) -> str:
    rows = [[one.name, _worker(one), one.origin, "default" if one.default else ""] for one in known.profiles]
    return table(PROFILES, rows)


@profiles.verb("Show", "show")
@click.argument("name")
def show_profile(cli: Cli, name: str) -> None:
    """Show every setting of the profile NAME."""
    cli.show(_profile(cli, name), ProfileView, _profile_details)


def _profile(cli: Cli, name: str) -> Json:
    known: dict[str, Json] = {profile["name"]: profile for profile in _ask(cli, "profiles")["profiles"]}
    if name not in known:
        raise CliError(f"There is no profile {name}.", hint=f"The profiles are: {', '.join(known)}.", code=NOT_FOUND)
    return known[name]


def _profile_details(profile: ProfileView) -> str:
    tools = ", ".join(f"{pattern} = {policy}" for pattern, policy in profile.tools.items())
    limits = [f"{profile.max_steps} steps"]
    limits += [f"{profile.max_tokens} tokens"] if profile.max_tokens else []
    limits += [f"{profile.max_minutes} minutes"] if profile.max_minutes else []
    rows = [
        ("agent", profile.agent) if profile.agent else ("model", profile.model),
        ("from", profile.origin),
        ("directory", profile.cwd or "the one in which the session is started"),
        ("tools", tools or "reading is allowed; for everything else the agent asks"),
        ("sandbox", profile.sandbox),
        ("servers", ", ".join(profile.mcp) or "none"),
        ("a turn", "at most " + ", ".join(limits)),
        ("instructions", profile.instructions or "none"),
    ]
    return details_short(rows)


@profiles.verb("Change")
@click.argument("name")
@click.option("--model", required=True, help="demo, or PROVIDER:MODEL; see `holdfast models`.")
@click.option("--instructions", type=TEXT, help="The system prompt.")
@click.option("--cwd", type=click.Path(file_okay=False, exists=True, resolve_path=True), help="Its working directory.")
def add(cli: Cli, name: str, model: str, instructions: str | None, cwd: str | None) -> None:
    """Add the profile NAME to the settings; it can be used at once."""
    from holdfast.edit_settings import add_profile

    values = {"model": model, "instructions": instructions or "", "cwd": cwd or ""}
    chosen = {key: value for key, value in values.items() if value}
    where = edit_settings(cli, add_profile(name, chosen))
    done = f"added {name} to {where}\ntry: {program()} run --profile {name} PROMPT"
    cli.result(done, profile=name, **chosen)


@profiles.verb("Change")
@click.argument("name")
@click.option("--model", help="demo, or PROVIDER:MODEL; see `holdfast models`.")
@click.option("--instructions", type=TEXT, help="The system prompt.")
@click.option("--cwd", type=click.Path(file_okay=False, exists=True, resolve_path=True), help="Its working directory.")
def edit(cli: Cli, name: str, model: str | None, instructions: str | None, cwd: str | None) -> None:
    """Change the profile NAME in the settings; what is not given stays as it is."""
    from holdfast.edit_settings import change_profile

    values = {"model": model, "instructions": instructions, "cwd": cwd}
    chosen = {key: value for key, value in values.items() if value is not None}
    if not chosen:
        raise CliError("Nothing to change was given.", hint="Give --model, --instructions or --cwd.", code=USAGE)
    now = _profile(cli, name)
    where = edit_settings(cli, change_profile(name, chosen, otherwise={"model": now["model"], "tools": now["tools"]}))
    cli.result(f"changed {name} in {where}", profile=name, **chosen)


@profiles.verb("Change")
@click.argument("name")
def remove(cli: Cli, name: str) -> None:
    """Remove the profile NAME from the settings; its sessions stay, and need another agent to continue."""
    from holdfast.edit_settings import remove_profile

    _profile(cli, name)
    where = edit_settings(cli, remove_profile(name))
    cli.result(f"removed {name} from {where}", profile=name)


@profiles.verb("Change")
@click.argument("name")
def default(cli: Cli, name: str) -> None:
    """Make NAME the profile of new sessions."""
    from holdfast.edit_settings import set_default

    edit_settings(cli, set_default(name))
    cli.result(f"new sessions use the profile {name}", default_profile=name)


# --- models ---------------------------------------------------------------------------------------


@verb()
def models(cli: Cli) -> None:
    """Show the models that can be used without configuration: by keys and by local servers."""
    cli.show(_ask(cli, "models"), ModelList, _models_table)


def _models_table(found: ModelList) -> str:
    rows = [[known.provider, known.how, ", ".join(known.models)] for known in found.detected]
    if rows:
        return table(MODELS, rows)
    ways = [f"- let {one.title} work here: `holdfast agents add {one.name}`" for one in installed_agents()]
    return with_home("\n".join([NO_MODELS, *ways]))


def _ask(cli: Cli, what: str, *, quietly: bool = False) -> Json:
    """The profiles or models that the gateway knows, or that one started in this terminal would know."""
    try:
        found: Json = cli.client.get(f"/v1/{what}")
    except GatewayNotRunning:
        found = _find_here(cli, what)
        if not quietly:
            cli.note("no gateway is running; this is what a gateway started in this terminal would use")
    return found


def _find_here(cli: Cli, what: str) -> Json:
    import asyncio

    import msgspec

    from holdfast.gateway.routes.admin import model_list, profile_list
    from holdfast.models.registry import ModelRegistry
    from holdfast.profiles import Profiles
    from holdfast.tasks.sandbox import SandboxBuilder

    async def look() -> Any:
        known = Profiles(cli.home.config)
        models = await model_list(ModelRegistry(known))
        return models if what == "models" else profile_list(known, SandboxBuilder(cli.home.path.absolute()))

    try:
        found: Json = msgspec.to_builtins(asyncio.run(look()))
    except ConfigError as error:
        raise CliError(str(error), hint=CORRECT, code=USAGE) from error
    return found
