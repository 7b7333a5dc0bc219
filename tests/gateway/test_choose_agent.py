"""Going on with another model: what cannot be one is refused in words that help, and nothing is written."""

from __future__ import annotations

import pytest

from tests.e2e.gateway import GatewayProcess, of_kind


@pytest.mark.parametrize("model", ["nonsense", "nobody:model", "openai:", "openai: ", ":", ":gpt", "demo:x", "Demo"])
def test_what_cannot_be_a_model_is_refused(gateway: GatewayProcess, model: str) -> None:
    session = gateway.create()
    answer = gateway.request("POST", f"/v1/sessions/{session}/agent", json={"model": model})
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["message"].startswith(f"{model!r} is not a model: write `demo` or PROVIDER:MODEL")
    assert "anthropic" in error["message"] and error["hint"]
    assert gateway.session(session)["version"] == 1


@pytest.mark.parametrize("model", ["", "demo", "openai:whatever", "ollama:llama3:8b"])
def test_what_may_be_a_model_is_taken(gateway: GatewayProcess, model: str) -> None:
    session = gateway.create()
    gateway.command("POST", f"/v1/sessions/{session}/agent", {"model": model})
    (chosen,) = of_kind(gateway.events(session), "AgentChosen")
    assert chosen["model"] == model
