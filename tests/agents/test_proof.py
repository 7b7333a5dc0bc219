"""A resume counts as remembered only with proof: the agent listed the session before, or repeats its messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.domain.events.external_agent import AgentAttached
from tests.agents.conftest import Make


@pytest.mark.parametrize(
    ("flags", "forgets", "how", "context"),
    [
        ((), False, "resume", "proven"),
        (("pages",), False, "resume", "proven"),
        (("no-list",), False, "resume", "unproven"),
        (("no-resume", "load"), False, "load", "proven"),
        (("opens-new",), True, "resume", "unproven"),
        (("no-list", "opens-new"), True, "resume", "unproven"),
        (("no-resume", "load", "opens-new"), True, "load", "unproven"),
        ((), True, "new", "none"),
    ],
)
async def test_a_resume_is_proven_or_the_agent_gets_an_account_of_the_conversation(
    make: Make, tmp_path: Path, flags: tuple[str, ...], forgets: bool, how: str, context: str
) -> None:
    life = make(*flags)
    await life.start("the word is BANANA", "!say one")
    await life.rest()
    await life.end_agents()
    if forgets:
        for file in (tmp_path / "memory").glob("*.jsonl"):
            file.unlink()
    await life.say("!say two")
    await life.rest(2)
    _, second = [event for event in await life.events() if isinstance(event, AgentAttached)]
    assert (second.how, second.context) == (how, context)
    assert bool(second.reason) == (context != "proven")
    told = (tmp_path / "memory" / f"{second.remote}.jsonl").read_text().splitlines()[-1]
    assert ("BANANA" in told) == (context != "proven")
