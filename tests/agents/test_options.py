"""The options of a permission are the agent's own, in every client; our answers mean the first of each kind."""

from __future__ import annotations

import pytest

from holdfast.domain.errors import Conflict, Rejected
from holdfast.domain.events.session import ToolCallStarted, WaitAnswered, WaitOpened
from holdfast.runtime.external.acp.options import Offered
from holdfast.runtime.external.acp.protocol import PermissionOption
from tests.agents.conftest import Make
from tests.agents.life import said
from tests.runtime.rig import ID

ALL = ["always for this directory", "always for everything", "no", "never"]


@pytest.mark.parametrize(
    ("answer", "option", "begins"),
    [
        ("always for everything", "always for everything", True),
        ("2", "always for everything", True),
        ("session", "always for this directory", True),
        ("never", "never", False),
        ("deny", "no", False),
    ],
)
async def test_every_option_can_be_chosen(make: Make, answer: str, option: str, begins: bool) -> None:
    life = make("many-options")
    await life.start("!ask a ls")
    await life.answer(answer)
    await life.rest()
    events = await life.events()
    (wait,) = [event for event in events if isinstance(event, WaitOpened)]
    assert wait.choices == ALL and wait.means == {"session": ALL[0], "deny": "no"}
    assert [event.answer for event in events if isinstance(event, WaitAnswered)] == [option]
    assert said(events)[-1] == f"{'done' if begins else 'failed'} 1-a {option}"
    assert bool([event for event in events if isinstance(event, ToolCallStarted)]) == begins


@pytest.mark.parametrize("answer", ["allow", "call", "always", "Always for everything", "5", "0"])
async def test_what_the_agent_does_not_offer_is_refused(make: Make, answer: str) -> None:
    life = make("many-options")
    await life.start("!ask a ls")
    with pytest.raises(Rejected, match="offers no") as refused:
        await life.answer(answer)
    assert "always for everything, no, never, session, deny" in refused.value.hint
    await life.answer("no")
    await life.rest()


async def test_an_option_is_chosen_once(make: Make) -> None:
    life = make()
    await life.start("!ask a ls", "!wait /dev/null")
    state = await life.rig.until_session(ID, lambda state: state.turn is not None and state.turn.wait is not None)
    assert state.turn is not None and state.turn.wait is not None
    await life.answer("yes")
    from holdfast.domain.commands import AnswerWait

    with pytest.raises(Conflict):
        await life.rig.sessions.execute(
            ID, AnswerWait(wait=state.turn.wait.wait, answer="no"), life.rig.caller("again")
        )
    await life.rest()
    assert said(await life.events())[-1] == "done 1-a yes"


async def test_a_rule_that_allows_takes_an_option_that_allows(make: Make) -> None:
    life = make("many-options", more='tools = { terminal = "allow" }')
    await life.start("!ask a ls")
    await life.rest()
    assert said(await life.events())[-1] == f"done 1-a {ALL[0]}"


def test_options_with_strange_names() -> None:
    options = [
        PermissionOption("1", "Yes", "allow_once"),
        PermissionOption("2", "Yes", "allow_once"),
        PermissionOption("3", "deny", "allow_always"),
        PermissionOption("4", "", "unheard_of"),
        PermissionOption("5", "a\x1b[31m\n b" + "x" * 500, "reject_once"),
    ]
    found = Offered.of(options, lambda text: text)
    assert found.choices[:4] == ["Yes", "Yes (2)", "deny (3)", "4"]
    assert len(found.choices[4]) == 120 and "\n" not in found.choices[4]
    assert found.means == {"allow": "Yes", "session": "deny (3)", "deny": found.choices[4]}
    assert found.ids["deny"] == "5" and set(found.refusals) == {"deny", found.choices[4]}


def test_an_agent_that_offers_no_refusal_can_be_refused() -> None:
    found = Offered.of([PermissionOption("1", "Go", "allow_once")], lambda text: text)
    assert found.choices == ["Go", "deny"] and "deny" not in found.ids
