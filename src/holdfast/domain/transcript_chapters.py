"""Resets and summaries in a transcript: what the model no longer sees, while people still do."""

from __future__ import annotations

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
from holdfast.domain.transcript_items import AnyItem, Change, ChapterItem, SummaryItem, add_item, new_item


class ChapterFold:
    """Folds the events of chapters into a list of items."""

    def __init__(self, items: list[AnyItem]) -> None:
        self.is_summary_requested = self.is_summary_running = False
        self._items = items
        self._resets: list[ChapterItem] = []
        """The resets that hold."""
        self._summaries: list[SummaryItem] = []

    def apply(self, event: ChapterOpened | ChapterRejoined | SummaryEvent, record: Record) -> list[Change]:
        """Fold one event; the items that it changed."""
        match event:
            case ChapterOpened():
                self.is_summary_requested = self.is_summary_running = False
                self._resets.append(new_item(ChapterItem, record))
                return [add_item(self._items, self._resets[-1])]
            case ChapterRejoined():
                self.is_summary_requested = self.is_summary_running = False
                undone = [self._resets.pop()] if self._resets else []
                for item in undone:
                    item.undone = True
                return [Change("updated", item) for item in undone]
            case _:
                self.is_summary_requested, self.is_summary_running = compaction_after(
                    event, requested=self.is_summary_requested, running=self.is_summary_running
                )
                # The chapter that a hand-over note is for has it.
                return [] if event.purpose == "hand_over" else self._summary(event, record)

    def _summary(self, event: SummaryEvent, record: Record) -> list[Change]:
        match event:
            case SummaryRequested():
                return []
            case SummaryStarted():
                new = new_item(SummaryItem, record, state="running", tokens_before=event.tokens)
                return [self._put(new, is_same=self._is_next_attempt(event))]
            case SummaryFailed():
                return [self._put(new_item(SummaryItem, record, state="failed"), is_same=self._is_running())]
            case SummaryWritten():
                replaced = self._digests() if event.source == "model" else []
                for item in replaced:
                    item.replaced = True
                new = new_item(SummaryItem, record, state="done")
                changes = [Change("updated", item) for item in replaced]
                return [*changes, self._put(new, is_same=self._is_running())]

    def _is_running(self) -> bool:
        return bool(self._summaries) and self._summaries[-1].state == "running"

    def _is_next_attempt(self, event: SummaryStarted) -> bool:
        last = self._summaries[-1] if self._summaries else None
        if last is None or last is not self._items[-1] or last.state != "failed":
            return False
        return (last.covers_turn, last.covers_step) == (event.covers_turn, event.covers_step)

    def _put(self, new: SummaryItem, *, is_same: bool) -> Change:
        """Add a summary, or complete the last one: attempts in a row are one item."""
        if not is_same:
            self._summaries.append(new)
            return add_item(self._items, new)
        last = self._summaries[-1]
        new.version, new.at, new.model = last.version, last.at, new.model or last.model
        new.tokens_before = new.tokens_before or last.tokens_before
        for name in SummaryItem.__struct_fields__:
            setattr(last, name, getattr(new, name))
        return Change("updated", last)

    def _digests(self) -> list[SummaryItem]:
        """The digests of this chapter, the last one first."""
        start = self._resets[-1].version if self._resets else 0
        return [item for item in reversed(self._summaries) if item.source == "digest" and item.version > start]
