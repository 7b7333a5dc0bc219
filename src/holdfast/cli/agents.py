"""Profiles and models: as the gateway knows them, or, when none is running, as one started from here would."""

from __future__ import annotations

import sys
from typing import Any

from holdfast.cli.context import Cli
from holdfast.cli.errors import USAGE, CliError
from holdfast.client.errors import GatewayNotRunning
from holdfast.client.http import Json


def profiles(cli: Cli) -> Json:
    """As `GET /v1/profiles` answers."""
    return _asked(cli, "profiles")


def known_profiles(cli: Cli) -> Json:
    """The same, without a word about the gateway."""
    try:
        found: Json = cli.client.get("/v1/profiles")
    except GatewayNotRunning:
        found = _here(cli, "profiles")
    return found


def models(cli: Cli) -> Json:
    """As `GET /v1/models` answers."""
    return _asked(cli, "models")


def _asked(cli: Cli, what: str) -> Json:
    try:
        found: Json = cli.client.get(f"/v1/{what}")
    except GatewayNotRunning:
        found = _here(cli, what)
        print("no gateway is running; this is what one started from here would find", file=sys.stderr)
    return found


def _here(cli: Cli, what: str) -> Json:
    import asyncio

    import msgspec

    from holdfast.config import ConfigError
    from holdfast.gateway.routes.agents import model_list, profile_list
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
        raise CliError(str(error), hint="`holdfast config check` checks again.", code=USAGE) from error
    return found
