"""Models by name: made when they are first needed, and kept with their connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

from holdfast.domain.errors import Rejected
from holdfast.domain.events.problem import Problem, ProblemCode
from holdfast.models.demo import DemoModel
from holdfast.models.detect import detect
from holdfast.models.model import Model, ModelAnswer, ModelDelta, ModelError, ModelRequest
from holdfast.models.provider import Provider, ProviderModel, warm_up
from holdfast.profiles import Detected, Profiles
from holdfast.settings import DEMO, ProviderSettings
from holdfast.timings import USUAL, RuntimeTimings

SHOWN = 5
"""How many models of a provider a message about an unknown one names."""
CHANGE_CONFIG = "Change config.toml, then send a message to continue."
SET_THE_KEY = "Set it in this terminal, run `holdfast restart`, then send a message to continue."


class UnavailableModel:
    """Replaces a model that cannot be asked: each call fails and says why."""

    def __init__(self, name: str, code: ProblemCode, message: str, *, hint: str = CHANGE_CONFIG) -> None:
        self.name = name
        self._problem = Problem(code=code, message=message, hint=hint)

    async def window(self) -> int | None:
        """Nobody knows."""
        return None

    async def stream(self, _: ModelRequest, /) -> AsyncGenerator[ModelDelta | ModelAnswer, None]:
        """Say what is missing."""
        yield self._refuse()

    def _refuse(self) -> ModelDelta:
        raise ModelError(self._problem)


class ModelRegistry:
    """The models of the providers that the settings have."""

    def __init__(self, profiles: Profiles, timings: RuntimeTimings = USUAL.runtime) -> None:
        self._profiles = profiles
        self._demo = DemoModel(hang_seconds=timings.demo_hang)
        self._models: dict[tuple[str, ProviderSettings, str], ProviderModel] = {}

    async def detect(self) -> Sequence[Detected]:
        """Look again at what this machine offers."""
        self._profiles.use_detected(await detect(self._profiles.settings))
        return self._profiles.detected

    def check(self, wanted: str) -> None:
        """Refuse a name that is not a model here; the message says which names are."""
        name, _, model = wanted.partition(":")
        known = self._profiles.settings.providers
        if wanted != DEMO and (name not in known or not model.strip()):
            found = [f"{one.provider}:{model}" for one in self._profiles.detected for model in one.models[:SHOWN]]
            raise Rejected(
                f"{wanted!r} is not a model: write `demo` or PROVIDER:MODEL, with a provider of: "
                f"{', '.join(sorted(known))}.",
                hint=f"Found here: {', '.join(found)}." if found else "None was found here; see `holdfast models`.",
            )

    def get(self, wanted: str) -> Model:
        """The model of this name. One that is missing answers every call with what is missing."""
        if wanted == DEMO:
            return self._demo
        try:
            self.check(wanted)
        except Rejected as error:
            return UnavailableModel(wanted, "unknown_model", error.message)
        name, _, model = wanted.partition(":")
        settings = self._profiles.settings.providers[name]
        key = settings.key()
        if key is None:
            message = f"The key for {name} is not set: the gateway's environment has no {settings.api_key_env}."
            return UnavailableModel(wanted, "no_key", message, hint=SET_THE_KEY)
        if known := self._models.get((name, settings, model)):
            return known
        provider = Provider(
            name=name,
            wire=settings.wire,
            base_url=settings.base_url or None,
            api_key=key,
            key_source=settings.api_key_env,
            quiet_seconds=settings.quiet_minutes * 60.0,
        )
        return self._models.setdefault((name, settings, model), ProviderModel(provider, model))

    async def warm_up(self) -> None:
        """Import the model library if a profile needs it: that takes seconds, so it is done beside the work."""
        settings = self._profiles.settings
        names = {profile.model.partition(":")[0] for profile in settings.profiles.values()}
        if wires := {settings.providers[name].wire for name in names - {DEMO}}:
            await asyncio.to_thread(warm_up, wires)
        for profile in settings.profiles.values():
            await self.get(profile.model).window()

    async def close(self) -> None:
        """Let go of all connections."""
        for model in self._models.values():
            await model.close()
