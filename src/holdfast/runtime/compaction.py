"""Summaries: of the oldest turns when a context is too long, and of a chapter that is about to be closed.

The conversation is sent as one text: providers refuse tool calls whose tools are not offered, and a summary
needs none. Whatever goes wrong is a failure with a name; it loses nothing, since nothing is taken away.
Not here: when, and how much of it (`domain/compaction.py`).
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from typing import assert_never

import msgspec

from holdfast.clock import Clock
from holdfast.domain.compaction import HAND_OVER_ATTEMPTS, Compact, due, retry_at, size_after_summary
from holdfast.domain.context_limits import sizes
from holdfast.domain.events.chapter import SummaryFailed, SummaryStarted, SummaryWritten
from holdfast.domain.events.parts import Usage
from holdfast.domain.events.problem import HANDLING, Problem, ProblemCode
from holdfast.domain.history import AgentMessage, Message, Note, ToolResult, UserMessage, text_size
from holdfast.domain.session import Session
from holdfast.domain.summary import digest, failed_summary, fit_to_budget, messages_covered
from holdfast.models.model import Model, ModelAnswer, ModelError, ModelRequest
from holdfast.runtime.agents import Agent

INSTRUCTIONS = """You are given a conversation between a user and an agent: you are that agent. Your text will stand \
in the place of the conversation, so whatever it leaves out is forgotten. Write, in the language of the conversation:
what the user wants and what they decided, with their reasons; what was done and found out, with exact names, paths, \
numbers and commands; what is still open, and what comes next. No preamble, nothing invented."""
HAND_OVER = """The conversation is about to be closed and will be continued with an empty context. Write the \
note that you want to find then: what the user wants, what was decided and done, what is open, what comes next."""
IN_A_TURN = """You are in the middle of the work on turn {turn}. What the user said in that turn stays in your context \
word by word: do not repeat it. Tell how far the work is."""
log = logging.getLogger(__name__)


def digest_event(session: Session, agent: Agent, step: Compact) -> SummaryWritten:
    """Return the event of a digest, a summary made without a model."""
    log.warning("session %s continues with a digest: %s", session.id, step.reason)
    room = sizes(session, agent.limits.compaction).goal  # used as characters: a quarter of the goal in tokens
    return _written(session, step, agent.mask(digest(messages_covered(session, step.end), characters=room)))


def start_event(session: Session, agent: Agent, step: Compact) -> SummaryStarted:
    """Return the intent of a summary, with its model and the number of the attempt."""
    chapter = session.chapter
    attempt = 1 + (chapter.hand_over_failures if step.purpose == "hand_over" else chapter.failures)
    return SummaryStarted(
        covers_turn=step.covers,
        covers_step=step.covers_step,
        attempt=attempt,
        model=_writer(agent, attempt).name,
        tokens=session.size,
        reason=step.reason,
        purpose=step.purpose,
    )


def _writer(agent: Agent, attempt: int) -> Model:
    """Return the model that writes it: the models alternate from attempt to attempt."""
    return agent.summary_models[(attempt - 1) % len(agent.summary_models)]


async def write_summary(session: Session, agent: Agent, step: Compact, clock: Clock) -> SummaryWritten | SummaryFailed:
    """Ask the model for the summary that was begun; return it, or its failure."""
    started, began = session.chapter.in_progress, clock.now()
    assert started is not None
    model, instruction = _writer(agent, started.attempt), _instruction(step)
    about = session.visible_messages() if step.purpose == "hand_over" else messages_covered(session, step.end)
    limit = sizes(session, agent.limits.compaction).limit
    if limit and (window := await model.window()):
        limit = min(limit, window)  # another model may write it
    # a quarter is left for the answer, and less is sent each time: its window may be smaller than is known
    budget = ((limit * 3 // 4) >> (started.attempt - 1)) - text_size(INSTRUCTIONS + instruction)
    fit, left_out = fit_to_budget(about, max(budget, 1)) if limit else (about, 0)
    whole = [*about, *session.messages[session.messages.index_after(step.end) :]]
    try:
        text, usage = await summarise(model, fit, instruction, seconds=agent.summary_seconds, about=whole)
    except ModelError as error:
        problem = msgspec.structs.replace(error.problem, message=agent.mask(error.problem.message))
        log.warning("no summary of session %s, attempt %d: %s", session.id, started.attempt, problem.message)
        return failed_summary(started, problem, retry_at=_retry_at(session, agent, started, problem, clock.now()))
    took = clock.now() - began
    return _written(session, step, agent.mask(text), model=model.name, usage=usage, duration_ms=took, left_out=left_out)


def _instruction(step: Compact) -> str:
    """Return the instruction at the end of the request."""
    if step.purpose == "hand_over":
        return HAND_OVER
    kept = IN_A_TURN.format(turn=step.covers) if step.covers_step else ""
    instruction = f"The user adds: {step.instructions}" if step.instructions else ""
    return "\n\n".join(filter(None, (kept, instruction)))


def _retry_at(session: Session, agent: Agent, started: SummaryStarted, problem: Problem, now: int) -> int | None:
    if started.purpose == "hand_over":  # a reset waits for it: retried at once, or not at all
        again = HANDLING[problem.code].retryable or problem.code in ("context_too_long", "summary_empty")
        return now if again and started.attempt < HAND_OVER_ATTEMPTS else None
    alone = session.turn is not None or due(session, agent.limits.compaction) is not None
    return retry_at(session.chapter, now=now) if alone else None


def _written(
    session: Session,
    step: Compact,
    text: str,
    *,
    model: str = "",
    usage: Usage | None = None,
    duration_ms: int = 0,
    left_out: int = 0,
) -> SummaryWritten:
    """Return the event of a summary, or of a digest if there is no model."""
    fact = SummaryWritten(
        covers_turn=step.covers,
        covers_step=step.covers_step,
        summary=text,
        source="model" if model else "digest",
        model=model,
        tokens_before=session.size,
        tokens_after=session.size,
        reason=step.reason,
        usage=usage or Usage(),
        duration_ms=duration_ms,
        purpose=step.purpose,
        left_out=left_out,
    )
    if step.purpose == "hand_over":
        return fact
    made = msgspec.structs.replace(fact, tokens_after=size_after_summary(session, fact))
    log.info("session %s: summarised up to turn %d, %d tokens", session.id, step.covers, made.tokens_after)
    return made


async def summarise(
    model: Model, fit: list[Message], instruction: str, *, seconds: float, about: list[Message]
) -> tuple[str, Usage]:
    """Return a summary of the conversation, within a time limit. Raises `ModelError`."""
    text = "\n\n".join(["<conversation>", *map(_as_text, fit), "</conversation>", instruction]).strip()
    request = ModelRequest(1, INSTRUCTIONS, [UserMessage(1, text)], [], about=about)
    try:
        async with asyncio.timeout(seconds), aclosing(model.stream(request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, ModelAnswer):
                    if not piece.text.strip():
                        raise _no("summary_empty", f"The summary by {model.name} was empty.")
                    return piece.text.strip(), piece.usage
    except TimeoutError:
        raise _no("summary_timeout", f"The summary by {model.name} took longer than {seconds:g} s.") from None
    raise _no("summary_empty", f"{model.name} ended without a summary.")


def _no(code: ProblemCode, message: str) -> ModelError:
    return ModelError(Problem(code=code, message=message, hint="`[compaction]` names another model, or more time."))


def _as_text(message: Message) -> str:
    match message:
        case UserMessage(text=text):
            return f"User: {text}"
        case AgentMessage(text=text, calls=calls):
            asked = "".join(f"\n[calls {call.tool} {call.arguments}]" for call in calls)
            return f"Agent: {text}{asked}"
        case ToolResult(tool=tool, outcome=outcome, output=output):
            return f"[{tool} {outcome}] {output}"
        case Note(text=text):
            return f"[{text}]"
        case _ as never:
            assert_never(never)
