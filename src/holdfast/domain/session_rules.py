"""`decide`: what a command means for a session as it is now. Events out, or a clear refusal."""

from __future__ import annotations

from typing import assert_never

import msgspec

from holdfast.domain.commands import (
    AnswerWait,
    ArchiveSession,
    ChooseAgent,
    ChooseMode,
    ChooseNode,
    CompactSession,
    CreateSession,
    DismissFailure,
    PinSession,
    RenameSession,
    RepeatTurn,
    RestoreSession,
    ReviseInput,
    SendMessage,
    SessionCommand,
    SetResetPolicy,
    SetSessionTell,
    StopTurn,
    UndoReset,
    UndoTurn,
    WithdrawInput,
)
from holdfast.domain.errors import Conflict, NotFound, Rejected
from holdfast.domain.events import AnyEvent
from holdfast.domain.events.actor import Actor
from holdfast.domain.events.chapter import (
    ChapterRejoined,
    ResetPolicy,
    ResetPolicySet,
    SummaryRequested,
)
from holdfast.domain.events.parts import Grant, GrantScope
from holdfast.domain.events.session import (
    AgentChosen,
    FailureDismissed,
    InputReceived,
    InputRevised,
    InputWithdrawn,
    NodeChosen,
    SessionArchived,
    SessionCreated,
    SessionPinned,
    SessionRenamed,
    SessionRestored,
    SessionTellSet,
    StopRequested,
    TurnUndone,
    WaitAnswered,
    WaitOpened,
)
from holdfast.domain.history import WHOLE_TURN, UserMessage
from holdfast.domain.queue import QUEUE_LIMIT, QueuedInput, find
from holdfast.domain.session import Session
from holdfast.domain.session_choices import choose, mode_can_be_enforced, only_people
from holdfast.domain.text import without_markdown

TITLE_FROM_TEXT = 60
CLOSED_TO_OTHERS = (
    SendMessage,
    ReviseInput,
    WithdrawInput,
    ChooseAgent,
    ChooseNode,
    UndoTurn,
    RepeatTurn,
    ArchiveSession,
    UndoReset,
    CompactSession,
)
"""Commands that are refused while a run of a card works in the session."""
OWN_CONTEXT: dict[type[SessionCommand], str] = {
    UndoTurn: "a turn cannot be undone for it",
    RepeatTurn: "a turn cannot be taken back for it",
    CompactSession: "it makes its context shorter by itself",
}
"""Commands that are refused where the context is that of an external agent, and why."""


def create(
    command: CreateSession,
    *,
    session: str,
    profile: str,
    driver: str = "builtin",
    cwd: str,
    id: str,
    by: Actor,
    chat: str = "",
) -> list[AnyEvent]:
    """Return the first events of a session. The caller chooses the defaults for profile and cwd, and knows the driver
    of the profile.
    """
    if command.title is not None:
        _title_not_blank(command.title)
    mode_can_be_enforced(command.mode, driver)
    title = command.title or title_from(command.text or "")
    born = SessionCreated(
        session=session, profile=profile, cwd=cwd, title=title, by=by, driver=driver, chat=chat, mode=command.mode
    )
    events: list[AnyEvent] = [born]
    if command.model:
        events.append(AgentChosen(profile=profile, model=command.model, by=by))
    if command.node:
        events.append(NodeChosen(node=command.node, by=by))
    if command.text is not None:
        _not_blank(command.text)
        events.append(InputReceived(input=id, text=command.text, mode="queue", by=by))
    return events


def decide(session: Session, command: SessionCommand, *, id: str, by: Actor) -> list[AnyEvent]:
    """Return the events that the command causes. `id` is the command's id."""
    if not session.exists:
        raise NotFound(f"There is no session {session.id}.", hint="`holdfast sessions` lists them.")
    if session.run and isinstance(command, CLOSED_TO_OTHERS):
        card = session.card_label
        hint = f"`holdfast card comment {card}` reaches its worker, `holdfast card stop {card}` ends it."
        raise Conflict(f"Run {session.run} of card {card} works in this session.", hint=hint)
    if session.driver != "builtin" and (reason := OWN_CONTEXT.get(type(command))):
        hint = "Send a message, fork the session, or start a new one."
        raise Conflict(f"The agent of this session has a context of its own: {reason}.", hint=hint)
    match command:
        case SendMessage(text=text, mode=mode):
            return _send(session, text, InputReceived(input=id, text=text, mode=mode, by=by))
        case ReviseInput():
            return [_revise(session, command, by)]
        case WithdrawInput(input=input):
            return [_withdraw(session, input, by)]
        case StopTurn(turn=wanted):
            return [_stop(session, wanted, by)]
        case AnswerWait():
            return [_answer(session, command, by)]
        case ChooseAgent(profile=profile, model=model):
            only_people(by, "choose the agent of a session")
            kept = session.model if profile is None else ""
            return [AgentChosen(profile=profile or session.profile, model=kept if model is None else model, by=by)]
        case ChooseMode() | ChooseNode():
            return [choose(session, command, by)]
        case UndoTurn():
            return [TurnUndone(turn=_last_turn(session), by=by)]
        case RepeatTurn(turn=turn, text=text):
            return _repeat(session, turn, text, id=id, by=by)
        case DismissFailure():
            return [_dismiss(session, by)]
        case RenameSession(title=title):
            _title_not_blank(title)
            return [SessionRenamed(title=title, by=by)]
        case ArchiveSession():
            if session.archived:
                raise Conflict("It is archived already.")
            if session.turn is not None or session.queue:
                raise Conflict("It is still at work.", hint=f"`holdfast stop {session.id}` first.")
            return [SessionArchived(by=by)]
        case RestoreSession():
            if not session.archived:
                raise Conflict("It is not archived.")
            return [SessionRestored(by=by)]
        case UndoReset():
            return [_rejoin(session, by)]
        case SetResetPolicy(policy=policy, merge=merge):
            return [ResetPolicySet(policy=_merged(session.policy, policy) if merge else policy, by=by)]
        case CompactSession(instructions=instructions):
            return [_compact(session, instructions, by)]
        case PinSession(pinned=pinned):
            if session.pinned == pinned:
                raise Conflict("It is pinned already." if pinned else "It is not pinned.")
            return [SessionPinned(pinned=pinned, by=by)]
        case SetSessionTell(tell=tell):
            return [SessionTellSet(tell=tell, by=by)]
        case _ as never:
            assert_never(never)


def _merged(before: ResetPolicy, chosen: ResetPolicy) -> ResetPolicy:
    named = {name: value for name, value in msgspec.structs.asdict(chosen).items() if value is not None}
    return msgspec.structs.replace(before, **named)


def _stop(session: Session, wanted: int | None, by: Actor) -> StopRequested:
    if session.turn is None:
        raise Conflict("No turn is running, so there is nothing to stop.")
    if wanted not in (None, session.turn.number):
        raise Conflict(f"Turn {wanted} has ended; turn {session.turn.number} is running now.")
    if session.turn.stop is not None:
        raise Conflict("This turn is being stopped already.")
    return StopRequested(turn=session.turn.number, by=by)


def _dismiss(session: Session, by: Actor) -> FailureDismissed:
    if session.turn is not None or (last := session.last_turn) is None or last.outcome != "failed" or last.dismissed:
        raise Conflict(f"No failed turn of session {session.id} is in the inbox.")
    return FailureDismissed(turn=last.number, by=by)


def _queued(session: Session, input: str) -> QueuedInput:
    queued = find(session.queue, input)
    if queued is None:
        raise Conflict("This message is no longer in the queue: a turn has taken it, or it was withdrawn.")
    if session.output_read is not None and input in session.output_read.steering:
        raise Conflict("This message was sent to the agent, which works on it or will in its next turn.")
    return queued


def not_steered_reason(session: Session) -> str:
    """Return why a message cannot join the running turn; empty if it can, or if that is not known yet."""
    known = session.attached
    if session.turn is None or session.driver not in ("acp", "command"):
        return ""
    if session.driver == "acp" and (known is None or known.steers):
        return ""
    name = "The agent" if known is None else known.agent
    return f"{name} takes no messages while it works: this one waits for the end of the turn."


def _withdraw(session: Session, input: str, by: Actor) -> InputWithdrawn:
    _queued(session, input)
    if session.task and session.turns == 0:
        raise Conflict("Its task was started with this message.", hint=f"`holdfast tasks stop {session.task}`")
    return InputWithdrawn(input=input, by=by)


def _revise(session: Session, command: ReviseInput, by: Actor) -> InputRevised:
    queued = _queued(session, command.input)
    if command.text is None and command.mode is None and command.place is None:
        raise Rejected("There is nothing to change.", hint="Give a text, a mode or a place.")
    if command.text is not None:
        _not_blank(command.text)
        if queued.event.source == "task":
            raise Conflict("This message reports the end of a task: it can be moved or withdrawn, but not edited.")
    return InputRevised(input=command.input, by=by, text=command.text, mode=command.mode, place=command.place)


CHOSEN = ("compaction", "login", "quota")
"""Waits that are answered with one of their choices."""
APPROVALS = ("allow", "call", "session", "always", "deny")
GRANTS: dict[str, GrantScope] = {"call": "call", "session": "session", "always": "profile"}


def _answer(session: Session, command: AnswerWait, by: Actor) -> WaitAnswered:
    """Return the event of an answer. A second answer is refused, with the name of the first."""
    only_people(by, "answer questions and approvals")
    first = session.answered.get(command.wait)
    if first is not None:
        raise Conflict(f"{first.by} answered this already: {first.answer}.")
    turn = session.turn
    if turn is None or turn.wait is None or turn.wait.wait != command.wait:
        raise Conflict("This no longer waits for an answer: its turn has ended.")
    wait = turn.wait
    answer = command.answer.strip()
    if wait.means:
        answer = _own_choice(wait, answer)
    elif wait.purpose == "approval" and answer not in APPROVALS:
        raise Rejected(f"An approval is answered with one of: {', '.join(APPROVALS)}.")
    if wait.purpose in ("question", *CHOSEN):
        answer = _choice(wait, answer)
    if wait.purpose in CHOSEN and answer not in wait.choices:
        raise Rejected(f"It is answered with one of: {', '.join(wait.choices)}.")
    if wait.purpose == "approval" and answer == "always" and not wait.pattern and not wait.means:
        raise Rejected("No rule can cover this call.", hint="Answer allow, call or deny.")
    return WaitAnswered(
        turn=turn.number,
        wait=wait.wait,
        answer=answer,
        by=by,
        grant=_grant(wait, answer),
        note=command.note.strip(),
        call_digest=wait.call_digest,
    )


def _grant(wait: WaitOpened, answer: str) -> Grant | None:
    """Return what an approval allows beyond this call; None if nothing."""
    if wait.purpose != "approval" or answer not in GRANTS or wait.means:  # what an external agent allows is its own
        return None
    return Grant(scope=GRANTS[answer], rule="" if answer == "call" else wait.pattern)


def _own_choice(wait: WaitOpened, answer: str) -> str:
    """Return the option of an external agent that an answer names: by its text, its number, or one of our words."""
    found = answer if answer in wait.choices else wait.means.get(answer) or _choice(wait, answer)
    if found not in wait.choices and answer != "deny":
        words = ", ".join((*wait.choices, *wait.means))
        raise Rejected(f"The agent offers no {answer!r}.", hint=f"Answer with one of: {words}.")
    return found


def _choice(wait: WaitOpened, answer: str) -> str:
    """Return the choice that an answer names by its text or number; any other text is returned as it is."""
    if answer in wait.choices:  # a text may look like a number
        return answer
    if answer.isascii() and answer.isdigit() and 1 <= int(answer) <= len(wait.choices):
        return wait.choices[int(answer) - 1]
    return answer


def _last_turn(session: Session) -> int:
    _context_at_rest(session)
    seen = range(session.turns, session.chapter.start, -1)
    last = next((number for number in seen if number not in session.undone), None)
    if last is None:
        raise Conflict("There is no turn to undo since the chapter or its summary began.")
    return last


def _repeat(session: Session, turn: int | None, text: str | None, *, id: str, by: Actor) -> list[AnyEvent]:
    """Return the events that undo a turn and all later ones, and that send its messages again as one."""
    last = _last_turn(session)
    wanted = last if turn is None else turn
    if not session.chapter.start < wanted <= last or wanted in session.undone:
        hint = f"`holdfast sessions fork {session.id} --at VERSION` continues from there in another session."
        raise Conflict(f"The model does not see turn {wanted}.", hint=hint)
    if text is None:
        said = (one for one in session.messages if isinstance(one, UserMessage) and one.turn == wanted)
        text = "\n\n".join(message.text for message in said)
        if not text:
            raise Conflict(f"Turn {wanted} was not begun by a message.", hint="Give a text.")
    undone = [TurnUndone(turn=n, by=by) for n in range(last, wanted - 1, -1) if n not in session.undone]
    return [*undone, *_send(session, text, InputReceived(input=id, text=text, mode="queue", by=by))]


def _context_at_rest(session: Session) -> None:
    """Refuse to change a context that a turn or a summary is using."""
    if session.turn is not None:
        raise Conflict("A turn is running.", hint=f"`holdfast stop {session.id}` first.")
    if session.chapter.in_progress is not None:
        raise Conflict("Its context is being summarised.", hint="Try again afterwards.")


def _rejoin(session: Session, by: Actor) -> ChapterRejoined:
    _context_at_rest(session)
    if len(session.chapters) == 1:
        raise Conflict("There is no reset to undo.")
    before = session.chapters[-2].opened_at
    return ChapterRejoined(chapter=session.chapter.number, by=by, since=0 if before is None else before.at)


def _compact(session: Session, instructions: str, by: Actor) -> SummaryRequested:
    if session.chapter.requested is not None or session.chapter.in_progress is not None:
        raise Conflict("Its context is being summarised already.")
    ended = session.turns - (session.turn is not None)
    if (ended, WHOLE_TURN) <= session.chapter.covered and not session.chapter.provisional:
        raise Conflict("There is nothing to summarise: no turn has ended since the chapter or its summary began.")
    return SummaryRequested(instructions=instructions.strip(), by=by)


def _send(session: Session, text: str, received: InputReceived) -> list[AnyEvent]:
    _not_blank(text)
    if len(session.queue) >= QUEUE_LIMIT:
        raise Conflict(
            f"{len(session.queue):,} messages are waiting in this session already, the maximum.",
            hint="Wait until some are answered, withdraw some, or start another session.",
        )
    events: list[AnyEvent] = []
    if session.archived:
        events.append(SessionRestored(by=received.by))
    events.append(received)
    turn = session.turn
    if turn is not None and turn.wait is not None and turn.wait.purpose == "resume":
        events.append(WaitAnswered(turn=turn.number, wait=turn.wait.wait, answer="resume", by=received.by))
    return events


def _not_blank(text: str) -> None:
    if not text.strip():
        raise Rejected("The message is empty.", hint="Write a text.")


def _title_not_blank(title: str) -> None:
    if not title.strip():
        raise Rejected("The title is blank.")


def title_from(text: str) -> str:
    """Return a title made from the first line of the first message, without the signs of Markdown."""
    start = text.lstrip()[: 4 * TITLE_FROM_TEXT]
    line = (without_markdown(start).strip() or start).partition("\n")[0].strip()
    return line if len(line) <= TITLE_FROM_TEXT else line[: TITLE_FROM_TEXT - 1].rstrip() + "…"
