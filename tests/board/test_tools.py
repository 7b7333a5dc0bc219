"""What a worker may do with the tools of the board, and which of its calls are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.domain.events import session_stream
from holdfast.domain.events.actor import RunActor
from holdfast.domain.events.card import CardCompleted, CardCreated
from holdfast.domain.events.parts import Call
from holdfast.domain.events.session import NoteReceived, WaitOpened
from holdfast.runtime.permissions import Allowed, check_permission
from holdfast.runtime.tools.context import ToolFailed
from tests.board.rig import BoardRig, ManualWorker

CARD, OTHER = "c0ffee01", "c0ffee02"
STRICT = '[profiles.strict]\nmodel = "demo"\n'


async def at_work(rig: BoardRig, card: str = CARD, **more: Any) -> ManualWorker:
    await rig.create(card, "the body", **more)
    await rig.look()
    hand = await rig.worker(card)
    await hand.begin()
    return hand


async def test_a_worker_ends_only_its_own_card(rig: BoardRig) -> None:
    one, two = await at_work(rig), await at_work(rig, OTHER)
    assert (await one.calls("kanban_complete", summary="mine", card=OTHER)).outcome == "failed", "it cannot name one"
    assert (await two.calls("kanban_complete", summary="mine")).outcome == "done"
    assert ((await rig.card(CARD)).status, (await rig.card(OTHER)).status) == ("running", "done")


async def test_a_worker_whose_run_is_over_cannot_report(rig: BoardRig) -> None:
    hand = await at_work(rig)
    await hand.calls("kanban_block", reason="a question")
    late = await hand.calls("kanban_complete", summary="after all")
    assert (late.outcome, "your run is over" in late.output) == ("failed", True)
    assert (await rig.card(CARD)).status == "blocked"


async def test_artifacts_that_do_not_exist_are_refused(rig: BoardRig) -> None:
    """Through the same door as a real call: what a permission lets through must still find the files."""
    hand = await at_work(rig)
    workspace = Path(hand.run.workspace)
    refused = await hand.calls("kanban_complete", summary="done", artifacts=["made.txt"])
    assert (refused.outcome, "There is no file made.txt" in refused.output) == ("failed", True)
    outside = await hand.calls("kanban_complete", summary="done", artifacts=["../../config.toml"])
    assert outside.outcome == "failed"
    (workspace / "made.txt").write_text("x")
    call = await hand.wants("kanban_complete", summary="done", artifacts=["made.txt"])
    state = await hand.state()
    agent = await rig.agents.of(state)
    found = check_permission(
        state, call, tools=await agent.tools(), rules=agent.rules, context=agent.tool_context(state, call.call)
    )
    assert isinstance(found, Allowed)
    assert (await found.tool.call(found.context, call.arguments)).outcome == "done"
    completed = (await rig.card(CARD)).completed
    assert completed is not None and completed.artifacts == ["made.txt"]


@pytest.mark.parametrize("tool", ["kanban_complete", "kanban_block", "kanban_heartbeat", "kanban_create"])
async def test_nobody_is_asked_whether_a_worker_may_say_how_its_card_is(rig: BoardRig, tool: str) -> None:
    (rig.home / "config.toml").write_text(STRICT)
    hand = await at_work(rig, profile="strict")
    state = await hand.state()
    agent = await rig.agents.of(state)
    arguments = {"summary": "s", "reason": "r", "note": "n", "title": "t"}
    wanted = {
        "kanban_complete": "summary",
        "kanban_block": "reason",
        "kanban_heartbeat": "note",
        "kanban_create": "title",
    }
    text = msgspec.json.encode({wanted[tool]: arguments[wanted[tool]]}).decode()
    tools, context = await agent.tools(), agent.tool_context(state, "1.1.0")
    assert isinstance(
        check_permission(state, Call("1.1.0", tool, text), tools=tools, rules=agent.rules, context=context), Allowed
    )
    shell = Call("1.1.1", "terminal", '{"command": "ls"}')
    assert isinstance(check_permission(state, shell, tools=tools, rules=agent.rules, context=context), WaitOpened)


async def test_a_call_that_is_made_again_after_a_crash_finds_what_it_did(rig: BoardRig) -> None:
    follower = await rig.new_session("f" * 16)
    hand = await at_work(rig, session=follower)
    made = Path(hand.run.workspace) / "made.txt"
    made.write_text("x")
    call = await hand.wants("kanban_complete", summary="done", artifacts=["made.txt"])
    assert (await hand.carry_out(call)).outcome == "done"
    made.unlink()
    again = await hand.carry_out(call)  # killed before its outcome was written
    assert (again.outcome, again.output) == ("done", "This was already stored; your run is over.")
    assert sum(isinstance(event, CardCompleted) for event in await rig.events(CARD)) == 1
    told = await rig.store.load(session_stream(follower), after=0)
    assert sum(isinstance(record.event, NoteReceived) for record in told) == 1


async def test_a_card_that_is_written_down_twice_by_one_call_is_one_card(rig: BoardRig) -> None:
    hand = await at_work(rig)
    call = await hand.wants("kanban_create", title="more work", parents=[CARD])
    first, again = await hand.carry_out(call), await hand.carry_out(call)
    assert first.output == again.output
    rows = await rig.store.cards.children(CARD)
    assert [(row.title, row.status, row.profile) for row in rows] == [("more work", "todo", "demo")]
    (created,) = [e for e in await rig.events(rows[0].id) if isinstance(e, CardCreated)]
    assert created.by == RunActor(card=CARD, run=1, card_number=1)
    assert (created.number, first.output) == (2, "Card HF-2 is on the board.")


async def test_show_list_comment_and_link(rig: BoardRig) -> None:
    hand = await at_work(rig)
    await rig.create(OTHER, "else", profile=None)
    assert "the body" in (await hand.calls("kanban_show")).output
    assert "HF-2 [ready]" in (await hand.calls("kanban_list", status="ready")).output
    assert (await hand.calls("kanban_comment", card=OTHER, text="hello")).outcome == "done"
    assert (await rig.card(OTHER)).comments[0].by == RunActor(card=CARD, run=1, card_number=1)
    assert (await hand.calls("kanban_link", card="hf-2", parent="HF-1")).output == "Card HF-2 waits for HF-1."
    assert (await hand.calls("kanban_link", parent=OTHER)).outcome == "failed", "that would be a circle"
    assert (await hand.calls("kanban_show", card="ffffffff")).outcome == "failed"


# --- files ------------------------------------------------------------------------------------------


async def test_file_tools_reach_the_own_workspace_under_the_home_and_nothing_else_of_it(rig: BoardRig) -> None:
    one, two = await at_work(rig), await at_work(rig, OTHER)
    (Path(two.run.workspace) / "secret.txt").write_text("x")
    state = await one.state()
    agent = await rig.agents.of(state)
    context, tools = agent.tool_context(state, "1.1.0"), await agent.tools()
    assert (await tools["write"].call(context, '{"path": "a.txt", "content": "x"}')).outcome == "done"
    assert (await tools["read"].call(context, '{"path": "a.txt"}')).outcome == "done"
    for path in ("../../config.toml", f"../{OTHER}/secret.txt", str(rig.home / "run" / "token"), ".."):
        with pytest.raises(ToolFailed):
            context.resolve(path)
    (Path(one.run.workspace) / "link").symlink_to(rig.home / "holdfast.db")
    with pytest.raises(ToolFailed):
        context.resolve("link")


@pytest.mark.parametrize("where", ["home", "above", "workspaces"])
async def test_a_directory_does_not_open_the_home_by_being_chosen(rig: BoardRig, where: str) -> None:
    places = {"home": rig.home, "above": rig.home.parent, "workspaces": rig.home / "workspaces"}
    (rig.home / "workspaces" / OTHER).mkdir(parents=True)
    (rig.home / "config.toml").write_text("")
    hand = await at_work(rig, workspace=f"dir:{places[where]}")
    state = await hand.state()
    context = (await rig.agents.of(state)).tool_context(state, "1.1.0")
    for path in (rig.home / "config.toml", rig.home / "workspaces" / OTHER / "x", rig.home / "holdfast.db"):
        with pytest.raises(ToolFailed):
            context.resolve(str(path))
