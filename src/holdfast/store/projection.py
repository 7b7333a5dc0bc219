"""What each event does to the rows that people and the runtime look at: pure, the same for every engine.

`project` reads the rows that an event is about, and puts the changed ones in their place. The engine keeps the rows of
a transaction and writes them in its commit; `doctor --rebuild` does the same over the whole log. An event about a row
that does not exist changes nothing.
"""

from __future__ import annotations

from typing import Protocol, TypeGuard, get_args

from holdfast.domain.events import AnyEvent, Record
from holdfast.domain.events.card import BoardEvent
from holdfast.domain.events.session import SessionEvent
from holdfast.domain.events.system import GatewayStarted, GatewayStopped, SessionDeleted, StaleListed
from holdfast.domain.events.task import TaskEvent, TaskPruned
from holdfast.store.card_projection import project_board, project_card
from holdfast.store.rows import R, Row, WaitRow
from holdfast.store.session_projection import project_session
from holdfast.store.task_projection import project_task

_SESSION_EVENTS = frozenset(get_args(SessionEvent))


class ProjectedRows(Protocol):
    """The rows as the open transaction sees them."""

    def get(self, row_type: type[R], *key: str | int) -> R | None:
        """The row with this key."""
        ...

    def open_wait(self, session: str) -> WaitRow | None:
        """The wait of a session that nobody has answered."""
        ...

    def add(self, row: Row) -> None:
        """A new row: that there is none with its key is checked when it is written."""
        ...

    def put(self, row: Row) -> None:
        """Replace the row that has the same key, which was read before."""
        ...

    def link(self, parent: str, child: str) -> None:
        """A card (`child`) waits for another."""
        ...

    def unlink(self, parent: str, child: str) -> None:
        """It does not wait for that one any more."""
        ...

    def delete_session(self, session: str, *, at: int) -> None:
        """Delete the rows and the events of a session, and remember that it existed."""
        ...

    def delete_task(self, task: str, *, at: int) -> None:
        """The same of a task."""
        ...


def project(record: Record, rows: ProjectedRows) -> None:
    """Change the rows that one event is about."""
    event = record.event
    name = record.stream.partition("/")[2]
    if _is_session_event(event):
        project_session(event, name, record, rows)
        return
    match event:
        case SessionDeleted():
            rows.delete_session(event.session, at=record.at)
        case TaskPruned():
            rows.delete_task(event.task, at=record.at)
        case GatewayStarted() | GatewayStopped() | StaleListed():
            ...
        case _:
            if isinstance(event, TaskEvent):
                project_task(event, name, record, rows)
            elif isinstance(event, BoardEvent):
                project_board(event, record, rows)
            else:
                project_card(event, name, record, rows)  # type: ignore[arg-type]  # the type guard does not narrow here


def _is_session_event(event: AnyEvent) -> TypeGuard[SessionEvent]:
    return type(event) in _SESSION_EVENTS
