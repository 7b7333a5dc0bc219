"""Pictures of the main pages at three widths in two themes, from a gateway with a little story in it.

python -m tests.web.screenshots [DIRECTORY [PAGE …]]    all of them, or only these pages; by default into .screenshots.
                                                        With all of them the README's are renewed in docs, too.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, expect, sync_playwright

from tests.e2e.gateway import GatewayProcess, until
from tests.web.checks import loaded
from tests.web.conftest import SETTINGS, why_not
from tests.web.user import CHROMIUM, SECTIONS, User, new_context

SHOWN = ("away-light", "chat-dark", "home-light", "task-dark", "away-phone-light", "card-light")
DOCS = Path(__file__).parents[2] / "docs" / "screenshots"
DESK = {"width": 1440, "height": 900}
MIDDLE = {"width": 1024, "height": 768}
PHONE = {"width": 390, "height": 844}
FINDING = """say `c41f9e2` reads promotions **once per line item**: 39 queries for a median cart.
say | version | p95 | queries |
say | --- | --- | --- |
say | 4.11 | 236 ms | 1 |
say | 4.12 | 918 ms | 39 |
say ```python
say promotions = load_promotions(cart.skus)  # one query for the whole cart
say ```
say Two fixes bring it under 250 ms:
say 1. one batched query
say 2. a cache that lives for the request"""
BUILD = r"""for n in checkout-domain pricing-core tower-http sqlx-postgres; do
printf '   \033[1;32mCompiling\033[0m %s v4.12.0\n' $n; sleep 0.1; done
printf '\033[1;33mwarning\033[0m\033[1m: unused variable: `promo`\033[0m\n  \033[34m-->\033[0m src/cart.rs:118:13\n'
seq 1 400 | sed 's/^/test case /'
printf '\033[1;31merror\033[0m: linking failed, out of memory\n'; exit 137"""

OUTSIDERS = """
[profiles.outsider]
argv = ["{python}", "{agent}", "memory={memory}"]

[profiles.forgetful]
argv = ["{python}", "{agent}", "memory={memory}", "amnesia"]

[notify.webhooks.team]
url = "https://127.0.0.1:9/team"
on = ["approval", "blocked"]
"""
AGENT = Path(__file__).parents[1] / "agents" / "scripted_agent.py"
BUSY = """n=0; while [ $n -lt 900 ]; do n=$((n+1)); echo "tests/importer/test_golden.py::test_case_$n PASSED"
i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; sleep 0.3; done"""


def story(gateway: GatewayProcess) -> dict[str, str]:
    """A regression that is looked for, a build that failed, a server that runs, a command that waits for a word."""
    client = gateway.client

    def session(title: str, text: str, profile: str = "demo") -> str:
        body = {"title": title, "text": text, "profile": profile}
        return str(client.post("/v1/sessions", json=body).json()["session"])

    def rest(id: str) -> None:
        until(
            lambda: client.get(f"/v1/sessions/{id}").json()["session"]["state"] == "idle", "it is at rest", seconds=30
        )

    for title in ("Why does the cache miss?", "Upgrade to Python 3.13", "Explain the tax rounding rules"):
        rest(session(title, "say The notes are in `docs/notes.md`."))
    failed = session("Nightly build on arm64", "sh exit 3\nfail")
    rest(failed)
    build = client.post("/v1/tasks", json={"shell": BUILD, "name": "make image ARCH=arm64", "session": failed}).json()[
        "task"
    ]
    client.post(
        "/v1/tasks", json={"shell": "python3 -m http.server 0 --bind 127.0.0.1", "name": "python3 -m http.server 8765"}
    )
    busy = client.post("/v1/tasks", json={"shell": BUSY, "name": "pytest -q tests/importer -n 6"}).json()["task"]
    main = session(
        "Checkout p95 regression", "sh git --version\nsh echo 'run 6/6 p95 918 ms limit 300 ms'; seq 1 30\n" + FINDING
    )
    rest(main)
    session("Cut over the image CDN", "sh terraform apply -target=cdn", profile="careful")
    port_session = session(
        "Port importer to streaming",
        "slow 600 " + "The golden files are read one by one, and none of them differs so far. " * 30,
    )
    prompt = {"prompt": "slow 600 Check every command of the README on a clean machine.", "session": main}
    agent = client.post("/v1/tasks/agents", json=prompt).json()["task"]
    client.get(f"/v1/tasks/{build}/wait", params={"seconds": 20})
    client.post(f"/v1/sessions/{main}/pin", json={"pinned": True})
    time.sleep(2)
    return {"main": main, "build": build, "port": port_session, "busy": busy, "agent": agent}


def outsider(gateway: GatewayProcess, place: Path) -> dict[str, str]:
    """Sessions of an external agent: one works by a plan and asks for a permission, one forgot what was said."""

    def session(title: str, text: str, profile: str) -> str:
        body = {"title": title, "text": text, "profile": profile, "cwd": str(place)}
        return str(gateway.client.post("/v1/sessions", json=body).json()["session"])

    def stands(id: str, state: str) -> None:
        until(lambda: gateway.client.get(f"/v1/sessions/{id}").json()["session"]["state"] == state, state, seconds=30)

    asks = session(
        "Make the retry budget configurable",
        "Make the retry budget configurable, and test it.\n!think The budget is read in three places.\n"
        "!plan Read the budget from the settings;Use it in all three places;Test the limits\n"
        "!call c1 read src/payments/retry.py\n!call c2 execute grep -rn RETRY_BUDGET src\n"
        "!say The budget is a constant in three files. I change the first one now.\n"
        "!ask c3 sed -i s/RETRY_BUDGET/settings.retry_budget/ src/payments/retry.py",
        "outsider",
    )
    stands(asks, "waiting")
    forgets = session("Name the release", "Remember the word kelp.\n!say Done.", "forgetful")
    stands(forgets, "idle")
    gateway.client.post(
        f"/v1/sessions/{forgets}/messages", json={"text": f"!once {place.parent / 'died'} die 3\n!say Here I am again."}
    )
    stands(forgets, "idle")
    gateway.client.post(
        f"/v1/sessions/{forgets}/messages",
        json={"text": "Which word was it?\n!say I was told only in short what was said before: the word is kelp."},
    )
    stands(forgets, "idle")
    return {"outsider": asks, "forgetful": forgets}


def changed(gateway: GatewayProcess, place: Path) -> dict[str, str]:
    """A command that changed files in a repository."""
    (place / "retry.py").write_text("BUDGET = 3\n\n\ndef may_retry(count: int) -> bool:\n    return count < BUDGET\n")
    commit = "git init -q . && git add . && git -c user.name=x -c user.email=x commit -qm one"
    change = "sed -i 's/BUDGET = 3/BUDGET = 5/' retry.py && echo '# Retries' > RETRIES.md && echo done"

    def run(shell: str, name: str) -> str:
        body = {"shell": shell, "name": name, "cwd": str(place)}
        task = str(gateway.client.post("/v1/tasks", json=body).json()["task"])
        gateway.client.get(f"/v1/tasks/{task}/wait", params={"seconds": 20})
        return task

    run(commit, "git commit")
    return {"changed": run(change, "make retry-budget")}


QUESTION = "The new cookie cannot be read by 4.11. Log everybody out once, or accept both cookies for 30 days?"


def board(gateway: GatewayProcess) -> dict[str, str]:
    """A worker that asks, two that run, and what waits for them."""

    def card(title: str, body: str = "", **more: object) -> str:
        given = {"title": title, "body": body, "profile": "demo", "board": "platform"} | more
        return str(gateway.command("POST", "/v1/cards", given)["card"])

    def stands(id: str, status: str) -> None:
        until(lambda: gateway.get(f"/v1/cards/{id}")["card"]["status"] == status, f"it is {status}", seconds=30)

    gateway.command("POST", "/v1/boards", {"board": "platform", "title": "Platform"})
    done = card("Cookie library 2.0", "say done\ncomplete All 212 tests pass with it.")
    stands(done, "done")
    asks = card(
        "Move sessions to the new cookie", f"say 14 of 16 call sites are migrated.\nblock {QUESTION}", parents=[done]
    )
    stands(asks, "blocked")
    gateway.command(
        "POST", f"/v1/cards/{asks}/comments", {"text": "Support would not survive a forced logout on a Friday."}
    )
    key = card("Sign release artefacts", triage=True)
    reason = {"reason": "No key in this profile may sign.", "kind": "capability"}
    gateway.command("POST", f"/v1/cards/{key}/block", reason)
    long = "slow 900 " + "The golden files are read one by one, and none of them differs so far. " * 60
    for title, priority in (("Import orders as a stream, not as one list", 0), ("Publish the returns schema", 3)):
        stands(card(title, long, priority=priority), "running")
    for title in (
        "Drop the v1 webhook signature",
        "Return 409 instead of 500 when a cart was merged elsewhere",
        "Flaky test: test_refund_after_partial_capture",
        "Say which field is wrong when an address is refused",
    ):
        card(title)
    gateway.command("POST", "/v1/cards", {"title": "Measure cold start on the smallest instance", "board": "platform"})
    card("Remove the old cookie", parents=[asks])
    card("Explain the tax rounding rules", triage=True)
    card("Nightly restore drill", at=time.time_ns() // 1_000_000 + 9 * 3_600_000)
    return {"asks": asks}


def chapters(gateway: GatewayProcess) -> dict[str, str]:
    """A session that was made shorter and reset, with a server that lives on."""
    client = gateway.client
    body = {"title": "Preview the help centre", "text": "say The preview runs on port 5173."}
    id = str(client.post("/v1/sessions", json=body).json()["session"])

    def rest() -> None:
        until(lambda: client.get(f"/v1/sessions/{id}").json()["session"]["state"] == "idle", "it rests", seconds=30)

    rest()
    for text in ("say All 38 articles are linked.", "say Two images were missing, both are there now."):
        client.post(f"/v1/sessions/{id}/messages", json={"text": text})
        rest()
    client.post(f"/v1/sessions/{id}/compact", json={"instructions": "Keep the port and the two images."})
    rest()
    serve = {"shell": "sleep 900", "name": "npm run preview -- --port 5173", "session": id}
    client.post("/v1/tasks", json=serve)
    client.post(f"/v1/sessions/{id}/reset", json={"running": "keep", "note": True})
    rest()
    client.post(f"/v1/sessions/{id}/messages", json={"text": "say The search of the help centre comes next."})
    rest()
    policy = {"policy": {"mode": "idle", "idle_minutes": 120}}
    client.post(f"/v1/sessions/{id}/reset/policy", json=policy)
    old = str(client.post("/v1/sessions", json={"title": "Old watcher", "text": "say ok"}).json()["session"])
    until(lambda: client.get(f"/v1/sessions/{old}").json()["session"]["state"] == "idle", "it rests", seconds=30)
    client.post("/v1/tasks", json={"shell": "sleep 900", "name": "make watch DOCS=1", "session": old})
    client.post(f"/v1/sessions/{old}/archive", json={"running": "keep"})
    until(lambda: len(gateway.get("/v1/tasks/stale")["tasks"]) > 0, "it is stale", seconds=60)
    return {"chapter": id}


LOOKS = [
    ("light", DESK, "light"),
    ("dark", DESK, "dark"),
    ("1024-light", MIDDLE, "light"),
    ("1024-dark", MIDDLE, "dark"),
    ("phone-light", PHONE, "light"),
    ("phone-dark", PHONE, "dark"),
]


def take_empty(browser: Browser, gateway: GatewayProcess, to: Path) -> None:
    """What a new user sees: the page to sign in, and every page before anything happened."""
    for name, size, theme in LOOKS:
        context = new_context(browser, viewport=size, color_scheme=theme)
        page = context.new_page()
        page.goto(gateway.url)
        page.get_by_role("heading", name="Sign in to Holdfast").wait_for()
        page.screenshot(path=to / f"sign-in-{name}.png")
        context.close()
        with User(browser, gateway, viewport=size, color_scheme=theme) as user:
            for title, path in (("home", "/home"), ("chats", "/s"), ("tasks", "/tasks"), ("board", "/board")):
                user.open(path)
                loaded(user.page)
                user.page.wait_for_timeout(300)
                user.page.screenshot(path=to / f"empty-{title}-{name}.png")


def take(browser: Browser, gateway: GatewayProcess, ids: dict[str, str], to: Path, only: list[str]) -> None:
    for name, size, theme in LOOKS:
        with User(browser, gateway, viewport=size, color_scheme=theme) as user:
            user.session = ids["main"]

            def shot(
                page: str, path: str, *, drawer: bool = False, wait: int = 900, user: User = user, name: str = name
            ) -> None:
                if only and page not in only:
                    return
                user.open(path)
                user.page.locator("main h1:visible").first.wait_for()
                expect(user.page.locator("[data-loading]")).to_have_count(0)  # nothing is still on its way
                user.page.wait_for_timeout(wait)
                if drawer:
                    user.page.get_by_role("button", name="Background tasks").first.click()
                    user.page.wait_for_timeout(500)
                user.page.screenshot(path=to / f"{page}-{name}.png")
                if drawer:
                    user.page.get_by_role("button", name="Close the panel").click()

            shot("home", "/home")
            if size is DESK and not only:
                user.page.keyboard.press("Control+k")
                user.page.wait_for_timeout(400)
                user.page.screenshot(path=to / f"palette-{name}.png")
                user.page.keyboard.press("Escape")
                user.page.keyboard.press("?")
                user.page.wait_for_timeout(400)
                user.page.screenshot(path=to / f"keys-{name}.png")
            shot("chat", f"/s/{ids['main']}", drawer=size is DESK)
            if not only or "away" in only:
                away(user, to / f"away-{name}.png")
            shot("working", f"/s/{ids['port']}")
            shot("chapter", f"/s/{ids['chapter']}")
            shot("board", "/board/platform")
            shot("card", f"/board/platform/{ids['asks']}")
            shot("tasks", "/tasks")
            shot("task", f"/tasks/{ids['build']}")
            shot("busy", f"/tasks/{ids['busy']}", wait=11_000 if name == "light" else 900)  # some measurements
            shot("agent", f"/tasks/{ids['agent']}")
            shot("outsider", f"/s/{ids['outsider']}")
            shot("forgetful", f"/s/{ids['forgetful']}")
            if not only or "changes" in only:
                user.open(f"/tasks/{ids['changed']}")
                user.page.get_by_role("tab", name="Changes").click()
                user.page.get_by_role("group", name="Changes in retry.py").wait_for()
                user.page.screenshot(path=to / f"changes-{name}.png")
            for section in SECTIONS:
                shot(f"settings-{section}", f"/settings/{section}")
            shot("chats", "/s")
            shot("new", "/new")
            shot("nowhere", "/no/such/page")


def away(user: User, picture: Path) -> None:
    """The line is cut, two messages come, one waits here."""
    user.route_line()
    user.open(f"/s/{user.session}")
    user.page.wait_for_timeout(700)
    done = len(user.events("TurnFinished"))
    user.cut_line()
    user.page.wait_for_timeout(400)
    for number, text in enumerate(
        ("say With the old read restored p95 is 236 ms.", "say The numbers are in `bench/checkout.md`.")
    ):
        user.gateway.client.post(f"/v1/sessions/{user.session}/messages", json={"text": text})
        user.finished(done + number + 1)
    user.mend_line()
    user.sees_banner("2 messages")
    user.page.wait_for_timeout(500)
    user.page.screenshot(path=picture)


def stop_commands(gateway: GatewayProcess) -> None:
    """Stop every command and wait for its end: it would outlive the gateway."""

    def running() -> list[str]:
        tasks = gateway.get("/v1/tasks", state="running", kind="process")["tasks"]
        return [str(task["id"]) for task in tasks]

    for id in running():
        gateway.command("POST", f"/v1/tasks/{id}/stop", {"force": True})
    until(lambda: not running(), "no command runs")


def main() -> int:
    if reason := why_not():
        sys.stderr.write(reason + "\n")
        return 1
    to, only = Path(sys.argv[1] if len(sys.argv) > 1 else ".screenshots"), sys.argv[2:]
    to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        home = Path(place) / "home"
        home.mkdir(mode=0o700)
        (home / "config.toml").write_text(
            SETTINGS
            + OUTSIDERS.format(python=sys.executable, agent=AGENT, memory=place)
            + "\n[retention]\ntasks_days = 30\nsessions_archive_days = 90\n\n[board]\nmax_running = 2\n"
        )
        (home / "config.toml").chmod(0o600)
        with GatewayProcess(home) as gateway:
            gateway.start()
            try:
                browser = playwright.chromium.launch(executable_path=str(CHROMIUM))
                if not only:
                    take_empty(browser, gateway, to)
                work = Path(place) / "shop"
                work.mkdir()
                ids = story(gateway) | chapters(gateway) | board(gateway) | changed(gateway, work)
                ids |= outsider(gateway, work)
                take(browser, gateway, ids, to, only)
                browser.close()
            finally:
                stop_commands(gateway)
    DOCS.mkdir(exist_ok=True)
    for name in SHOWN if not only else ():
        shutil.copy(to / f"{name}.png", DOCS)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
