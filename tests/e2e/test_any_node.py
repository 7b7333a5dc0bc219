"""Any client on any node: one cursor for all of them, and a sign-in or sign-out on one holds on all."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psycopg
import pytest
from websockets.exceptions import ConnectionClosed

from tests.e2e.cluster import ProxiedBrowser, cluster, node_database
from tests.e2e.followers import FORMS, Follower, Form, page
from tests.e2e.gateway import GatewayProcess, Json, until
from tests.e2e.proxy import CuttingProxy
from tests.e2e.test_cuts import check
from tests.eventually import PATIENCE
from tests.seed import new_seed

Nodes = list[GatewayProcess]
MESSAGES = 12


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    only_hints = {"store.sweep": 3600.0}  # else followers look once a minute, whatever they hear
    with cluster(tmp_path_factory.mktemp("nodes"), **only_hints) as found:
        yield found


def signed_in(nodes: Nodes) -> ProxiedBrowser:
    """With a code of the first node, used on the second."""
    browser = ProxiedBrowser()
    assert browser.sign_in(nodes[1], nodes[0].command("POST", "/v1/codes")["code"]) == 202
    return browser


def test_a_code_of_one_node_signs_in_on_another_once(nodes: Nodes) -> None:
    code = nodes[0].command("POST", "/v1/codes")["code"]
    browser, late = ProxiedBrowser(), ProxiedBrowser()
    assert browser.sign_in(nodes[1], code) == 202
    assert [late.sign_in(node, code) for node in nodes] == [401, 401, 401]


def test_a_browser_that_signed_in_on_one_node_is_known_on_every_other_at_once(nodes: Nodes) -> None:
    for _ in range(5):
        browser = signed_in(nodes)
        assert [browser.request(node, "GET", "/v1/devices/me").status_code for node in nodes] == [200, 200, 200]
        nodes[0].command("DELETE", f"/v1/devices/{browser.id}")


def test_what_one_node_stores_of_a_browser_the_others_show(nodes: Nodes) -> None:
    browser = signed_in(nodes)
    session = nodes[0].create("say hello")
    version = nodes[0].until_rest(session)[-1]["version"]
    assert browser.request(nodes[0], "POST", "/v1/seen", json={"session": session, "version": version}).is_success
    for node in nodes:
        own = browser.request(node, "GET", "/v1/devices/me").json()
        assert (own["cursors"], own["last_session"]) == ({session: version}, session)
    assert browser.request(nodes[2], "PATCH", f"/v1/devices/{browser.id}", json={"name": "Ada"}).status_code == 202
    for node in nodes:
        until(lambda node=node: name_on(node, browser) == "Ada", "its name is known")  # type: ignore[misc]


def test_a_load_balancer_learns_who_is_ready_and_strangers_learn_nothing_else(nodes: Nodes) -> None:
    stranger = ProxiedBrowser()
    for node in nodes:
        answer = stranger.request(node, "GET", "/readyz")
        assert (answer.status_code, answer.json()) == (200, {"status": "ready"})
    draining = nodes[2]
    task = draining.command("POST", "/v1/tasks", {"shell": "sleep 999", "cwd": "/"})["task"]  # else it would end
    set_draining(draining, is_so=True)
    until(lambda: stranger.request(draining, "GET", "/readyz").json() == {"status": "draining"}, "it is known")
    assert stranger.request(draining, "GET", "/readyz").status_code == 503
    assert stranger.request(draining, "GET", "/healthz").status_code == 200
    set_draining(draining, is_so=False)
    until(lambda: stranger.request(draining, "GET", "/readyz").status_code == 200, "it is ready again")
    draining.command("POST", f"/v1/tasks/{task}/stop", {})
    draining.until_ended(task)


@pytest.mark.parametrize("form", FORMS)
async def test_promise_4_one_cursor_goes_from_node_to_node_under_cuts(nodes: Nodes, form: Form, tmp_path: Path) -> None:
    """A session that moves between clients of all nodes, followed with one cursor by whichever node comes next."""
    rng = random.Random(new_seed())
    async with AsyncExitStack() as stack:
        proxies = [await stack.enter_async_context(CuttingProxy(node.port, rng, most=20_000)) for node in nodes]
        end = nodes[1].whole_log()[-1]["seq"]
        session = await asyncio.to_thread(nodes[0].create, None, cwd=tmp_path)
        own = RoamingFollower(form, nodes[0], f"/v1/sessions/{session}/events")
        whole = RoamingFollower(form, nodes[0], "/v1/events", after=end, cursor_of="seq")
        own.places = whole.places = [*zip(nodes, proxies, strict=True)]
        following = [asyncio.create_task(one.follow(partial(is_end, session))) for one in (own, whole)]
        for number in range(MESSAGES):
            text = f"say {'x' * rng.randint(0, 500)}\nwrite f{number} ü\nread f{number}"
            await asyncio.to_thread(nodes[number % 3].send, session, text)
        await asyncio.to_thread(nodes[1].send, session, "say the end")
        await asyncio.gather(*following)
        cuts = sum(proxy.cuts for proxy in proxies)
    for node in nodes:
        stored = page(node, own.path, limit=2000)
        assert own.log == stored, "a gap or a duplicate in the session"
        every = page(node, "/v1/events", after=end, limit=2000)
        assert whole.log == every[: len(whole.log)], "a gap or a duplicate in the log"
        assert set(stored) <= set(whole.log)
    assert cuts >= 3
    print(f"{form}: {cuts} cuts, {len(own.log)} and {len(whole.log)} events: 0 gaps, 0 duplicates")


@dataclass(slots=True)
class RoamingFollower(Follower):
    """Goes to the next node whenever its connection is cut."""

    places: list[tuple[GatewayProcess, CuttingProxy]] = field(default_factory=list)

    async def _connection(self, enough: Callable[[Json], bool]) -> bool:
        self.gateway, proxy = self.places[self.cuts % len(self.places)]
        self.via = proxy.port
        return await Follower._connection(self, enough)


def is_end(session: str, record: Json) -> bool:
    event = record["event"]
    return (record["stream"], event["kind"], event.get("turn")) == (f"session/{session}", "TurnFinished", MESSAGES + 1)


@pytest.mark.parametrize("form", FORMS)
async def test_a_client_of_another_node_sees_the_text_grow_then_the_answer_once(nodes: Nodes, form: Form) -> None:
    session = await asyncio.to_thread(nodes[0].create, None)
    follower = Follower(form, nodes[1], f"/v1/sessions/{session}/events")
    following = asyncio.create_task(follower.follow(lambda record: record["event"]["kind"] == "TurnFinished"))
    words = " ".join(f"wort{n}" for n in range(40))
    await asyncio.to_thread(nodes[0].send, session, f"slow 3 {words}")
    await following
    check(follower, page(nodes[2], follower.path))
    assert len(follower.spoken) >= 3, "it grew"


def set_draining(node: GatewayProcess, *, is_so: bool) -> None:
    with psycopg.connect(node_database(node)) as db:
        db.execute("UPDATE holdfast.nodes SET draining = %s WHERE name = %s", [is_so, node.home.name])


def name_on(node: GatewayProcess, browser: ProxiedBrowser) -> str:
    return str({one["id"]: one["name"] for one in node.get("/v1/devices")["devices"]}.get(browser.id))


def test_a_device_that_one_node_revokes_is_cut_off_from_all(nodes: Nodes) -> None:
    browser, stays = signed_in(nodes), signed_in(nodes)
    path = f"/v1/events?after={nodes[2].whole_log()[-1]['seq']}"
    with browser.socket(nodes[2], path) as revoked, stays.socket(nodes[2], path) as other:
        until(lambda: nodes[2].followers() >= 2, "both follow")
        nodes[0].command("DELETE", f"/v1/devices/{browser.id}")
        with pytest.raises(ConnectionClosed):
            while True:
                revoked.recv(PATIENCE)
        nodes[0].create()
        assert "SessionCreated" in str(other.recv(PATIENCE))
    for node in nodes:
        until(lambda node=node: name_on(node, browser) == "None", "it is gone")  # type: ignore[misc]
        assert browser.request(node, "GET", "/v1/devices/me").status_code == 401
        assert stays.request(node, "GET", "/v1/devices/me").status_code == 200
