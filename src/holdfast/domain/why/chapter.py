"""`why` about chapters: what was reset and why, what postpones the next reset, how the context was made shorter."""

from __future__ import annotations

from holdfast.domain.chapter import Chapter
from holdfast.domain.compaction import MAX_INEFFECTIVE
from holdfast.domain.events.chapter import SummaryWritten
from holdfast.domain.reset import NotDue, still_postponed
from holdfast.domain.session import Session
from holdfast.domain.text import duration
from holdfast.domain.why.sentence import Sentence, sentence


def why_chapter(session: Session, coming: NotDue, *, now: int) -> list[Sentence]:
    """Return the sentences about chapters, what prevents a reset first; none if there is nothing special."""
    found: list[Sentence] = []
    if (late := still_postponed(session, coming, now)) is not None:
        postponed, at = late
        limit = "" if postponed.until is None else f" for {duration(postponed.until - now)} more at most"
        reasons = "; ".join(blocker.reason for blocker in postponed.blockers)
        overdue = duration(now - postponed.due_at)
        text = f"A reset ({postponed.rule}) fell due {overdue} ago and is postponed{limit}: {reasons}."
        found.append(sentence(text, at))
    elif coming.rule is not None and coming.at is not None and session.last_active is not None:
        unless = ", unless somebody says something" if coming.rule == "idle" else ""
        when = f"in {duration(coming.at - now)}" if coming.at > now else "now"
        found.append(sentence(f"The next reset ({coming.rule}) comes {when}{unless}.", session.last_active))
    return found + _of_compaction(session.chapter, now) + _trimmed(session.chapter, now) + _opened(session.chapter, now)


def _opened(chapter: Chapter, now: int) -> list[Sentence]:
    if chapter.opened is None or chapter.opened_at is None:
        return []
    opened = chapter.opened
    text = f"Chapter {opened.chapter} began {duration(now - chapter.opened_at.at)} ago: {opened.reason}."
    if opened.kept:
        names = ", ".join(f"{one.task} {one.title} ({one.activity})" for one in opened.kept)
        text += f" Handed over: {names}."
    if opened.stopped:
        names = ", ".join(f"{one.task} {one.title} ({one.rule})" for one in opened.stopped)
        text += f" Stopped: {names}."
    return [sentence(text, chapter.opened_at)]


def _trimmed(chapter: Chapter, now: int) -> list[Sentence]:
    """Return the sentence about trimmed tool results."""
    if not chapter.trims or chapter.trimmed_at is None:
        return []
    last, count = chapter.trims[-1], sum(one.results for one in chapter.trims)
    what = "1 tool result" if count == 1 else f"{count} tool results"
    where = f"up to step {last.covers_step} of turn {last.covers_turn}"
    size = f"{last.tokens_before} → {last.tokens_after} tokens"
    text = (
        f"The model sees only notes or parts of {what} {where}. The last were trimmed "
        f"{duration(now - chapter.trimmed_at.at)} ago ({size}): {last.reason}. Its tool `recall` reads them again."
    )
    return [sentence(text, chapter.trimmed_at)]


def _of_compaction(chapter: Chapter, now: int) -> list[Sentence]:
    if chapter.last is None:
        return []
    if chapter.in_progress is not None:
        since = duration(now - chapter.last.at)
        trying = chapter.in_progress
        if trying.purpose == "hand_over":
            text = f"{trying.model} has been writing the note for the next chapter for {since}: {trying.reason}."
            return [sentence(text, chapter.last)]
        text = (
            f"{trying.model} has been summarising its context for {since} (attempt {trying.attempt}): {trying.reason}."
        )
        return [sentence(text, chapter.last)]
    if chapter.requested is not None and chapter.requested.purpose == "hand_over":
        text = f"{chapter.requested.by} resets it; the note for the next chapter comes first."
        return [sentence(text, chapter.last)]
    if chapter.requested is not None:
        return [sentence(f"{chapter.requested.by} wants its context made shorter; that comes next.", chapter.last)]
    if chapter.failed is not None:
        failed = chapter.failed
        again = "It is tried again in " + duration(max(0, (failed.retry_at or 0) - now))
        if failed.retry_at is None:
            again = "It is not tried again before another turn has ended"
        stands = "a digest stands in its place" if chapter.provisional else "the model sees everything as before"
        said = failed.problem.message.rstrip(".")
        return [sentence(f"There is no summary ({said}); {stands}. {again}.", chapter.last)]
    summary = chapter.summary
    if summary is None:
        return []
    how = "A summary" if summary.source == "model" else "A digest"
    size = f"{summary.tokens_before} → {summary.tokens_after} tokens"
    text = f"{how} stands in the place of {_covered(summary)} ({size}): {summary.reason}."
    if summary.left_out:
        text += f" {summary.left_out} messages did not fit into the request for it; its writer saw a digest of them."
    if chapter.ineffective >= MAX_INEFFECTIVE:
        text += f" {chapter.ineffective} in a row did not help, so it is not tried again automatically while it fits;"
        text += " `/compact` does it."
    return [sentence(text, chapter.summary_at or chapter.last)]


def _covered(summary: SummaryWritten) -> str:
    turn, step = summary.covers_turn, summary.covers_step
    if not step:
        return f"the turns up to {turn}"
    before = f"the turns up to {turn - 1} and " if turn > 1 else ""
    return f"{before}the steps up to {step} of turn {turn}"
