"""Chapters in words: resets and what postpones them, what became of what ran, how a context was made shorter.

The command line and the chat say it with these, so they never disagree.
"""

from __future__ import annotations

from holdfast.cli.screen import SHORT_ID, Column, age, ago, duration, moment, one_line, plural, shorten, when
from holdfast.client.client import Client
from holdfast.client.http import Json, quote

NOTE = 400
RUNNING = (
    Column("ID"),
    Column("KIND"),
    Column("PID", right=True),
    Column("ACTIVITY"),
    Column("AGE", right=True),
    Column("LIFETIME"),
    Column("WHAT", flexible=True),
)
RULES = (Column("SETTING"), Column("VALUE"), Column("FROM"))
ORIGINS = {"session": "this session", "config": "[session_reset]", "default": "the default"}


def outlook(client: Client, session: str) -> Json:
    """When it is reset by itself, what stands in the way, and what runs."""
    found: Json = client.get(f"/v1/sessions/{quote(session)}/reset")
    return found


def opened_by(client: Client, session: str, chapter: Json) -> Json | None:
    """The reset that opened a chapter; none opened the first one."""
    if not chapter["version"]:
        return None
    page = client.get(f"/v1/sessions/{session}/events", after=chapter["version"] - 1, limit=1)
    event: Json = page["events"][0]["event"]
    return event


# --- events -----------------------------------------------------------------------------------------


def what_became(event: Json) -> list[str]:
    """What a reset kept and what it stopped, and its note for the next chapter; one line each."""
    from holdfast.domain.events.chapter import ChapterOpened
    from holdfast.domain.transcript_text import chapter_lines

    found = _event(event)
    lines = chapter_lines(found) if isinstance(found, ChapterOpened) else []
    return [shorten(one_line(line), NOTE) for line in lines]


def postponed(event: Json) -> str:
    """Why a reset that was due did not happen."""
    from holdfast.domain.events.chapter import ResetPostponed
    from holdfast.domain.transcript_text import postponed_text

    found = _event(event)
    return postponed_text(found, clock=when) if isinstance(found, ResetPostponed) else ""


def _event(found: Json) -> object:
    """An event as a struct; None if this version does not know it."""
    from holdfast.domain.events.lenient import lenient_record

    record = lenient_record({"seq": 0, "stream": "", "version": 0, "at": 0, "event": found})
    return None if record is None else record.event


# --- what holds now ---------------------------------------------------------------------------------


def rule_cells(found: Json, profile: str) -> list[list[str]]:
    """For RULES: each setting, its value, and who said so."""
    rules = found["rules"]
    values = {
        "mode": rules["mode"],
        "idle_minutes": f"{rules['idle_ms'] // 60_000:,}",
        "at_hour": str(rules["at_hour"]),
        "timezone": rules["timezone"] or "this machine's own",
        "max_postpone": _span(rules["max_postpone_ms"]),
        "process_max_age": _span(rules["process_max_age_ms"]),
        "on_live_process": rules["on_live_process"],
        "hand_over_note": _yes(rules["hand_over_note"]),
        "notify": _yes(rules["notify"]),
    }
    origins = ORIGINS | {"profile": f"profile {profile}"}
    return [[name, value, origins[found["origins"][name]]] for name, value in values.items()]


def outlook_facts(found: Json) -> list[tuple[str, str]]:
    """Chapter, next reset, and what postpones it."""
    chapter = found["chapter"]
    opened = "" if chapter["opened_at"] is None else f", opened {ago(chapter['opened_at'])}: {chapter['reason']}"
    rows = [("chapter", f"{chapter['chapter']}{opened}"), ("reset", _next(found))]
    if found["postponed"] is not None:
        rows.append(("postponed", postponed(found["postponed"])))
    return rows


def _next(found: Json) -> str:
    if found["rules"]["mode"] == "none":
        return "never by itself (mode = none)"
    if found["next_at"] is None:
        return "none: nothing was said in this chapter yet"
    unless = ", unless somebody says something" if found["next_rule"] == "idle" else ""
    late = "was due at" if found["postponed"] is not None else "at"
    return f"{late} {moment(found['next_at'])} ({found['next_rule']}){unless}"


def running_cells(tasks: list[Json]) -> list[list[str]]:
    """For RUNNING."""
    return [
        [
            one["task"][:SHORT_ID],
            one["kind"],
            "" if one["pid"] is None else str(one["pid"]),
            one["activity"] or "at work",
            age(one["age_ms"]),
            one["lifetime"],
            one["title"],
        ]
        for one in tasks
    ]


def in_full(found: Json, opened: Json | None) -> list[list[tuple[str, str]]]:
    """Everything that is known about resets of a session, as blocks of names and values."""
    blocks = [outlook_facts(found)]
    if (late := found["postponed"]) is not None:
        until = "as long as it takes: this is never cut" if late["until"] is None else moment(late["until"])
        blocks[0] += [
            ("due at", moment(late["due_at"])),
            ("at most until", until),
            ("looked at again", moment(late["next_check"])),
        ]
        blocks += [_blocker(one) for one in late["blockers"]]
    for word, tasks in (
        ("handed over", (opened or {}).get("kept", [])),
        ("stopped", (opened or {}).get("stopped", [])),
    ):
        blocks += [_survivor(word, one) for one in tasks]
    return blocks


def _blocker(one: Json) -> list[tuple[str, str]]:
    rows = [("postponed by", one["by"]), ("because", one["reason"])]
    if one["task"]:
        rows += [
            ("task", one["task"]),
            ("pid", "not known" if one["pid"] is None else str(one["pid"])),
            ("command", one["command"]),
            ("age", duration(one["age_ms"] or 0)),
            ("activity", one["activity"]),
            ("evidence", one["evidence"] or "not measured yet"),
        ]
    return rows


def _survivor(word: str, one: Json) -> list[tuple[str, str]]:
    return [
        (word, f"{one['task']} {one['title']}"),
        ("pid", "none" if one["pid"] is None else str(one["pid"])),
        ("age", duration(one["age_ms"])),
        ("activity", one["activity"] or "an agent"),
        ("evidence", one["evidence"] or "none"),
        ("rule", one["rule"]),
    ]


LIMIT_SOURCES = {
    "config": "config.toml says so",
    "window": "the model's window with room for its answer",
    "default": "by default, the model's window is not known",
}


def context_line(found: Json) -> str:
    """How large a context is, when it is summarised, and what takes the place of what it does not hold."""
    summary = "" if found["summary"] is None else f"; a {_source(found)} replaces the turns up to {found['covers']}"
    how = f"counted by {one_line(found['model'])}" if found.get("counted", True) else "estimated"
    limits = f"; summarised above {found['threshold']:,}" if found["threshold"] else "; never summarised"
    most = f", at most {found['limit']:,} ({LIMIT_SOURCES[found['limit_source']]})" if found["limit"] else ""
    return f"chapter {found['chapter']}{summary}; {plural(found['tokens'], 'token')} ({how}){limits}{most}"


def _source(found: Json) -> str:
    return "summary" if found["summary"] == "model" else "digest"


def _span(ms: int) -> str:
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000)):
        if ms >= 2 * size and ms % size == 0:
            return f"{ms // size}{unit}"
    return f"{ms / 1000:g}s"


def _yes(value: bool) -> str:
    return "yes" if value else "no"
