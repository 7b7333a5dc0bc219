"""A Bot API server on this machine, as strict as the real one: tokens, long polling, offsets, limits of texts.

It remembers everything. Run by hand, it is a chat with a bot in the terminal:

    python -m tests.notify.bot_api_server 8081
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"
BOT = {"id": 110201543, "is_bot": True, "first_name": "Holdfast", "username": "holdfast_bot"}
Json = dict[str, Any]
TAGS = {"b", "i", "s", "code", "pre", "a", "blockquote"}
CUT = -1
"""Instead of a status: the connection is cut without an answer."""
Answer = tuple[int, Json | bytes] | None


class Visible(HTMLParser):
    """The text that a message shows, and whether its tags are closed in order."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text, self.open, self.wrong = "", list[str](), ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS:
            self.wrong = f'Unsupported start tag "{tag}"'
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong = f'Unmatched end tag "{tag}"'

    def handle_data(self, data: str) -> None:
        self.text += data


@dataclass(slots=True)
class BotApiServer:
    """What the server knows. People act by `say` and `press`; `answer` makes it refuse, fail or lie."""

    port: int = 0
    updates: list[Json] = field(default_factory=list)
    messages: dict[int, Json] = field(default_factory=dict)
    """Every message that it took, by its number, as it is shown now."""
    requests: list[tuple[str, Json]] = field(default_factory=list)
    toasts: list[Json] = field(default_factory=list)
    commands: list[Json] = field(default_factory=list)
    answer: Callable[[str, Json], Answer] = lambda _, __: None
    """Called with method and content before anything is done; a result is sent instead."""
    after: Callable[[str, Json], Answer] = lambda _, __: None
    """The same after it was done: the result is another one than what happened."""
    changed: threading.Condition = field(default_factory=threading.Condition)
    ids: Iterator[int] = field(default_factory=lambda: iter(range(700_000_001, 800_000_000)))
    numbers: Iterator[int] = field(default_factory=lambda: iter(range(1, 10**9)))
    polls: int = 0
    token: str = TOKEN
    shows: Callable[[str], None] = lambda _: None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    # --- people -----------------------------------------------------------------------------------

    def say(self, text: str | None, *, person: int = 42, chat: int | None = None, topic: int = 0, **more: Any) -> Json:
        """Somebody writes; without a chat to the bot alone."""
        chat = person if chat is None else chat
        message: Json = {
            "message_id": next(self.numbers),
            "from": user(person),
            "chat": {"id": chat, "type": "private" if chat > 0 else "supergroup", "title": "ignored"},
            "date": int(time.time()),
        }
        message |= {"text": text} if text is not None else {"sticker": {"file_id": "x"}}
        message |= {"message_thread_id": topic, "is_topic_message": True} if topic else {}
        return self.put({"message": message | more})

    def press(self, message: Json, label: str, *, person: int = 42) -> Json:
        """Somebody presses a button of a message that the bot sent."""
        data = next(one["callback_data"] for one in buttons(message) if one["text"] == label)
        return self.press_data(message, data, person=person)

    def press_data(self, message: Json, data: str, *, person: int = 42) -> Json:
        query = {"id": f"q{next(self.numbers)}", "from": user(person), "message": message, "data": data}
        return self.put({"callback_query": query | {"chat_instance": "1"}})

    def put(self, update: Json) -> Json:
        """Something happens."""
        with self.changed:
            update = {"update_id": next(self.ids)} | update
            self.updates.append(update)
            self.changed.notify_all()
        return update

    # --- what the bot did -------------------------------------------------------------------------

    def sent(self, chat: int | None = None) -> list[Json]:
        """Messages of the bot, oldest first."""
        with self.changed:
            return [one for one in self.messages.values() if chat is None or one["chat"]["id"] == chat]

    def texts(self, chat: int | None = None) -> list[str]:
        return [one["text"] for one in self.sent(chat)]

    # --- the methods ------------------------------------------------------------------------------

    def call(self, token: str, method: str, content: Json) -> tuple[int, Json | bytes]:
        if token != self.token:
            return _error(401, "Unauthorized") if token.partition(":")[0].isdigit() else _error(404, "Not Found")
        with self.changed:
            self.requests.append((method, content))
        if (instead := self.answer(method, content)) is not None:
            return instead
        found = getattr(self, f"_{method}", None)
        status, result = _error(404, "Not Found") if found is None else found(content)
        return self.after(method, content) or (status, result)

    def _getMe(self, _: Json) -> tuple[int, Json]:
        return _ok(BOT)

    def _setMyCommands(self, content: Json) -> tuple[int, Json]:
        for one in content["commands"]:
            if len(one["description"]) > 256 or not one["command"].islower():
                return _error(400, "Bad Request: BOT_COMMAND_INVALID")
        self.commands = content["commands"]
        return _ok(True)

    def _getUpdates(self, content: Json) -> tuple[int, Json]:
        with self.changed:
            self.polls += 1
            mine = self.polls
            self.changed.notify_all()
            if content.get("offset"):
                self.updates = [one for one in self.updates if one["update_id"] >= content["offset"]]
            self.changed.wait_for(lambda: self.updates or self.polls != mine, timeout=content.get("timeout", 0))
            if self.polls != mine:
                return _error(409, "Conflict: terminated by other getUpdates request; make sure that only one bot runs")
            return _ok(self.updates[:100])

    def _sendMessage(self, content: Json) -> tuple[int, Json]:
        shown, wrong = _visible(content)
        if wrong:
            return _error(400, f"Bad Request: {wrong}")
        with self.changed:
            number = next(self.numbers)
            message = _stored(content, shown, number)
            self.messages[number] = message
            self.changed.notify_all()
        self.shows(f"bot → {content['chat_id']} [{number}]: {shown} {[one['text'] for one in buttons(message)] or ''}")
        return _ok(message)

    def _editMessageText(self, content: Json) -> tuple[int, Json]:
        shown, wrong = _visible(content)
        with self.changed:
            before = self.messages.get(content["message_id"])
            if before is None or wrong:
                return _error(400, f"Bad Request: {wrong or 'message to edit not found'}")
            changed = _stored(content, shown, content["message_id"])
            if (changed["text"], buttons(changed)) == (before["text"], buttons(before)):
                return _error(400, "Bad Request: message is not modified: specified new message content is the same")
            self.messages[content["message_id"]] = changed
            self.changed.notify_all()
        self.shows(f"bot edits [{content['message_id']}]: {shown} {[one['text'] for one in buttons(changed)] or ''}")
        return _ok(changed)

    def _answerCallbackQuery(self, content: Json) -> tuple[int, Json]:
        with self.changed:
            self.toasts.append(content)
            self.changed.notify_all()
        self.shows(f"bot shows: {content['text']}")
        return _ok(True)


def user(person: int) -> Json:
    return {
        "id": person,
        "is_bot": False,
        "first_name": {42: "Ada", 43: "Bob"}.get(person, "Eve"),
        "language_code": "en",
    }


def buttons(message: Json) -> list[Json]:
    rows = message.get("reply_markup", {}).get("inline_keyboard", [])
    return [button for row in rows for button in row]


def _visible(content: Json) -> tuple[str, str]:
    """The text as it is shown, and what is wrong with it."""
    text = content["text"]
    if content.get("parse_mode") == "HTML":
        parser = Visible()
        parser.feed(text)
        parser.close()
        if parser.wrong or parser.open:
            return "", f"can't parse entities: {parser.wrong or parser.open}"
        text = parser.text
    if not text.strip():
        return "", "message text is empty"
    if len(text.encode("utf-16-le")) // 2 > 4096:
        return "", "message is too long"
    for row in content.get("reply_markup", {}).get("inline_keyboard", []):
        for button in row:
            if not 1 <= len(button["callback_data"].encode()) <= 64:
                return "", "BUTTON_DATA_INVALID"
    return text, ""


def _stored(content: Json, shown: str, number: int) -> Json:
    chat = content["chat_id"]
    message = {"message_id": number, "from": BOT, "chat": {"id": chat, "type": "private" if chat > 0 else "supergroup"}}
    message |= {"date": int(time.time()), "text": shown, "sent": content["text"]}
    if topic := content.get("message_thread_id"):
        message |= {"message_thread_id": topic, "is_topic_message": True}
    return message | ({"reply_markup": content["reply_markup"]} if "reply_markup" in content else {})


def _ok(result: object) -> tuple[int, Json]:
    return 200, {"ok": True, "result": result}


def _error(status: int, description: str, **parameters: int) -> tuple[int, Json]:
    return status, {"ok": False, "error_code": status, "description": description, "parameters": parameters}


def refused(status: int, description: str, **parameters: int) -> tuple[int, Json]:
    """An answer of the API that says no."""
    return _error(status, description, **parameters)


@contextmanager
def bot_api(port: int = 0) -> Iterator[BotApiServer]:
    """A server for as long as this lasts."""
    api = BotApiServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            content = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
            _, bot, method = self.path.split("/")
            status, result = api.call(bot.removeprefix("bot"), method, content)
            if status == CUT:
                self.close_connection = True
                return
            body = result if isinstance(result, bytes) else json.dumps(result).encode()
            try:
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except ConnectionError:  # whoever asked was killed
                self.close_connection = True

        def log_message(self, *_: object) -> None: ...

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, *_: object) -> None: ...

    server = Server(("127.0.0.1", port), Handler)
    api.port = server.server_port
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield api
    finally:
        with api.changed:
            api.polls += 1
            api.changed.notify_all()
        server.shutdown()
        server.server_close()


def main() -> None:
    """Lines are said by person 42; `43: text` by another; `press NUMBER LABEL` presses a button."""
    with bot_api(int(sys.argv[1])) as api:
        api.shows = lambda line: print(line, flush=True)
        api.ids = iter(range(int(time.time()), 10**12))  # not those of an earlier run: its updates were carried out
        print(f"TELEGRAM_TOKEN={TOKEN} api_url={api.url}", flush=True)
        for line in map(str.strip, sys.stdin):
            person, colon, rest = line.partition(": ")
            who, said = (int(person), rest) if colon and person.isdigit() else (42, line)
            if said.startswith("press "):
                try:
                    _, number, label = said.split(" ", 2)
                    api.press(api.messages[int(number)], label, person=who)
                except (ValueError, KeyError, StopIteration):
                    print("There is no such button.", flush=True)
            elif said:
                api.say(said, person=who)


if __name__ == "__main__":
    main()
