"""The items of a transcript in their order, and how they change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeVar, get_args

import msgspec

from holdfast.domain.events import Record
from holdfast.domain.transcript_items import AnyItem, NoticeEvent, NoticeItem, TranscriptItem

ChangeKind = Literal["added", "text", "call", "updated", "removed"]
"""What became of an item: it is new, its streamed text grew, one of its calls changed, something else in it did, or
it was left out again, because nothing came of it.
"""
NOTICES = get_args(NoticeEvent)
I = TypeVar("I", bound=TranscriptItem)  # noqa: E741


class Change(msgspec.Struct, frozen=True, gc=False):
    """An item after an event or a piece of text, and what changed."""

    kind: ChangeKind
    item: AnyItem
    call: str = ""
    """The call that changed."""


class ItemList:
    """Items by the version of the event that began them."""

    def __init__(self) -> None:
        self.items: list[AnyItem] = []
        self._places: dict[int, int] = {}

    def add(self, item: AnyItem) -> Change:
        """Append an item."""
        self._places[item.version] = len(self.items)
        self.items.append(item)
        return Change("added", item)

    def add_notice(self, record: Record) -> Change:
        """Append an event that is a line of its own."""
        assert isinstance(record.event, NOTICES)
        return self.add(NoticeItem(version=record.version, at=record.at, event=record.event))

    def put(self, item: AnyItem, kind: ChangeKind = "updated", *, call: str = "") -> Change:
        """Replace the item of the same version."""
        self.items[self._places[item.version]] = item
        return Change(kind, item, call)

    def remove(self, item: AnyItem) -> Change:
        """Leave an item out again."""
        place = self._places.pop(item.version)
        del self.items[place]
        for later in self.items[place:]:
            self._places[later.version] -= 1
        return Change("removed", item)

    def find(self, version: int, kind: type[I]) -> I | None:
        """The item of this version, if it is one of that kind."""
        place = self._places.get(version)
        item = None if place is None else self.items[place]
        return item if isinstance(item, kind) else None

    def latest(self, kind: type[I]) -> Iterator[I]:
        """The items of a kind, the last one first."""
        return (item for item in reversed(self.items) if isinstance(item, kind))
