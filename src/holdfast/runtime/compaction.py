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
from holdfast.domain.chapter import summary_note
from holdfast.domain.compaction import Compact, digest, due, fit_to_budget, messages_covered, retry_at
from holdfast.domain.events.chapter import SummaryFailed, SummaryStarted, SummaryWritten
from holdfast.domain.events.parts import Usage
from holdfast.domain.events.problem import Problem, ProblemCode
from holdfast.domain.history import TOKEN_SHIFT, AgentMessage, Message, Note, ToolResult, UserMessage, message_size
from holdfast.domain.session import Session
from holdfast.models.model import Model, ModelAnswer, ModelError, ModelRequest
from holdfast.runtime.agent import Agent

TOOL_OUTPUT = 4_000
INSTRUCTIONS = """You are given a conversation between a user and an agent: you are that agent. Your text will stand \
in the place of the conversation, so whatever it leaves out is forgotten. Write, in the language of the conversation:
what the user wants and what they decided, with their reasons; what was done and found out, with exact names, paths, \
numbers and commands; what is still open, and what comes next. No preamble, nothing invented."""
HAND_OVER = """The conversation is about to be closed and will be continued anew. Write the note that you want to \
find then: what the user wants, what was decided and done, what is open, what comes next."""
log = logging.getLogger(__name__)


def digest_event(session: Session, agent: Agent, step: Compact) -> SummaryWritten:
    """A digest in the place of old turns, made by a rule and not by a model."""
    log.warning("session %s goes on with a digest: %s", session.id, step.reason)
    return _compacted(session, step, agent.mask(digest(messages_covered(session, step.covers))))


def start_event(session: Session, agent: Agent, step: Compact) -> SummaryStarted:
    """The intent of a summary: by which model, and how often that was tried."""
    attempt = session.chapter.failures + 1
    model = agent.summary_models[(attempt - 1) % len(agent.summary_models)].name
    return SummaryStarted(
        covers_turn=step.covers, attempt=attempt, model=model, tokens=session.size, reason=step.reason
    )


async def write_summary(session: Session, agent: Agent, step: Compact, clock: Clock) -> SummaryWritten | SummaryFailed:
    """Ask the model for the summary that was begun. Whatever goes wrong is an event, and loses nothing."""
    rules, attempt, began = agent.limits.compaction, session.chapter.failures + 1, clock.now()
    about = messages_covered(session, step.covers)
    model = agent.summary_models[(attempt - 1) % len(agent.summary_models)]
    wish = f"The user adds: {step.instructions}" if step.instructions else ""
    seen = [*about, *session.messages.after_turn(step.covers)]
    try:
        fit = fit_to_budget(about, rules.limit >> (attempt - 1)) if rules.limit else about
        text, usage = await summarise(model, fit, wish, seconds=agent.summary_seconds, seen=seen)
    except ModelError as error:
        alone = session.turn is not None or due(session, rules) is not None
        again = retry_at(session.chapter, now=clock.now()) if alone else None
        problem = msgspec.structs.replace(error.problem, message=agent.mask(error.problem.message))
        log.warning("no summary of session %s, attempt %d: %s", session.id, attempt, problem.message)
        return SummaryFailed(covers_turn=step.covers, attempt=attempt, problem=problem, retry_at=again)
    took = clock.now() - began
    made = _compacted(session, step, agent.mask(text), model=model.name, usage=usage, duration_ms=took)
    log.info("session %s: turns up to %d were summarised, %d tokens", session.id, step.covers, made.tokens_after)
    return made


def _compacted(
    session: Session, step: Compact, text: str, *, model: str = "", usage: Usage | None = None, duration_ms: int = 0
) -> SummaryWritten:
    """The summary as a fact; without a model it is a digest."""
    fact = SummaryWritten(
        covers_turn=step.covers,
        summary=text,
        source="model" if model else "digest",
        model=model,
        tokens_before=session.size,
        tokens_after=0,
        reason=step.reason,
        usage=usage or Usage(),
        duration_ms=duration_ms,
    )
    return msgspec.structs.replace(fact, tokens_after=_size_after(session, fact))


def _size_after(session: Session, made: SummaryWritten) -> int:
    """By the model's own count as far as it goes: its instructions and tools do not become fewer."""
    opening = 1 if session.chapter.opened is not None else 0
    context = session.context()
    gone = sum(message_size(message) for message in context[opening:] if message.turn <= made.covers_turn)
    left = sum(map(message_size, context)) - gone
    return max(left, session.size - gone) + (len(summary_note(made)) >> TOKEN_SHIFT)


async def hand_over(session: Session, agent: Agent) -> tuple[str, bool]:
    """A note from one chapter to the next, and whether the agent wrote it itself."""
    about, limit = session.context(), agent.limits.compaction.limit
    fit = fit_to_budget(about, limit) if limit else about
    try:
        text, _ = await summarise(agent.summary_models[0], fit, HAND_OVER, seconds=agent.summary_seconds, seen=about)
    except ModelError as error:
        log.warning("session %s is handed over with a digest: %s", session.id, error.problem.message)
        return agent.mask(digest(about)), False
    return agent.mask(text), True


async def summarise(
    model: Model, about: list[Message], wish: str, *, seconds: float, seen: list[Message]
) -> tuple[str, Usage]:
    """The conversation in fewer words, within a time; or a ModelError."""
    text = "\n\n".join(["<conversation>", *map(_told, about), "</conversation>", wish]).strip()
    request = ModelRequest(1, INSTRUCTIONS, [UserMessage(1, text)], [], about=seen)
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


def _told(message: Message) -> str:
    match message:
        case UserMessage(text=text):
            return f"User: {text}"
        case AgentMessage(text=text, calls=calls):
            asked = "".join(f"\n[calls {call.tool} {call.arguments[:TOOL_OUTPUT]}]" for call in calls)
            return f"Agent: {text}{asked}"
        case ToolResult(tool=tool, outcome=outcome, output=output):
            more = f" [… {len(output) - TOOL_OUTPUT} characters left out]" if len(output) > TOOL_OUTPUT else ""
            return f"[{tool} {outcome}] {output[:TOOL_OUTPUT]}{more}"
        case Note(text=text):
            return f"[{text}]"
        case _ as never:
            assert_never(never)
