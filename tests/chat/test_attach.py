"""Coming back to a long session, and the commands that ask about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cli.chat import look
from holdfast.cli.chat.attach import WINDOW, attach, missed
from holdfast.cli.chat.blocks import Remark
from holdfast.cli.chat.keep import Cursors
from holdfast.cli.gateway import Gateway
from holdfast.config import Home
from tests.e2e.gateway import GatewayProcess

LONG = '\n[profiles.long]\nmodel = "demo"\nmax_steps = 1000\n'
STEPS = 180


@pytest.fixture
def door(gateway: GatewayProcess) -> Gateway:
    """The gateway as the chat sees it."""
    return Gateway(Home(gateway.home))


def test_a_turn_that_began_before_the_window_costs_what_it_costs(
    gateway: GatewayProcess, door: Gateway, cwd: Path, tmp_path: Path
) -> None:
    with (gateway.home / "config.toml").open("a") as file:
        file.write(LONG)
    text = "\n".join(["read README.md", "say next"] * STEPS)
    session = door.command("POST", "/v1/sessions", {"text": text, "cwd": str(cwd), "profile": "long"})["session"]
    records = gateway.until_rest(session)
    assert len(records) > WINDOW
    (turn,) = gateway.get(f"/v1/sessions/{session}")["turns"]
    opening = attach(door, session, Cursors(tmp_path))
    assert opening.cut
    assert opening.view.cost.tokens == turn["input_tokens"] + turn["output_tokens"]
    assert opening.view.version == len(records)


def test_what_was_not_counted_is_not_denied() -> None:
    records = [{"version": version, "event": {"kind": "InputReceived"}} for version in (7, 8, 9)]
    assert [missed(records, read=read) for read in (9, 8, 6, 5)] == [
        "",
        "1 message",
        "3 messages",
        "at least 3 messages",
    ]
    assert missed([], read=0) == ""


@pytest.mark.parametrize("name", ["~nobody-of-that-name/x.md", "a\0b.md", "/", "/no/such/place.md"])
def test_an_export_that_cannot_be_written_says_so(gateway: GatewayProcess, door: Gateway, name: str) -> None:
    session = gateway.create("say x")
    (said,) = look.export(door, session, name)
    assert isinstance(said, Remark)
    assert said.tone == "bad"
