"""How much a model can see at once, and what follows from it for the limit of a context."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.domain.context_limits import LimitSource
from holdfast.domain.events.session import TurnFinished
from holdfast.domain.session import Session
from holdfast.models.model import Model
from holdfast.models.provider import Provider, ProviderModel
from holdfast.models.registry import ModelRegistry
from holdfast.profiles import Profiles
from holdfast.runtime.agents import Agents
from tests.runtime.rig import Rig, ScriptModel, only

SESSION = Session("0", profile="demo", cwd="/")


@pytest.mark.parametrize(
    ("wire", "base_url", "model", "window"),
    [
        ("anthropic", None, "claude-sonnet-4-5", 200_000),
        ("openai", None, "gpt-5", 400_000),
        ("openai", None, "a-model-that-nobody-knows", None),
        ("openai", "http://127.0.0.1:11434/v1", "gpt-5", None),
    ],
)
async def test_the_window_is_known_or_it_is_not(
    wire: str, base_url: str | None, model: str, window: int | None
) -> None:
    provider = Provider("it", wire, base_url, "key")  # type: ignore[arg-type]
    assert await ProviderModel(provider, model).window() == window


class WindowModel(ScriptModel):
    def __init__(self, window: int | None) -> None:
        super().__init__()
        self._window = window

    async def window(self) -> int | None:
        return self._window


class OneModel(ModelRegistry):
    """The same model under every name."""

    def __init__(self, profiles: Profiles, model: Model) -> None:
        super().__init__(profiles)
        self._model = model

    def get(self, wanted: str) -> Model:
        return self._model


def agents(home: Path, *, window: int | None, config: str = "") -> Agents:
    path = home / "config.toml"
    path.write_text(config)
    profiles = Profiles(path)
    return Agents(profiles, OneModel(profiles, WindowModel(window)), tools=())


@pytest.mark.parametrize(
    ("config", "window", "threshold", "limit", "source"),
    [
        ("", None, 100_000, 125_000, "default"),
        ("", 1_000_000, 100_000, 968_000, "window"),
        ("", 200_000, 100_000, 168_000, "window"),
        ("", 32_000, 20_480, 25_600, "window"),
        ("threshold = 500_000", 200_000, 134_400, 168_000, "window"),
        ("threshold = 500_000", None, 500_000, 625_000, "default"),
        ("threshold = 8_000", 200_000, 8_000, 168_000, "window"),
        ("limit = 300_000", 200_000, 100_000, 300_000, "config"),
        ("limit = 300_000", None, 100_000, 300_000, "config"),
        ("threshold = 0", 200_000, 0, 0, "config"),
        ("threshold = 0\nlimit = 90_000", 200_000, 0, 90_000, "config"),
    ],
)
async def test_limit_is_what_config_says_then_the_known_window_then_the_default(
    tmp_path: Path, config: str, window: int | None, threshold: int, limit: int, source: LimitSource
) -> None:
    found = agents(tmp_path, window=window, config=f"[compaction]\n{config}\n" if config else "")
    rules = (await found.of(SESSION)).limits.compaction
    assert (rules.threshold, rules.limit, rules.limit_source) == (threshold, limit, source)


@pytest.mark.parametrize(("window", "outcome"), [(1_000_000, "done"), (None, "failed")])
async def test_message_larger_than_the_default_limit_is_sent_where_the_window_holds_it(
    tmp_path: Path, window: int | None, outcome: str
) -> None:
    limits = (await agents(tmp_path, window=window).of(SESSION)).limits
    rig = await Rig(tmp_path, limits=limits).start()
    await rig.create("say yes\n" + "word " * 120_000)
    [finished] = only(await rig.rest(), TurnFinished)
    await rig.close()
    assert isinstance(finished, TurnFinished)
    assert finished.outcome == outcome
    if finished.problem is not None:
        assert finished.problem.code == "context_too_long"
        assert "125,000 fit by default, since the window of the model is not known" in finished.problem.message


async def test_agent_is_made_once_while_the_settings_stay_as_they_are(tmp_path: Path) -> None:
    found = agents(tmp_path, window=200_000)
    first = await found.of(SESSION)
    assert await found.of(SESSION) is first
    (tmp_path / "config.toml").write_text("[compaction]\nlimit = 150_000\n")
    assert (await found.of(SESSION)).limits.compaction.limit == 150_000
