"""The items of a transcript in words: one plain sentence for each notice, and how calls, turns and summaries ended.

The sentences that the dashboard says too are templates: web/generate.py hands them to it, and both fill them in with
the same values (`fill` here, `web/src/log/sentences.ts` there). tests/golden/sentences.json is run by both.

Pure: a time is put into words by the caller (`clock`), who knows where the reader is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, assert_never

import msgspec

from holdfast.domain.card_number import PREFIX
from holdfast.domain.chapter import INTERRUPTED
from holdfast.domain.events.chapter import Blocker, ChapterOpened, ResetPolicy, Survivor
from holdfast.domain.events.external_agent import PlanEntry
from holdfast.domain.events.session import InputRevised
from holdfast.domain.text import duration
from holdfast.domain.transcript_items import (
    ChapterItem,
    NoticeEvent,
    SummaryItem,
    ToolCallView,
    TurnEndItem,
    WaitAnswerView,
    WaitItem,
)

FormatTime = Callable[[int], str]
"""Puts a time into words."""
SHORT_ID = 8
COVERED = (
    "[!covers_step?the turns up to {covers_turn}]"
    "[covers_step?everything up to step {covers_step} of turn {covers_turn}]"
)
TOKENS = "({tokens_before|count} → {tokens_after|count} tokens)"
CARD = f"[card_number?{PREFIX}-{{card_number}}][!card_number?{{card}}]"
SENTENCES = {
    "SessionCreated": (
        "[origin.parent?Forked by {by} from session {origin.parent} at version {origin.version}.]"
        "[!origin.parent?Created by {by} in {cwd} with profile {profile}.]"
    ),
    "SessionRenamed": "Renamed to “{title}” by {by}.",
    "SessionArchived": "Archived by {by}. A new message restores it.",
    "SessionRestored": "Restored by {by}.",
    "SessionPinned": "[pinned?Pinned][!pinned?Unpinned] by {by}.",
    "SessionTellSet": (
        "[tell=always?You are always told of this session][tell=never?You are never told of this session]"
        "[tell=default?You are told of this session by the rules of each destination]: chosen by {by}."
    ),
    "SessionAdopted": (
        "Adopted by {by} from {agent}. "
        "[turns=1?The turn above was][!turns=1?The {turns|count} turns above were] imported from {file}."
        "[left_out? Older turns that were left out: {left_out|count}.]"
        "[unreadable? Lines that could not be read: {unreadable|count}.]"
        " The next message continues a copy of that session; the original stays as it is."
    ),
    "AgentChosen": "Profile {profile}[model? with model {model}] was chosen by {by} and answers from here on.",
    "NodeChosen": "Where it runs was chosen by {by}: [node?{node}][!node?any node].",
    "ModeChosen": (
        "The mode was changed by {by}: [mode=profile?as the profile says.]"
        "[mode=ask?the agent asks before every change and every command.]"
        "[mode=read?read only, the agent changes nothing and runs no command.]"
    ),
    "AgentAttached": (
        "{agent}[version? {version}] "
        "[how=new?works in this session.][how=resume?resumed its session.][how=load?loaded its session.]"
        "[how=fork?continues a copy of the session that was adopted.]"
        "[version_before? It was updated: before that it was {version_before}.]"
        "[reason? It may not know the conversation: {reason|clause}.]"
    ),
    "AgentPlanned": "Plan: {entries|plan}.",
    "FailureDismissed": "The failure of turn {turn} was dismissed by {by}.",
    "StopRequested": "A stop of turn {turn} was requested by {by}.",
    "TurnBackgrounded": "Turn {turn} was made background task {task|short} by {by}. It continues here.",
    "TurnSuspended": "Turn {turn} was suspended: {reason|clause}. It resumes automatically.",
    # Attempt 0: it was shut down, no crash.
    "TurnResumed": "Turn {turn} resumed after {away_ms|duration}[attempt?, attempt {attempt}]: {reason|clause}.",
    "TurnUndone": "Turn {turn} was undone by {by}: the model no longer sees it. Its effects stay.",
    "RunBound": (
        f"Run {{run}} of card {CARD} works in this session. "
        "Messages become comments on the card, which the worker reads."
    ),
    "RunReleased": f"Run {{run}} of card {CARD} is over. Messages no longer reach the card.",
    "ResetPolicySet": "The reset rules of this session were set by {by}: {policy|settings}.",
    "ResetPostponed": (
        "The {rule} reset was due at {due_at|time} and is postponed[until? until {until|time} at the latest]: "
        "{blockers|reasons}."
    ),
    "ChapterRejoined": "Chapter {chapter} was undone by {by}: the model sees the chapter before it again.",
    "ToolResultsTrimmed": (
        "{results|count} tool [results=1?result was][!results=1?results were] "
        "[keep?shortened][!keep?replaced by notes] for the model, "
        f"up to step {{covers_step}} of turn {{covers_turn}} {TOKENS}: {{reason|clause}}."
    ),
    "SummaryRequested": (
        "[purpose=hand_over?A reset was requested by {by}. The agent writes a note for the next chapter first.]"
        "[!purpose=hand_over?A shorter context was requested by {by}][instructions?: {instructions|clause}]"
        "[!purpose=hand_over?.]"
    ),
    "SummaryFailed": (
        "There is no note for the next chapter: {problem.message|clause}.[retry_at? It will be tried again.]"
    ),
    "summary running": f"{{model}} writes a summary of {COVERED}: {{reason|clause}}.",
    "summary done": (
        f"A [source=model?summary][!source=model?digest] replaces {COVERED} for the model {TOKENS}: {{reason|clause}}."
        "[!source=model? It was made by a rule, without a model; a summary replaces it as soon as one succeeds.]"
    ),
    "summary failed": (
        "No summary (attempt {attempt}): {problem.message|clause}. It will be tried again "
        "[retry_at?at {retry_at|time}][!retry_at?after the next turn or on request]."
    ),
    "summary interrupted": "{problem.message|clause}. Nothing is lost.",
}
"""By the kind of event, and by the state of a summary. `{field|format}` is a value, in one of FORMATS; the text in
`[field?text]` is there if the field is set, in `[!field?text]` if it is not, in `[field=value?text]` if it has that
value.
"""
CONDITION = re.compile(r"\[(?P<no>!?)(?P<field>[\w.]+)(?:=(?P<value>\w+))?\?(?P<text>[^\]]*)\]")
VALUE = re.compile(r"\{(?P<field>[\w.]+)(?:\|(?P<format>\w+))?\}")


def notice_text(event: NoticeEvent, *, clock: FormatTime) -> str:
    """A sentence for an event that is a line of its own."""
    return fill(SENTENCES[type(event).__name__], event, clock=clock)


def fill(template: str, source: object, *, clock: FormatTime) -> str:
    """A template of SENTENCES with the values of an event or an item."""

    def condition(found: re.Match[str]) -> str:
        value = _field(source, found["field"])
        is_met = bool(value) if found["value"] is None else str(value) == found["value"]
        return found["text"] if is_met != bool(found["no"]) else ""

    def value(found: re.Match[str]) -> str:
        value = _field(source, found["field"])
        return clock(value) if found["format"] == "time" else FORMATS[found["format"] or ""](value)

    return VALUE.sub(value, CONDITION.sub(condition, template))


def _field(source: object, path: str) -> Any:
    for name in path.split("."):
        source = getattr(source, name, None)
    return source


def _clause(text: str) -> str:
    """A text as the end of a sentence: without its own full stop."""
    return text.strip().removesuffix(".")


def _reasons(blockers: list[Blocker]) -> str:
    return "; ".join(_clause(blocker.reason) for blocker in blockers)


def _plan(entries: list[PlanEntry]) -> str:
    words = {"pending": "", "in_progress": " (in progress)", "completed": " (done)"}
    return "; ".join(f"{_clause(entry.text)}{words[entry.state]}" for entry in entries)


RESET_WORDS = {
    "mode none": "never reset by a rule",
    "mode idle": "reset when idle",
    "mode daily": "reset every day",
    "mode both": "reset when idle and every day",
    "idle_minutes": "idle after {} min without a message",
    "at_hour": "every day at {}:00",
    "timezone": "time zone {}",
    "max_postpone": "postponed for at most {}",
    "process_max_age": "commands older than {} postpone nothing",
    "on_live_process hand_over": "running commands continue",
    "on_live_process stop_idle": "idle commands are stopped",
    "on_live_process stop": "running commands are stopped",
    "hand_over_note true": "with a note for the next chapter",
    "hand_over_note false": "without a note for the next chapter",
    "notify true": "with notifications of resets",
    "notify false": "without notifications of resets",
}
"""What each setting of a reset policy means, by its name and value, or by its name for any value."""


def _settings(policy: ResetPolicy) -> str:
    """The settings that a person chose for one session."""
    chosen = msgspec.to_builtins(policy)
    values = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in chosen.items()}
    words = [
        RESET_WORDS.get(f"{name} {value}") or RESET_WORDS[name].replace("{}", value) for name, value in values.items()
    ]
    return ", ".join(words) or "as its profile says"


FORMATS: dict[str, Callable[[Any], str]] = {
    "": str,
    "clause": _clause,
    "plan": _plan,
    "count": lambda count: f"{count:,}",
    "duration": lambda passed: duration(passed) if passed >= 1000 else "less than 1 s",
    "reasons": _reasons,
    "settings": _settings,
    "short": lambda task: str(task)[:SHORT_ID],
}


# --- items ------------------------------------------------------------------------------------------


def call_detail(call: ToolCallView) -> str:
    """The exit code or the signal of its command, where that says something."""
    if call.state == "started":
        return ""
    return call.signal or (f"exit code {call.exit_code}" if call.exit_code else "")


def call_result(call: ToolCallView) -> str:
    """How a call ended: `failed, exit code 3`."""
    return ", ".join(filter(None, (call.state, call_detail(call))))


def revision_text(revision: InputRevised) -> str:
    """What was done to a message in the queue, and by whom."""
    done = [
        "reworded" if revision.text is not None else "",
        f"set to {revision.mode}" if revision.mode else "",
        f"moved to place {revision.place}" if revision.place is not None else "",
    ]
    why = f": {_clause(revision.reason)}" if revision.reason else ""
    return f"{' and '.join(filter(None, done))} by {revision.by}{why}"


def wait_text(item: WaitItem, *, clock: FormatTime) -> str:
    """What a turn waits for."""
    match item.purpose:
        case "question":
            choices = f" ({', '.join(item.choices)})" if item.choices else ""
            return f"Turn {item.turn} waits for an answer: {item.reason}{choices}"
        case "approval":
            return f"Turn {item.turn} waits for an approval: {item.reason}"
        case "retry":
            when = f" at {clock(item.until)}" if item.until is not None else ""
            return f"Turn {item.turn} tries again{when}: {_clause(item.reason)}."
        case "quota" if item.until is not None:
            return f"Turn {item.turn} continues at {clock(item.until)}: {_clause(item.reason)}."
        case "resume" | "compaction" | "login" | "quota":
            return f"Turn {item.turn} waits for you: {_clause(item.reason)}."
        case _ as never:
            assert_never(never)


def answer_text(answer: WaitAnswerView) -> str:
    """The answer with its note: `deny (not there)`."""
    return f"{answer.answer} ({answer.note})" if answer.note else answer.answer


def turn_end_text(item: TurnEndItem) -> str:
    """How a turn ended, and what helps if it failed."""
    if item.outcome == "done":
        return f"Turn {item.turn} is done."
    hint = f" {item.problem.hint}" if item.problem is not None and item.problem.hint else ""
    reason = _clause(item.reason)
    if item.outcome == "failed":
        return f"Turn {item.turn} failed: {reason}.{hint}"
    stopped = reason if reason.startswith("stopped") else f"stopped: {reason}"
    return f"Turn {item.turn} was {stopped}.{hint}"


def chapter_lines(item: ChapterItem | ChapterOpened) -> list[str]:
    """What a reset kept and stopped, and its note for the next chapter; one line each."""
    lines = []
    if item.kept:
        lines.append("Kept: " + "; ".join(f"{_named(one)} ({_activity(one)})" for one in item.kept))
    if item.stopped:
        lines.append("Stopped: " + "; ".join(f"{_named(one)} ({one.rule})" for one in item.stopped))
    if item.hand_over:
        author = "Note of the agent" if item.hand_over_from == "model" else "Digest, made by a rule"
        lines.append(f"{author}: {item.hand_over}")
    return lines


def _named(one: Survivor) -> str:
    return f"{one.task[:SHORT_ID]} {one.title}"


def _activity(one: Survivor) -> str:
    return f"{one.activity or 'an agent'}, for {duration(one.age_ms)}"


def summary_text(item: SummaryItem, *, clock: FormatTime) -> str:
    """What became of a summary."""
    is_interrupted = item.problem is not None and item.problem.code == INTERRUPTED
    return fill(SENTENCES[f"summary {'interrupted' if is_interrupted else item.state}"], item, clock=clock)


def covered_text(item: SummaryItem) -> str:
    """How far a summary reaches."""
    return fill(COVERED, item, clock=str)
