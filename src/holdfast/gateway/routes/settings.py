"""The settings that can be changed from a client: written into `config.toml`, and in force at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from holdfast.config import ConfigError
from holdfast.domain.errors import Conflict, NotFound, Rejected
from holdfast.domain.reset import ResetRules
from holdfast.edit_settings import add_profile, change_profile, change_values, remove_profile, set_default
from holdfast.gateway.openapi import Routes
from holdfast.gateway.requests import parse_body
from holdfast.gateway.responses import json_response
from holdfast.gateway.routes.admin import profile_list
from holdfast.gateway.state import Gateway, gateway_of
from holdfast.schemas.gateway import (
    EditProfile,
    EditSettings,
    NewProfile,
    ProfileList,
    ResetView,
    RetentionChoice,
    SettingsView,
)

routes = Routes("settings")


@routes.get("/v1/settings", SettingsView)
async def show_settings(request: Request) -> Response:
    """Show the settings that can be changed here."""
    return json_response(_shown(gateway_of(request)))


@routes.post("/v1/settings", SettingsView, body=EditSettings, method="PATCH")
async def edit_settings(request: Request) -> Response:
    """Change settings in `config.toml`. Everything else in it stays as it is, comments too."""
    gateway = gateway_of(request)
    given = await parse_body(request, EditSettings)
    try:
        await asyncio.to_thread(_write, gateway, given)
    except ConfigError as error:
        raise Rejected(str(error), hint="`holdfast config check` checks the file.") from error
    return json_response(_shown(gateway), status=202)


@routes.post("/v1/profiles", ProfileList, body=NewProfile)
async def create_profile(request: Request) -> Response:
    """Add a profile to `config.toml`; it can be used at once."""
    given = await parse_body(request, NewProfile)
    values = _checked(given)
    name = values.pop("name")
    return await _profile_changed(request, lambda path: add_profile(path, name, values))


@routes.post("/v1/profiles/{name}", ProfileList, body=EditProfile, method="PATCH")
async def edit_profile(request: Request) -> Response:
    """Change a profile in `config.toml`. Its sessions continue with it as it is then."""
    gateway, name = gateway_of(request), request.path_params["name"]
    values = _checked(await parse_body(request, EditProfile))
    profile = gateway.profiles.settings.profiles.get(name)
    if profile is None:
        raise _no_profile(name)
    now = {"model": profile.model, "tools": dict(profile.tools)}
    return await _profile_changed(request, lambda path: change_profile(path, name, values, otherwise=now))


@routes.post("/v1/profiles/{name}", ProfileList, method="DELETE")
async def delete_profile(request: Request) -> Response:
    """Remove a profile from `config.toml`. Its sessions stay, and need another agent to continue."""
    gateway, name = gateway_of(request), request.path_params["name"]
    if name not in gateway.profiles.names:
        raise _no_profile(name)
    try:
        await asyncio.to_thread(remove_profile, gateway.profiles.path, name)
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


async def _profile_changed(request: Request, change: Callable[[Path], None]) -> Response:
    gateway = gateway_of(request)
    try:
        await asyncio.to_thread(change, gateway.profiles.path)
    except ConfigError as error:
        raise Rejected(str(error)) from error
    return json_response(profile_list(gateway.profiles, gateway.sandbox), status=202)


def _write(gateway: Gateway, given: EditSettings) -> None:
    path = gateway.profiles.path
    tables: dict[str, dict[str, Any]] = {}
    if given.session_reset is not None:
        tables["session_reset"] = msgspec.structs.asdict(given.session_reset)
    if given.retention is not None:
        tables["retention"] = msgspec.structs.asdict(given.retention)
    if given.default_profile is not None and given.default_profile not in gateway.profiles.names:
        raise Rejected(f"There is no profile {given.default_profile[:40]!r}.")
    if tables:
        change_values(path, tables)
    if given.default_profile is not None:
        set_default(path, given.default_profile)


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
