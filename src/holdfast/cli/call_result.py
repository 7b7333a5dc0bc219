"""How a tool call ended, as people see it: a command that failed looks failed."""

from __future__ import annotations

from holdfast.client.http import Json

COLORS = {"done": "green", "started": "cyan", "failed": "red", "stopped": "magenta", "unknown": "yellow"}


def call_result(event: Json) -> tuple[str, str]:
    """A word for the end of a call, and what is known of its command: `failed` and `exit code 3`."""
    code, signal = event.get("exit_code"), event.get("signal") or ""
    detail = signal or (f"exit code {code}" if code else "")
    if event.get("stopped"):
        return "stopped", detail
    if event["outcome"] != "done":
        return str(event["outcome"]), detail
    if event.get("running"):
        return "started", ""
    return ("failed" if detail else "done"), detail


def in_words(event: Json) -> str:
    """The same as one text: `failed, exit code 3`."""
    return ", ".join(filter(None, call_result(event)))
