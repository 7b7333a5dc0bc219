"""When a context is made shorter, and what of it. Pure.

Only whole turns that have ended are covered, so no tool call is torn from its result, and what is being said
keeps its place. At rest it is tried when the context has passed the threshold; in the middle of a turn only
when it would not fit otherwise. A summary that fails loses nothing: the whole context stays while it fits,
then a digest takes its place until a summary succeeds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from holdfast.domain.chapter import Chapter
from holdfast.domain.history import AgentMessage, Message, Note, ToolResult, UserMessage, message_size
from holdfast.domain.session import Session

OnFailure = Literal["digest", "pause"]
CHARACTERS_A_TOKEN = 4
VAIN = 3
"""After so many summaries in a row that did not help, nobody tries again while the context fits."""
AGAIN_FIRST_MS, AGAIN_MOST_MS, AGAIN_TIMES = 30_000, 3_600_000, 8
LINE = 240
FIRST, LAST = 20, 100
"""Lines of a digest that are kept when there are more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRules:
    """`[compaction]`, for one session."""

    threshold: int = 100_000
    """Tokens; 0 never compacts by itself."""
    limit: int = 125_000
    """What does not fit any more."""
    keep_recent: int = 3
    """So many of the last turns stay word by word."""
    on_failure: OnFailure = "digest"


@dataclass(frozen=True, slots=True)
class Compact:
    """Put a summary in the place of the turns up to this one."""

    covers: int
    reason: str
    digest: bool = False
    """Without a model."""
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class Pause:
    """Ask a person what to do."""

    reason: str


def at_rest(session: Session, rules: CompactionRules, *, now: int) -> Compact | None:
    """What is worth doing while nobody waits."""
    chapter, last = session.chapter, session.turns
    if (wanted := chapter.requested) is not None:
        kept = 1 if last - chapter.start > 1 else 0
        covers = max(last - kept, chapter.start)
        return Compact(covers, f"{wanted.by} asked for it", instructions=wanted.instructions)
    return None if _too_early(session, now) else due(session, rules)


def _too_early(session: Session, now: int) -> bool:
    """After a failure it waits for its time; when it has none, until another turn has ended."""
    failed, ended = session.chapter.failed, session.last_turn
    if failed is None:
        return False
    if failed.retry_at is not None:
        return now < failed.retry_at
    assert session.chapter.last is not None
    return ended is None or ended.ended.version < session.chapter.last.version


def due(session: Session, rules: CompactionRules) -> Compact | None:
    """What nobody has to ask for."""
    chapter, last = session.chapter, session.turns
    if chapter.provisional and chapter.summary is not None:
        return Compact(
            max(chapter.summary.covers_turn, last - rules.keep_recent), "a digest stands where a summary should"
        )
    if chapter.ineffective >= VAIN:
        return None
    return _over(session, rules.threshold, rules.keep_recent, last)


def needed_before_call(session: Session, rules: CompactionRules, *, refused: bool = False) -> Compact | Pause | None:
    """What must be done before the model can be asked; `refused` when it said that the context is too long."""
    chapter, ended = session.chapter, session.turns - 1
    limit = 1 if refused else rules.limit
    found = _over(session, limit, rules.keep_recent, ended) or _over(session, limit, 0, ended)
    if found is None:
        return None
    if refused:
        found = Compact(found.covers, f"the model refused the context of about {session.size} tokens as too long")
    if chapter.use_digest:
        return Compact(found.covers, found.reason, digest=True)
    if not chapter.failures:
        return found
    if rules.on_failure == "digest":
        return Compact(found.covers, f"{found.reason}, and there is no summary", digest=True)
    said = "" if chapter.failed is None else f" ({chapter.failed.problem.message.rstrip('.')})"
    return Pause(f"{found.reason}, and the summary failed{said}")


def _over(session: Session, limit: int, keep: int, last: int) -> Compact | None:
    """Whether the context is larger than this, and something can be done about it."""
    chapter = session.chapter
    if not limit or session.size <= limit or last - keep <= chapter.start:
        return None
    return Compact(last - keep, f"the context has about {session.size} tokens, over {limit}")


def retry_at(chapter: Chapter, *, now: int) -> int | None:
    """When a summary that failed now is tried again by itself: later each time, and not for ever."""
    if chapter.failures + 1 >= AGAIN_TIMES:
        return None
    return now + min(AGAIN_MOST_MS, AGAIN_FIRST_MS << 2 * chapter.failures)


def messages_covered(session: Session, covers: int) -> list[Message]:
    """What a summary up to this turn has to tell: the originals, whatever digest stands for them now."""
    chapter = session.chapter
    head = [] if chapter.provisional else session.context_preamble()
    start = chapter.after_turn if chapter.provisional else chapter.start
    return [*head, *(message for message in session.messages if start < message.turn <= covers)]


def fit_to_budget(messages: list[Message], tokens: int) -> list[Message]:
    """The last of them that fit, and a digest of those before: what is too long to be read is not summarised."""
    for place in range(len(messages) - 1, -1, -1):
        tokens -= message_size(messages[place])
        if tokens < 0:
            return [Note(0, digest(messages[: place + 1])), *messages[place + 1 :]]
    return messages


def digest(messages: list[Message]) -> str:
    """A summary without a model: what people asked, what was answered last, which tools ran."""
    lines: list[str] = []
    tools: dict[str, int] = {}
    answer = ""
    for message in messages:
        match message:
            case UserMessage(text=text):
                if answer:
                    lines.append(f"You answered: {_line(answer)}")
                lines.append(f"The user said: {_line(text)}")
                answer = ""
            case AgentMessage(text=text):
                answer = text or answer
            case ToolResult(tool=tool):
                tools[tool] = tools.get(tool, 0) + 1
            case Note(turn=turn, text=text):
                lines.append(_line(text) if turn else text)  # what opens a chapter is a summary itself
    if answer:
        lines.append(f"You answered: {_line(answer)}")
    if len(lines) > FIRST + LAST:
        lines[FIRST:-LAST] = [f"[… {len(lines) - FIRST - LAST} lines left out …]"]
    if tools:
        lines.append("Tools used: " + ", ".join(f"{name} {count} times" for name, count in sorted(tools.items())))
    return "\n".join(lines)


def _line(text: str) -> str:
    words = " ".join(text[: 4 * LINE].split())
    return words if len(words) <= LINE else words[: LINE - 1] + "…"
