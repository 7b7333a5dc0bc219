"""The doctor: looks at a home without changing it, and rebuilds the projections on request.

It reads beside a running gateway (through SQLite, read-only). A rebuild needs the home for itself.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from holdfast.config import ConfigError, Home, environment
from holdfast.domain.errors import Corrupt, HoldfastError
from holdfast.domain.location import location
from holdfast.domain.readable import decode_readable
from holdfast.read_settings import load_settings
from holdfast.settings import DEMO
from holdfast.store.connection import connect_reader, connect_writer, prepare
from holdfast.store.home_lock import HomeLock, owner
from holdfast.store.queries import migrations, queries
from holdfast.store.rebuild import rebuild_projections
from holdfast.store.stored_lines import checked
from holdfast.tasks.sandbox import SandboxBuilder

PAGE = 2_000
LOW_SPACE = 500_000_000
ANSWER_SECONDS = 3.0
WAL_RESET_FIXED = (3, 51, 3)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str
    hint: str = ""


def examine(home: Home) -> list[Finding]:
    """Look at everything; each finding says what to do if it is not well."""
    findings = [_home(home), _settings(home), *_models(home), _owner(home), _space(home), _sqlite(), _sandbox(home)]
    if home.database.exists():
        findings += _database(home)
    else:
        findings.append(Finding("database", True, "there is none yet"))
    return findings


def rebuild(home: Home) -> str:
    """Make every projection anew from the events. Conflict if a gateway runs."""
    home.prepare()
    lock = HomeLock(home.lock)
    try:
        prepare(home.database)
        with closing(connect_writer(home.database)) as db:
            count, stopped = rebuild_projections(db)
        made = f"The projections were made anew from {count} events."
        if stopped:
            made += f" What follows an event that cannot be read was left out of: {', '.join(sorted(stopped))}."
        return made
    finally:
        lock.release()


def _home(home: Home) -> Finding:
    try:
        home.refuse()
    except ConfigError as error:
        return Finding("home", False, str(error))
    except OSError as error:
        return Finding("home", False, f"{home.path} cannot be looked at: {error.strerror}")
    if opened := home.readable_by_others():
        listed = ", ".join(map(str, opened))
        close = f"`chmod go= {' '.join(map(str, opened))}`"
        return Finding("home", False, f"others can read {listed}", f"The next start closes it; or do it now: {close}")
    if problem := _not_writable(home.path):
        return Finding("home", False, problem, "Use another: --home DIR or HOLDFAST_HOME.")
    return Finding("home", True, str(home.path) if home.path.exists() else f"{home.path} (it will be made)")


def _not_writable(path: Path) -> str:
    """Why nothing can be written there, or why it cannot be made; empty when it can."""
    exists = path.exists()
    nearest = path
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    if not nearest.is_dir():
        return f"{path} cannot be made: {nearest} is no directory" if not exists else f"{path} is no directory"
    if os.statvfs(nearest).f_flag & os.ST_RDONLY or not os.access(nearest, os.W_OK | os.X_OK):
        return f"{path} is read-only" if exists else f"{path} cannot be made: {nearest} cannot be written to"
    return ""


def _models(home: Home) -> list[Finding]:
    """Whether each profile has what its model needs, by the environment of whoever asks."""
    try:
        settings = load_settings(home.config)
    except ConfigError:
        return []  # that has a finding of its own
    missing = []
    for name, profile in sorted(settings.profiles.items()):
        provider = settings.providers.get(profile.model.partition(":")[0])
        if provider is not None and provider.api_key_env and provider.key() is None:
            missing.append(f"{name} uses {profile.model}, and {provider.api_key_env} is not set")
    if missing:
        hint = (
            "Set it in the environment of the gateway, then `holdfast restart`; `holdfast models` shows what there is."
        )
        return [Finding("models", False, "; ".join(missing), hint)]
    keys = [provider.api_key_env for provider in settings.providers.values() if provider.api_key_env]
    present = [name for name in dict.fromkeys(keys) if environment(name) is not None]
    if present or any(profile.model != DEMO for profile in settings.profiles.values()):
        return [Finding("models", True, f"keys that are set: {', '.join(present) or 'none'}")]
    detail = "no key is set and no profile names a model: a local model server or the demo agent answers"
    return [
        Finding("models", True, detail, f"Set one of {', '.join(dict.fromkeys(keys))}; `holdfast models` says more.")
    ]


def _settings(home: Home) -> Finding:
    try:
        settings = load_settings(home.config)
    except ConfigError as error:
        return Finding("config", False, str(error), "Correct the line; `holdfast config check` checks again.")
    where = str(home.config) if home.config.exists() else "defaults (there is no config.toml)"
    return Finding("config", True, f"{where}; profiles: {', '.join(sorted(settings.profiles))}")


def _owner(home: Home) -> Finding:
    pid = owner(home.lock)
    if pid is not None:
        problems = _problems(home)
        hint = "It tries again by itself; `holdfast logs` has the details." if problems else ""
        return Finding("gateway", not problems, "; ".join([f"runs with pid {pid}", *problems]), hint)
    left = " (it left its address behind: it was killed)" if home.address.exists() else ""
    return Finding("gateway", True, f"none runs{left}")


def _problems(home: Home) -> list[str]:
    """What a running gateway says of itself; nothing when it has not written its address yet."""
    try:
        host, _, port = str(json.loads(home.address.read_bytes())["url"]).removeprefix("http://").rpartition(":")
    except (OSError, ValueError, KeyError, TypeError):
        return []
    connection = HTTPConnection(host, int(port), timeout=ANSWER_SECONDS)
    try:
        connection.request("GET", "/healthz")
        found = json.loads(connection.getresponse().read())
        parts = [f"{part['name']}: {part['problem']}" for part in found["parts"] if part["problem"]]
        return [*filter(None, [str(found["problem"]) if not parts else ""]), *parts]
    except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
        return [f"it does not answer: {error}"]
    finally:
        connection.close()


def _space(home: Home) -> Finding:
    path = home.path if home.path.exists() else home.path.parent
    free = shutil.disk_usage(path).free
    detail = f"{free / 1e9:.1f} GB free"
    return Finding("disk", free > LOW_SPACE, detail, "" if free > LOW_SPACE else "Free some space on this disk.")


def _sandbox(home: Home) -> Finding:
    """Whether commands of agents run in a sandbox; where a profile demands one, it must be there."""
    try:
        profiles = load_settings(home.config).profiles
    except ConfigError:
        profiles = {}
    problem = SandboxBuilder(home.path).problem
    off = sorted(name for name, profile in profiles.items() if profile.sandbox == "off")
    without = f"; turned off for: {', '.join(off)}" if off else ""
    if not problem:
        return Finding("sandbox", True, f"commands of agents run in one (bubblewrap){without}")
    demand = sorted(name for name, one in profiles.items() if one.sandbox == "on" or not one.network)
    detail, hint = f"none: {problem}", "Install bubblewrap to keep commands of agents in their workspace."
    if demand:
        detail += f"; commands of these profiles are refused: {', '.join(demand)}"
    return Finding("sandbox", not demand, detail, hint)


def _sqlite() -> Finding:
    """One connection writes and checkpoints, so the WAL-reset bug of older versions cannot be met."""
    version = sqlite3.sqlite_version
    fixed = sqlite3.sqlite_version_info >= WAL_RESET_FIXED
    note = "" if fixed else " (has the WAL-reset bug; harmless here, since one connection alone writes)"
    return Finding("sqlite", True, version + note)


def _database(home: Home) -> list[Finding]:
    try:
        with closing(connect_reader(home.database)) as db:
            version = int(db.execute("PRAGMA user_version").fetchone()[0])
            known = migrations()[-1][0]
            if version == 0 and not db.execute("SELECT 1 FROM sqlite_master").fetchone():
                return [Finding("database", True, "empty: the next start of a gateway prepares it")]
            if version > known:
                detail = f"schema {version} is newer than this Holdfast knows ({known})"
                return [Finding("database", False, detail, "Upgrade Holdfast.")]
            return [_integrity(db), _checksums(db), _projections(db)]
    except (sqlite3.Error, HoldfastError) as error:
        return [
            Finding("database", False, str(error), "Move it aside and restore a backup; do not repair it in place.")
        ]


def _integrity(db: sqlite3.Connection) -> Finding:
    said = [str(row[0]) for row in db.execute("PRAGMA quick_check(5)")]
    ok = said == ["ok"]
    return Finding("database", ok, "well formed" if ok else "; ".join(said), "" if ok else "Restore a backup.")


def _checksums(db: sqlite3.Connection) -> Finding:
    count = after = 0
    unreadable: list[Corrupt] = []
    try:
        while lines := checked(db, "read_all", {"after": after, "limit": PAGE}).lines:
            count += len(lines)
            unreadable += decode_readable(lines)[1]
            last = location(lines[-1])
            after = after + len(lines) if last is None else last.seq
    except Corrupt as error:
        return Finding("events", False, error.message, "The stream stops there; restore a backup.")
    if unreadable:
        detail = f"{len(unreadable)} of {count} cannot be read, and their streams stop there. {unreadable[0].message}"
        return Finding("events", False, detail, unreadable[0].hint)
    return Finding("events", True, f"{count} events, every checksum right")


def _projections(db: sqlite3.Connection) -> Finding:
    """The counts that people see against the events that they come from."""
    found = [id for (id,) in db.execute(queries()["miscounted_sessions"])]
    if found:
        detail = f"{len(found)} sessions differ from their events, the first is {found[0]}"
        return Finding("projections", False, detail, "Stop the gateway, then: holdfast doctor --rebuild")
    return Finding("projections", True, "agree with the events")
