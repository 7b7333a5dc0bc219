"""The chat without its screen: what is typed while something else is being changed."""

from __future__ import annotations

import time
from pathlib import Path

from holdfast.cli.chat.attach import AttachedSession
from holdfast.cli.chat.blocks import Block
from holdfast.cli.chat.connection import SessionRef
from holdfast.cli.chat.controller import ChatController
from holdfast.cli.chat.local_state import ReadCursors
from holdfast.cli.chat.view import View
from holdfast.client.client import Client
from holdfast.config import Home


class Paper:
    """A screen that only remembers."""

    hung_up = False

    def __init__(self) -> None:
        self.shown: list[Block] = []
        self.left = False

    async def run(self, chat: ChatController) -> None:
        del chat

    def enter(self, attached: AttachedSession) -> None:
        del attached

    def show(self, blocks: list[Block]) -> None:
        self.shown += blocks

    def refresh(self) -> None:
        pass

    def leave(self) -> None:
        self.left = True


async def test_leaving_stopping_and_help_never_wait_for_a_command_in_progress(tmp_path: Path) -> None:
    screen, view = Paper(), View(time.monotonic, profile="demo", model="demo", cwd="/")
    gateway = Client(Home(tmp_path))
    chat = ChatController(gateway, ReadCursors(tmp_path), screen, AttachedSession(SessionRef(cwd="/"), view))
    chat.submit("/reset note")  # the gateway has not answered: its answer is taken by this very loop
    chat.submit("say behind it")
    chat.submit("/tasks")
    chat.submit("/why")
    chat.submit("/card add behind it")
    chat.submit("/help")
    assert screen.shown
    chat.submit("/stop")
    assert "nothing to stop" in str(screen.shown[-1])
    chat.submit("/quit")
    assert screen.left
    assert [message.text for message in chat.unsent] == ["say behind it", "/card add behind it"]
