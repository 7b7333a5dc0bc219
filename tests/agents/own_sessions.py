"""Sessions that agents had in their own terminal, as files of the same form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ID = "0a1b2c3d-1111-4222-8333-444444444444"
OTHER = "0a1b2c3d-1111-4222-8333-555555555555"
Line = dict[str, Any] | str


def at(second: int) -> str:
    return f"2026-11-10T08:00:{second:02}.000Z"


def ms(second: int) -> int:
    return 1_794_297_600_000 + second * 1000


# --- Claude Code ----------------------------------------------------------------------------------


def person(text: object, second: int, *, uuid: str = "", parent: str | None = None, **more: object) -> Line:
    message = {"role": "user", "content": text}
    return {
        "type": "user",
        "message": message,
        "timestamp": at(second),
        "uuid": uuid or f"u{second}",
        "parentUuid": parent,
        **more,
    }


def agent(second: int, *blocks: dict[str, Any], uuid: str = "", **more: object) -> Line:
    message = {"role": "assistant", "content": [*blocks]}
    return {"type": "assistant", "message": message, "timestamp": at(second), "uuid": uuid or f"a{second}", **more}


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def use(id: str, name: str, **arguments: object) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def result(id: str, text: str, second: int, *, is_error: bool = False) -> Line:
    return person([{"type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error}], second)


def claude_file(home: Path, cwd: Path, *lines: Line, id: str = ID, stated: str = "") -> Path:
    """`home` is that of Claude Code; `stated` is the directory that the file names, if that is another one."""
    file = home / "projects" / str(cwd).replace("/", "-").replace("_", "-") / f"{id}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    first = {"type": "system", "subtype": "start", "cwd": stated or str(cwd), "sessionId": id, "timestamp": at(0)}
    file.write_text(text_of(first, *lines))
    return file


def text_of(*lines: Line) -> str:
    return "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)


# --- Codex ----------------------------------------------------------------------------------------


def item(kind: str, second: int, **payload: object) -> Line:
    return {"timestamp": at(second), "type": "response_item", "payload": {"type": kind, **payload}}


def event(kind: str, second: int, **payload: object) -> Line:
    return {"timestamp": at(second), "type": "event_msg", "payload": {"type": kind, **payload}}


def asked(text: str, second: int) -> Line:
    content = [{"type": "text", "text": text}]
    return event("item_completed", second, item={"type": "UserMessage", "content": content})


def answered(text: str, second: int) -> Line:
    return item("message", second, role="assistant", content=[{"type": "output_text", "text": text}])


def codex_file(home: Path, cwd: Path, *lines: Line, id: str = ID, **meta: object) -> Path:
    """`home` is that of Codex. With `ordinals`, the lines are numbered from that."""
    file = home / "sessions" / "2026" / "11" / "10" / f"rollout-2026-11-10T08-00-00-{id}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    first = {"timestamp": at(0), "type": "session_meta", "payload": {"id": id, "cwd": str(cwd), **meta}}
    begin = int(str(meta.get("forked_from_ordinal_exclusive", 0)))
    numbered = [
        line if isinstance(line, str) else {**line, "ordinal": begin + index}
        for index, line in enumerate([first, *lines])
    ]
    file.write_text(text_of(*numbered))
    return file
