"""Coming back to a long session, and the commands that ask about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cli.chat.actions import run_slash
from holdfast.cli.chat.attach import WINDOW, AttachedSession, attach, away_summary, last_here
from holdfast.cli.chat.blocks import NoticeBlock
from holdfast.cli.chat.local_state import ReadCursors
from holdfast.cli.chat.slash import Slash
from holdfast.client.client import Client
from holdfast.config import Home
from tests.chat.story import Story
from tests.e2e.board import create_card, until_card
from tests.e2e.gateway import GatewayProcess

LONG = '\n[profiles.long]\nmodel = "demo"\nmax_steps = 1000\n'
STEPS = 180


@pytest.fixture
def door(gateway: GatewayProcess) -> Client:
    """The gateway as the chat sees it."""
    return Client(Home(gateway.home))


def test_a_turn_that_began_before_the_window_costs_what_it_costs(
    gateway: GatewayProcess, door: Client, cwd: Path, tmp_path: Path
) -> None:
    with (gateway.home / "config.toml").open("a") as file:
        file.write(LONG)
    text = "\n".join(["read README.md", "say next"] * STEPS)
    session = door.command("POST", "/v1/sessions", {"text": text, "cwd": str(cwd), "profile": "long"})["session"]
    records = gateway.until_rest(session)
    assert len(records) > WINDOW
    (turn,) = gateway.get(f"/v1/sessions/{session}")["turns"]
    attached = attach(door, session, ReadCursors(tmp_path))
    assert attached.cut
    assert attached.view.cost.tokens == turn["input_tokens"] + turn["output_tokens"]
    assert attached.view.version == len(records)


def test_what_was_not_counted_is_not_denied() -> None:
    story = Story()
    for input in ("a", "b", "c"):
        story.said(input, input)
    changes = [(version + 6, change) for version, change in story.changes]
    assert [away_summary(changes, read=read, first=7) for read in (9, 8, 6, 5)] == [
        "",
        "1 message",
        "3 messages",
        "at least 3 messages",
    ]
    assert away_summary([], read=0, first=1) == ""


@pytest.mark.parametrize("name", ["~nobody-of-that-name/x.md", "a\0b.md", "/", "/no/such/place.md", "/etc/hosts"])
def test_an_export_that_cannot_be_written_says_so(
    gateway: GatewayProcess, door: Client, tmp_path: Path, name: str
) -> None:
    session = gateway.create("say x")
    here = attach(door, session, ReadCursors(tmp_path))
    said = run_slash(door, ReadCursors(tmp_path), here.ref, here.view, Slash("export", name))
    assert isinstance(said, list)
    assert [type(block) for block in said] == [NoticeBlock]


def test_the_last_session_of_a_directory_is_the_newest_that_no_card_owns(
    gateway: GatewayProcess, door: Client, cwd: Path, tmp_path: Path
) -> None:
    """A pinned one stands first in the list, and is not the last."""
    assert last_here(door, str(cwd)) is None
    pinned, newest, elsewhere = (gateway.create(cwd=ref) for ref in (cwd, cwd, tmp_path))
    gateway.command("POST", f"/v1/sessions/{pinned}/pin", {"pinned": True})
    gateway.command("PATCH", f"/v1/sessions/{newest}", {"title": "here"})
    card = create_card(gateway, "complete it is done", profile="demo", workspace=f"dir:{cwd}")
    until_card(gateway, card, "done")
    assert gateway.get("/v1/sessions", limit=5)["sessions"][1]["cwd"] == str(cwd), "the worker's"
    assert last_here(door, str(cwd)) == newest
    assert last_here(door, str(tmp_path)) == elsewhere


def test_a_new_session_keeps_the_profile_of_the_one_that_is_left(
    gateway: GatewayProcess, door: Client, cwd: Path, tmp_path: Path
) -> None:
    session = door.command("POST", "/v1/sessions", {"cwd": str(cwd), "profile": "careful"})["session"]
    here = attach(door, session, ReadCursors(tmp_path))
    new = run_slash(door, ReadCursors(tmp_path), here.ref, here.view, Slash("new"))
    assert isinstance(new, AttachedSession)
    assert (new.view.profile, new.ref.profile) == ("careful", "careful")
