"""What was folded to one line, unfolded: a tool call with its arguments and output, a train of thought."""

from __future__ import annotations

from holdfast.cli.chat.paint import argument_lines, tidy
from holdfast.cli.chat.view import Call, View
from holdfast.cli.screen import dim, one_line, plural, terminal_width, wrap

MOST = 400


def call_lines(view: View, which: str) -> list[str]:
    """A tool call by its number, without one the last."""
    calls = {str(call.number): call for call in view.calls.values()}
    if not calls:
        return [dim("There is no tool call to open.")]
    call = calls.get(which.strip("[]")) if which else list(calls.values())[-1]
    if call is None:
        return [dim(f"There is no tool call {one_line(which)}; there is 1 to {len(calls)}.")]
    return [f"[{call.number}] {one_line(call.tool)} · {_standing(call)}", *_indented(_inside(call))]


def thinking_lines(view: View, which: str) -> list[str]:
    """A train of thought by its number, without one the last."""
    thoughts = view.speech.thoughts
    if not thoughts:
        return [dim("It has not thought aloud here.")]
    if not which:
        number = len(thoughts)
    elif which.isascii() and which.isdecimal() and 1 <= int(which) <= len(thoughts):
        number = int(which)
    else:
        return [dim(f"There is no thought {one_line(which)}; there is 1 to {len(thoughts)}.")]
    return ["✻ thought", *_indented(tidy(thoughts[number - 1]).split("\n"))]


def _standing(call: Call) -> str:
    return call.outcome or ("running" if call.started_at is not None else "not started")


def _inside(call: Call) -> list[str]:
    lines = argument_lines(call.arguments, most=MOST) if call.arguments else []
    if call.output.strip():
        lines += ["→", *tidy(call.output).rstrip("\n").split("\n")]
    return lines


def _indented(lines: list[str]) -> list[str]:
    shown = [part for line in lines[:MOST] for part in wrap(line, terminal_width() - 2)]
    more = len(lines) - MOST
    cut = [f"… {plural(more, 'more line')}; `holdfast sessions export` has all"] if more > 0 else []
    return [dim(f"  {line}") for line in [*shown, *cut]]
