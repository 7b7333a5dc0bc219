"""The slash commands that only look, and what they find as a listing: at the gateway, or at what was folded here."""

from __future__ import annotations

from pathlib import Path

from holdfast.cli.chat.blocks import Block, ListingBlock, NoticeBlock
from holdfast.cli.chat.paint import argument_lines, tidy
from holdfast.cli.chat.slash import COMMANDS
from holdfast.cli.chat.view import NumberedCall, View
from holdfast.cli.hints import program, with_home
from holdfast.cli.render.inbox import kind_text
from holdfast.cli.render.sessions import CONTEXT, context_size
from holdfast.cli.screen import SHORT_ID, Column, ago, clean, dim, moment, one_line, plural, table, terminal_width, wrap
from holdfast.client.client import Client
from holdfast.client.http import Json
from holdfast.domain.transcript_items import ToolCallView
from holdfast.domain.transcript_text import call_result

LISTED = 20
MOST_LINES = 400
KEYS = (
    ("Enter", "send; while the agent works the message waits in its queue"),
    ("Alt-Enter", "a new line (also Esc, Enter)"),
    ("@", "name a file of the session's directory; Tab completes"),
    ("Ctrl-C", "stop the turn; with none, clear the line"),
    ("Ctrl-D", "leave; the work goes on"),
    ("Ctrl-O  Ctrl-T", "open the last tool call, the last thinking"),
)


def help_() -> list[Block]:
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


def sessions(client: Client, here: str) -> list[Block]:
    """The newest sessions; the one that this is, is marked."""
    rows = client.get("/v1/sessions", limit=LISTED)["sessions"]
    if not rows:
        return [NoticeBlock("There are no sessions yet.")]
    columns = (
        Column(""),
        Column("ID"),
        Column("STATE", states=True),
        Column("UPDATED"),
        Column("TITLE", flexible=True),
    )
    cells = [
        ["*" if row["id"] == here else "", row["id"][:SHORT_ID], _standing(row), ago(row["updated_at"]), row["title"]]
        for row in rows
    ]
    return [listing(columns, cells, "/resume ID goes to one")]


def _standing(row: Json) -> str:
    return str(row["turn_state"] if row["state"] == "idle" and row["turn_state"] else row["state"])


def inbox(client: Client, here: str) -> list[Block]:
    """Everything that waits for a person."""
    entries = client.get("/v1/inbox")["entries"]
    if not entries:
        return [NoticeBlock("Nothing waits for you.")]
    columns = (Column("WHERE"), Column("WHAT"), Column("SINCE"), Column("ABOUT", flexible=True))
    cells = [
        [
            "this one" if entry["stream"] == f"session/{here}" else _where(entry["stream"]),
            kind_text(entry["kind"]),
            ago(entry["since"]),
            one_line(entry["what"]),
        ]
        for entry in entries
    ]
    return [listing(columns, cells, "/resume SESSION goes to a session, /card show ID shows a card")]


def _where(stream: str) -> str:
    noun, _, id = stream.partition("/")
    return f"{noun} {id[:SHORT_ID]}"


def why(client: Client, session: str) -> list[Block]:
    """What it is doing or waiting for; each sentence names the event that it rests on."""
    lines: list[str] = []
    for sentence in client.get(f"/v1/sessions/{session}/why")["sentences"]:
        lines += wrap(clean(with_home(sentence["text"])), terminal_width())
        lines.append(dim(f"  version {sentence['version']}, {moment(sentence['at'])}"))
    return [ListingBlock(lines)]


def context(client: Client, session: str) -> list[Block]:
    """What the model sees, and about how large it is."""
    found = client.sessions.context(session)
    messages = found.messages
    cells = [["", "system", f"{len(found.instructions):,}", found.instructions]]
    cells += [[str(one.turn), one.role, f"{one.characters:,}", one.text] for one in messages[-LISTED:]]
    left_out = f"{plural(len(messages) - LISTED, 'earlier message')} not listed; " if len(messages) > LISTED else ""
    tools = one_line(", ".join(found.tools))
    hint = f"{left_out}model {one_line(found.model)}; tools: {tools}\n{context_size(found)}"
    return [listing(CONTEXT, cells, hint)]


def export(client: Client, session: str, name: str) -> list[Block]:
    """Write the conversation to a file that is not there yet."""
    path = Path(name or f"holdfast-{session[:SHORT_ID]}.md")
    form = "jsonl" if path.suffix == ".jsonl" else "markdown"
    content = client.text(f"/v1/sessions/{session}/export", format=form)
    try:
        path = path.expanduser()
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError:
        return [NoticeBlock(f"{path} is there already; name another file.", "bad")]
    except OSError as error:
        return [NoticeBlock(f"{path}: {error.strerror}.", "bad")]
    except (RuntimeError, ValueError) as error:  # the home of nobody; a zero byte
        return [NoticeBlock(f"{path}: {error}", "bad")]
    return [NoticeBlock(f"wrote {path.absolute()}: {len(content):,} bytes of {form}")]


def listing(columns: tuple[Column, ...], cells: list[list[str]], hint: str) -> ListingBlock:
    """A table, and below it what can be done with it."""
    return ListingBlock([*table(columns, cells).split("\n"), *map(dim, wrap(hint, terminal_width()))])


# --- what was folded to one line ------------------------------------------------------------------


def call(view: View, which: str) -> Block:
    """A tool call by its number, without one the last."""
    calls = {str(numbered.number): numbered for numbered in view.calls}
    if not calls:
        return NoticeBlock("There is no tool call to open.")
    found = calls.get(which.strip("[]")) if which else list(calls.values())[-1]
    if found is None:
        return NoticeBlock(f"There is no tool call {one_line(which)}; there is 1 to {len(calls)}.")
    return ListingBlock(
        [f"[{found.number}] {one_line(found.call.tool)} · {_outcome(found)}", *_indented(_inside(found.call))]
    )


def thinking(view: View, which: str) -> Block:
    """A train of thought by its number, without one the last."""
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
