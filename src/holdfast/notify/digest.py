"""One notice in the place of many: for a destination that could not be reached for long."""

from __future__ import annotations

from collections import Counter

from holdfast.store.outbox_store import ASKING, DeliveryRow, delivery_id

NAMED = 5
"""How many of the last ones are named in the detail."""


def digest_of(rows: list[DeliveryRow], *, now: int) -> DeliveryRow:
    """Return one delivery for all of these; they are in the order of the log."""
    last = rows[-1]
    counts = Counter(row.kind for row in rows)
    words = ", ".join(f"{kind}: {count}" for kind, count in counts.most_common())
    return DeliveryRow(
        id=delivery_id(last.destination, "digest", last.seq, "digest"),
        destination=last.destination,
        matter="digest",
        kind="digest",
        seq=last.seq,
        at=now,
        stream="",
        title="Holdfast",
        summary=f"{len(rows)} things happened while this could not be delivered ({words})",
        detail="\n".join(f"{row.title} {row.summary}" for row in rows[-NAMED:]),
        link="/",
        when_absent=False,
        due_at=now,
    )


def still_waiting(rows: list[DeliveryRow]) -> tuple[str, str]:
    """Return what of it still waits for an answer, and the link to it: Home if there are several."""
    waiting = {row.matter: row for row in reversed(rows) if row.kind in ASKING and not row.settled}
    if not waiting:
        return "nothing waits for you", "/"
    oldest = min(waiting.values(), key=lambda row: row.seq)
    if len(waiting) == 1:
        return f"one thing waits for you: {oldest.title}", oldest.link
    return f"{len(waiting)} wait for you, first of all {oldest.title}", "/"
