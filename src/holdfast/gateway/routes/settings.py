"""The settings that can be changed from a client: written into `config.toml`, and in force at once."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from holdfast.config import ConfigError
from holdfast.domain.errors import Rejected
from holdfast.domain.reset import ResetRules
from holdfast.edit_settings import change_values, set_default
from holdfast.gateway.openapi import Routes
from holdfast.gateway.requests import parse_body
from holdfast.gateway.responses import json_response
from holdfast.gateway.state import Gateway, gateway_of
from holdfast.schemas.gateway import EditSettings, ResetView, RetentionChoice, SettingsView

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
