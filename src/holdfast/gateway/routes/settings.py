"""The settings that can be changed from a client: in force at once.

They are written into `config.toml`, or where several nodes work on one database, into that.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from holdfast.config import ConfigError
from holdfast.domain.errors import Conflict, NotFound, Rejected
from holdfast.domain.reset import ResetRules
from holdfast.edit_settings import (
    SettingsChange,
    add_profile,
    change_profile,
    change_values,
    remove_profile,
    set_default,
)
from holdfast.gateway.openapi import Routes
from holdfast.gateway.requests import parse_body, person_name
from holdfast.gateway.responses import json_response
from holdfast.gateway.routes.admin import profile_list
from holdfast.gateway.state import Gateway, gateway_of
from holdfast.schemas.gateway import (
    EditProfile,
    EditSettings,
    NewProfile,
    ProfileList,
    ReplaceSharedSettings,
    ResetView,
    RetentionChoice,
    SettingsView,
    SharedSettingsView,
)
from holdfast.store.settings_store import SettingsRow

routes = Routes("settings")


@routes.get("/v1/settings", SettingsView)
async def show_settings(request: Request) -> Response:
    """Show the settings that can be changed here."""
    return json_response(_shown(gateway_of(request)))


@routes.post("/v1/settings", SettingsView, body=EditSettings, method="PATCH")
async def edit_settings(request: Request) -> Response:
    """SettingsChange settings. Everything else in it stays as it is, comments too."""
    gateway = gateway_of(request)
    given = await parse_body(request, EditSettings)
    try:
        await _write(gateway, given, by=person_name(request))
    except ConfigError as error:
        raise Rejected(str(error), hint="`holdfast config check` checks the file.") from error
    return json_response(_shown(gateway), status=202)


@routes.get("/v1/settings/shared", SharedSettingsView)
async def show_shared_settings(request: Request) -> Response:
    """Show the settings of all nodes as TOML; version 0 where they are in `config.toml`."""
    shared = gateway_of(request).shared_settings
    return json_response(SharedSettingsView() if shared is None else _shared(await shared.refresh()))


@routes.post("/v1/settings/shared", SharedSettingsView, body=ReplaceSharedSettings, method="PUT")
async def replace_shared_settings(request: Request) -> Response:
    """Replace the settings of all nodes. Refused if somebody changed them since the given version."""
    gateway = gateway_of(request)
    given = await parse_body(request, ReplaceSharedSettings)
    if gateway.shared_settings is None:
        raise Conflict("The settings of this gateway are in config.toml.", hint="SettingsChange that file.")
    row = await gateway.shared_settings.replace(given.text, version=given.version, by=person_name(request))
    return json_response(_shared(row), status=202)


def _shared(row: SettingsRow) -> SharedSettingsView:
    return msgspec.convert(row, SharedSettingsView, from_attributes=True)


@routes.post("/v1/profiles", ProfileList, body=NewProfile)
async def create_profile(request: Request) -> Response:
    """Add a profile to the settings; it can be used at once."""
    given = await parse_body(request, NewProfile)
    values = _checked(given)
    name = values.pop("name")
    return await _profile_changed(request, add_profile(name, values))


@routes.post("/v1/profiles/{name}", ProfileList, body=EditProfile, method="PATCH")
async def edit_profile(request: Request) -> Response:
    """SettingsChange a profile in the settings. Its sessions continue with it as it is then."""
    gateway, name = gateway_of(request), request.path_params["name"]
    values = _checked(await parse_body(request, EditProfile))
    profile = gateway.profiles.settings.profiles.get(name)
    if profile is None:
        raise _no_profile(name)
    now = {"model": profile.model, "tools": dict(profile.tools)}
    return await _profile_changed(request, change_profile(name, values, otherwise=now))


@routes.post("/v1/profiles/{name}", ProfileList, method="DELETE")
async def delete_profile(request: Request) -> Response:
    """Remove a profile from the settings. Its sessions stay, and need another agent to continue."""
    gateway, name = gateway_of(request), request.path_params["name"]
    if name not in gateway.profiles.names:
        raise _no_profile(name)
    try:
        await gateway.profiles.edit(remove_profile(name), by=person_name(request))
    except ConfigError as error:
        raise Conflict(str(error)) from error
    return json_response(profile_list(gateway.profiles, gateway.sandbox), status=202)


def _no_profile(name: str) -> NotFound:
    return NotFound(f"There is no profile {name!r}.")


def _checked(given: NewProfile | EditProfile) -> dict[str, Any]:
    """Return what is given, if it can be used here."""
    values = {name: value for name, value in msgspec.structs.asdict(given).items() if value is not None}
    if (cwd := values.get("cwd")) and not (Path(cwd).is_absolute() and Path(cwd).is_dir()):
        raise Rejected(f"There is no directory {cwd!r} on the machine of the gateway; cwd is an absolute path.")
    return values


async def _profile_changed(request: Request, change: SettingsChange) -> Response:
    gateway = gateway_of(request)
    try:
        await gateway.profiles.edit(change, by=person_name(request))
    except ConfigError as error:
        raise Rejected(str(error)) from error
    return json_response(profile_list(gateway.profiles, gateway.sandbox), status=202)


async def _write(gateway: Gateway, given: EditSettings, *, by: str) -> None:
    tables: dict[str, dict[str, Any]] = {}
    if given.session_reset is not None:
        tables["session_reset"] = msgspec.structs.asdict(given.session_reset)
    if given.retention is not None:
        tables["retention"] = msgspec.structs.asdict(given.retention)
    if given.default_profile is not None and given.default_profile not in gateway.profiles.names:
        raise Rejected(f"There is no profile {given.default_profile[:40]!r}.")
    if tables:
        await gateway.profiles.edit(change_values(tables), by=by)
    if given.default_profile is not None:
        await gateway.profiles.edit(set_default(given.default_profile), by=by)


def _shown(gateway: Gateway) -> SettingsView:
    settings, usual = gateway.profiles.settings, ResetRules()
    reset = settings.session_reset
    return SettingsView(
        path=str(gateway.profiles.path),
        default_profile=settings.default_profile or "",
        session_reset=ResetView(
            mode=reset.mode or usual.mode,
            idle_minutes=reset.idle_minutes or usual.idle_ms // 60_000,
            at_hour=usual.at_hour if reset.at_hour is None else reset.at_hour,
        ),
        retention=msgspec.convert(settings.retention, RetentionChoice, from_attributes=True),
    )
