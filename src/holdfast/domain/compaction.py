"""When a context is made shorter, and what of it. Pure.

A context that has passed the threshold is made shorter in this order, and no further than is needed:

1. Old tool results become short notes, a large part at once: a change at the beginning of a request makes the
   provider read all of it again. What the model has not answered yet stays.
2. A summary replaces the oldest turns, then the first steps of the running turn. A step is covered with
   its calls and their results or not at all, and what the user said in the running turn stays word for word.
3. Only what does not fit at all: the results that the model has not answered yet are cut.

A summary that fails loses nothing: the whole context stays while it fits, then a digest is used until a
summary succeeds. With `threshold` and `limit` 0 nothing of this is done. Not here: who writes the summary
(`runtime/compaction.py`), and what the summary is made from (`summary.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from holdfast.domain.chapter import Chapter
from holdfast.domain.context_limits import CompactionRules, LimitSource, Sizes, sizes
from holdfast.domain.events.chapter import SummaryPurpose, SummaryWritten, ToolResultsTrimmed
from holdfast.domain.events.problem import Problem
from holdfast.domain.history import (
    WHOLE_TURN,
    AgentMessage,
    History,
    Message,
    Position,
    ToolResult,
    UserMessage,
    message_size,
    position,
)
from holdfast.domain.session import Session, Turn, trim_results
from holdfast.domain.session_fold import after

MAX_INEFFECTIVE = 3
"""After this many ineffective summaries in a row none is tried again while the context fits."""
AGAIN_FIRST_MS, AGAIN_MOST_MS, AGAIN_TIMES = 30_000, 3_600_000, 8
HAND_OVER_ATTEMPTS = 2
TRIM_ABOVE = 400
"""Results up to this many characters are not trimmed."""
NOTE_CHARACTERS = 200
"""The note that replaces a result is shorter than this."""
SUMMARY_TOKENS = 1_000
"""The usual length of a summary."""


@dataclass(frozen=True, slots=True)
class Trim:
    """Replace long tool results by notes."""

    event: ToolResultsTrimmed


@dataclass(frozen=True, slots=True)
class Compact:
    """Replace the turns up to this one by a summary, or write the note for the next chapter."""

    covers: int
    reason: str
    digest: bool = False
    """Without a model."""
    instructions: str = ""
    covers_step: int = 0
    """Of that turn only the steps up to this one; 0 is all of it."""
    purpose: SummaryPurpose = "compaction"

    @property
    def end(self) -> Position:
        """The position up to which it covers the conversation."""
        return (self.covers, self.covers_step or WHOLE_TURN)


@dataclass(frozen=True, slots=True)
class Pause:
    """Ask a person what to do."""

    reason: str


@dataclass(frozen=True, slots=True)
class TooLong:
    """The context is too long, and nothing in it can be made shorter."""

    problem: Problem


# --- at rest --------------------------------------------------------------------------------------


def at_rest(session: Session, rules: CompactionRules, *, now: int) -> Compact | Trim | None:
    """Return what to do about the context of an idle session."""
    chapter, last = session.chapter, session.turns
    if (wanted := chapter.requested) is not None:
        if wanted.purpose == "hand_over":
            return Compact(last, f"a reset by {wanted.by}", purpose="hand_over")
        kept = 1 if last - chapter.start > 1 else 0
        covers = max(last - kept, chapter.start)
        return Compact(covers, f"{wanted.by} asked for it", instructions=wanted.instructions)
    return None if _too_early(session, now) else due(session, rules)


def _too_early(session: Session, now: int) -> bool:
    """Return whether to wait after a failure: until its `retry_at`, or without one until another turn has ended."""
    failed, ended = session.chapter.failed, session.last_turn
    if failed is None:
        return False
    if failed.retry_at is not None:
        return now < failed.retry_at
    assert session.chapter.last is not None
    return ended is None or ended.ended.version < session.chapter.last.version


def due(session: Session, rules: CompactionRules) -> Compact | Trim | None:
    """Return what is done without a request: replace a digest by a summary, or shorten what is above the threshold."""
    chapter, last = session.chapter, session.turns
    if chapter.provisional and chapter.summary is not None:
        return Compact(max(chapter.summary.covers_turn, last - rules.keep_recent), "a digest is replaced by a summary")
    found = sizes(session, rules)
    if not rules.threshold or found.size <= found.threshold:
        return None
    reason = _over(session, found)
    if (trim := _trim_old(session, found, (last, WHOLE_TURN), reason)) is not None:
        return trim
    covers = last - rules.keep_recent
    if chapter.ineffective >= MAX_INEFFECTIVE or (covers, WHOLE_TURN) <= chapter.covered:
        return None
    return Compact(covers, reason)


# --- before a request -------------------------------------------------------------------------------


def needed_before_call(
    session: Session, rules: CompactionRules, *, now: int, unmeasured: int = 0
) -> Trim | Compact | Pause | TooLong | None:
    """Return what must be done before the next model request; `unmeasured` are tokens that no request had so far."""
    turn, found = session.turn, sizes(session, rules, unmeasured=unmeasured)
    assert turn is not None
    if not found.limit or found.size <= found.threshold:
        return None
    reason, last = _over(session, found), _last_answered(turn)
    if (trim := _trim_old(session, found, last, reason)) is not None:
        return trim
    if (shorter := _summarise(session, rules, found, last, reason, now)) is not None:
        return shorter
    if found.size <= found.limit:
        return None
    if (cut := _cut_unanswered(session, found, last, reason)) is not None:
        return cut
    if turn.failed is None and (found.size <= rules.limit or session.fixed_tokens + unmeasured > found.limit // 2):
        return None  # the model has not refused this size, or no message could be made shorter: try the request
    return TooLong(_too_long(session, turn, found, rules))


def _over(session: Session, found: Sizes) -> str:
    if session.turn is not None and session.turn.failed is not None:
        return f"the model refused the context of about {found.size} tokens as too long"
    return f"the context has about {found.size} tokens, over {found.threshold}"


def _last_answered(turn: Turn) -> Position:
    """Return the last step whose results the model has answered."""
    step = (turn.step if turn.answered else turn.step - 1) - 1
    return (turn.number, step) if step > 0 else (turn.number - 1, WHOLE_TURN)


def _trim_old(session: Session, found: Sizes, last: Position, reason: str) -> Trim | None:
    """Trim the oldest results until the context is small enough, if that frees enough."""
    freed, covers = 0, None
    for message in session.visible_history:
        at = position(message)
        if at > last or (covers is not None and at > covers and found.size - freed <= found.goal):
            break
        if isinstance(message, ToolResult) and len(message.output) > TRIM_ABOVE:
            freed += message_size(message) - NOTE_CHARACTERS // 4
            covers = at
    if covers is None or freed < found.threshold // 8:
        return None
    return _trim(session, found, covers, above=TRIM_ABOVE, keep=0, reason=reason)


def _cut_unanswered(session: Session, found: Sizes, last: Position, reason: str) -> Trim | None:
    """Shorten the results that the model has not answered, evenly, so far that everything fits."""
    seen = session.visible_history
    results = [one for one in seen[seen.index_after(last) :] if isinstance(one, ToolResult)]
    long = [one for one in results if len(one.output) > TRIM_ABOVE]
    if not long:
        return None
    tokens, characters = sum(map(message_size, long)), sum(len(one.output) for one in long)
    room = tokens - (found.size - found.threshold)
    keep = _share([len(one.output) for one in long], room * characters // max(tokens, 1)) - NOTE_CHARACTERS
    keep = keep if keep >= NOTE_CHARACTERS else 0
    above = max(TRIM_ABOVE, keep + NOTE_CHARACTERS)
    trim = _trim(session, found, position(long[-1]), above=above, keep=keep, reason=reason)
    return trim if trim.event.tokens_after < trim.event.tokens_before else None


def _share(lengths: list[int], room: int) -> int:
    """Return how many characters each may keep, so that together they have no more than `room`."""
    lengths = sorted(lengths)
    for index, length in enumerate(lengths):
        share = room // (len(lengths) - index)
        if length >= share:
            return share
        room -= length
    return lengths[-1]


def _trim(session: Session, found: Sizes, covers: Position, *, above: int, keep: int, reason: str) -> Trim:
    event = ToolResultsTrimmed(
        covers_turn=covers[0],
        covers_step=covers[1],
        above=above,
        keep=keep,
        results=0,
        tokens_before=found.size,
        tokens_after=0,
        reason=reason,
    )
    before, shorter = session.visible_messages(), trim_results(session.visible_messages(), event)
    results = sum(one is not other for one, other in zip(before, shorter, strict=True))
    left = size_after(session, History(shorter))
    return Trim(msgspec.structs.replace(event, results=results, tokens_after=left))


def size_after(session: Session, visible: History) -> int:
    """Return about how many tokens a request has when the model sees these messages instead.

    What the provider counted beyond the messages stays as it is.
    """
    size, estimated = session.size, session.visible_history.tokens() + session.fixed_tokens
    gone = session.visible_history.tokens() - visible.tokens()
    return size - gone if size >= estimated else size - gone * size // estimated


def size_after_summary(session: Session, made: SummaryWritten) -> int:
    """Return about how many tokens a request has with this summary."""
    return size_after(session, after(session, [made], at=session.updated_at).visible_history)


# --- summaries --------------------------------------------------------------------------------------


def _summarise(
    session: Session, rules: CompactionRules, found: Sizes, last: Position, reason: str, now: int
) -> Compact | Pause | None:
    chapter = session.chapter
    end = _boundary(session, found, last, rules.keep_recent)
    if end is None:
        return None
    step = 0 if end[1] == WHOLE_TURN else end[1]
    compact = Compact(end[0], reason, covers_step=step)
    if found.size <= found.limit:
        return None if chapter.ineffective >= MAX_INEFFECTIVE or _too_early(session, now) else compact
    if chapter.use_digest:
        return Compact(end[0], reason, digest=True, covers_step=step)
    if not chapter.failures or not _too_early(session, now):
        return compact
    if rules.on_failure == "digest":
        return Compact(end[0], f"{reason}, and there is no summary", digest=True, covers_step=step)
    said = "" if chapter.failed is None else f" ({chapter.failed.problem.message.rstrip('.')})"
    return Pause(f"{reason}, and the summary failed{said}")


def _boundary(session: Session, found: Sizes, last: Position, keep_recent: int) -> Position | None:
    """Return how far a summary should reach: all but `keep_recent` turns if that is enough; else no more is covered
    than makes the context half as large as it may be.
    """
    covered, seen = session.chapter.covered, session.visible_history
    number, step = last
    ended = number if step == WHOLE_TURN else number - 1
    candidates = [(turn, WHOLE_TURN) for turn in range(max(1, covered[0]), ended + 1)]
    if step != WHOLE_TURN:
        candidates += [(number, one) for one in range(1, step + 1)]
    candidates = [one for one in candidates if one > covered]
    if not candidates:
        return None
    opening = 0 if session.chapter.opened is None else 1
    kept = sum(map(message_size, session.assignment(last)))
    summary = min(SUMMARY_TOKENS, found.threshold // 8)
    recent = (ended - keep_recent, WHOLE_TURN)
    left = found.size
    for end in candidates:
        if end < recent:
            continue
        freed = seen.tokens(opening, seen.index_after(end)) - (kept if end[0] > ended else 0)
        left = found.size - freed + summary
        if left <= (found.threshold * 9 // 10 if end == recent else found.goal):
            return end
    enough = candidates[-1][0] > ended and left <= found.threshold
    return candidates[-1] if enough or found.size > found.limit else None  # while it fits, no turn waits for a summary


def retry_at(chapter: Chapter, *, now: int) -> int | None:
    """Return when a summary that failed now is retried automatically: later each time; None after the last retry."""
    if chapter.failures + 1 >= AGAIN_TIMES:
        return None
    return now + min(AGAIN_MOST_MS, AGAIN_FIRST_MS << 2 * chapter.failures)


# --- what cannot be helped --------------------------------------------------------------------------

FIT: dict[LimitSource, str] = {
    "config": "fit by `limit` in `[compaction]`",
    "window": "fit into the window of the model with room for its answer",
    "default": "fit by default, since the window of the model is not known",
}
MORE_ROOM = "Choose a model with a larger window, or raise `limit` in `[compaction]` of config.toml."
OFF = (
    "Compaction is off (`threshold = 0` in `[compaction]`): turn it on, or use `/compact`, undo the turn or reset the "
    "session."
)


def _too_long(session: Session, turn: Turn, found: Sizes, rules: CompactionRules) -> Problem:
    """Return the problem of a context that cannot be made shorter: what is large in it, and what helps."""
    largest = max(session.visible_history, key=message_size)
    tokens, fixed = message_size(largest), session.fixed_tokens
    if fixed > tokens:
        what = f"its instructions and tools alone have about {fixed:,}"
        hint = f"Give the profile fewer tools or shorter instructions. {MORE_ROOM}"
    else:
        what = f"{_named(largest)} alone has about {tokens:,}"
        hint = f"Send long texts in pieces or as files that the agent can read in parts. {MORE_ROOM}"
    said = f"{turn.failed.message.rstrip('.')}. " if turn.failed is not None else ""
    fit = "fit" if found.limit < rules.limit else FIT[rules.limit_source]
    message = (
        f"{said}The request would have about {found.size:,} tokens, {found.limit:,} {fit}, and nothing more can be "
        f"omitted: {what}."
    )
    return Problem(code="context_too_long", message=message, hint=hint)


def _named(message: Message) -> str:
    match message:
        case UserMessage():
            return "one message of the user"
        case AgentMessage():
            return "one answer of the model"
        case ToolResult(tool=tool):
            return f"one result of `{tool}`"
        case _:
            return "one note of the runtime"
