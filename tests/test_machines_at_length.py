"""The state machines of sessions and cards, in memory and on a real store, with many more examples than usual."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.board.test_machine import CardMachine, TestCard
from tests.board.test_store_machine import BoardMachine, TestBoard
from tests.domain.machine import SessionMachine
from tests.domain.test_machine import TestSession
from tests.store.test_machine import StoreMachine, TestStoreSession

IN_MEMORY, ON_DISK = 1_000, 200


class LongSession(SessionMachine):
    pass


class LongCard(CardMachine):
    pass


class LongStoreSession(StoreMachine):
    pass


class LongBoard(BoardMachine):
    pass


pytestmark = pytest.mark.proof
TestLongSession = LongSession.TestCase
TestLongSession.settings = settings(TestSession.settings, max_examples=IN_MEMORY)
TestLongCard = LongCard.TestCase
TestLongCard.settings = settings(TestCard.settings, max_examples=IN_MEMORY)
TestLongStoreSession = LongStoreSession.TestCase
TestLongStoreSession.settings = settings(TestStoreSession.settings, max_examples=ON_DISK)
TestLongBoard = LongBoard.TestCase
TestLongBoard.settings = settings(TestBoard.settings, max_examples=ON_DISK)
del TestSession, TestCard, TestStoreSession, TestBoard  # they have a run of their own
