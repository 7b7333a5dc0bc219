"""What of an output can be searched."""

from __future__ import annotations

from pathlib import Path

from holdfast.domain.events import Record, task_stream
from holdfast.domain.events.task import CommandExited, TaskFinished
from holdfast.store.search_texts import AROUND, OUTPUT_BYTES, command_output, printed_output, snippet

TASK = "0123456789abcdef"


def test_of_a_long_output_the_beginning_and_the_end_are_found(tmp_path: Path) -> None:
    (tmp_path / TASK).mkdir()
    (tmp_path / TASK / "output.log").write_bytes(b"first " + b"x" * (2 * OUTPUT_BYTES) + b"middle" * 3 + b" last")
    ended = TaskFinished(task=TASK, outcome="done", reason="", end=CommandExited(code=0))
    record = Record(seq=1, stream=task_stream(TASK), version=1, at=1, event=ended)
    found = command_output(record, ended, printed_output(ended, tmp_path), "")
    assert found is not None
    assert found.text.startswith("first x") and found.text.endswith(" last")
    assert len(found.text) == 2 * OUTPUT_BYTES


def test_a_snippet_has_as_much_of_the_text_before_as_behind_what_was_found() -> None:
    far = "." * AROUND
    assert snippet(f"x{far}two\n  Words{far}y", "TWO\n  words") == f"…{far}two Words{far}…"
    assert snippet(f"{far}two words{far}", "two words") == f"{far}two words{far}"
    assert snippet("other words", "nothing") == "other words"
