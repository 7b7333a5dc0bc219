"""What the messages of a session can be: how they join a turn, and where they come from."""

from __future__ import annotations

from typing import Literal

InputMode = Literal["queue", "steer", "interrupt"]
InputSource = Literal["message", "comment", "task", "run", "reminder"]
"""A person's message, a comment on the card that is worked on, the end of a task, the first words of a run, or the
question whether its card is done."""
