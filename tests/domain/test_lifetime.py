"""When a command must end: with its call if a turn waits for it, else with its session, by its lifetime."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.domain.events.parts import Call, EventRef
from holdfast.domain.events.task import Lifetime
from holdfast.domain.session import OpenCall, Session, Turn
from holdfast.domain.task import why_over

CALL = Call(call="1.1.0", tool="terminal", arguments="{}")
AT_REST = Session("s", version=1)
TURN = Turn(
    1,
    started=EventRef(1, 1),
    last_done=EventRef(1, 1),
    last_kind="ToolCallStarted",
    open_calls={CALL.call: OpenCall(CALL)},
)
WAITING = msgspec.structs.replace(AT_REST, turn=TURN)
ARCHIVED = msgspec.structs.replace(AT_REST, archived_at=EventRef(1, 1))
GONE = Session("s")


@pytest.mark.parametrize("lifetime", ["chapter", "session", "persist", "until"])
def test_a_command_in_the_foreground_ends_when_its_call_is_not_open_whatever_its_lifetime(lifetime: Lifetime) -> None:
    def rule(session: Session, call: str) -> str:
        return why_over(session, call=call, foreground=True, lifetime=lifetime, begun=True)

    assert rule(WAITING, CALL.call) == ""
    assert rule(AT_REST, CALL.call) == rule(WAITING, "1.0.9") == "its turn ended"
    assert rule(GONE, CALL.call) == "its session was deleted"


def test_a_command_in_the_background_continues_after_its_call_and_never_begins_after_it() -> None:
    assert why_over(AT_REST, call=CALL.call, foreground=False, lifetime="session", begun=True) == ""
    assert why_over(AT_REST, call=CALL.call, foreground=False, lifetime="persist", begun=False) == "its turn ended"
    assert why_over(AT_REST, call="", foreground=False, lifetime="persist", begun=False) == ""


@pytest.mark.parametrize(("lifetime", "ends"), [("session", True), ("chapter", True), ("persist", False)])
def test_a_command_in_the_background_ends_with_its_session_by_its_lifetime(lifetime: Lifetime, ends: bool) -> None:
    for session in (ARCHIVED, GONE):
        assert bool(why_over(session, call="", foreground=False, lifetime=lifetime, begun=True)) is ends
