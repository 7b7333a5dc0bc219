"""The chat without its screen: what is typed while something else is being changed."""

from __future__ import annotations

import time
from pathlib import Path

from holdfast.cli.chat.attach import Opening
from holdfast.cli.chat.blocks import Block
from holdfast.cli.chat.keep import Cursors
from holdfast.cli.chat.outbox import Place
from holdfast.cli.chat.talk import Chat
from holdfast.cli.chat.view import View
from holdfast.client.client import Client
from holdfast.config import Home


class Paper:
    """A screen that only remembers."""

    hung_up = False

    def __init__(self) -> None:
        self.shown: list[Block] = []
        self.left = False

    async def run(self, chat: Chat) -> None:
        del chat

    def enter(self, opening: Opening) -> None:
        del opening

    def show(self, blocks: list[Block]) -> None:
        self.shown += blocks

    def refresh(self) -> None:
        pass

    def leave(self) -> None:
        self.left = True


async def test_leaving_stopping_and_help_never_wait_for_a_command_in_progress(tmp_path: Path) -> None:
    screen, view = Paper(), View(time.monotonic, profile="demo", model="demo", cwd="/")
    gateway = Client(Home(tmp_path))
    chat = Chat(gateway, Cursors(tmp_path), screen, Opening(Place(cwd="/"), view))
    chat.typed("/reset note")  # the gateway has not answered: its answer is taken by this very loop
    chat.typed("say behind it")
    chat.typed("/help")
    assert screen.shown
    chat.typed("/stop")
    assert "nothing to stop" in str(screen.shown[-1])
    chat.typed("/quit")
    assert screen.left
    assert [letter.text for letter in chat.unsent] == ["say behind it"]
