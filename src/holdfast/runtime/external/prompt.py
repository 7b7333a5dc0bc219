"""What is sent to an external agent: the messages of a turn; if it lost its memory, the conversation so far. Pure."""

from __future__ import annotations

from holdfast.domain.history import AgentMessage, Message, Note, ToolResult, UserMessage
from holdfast.domain.session import Session, Turn
from holdfast.domain.summary import digest

PROMPTS = 1_000_000
"""The id of a prompt is its turn times this, and the step that it is sent in."""
DIGEST_CHARACTERS = 20_000
LOST = "You do not remember this conversation. What was said so far, in short:"
LOST_STEPS = "What you did for it so far, before you were interrupted:"
CUT = "You were interrupted while you worked on this message, or before you read it:"
GO_ON = "Go on with it. Check what is done already before you do anything again."


def prompt_id(turn: Turn, step: int) -> int:
    """Return the id of the prompt that is sent in a step."""
    return turn.number * PROMPTS + step


def prompted_turn(prompt: int) -> int:
    """Return the turn of a prompt by its id; 0 for no prompt."""
    return prompt // PROMPTS


def remembers(session: Session) -> bool:
    """Whether the agent that is attached remembers what was said before the prompt that is open."""
    attached, read = session.attached, session.output_read
    assert attached is not None
    assert read is not None
    return attached.context == "proven" or read.prompt != attached.prompt


def prompt_text(session: Session, prompt: int, *, knows: bool, instructions: str = "") -> str:
    """Return the prompt with this id, of the open turn; `knows` is whether the agent remembers what was said before."""
    turn = session.turn
    assert turn is not None
    again = bool(turn.interruptions) or prompt > prompt_id(turn, 1)
    parts = [] if knows else [instructions, *_earlier(session, turn)]
    own = [message for message in session.messages if message.turn == turn.number]
    asked = [message.text for message in own if isinstance(message, UserMessage | Note) and _begins(message)]
    if again and knows:  # it may have ended before it stored the message
        asked = [f"{CUT}\n{_quoted(text)}" for text in ["\n\n".join(asked)]]
    parts += asked
    if again:
        parts += _so_far(own, knows=knows)
    return "\n\n".join(part.strip() for part in parts if part.strip())


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines())


def _begins(message: UserMessage | Note) -> bool:
    """Whether it is a message, or a note that the turn began with."""
    return isinstance(message, UserMessage) or message.step == 0


def _earlier(session: Session, turn: Turn) -> list[str]:
    """Return what was said before this turn, in the part of the session that an agent sees."""
    notes = [message.text for message in session.preamble() if isinstance(message, Note)]
    before: list[Message] = [
        message
        for message in session.visible_messages()
        if 0 < message.turn < turn.number and not isinstance(message, ToolResult)
    ]
    return [*notes, f"{LOST}\n{digest(before, characters=DIGEST_CHARACTERS)}"] if before else notes


def _so_far(own: list[Message], *, knows: bool) -> list[str]:
    """Return the message for an agent that was interrupted in the middle of the turn."""
    notes = [message.text for message in own if isinstance(message, Note) and message.step > 0]
    done: list[Message] = [message for message in own if isinstance(message, AgentMessage | ToolResult)]
    steps = [] if knows or not done else [f"{LOST_STEPS}\n{digest(done, characters=DIGEST_CHARACTERS)}"]
    return [*steps, *notes[-1:], GO_ON]
