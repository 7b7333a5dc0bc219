"""What is sent to the chat in which a session is held, besides its questions and failures: its finished answers, the
ends of its tasks and cards, and what people write to it elsewhere. Pure.
"""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.domain.events import Record
from holdfast.domain.events.actor import PersonActor
from holdfast.domain.events.session import InputReceived, ModelResponded, NoteReceived
from holdfast.notify.markdown_parts import split_markdown
from holdfast.secrets import Mask
from holdfast.store.outbox_store import DeliveryRow, delivery_id
from holdfast.store.rows import SessionRow

SHOWN_IN_CHAT: tuple[type, ...] = (ModelResponded, InputReceived, NoteReceived)
OF_CHATS = frozenset(kind.__name__ for kind in SHOWN_IN_CHAT)
NOTICES_IN_CHAT = frozenset({"question", "approval", "failed"})
"""The kinds of notices that the chat of a session gets; that it is done shows in the answer."""
MOST_PARTS = 10
"""Longer answers are cut: each part is a message, and no service takes many at once."""
CUT = "\n\n… The answer is longer. The dashboard and `holdfast sessions log` have all of it."


def chat_messages_of(record: Record, session: SessionRow, *, mask: Mask) -> list[DeliveryRow]:
    """Return the messages that an event of a session causes in its chat."""
    match record.event:
        case ModelResponded(text=text) if text.strip():
            parts = split_markdown(mask(text))
            if len(parts) > MOST_PARTS:
                parts = [*parts[: MOST_PARTS - 1], parts[MOST_PARTS - 1] + CUT]
            return [_part(record, session, "answers", text, number) for number, text in enumerate(parts, 1)]
        case InputReceived(by=PersonActor() as by, source="message") if by.client != session.chat.partition(":")[0]:
            text = f"*{by}:* {mask(record.event.text)}"
            return [_part(record, session, "was written to", part, 1) for part in split_markdown(text)[:1]]
        case NoteReceived(text=text):  # the end of a task, or what became of a card
            return [_part(record, session, "got a note", part, 1) for part in split_markdown(mask(text))[:1]]
        case _:
            return []


def doubt_about(row: DeliveryRow, *, now: int) -> DeliveryRow:
    """Return the message to a chat in which an answer may not have arrived."""
    text = "_My last answer may be missing here: it was interrupted while it was sent. The dashboard has it._"
    return replace(
        row,
        id=delivery_id(row.destination, row.id, 0, "doubt"),
        matter=f"doubt/{row.id}",
        kind="doubt",
        at=now,
        due_at=now,
        state="pending",
        attempts=0,
        summary="may have answered",
        detail=text,
        error="",
    )


def _part(record: Record, session: SessionRow, summary: str, text: str, number: int) -> DeliveryRow:
    matter = f"answer/{session.id}/{record.version}"
    return DeliveryRow(
        id=f"{delivery_id(session.chat, matter, record.seq, 'answer')[:28]}{number:04}",  # parts are sent in this order
        destination=session.chat,
        matter=matter,
        kind="answer",
        seq=record.seq,
        at=record.at,
        stream=record.stream,
        title=session.title,
        summary=summary if number == 1 else f"{summary} (part {number})",
        detail=text,
        link=f"/s/{session.id}",
        when_absent=False,
        due_at=record.at,
    )
