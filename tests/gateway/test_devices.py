"""Browsers: a code lets one in once, a cookie is a credential, revoking cuts at once, cursors are kept."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from holdfast.gateway.devices import name_of
from tests.e2e.browser import Browser, log_in
from tests.e2e.gateway import GatewayProcess, of_kind, until
from tests.eventually import PATIENCE

EVIL = "https://evil.example"
USED = "This sign-in code was used or is older than 10 min. Run `holdfast open` for a new one."


@pytest.fixture
def browser(gateway: GatewayProcess) -> Browser:
    return Browser(gateway)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[GatewayProcess]:
    """A gateway to be killed."""
    with GatewayProcess(tmp_path / "home") as process:
        yield process.start()


def code(gateway: GatewayProcess) -> str:
    return str(gateway.command("POST", "/v1/codes")["code"])


# --- signing in -------------------------------------------------------------------------------------


def test_a_code_is_exchanged_for_a_cookie(gateway: GatewayProcess) -> None:
    answer = log_in(gateway, code(gateway), agent="Mozilla/5.0 (X11; Linux x86_64) Chrome/140.0 Safari/537.36")
    assert answer.status_code == 202
    assert set(answer.json()) == {"device", "name"} and answer.json()["name"] == "Chrome on Linux"
    cookie, *flags = answer.headers["set-cookie"].split("; ")
    assert cookie.startswith(f"holdfast_{gateway.port}=") and len(cookie) > 50
    assert sorted(flags) == ["HttpOnly", "Max-Age=31536000", "Path=/", "SameSite=Strict"]


def test_a_code_works_once(gateway: GatewayProcess) -> None:
    given = code(gateway)
    assert log_in(gateway, given).status_code == 202
    again = log_in(gateway, given)
    assert again.status_code == 401 and "set-cookie" not in again.headers
    assert again.json()["error"]["message"] == USED


def test_right_code_is_accepted_however_many_wrong_ones_strangers_send(gateway: GatewayProcess) -> None:
    given = code(gateway)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda number: log_in(gateway, f"wrong{number}"), range(64)))
    assert {answer.status_code for answer in answers} == {401}
    assert answers[0].json()["error"]["message"] == USED
    assert log_in(gateway, given).status_code == 202


def test_a_code_is_invalid_after_its_device_is_revoked(gateway: GatewayProcess) -> None:
    phone, other = Browser(gateway), Browser(gateway)
    codes = [browser.request("POST", "/v1/codes").json()["code"] for browser in (phone, other)]
    gateway.command("DELETE", f"/v1/devices/{phone.id}")
    assert [log_in(gateway, given).status_code for given in codes] == [401, 202]


@pytest.mark.parametrize("body", [{}, {"code": ""}, {"code": 1}, {"code": "x" * 201}, {"code": "x", "more": 1}, []])
def test_a_malformed_sign_in_is_refused(gateway: GatewayProcess, body: object) -> None:
    answer = httpx.post(gateway.url + "/v1/login", json=body, headers={"origin": gateway.url})
    assert answer.status_code == 400


@pytest.mark.parametrize("origin", [EVIL, "null", None, "http://127.0.0.1:1"])
def test_only_our_own_page_signs_in_and_the_code_is_not_used_up(gateway: GatewayProcess, origin: str | None) -> None:
    given = code(gateway)
    assert log_in(gateway, given, origin=origin).status_code == 403
    assert log_in(gateway, given).status_code == 202


def test_an_old_code_is_refused(own: GatewayProcess) -> None:
    given = code(own)
    own.kill9()
    with closing(sqlite3.connect(own.home / "holdfast.db")) as db, db:
        assert db.execute("UPDATE codes SET expires_at = expires_at - 600001").rowcount == 1
    answer = log_in(own.start(), given)
    assert answer.status_code == 401 and answer.json()["error"]["message"] == USED


def test_a_code_outlives_a_restart_but_not_its_use(own: GatewayProcess) -> None:
    first, second = code(own), code(own)
    assert log_in(own, first).status_code == 202
    own.kill9()
    own.start()
    assert log_in(own, second).status_code == 202
    assert log_in(own, first).status_code == 401
    own.kill9()
    assert log_in(own.start(), second).status_code == 401


def test_no_secret_is_kept(own: GatewayProcess) -> None:
    waiting, browser = code(own), Browser(own)
    own.terminate()
    stored = (own.home / "holdfast.db").read_bytes() + (own.home / "logs" / "gateway.log").read_bytes()
    assert waiting.encode() not in stored
    assert browser.cookie.partition("=")[2].encode() not in stored


def test_a_signed_in_page_can_let_another_device_in(gateway: GatewayProcess, browser: Browser) -> None:
    given = browser.request("POST", "/v1/codes").json()["code"]
    assert log_in(gateway, given, name="  phone\n").json()["name"] == "phone"


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Mobile Safari/604.1", "Safari on iPhone"),
        ("Mozilla/5.0 (Linux; Android 15) Chrome/140.0 Mobile Safari/537.36", "Chrome on Android"),
        ("Mozilla/5.0 (Windows NT 10.0; Win64) Chrome/140.0 Safari/537.36 Edg/140.0", "Edge on Windows"),
        ("curl/8", "A browser"),
    ],
)
def test_a_device_is_named_after_its_browser(agent: str, name: str) -> None:
    assert name_of(None, agent) == name
    assert name_of("\x07 mine", agent) == "mine"


# --- the cookie as a credential ---------------------------------------------------------------------


def test_a_cookie_lets_in_and_its_commands_are_by_web(gateway: GatewayProcess, browser: Browser) -> None:
    answer = browser.request("POST", "/v1/sessions", json={"text": "say hi"})
    assert answer.status_code == 202
    (said,) = of_kind(gateway.until_rest(answer.json()["session"]), "InputReceived")
    assert said["by"]["type"] == "person" and said["by"]["client"] == "web" and said["by"]["device"]


@pytest.mark.parametrize("origin", [EVIL, "null", None, "http://127.0.0.1:1"])
@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
def test_a_good_cookie_from_a_foreign_page_changes_nothing(
    gateway: GatewayProcess, browser: Browser, method: str, origin: str | None
) -> None:
    session = gateway.create()
    paths = {"POST": f"/v1/sessions/{session}/archive", "PATCH": f"/v1/sessions/{session}"}
    answer = browser.request(method, paths.get(method, f"/v1/sessions/{session}"), origin=origin, json={"title": "x"})
    assert answer.status_code == 403
    assert gateway.session(session)["version"] == 1


@pytest.mark.parametrize("origin", [EVIL, "null", None, "http://127.0.0.1:1"])
def test_a_good_cookie_from_a_foreign_page_opens_no_socket(browser: Browser, origin: str | None) -> None:
    with pytest.raises(InvalidStatus) as refused:
        browser.socket(origin=origin)
    assert refused.value.response.status_code == 403


def test_a_good_cookie_from_our_page_opens_a_socket_and_reads_without_an_origin(browser: Browser) -> None:
    with browser.socket() as socket:
        assert "events" in str(socket.recv(PATIENCE))
    assert browser.request("GET", "/v1/status", origin=None).status_code == 200
    assert browser.request("GET", "/v1/status", origin=EVIL).status_code == 403


def test_a_cookie_under_another_name_or_cut_short_is_none(gateway: GatewayProcess, browser: Browser) -> None:
    name, _, value = browser.cookie.partition("=")
    for cookie in (f"holdfast={value}", f"holdfast_1={value}", f"{name}={value[:-1]}", f"{name}=", f"{name}x={value}"):
        assert httpx.get(gateway.url + "/v1/status", headers={"cookie": cookie}).status_code == 401
    tossed = f"{name}=planted; other=1; {name}={value}"
    assert httpx.get(gateway.url + "/v1/status", headers={"cookie": tossed}).status_code == 200


def test_a_wrong_token_is_not_saved_by_a_good_cookie(gateway: GatewayProcess, browser: Browser) -> None:
    headers = {"cookie": browser.cookie, "authorization": "Bearer wrong"}
    assert httpx.get(gateway.url + "/v1/status", headers=headers).status_code == 401


# --- devices ----------------------------------------------------------------------------------------


def test_devices_are_listed_with_who_is_here(gateway: GatewayProcess) -> None:
    one, other = Browser(gateway, name="one"), Browser(gateway, name="other")
    with one.socket(), one.socket():

        def connected() -> bool:
            found = {row["id"]: row for row in other.get("/v1/devices")["devices"]}
            assert found[other.id]["current"] and not found[one.id]["current"]
            return (found[one.id]["connected"], found[other.id]["connected"]) == (2, 0)

        until(connected, "both sockets are counted")
    shown = other.get("/v1/devices")["devices"][0]
    assert set(shown) == {"id", "name", "created_at", "seen_at", "current", "connected"}
    assert not any(row["current"] for row in gateway.get("/v1/devices")["devices"])


def test_device_keeps_the_name_that_it_was_given(gateway: GatewayProcess) -> None:
    browser = Browser(gateway, name="Chrome on Linux")
    renamed = gateway.request("PATCH", f"/v1/devices/{browser.id}", json={"name": "  Anna's phone "})
    assert renamed.status_code == 202 and renamed.json()["name"] == "Anna's phone"
    for name in ("", "   ", "\u202ephone", "x" * 81):
        assert gateway.request("PATCH", f"/v1/devices/{browser.id}", json={"name": name}).status_code == 400
    gateway.terminate()
    gateway.start()
    assert {row["id"]: row["name"] for row in gateway.get("/v1/devices")["devices"]}[browser.id] == "Anna's phone"


def test_the_token_is_no_device(gateway: GatewayProcess) -> None:
    session = gateway.create()
    assert gateway.request("GET", "/v1/devices/me").status_code == 404
    assert gateway.request("POST", "/v1/logout").status_code == 404
    assert gateway.request("POST", "/v1/seen", json={"session": session, "version": 1}).status_code == 404
    assert gateway.request("DELETE", "/v1/devices/0123456789abcdef").status_code == 404


def test_revoking_kills_the_cookie_and_cuts_streams_and_sockets(gateway: GatewayProcess) -> None:
    lost, other = Browser(gateway), Browser(gateway)
    session = gateway.create()
    headers = {"cookie": lost.cookie, "accept": "text/event-stream"}
    with (
        other.socket() as kept,
        lost.socket() as socket,
        httpx.stream("GET", f"{gateway.url}/v1/sessions/{session}/events", headers=headers, timeout=PATIENCE) as stream,
    ):
        lines = stream.iter_lines()
        assert "SessionCreated" in next(line for line in lines if line.startswith("data"))
        socket.recv(PATIENCE)
        kept.recv(PATIENCE)
        answer = other.request("DELETE", f"/v1/devices/{lost.id}")
        assert answer.status_code == 202 and answer.json()["device"] == lost.id
        assert lost.request("GET", "/v1/status").status_code == 401
        rest = list(lines)
        assert "event: end" in rest and any("revoked" in line for line in rest)
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                socket.recv(PATIENCE)
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 4401
        gateway.create()
        assert "SessionCreated" in str(kept.recv(PATIENCE))
    with pytest.raises(InvalidStatus):
        lost.socket()
    assert lost.id not in [row["id"] for row in gateway.get("/v1/devices")["devices"]]


def test_a_request_from_before_a_revocation_gets_nothing_after_it(gateway: GatewayProcess, browser: Browser) -> None:
    task = gateway.command("POST", "/v1/tasks", {"argv": ["sleep", "60"], "cwd": "/"})["task"]
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(browser.request, "GET", f"/v1/tasks/{task}/wait?seconds=60")
        time.sleep(0.5)  # it is inside by then; if not, it comes too late, which is no better
        gateway.command("DELETE", f"/v1/devices/{browser.id}")
        gateway.command("POST", f"/v1/tasks/{task}/stop", {"force": True})
        answer = asking.result()
    assert answer.status_code == 401 and task not in answer.text


def test_a_device_can_revoke_itself_and_is_informed(browser: Browser) -> None:
    answer = browser.request("DELETE", f"/v1/devices/{browser.id}")
    assert answer.status_code == 202 and answer.json()["device"] == browser.id
    assert browser.request("GET", "/v1/status").status_code == 401


def test_signing_out_forgets_the_device(gateway: GatewayProcess, browser: Browser) -> None:
    answer = browser.request("POST", "/v1/logout")
    assert answer.status_code == 202 and "Max-Age=0" in answer.headers["set-cookie"]
    assert browser.request("GET", "/v1/status").status_code == 401


def test_a_revoked_device_stays_revoked_after_a_restart(own: GatewayProcess) -> None:
    gone, kept = Browser(own), Browser(own)
    kept.request("DELETE", f"/v1/devices/{gone.id}")
    port = own.port
    own.kill9()
    own.start(port)
    assert gone.request("GET", "/v1/status").status_code == 401
    assert kept.request("GET", "/v1/status").status_code == 200


# --- read cursors -----------------------------------------------------------------------------------


def test_a_cursor_only_grows_and_outlives_a_restart(own: GatewayProcess) -> None:
    browser = Browser(own)
    session = own.create("say hi")
    version = own.until_rest(session)[-1]["version"]
    seen = browser.see(session, 3)
    assert (seen.status_code, seen.json()) == (202, {"session": session, "version": 3})
    assert browser.see(session, 2).json()["version"] == 3
    port = own.port
    own.kill9()
    own.start(port)
    me = browser.get("/v1/devices/me")
    assert me["last_session"] == session and me["cursors"] == {session: 3}
    assert me["device"]["id"] == browser.id and me["device"]["current"]
    assert browser.see(session, version).json()["version"] == version
    assert own.request("DELETE", f"/v1/sessions/{session}").status_code == 202
    me = browser.get("/v1/devices/me")
    assert (me["last_session"], me["cursors"]) == ("", {})


def test_nobody_has_seen_what_is_not_there(gateway: GatewayProcess, browser: Browser) -> None:
    session = gateway.create()
    assert browser.see(session, 2).status_code == 409
    assert browser.see("0123456789abcdef", 1).status_code == 404
    assert browser.see(session, -1).status_code == 400
    assert browser.get("/v1/devices/me")["cursors"] == {}


def test_unread_counts_the_agents_texts_behind_the_cursor(gateway: GatewayProcess) -> None:
    before = gateway.create("say old")
    gateway.until_rest(before)
    one, other = Browser(gateway), Browser(gateway)
    session = gateway.create("say one")
    gateway.until_rest(session)
    gateway.send(session, "say two")
    records = gateway.until_rest(session)
    answers = [record["version"] for record in records if record["event"]["kind"] == "ModelResponded"]
    assert (one.unread(session), one.unread(before)) == (2, 0)
    one.see(session, answers[0])
    assert (one.unread(session), other.unread(session)) == (1, 2)
    one.see(session, len(records))
    listed = {row["id"]: row["unread"] for row in one.get("/v1/sessions?limit=500")["sessions"]}
    assert (listed[session], listed[before]) == (0, 0)
    assert gateway.session(session)["unread"] == 0


def test_all_unread_is_counted_by_kind_and_not_by_page(gateway: GatewayProcess) -> None:
    browser = Browser(gateway)
    mine = [gateway.create("say one") for _ in range(2)]
    background = gateway.command("POST", "/v1/tasks/agents", {"prompt": "say hi\nsay ho"})["session"]
    for session in (*mine, background):
        gateway.until_rest(session)
    one = {"sessions": 1, "messages": 1}
    none = {"sessions": 0, "messages": 0}
    assert browser.get("/v1/unread") == {"mine": {"sessions": 2, "messages": 2}, "worker": none, "background": one}
    browser.see(mine[0], 5)
    assert browser.get("/v1/unread")["mine"] == one
    gateway.command("POST", f"/v1/sessions/{mine[1]}/archive", {})
    assert browser.get("/v1/unread") == {"mine": none, "worker": none, "background": one}
    assert gateway.get("/v1/unread") == {"mine": none, "worker": none, "background": none}  # no device


# --- while away -------------------------------------------------------------------------------------


def test_while_away_says_what_was_missed(gateway: GatewayProcess, browser: Browser) -> None:
    session = gateway.create("say one")
    seen = len(gateway.until_rest(session))
    browser.see(session, seen)
    for text in ("say two", "read nowhere.txt", "fail"):
        gateway.send(session, text)
        gateway.until_rest(session)
    task = gateway.command("POST", "/v1/tasks", {"argv": ["false"], "session": session, "cwd": "/"})["task"]
    gateway.until_event(session, "NoteReceived")
    records = gateway.events(session)
    texts = [
        record["version"]
        for record in records
        if record["version"] > seen and record["event"]["kind"] == "ModelResponded" and record["event"]["text"].strip()
    ]
    found = browser.get(f"/v1/sessions/{session}/away")
    assert found == {
        "after": seen,
        "version": len(records),
        "messages": len(texts),
        "first": texts[0],
        "since": records[seen - 1]["at"],
        "looked_at": found["looked_at"],
        "tool_calls": len([r for r in records[seen:] if r["event"]["kind"] == "ToolCallFinished"]),
        "tasks": {"done": 0, "failed": 1, "stopped": 0, "lost": 0},
        "questions": 0,
        "failures": 1,
    }
    assert found["tool_calls"] == 1 and task
    assert records[seen - 1]["at"] <= found["looked_at"] <= records[seen]["at"]
    assert gateway.get(f"/v1/sessions/{session}/away", after=seen) == found | {"looked_at": 0}  # no device
    browser.see(session, seen)  # nothing new was read, but it was looked at
    again = browser.get(f"/v1/sessions/{session}/away")
    assert again["after"] == seen and again["looked_at"] >= records[-1]["at"]
    nothing = browser.get(f"/v1/sessions/{session}/away?after={len(records)}")
    assert (nothing["messages"], nothing["first"], nothing["failures"]) == (0, None, 0)
    assert browser.request("GET", f"/v1/sessions/{session}/away?after={len(records) + 1}").status_code == 409
