"""Telegram with a real gateway that is killed: what people write is carried out once, and answered once."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.gateway import GatewayProcess, Json, of_kind, until
from tests.notify.bot_api_server import TOKEN, BotApiServer, bot_api, buttons
from tests.seed import new_seed

SCRIPT = Path(__file__).with_name("telegram_gateway.py")
QUICK = {
    "telegram.between_messages": 0.0,
    "telegram.between_group_messages": 0.0,
    "telegram.between_all": 0.0,
    "telegram.retry": 0.05,
}
PEOPLE = (42, 43, 44, 45)
KILLS = 4
MANY_KILLS = 100


def gateway_with_bot(directory: Path, api: BotApiServer, allow: str) -> GatewayProcess:
    home = directory / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(
        f'[telegram]\ntoken_env = "TELEGRAM_TOKEN"\napi_url = "{api.url}"\n{allow}\n'
        "[resume]\nattempts = 1000\n"  # kills come faster than anything gets done
        '[profiles.demo]\nmodel = "demo"\n[profiles.demo.tools]\nread = "ask"\n"*" = "allow"\n'
    )
    return GatewayProcess(home, script=SCRIPT, arguments=(TOKEN,), timings=QUICK)


def shown(api: BotApiServer, text: str, *, chat: int = 42) -> Json:
    return until(lambda: next((one for one in api.sent(chat) if text in one["text"]), None), f"the bot says {text!r}")


def test_pair_talk_approve_by_a_button_and_continue_after_a_kill(tmp_path: Path) -> None:
    with bot_api() as api, gateway_with_bot(tmp_path, api, "") as gateway:
        gateway.start()
        api.say("say hello")
        code = shown(api, "holdfast telegram pair")["text"].partition("telegram pair ")[2].split()[0]
        refused = gateway.request("POST", "/v1/telegram/pair", json={"code": code[:-1] + "?"})
        assert refused.status_code == 404
        gateway.command("POST", "/v1/telegram/pair", {"code": code, "approve": True})
        shown(api, "You are let in")
        api.say("say before\nread config.toml\nsay after")
        asked = until(lambda: next((one for one in api.sent(42) if buttons(one)), None), "it asks")
        gateway.kill9()
        api.press(asked, "Once")  # nobody is there
        api.say("say next")
        gateway.start()
        shown(api, "after")
        shown(api, "next")
        until(lambda: not buttons(api.messages[asked["message_id"]]) or None, "the buttons go")
        told = [text for text in api.texts(42) if text.endswith(("before", "after", "next"))]
        assert [text.split()[-1] for text in told] == ["before", "after", "next"]
        status = gateway.get("/v1/telegram")
        assert (status["bot"], status["problem"]) == ("holdfast_bot", "")
        assert status["people"] == [{"id": 42, "name": "Ada", "talks": True, "approves": True}]
        assert "allow = [42]" in (gateway.home / "config.toml").read_text()
        gateway.command("POST", "/v1/telegram/remove", {"person": 42})
        assert gateway.get("/v1/telegram")["people"] == []
        left = (gateway.home / "logs" / "gateway.log").read_text() + gateway.stderr + str(gateway.whole_log())
        assert TOKEN not in left and TOKEN.partition(":")[2] not in left


def test_a_token_that_is_refused_is_seen_and_tried_again(tmp_path: Path) -> None:
    with bot_api() as api, gateway_with_bot(tmp_path, api, "allow = [42]") as gateway:
        api.token = "1:other"
        gateway.start()
        until(
            lambda: "refuses the token in TELEGRAM_TOKEN" in gateway.get("/v1/telegram")["problem"] or None,
            "it is seen",
        )
        (listed,) = gateway.get("/v1/notify")["destinations"]
        assert (listed["name"], "refuses the token" in listed["problem"]) == ("telegram", True)
        parts = {part["name"]: part["problem"] for part in gateway.get("/healthz")["parts"]}
        assert "refuses the token" in parts["Telegram"]
        api.token = TOKEN
        api.say("say hello")
        shown(api, "hello")
        until(lambda: not gateway.get("/v1/telegram")["problem"] or None, "all is well again")


class Slow:
    """Takes its time before and after it does something, so that a kill finds it in the middle."""

    def __init__(self, choose: random.Random) -> None:
        self._choose = choose

    def __call__(self, method: str, _: Json) -> None:
        if method in ("sendMessage", "editMessageText"):
            time.sleep(self._choose.choice((0, 0, 0.01, 0.05)))


def kills(directory: Path, count: int, seed: int) -> str:
    """People write while the gateway is killed at random moments."""
    choose = random.Random(seed)
    allow = f"allow = {list(PEOPLE)}\napprovers = {list(PEOPLE)}"
    with bot_api() as api, gateway_with_bot(directory, api, allow) as gateway:
        api.answer = api.after = Slow(choose)
        gateway.start()
        written: dict[str, int] = {}
        for kill in range(count):
            for part in range(choose.randint(1, 4)):
                person, name = choose.choice(PEOPLE), f"m{kill}x{part}"
                written[name] = person
                api.say(f"{choose.choice(('', '/new '))}say {name}.", person=person)
                if choose.random() < 0.2:
                    api.say(f"/card add c{name}.", person=person)
            threading.Event().wait(choose.uniform(0, 0.5))
            gateway.kill9()
            gateway.start()
        until(lambda: not api.updates or None, "every update is confirmed")
        return check(gateway, api, written)


def check(gateway: GatewayProcess, api: BotApiServer, written: dict[str, int]) -> str:
    """Each message is in the log once and was answered once; an answer is in the chat once, or marked as unsure."""
    chats = {event["session"] for event in of_kind(gateway.whole_log(), "SessionCreated") if event["chat"]}
    for session in chats:
        gateway.until_rest(session)
    log = gateway.whole_log()
    talk = [record for record in log if record["stream"].removeprefix("session/") in chats]
    said = Counter(event["text"].rstrip(".").rpartition(" ")[2] for event in of_kind(talk, "InputReceived"))
    answered = Counter(event["text"].rstrip(".") for event in of_kind(talk, "ModelResponded") if event["text"])
    assert said == Counter(dict.fromkeys(written, 1))
    assert answered == said
    cards = Counter(event["title"] for event in of_kind(log, "CardCreated"))
    assert all(number == 1 for number in cards.values()), cards

    def quiet() -> list[Json] | None:
        rows: list[Json] = gateway.get("/v1/notify/log", limit=1000)["deliveries"]
        return None if any(row["state"] in ("pending", "sending") for row in rows) else rows

    rows = until(quiet, "nothing waits to be sent")
    shown = Counter((one["chat"]["id"], one["text"].rstrip(".")) for one in api.sent())
    told = {name: shown[(person, name)] for name, person in written.items()}
    twice = {name: number for name, number in told.items() if number > 1}
    missing = [name for name, number in told.items() if number == 0]
    unsure = [row for row in rows if row["state"] == "unsure"]
    assert not twice
    in_doubt = {(row["link"], row["at"]) for row in unsure if row["kind"] == "answer"}
    answers = {
        record["event"]["text"].rstrip("."): (f"/s/{record['stream'].removeprefix('session/')}", record["at"])
        for record in talk
        if record["event"]["kind"] == "ModelResponded"
    }
    assert {answers[name] for name in missing} <= in_doubt, missing
    told_of_doubt = Counter(row["link"] for row in rows if row["kind"] == "doubt")
    assert told_of_doubt == Counter(link for link, _ in in_doubt)
    assert {row["state"] for row in rows} <= {"sent", "unsure"}
    counts = f"{len(written)} messages, {len(cards)} cards, {len(rows)} deliveries"
    return f"{counts}; unsure: {len(unsure)}, of which {len(missing)} did not arrive"


def test_kill_9_while_people_write(tmp_path: Path) -> None:
    kills(tmp_path, KILLS, new_seed())


@pytest.mark.proof
def test_kill_9_a_hundred_times_while_people_write(tmp_path: Path) -> None:
    print(kills(tmp_path, MANY_KILLS, new_seed()))
