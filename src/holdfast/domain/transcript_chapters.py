"""Resets and summaries in a transcript: what the model no longer sees, while people still do."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.domain.chapter import compaction_after
from holdfast.domain.events import Record
from holdfast.domain.events.chapter import (
    ChapterOpened,
    ChapterRejoined,
    SummaryEvent,
    SummaryFailed,
    SummaryRequested,
    SummaryStarted,
    SummaryWritten,
)
from holdfast.domain.transcript_items import ChapterItem, SummaryItem, begin, summary_item
from holdfast.domain.transcript_list import Change, ItemList


class ChapterFold:
    """Folds the events of chapters into a list of items."""

    def __init__(self, items: ItemList) -> None:
        self.summary_requested = self.summary_running = False
        self._items = items
        self._resets: list[int] = []
        """The versions of the resets that hold."""

    def apply(self, event: ChapterOpened | ChapterRejoined | SummaryEvent, record: Record) -> list[Change]:
        """Fold one event; the items that it changed."""
        match event:
            case ChapterOpened():
                self.summary_requested = self.summary_running = False
                self._resets.append(record.version)
                return [self._items.add(begin(ChapterItem, record))]
            case ChapterRejoined():
                self.summary_requested = self.summary_running = False
                item = self._items.find(self._resets.pop() if self._resets else 0, ChapterItem)
                undone = [] if item is None else [self._items.put(replace(item, undone=True))]
                return [*undone, self._items.add_notice(record)]
            case _:
                self.summary_requested, self.summary_running = compaction_after(
                    event, requested=self.summary_requested, running=self.summary_running
                )
                return self._summary(event, record)

    def _summary(self, event: SummaryEvent, record: Record) -> list[Change]:
        if isinstance(event, SummaryRequested):
            return [self._items.add_notice(record)]
        if event.purpose == "hand_over":  # the chapter that it is for has the note
            return [self._items.add_notice(record)] if isinstance(event, SummaryFailed) else []
        new, last = summary_item(event, record), next(self._items.latest(SummaryItem), None)
        replaced = self._digests() if isinstance(event, SummaryWritten) and event.source == "model" else []
        changes = [self._items.put(replace(item, replaced=True)) for item in replaced]
        if last is None or not self._continues(last, event):
            return [*changes, self._items.add(new)]
        new = replace(
            new,
            version=last.version,
            at=last.at,
            model=new.model or last.model,
            tokens_before=new.tokens_before or last.tokens_before,
        )
        return [*changes, self._items.put(new)]

    def _continues(self, last: SummaryItem, event: SummaryStarted | SummaryWritten | SummaryFailed) -> bool:
        """Whether an event is about the summary that the last item shows: its end, or the next attempt."""
        if not isinstance(event, SummaryStarted):
            return last.state == "running"
        covers = (last.covers_turn, last.covers_step) == (event.covers_turn, event.covers_step)
        return last.state == "failed" and covers and self._items.items[-1] is last

    def _digests(self) -> list[SummaryItem]:
        """The digests of this chapter, the last one first."""
        start = self._resets[-1] if self._resets else 0
        return [item for item in self._items.latest(SummaryItem) if item.source == "digest" and item.version > start]
