"""The doctor: checks a home without changing it, and rebuilds the projections on request.

Checks work while a gateway is running (read-only, through the database). A rebuild needs the home for itself.
"""

from __future__ import annotations

import json
import os
import shutil
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from holdfast.config import ConfigError, Home, environment
from holdfast.domain.errors import Rejected
from holdfast.domain.text import size
from holdfast.read_settings import load_settings
from holdfast.settings import DEMO, Settings, of_this_machine
from holdfast.shared_settings import not_in_force, read_shared
from holdfast.store.contract import Finding
from holdfast.store.home_lock import HomeLock, owner
from holdfast.store.settings_store import SettingsRow
from holdfast.store.sqlite.check import check_database, check_engine
from holdfast.store.sqlite.migrate import rebuild_database
from holdfast.tasks.sandbox import SandboxBuilder

LOW_SPACE = 500_000_000
ANSWER_SECONDS = 3.0
SAID_OF_CONFIG = "settings"
"""A part of the gateway whose problem is that of the settings, which are looked at here, too."""


def examine(home: Home) -> list[Finding]:
    """Run all checks; a finding that is not ok says what to do."""
    try:
        settings, of_config = _in_force(home, load_settings(home.config))
        of_settings = [of_config, _models(settings)]
    except ConfigError as error:
        settings, hint = None, "Correct the line; `holdfast config check` checks again."
        of_settings = [Finding("config", False, str(error), hint)]
    findings = [_home(home), *of_settings, _owner(home), _space(home)]
    if settings is None or not settings.store.is_server:
        return [*findings, check_engine(), _sandbox(home, settings), *check_database(home.database)]
    return [*findings, _sandbox(home, settings), *_server(settings)]


def _server(settings: Settings) -> list[Finding]:
    if not settings.store.address:
        hint = "Set it where the gateway is started, and here."
        return [
            Finding(
                "database",
                False,
                f"{settings.store.url_env} is not set here, but [store] takes the database address from it",
                hint,
            )
        ]
    from holdfast.store.postgres.check import check_server

    return check_server(settings.store.address)


def rebuild(home: Home) -> str:
    """Rebuild every projection from the events. `Conflict` if a gateway runs."""
    home.prepare()
    lock = HomeLock(home.lock)
    try:
        count, stopped = _rebuild(home)
    finally:
        lock.release()
    made = f"The projections were rebuilt from {count} events."
    if stopped:
        made += f" An event cannot be read, so it and later events were skipped in: {', '.join(sorted(stopped))}."
    return made


def _rebuild(home: Home) -> tuple[int, set[str]]:
    store = load_settings(home.config).store
    if not store.is_server:
        return rebuild_database(home.database)
    if not store.address:
        raise Rejected(
            f"{store.url_env} is not set here, but [store] takes the database address from it.",
            hint="Set it to the address of the database.",
        )
    from holdfast.store.postgres.check import rebuild_at

    return rebuild_at(store.address)


def _home(home: Home) -> Finding:
    try:
        home.refuse()
    except ConfigError as error:
        return Finding("home", False, str(error))
    except OSError as error:
        return Finding("home", False, f"{home.path} cannot be read: {error.strerror}")
    if opened := home.readable_by_others():
        listed = ", ".join(map(str, opened))
        close = f"`chmod go= {' '.join(map(str, opened))}`"
        return Finding("home", False, f"others can read {listed}", f"The next start fixes this; to fix it now: {close}")
    if problem := _not_writable(home.path):
        return Finding("home", False, problem, "Use another: --home DIR or HOLDFAST_HOME.")
    return Finding("home", True, str(home.path) if home.path.exists() else f"{home.path} (will be created)")


def _not_writable(path: Path) -> str:
    """Return why the home cannot be written or created; empty when it can."""
    exists = path.exists()
    nearest = path
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    if not nearest.is_dir():
        return f"{path} cannot be created: {nearest} is not a directory" if not exists else f"{path} is not a directory"
    if os.statvfs(nearest).f_flag & os.ST_RDONLY or not os.access(nearest, os.W_OK | os.X_OK):
        return f"{path} is read-only" if exists else f"{path} cannot be created: {nearest} is not writable"
    return ""


def _models(settings: Settings) -> Finding:
    """Check that each profile has what its model needs, in the environment of the caller."""
    missing = []
    for name, profile in sorted(settings.profiles.items()):
        provider = settings.providers.get(profile.model.partition(":")[0])
        if provider is not None and provider.api_key_env and provider.key() is None:
            missing.append(f"{name} uses {profile.model}, and {provider.api_key_env} is not set")
    if missing:
        hint = "Set the key in your environment, then `holdfast restart`; `holdfast models` shows what is available."
        return Finding("models", False, "; ".join(missing), hint)
    keys = [provider.api_key_env for provider in settings.providers.values() if provider.api_key_env]
    present = [name for name in dict.fromkeys(keys) if environment(name) is not None]
    if present or any(profile.model != DEMO for profile in settings.profiles.values()):
        return Finding("models", True, f"keys set: {', '.join(present) or 'none'}")
    detail = "no key is set and no profile names a model, so a local model server or the demo agent is used"
    return Finding("models", True, detail, f"Set one of {', '.join(dict.fromkeys(keys))}; see `holdfast models`.")


def _in_force(home: Home, file: Settings) -> tuple[Settings, Finding]:
    """Return the settings in force, and whether all is well with them: several nodes share them in the database."""
    where = str(home.config) if home.config.exists() else "defaults (there is no config.toml)"
    versions = _versions(file)
    if not versions:
        return file, Finding("config", True, f"{where}; profiles: {', '.join(sorted(file.profiles))}")
    newest, *earlier = versions
    try:
        shared, unknown = read_shared(newest.text)
    except ConfigError as error:
        detail = f"version {newest.version} of the settings of all nodes cannot be used by this Holdfast: {error}"
        return file, Finding("config", False, detail, "Upgrade Holdfast, or correct them: `holdfast config shared`.")
    settings = of_this_machine(shared, file)
    ignored = not_in_force(home, newest.text, [row.text for row in earlier])
    detail = f"{where}; of all nodes: version {newest.version}; profiles: {', '.join(sorted(settings.profiles))}"
    return settings, Finding(
        "config", not (unknown or ignored), " ".join(filter(None, [f"{detail}.", unknown, ignored]))
    )


def _versions(file: Settings) -> list[SettingsRow]:
    if not (file.store.is_server and file.store.address):
        return []
    from holdfast.store.postgres.check import settings_at

    return settings_at(file.store.address)


def _owner(home: Home) -> Finding:
    pid = owner(home.lock)
    if pid is not None:
        problems = _problems(home)
        hint = "It retries automatically; `holdfast logs` has the details." if problems else ""
        return Finding("gateway", not problems, "; ".join([f"running (pid {pid})", *problems]), hint)
    left = " (the last one was killed: it left its address file)" if home.address.exists() else ""
    return Finding("gateway", True, f"not running{left}")


def _problems(home: Home) -> list[str]:
    """Return the problems that a running gateway reports; none before it has written its address."""
    try:
        host, _, port = str(json.loads(home.address.read_bytes())["url"]).removeprefix("http://").rpartition(":")
    except (OSError, ValueError, KeyError, TypeError):
        return []
    connection = HTTPConnection(host, int(port), timeout=ANSWER_SECONDS)
    try:
        connection.request("GET", "/healthz")
        found = json.loads(connection.getresponse().read())
        parts = {part["name"]: part["problem"] for part in found["parts"] if part["problem"]}
        general = [str(found["problem"])] if found["problem"] and not parts else []
        return [*general, *(f"{name}: {problem}" for name, problem in parts.items() if name != SAID_OF_CONFIG)]
    except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
        return [f"it does not respond: {error}"]
    finally:
        connection.close()


def _space(home: Home) -> Finding:
    path = home.path if home.path.exists() else home.path.parent
    free = shutil.disk_usage(path).free
    detail = f"{size(free)} free"
    return Finding("disk", free > LOW_SPACE, detail, "" if free > LOW_SPACE else "Free some space on this disk.")


def _sandbox(home: Home, settings: Settings | None) -> Finding:
    """Check that commands of agents can run in a sandbox, where a profile demands one."""
    profiles = {} if settings is None else settings.profiles
    problem = SandboxBuilder(home.path).problem
    off = sorted(name for name, profile in profiles.items() if profile.sandbox == "off")
    without = f"; turned off for: {', '.join(off)}" if off else ""
    if not problem:
        return Finding("sandbox", True, f"commands of agents run in bubblewrap{without}")
    demand = sorted(name for name, one in profiles.items() if one.sandbox == "on" or not one.network)
    detail, hint = f"none: {problem}", "Install bubblewrap to keep commands of agents in their workspace."
    if demand:
        detail += f"; commands of these profiles are refused: {', '.join(demand)}"
    return Finding("sandbox", not demand, detail, hint)
