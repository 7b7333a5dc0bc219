"""The board from the command line: add, show and move cards, and the messages about all of it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.commands.card_log import CardLog
from holdfast.cli.context import Cli
from holdfast.cli.screen import width
from holdfast.client.client import Client
from holdfast.client.events import BoardWatcher
from holdfast.config import Home
from tests.cli.commandline import CommandLine, end_gateway, rest_of
from tests.e2e.gateway import GatewayProcess, Json, until, wait_for
from tests.eventually import PATIENCE


@pytest.fixture
def cli(gateway: GatewayProcess) -> CommandLine:
    return CommandLine(gateway.home)


def add(cli: CommandLine, title: str, *options: str, body: str = "complete it is done", profile: str = "demo") -> str:
    named = ("--profile", profile) if profile else ()
    return cli.ok("card", "add", title, "--body", body, *named, *options).strip()


def status(cli: CommandLine, card: str, wanted: str) -> Json:
    """The card as soon as it stands there."""

    def found() -> Json | None:
        shown: Json = cli.json("card", "show", card)
        return shown if shown["card"]["status"] == wanted else None

    return until(found, f"card {card} is {wanted}")


def parked(cli: CommandLine, title: str, *options: str) -> str:
    """A card that nobody starts."""
    return add(cli, title, "--triage", *options)


# --- writing --------------------------------------------------------------------------------------


def test_the_life_of_a_card_from_creation_to_archive(gateway: GatewayProcess, cli: CommandLine) -> None:
    done = cli("card", "add", "The key", "--body", "say looking\nblock which key?", "--profile", "demo")
    card = done.stdout.strip()
    assert any(word in done.stderr for word in ("being started", "running", "blocked")), done.stderr
    status(cli, card, "blocked")
    shown = cli.ok("card", "show", card.lower())
    for words in (
        "blocked (needs input)",
        "say looking",
        "which key?",
        "scratch, /",
        "as set for the profile",
        "RUN  OUTCOME",
    ):
        assert words in shown
    assert "of run 1." in cli.ok("card", "context", card)
    assert "Nobody has commented since" in cli.ok("card", "context", card)
    assert "commented" in cli.ok("card", "comment", card, "it is under the mat")
    assert "[cli wrote:]\nit is under the mat" in cli.ok("card", "context", card)
    assert "unblocked; next:" in cli.ok("card", "unblock", card, "-m", "say thanks\ncomplete found it")
    found = status(cli, card, "done")
    gateway.until_rest(found["card"]["session"])
    first, second = found["runs"]
    assert (first["session"], second["resumes"], found["summary"]) == (second["session"], 1, "found it")
    runs = cli.ok("card", "runs", card)
    assert "resumes 1" in runs and "fresh" in runs and "blocked (needs input): which key?" in runs
    log = cli.ok("card", "log", card)
    assert log.index("run 1 · ") < log.index("looking") < log.index("run 2 · ") < log.index("thanks")
    assert (
        "Run 1 of card HF-1 works in this session" in log and "works in this session. Messages become comments" in log
    )
    only = cli.ok("card", "log", card, "--run", "2")
    assert "thanks" in only and "looking" not in only
    assert "It is done." in cli.ok("card", "why", card)
    gone = cli.ok("card", "archive", card)
    assert f"its workspace {found['runs'][0]['workspace']} was deleted; nothing was lost" in gone
    assert not Path(found["runs"][0]["workspace"]).exists()
    assert "No cards yet." in cli.ok("card", "list")
    assert card in cli.ok("card", "list", "--archived")


def test_every_option_of_a_new_card_is_kept(cli: CommandLine, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    first = parked(cli, "first")
    session = cli.json("run", "say hello")["session"]
    options = ("--resume", "fresh", "--max-runtime", "2h", "--max-attempts", "7", "--priority", "-3")
    second = add(
        cli, "second", *options, "--parent", first, "--workspace", f"worktree:{repository}", "--follow", session[:6]
    )
    found = cli.json("card", "show", second)
    assert (found["resume"], found["max_runtime_ms"], found["max_attempts"]) == ("fresh", 7_200_000, 7)
    assert (found["card"]["priority"], found["card"]["status"]) == (-3, "todo")
    assert found["card"]["workspace"] == f"worktree:{repository}"
    assert [f"HF-{parent['number']}" for parent in found["parents"]] == [first]
    assert found["followers"] == [session]
    shown = cli.ok("card", "show", second)
    assert f"waits for    {first} “first” (triage)" in shown
    assert f"needed by  {second} “second” (todo)" in cli.ok("card", "show", first)


def test_the_body_comes_from_standard_input_and_a_path_may_be_relative(cli: CommandLine, tmp_path: Path) -> None:
    card = cli.ok(
        "card", "add", "x", "--triage", "--body", "-", "--workspace", "dir:.", stdin=b"line one\nline two\n"
    ).strip()
    found = cli.json("card", "show", card)
    assert found["body"] == "line one\nline two\n"
    assert found["card"]["workspace"] == f"dir:{Path.cwd()}"


def test_the_same_key_adds_nothing(cli: CommandLine) -> None:
    one = cli.json("card", "add", "x", "--triage", "--idempotency-key", "nightly-01")
    again = cli("card", "add", "x", "--triage", "--idempotency-key", "nightly-01")
    assert again.stdout.strip() == f"HF-{one['number']}"
    assert "this card exists already" in again.stderr
    other = cli("card", "add", "something else", "--triage", "--idempotency-key", "nightly-01")
    assert other.returncode == 5
    assert len(cli.json("card", "list")["cards"]) == 1


def test_the_same_key_with_a_span_of_time_adds_nothing(cli: CommandLine) -> None:
    """Two hours from now are another time at every call; what was said is the same."""
    adding = ("card", "add", "x", "--at", "2h", "--idempotency-key", "nightly-01")
    one, two = cli.json(*adding), cli.json(*adding)
    assert (one["duplicate"], two["duplicate"], two["card"]) == (False, True, one["card"])
    (card,) = cli.json("card", "list")["cards"]
    assert abs(card["scheduled_at"] - card["created_at"] - 2 * 3_600_000) < 1000


def test_adding_starts_a_gateway_and_looking_does_not(alone: CommandLine) -> None:
    assert alone("board").returncode == 3
    assert alone("card", "list").returncode == 3
    done = alone("card", "add", "first of all", "--triage")
    assert (done.returncode, "started a gateway" in done.stderr) == (0, True)
    assert "first of all" in alone.ok("board")
    end_gateway(alone.home)


# --- moving ---------------------------------------------------------------------------------------


def test_every_verb_that_moves_a_card(cli: CommandLine) -> None:
    card = parked(cli, "wanderer", "--profile", "demo")
    assert "becomes ready at" in cli.ok("card", "schedule", card, "2h")
    assert cli.json("card", "show", card)["card"]["status"] == "scheduled"
    assert "moved to review" in cli.ok("card", "promote", card, "--to", "review")
    assert "blocked (capability)" in cli.ok("card", "block", card, "no network", "--kind", "capability")
    assert "capability: no network" in cli.ok("board")
    cli.ok("card", "edit", card, "--title", "traveller", "--body", "slow 300 a b c", "--priority", "4")
    assert "will run again, with a new session" in cli.ok("card", "retry", card, "--fresh")
    found = status(cli, card, "running")
    assert (found["card"]["title"], found["card"]["priority"]) == ("traveller", 4)
    refused = cli("card", "edit", card, "--title", "x")
    assert (refused.returncode, "Comment on it, or stop it first." in refused.stderr) == (5, True)
    assert "stopped and blocked" in cli.ok("card", "stop", card, "--reason", "enough")
    assert "stopped by cli: enough" in cli.ok("card", "why", card)
    both = cli("card", "complete", card, "done", "-m", "done by hand")
    assert (both.returncode, "use one of them" in both.stderr) == (2, True)
    unquoted = cli("card", "complete", card, "done", "by", "hand")
    assert f'holdfast card complete {card} "done by hand"' in unquoted.stderr
    assert cli.ok("card", "complete", card.upper(), "done by hand") == f"{card}: done\n"
    assert cli.json("card", "show", card)["summary"] == "done by hand"


class NotingClient(Client):
    """Notes after which version the events of sessions are read."""

    def __init__(self, home: Path) -> None:
        super().__init__(home, patience=0)
        self.read_after: list[object] = []

    def get(self, target: str, **query: object) -> Any:
        if target.endswith("/events"):
            self.read_after.append(query["after"])
        return super().get(target, **query)


def test_the_log_reads_a_session_once_for_all_runs_in_it(
    cli: CommandLine, gateway: GatewayProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    card = add(cli, "twice", body="block which?")
    status(cli, card, "blocked")
    cli.ok("card", "unblock", card, "complete this")
    status(cli, card, "done")
    client = NotingClient(gateway.home)
    call = Cli(str(gateway.home))
    call.__dict__["client"] = client
    found = client.cards.get(card)
    reader = CardLog(call, found.card.id, 0.0)
    first, second = found.runs
    assert first.session == second.session
    reader.show(first, live=False)
    shown = capsys.readouterr().out
    reader.show(second, live=False)
    again = capsys.readouterr().out
    assert "which?" in shown
    assert "this" in again
    start, after = client.read_after
    assert start == 0
    assert isinstance(after, int) and after > 0


def test_links_profiles_and_followers(cli: CommandLine) -> None:
    first = parked(cli, "first")
    cli.ok("board", "pause", "default")  # so that nothing is started before it is linked
    second = add(cli, "second", profile="")
    assert cli.json("card", "show", second)["card"]["profile"] == "demo"  # the default one
    cli.ok("card", "link", second, first[:6])
    circle = cli("card", "link", first, second)
    assert (circle.returncode, "These links would form a cycle" in circle.stderr) == (5, True)
    assert f"waits for card {first}" in cli.ok("card", "list")
    session = cli.json("run", "say hello")["session"]
    assert "is notified of its blocks" in cli.ok("card", "follow", second, session)
    assert cli.json("card", "show", second)["followers"] == [session]
    assert "no longer notified" in cli.ok("card", "follow", second, session, "--off")
    assert cli.json("card", "show", second)["followers"] == []
    cli.ok("card", "unlink", second, first[:6])
    assert "assigned to demo" in cli.ok("card", "assign", second, "demo")
    cli.ok("board", "resume", "default")
    status(cli, second, "done")


def test_boards_are_made_paused_resumed_and_archived(cli: CommandLine) -> None:
    assert "No boards; the first card creates one." in cli.ok("board", "list")
    cli.ok("board", "create", "web", "--title", "The site")
    assert "There are no cards here yet." in cli.ok("board", "show", "web")
    assert "--board web" in cli.ok("board", "show", "web")
    cli.ok("board", "pause", "web")
    card = add(cli, "waits", "--board", "web")
    assert "paused by cli" in cli.ok("board", "show", "web")
    assert "Its board web is paused by cli" in cli.ok("card", "why", card)
    assert "paused by cli" in cli.ok("board", "list")
    cli.ok("board", "resume", "web")
    status(cli, card, "done")
    parked(cli, "elsewhere")
    assert "other boards: web (1 card)" in cli.ok("board")
    cli.ok("board", "archive", "web")
    assert "web" not in cli.ok("board", "list")
    assert "archived" in cli.ok("board", "list", "--archived")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["card", "add", " "], 2, "the text is empty"),
        (["card", "add", "x", "--workspace", "attic"], 2, "scratch, dir:PATH or worktree:REPO"),
        (["card", "add", "x", "--workspace", "dir:/no/such/place"], 2, "is not a directory"),
        (["card", "add", "x", "--workspace", "worktree:/"], 2, "is not a git repository"),
        (["card", "add", "x", "--profile", "nobody"], 2, "There is no profile 'nobody'"),
        (["card", "add", "x", "--board", "none"], 2, "holdfast board create none"),
        (["card", "add", "x", "--parent", "ffff"], 4, "There is no card ffff"),
        (["card", "add", "x", "--follow", "ffff"], 4, "There is no session ffff"),
        (["card", "add", "x", "--idempotency-key", "short"], 2, "8 to 64 letters"),
        (["card", "add", "x", "--triage", "--at", "2h"], 2, "cannot be combined"),
        (["card", "add", "x", "--at", "soon"], 2, "'soon' is not a time"),
        (["card", "add", "x", "--max-runtime", "1y"], 2, "is not a duration"),
        (["card", "add", "x", "--max-attempts", "0"], 2, "--max-attempts"),
        (["card", "add", "x", "--resume", "maybe"], 2, "--resume"),
        (["card", "show", "ffff"], 4, "There is no card ffff"),
        (["card", "show", "zz"], 4, "is not the ID of a card"),
        (["card", "log", "ffff"], 4, "There is no card ffff"),
        (["card", "edit", "ffff"], 2, "There is nothing to change."),
        (["card", "block", "ffff", "x", "--kind", "mood"], 2, "--kind"),
        (["card", "comment", "ffff", " "], 2, "the text is empty"),
        (["card", "unblok", "ffff"], 2, "unblock"),
        (["board", "show", "none"], 4, "holdfast board create none"),
        (["board", "pause", "none"], 4, "There is no board 'none'"),
        (["board", "create", "Not A Name"], 2, "holdfast board create not-a-name --title 'Not A Name'"),
        (["card", "add", "x", "--max-runtime", "0s"], 2, "'0s' is too short; the minimum is 1s"),
        (["card", "assign", "ffff", ""], 2, "the text is empty"),
        (["why", "ffff"], 4, "There is no session, task or card ffff"),
        (["tasks", "history", "--kind", "horse"], 2, "--kind"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else None,
)
def test_bad_input_is_named_with_what_to_do(
    shared: GatewayProcess, arguments: list[str], code: int, words: str
) -> None:
    done = CommandLine(shared.home)(*arguments)
    assert (done.returncode, words in done.stderr.replace("\n", " ")) == (code, True), done


def test_not_possible_now_is_5(cli: CommandLine) -> None:
    card = parked(cli, "x")
    for arguments in (["unblock", card], ["stop", card], ["promote", card, "--to", "triage"]):
        done = cli("card", *arguments)
        assert (done.returncode, done.stderr.startswith(("error: It ", "error: The card "))) == (5, True), done
    cli.ok("card", "complete", card)
    assert cli("card", "complete", card).returncode == 5
    assert cli("card", "log", card, "--run", "1").returncode == 4


# --- looking --------------------------------------------------------------------------------------


def test_why_knows_cards_by_prefix_and_says_when_it_is_not_one(cli: CommandLine) -> None:
    card = parked(cli, "x")
    assert "It is in triage" in cli.ok("why", card[:6])
    either, other = (
        [sentence | {"text": re.sub(r"column for .*", "", sentence["text"])} for sentence in found["sentences"]]
        for found in (cli.json("why", card), cli.json("card", "why", card))
    )
    assert either == other


def test_runs_are_tasks_of_the_kind_card(gateway: GatewayProcess, cli: CommandLine) -> None:
    card = add(cli, "long work", body="slow 300 a b c")
    found = status(cli, card, "running")
    gateway.until_event(found["card"]["session"], "ModelRequested")
    task = found["runs"][0]["task"]
    assert [one["id"] for one in cli.json("tasks", "list", "--kind", "card")["tasks"]] == [task]
    assert "No process is running" in cli.ok("tasks", "list", "--kind", "process")
    assert "at work" in cli.ok("tasks")
    assert task[:8] in cli.ok("tasks", "history", "--kind", "card")
    assert f"sessions log {found['runs'][0]['session']}" in cli.ok("tasks", "show", task)
    assert "Its agent has been working for" in cli.ok("why", task)
    cli.ok("card", "stop", card)


def test_the_log_is_followed_over_a_block_until_it_is_done(cli: CommandLine) -> None:
    card = add(cli, "a question", body="say before\nblock what now?")
    status(cli, card, "blocked")
    following = cli.spawn("card", "log", card, "--follow")
    try:
        assert following.stdout is not None and following.stderr is not None
        for line in following.stdout:
            if "turn" in line and "done" in line:
                break
        assert "what now?" in following.stderr.readline()
        cli.ok("card", "unblock", card, "-m", "say after\ncomplete yes")
        out, err = rest_of(following)
    finally:
        following.kill()
    assert following.returncode == 0
    assert "run 2 · " in out and "after" in out and "before" not in out
    assert f"card {card} is done" in err


def test_following_survives_a_gateway_that_is_killed(gateway: GatewayProcess, cli: CommandLine, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    card = add(cli, "survivor", body=f"say one two\nsh {wait_for(gate)}\nsay three four\ncomplete after all")
    gateway.until_event(status(cli, card, "running")["card"]["session"], "ToolCallStarted")
    following = cli.spawn("card", "log", card, "--follow")
    try:
        assert following.stdout is not None
        assert "run 1" in following.stdout.readline()
        gateway.kill9()
        gateway.start()
        gate.touch()
        out, _ = rest_of(following)
    finally:
        following.kill()
    assert following.returncode == 0
    assert [out.count(text) for text in ("agent     one two", "  three four")] == [1, 1]
    assert "resumed" in out
    assert len(cli.json("card", "runs", card)["runs"]) == 1


def test_a_message_to_a_worker_is_a_comment_and_is_said_to_be(cli: CommandLine, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    card = add(cli, "listener", body=f"sh {wait_for(gate)}\nsay end\ncomplete heard")
    session = status(cli, card, "running")["runs"][0]["session"]
    done = cli("send", session, "say heard you")
    assert f"a comment on card {card}: its worker gets it" in done.stderr
    gate.touch()
    found = status(cli, card, "done")
    assert [one["text"] for one in found["comments"]] == ["say heard you"]
    log = cli.ok("card", "log", card)
    assert "(comment)" in log and "heard you" in log


def test_the_workspace_that_holds_something_is_kept(gateway: GatewayProcess, cli: CommandLine) -> None:
    card = add(cli, "writer", body="write a.txt hello\ncomplete wrote")
    found = status(cli, card, "done")
    gateway.until_rest(found["card"]["session"])
    place = Path(found["runs"][0]["workspace"])
    refused = cli("card", "release", card)
    assert refused.returncode == 5 and f"holdfast card archive {card}" in refused.stderr
    assert "its workspace was kept" in (said := cli.ok("card", "archive", card)) and "a.txt" in said
    assert (place / "a.txt").read_text() == "hello\n"
    shown = cli.ok("card", "show", card)
    assert "kept, because of this: a.txt" in shown
    kept = cli("card", "release", card)
    assert (kept.returncode, "a.txt" in kept.stdout, place.is_dir()) == (1, True, True)
    (place / "a.txt").unlink()
    for _ in range(2):  # repeating it changes nothing
        assert f"its workspace {place} was deleted" in cli.ok("card", "release", card)
    assert not place.exists()


def test_the_list_filters(cli: CommandLine) -> None:
    parked(cli, "apples"), parked(cli, "pears")
    assert "apples" in (found := cli.ok("card", "list", "--search", "APPLE")) and "pears" not in found
    assert "No card matches." in cli.ok("card", "list", "--status", "review")
    assert [row["title"] for row in cli.json("card", "list", "--status", "triage")["cards"]] == ["apples", "pears"]


def test_ids_of_cards_and_names_of_boards_are_completed(cli: CommandLine) -> None:
    card = parked(cli, "the title")
    env = {"_HOLDFAST_COMPLETE": "bash_complete", "COMP_WORDS": f"holdfast card show {card[:3]}", "COMP_CWORD": "3"}
    assert card == "HF-1" and card in _completed(cli, env)
    env |= {"COMP_WORDS": "holdfast card show hf"}
    assert card in _completed(cli, env)
    env |= {"COMP_WORDS": f"holdfast card show {(id := cli.json('card', 'show', '1')['card']['id'])[:3]}"}
    assert id in _completed(cli, env)
    env |= {"COMP_WORDS": "holdfast board pause d", "COMP_CWORD": "3"}
    assert "default" in _completed(cli, env)


def _completed(cli: CommandLine, env: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-c", 'exec "$0" -c "from holdfast.cli.root import root; root(prog_name=\'holdfast\')"', _python()],
        env=cli.environment(**env),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


def _python() -> str:
    import sys

    return sys.executable


# --- the picture ----------------------------------------------------------------------------------


def rich(cli: CommandLine) -> dict[str, str]:
    """A card in every column; one began anew because that was asked for; the board is paused."""
    cards = {
        "triage": parked(cli, "think about it"),
        "scheduled": add(cli, "later", "--at", "2h"),
        "running": add(cli, "a very long title " * 6, body="slow 300 a b"),
        "blocked": add(cli, "asks", body="block which one of all these keys shall I take?"),
        "review": parked(cli, "look at it"),
        "done": add(cli, "年次報告書を書く"),
    }
    cards["todo"] = add(cli, "then", "--parent", cards["running"])
    cli.ok("card", "promote", cards["review"], "--to", "review")
    for name in ("running", "blocked", "done"):
        status(cli, cards[name], name)
    cli.ok("card", "unblock", cards["blocked"], "--fresh")
    until(lambda: len(cli.json("card", "runs", cards["blocked"])["runs"]) == 2, "it began anew")
    status(cli, cards["blocked"], "blocked")
    cli.ok("board", "pause", "default")
    cards["ready"] = add(cli, "held back")
    return cards


def test_the_picture_fits_and_says_everything(cli: CommandLine) -> None:
    cards = rich(cli)
    for columns in (80, 100, 120, 200):
        check_picture(cli, cards, columns)


def check_picture(cli: CommandLine, cards: dict[str, str], columns: int) -> None:
    with cli.terminal("board", columns=columns) as terminal:
        assert terminal.wait() == 0
        shown = terminal.text
    assert max(width(line) for line in shown.split("\n")) <= columns
    for name, card in cards.items():
        assert card in shown
        assert f"{name} 1" in shown and f"{name.upper()} 1" in shown
    flat = " ".join(shown.split())
    assert "needs input: which" in flat and "paused by cli: no cards are started" in flat
    assert "⚠" not in flat  # a fresh start that was asked for is no warning
    side_by_side = any("TRIAGE" in line and "TODO" in line for line in shown.split("\n"))
    assert side_by_side == (columns >= 100)
    assert "\x1b[" in terminal.raw
    with cli.terminal("board", columns=columns, NO_COLOR="1") as plain:
        plain.wait()
        assert "\x1b[" not in plain.raw


def test_an_empty_board_teaches(cli: CommandLine) -> None:
    shown = cli.ok("board")
    assert 'holdfast card add "Say hello" --body "complete hello" --profile demo' in shown
    assert "holdfast board watch" in shown


def test_watching_redraws_when_something_happens_and_ctrl_c_leaves(cli: CommandLine) -> None:
    with cli.terminal("board", "watch", columns=120) as terminal:
        terminal.until("There are no cards here yet.")
        parked(cli, "appears by itself")
        terminal.until("appears by itself")
        terminal.interrupt()
        assert terminal.wait() == 0
        assert terminal.raw.endswith("\x1b[?25h\x1b[?1049l")


def test_watching_in_a_pipe_prints_every_change_and_outlives_the_gateway(
    gateway: GatewayProcess, cli: CommandLine
) -> None:
    watching = cli.spawn("board", "watch", "--json")
    try:
        assert watching.stdout is not None
        assert json.loads(watching.stdout.readline())["board"] is None
        parked(cli, "one")
        assert json.loads(watching.stdout.readline())["board"]["cards"] == 1
        gateway.kill9()
        gateway.start()
        parked(cli, "two")
        assert json.loads(watching.stdout.readline())["board"]["cards"] == 2
    finally:
        watching.kill()
        watching.communicate()


def test_a_change_wakes_its_followers_also_after_a_restart(gateway: GatewayProcess, cli: CommandLine) -> None:
    """Not the belt that draws the ages anew: the event itself."""
    with BoardWatcher(Client(Home(gateway.home)), patience=PATIENCE) as changes:
        assert not changes.wait(0)
        parked(cli, "one")
        assert changes.wait(PATIENCE)
        gateway.kill9()
        gateway.start()
        until(lambda: changes.wait(0.1) or not changes.away, "it is back")
        parked(cli, "two")
        assert changes.wait(PATIENCE)
