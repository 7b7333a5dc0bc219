"""Bad input: each its own status and a message that helps, and nothing stored."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx
import pytest

from tests.e2e.gateway import GatewayProcess, Json, kinds, of_kind, until
from tests.e2e.wire import exchange, head

UNKNOWN = "0123456789abcdef"


@pytest.fixture(scope="module")
def session(gateway: GatewayProcess) -> str:
    return gateway.create()


@pytest.fixture
def nothing_stored(gateway: GatewayProcess, session: str) -> Iterator[None]:
    before = gateway.get("/v1/status")["events"]
    yield
    assert gateway.get("/v1/status")["events"] == before


def refused(answer: httpx.Response, status: int, *words: str) -> Json:
    """The right status, one shape, a message that says what is wrong."""
    assert answer.status_code == status, answer.text
    error: Json = answer.json()["error"]
    assert set(error) == {"code", "message", "hint"}
    assert "Traceback" not in answer.text
    for word in words:
        assert word in error["message"] + " " + error["hint"], error
    return error


# --- ids --------------------------------------------------------------------------------------------

ROUTES = [
    ("GET", ""),
    ("GET", "/events"),
    ("GET", "/why"),
    ("GET", "/export"),
    ("PATCH", ""),
    ("POST", "/messages"),
    ("POST", "/stop"),
    ("POST", "/archive"),
    ("POST", "/restore"),
    ("DELETE", ""),
]
BODIES: dict[tuple[str, str], Json] = {("PATCH", ""): {"title": "x"}, ("POST", "/messages"): {"text": "say x"}}


@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_unknown_ids(gateway: GatewayProcess, method: str, path: str) -> None:
    body = BODIES.get((method, path))
    refused(gateway.request(method, f"/v1/sessions/{UNKNOWN}{path}", json=body), 404, UNKNOWN, "holdfast sessions")
    for wrong in ("abc", "ABCDEF", "xyzw", "0" * 33, "%2e%2e", "abcd%0a", "abcd%00", "ä", "' OR 1=1", "abcd*"):
        answer = gateway.request(method, f"/v1/sessions/{wrong}{path}", json=body)
        refused(answer, 404, "is not the ID of a session")


def test_ambiguous_prefix(gateway: GatewayProcess) -> None:
    """Create until two ids begin alike; with any more characters they can be told apart."""
    seen: dict[str, str] = {}
    pair = None
    with ThreadPoolExecutor(8) as pool:
        while pair is None:
            for created in pool.map(lambda _: gateway.create(), range(100)):
                pair = pair or ((seen[created[:4]], created) if created[:4] in seen else None)
                seen[created[:4]] = created
    first, second = pair
    before = gateway.get("/v1/status")["events"]
    for method, path in ROUTES:
        answer = gateway.request(method, f"/v1/sessions/{first[:4]}{path}", json=BODIES.get((method, path)))
        error = refused(answer, 409, "is the beginning of several session IDs", "Use more characters")
        assert first in error["message"] and second in error["message"]
    assert gateway.get("/v1/status")["events"] == before
    same = len([1 for a, b in zip(first, second, strict=True) if a == b])
    longer = next(n for n in range(4, 17) if first[:n] != second[:n])
    assert same >= 4
    assert gateway.session(first[:longer])["id"] == first
    assert gateway.session(second[:longer])["id"] == second


# --- bodies -----------------------------------------------------------------------------------------

BAD_MESSAGES: dict[str, tuple[bytes, int, str]] = {
    "nothing": (b"", 400, "missing required field `text`"),
    "empty object": (b"{}", 400, "missing required field `text`"),
    "empty text": (b'{"text": ""}', 400, "length >= 1"),
    "blank text": (b'{"text": " \\n\\t "}', 400, "The message is empty"),
    "blank in another alphabet": ('{"text": "\u00a0\u2003"}'.encode(), 400, "The message is empty"),
    "no JSON": (b"say hello", 400, "The body is not JSON"),
    "half JSON": (b'{"text": "say', 400, "The body is not JSON"),
    "more than JSON": (b'{"text": "say x"} {}', 400, "The body is not JSON"),
    "JSON with a comment": (b'{"text": "say x" /* no */}', 400, "The body is not JSON"),
    "not a number": (b'{"text": NaN}', 400, "The body is not JSON"),
    "only a NUL": (b"\x00", 400, "The body is not JSON"),
    "byte order mark": (b'\xef\xbb\xbf{"text": "say x"}', 400, "The body is not JSON"),
    "UTF-16": ('{"text": "say x"}'.encode("utf-16"), 400, "The body is not JSON"),
    "invalid UTF-8": (b'{"text": "say \xff\xfe"}', 400, "UTF-8"),
    "cut UTF-8": (b'{"text": "say \xe4"}', 400, "UTF-8"),
    "surrogate in UTF-8": (b'{"text": "say \xed\xa0\x80"}', 400, "UTF-8"),
    "overlong UTF-8": (b'{"text": "say \xc0\xaf"}', 400, "UTF-8"),
    "invalid UTF-8 in a key": (b'{"te\xffxt": "say x"}', 400, "UTF-8"),
    "lone high surrogate": (b'{"text": "say \\ud800"}', 400, "The body is not JSON"),
    "lone low surrogate": (b'{"text": "say \\udc00"}', 400, "surrogate"),
    "surrogates in the wrong order": (b'{"text": "say \\udc00\\ud800"}', 400, "surrogate"),
    "raw newline in a string": (b'{"text": "say\nx"}', 400, "The body is not JSON"),
    "list": (b"[]", 400, "Expected `object`"),
    "string": (b'"say x"', 400, "Expected `object`"),
    "null": (b"null", 400, "Expected `object`"),
    "unknown field": (b'{"text": "say x", "texte": 1}', 400, "unknown field `texte`"),
    "number for text": (b'{"text": 5}', 400, "Expected `str`, got `int` - at `$.text`"),
    "null for text": (b'{"text": null}', 400, "Expected `str`, got `null` - at `$.text`"),
    "list for text": (b'{"text": ["say x"]}', 400, "Expected `str`, got `array` - at `$.text`"),
    "wrong mode": (b'{"text": "say x", "mode": "shout"}', 400, "Invalid enum value 'shout' - at `$.mode`"),
    "null mode": (b'{"text": "say x", "mode": null}', 400, "`$.mode`"),
    "other command": (b'{"command": "StopTurn", "text": "say x"}', 400, "Invalid value 'StopTurn'"),
    "deep": (b'{"text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400, ""),
    "1,000,001 characters": (b'{"text": "' + b"x" * 1_000_001 + b'"}', 413, "at most 1000000 characters"),
    "1,000,001 characters of 4 bytes": (
        b'{"text": "' + "😀".encode() * 1_000_001 + b'"}',
        413,
        "at most 1000000 characters",
    ),
    "10 MB": (b'{"text": "' + b"x" * 10_000_000 + b'"}', 413, "larger than 8 MiB"),
}


@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(("body", "status", "words"), BAD_MESSAGES.values(), ids=BAD_MESSAGES.keys())
def test_bad_message(gateway: GatewayProcess, session: str, body: bytes, status: int, words: str) -> None:
    refused(gateway.request("POST", f"/v1/sessions/{session}/messages", content=body), status, words)

    def chunks() -> Iterator[bytes]:
        for start in range(0, len(body), 100_000):
            yield body[start : start + 100_000]

    refused(gateway.request("POST", f"/v1/sessions/{session}/messages", content=chunks()), status, words)


@pytest.mark.usefixtures("nothing_stored")
def test_a_body_that_says_it_is_large_is_not_even_read(gateway: GatewayProcess, session: str) -> None:
    for length, expect in (("99999999", 413), ("99999999999999999999999999", 400), ("-1", 400), ("x", 400)):
        headers = [("Host", f"127.0.0.1:{gateway.port}"), ("Authorization", f"Bearer {gateway.token}")]
        request = head("POST", f"/v1/sessions/{session}/messages", [*headers, ("Content-Length", length)])
        assert exchange(gateway.port, request).status == expect


@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"cwd": "relative/path"}, "'relative/path' is not the absolute path of a directory"),
        ({"cwd": "/nowhere/at/all"}, "not the absolute path of a directory"),
        ({"cwd": "/etc/passwd"}, "not the absolute path of a directory"),
        ({"cwd": "/tmp\u0000/x"}, "not the absolute path of a directory"),
        ({"cwd": "/" + "x" * 300}, "not the absolute path of a directory"),
        ({"cwd": "/" + "x/" * 2047}, "not the absolute path of a directory"),
        ({"cwd": "/" + "x" * 4096}, "length <= 4096"),
        ({"cwd": ""}, "length >= 1"),
        ({"profile": "nobody"}, "There is no profile 'nobody'"),
        ({"profile": "x" * 65}, "length <= 64"),
        ({"title": ""}, "length >= 1"),
        ({"title": "x" * 201}, "length <= 200"),
        ({"title": "   "}, "The title is blank"),
        ({"text": "  "}, "The message is empty"),
        ({"text": 5}, "Expected"),
        ({"session": "abcd"}, "unknown field `session`"),
    ],
    ids=lambda value: next(iter(value)) + " " + str(next(iter(value.values())))[:20] if isinstance(value, dict) else "",
)
def test_bad_session(gateway: GatewayProcess, body: dict[str, Any], words: str) -> None:
    refused(gateway.request("POST", "/v1/sessions", json=body), 400, words)


@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("path", ["/stop", "/archive", "/restore"])
def test_commands_without_a_body_take_none_or_an_empty_one(gateway: GatewayProcess, session: str, path: str) -> None:
    bodies: list[object] = [{"now": True}, [], "x"]
    for body in bodies:
        refused(gateway.request("POST", f"/v1/sessions/{session}{path}", json=body), 400)


@pytest.mark.usefixtures("nothing_stored")
def test_what_is_not_possible_in_this_state(gateway: GatewayProcess, session: str) -> None:
    refused(gateway.request("POST", f"/v1/sessions/{session}/stop"), 409, "nothing to stop")
    refused(gateway.request("POST", f"/v1/sessions/{session}/restore"), 409, "not archived")


STRANGE_TEXTS = {
    "NUL": "say a\x00b",
    "only a NUL": "\x00",
    "escapes": "say \x1b[31mred\x1b[0m \x07 \x7f \x9b",
    "line ends": "say a\r\nsay b\u2028say c\u0085",
    "emoji": "say 👩‍👩‍👧‍👦 😀",
    "right to left": "say \u202eevil\u202c",
    "not characters": "say \ufffe\uffff \ufdd0",
    "replacement": "say \ufffd",
    "JSON": 'say {"a": "\\u0000"}\\',
    "SQL": "say '; DROP TABLE events; --",
    "million": "say " + "x" * 999_996,
}


@pytest.mark.parametrize("text", STRANGE_TEXTS.values(), ids=STRANGE_TEXTS.keys())
def test_strange_text_is_stored_unchanged(gateway: GatewayProcess, text: str) -> None:
    session = gateway.create(text)
    gateway.send(session, text)
    records = gateway.until_rest(session)
    assert [event["text"] for event in of_kind(records, "InputReceived")] == [text, text]
    ends = [(event["outcome"], (event["problem"] or {}).get("code")) for event in of_kind(records, "TurnFinished")]
    too_long = len(text) > 500_000  # more than the limit of a context by default: it is kept, and the turn says so
    assert ends == [("failed", "context_too_long") if too_long else ("done", None)] * 2
    export = gateway.request("GET", f"/v1/sessions/{session}/export", params={"format": "jsonl"})
    assert [json.loads(line) for line in export.text.split("\n") if line] == records
    assert gateway.request("GET", f"/v1/sessions/{session}/export").status_code == 200
    assert gateway.get("/v1/sessions", limit=1)["sessions"][0]["id"] == session


@pytest.mark.parametrize(
    "query", ['"', '""', "a\x00b", "\x00", "NEAR(", "a*", "-", "%", "_", "\\", "😀", "' OR 1", "é" * 500]
)
def test_strange_searches_find_or_do_not_find(gateway: GatewayProcess, query: str) -> None:
    assert "hits" in gateway.get("/v1/search", q=query)


def test_strange_text_is_found(gateway: GatewayProcess) -> None:
    session = gateway.create('say "quoted" 100%_sure it\'s 😀😀😀 a\\b')
    for query in ('"quoted"', "100%_sure", "it's", "😀😀😀", "a\\b", "0%"):
        until(partial(_found_by, gateway, query, session), f"the search finds {query}")


def _found_by(gateway: GatewayProcess, query: str, session: str) -> bool:
    return session in {hit["session"] for hit in gateway.get("/v1/search", q=query)["hits"]}


# --- command ids ------------------------------------------------------------------------------------


def test_promise_1_a_command_id_is_stored_once(gateway: GatewayProcess) -> None:
    fresh = (f"command-{n}" for n in itertools.count())
    key = next(fresh)
    created = gateway.command("POST", "/v1/sessions", {"text": "say once"}, key=key)
    session = created["session"]
    assert not created["duplicate"] and created["input"] == key
    gateway.until_rest(session)
    before = gateway.get("/v1/status")["events"]
    for _ in range(3):
        again = gateway.command("POST", "/v1/sessions", {"text": "say once"}, key=key)
        assert again == created | {"duplicate": True}
    assert gateway.get("/v1/status")["events"] == before
    for method, path, body in (
        ("POST", "/v1/sessions", {"text": "say twice"}),
        ("POST", "/v1/sessions", {"text": "say once", "title": "x"}),
        ("POST", f"/v1/sessions/{session}/messages", {"text": "say once"}),
        ("POST", f"/v1/sessions/{session}/archive", {}),
        ("DELETE", f"/v1/sessions/{session}", None),
    ):
        refused(gateway.request(method, path, json=body, key=key), 409, "used before for another command")
    assert gateway.get("/v1/status")["events"] == before
    assert gateway.session(session)["archived"] is False


def test_promise_1_every_command_may_be_retried(gateway: GatewayProcess) -> None:
    """The same answer, also when the first try has changed the state so that it would not be possible again."""
    session = gateway.create("slow 30 one two three")
    gateway.until_event(session, "ModelRequested")
    steps: list[tuple[str, str, Json | None]] = [
        ("POST", "/messages", {"text": "say more"}),
        ("POST", "/messages", {"text": "say more", "mode": "steer"}),
        ("POST", "/stop", {}),
        ("PATCH", "", {"title": "other"}),
        ("POST", "/archive", None),
        ("POST", "/restore", None),
        ("DELETE", "", None),
    ]
    for number, (method, path, body) in enumerate(steps):
        if path == "/archive":
            gateway.until_rest(session)
        first = gateway.command(method, f"/v1/sessions/{session}{path}", body, key=f"retry-{number}-{session}")
        again = gateway.command(method, f"/v1/sessions/{session}{path}", body, key=f"retry-{number}-{session}")
        assert again == first | {"duplicate": True}, path
    refused(gateway.request("DELETE", f"/v1/sessions/{session}", key="another-delete"), 410, "was deleted")
    stored = [record for record in gateway.whole_log() if record["event"].get("session") == session]
    assert kinds(stored) == ["SessionDeleted"]


def test_a_delete_by_prefix_may_be_retried(gateway: GatewayProcess) -> None:
    session = gateway.create()
    first = gateway.command("DELETE", f"/v1/sessions/{session[:12]}", key=f"delete-{session}")
    assert first["session"] == session
    assert gateway.command("DELETE", f"/v1/sessions/{session[:12]}", key=f"delete-{session}") == first | {
        "duplicate": True
    }


@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    "key", ["", "short", "x" * 65, "with space", "with.dot!", "semi;colon", "näh-näh-näh", "a/b/c/d/e"]
)
def test_bad_command_ids(gateway: GatewayProcess, session: str, key: str) -> None:
    headers = {"idempotency-key": key.encode("latin-1")}
    answer = gateway.request("POST", f"/v1/sessions/{session}/messages", json={"text": "say x"}, headers=headers)  # type: ignore[arg-type]
    refused(answer, 400, "Idempotency-Key must be 8 to 64")


@pytest.mark.usefixtures("nothing_stored")
def test_two_command_ids(gateway: GatewayProcess, session: str) -> None:
    body = b'{"text": "say x"}'
    headers = [("Host", f"127.0.0.1:{gateway.port}"), ("Authorization", f"Bearer {gateway.token}")]
    headers += [
        ("Content-Length", str(len(body))),
        ("Idempotency-Key", "one-of-two"),
        ("Idempotency-Key", "two-of-two"),
    ]
    answer = exchange(gateway.port, head("POST", f"/v1/sessions/{session}/messages", headers) + body)
    assert answer.status == 400


# --- parameters and routes --------------------------------------------------------------------------

PARAMETERS = {
    "/events?after=-1": "query.after",
    "/events?after=x": "query.after",
    "/events?after=": "query.after",
    "/events?after=1.5": "query.after",
    "/events?after=9223372036854775808": "query.after",
    "/events?after=" + "9" * 5000: "query.after",
    "/events?limit=0": "query.limit",
    "/events?limit=2001": "query.limit",
    "/events?limit=all": "query.limit",
    "/export?format=pdf": "query.format",
}
LIST_PARAMETERS = {
    "/v1/sessions?limit=0": "query.limit",
    "/v1/sessions?limit=501": "query.limit",
    "/v1/sessions?archived=perhaps": "query.archived",
    "/v1/sessions?before=yesterday": "before",
    "/v1/sessions?before=1-": "before",
    "/v1/sessions?before=" + "1" * 19 + "-ab": "before",
    "/v1/events?after=-1": "query.after",
    "/v1/events?after=99999999999999999999": "query.after",
    "/v1/search": "required field `q`",
    "/v1/search?q=": "query.q",
    "/v1/search?q=" + "x" * 501: "query.q",
    "/v1/search?q=x&limit=0": "query.limit",
}


@pytest.mark.parametrize(("path", "words"), [*PARAMETERS.items()])
def test_bad_parameters(gateway: GatewayProcess, session: str, path: str, words: str) -> None:
    refused(gateway.request("GET", f"/v1/sessions/{session}{path}"), 400, words)
    stream = gateway.request("GET", f"/v1/sessions/{session}{path}", headers={"accept": "text/event-stream"})
    refused(stream, 400, words)


@pytest.mark.parametrize(("path", "words"), [*LIST_PARAMETERS.items()])
def test_bad_parameters_of_lists(gateway: GatewayProcess, path: str, words: str) -> None:
    refused(gateway.request("GET", path), 400, words)


@pytest.mark.parametrize("after", [2, 10**6, 2**61])
def test_a_cursor_from_the_future_is_refused(gateway: GatewayProcess, session: str, after: int) -> None:
    """The log is shorter than what this client has seen: it was restored, and waiting would wait for ever."""
    for path in (f"/v1/sessions/{session}/events", "/v1/events"):
        far = after + 10**5 if path == "/v1/events" else after
        refused(gateway.request("GET", f"{path}?after={far}"), 409, f"cursor {far} is ahead", "after=0")
    assert gateway.get(f"/v1/sessions/{session}/events", after=1) == {"events": [], "cursor": 1, "more": False}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nothing", 404),
        ("GET", "/v2/status", 404),
        ("GET", "/v1/sessions/", 404),
        ("GET", "/v1/status/", 404),
        ("PUT", "/v1/status", 405),
        ("PUT", "/v1/sessions", 405),
        ("DELETE", "/v1/sessions", 405),
        ("GET", "/v1/shutdown", 405),
        ("POST", "/healthz", 405),
        ("TRACE", "/v1/status", 405),
        ("BREW", "/v1/status", 400),
    ],
)
def test_unknown_routes_and_methods(gateway: GatewayProcess, method: str, path: str, status: int) -> None:
    answer = gateway.request(method, path)
    assert answer.status_code == status
    if status == 405:
        refused(answer, 405)
        assert answer.headers["allow"]
    elif status == 404:
        refused(answer, 404, "openapi.json")


def test_a_search_continues_when_what_it_finds_was_just_deleted(gateway: GatewayProcess) -> None:
    session, other = (gateway.create(f"say quagga {name}") for name in ("one", "two"))
    for id in (session, other):
        gateway.until_rest(id)
        until(partial(_found_by, gateway, "quagga", id), "the search finds it")
    gateway.command("DELETE", f"/v1/sessions/{session}", {})
    hits = gateway.get("/v1/search", q="quagga")["hits"]
    assert {hit["session"] for hit in hits} == {other}
