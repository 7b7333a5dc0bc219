"""An agent that may not do something creates another agent, or a card, that does it for it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.domain.commands import AnswerWait, CommentCard, CreateSession, SendMessage, UnblockCard
from holdfast.domain.events import session_stream
from holdfast.domain.events.session import ToolCallFinished
from holdfast.domain.events.task import TaskStarted
from holdfast.domain.session import Session
from tests.actors import person
from tests.board.rig import BoardRig
from tests.memory import MEMORY

CONFIG = """
[profiles.locked]
model = "demo"
[profiles.locked.tools]
"terminal" = "deny"
"write" = "deny"
"edit" = "deny"
"process" = "deny"
"delegate" = "deny"

[profiles.boss]
model = "demo"
[profiles.boss.tools]
"terminal" = "deny"
"write" = "deny"
"delegate" = "allow"
"kanban_create:builder" = "allow"

[profiles.builder]
model = "demo"
cwd = "{secret}"
also = ["{secret}"]
[profiles.builder.tools]
"*" = "allow"
"""
CARD = "c0ffee01"


@pytest.fixture
async def rig() -> AsyncIterator[BoardRig]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        secret = Path(directory) / "secret"
        secret.mkdir()
        (secret / "plan.txt").write_text("the plan")
        board = BoardRig(Path(directory) / "home", config=CONFIG.format(secret=secret))
        yield await board.start()
        await board.close()


def called(tool: str, **arguments: object) -> str:
    return f"call {tool} {json.dumps(arguments)}"


async def results(rig: BoardRig, session: str) -> list[str]:
    records = await rig.store.load(session_stream(session), after=0)
    return [f"{e.outcome}: {e.output}" for e in (r.event for r in records) if isinstance(e, ToolCallFinished)]


async def result_of_turn(rig: BoardRig, session: str, turn: int) -> str:
    with rig.store.subscribe(session_stream(session)) as changes:
        while (state := await rig.sessions.get(session)).turns < turn or state.activity != "idle":
            await changes.wait()
            changes.drain()
    return (await results(rig, session))[-1]


async def at_rest(rig: BoardRig, session: str) -> Session:
    """Wait until it has worked and waits for nobody but a person."""
    with rig.store.subscribe(session_stream(session)) as changes:
        while not (state := await rig.sessions.get(session)).turns or state.activity not in ("idle", "waiting"):
            await changes.wait()
            changes.drain()
    return state


async def run_card(rig: BoardRig, body: str, profile: str) -> Session:
    """A person's card; the session of its first run, when that stands still."""
    await rig.create(CARD, body, profile=profile)
    card = await rig.until(CARD, lambda card: bool(card.runs))
    return await at_rest(rig, card.runs[0].started.session)


async def other_cards(rig: BoardRig) -> list[str]:
    from holdfast.store.reads import CardFilter

    rows = await rig.store.cards.cards(CardFilter(), offset=0, limit=50)
    return [row.id for row in rows if row.id != CARD]


async def allow(rig: BoardRig, session: Session) -> Session:
    assert session.turn is not None and session.turn.wait is not None and session.turn.wait.purpose == "approval"
    await rig.say(session.id, AnswerWait(wait=session.turn.wait.wait, answer="allow"))
    return session


async def test_the_demo_agent_cannot_be_reached_from_a_tool(rig: BoardRig) -> None:
    """Its script runs any command, so a card for it would be a shell."""
    canary = rig.home / "canary"
    body = called("kanban_create", title="x", profile="demo", body=f"sh touch {canary}") + "\ncomplete tried"
    session = await run_card(rig, body, "locked")
    assert session.turn is None, "nobody is asked about what cannot be allowed"
    await rig.until(CARD, lambda card: card.status == "done")
    assert "cannot create work for the profile demo" in (await results(rig, session.id))[0]
    assert (await other_cards(rig), canary.exists()) == ([], False)


async def test_a_card_of_another_profile_is_asked_for_and_may_do_no_more_than_its_creator(rig: BoardRig) -> None:
    canary = rig.home / "canary"
    body = called("kanban_create", title="x", profile="builder", body=f"sh touch {canary}\ncomplete done")
    session = await run_card(rig, body + "\ncomplete tried", "locked")
    assert session.turn is not None and session.turn.wait is not None, "somebody is asked: another profile would act"
    assert "builder" in session.turn.wait.reason
    await allow(rig, session)
    await rig.until(CARD, lambda card: card.status == "done")
    [other] = await other_cards(rig)
    card = await rig.until(other, lambda card: card.status == "done")
    assert "does not allow" in (await results(rig, card.runs[0].started.session))[0]
    assert not canary.exists()
    assert card.runs[0].started.rights is not None
    assert [layer.profile for layer in card.runs[0].started.rights.layers] == ["locked"]


async def test_the_limits_hold_after_a_resume_and_after_a_change_of_the_settings(rig: BoardRig) -> None:
    canary = rig.home / "canary"
    script = "block which one?"
    body = called("kanban_create", title="x", profile="builder", body=script) + "\ncomplete tried"
    await run_card(rig, body, "boss")
    await rig.until(CARD, lambda card: card.status == "done")
    [other] = await other_cards(rig)
    await rig.until(other, lambda card: card.status == "blocked")
    settings = rig.home / "config.toml"
    settings.write_text(settings.read_text().replace('"terminal" = "deny"', '"terminal" = "allow"'))
    await rig.tell(other, UnblockCard(text=f"sh touch {canary}\ncomplete done"))
    card = await rig.until(other, lambda card: card.status == "done")
    assert any("does not allow terminal" in one for one in await results(rig, card.runs[-1].started.session))
    assert not canary.exists()


async def test_a_rule_that_is_taken_away_from_the_creator_is_gone_for_what_it_created(rig: BoardRig) -> None:
    script = "block which one?"
    body = called("kanban_create", title="x", profile="builder", body=script) + "\ncomplete tried"
    await run_card(rig, body, "boss")
    [other] = await other_cards(rig)
    await rig.until(other, lambda card: card.status == "blocked")
    settings = rig.home / "config.toml"
    settings.write_text(settings.read_text().replace('"delegate" = "allow"', '"delegate" = "allow"\n"read" = "deny"'))
    await rig.tell(other, UnblockCard(text="read config.toml\ncomplete done"))
    card = await rig.until(other, lambda card: card.status == "done")
    assert any("does not allow read" in one for one in await results(rig, card.runs[-1].started.session))


async def start(rig: BoardRig, text: str, profile: str, session: str = "0123456789abcdef") -> Session:
    cwd = rig.home.parent / "work"
    cwd.mkdir(exist_ok=True)
    await rig.sessions.create(
        CreateSession(text=text), session=session, profile=profile, cwd=str(cwd), caller=rig.caller()
    )
    return await at_rest(rig, session)


async def sub_agent(rig: BoardRig, session: str) -> str:
    from holdfast.domain.task import task_of_call

    child = task_of_call(session, "1.1.0")
    await at_rest(rig, child)
    return child


async def test_a_sub_agent_may_do_no_more_than_its_creator(rig: BoardRig) -> None:
    canary = rig.home / "canary"
    secret = rig.home.parent / "secret" / "plan.txt"
    prompt = f"sh touch {canary}\nwrite canary x\nread {secret}"
    session = await start(rig, called("delegate", prompt=prompt, profile="builder"), "boss")
    refused = await results(rig, await sub_agent(rig, session.id))
    assert "does not allow terminal" in refused[0]
    assert "does not allow write" in refused[1]
    assert "could not reach it either" in refused[2] or "is outside" in refused[2], "its profile's own directory"
    assert not canary.exists() and not (rig.home.parent / "work" / "canary").exists()


async def test_a_sub_agent_cannot_be_the_demo_agent(rig: BoardRig) -> None:
    session = await start(rig, called("delegate", prompt="sh id", profile="demo"), "boss")
    assert "cannot create work for the profile demo" in (await results(rig, session.id))[0]


async def test_agents_create_agents_only_so_deep(rig: BoardRig) -> None:
    prompt = "say the deepest"
    for _ in range(4):
        prompt = called("delegate", prompt=prompt)
    session = await start(rig, prompt, "boss")
    generations = [session.id]
    for _ in range(3):
        generations.append(await sub_agent(rig, generations[-1]))
    refused = (await results(rig, generations[-1]))[0]
    assert "3 levels deep" in refused and "max_depth" in refused
    assert (await rig.sessions.get(generations[-1])).rights.ancestors == generations[:-1]


async def test_agents_create_only_so_many(rig: BoardRig) -> None:
    settings = rig.home / "config.toml"
    settings.write_text("[agents]\nmax_open = 2\n" + settings.read_text())
    lines = [called("delegate", prompt="slow 60 one two three") for _ in range(3)]
    session = await start(rig, "\n".join(lines), "boss")
    found = await results(rig, session.id)
    assert [one.partition(":")[0] for one in found] == ["done", "done", "failed"]
    assert "2 agents and cards" in found[2] and "max_open" in found[2]


async def test_tasks_of_other_sessions_are_out_of_reach(rig: BoardRig) -> None:
    await start(rig, called("terminal", command="echo secret; exec sleep 60", background=True), "builder")
    [row] = await rig.store.running_tasks()
    task = row.id
    calls = [called("process", action=action, task=task) for action in ("log", "poll", "kill")]
    calls += [called("process", action="write", task=task, text="x"), called("process", action="list")]
    settings = rig.home / "config.toml"
    settings.write_text(
        settings.read_text().replace('"delegate" = "allow"', '"delegate" = "allow"\n"process" = "allow"')
    )
    session = await start(rig, "\n".join(calls), "boss", session="fedcba9876543210")
    found = await results(rig, session.id)
    assert all("belongs to another session" in one for one in found[:4])
    assert task not in found[4] and "1 more run in other sessions" in found[4]
    assert (await rig.store.task(task)).state == "running"


async def test_nobody_types_into_a_shell_that_it_may_not_start(rig: BoardRig) -> None:
    """A person attached a shell to the session; it runs without the rules and the sandbox of agents."""
    canary, session = rig.home / "canary", (await start(rig, "say hello", "builder")).id
    task = "0123456701234567"
    shell = TaskStarted(
        task=task,
        task_kind="process",
        title="sh",
        command="exec sh",
        cwd="/",
        by=person("cli"),
        session=session,
        stdin=True,
    )
    await rig.tasks.start_command(shell)
    await rig.tasks.wait_started(task)
    typed = called("process", action="write", task=task, text=f"touch {canary}\n")
    await rig.say(session, SendMessage(text=typed))
    assert "only people type into it" in await result_of_turn(rig, session, 2)
    settings = rig.home / "config.toml"
    settings.write_text(settings.read_text() + '"terminal" = "deny"\n"process:others" = "allow"\n')
    await rig.say(session, SendMessage(text=typed))
    assert "may not run commands" in await result_of_turn(rig, session, 3)
    assert not canary.exists()
    await rig.tasks.supervisor.kill(task, grace=0)


async def test_a_comment_on_a_card_of_another_profile_is_asked_for(rig: BoardRig) -> None:
    other = "c0ffee02"
    await rig.create(other, "block what now?", profile="builder")
    await rig.until(other, lambda card: card.status == "blocked")
    body = called("kanban_comment", card=other, text="sh id") + "\n" + called("kanban_unblock", card=other)
    session = await run_card(rig, body, "locked")
    assert session.turn is not None and session.turn.wait is not None
    assert "builder" in session.turn.wait.reason
    assert (await rig.card(other)).comments == ()
    await rig.tell(other, CommentCard(text="a person may, of course"))


async def test_a_stronger_card_of_the_same_profile_is_asked_for(rig: BoardRig) -> None:
    """What a locked agent created has the profile builder without its rights; a person's card has them."""
    other, canary = "c0ffee02", rig.home / "canary"
    await rig.create(other, "block what now?", profile="builder")
    await rig.until(other, lambda card: card.status == "blocked")
    script = called("kanban_unblock", card=other, text=f"sh touch {canary}\ncomplete x") + "\ncomplete tried"
    await run_card(rig, called("kanban_create", title="x", profile="builder", body=script) + "\ncomplete x", "boss")
    created = await rig.until((set(await other_cards(rig)) - {other}).pop(), lambda card: bool(card.runs))
    session = await at_rest(rig, created.runs[0].started.session)
    assert session.turn is not None and session.turn.wait is not None, "somebody is asked"
    assert "builder" in session.turn.wait.reason
    assert (await rig.card(other)).status == "blocked" and not canary.exists()
