"""A session's log, built event by event, for tests of the view."""

from __future__ import annotations

from typing import Any

from holdfast.cli.chat.blocks import Block
from holdfast.cli.chat.view import View
from holdfast.client.events import TextDelta
from holdfast.domain.transcript_items import Change
from tests.records import record_json

Json = dict[str, Any]


class Story:
    """Writes records with gapless versions into a view, and remembers every block that came out."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.view = View(lambda: self.seconds)
        self.changes: list[tuple[int, Change]] = []
        self.view.changes = self.changes
        self.records: list[Json] = []
        self.blocks: list[Block] = []

    def happened(self, kind: str, **fields: Any) -> list[Block]:
        record = record_json(kind, version=len(self.records) + 1, at=1_000 * len(self.records), **fields)
        self.records.append(record)
        return self._keep(self.view.apply_record(record))

    def spoken(self, text: str, *, offset: int = 0, thinking: str = "", thinking_offset: int = 0) -> list[Block]:
        assert self.view.turn is not None
        return self._keep(
            self.view.apply_delta(TextDelta(self.view.turn.number, 1, offset, text, thinking_offset, thinking))
        )

    def _keep(self, blocks: list[Block]) -> list[Block]:
        self.blocks += blocks
        return blocks

    # --- what happens often ---------------------------------------------------------------------

    def created(self, **more: Any) -> None:
        self.happened("SessionCreated", **{"session": "abcd" * 4, "profile": "demo", "cwd": "/", "title": "t"} | more)

    def said(self, input: str, text: str, *, mode: str = "queue", by: str = "cli", source: str = "message") -> None:
        self.happened("InputReceived", input=input, text=text, mode=mode, by=by, source=source)

    def turn(self, turn: int, *inputs: str) -> None:
        self.happened("TurnStarted", turn=turn, inputs=list(inputs), profile="demo")

    def question_block(self, turn: int = 1, step: int = 1) -> list[Block]:
        return self.happened(
            "ModelRequested", turn=turn, step=step, attempt=1, model="demo", context_version=len(self.records)
        )

    def answered(self, text: str, *, turn: int = 1, calls: list[Json] | None = None, **more: Any) -> list[Block]:
        usage = {"input_tokens": 3, "output_tokens": 4, "cost": 0.5}
        fields = {"step": 1, "thinking": "", "finish_reason": "stop", "usage": usage, "duration_ms": 5} | more
        return self.happened("ModelResponded", turn=turn, text=text, calls=calls or [], **fields)

    def finished(self, turn: int = 1, outcome: str = "done", reason: str = "", **more: Any) -> list[Block]:
        return self.happened("TurnFinished", turn=turn, outcome=outcome, reason=reason, **more)

    def begin(self) -> Story:
        """As far as the first answer is being spoken."""
        self.created()
        self.said("i1", "hello")
        self.turn(1, "i1")
        self.question_block()
        return self
