"""A client survives a gateway that is newer than itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.client.lenient import lenient_record
from holdfast.domain.events import Record

EVENTS = [
    path
    for path in sorted((Path(__file__).parent.parent / "golden" / "events").glob("*.json"))
    if path.stem != "Record"
]


def record(event: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"seq": 1, "stream": "session/s", "version": 1, "at": 0, "event": event, **more}


def _with_new_fields(value: Any) -> Any:
    """The value with a field in every object that nobody here knows. Free dictionaries have any field anyway."""
    if isinstance(value, list):
        return [_with_new_fields(one) for one in value]
    if isinstance(value, dict):
        return {
            name: one if name in ("means", "metadata", "options", "rules") else _with_new_fields(one)
            for name, one in value.items()
        } | {"new_in_2.0": [1]}
    return value


@pytest.mark.parametrize("path", EVENTS, ids=lambda path: path.stem)
def test_new_fields_are_left_out(path: Path) -> None:
    event = json.loads(path.read_text())
    assert lenient_record(_with_new_fields(record(event))) == msgspec.convert(record(event), Record)


def test_an_unknown_kind_is_no_record() -> None:
    assert lenient_record(record({"kind": "SomethingNew", "text": "x"})) is None
