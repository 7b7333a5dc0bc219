"""An agent in a session that asks or only reads tries to change something all the same, by every way that it has."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.domain.command import SessionMode
from holdfast.domain.commands import AnswerWait, ChooseMode, CreateSession, SendMessage, UnblockCard
from holdfast.domain.errors import Rejected
from holdfast.domain.events import session_stream
from holdfast.domain.events.actor import AgentActor
from holdfast.domain.events.parts import Rights, RightsLayer
from holdfast.domain.events.session import InputReceived, SessionCreated, WaitOpened
from holdfast.domain.session import Session
from holdfast.runtime.mcp.connection import McpToolInfo
from holdfast.runtime.mcp.servers import McpClient, McpServer, McpTool
from holdfast.runtime.permissions import check_permission
from holdfast.runtime.tools.context import ToolContext
from holdfast.runtime.tools.tool import ToolOutput
from holdfast.store.contract import Append, Write
from tests.actors import person
from tests.attacks.test_rights_of_created_work import CARD, at_rest, called, other_cards, results, run_card, sub_agent
from tests.board.rig import BoardRig
from tests.domain.book import Book
from tests.memory import MEMORY

CONFIG = """
[profiles.builder]
model = "demo"
[profiles.builder.tools]
"*" = "allow"

[profiles.outside]
driver = "command"
argv = ["touch", "{canary}"]
unrestricted = true
[profiles.outside.tools]
"*" = "allow"
"""
SESSION = "0123456789abcdef"


@pytest.fixture
async def rig() -> AsyncIterator[BoardRig]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        config = CONFIG.format(canary=Path(directory) / "work" / "canary")
        (Path(directory) / "work").mkdir()
        board = BoardRig(Path(directory) / "home", config=config)
        yield await board.start()
        await board.close()


def canary(rig: BoardRig) -> Path:
    return rig.home.parent / "work" / "canary"


async def start(rig: BoardRig, text: str, mode: SessionMode) -> Session:
    cwd = str(rig.home.parent / "work")
    command = CreateSession(text=text, mode=mode)
    await rig.sessions.create(command, session=SESSION, profile="builder", cwd=cwd, caller=rig.caller())
    return await at_rest(rig, SESSION)


async def allow(rig: BoardRig, session: str, answer: str = "allow") -> Session:
    state = await rig.until_session(session, lambda one: one.turn is not None and one.turn.wait is not None)
    assert state.turn is not None and state.turn.wait is not None
    await rig.say(session, AnswerWait(wait=state.turn.wait.wait, answer=answer))
    before = state.turn.wait.wait

    def went_on(one: Session) -> bool:
        wait = one.turn.wait if one.turn is not None else None
        return one.activity == "idle" or (wait is not None and wait.wait != before)

    return await rig.until_session(session, went_on)


async def test_a_session_that_only_reads_runs_and_writes_nothing_whatever_its_profile_allows(rig: BoardRig) -> None:
    task = called("terminal", command=f"touch {canary(rig)}", background=True)
    lines = [f"sh touch {canary(rig)}", "write canary x", task, called("delegate", prompt=f"sh touch {canary(rig)}")]
    await start(rig, "\n".join([*lines, "read canary"]), "read")
    found = await results(rig, SESSION)
    assert ["read only" in one for one in found] == [True, True, True, True, False]
    assert (canary(rig).exists(), await rig.store.running_tasks()) == (False, [])


async def test_a_mode_that_is_chosen_later_holds_for_the_next_call(rig: BoardRig) -> None:
    await start(rig, "say hello", "profile")
    await rig.say(SESSION, ChooseMode(mode="read"))
    await rig.say(SESSION, SendMessage(text=f"sh touch {canary(rig)}"))
    await rig.until_session(SESSION, lambda one: one.turns == 2 and one.activity == "idle")
    assert "read only" in (await results(rig, SESSION))[-1]
    await rig.say(SESSION, ChooseMode(mode="profile"))
    await rig.say(SESSION, SendMessage(text=f"sh touch {canary(rig)}"))
    await rig.until_session(SESSION, lambda one: one.turns == 3 and one.activity == "idle")
    assert canary(rig).exists(), "a person took the limit away again"


async def test_an_approval_that_waited_is_worth_nothing_once_the_session_only_reads(rig: BoardRig) -> None:
    await start(rig, f"sh touch {canary(rig)}", "ask")
    await rig.say(SESSION, ChooseMode(mode="read"))
    await allow(rig, SESSION)
    assert "read only" in (await results(rig, SESSION))[-1]
    assert not canary(rig).exists()


async def test_every_change_is_asked_for_whatever_was_allowed_before(rig: BoardRig) -> None:
    state = await start(rig, "write a.txt x\nwrite a.txt x\nread a.txt", "ask")
    for answer in ("session", "call"):  # what these grant is worth nothing in this mode
        assert state.turn is not None and state.turn.wait is not None, "somebody is asked"
        assert state.turn.wait.choices == ["allow", "deny"]
        state = await allow(rig, SESSION, answer)
    assert state.activity == "idle", "reading needs no approval"


async def test_only_a_person_chooses_the_mode(rig: BoardRig) -> None:
    await start(rig, "say hello", "read")
    caller = rig.caller(by=AgentActor(session=SESSION, call="1.1.0"))
    with pytest.raises(Rejected, match="Only a person"):
        await rig.sessions.execute(SESSION, ChooseMode(mode="profile"), caller)


async def test_an_agent_in_the_background_asks_like_its_creator(rig: BoardRig) -> None:
    await start(rig, called("delegate", prompt=f"sh touch {canary(rig)}"), "ask")
    await allow(rig, SESSION)
    child = await rig.sessions.get(await sub_agent(rig, SESSION))
    assert child.mode_in_force == "ask" and child.turn is not None and child.turn.wait is not None
    await rig.say(child.id, ChooseMode(mode="read"))
    await rig.say(child.id, ChooseMode(mode="profile"))
    assert (await rig.sessions.get(child.id)).mode_in_force == "ask", "what was inherited cannot be taken away"
    assert not canary(rig).exists()


async def test_an_external_agent_cannot_be_created_where_nothing_would_hold_it_to_the_mode(rig: BoardRig) -> None:
    await start(rig, called("delegate", prompt="hello", profile="outside"), "ask")
    await allow(rig, SESSION)
    assert "external agent" in (await results(rig, SESSION))[0]
    assert not canary(rig).exists()


async def test_an_external_agent_does_not_start_in_a_mode_that_it_inherited(rig: BoardRig) -> None:
    layer = RightsLayer(profile="builder", rules={"*": "allow"}, paths=["/"], mode="read")
    born = SessionCreated(
        session=SESSION,
        profile="outside",
        cwd=str(rig.home.parent / "work"),
        title="x",
        by=person("ann"),
        driver="command",
        rights=Rights(layers=[layer], ancestors=["0" * 16]),
    )
    first = InputReceived(input="first", text="hello", mode="queue", by=person("ann"))
    write = Write(session_stream(SESSION), (born, first), expect=0)
    await rig.store.append(Append((write,), rig.clock.now(), command=rig.caller().key))
    await rig.until_session(SESSION, lambda one: one.last_turn is not None)
    problem = (await rig.sessions.get(SESSION)).last_turn
    assert problem is not None and problem.outcome == "failed" and "only read" in problem.reason
    assert not canary(rig).exists()


async def test_a_card_that_a_worker_creates_only_reads_like_its_creator(rig: BoardRig) -> None:
    worker = await run_card(rig, "block ready?", "builder")
    await rig.until(CARD, lambda card: card.status == "blocked")
    await rig.say(worker.id, ChooseMode(mode="read"))
    body = f"sh touch {canary(rig)}\ncomplete done"
    await rig.tell(CARD, UnblockCard(text=called("kanban_create", title="x", body=body) + "\ncomplete done"))
    await rig.until(CARD, lambda card: card.status == "done")
    [other] = await other_cards(rig)
    card = await rig.until(other, lambda card: card.status == "done")
    assert "read only" in (await results(rig, card.runs[0].started.session))[0]
    assert not canary(rig).exists()


async def test_a_worker_that_only_reads_cannot_give_orders_to_one_that_may_do_more(rig: BoardRig) -> None:
    other = "c0ffee02"
    await rig.create(other, "block which one?", profile="builder")
    await rig.until(other, lambda card: card.status == "blocked")
    worker = await run_card(rig, "block ready?", "builder")
    await rig.until(CARD, lambda card: card.status == "blocked")
    await rig.say(worker.id, ChooseMode(mode="read"))
    order = called("kanban_unblock", card=other, text=f"sh touch {canary(rig)}\ncomplete done")
    await rig.tell(CARD, UnblockCard(text=f"{order}\ncomplete tried"))
    await rig.until(CARD, lambda card: card.status == "done")
    assert any("read only" in one for one in await results(rig, worker.id))
    assert (await rig.card(other)).status == "blocked"


@pytest.mark.parametrize("mode", ["ask", "read"])
def test_a_tool_of_an_mcp_server_counts_as_a_change_whatever_the_server_says(tmp_path: Path, mode: SessionMode) -> None:
    book = Book("hello").begin().answer("", "files__put")
    book.tell(ChooseMode(mode=mode))
    assert book.session.turn is not None
    [opened] = book.session.turn.open_calls.values()
    tool = McpTool("files__put", McpClient(McpServer(name="files"), 1), McpToolInfo("put", "Only reads.", {}, "pure"))
    found = check_permission(
        book.session, opened.call, tools={tool.name: tool}, rules={"*": "allow"}, context=ToolContext(tmp_path)
    )
    assert isinstance(found, WaitOpened if mode == "ask" else ToolOutput)
