"""An agent puts escape sequences into whatever a person may print: no verb passes one on to a terminal.

What the person sees: the text without them. In a pipe, an export has them as they are stored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chat.terminal import on_terminal
from tests.cli.commandline import CommandLine, new_home
from tests.e2e.gateway import GatewayProcess

TITLE, CLEAR, C1 = "\x1b]0;owned\x07", "\x1b[2J", "\x9b31m"
HIDDEN = "\u061c\u200e\u200f\u202a\u202e\u2066\u2069\ufeff\U000e0041"
HOSTILE = f"before{TITLE}{CLEAR}{C1}{HIDDEN}after"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f" + HIDDEN + "]")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    home = new_home(tmp_path_factory.mktemp("attack") / "home")
    with (home / "config.toml").open("a") as config:
        config.write('[profiles.asking]\nmodel = "demo"\n')
    with GatewayProcess(home) as process:
        yield process.start()


def test_no_verb_passes_escapes_on_to_a_terminal(gateway: GatewayProcess, tmp_path: Path) -> None:
    cli = CommandLine(gateway.home)
    session = gateway.create(f"say {HOSTILE}", cwd=tmp_path)
    gateway.until_rest(session)
    gateway.command("PATCH", f"/v1/sessions/{session}", {"title": HOSTILE})
    body = {"argv": ["printf", "%s\\n", HOSTILE], "name": HOSTILE, "cwd": "/"}
    task = gateway.command("POST", "/v1/tasks", body)["task"]
    gateway.until_ended(task)
    card = gateway.command("POST", "/v1/cards", {"title": HOSTILE, "body": HOSTILE, "triage": True})["card"]
    verbs = [
        ["sessions"],
        ["sessions", "show", session],
        ["sessions", "log", session],
        ["sessions", "search", "before"],
        ["sessions", "export", session],
        ["sessions", "export", session, "--format", "jsonl"],
        ["sessions", "show", session, "--json"],
        ["sessions", "show", HOSTILE],
        ["sessions", "rename", session, HOSTILE],
        ["tasks", "history"],
        ["tasks", "show", task],
        ["tasks", "log", task],
        ["tasks", "search", "before"],
        ["card", "show", card],
        ["card", "runs", card],
        ["card", "log", card],
        ["board"],
        ["board", "--json"],
        ["why"],
        ["why", session],
        ["why", task],
        ["inbox"],
        ["run", f"say {HOSTILE}"],
        ["config", "show", HOSTILE],
    ]
    passed_on = {}
    for arguments in verbs:
        with cli.terminal(*arguments) as terminal:
            terminal.wait()
            if found := FORBIDDEN.findall(COLOUR.sub("", terminal.raw.replace("\r", ""))):
                passed_on[" ".join(arguments[:2])] = found
    assert not passed_on


def test_neither_the_chat_nor_the_board_passes_escapes_on(gateway: GatewayProcess, tmp_path: Path) -> None:
    """Both move the cursor themselves, so what is looked for are the sequences of the agent."""
    cli = CommandLine(gateway.home)
    command = json.dumps({"command": f"printf '%s\\n' '{HOSTILE}'; exit 3"})
    question = json.dumps({"text": HOSTILE, "choices": [HOSTILE, "b"]})
    begun = {"text": f"say {HOSTILE}", "cwd": str(tmp_path), "profile": "asking"}
    session = str(gateway.command("POST", "/v1/sessions", begun)["session"])
    gateway.until_rest(session)
    gateway.command("PATCH", f"/v1/sessions/{session}", {"title": HOSTILE})
    card = {"title": HOSTILE, "body": f"block {HOSTILE}", "profile": "demo"}
    gateway.command("POST", "/v1/cards", card)
    with cli.terminal("board", "watch", TERM="xterm") as board, on_terminal(cli, "chat", session) as chat:
        board.until("needs input: before")
        chat.until("after")
        gateway.send(
            session, f"say live {HOSTILE}\ncall terminal {command}\ncall question {question}\ncall {HOSTILE} {{}}"
        )
        chat.until("live", "printf", "once")
        chat.enter("1")
        chat.until("exit", "[1]")
        chat.enter("/board")
        chat.until("BLOCKED")
        seen = {"board": board.raw, "chat": chat.raw}
    own = re.compile("|".join(map(re.escape, (TITLE, CLEAR, "\x1b]", "\x9b", "\x07", *HIDDEN))))
    assert {name: own.findall(raw) for name, raw in seen.items()} == {"board": [], "chat": []}


def test_export_in_a_pipe_has_everything_as_it_is_stored(gateway: GatewayProcess, tmp_path: Path) -> None:
    session = gateway.create(f"say {HOSTILE}", cwd=tmp_path)
    gateway.until_rest(session)
    assert HOSTILE in CommandLine(gateway.home).ok("sessions", "export", session)
