"""Faults between the gateway and Telegram: nothing is lost, nothing is done twice, and the problem is reported."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from holdfast.domain.events.session import InputReceived, WaitAnswered
from holdfast.notify.telegram.bot_api import User
from holdfast.notify.telegram.people import HOUR_MS, actor_of, paired_person, pairing_code
from tests.eventually import eventually
from tests.notify.bot_api_server import CUT, TOKEN, Answer, BotApiServer, Json, buttons, refused
from tests.notify.telegram_rig import TelegramRig, api, config, telegram_rig
from tests.notify.test_telegram_chat import events

__all__ = ["api"]


async def problem(rig: TelegramRig, text: str) -> None:
    await rig.seen(lambda: text in rig.notify.updates.state.problem or None)


# --- the token ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("", "TELEGRAM_TOKEN is not set"),
        ("not-a-token-at-all", "is no token of a bot"),
        ("110201543:revoked_revoked_revoked_revoked", "refuses the token in TELEGRAM_TOKEN"),
    ],
)
async def test_a_token_that_is_missing_wrong_or_revoked_is_named_and_not_shown(
    tmp_path: Path, api: BotApiServer, monkeypatch: pytest.MonkeyPatch, token: str, expected: str
) -> None:
    monkeypatch.setenv("TELEGRAM_TOKEN", token)
    async with telegram_rig(tmp_path, api) as rig:
        await problem(rig, expected)
        assert not token or token not in rig.notify.updates.state.problem
        monkeypatch.setenv("TELEGRAM_TOKEN", TOKEN)  # as after a restart
        api.say("say hello")
        await rig.shown("hello")
        await rig.seen(lambda: not rig.notify.updates.state.problem or None)


async def test_it_can_be_turned_on_and_off_while_the_gateway_runs(tmp_path: Path, api: BotApiServer) -> None:
    async with telegram_rig(tmp_path, api, 'default_profile = "demo"\n') as rig:
        api.say("say hello")
        (tmp_path / "config.toml").write_text(config(api))
        await rig.shown("hello")
        (tmp_path / "config.toml").write_text('default_profile = "demo"')
        api.say("say for nobody")  # ends the request that waits
        await rig.seen(lambda: not rig.notify.telegram.is_on or None)
        assert rig.notify.destinations.find("telegram:42") is None


# --- Telegram itself --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        (refused(409, "Conflict: terminated by other getUpdates request"), "Another program uses the bot"),
        (refused(500, "Internal Server Error: sorry"), "Internal Server Error: sorry"),
    ],
)
async def test_refusal_of_updates_is_a_problem_with_its_reason_until_they_come(
    tmp_path: Path, api: BotApiServer, refusal: Answer, said: str
) -> None:
    api.answer = lambda method, _: refusal if method == "getUpdates" else None
    async with telegram_rig(tmp_path, api) as rig:
        await problem(rig, said)
        api.answer = lambda _, __: None
        api.say("say hello")
        await rig.shown("hello")


@pytest.mark.parametrize(
    "answer",
    [
        refused(429, "Too Many Requests"),
        refused(429, "Too Many Requests: retry after 0", retry_after=0),
        refused(502, "Bad Gateway"),
        (502, b"<html>"),
        (200, b"nonsense"),
        (CUT, b""),
    ],
)
async def test_an_api_that_fails_is_asked_again_and_what_was_written_meanwhile_is_answered_once(
    tmp_path: Path, api: BotApiServer, answer: Answer
) -> None:
    left = iter(range(4))
    api.answer = lambda method, _: answer if method == "getUpdates" and next(left, None) is not None else None
    api.say("say hello")
    async with telegram_rig(tmp_path, api) as rig:
        await rig.shown("hello")
        await rig.settled()
        assert api.texts(42) == ["hello"]


async def test_it_waits_as_long_as_telegram_says(tmp_path: Path, api: BotApiServer) -> None:
    """One refusal of a message, and the same message again."""
    left = iter([refused(429, "Too Many Requests: retry after 1", retry_after=1)])
    api.answer = lambda method, _: next(left, None) if method == "sendMessage" else None
    async with telegram_rig(tmp_path, api) as rig:
        api.say("say hello")

        async def refused_once() -> bool:
            rows = await rig.store.outbox.history(limit=9)
            return any(row.state == "pending" and "Too Many Requests" in row.error for row in rows)

        await eventually(refused_once)
        assert api.texts() == []
        (row,) = await rig.store.outbox.pending("telegram:42")
        assert row.due_at - row.changed_at >= 1_000


async def test_an_answer_that_may_have_arrived_is_marked_and_the_next_one_comes(
    tmp_path: Path, api: BotApiServer
) -> None:
    left = iter([(CUT, b"")])
    api.after = lambda method, _: next(left, None) if method == "sendMessage" else None
    async with telegram_rig(tmp_path, api) as rig:
        api.say("say first")
        await rig.shown("first")
        api.say("say second")
        await rig.shown("second")
        rows = await rig.settled()
        (doubt,) = [text for text in api.texts(42) if "may be missing" in text]
        assert Counter(api.texts(42)) == {"first": 1, doubt: 1, "second": 1}
        assert sorted(row.state for row in rows) == ["sent", "sent", "unsure"]


# --- updates ----------------------------------------------------------------------------------------


async def test_a_backlog_is_taken_in_order_and_each_once_though_it_is_delivered_again(
    tmp_path: Path, api: BotApiServer
) -> None:
    for number in range(230):
        api.say(f"say n{number:03}")
    copies = list(api.updates)
    async with telegram_rig(tmp_path, api) as rig:
        await rig.seen(lambda: not api.updates or None)
        with api.changed:  # as if nothing had been confirmed
            api.updates = copies[:150]
            api.changed.notify_all()
        api.put({"message": {**copies[0]["message"], "message_id": 10**6, "text": "say last"}})
        await rig.shown("last")
        inputs = [event.text for event in await events(rig, InputReceived) if isinstance(event, InputReceived)]
        assert inputs == [*(f"say n{number:03}" for number in range(230)), "say last"]


async def test_a_press_that_is_delivered_again_answers_once(tmp_path: Path, api: BotApiServer) -> None:
    async with telegram_rig(tmp_path, api) as rig:
        api.say("read config.toml")
        asked = await rig.shown("config.toml")
        update = api.press(asked, "Once")
        await rig.toast("Answered: allow")
        await rig.seen(lambda: not api.updates or None)
        with api.changed:
            api.updates = [update]
            api.changed.notify_all()
        await rig.seen(lambda: len(api.toasts) == 2 or None)
        assert [toast["text"] for toast in api.toasts] == ["Answered: allow"] * 2
        assert len(await events(rig, WaitAnswered)) == 1


@pytest.mark.parametrize(
    "update",
    [
        {"edited_message": {"message_id": 1}},
        {"message": {"message_id": "not a number", "chat": {}}},
        {"message": {"message_id": 1, "chat": {"id": 42, "type": "private"}, "text": "from nobody"}},
        {"message": {"message_id": 1, "chat": {"id": 5, "type": "channel"}, "text": "x"}},
        {"callback_query": {"id": "1", "from": {"id": 42}}},
        {"callback_query": {"id": "1", "from": {"id": 42}, "data": "x 1", "inline_message_id": "y"}},
        {"poll": {"id": "1"}},
    ],
)
async def test_an_update_that_nobody_understands_delays_no_other(
    tmp_path: Path, api: BotApiServer, update: Json
) -> None:
    api.put(update)
    api.say("say hello")
    async with telegram_rig(tmp_path, api) as rig:
        await rig.shown("hello")
        assert rig.notify.updates.state.problem == ""


async def test_what_the_disk_does_not_take_is_taken_later(tmp_path: Path, api: BotApiServer) -> None:
    from holdfast.domain.errors import Unavailable
    from holdfast.notify.chat_commands import ChatInput, ChatReply

    async with telegram_rig(tmp_path, api) as rig:
        commands = rig.notify.updates._commands
        say, left = commands.say, iter(range(3))

        async def refuse(incoming: ChatInput) -> ChatReply:
            if next(left, None) is not None:
                raise Unavailable("The disk is full.")
            return await say(incoming)

        commands.say = refuse  # type: ignore[method-assign]
        api.say("say hello")
        await rig.shown("hello")
        await rig.settled()
        assert api.texts(42) == ["hello"]


async def test_buttons_of_which_it_was_not_known_that_they_arrived_go_when_they_are_pressed(
    tmp_path: Path, api: BotApiServer
) -> None:
    left = iter([(CUT, b"")])
    api.after = lambda method, _: next(left, None) if method == "sendMessage" else None
    async with telegram_rig(tmp_path, api) as rig:
        api.say("read config.toml")
        asked = await rig.shown("config.toml")

        async def unsure() -> bool:
            return any(row.state == "unsure" for row in await rig.store.outbox.history(limit=9))

        await eventually(unsure)
        api.press(asked, "Deny")
        await rig.seen(lambda: not buttons(api.messages[asked["message_id"]]) or None)
        assert "answered by Ada (42) on Telegram: deny" in api.messages[asked["message_id"]]["text"]


# --- notices of other sessions ------------------------------------------------------------------------


@pytest.mark.parametrize("details", [True, False])
async def test_a_chat_is_notified_of_other_sessions_and_can_answer_what_it_is_shown(
    tmp_path: Path, api: BotApiServer, details: bool
) -> None:
    given = (
        "allow = [42, 43]\napprovers = [42]\nnotify = [42]\nonly_when_nobody_looks = false\n"
        f"details = {str(details).lower()}\n"
    )
    async with telegram_rig(tmp_path, api, config(api, telegram=given)) as rig:
        api.say("read config.toml", person=43)
        await rig.shown("config.toml", chat=43)
        told = await rig.shown("read config.toml" if not details else "config.toml")
        assert bool(buttons(told)) is details
        api.say("say mine")
        await rig.shown("mine")
        if details:
            api.press(told, "Deny")
            await rig.seen(lambda: not any(buttons(one) for one in api.sent()) or None)
        await rig.settled()
        assert not any("has answered" in text and "mine" in text for text in api.texts(42)), (
            "its own chat has the answer"
        )


# --- codes ------------------------------------------------------------------------------------------


def test_a_code_is_good_for_its_person_its_bot_and_about_an_hour() -> None:
    now = 1_700_000_000_000
    code = pairing_code(TOKEN, 42, now // HOUR_MS)
    assert paired_person(TOKEN, f" {code.lower()} ", now=now) == 42
    assert paired_person(TOKEN, code, now=now + HOUR_MS) == 42
    assert paired_person(TOKEN, code, now=now + 2 * HOUR_MS) is None
    assert paired_person("1:other", code, now=now) is None
    assert paired_person(TOKEN, "43" + code[2:], now=now) is None
    for wrong in (
        "",
        "-",
        "42",
        "42-",
        "x-ABC",
        "٤٢-" + code[3:],
        "-42" + code[2:],
        "9" * 400 + "-A",
        code + "\x00",
        "42-é",
    ):
        assert paired_person(TOKEN, wrong, now=now) is None


def test_the_largest_number_that_an_account_can_have_is_paired() -> None:
    largest = 2**52 - 1
    assert paired_person(TOKEN, pairing_code(TOKEN, largest, 0), now=0) == largest


def test_a_name_is_one_line_and_never_hides_the_number() -> None:
    odd = User(42, first_name="Root\n\u202e\x1b[31m" + "x" * 100, last_name="(1)")
    assert str(actor_of(odd)).endswith("x (42) on Telegram")
    assert "\n" not in str(actor_of(odd)) and "\x1b" not in str(actor_of(odd)) and "\u202e" not in str(actor_of(odd))
