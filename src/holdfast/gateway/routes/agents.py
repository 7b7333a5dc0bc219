"""Agents: the profiles that can be used and the models that were detected. Keys are never shown."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from holdfast.gateway.answers import answer
from holdfast.gateway.contract import returns
from holdfast.gateway.shapes import DetectedModel, ModelList, Profile, ProfileList
from holdfast.gateway.state import GatewayDep
from holdfast.runtime.profiles import Profiles

router = APIRouter(prefix="/v1", tags=["agents"])


@router.get("/profiles", **returns(ProfileList))
async def profiles(at: GatewayDep) -> Response:
    """Every agent that a session can have."""
    return answer(profile_list(at.profiles))


def profile_list(profiles: Profiles) -> ProfileList:
    """Every agent, with where it comes from; also for the command line when no gateway is running."""
    settings = profiles.settings
    detected = {found.provider for found in profiles.detected}
    configured = profiles.configured
    shown = [
        Profile(
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
            sandbox=profiles.sandbox.in_words(profile.sandbox, network=profile.network),
        )
        for name, profile in sorted(settings.profiles.items())
    ]
    return ProfileList(shown, profiles.problem)


@router.get("/models", **returns(ModelList))
async def models(at: GatewayDep) -> Response:
    """What this machine offers now: keys in the environment, model servers on loopback."""
    return answer(await model_list(at.profiles))


async def model_list(profiles: Profiles) -> ModelList:
    """Look again at what this machine offers."""
    found = await profiles.detect()
    shown = [DetectedModel(provider=known.provider, how=known.how, models=list(known.models)) for known in found]
    return ModelList(shown)
