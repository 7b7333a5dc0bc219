"""Agents: the profiles that can be used and the models that were detected. Keys are never shown."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from holdfast.gateway.openapi import Routes
from holdfast.gateway.responses import json_response
from holdfast.gateway.state import gateway_of
from holdfast.models.registry import ModelRegistry
from holdfast.profiles import Profiles
from holdfast.schemas.gateway import DetectedModel, ModelList, ProfileList, ProfileView
from holdfast.tasks.sandbox import SandboxBuilder

routes = Routes("agents")


@routes.get("/v1/profiles", ProfileList)
async def profiles(request: Request) -> Response:
    """Every agent that a session can have."""
    gateway = gateway_of(request)
    return json_response(profile_list(gateway.profiles, gateway.sandbox))


def profile_list(profiles: Profiles, sandbox: SandboxBuilder) -> ProfileList:
    """Every agent, with where it comes from; also for the command line when no gateway is running."""
    settings = profiles.settings
    detected = {found.provider for found in profiles.detected}
    configured = profiles.configured
    shown = [
        ProfileView(
            name=name,
            model=profile.model,
            cwd=profile.cwd,
            instructions=profile.instructions,
            tools=dict(profile.tools),
            mcp=list(profile.mcp),
            max_steps=profile.max_steps,
            max_tokens=profile.max_tokens,
            max_minutes=profile.max_minutes,
            origin="config" if name in configured else "detected" if name in detected else "built in",
            default=name == profiles.default,
            sandbox=sandbox.in_words(profile.sandbox, network=profile.network),
        )
        for name, profile in sorted(settings.profiles.items())
    ]
    return ProfileList(shown, profiles.problem)


@routes.get("/v1/models", ModelList)
async def models(request: Request) -> Response:
    """What this machine offers now: keys in the environment, model servers on loopback."""
    gateway = gateway_of(request)
    return json_response(await model_list(gateway.models))


async def model_list(models: ModelRegistry) -> ModelList:
    """Look again at what this machine offers."""
    found = await models.detect()
    shown = [DetectedModel(provider=known.provider, how=known.how, models=list(known.models)) for known in found]
    return ModelList(shown)
