"""Streams: one cursor, three forms, the same bytes; replay, then tail; deltas in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosedError

from holdfast.timings import USUAL
from tests.e2e.followers import FORMS, Form, Refused, Seen, at_least, collect, ends_with, page, records, stream
from tests.e2e.gateway import GatewayProcess, Json, kinds, of_kind, until

WORDS = [f"wörd{n}" for n in range(40)]
UNKNOWN = "0123456789abcdef"


def path_of(session: str) -> str:
    return f"/v1/sessions/{session}/events"


def heard(enough: Callable[[list[Seen]], bool], event: asyncio.Event) -> Callable[[list[Seen]], bool]:
    """Never enough by itself; the event says that it would have been."""

    def look(seen: list[Seen]) -> bool:
        if enough(seen):
            event.set()
        return False

    return look


def versions(seen: list[Seen]) -> list[int]:
    return [msgspec.json.decode(record)["version"] for record in records(seen)]


# --- the same bytes ---------------------------------------------------------------------------------


async def test_three_forms_and_the_export_are_byte_identical(gateway: GatewayProcess, tmp_path: Path) -> None:
    session = gateway.create(
        'say "quoted" \\ 😀 \x00\nwrite f.txt tëxt\nread f.txt\nread missing\nnonsense', cwd=tmp_path
    )
    for text in ("say one", "fail", "count", "echo"):
        gateway.send(session, text)
    stored = gateway.until_rest(session)
    paged = page(gateway, path_of(session))
    assert [msgspec.json.decode(line) for line in paged] == stored
    for form in FORMS:
        seen = await collect(stream(form, gateway, path_of(session)), at_least(len(stored)))
        assert records(seen) == paged
    export = gateway.request("GET", f"/v1/sessions/{session}/export", params={"format": "jsonl"}).content
    assert export == b"\n".join(paged) + b"\n"


async def test_the_whole_log_is_byte_identical_too(gateway: GatewayProcess) -> None:
    gone = gateway.create("say it")
    gateway.until_rest(gone)
    gateway.command("DELETE", f"/v1/sessions/{gone}")
    gateway.until_rest(gateway.create("say more"))
    paged = page(gateway, "/v1/events", limit=3)
    seqs = [msgspec.json.decode(line)["seq"] for line in paged]
    assert seqs == sorted(set(seqs)), "in order; what was deleted leaves holes"
    for form in FORMS:
        seen = await collect(stream(form, gateway, "/v1/events"), at_least(len(paged)))
        assert records(seen) == paged
        middle = seqs[len(seqs) // 2]
        later = await collect(
            stream(form, gateway, "/v1/events", after=middle),
            at_least(len(paged) - seqs.index(middle) - 1),
        )
        assert records(later) == paged[seqs.index(middle) + 1 :]


async def test_each_session_of_the_whole_log_is_its_own_stream(gateway: GatewayProcess) -> None:
    sessions = [gateway.create(f"say {n}") for n in range(5)]
    for session in sessions:
        gateway.until_rest(session)
    log = [msgspec.json.decode(line) for line in page(gateway, "/v1/events", limit=2000)]
    for session in sessions:
        own = [record for record in log if record["stream"] == f"session/{session}"]
        assert own == gateway.events(session)


# --- replay, then tail ------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
async def test_promise_4_replay_then_tail_without_a_gap(gateway: GatewayProcess, form: Form) -> None:
    """Attach while somebody writes: nothing twice, nothing left out, wherever the cursor stands."""
    session = gateway.create("say 0")
    attached = [
        asyncio.create_task(collect(stream(form, gateway, path_of(session)), ends_with("TurnFinished", count=41)))
    ]
    for number in range(1, 41):
        await asyncio.to_thread(gateway.send, session, f"say {number}")
        if number % 8 == 0:
            whole = ends_with("TurnFinished", count=41)
            attached.append(asyncio.create_task(collect(stream(form, gateway, path_of(session)), whole)))
    stored = page(gateway, path_of(session), limit=2000)
    for task in attached:
        seen = await task
        assert records(seen)[: len(stored)] == stored
        assert versions(seen) == list(range(1, len(versions(seen)) + 1))


@pytest.mark.parametrize("form", FORMS)
async def test_a_cursor_gives_just_what_is_missing(gateway: GatewayProcess, form: Form) -> None:
    session = gateway.create("say it")
    stored = page(gateway, path_of(session)) if gateway.until_rest(session) else []
    for after in range(len(stored)):
        seen = await collect(stream(form, gateway, path_of(session), after=after), at_least(len(stored) - after))
        assert records(seen) == stored[after:]


async def test_last_event_id_wins_over_after(gateway: GatewayProcess) -> None:
    session = gateway.create("say it")
    stored = gateway.until_rest(session)
    seen = await collect(stream("sse", gateway, path_of(session), after=0, last="3"), at_least(len(stored) - 3))
    assert versions(seen) == list(range(4, len(stored) + 1))


@pytest.mark.parametrize("last", ["x", "-1", "1.5", "9" * 30, "٣"])
async def test_bad_last_event_ids(gateway: GatewayProcess, last: str) -> None:
    session = gateway.create()
    answer = gateway.request(
        "GET",
        path_of(session),
        headers={"accept": "text/event-stream", "last-event-id": last.encode()},  # type: ignore[dict-item]
    )
    assert answer.status_code == 400
    assert "cursor" in answer.json()["error"]["message"]


@pytest.mark.parametrize("after", ["-1", "x", "", "9" * 30])
async def test_bad_cursors_of_a_socket(gateway: GatewayProcess, after: str) -> None:
    session = gateway.create()
    seen = await _refused_socket(gateway, f"{path_of(session)}?after={after}")
    assert seen["error"]["code"] == "bad_request"


async def test_promise_4_a_long_session_comes_in_several_frames(gateway: GatewayProcess) -> None:
    session = gateway.create()
    for _ in range(8):
        gateway.send(session, "\n".join(["call inbox {}"] * 40))
    stored = await asyncio.to_thread(gateway.until_rest, session)
    assert len(stored) > 1200
    for form in FORMS:
        seen = await collect(stream(form, gateway, path_of(session)), at_least(len(stored)))
        assert versions(seen) == list(range(1, len(stored) + 1))
        rest = await collect(stream(form, gateway, path_of(session), after=333), at_least(len(stored) - 333))
        assert records(rest) == records(seen)[333:]


async def test_promise_4_many_followers_see_everything_at_once(tmp_path: Path) -> None:
    """They share their reads; none of them may sleep through what another one read. No heartbeat wakes them here."""
    with GatewayProcess(tmp_path / "home", timings={"gateway.heartbeat": 3600.0}).start() as gateway:
        await many_follow(gateway)


async def many_follow(gateway: GatewayProcess) -> None:
    session = gateway.create()
    count = 40
    tasks = []
    for number in range(24):
        whole = collect(stream(FORMS[number % 2], gateway, path_of(session)), ends_with("TurnFinished", count=count))
        tasks.append(asyncio.create_task(whole))
    await asyncio.to_thread(until, lambda: gateway.followers() == len(tasks), "all of them follow")
    for number in range(count):
        await asyncio.to_thread(gateway.send, session, f"say {number}")
    everything = await asyncio.gather(*tasks)
    assert {tuple(records(seen)) for seen in everything} == {tuple(page(gateway, path_of(session)))}


# --- deltas -----------------------------------------------------------------------------------------


def check_deltas(seen: list[Seen], *, turn: int = 1) -> str:
    """Between request and answer only, without a hole; the text that a client has at the end."""
    text = ""
    asking = False
    for one in seen:
        if one.kind == "record":
            event = one.json["event"]
            if event["kind"] in ("ModelRequested", "ModelResponded", "ModelInterrupted", "ModelFailed"):
                asking = event["kind"] == "ModelRequested"
                text = "" if asking else text
                if event["kind"] == "ModelResponded":
                    assert event["text"].startswith(text)
        elif one.kind == "delta":
            delta = one.json
            assert asking, "a delta outside of a request and its answer"
            assert delta["turn"] == turn
            assert delta["offset"] == len(text)
            text += delta["text"]
    return text


@pytest.mark.parametrize("form", FORMS)
async def test_a_client_that_attaches_in_the_middle_gets_the_text_so_far(gateway: GatewayProcess, form: Form) -> None:
    """It hangs after its words, until it is stopped."""
    session, ended = gateway.create(f"slow 1 {' '.join(WORDS)}\nhang"), ends_with("TurnFinished")
    whole = asyncio.create_task(collect(stream(form, gateway, path_of(session)), ended))
    await collect(stream("ws", gateway, path_of(session)), lambda seen: sum(one.kind == "delta" for one in seen) > 9)
    everything = asyncio.Event()
    spoken = heard(lambda seen: check_deltas(seen) == " ".join(WORDS), everything)
    late = asyncio.create_task(
        collect(stream(form, gateway, path_of(session)), lambda seen: spoken(seen) or ended(seen))
    )
    await everything.wait()
    await asyncio.to_thread(gateway.command, "POST", f"/v1/sessions/{session}/stop")
    first = next(one.json for one in await late if one.kind == "delta")
    assert first["offset"] == 0
    assert first["text"].startswith(" ".join(WORDS[:9])), "the text so far, at once"
    for seen in (await late, await whole):
        partial = of_kind([one.json for one in seen if one.kind == "record"], "ModelInterrupted")[0]["text"]
        assert check_deltas(seen) == partial == " ".join(WORDS)
    assert len([one for one in await whole if one.kind == "delta"]) > 9, "word by word"


async def test_no_delta_before_its_request_and_none_after_its_answer(gateway: GatewayProcess, tmp_path: Path) -> None:
    """Many short steps, with tools in between, watched by many."""
    lines = "\n".join(f"slow 0.05 a{n} b{n} c{n}\nwrite f{n} x" for n in range(8))
    session = gateway.create(cwd=tmp_path)
    tasks = [
        asyncio.create_task(collect(stream(FORMS[n % 2], gateway, path_of(session)), ends_with("TurnFinished")))
        for n in range(10)
    ]
    await asyncio.to_thread(until, lambda: gateway.followers() == len(tasks), "all of them follow")
    await asyncio.to_thread(gateway.send, session, lines)
    everything = await asyncio.gather(*tasks)
    for seen in everything:
        check_deltas(seen)
    assert any(one.kind == "delta" for seen in everything for one in seen)
    assert len({tuple(records(seen)) for seen in everything}) == 1


async def test_a_stopped_answer_ends_its_deltas(gateway: GatewayProcess) -> None:
    session = gateway.create("slow 30 " + " ".join(WORDS * 10))
    watching = asyncio.create_task(collect(stream("sse", gateway, path_of(session)), ends_with("TurnFinished")))
    await collect(stream("ws", gateway, path_of(session)), lambda seen: sum(one.kind == "delta" for one in seen) > 4)
    await asyncio.to_thread(gateway.command, "POST", f"/v1/sessions/{session}/stop")
    seen = await watching
    text = check_deltas(seen)
    partial = of_kind([one.json for one in seen if one.kind == "record"], "ModelInterrupted")[0]
    assert partial["text"].startswith(text)
    assert partial["reason"] == "stopped by api"


# --- ends -------------------------------------------------------------------------------------------


async def _refused_socket(gateway: GatewayProcess, path: str) -> Json:
    headers = {"authorization": f"Bearer {gateway.token}"}
    url = gateway.url.replace("http", "ws") + path
    async with connect(url, additional_headers=headers, proxy=None) as socket:
        message = await socket.recv()
        with pytest.raises(ConnectionClosedError) as closed:
            await socket.recv()
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 4404
    found: Json = msgspec.json.decode(message)
    return found


async def test_unknown_and_deleted_sessions_in_all_forms(gateway: GatewayProcess) -> None:
    gone = gateway.create()
    gateway.command("DELETE", f"/v1/sessions/{gone}")
    for id, status, code in (
        (UNKNOWN, 404, "not_found"),
        (gone, 410, "gone"),
        (gone[:8], 410, "gone"),
        ("x", 404, "not_found"),
    ):
        answer = gateway.request("GET", path_of(id))
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
        with pytest.raises(Refused) as refused:
            await collect(stream("sse", gateway, path_of(id)), lambda _: False)
        assert (refused.value.status, refused.value.error["code"]) == (status, code)
        assert (await _refused_socket(gateway, path_of(id)))["error"]["code"] == code


async def test_a_cursor_from_the_future_in_all_forms(gateway: GatewayProcess) -> None:
    session = gateway.create()
    assert gateway.request("GET", path_of(session), params={"after": 99}).status_code == 409
    with pytest.raises(Refused) as refused:
        await collect(stream("sse", gateway, path_of(session), after=99), lambda _: False)
    assert refused.value.status == 409
    assert (await _refused_socket(gateway, f"{path_of(session)}?after=99"))["error"]["code"] == "conflict"


@pytest.mark.parametrize("form", FORMS)
async def test_deletion_ends_the_stream_at_once_and_says_why(gateway: GatewayProcess, form: Form) -> None:
    session = gateway.create("say it")
    stored = gateway.until_rest(session)
    replayed = asyncio.Event()
    following = asyncio.create_task(
        collect(stream(form, gateway, path_of(session)), heard(at_least(len(stored)), replayed))
    )
    await replayed.wait()
    await asyncio.to_thread(gateway.command, "DELETE", f"/v1/sessions/{session}")
    seen = await following
    assert len(records(seen)) == len(stored)
    assert [one.kind for one in seen[len(stored) :]] == ["end"]
    assert seen[-1].json["error"]["code"] == "gone"


# --- a gateway of their own -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def nervous(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A gateway with a quick pulse."""
    timings = {"gateway.heartbeat": 0.3}
    with GatewayProcess(tmp_path_factory.mktemp("nervous") / "home", timings=timings) as process:
        yield process.start()


def test_the_pulse_is_that_of_the_documents() -> None:
    assert USUAL.gateway.heartbeat == 10
    assert "after every 10 s of silence" in Path("docs/api.md").read_text()


@pytest.mark.parametrize("form", FORMS)
async def test_silence_has_a_heartbeat(nervous: GatewayProcess, form: Form) -> None:
    session = nervous.create()
    for path in (path_of(session), "/v1/events"):
        began = asyncio.get_running_loop().time()
        seen = await collect(
            stream(form, nervous, path), lambda seen: sum(one.kind == "heartbeat" for one in seen) >= 3
        )
        assert asyncio.get_running_loop().time() - began > 0.8
        assert [one.kind for one in seen[-3:]] == ["heartbeat"] * 3


async def test_a_heartbeat_is_no_excuse(nervous: GatewayProcess) -> None:
    """After a long silence the next event comes at once, and only once."""
    session = nervous.create()
    silent, ended = asyncio.Event(), ends_with("TurnFinished")
    beaten = heard(lambda seen: sum(one.kind == "heartbeat" for one in seen) >= 2, silent)
    following = asyncio.create_task(
        collect(stream("ws", nervous, path_of(session)), lambda seen: beaten(seen) or ended(seen))
    )
    await silent.wait()
    await asyncio.to_thread(nervous.send, session, "say it")
    seen = await following
    assert versions(seen) == list(range(1, len(versions(seen)) + 1))


@pytest.mark.parametrize("form", FORMS)
async def test_promise_4_a_shutdown_ends_every_stream_in_order(tmp_path: Path, form: Form) -> None:
    with GatewayProcess(tmp_path / "home").start() as gateway:
        session = gateway.create("slow 600 " + " ".join(WORDS * 99))
        spoken = asyncio.Event()
        enough = heard(lambda seen: any(one.kind == "delta" for one in seen), spoken)
        following = asyncio.create_task(collect(stream(form, gateway, path_of(session)), enough))
        await spoken.wait()
        assert await asyncio.to_thread(gateway.terminate) == 0
        if form == "ws":
            with pytest.raises(ConnectionClosedError) as closed:
                await following
            assert closed.value.rcvd is not None and closed.value.rcvd.code == 1012
        else:
            assert kinds([one.json for one in await following if one.kind == "record"])[-1] in (
                "ModelRequested",
                "TurnSuspended",
            )
        assert not [line for line in gateway.log if line["level"] not in ("info",)], gateway.log
