"""Agents: the profiles that can be used and the models that were detected. Keys are never shown."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from holdfast.gateway.answers import answer
from holdfast.gateway.contract import returns
from holdfast.gateway.shapes import DetectedModel, ModelList, Profile, ProfileList
from holdfast.gateway.state import At

router = APIRouter(prefix="/v1", tags=["agents"])


@router.get("/profiles", **returns(ProfileList))
async def profiles(at: At) -> Response:
    """Every agent that a session can have."""
    settings = at.profiles.settings
    detected = {found.provider for found in at.profiles.detected}
    configured = at.profiles.configured
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
            default=name == at.profiles.default,
        )
        for name, profile in sorted(settings.profiles.items())
    ]
    return answer(ProfileList(shown, at.profiles.problem))


@router.get("/models", **returns(ModelList))
async def models(at: At) -> Response:
    """What this machine offers now: keys in the environment, model servers on loopback."""
    found = await at.profiles.detect()
    shown = [DetectedModel(provider=known.provider, how=known.how, models=list(known.models)) for known in found]
    return answer(ModelList(shown))
