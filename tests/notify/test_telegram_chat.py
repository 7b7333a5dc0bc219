"""A chat of Telegram as a session: talk, stop, ask, approve, verbs, people."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.domain.commands import BlockCard
from holdfast.domain.events.actor import PersonActor
from holdfast.domain.events.session import InputReceived, WaitAnswered
from holdfast.sessions import Caller
from holdfast.store.contract import CommandKey
from tests.notify.bot_api_server import BotApiServer, buttons
from tests.notify.telegram_rig import ASKS, TelegramRig, api, config, telegram_rig

__all__ = ["api"]


@pytest.fixture
async def rig(tmp_path: Path, api: BotApiServer) -> AsyncIterator[TelegramRig]:
    async with telegram_rig(tmp_path, api) as found:
        yield found


async def events(rig: TelegramRig, kind: type) -> list[object]:
    """All events of a kind, in the order of the log."""
    records, _ = await rig.store.load_kinds(frozenset({kind.__name__}), after=0, limit=1000)
    return [record.event for record in records]


# --- talking ----------------------------------------------------------------------------------------


async def test_what_somebody_writes_is_answered_in_one_session(rig: TelegramRig, api: BotApiServer) -> None:
    api.say("say hello")
    await rig.shown("hello")
    api.say("count")
    await rig.shown("2")
    row = await rig.store.session_of_chat("telegram:42")
    assert row is not None and row.chat == "telegram:42"
    inputs = [event for event in await events(rig, InputReceived) if isinstance(event, InputReceived)]
    assert [str(event.by) for event in inputs] == ["Ada (42) on Telegram"] * 2
    assert {command["command"] for command in api.commands} >= {"new", "stop", "tasks", "inbox", "why", "bg", "card"}


async def test_new_begins_another_session_and_the_old_one_still_answers_here(
    rig: TelegramRig, api: BotApiServer
) -> None:
    api.say("slow 1 first done")
    await rig.seen(lambda: rig.runner.working or None)
    first = await rig.store.session_of_chat("telegram:42")
    api.say("/new say second done")
    await rig.shown("second done")
    await rig.shown("first done")
    second = await rig.store.session_of_chat("telegram:42")
    assert first is not None and second is not None and first.id != second.id


async def test_topics_and_chats_are_sessions_of_their_own(rig: TelegramRig, api: BotApiServer) -> None:
    api.say("say in private")
    api.say("say in the group", chat=-100, topic=0)
    api.say("/new@holdfast_bot say in the topic", chat=-100, topic=7)
    api.say("@holdfast_bot say by name", chat=-100, topic=7)
    api.say("/new@other_bot say for another bot", chat=-100)
    await rig.shown("in private")
    assert "message_thread_id" not in await rig.shown("in the group", chat=-100)
    assert (await rig.shown("in the topic", chat=-100))["message_thread_id"] == 7
    await rig.shown("by name", chat=-100)
    await rig.settled()
    assert not any("another bot" in text for text in api.texts())
    found = [await rig.store.session_of_chat(f"telegram:{chat}") for chat in ("42", "-100", "-100:7")]
    assert len({row.id for row in found if row is not None}) == 3


async def test_a_long_answer_comes_in_parts_and_in_order(rig: TelegramRig, api: BotApiServer) -> None:
    lines = "\n".join(f"say line {number:04} {'x' * 80}" for number in range(100))
    api.say(lines)
    await rig.shown("line 0099")
    shown = "\n".join(api.texts(42))
    numbers = [word for word in shown.split() if word.isdigit() and len(word) == 4]
    assert numbers == sorted(numbers) and len(numbers) == 100
    assert len(api.texts(42)) > 2


async def test_stop_stops_the_turn(rig: TelegramRig, api: BotApiServer) -> None:
    api.say("hang")
    await rig.seen(lambda: rig.runner.working or None)
    row = await rig.store.session_of_chat("telegram:42")
    assert row is not None
    await rig.until_session(row.id, lambda session: session.turn is not None)  # its worker may not have begun
    api.say("/stop")
    await rig.shown("being stopped")
    await rig.until_session(row.id, lambda session: session.turn is None)
    api.say("/stop")
    await rig.shown("No turn is running")


async def test_a_failure_is_reported(rig: TelegramRig, api: BotApiServer) -> None:
    api.say("fail")
    assert "failed" in (await rig.shown("failed"))["text"]


async def test_what_is_written_elsewhere_is_shown_with_its_answer(rig: TelegramRig, api: BotApiServer) -> None:
    from holdfast.domain.commands import SendMessage
    from holdfast.sessions import Caller
    from holdfast.store.contract import CommandKey
    from tests.actors import person

    api.say("say begin")
    await rig.shown("begin")
    row = await rig.store.session_of_chat("telegram:42")
    assert row is not None
    await rig.sessions.execute(
        row.id, SendMessage(text="say from afar"), Caller(CommandKey("k" * 9, "d"), person("web"))
    )
    await rig.shown("web: say from afar")
    await rig.seen(lambda: "from afar" in api.texts(42) or None)


# --- questions and approvals --------------------------------------------------------------------------


async def test_an_approval_is_given_by_a_button_and_the_buttons_go(rig: TelegramRig, api: BotApiServer) -> None:
    api.say("read config.toml")
    asked = await rig.shown("config.toml")
    assert [one["text"] for one in buttons(asked)] == ["Once", "This session", "Deny"]
    api.press(asked, "Once")
    await rig.toast("Answered: allow")
    number = asked["message_id"]
    await rig.seen(lambda: not buttons(api.messages[number]) or None)
    assert "answered by Ada (42) on Telegram: allow" in api.messages[number]["text"]
    assert "config.toml" in api.messages[number]["text"]
    (answered,) = await events(rig, WaitAnswered)
    assert isinstance(answered, WaitAnswered)
    assert answered.answer == "allow" and answered.call_digest


async def test_only_an_approver_can_approve_and_only_once(rig: TelegramRig, api: BotApiServer) -> None:
    api.say("read config.toml", chat=-100)
    asked = await rig.shown("config.toml", chat=-100)
    for person in (43, 99):
        api.press(asked, "Once", person=person)
    await rig.toast("You may not answer approvals. Nothing has changed.")
    await rig.toast("You may not answer this. Nothing has changed.")
    assert buttons(api.messages[asked["message_id"]])
    api.press(asked, "Deny")
    await rig.toast("Answered: deny")
    api.press(asked, "Once")
    await rig.toast("Ada (42) on Telegram answered this already: deny. Nothing has changed.")
    assert len(await events(rig, WaitAnswered)) == 1
    assert [toast.get("show_alert") for toast in api.toasts] == [True, True, False, True]


async def test_what_is_answered_elsewhere_loses_its_buttons(rig: TelegramRig, api: BotApiServer) -> None:
    from holdfast.domain.commands import AnswerWait
    from holdfast.sessions import Caller
    from holdfast.store.contract import CommandKey
    from tests.actors import person

    api.say("read config.toml")
    asked = await rig.shown("config.toml")
    (wait,) = await rig.store.waits()
    command = AnswerWait(wait=wait.id, answer="deny")
    await rig.sessions.execute(wait.session, command, Caller(CommandKey("k" * 9, "d"), person("web")))
    number = asked["message_id"]
    await rig.seen(lambda: not buttons(api.messages[number]) or None)
    assert "answered by web: deny" in api.messages[number]["text"]


async def test_a_stopped_turn_takes_its_question_with_it(rig: TelegramRig, api: BotApiServer) -> None:
    api.say("read config.toml")
    asked = await rig.shown("config.toml")
    api.say("/stop")
    await rig.seen(lambda: not buttons(api.messages[asked["message_id"]]) or None)
    api.press(asked, "Once")
    await rig.toast("its turn has ended. Nothing has changed.")


async def test_a_call_that_is_not_shown_as_a_whole_cannot_be_allowed(tmp_path: Path, api: BotApiServer) -> None:
    rules = '[profiles.demo]\nmodel = "demo"\n[profiles.demo.tools]\nterminal = "ask"\n'
    async with telegram_rig(tmp_path, api, config(api, more=rules)) as rig:
        api.say(f"sh echo {'a' * 3000} {'b' * 2900} && rm -rf precious")
        asked = await rig.shown("too long")
        assert [one["text"] for one in buttons(asked)] == ["Deny"]
        api.press_data(asked, buttons(asked)[0]["callback_data"])
        await rig.toast("Answered: deny")


async def test_a_question_is_answered_by_a_button_or_by_writing(rig: TelegramRig, api: BotApiServer) -> None:
    api.say('call question {"text": "Which colour?", "choices": ["red", "blue"]}')
    asked = await rig.shown("Which colour?")
    assert [one["text"] for one in buttons(asked)] == ["red", "blue"]
    api.press(asked, "blue", person=42)
    await rig.toast("Answered: blue")
    await rig.seen(lambda: not buttons(api.messages[asked["message_id"]]) or None)
    api.say('call question {"text": "Which name?"}')
    await rig.shown("Which name?")
    api.say("Grace")
    await rig.seen(lambda: any("answered by Ada" in text and "Which name?" in text for text in api.texts()) or None)
    answers = [event.answer for event in await events(rig, WaitAnswered) if isinstance(event, WaitAnswered)]
    assert answers == ["blue", "Grace"]


@pytest.mark.parametrize("data", ["", "x", "zzzz 0", "0123456789ab 0", "0123456789ab 99", "a b c", "../.. 1", "🦊 1"])
async def test_a_button_that_nobody_made_does_nothing(rig: TelegramRig, api: BotApiServer, data: str) -> None:
    api.say("read config.toml")
    asked = await rig.shown("config.toml")
    api.press_data(asked, data)
    await rig.seen(lambda: api.toasts or None)
    assert await events(rig, WaitAnswered) == []


# --- verbs ------------------------------------------------------------------------------------------


async def test_the_verbs_answer(rig: TelegramRig, api: BotApiServer) -> None:
    for text, expected in (
        ("/help", "/card"),
        ("/start", "Write to talk to the agent"),
        ("/nonsense", "There is no /nonsense."),
        ("/why", "Nothing was said here yet."),
        ("/tasks", "Nothing is running."),
        ("/inbox", "Nothing is waiting for a person."),
        ("/card", "There is no open card."),
        ("/card add *Fix* the <build>", "was added"),
        ("/card", "*Fix* the <build>"),
        ("/card comment 1 look here", "HF-1: commented."),
        ("/card nothing", "There is no card"),
        ("/why HF-9", "There is no card or task HF-9. /card lists the open cards"),
        ("/bg", "/bg needs a prompt"),
        ("/bg say from the background", "is running"),
        (None, "Only text is understood"),
        ("//why not", "I do not know the command: /why not"),
        ("/etc/hosts is a file", "I do not know the command: /etc/hosts"),
    ):
        before = len(api.messages)
        api.say(text)
        await rig.seen(lambda n=before, e=expected: any(e in one for one in api.texts()[n:]) or None)  # type: ignore[misc]
    await rig.shown("from the background")
    api.say("/why HF-1")
    await rig.shown("HF-1 *Fix* the <build>")
    card = await rig.store.cards.card("HF-1")
    by = PersonActor(client="cli", device="")
    await rig.gateway.cards.execute(card.id, BlockCard(reason="which one?"), Caller(CommandKey("block", ""), by))
    api.say("/inbox")
    await rig.shown(": HF-1 *Fix* the <build>: which one?")


async def test_the_inbox_shows_what_waits_elsewhere_with_its_buttons(rig: TelegramRig, api: BotApiServer) -> None:
    api.say("read config.toml", person=43)
    await rig.shown("config.toml", chat=43)
    api.say("/inbox")
    asked = await rig.seen(lambda: next((one for one in api.sent(42) if buttons(one)), None))
    api.press(asked, "Deny")
    await rig.seen(lambda: not any(buttons(one) for one in api.sent()) or None)
    api.say('call question {"text": "Which?", "choices": ["red"]}')
    await rig.shown("Which?")
    api.say("/inbox", person=43)
    await rig.shown("question", chat=43)
    await rig.settled()
    assert not any(buttons(one) for one in api.sent(43)), "43 may not answer for 42"


async def test_what_is_shown_twice_loses_all_its_buttons(rig: TelegramRig, api: BotApiServer) -> None:
    api.say("read config.toml")
    asked = await rig.seen(lambda: next((one for one in api.sent(42) if buttons(one)), None))
    api.say("/inbox")
    await rig.seen(lambda: len([one for one in api.sent(42) if buttons(one)]) == 2 or None)
    api.press(asked, "Deny")
    await rig.seen(lambda: not any(buttons(one) for one in api.sent()) or None)
    assert len([text for text in api.texts(42) if "answered by Ada (42) on Telegram: deny" in text]) == 2


async def test_a_card_of_a_chat_has_its_agent_and_a_person_without_approval_rights_reaches_no_other(
    tmp_path: Path, api: BotApiServer
) -> None:
    given = 'allow = [42, 43]\napprovers = [42]\nprofile = "careful"\n'
    text = config(api, telegram=given, more=f'{ASKS}[profiles.careful]\nmodel = "demo"\n')
    async with telegram_rig(tmp_path, api, f'default_profile = "demo"\n{text}') as rig:
        api.say("/card add Of Ada")
        await rig.shown("HF-1 was added")
        assert (await rig.store.cards.card("HF-1")).profile == "careful"
        for verb in ("comment", "unblock"):
            before = len(api.sent(43))
            api.say(f"/card {verb} HF-1 do as I say", person=43)
            await rig.seen(lambda n=before: len(api.sent(43)) > n or None)  # type: ignore[misc]
            assert api.texts(43)[-1] == "HF-1 was not added here. Only an approver can send something to its worker."
        api.say("/card add Of Bob", person=43)
        await rig.shown("HF-2 was added", chat=43)
        api.say("/card comment HF-2 look here", person=43)
        await rig.shown("HF-2: commented.", chat=43)
        api.say("/card comment HF-2 and here")
        await rig.shown("HF-2: commented.")


# --- people -----------------------------------------------------------------------------------------


async def test_a_stranger_gets_a_code_once_and_reaches_no_agent(rig: TelegramRig, api: BotApiServer) -> None:
    for _ in range(3):
        api.say("say let me in", person=99)
    api.say("say in the group", person=99, chat=-100)
    await rig.shown("holdfast telegram pair 99-", chat=99)
    await rig.settled()
    assert len(api.sent(99)) == 1
    assert api.sent(-100) == []
    assert await events(rig, InputReceived) == []
    assert await rig.store.session_of_chat("telegram:99") is None


async def test_many_strangers_are_not_all_answered(rig: TelegramRig, api: BotApiServer) -> None:
    for person in range(1000, 1030):
        api.say("hello", person=person)
    await rig.settled()
    assert len({one["chat"]["id"] for one in api.sent()}) == 20


async def test_a_removed_person_is_neither_read_nor_answered(rig: TelegramRig, api: BotApiServer) -> None:
    api.say("slow 1 too late", person=43)
    await rig.seen(lambda: rig.runner.working or None)
    text = (rig.home / "config.toml").read_text().replace("[42, 43]", "[42]  ")
    (rig.home / "config.toml").write_text(text)
    row = await rig.store.session_of_chat("telegram:43")
    assert row is not None
    await rig.until_session(row.id, lambda session: session.turn is None and session.turns == 1)
    api.say("say again", person=43)
    await rig.shown("telegram pair 43-", chat=43)
    await rig.settled()
    assert len(api.sent(43)) == 1
