"""How much a model can see at once, as far as the price list knows it."""

from __future__ import annotations

import pytest

from holdfast.models.provider import Provider, ProviderModel


@pytest.mark.parametrize(
    ("wire", "base_url", "model", "window"),
    [
        ("anthropic", None, "claude-sonnet-4-5", 200_000),
        ("openai", None, "gpt-5", 400_000),
        ("openai", None, "a-model-that-nobody-knows", None),
        ("openai", "http://127.0.0.1:11434/v1", "gpt-5", None),
    ],
)
def test_the_window_is_known_or_it_is_not(wire: str, base_url: str | None, model: str, window: int | None) -> None:
    provider = Provider("it", wire, base_url, "key")  # type: ignore[arg-type]
    assert ProviderModel(provider, model).window == window
