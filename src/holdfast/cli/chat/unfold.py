"""The slash commands that need no gateway: the help, and unfolded tool calls and thinking."""

from __future__ import annotations

from holdfast.cli.chat.blocks import Block, ListingBlock, NoticeBlock
from holdfast.cli.chat.paint import argument_lines, tidy
from holdfast.cli.chat.slash import COMMANDS
from holdfast.cli.chat.view import NumberedCall, View
from holdfast.cli.hints import program
from holdfast.cli.screen import dim, one_line, plural, terminal_width, wrap
from holdfast.domain.transcript_items import ToolCallView
from holdfast.domain.transcript_text import call_result

MOST_LINES = 400
KEYS = (
    ("Enter", "send; while the agent works the message waits in its queue"),
    ("Alt-Enter", "a new line (also Esc, Enter)"),
    ("@", "name a file of the session's directory; Tab completes"),
    ("Ctrl-C", "stop the turn; with none, clear the line"),
    ("Ctrl-D", "leave; the work continues"),
    ("Ctrl-O  Ctrl-T", "open the last tool call, the last thinking"),
)


def help_blocks() -> list[Block]:
    """Every slash command and every key."""
    left = [f"/{verb.name} {verb.takes}".rstrip() for verb in COMMANDS] + [key for key, _ in KEYS]
    right = [verb.does for verb in COMMANDS] + [does for _, does in KEYS]
    column = max(map(len, left)) + 2
    room = max(20, terminal_width() - column)
    lines = []
    for name, does in zip(left, right, strict=True):
        first, *more = wrap(does, room)
        lines += [f"{name:{column}}{dim(first)}", *(" " * column + dim(line) for line in more)]
        lines += [""] if name == f"/{COMMANDS[-1].name}" else []
    return [ListingBlock(lines)]


def call_block(view: View, which: str) -> Block:
    """A tool call by its number, by default the last."""
    calls = {str(numbered.number): numbered for numbered in view.calls}
    if not calls:
        return NoticeBlock("There is no tool call to open.")
    found = calls.get(which.strip("[]")) if which else list(calls.values())[-1]
    if found is None:
        return NoticeBlock(f"There is no tool call {one_line(which)}; there is 1 to {len(calls)}.")
    return ListingBlock(
        [f"[{found.number}] {one_line(found.call.tool)} · {_outcome(found)}", *_indented(_inside(found.call))]
    )


def thinking_block(view: View, which: str) -> Block:
    """Thinking by its number, by default the last."""
    thoughts = view.answer_stream.thoughts
    if not thoughts:
        return NoticeBlock("It has not thought aloud here.")
    if not which:
        number = len(thoughts)
    elif which.isascii() and which.isdecimal() and 1 <= int(which) <= len(thoughts):
        number = int(which)
    else:
        return NoticeBlock(f"There is no thought {one_line(which)}; there is 1 to {len(thoughts)}.")
    return ListingBlock(["✻ thought", *_indented(tidy(thoughts[number - 1]).split("\n"))])


def _outcome(numbered: NumberedCall) -> str:
    return "not started" if numbered.call.state == "pending" else call_result(numbered.call)


def _inside(call: ToolCallView) -> list[str]:
    lines = argument_lines(call.arguments, most=MOST_LINES) if call.arguments else []
    if call.output.strip():
        lines += ["→", *tidy(call.output).rstrip("\n").split("\n")]
    return lines


def _indented(lines: list[str]) -> list[str]:
    shown = [part for line in lines for part in wrap(line, terminal_width() - 2)]
    more = len(shown) - MOST_LINES
    cut = [f"… {plural(more, 'more line')}; `{program()} sessions export` has all"] if more > 0 else []
    return [dim(f"  {line}") for line in [*shown[:MOST_LINES], *cut]]
