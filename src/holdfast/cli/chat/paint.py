"""Blocks as lines for a terminal, drawn by rich, which is imported nowhere else.

Everything that was not written here is cleaned here, at the last moment: what an agent, a tool or a title says can
neither command the terminal nor reorder what stands on it.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.color import ColorSystem
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.markdown import CodeBlock, Heading, HorizontalRule, Markdown, MarkdownElement
from rich.padding import Padding
from rich.segment import Segment
from rich.style import Style
from rich.syntax import Syntax
from rich.text import Text
from rich.theme import Theme

from holdfast.cli.chat.blocks import (
    Block,
    DividerBlock,
    ListingBlock,
    NoteBlock,
    NoticeBlock,
    QuestionBlock,
    TextBlock,
    ThinkingBlock,
    ToolBlock,
    UserBlock,
    needs_blank_line,
)
from holdfast.cli.render.inbox import choice_note, is_cut, shown_lines
from holdfast.cli.render.transcript import arguments_text
from holdfast.cli.screen import SHORT_ID, clean, duration, one_line, plural, shorten
from holdfast.domain.transcript_text import call_detail

MESSAGE_LINES = 40
MESSAGE_CHARACTERS = 4_000
ARGUMENT_LINES = 12
APPROVAL_LINES = 40
ARGUMENT_COLUMNS = 400
NARROWEST = 20
TAB = 4
MARK = "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"
COLORS = {"done": "green", "started": "cyan", "failed": "red", "stopped": "magenta", "unknown": "yellow"}
TONES = {"quiet": "dim", "plain": "none", "warning": "yellow", "bad": "red"}


CODE_THEME = "ansi_dark"
STYLES = {
    "markdown.code": "cyan",
    "markdown.code_block": "none",
    "markdown.block_quote": "italic",
    "markdown.h1": "bold underline",
    "markdown.h2": "bold underline",
    "markdown.h3": "bold",
    "markdown.h4": "bold",
    "markdown.h5": "bold",
    "markdown.h6": "bold",
    "markdown.item.bullet": "dim",
    "markdown.item.number": "dim",
    "markdown.link": "none",
    "markdown.link_url": "underline",
    "markdown.table.border": "dim",
    "markdown.table.header": "bold",
}
_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)"  # titles, links, clipboard
    r"|\x1b[ -/]+[0-~]"  # character sets
)


def tidy(text: str) -> str:
    """Remove escape sequences and control characters, and replace tabs, whose width differs between programs.

    Of a sequence without an end only its escape character goes: nothing can be hidden behind it.
    """
    return clean(_SEQUENCES.sub("", text)).expandtabs(TAB)


class Painter:
    """Draws for one width; `plain` is without colours and without any other styling."""

    def __init__(self, columns: int, *, colors: bool, styled: bool = True) -> None:
        self.columns = max(NARROWEST, columns)
        self._drawn: tuple[str, list[str]] = ("", [])
        self._colors = colors
        self._styled = styled
        self._console = Console(
            file=io.StringIO(),
            width=self.columns,
            force_terminal=True,
            legacy_windows=False,
            color_system="standard",
            markup=False,
            emoji=False,
            highlight=False,
            theme=Theme(STYLES),
        )

    def blocks(self, blocks: Iterable[Block], *, after: Block | None) -> list[str]:
        """Draw blocks, with blank lines between groups."""
        lines: list[str] = []
        for block in blocks:
            lines += [""] if needs_blank_line(after, block) else []
            lines += self.block(block)
            after = block
        return lines

    def block(self, block: Block) -> list[str]:
        """Draw one block."""
        return self.lines(self._draw(block))

    def markdown(self, text: str) -> list[str]:
        """Draw a piece of an answer. The result is cached, since it is drawn again with each frame."""
        if self._drawn[0] != text:
            self._drawn = (text, self.lines(RenderedMarkdown(tidy(text))))
        return self._drawn[1]

    def lines(self, drawn: RenderableType) -> list[str]:
        """Render Markdown with rich; texts are cleaned, styles are our own."""
        lines = [self._line(row) for row in self._console.render_lines(drawn, pad=False)]
        while lines and not lines[-1]:
            lines.pop()
        begin = next((index for index, line in enumerate(lines) if line), 0)
        return lines[begin:]

    def text(self, text: str, style: str = "none") -> str:
        """Style a text within a line."""
        return self._styled_text(tidy(text), Style.parse(style))

    def _line(self, row: list[Segment]) -> str:
        texts = [(clean(segment.text), segment.style) for segment in row if not segment.control]
        while texts:
            text, style = texts.pop()
            if shown := text.rstrip():
                texts.append((shown, style))
                break
        return "".join(self._styled_text(text, style) for text, style in texts)

    def _styled_text(self, text: str, style: Style | None) -> str:
        if style is None or not self._styled:
            return text
        shown = style if self._colors else style.without_color
        return shown.render(text, color_system=ColorSystem.STANDARD)

    # --- one kind each --------------------------------------------------------------------------

    def _draw(self, block: Block) -> RenderableType:
        match block:
            case UserBlock():
                return _user_message(block)
            case NoteBlock(text=text):
                return _note(text)
            case TextBlock(markdown=markdown):
                return RenderedMarkdown(tidy(markdown))
            case ThinkingBlock():
                return Text(f"✻ {thinking_text(block)}", style="dim italic", no_wrap=True, overflow="ellipsis")
            case ToolBlock():
                return self._tool_call(block)
            case QuestionBlock():
                return _question(block)
            case NoticeBlock(text=text, tone=tone):
                return Text(tidy(text), style=TONES[tone])
            case DividerBlock():
                return self._divider(block)
            case ListingBlock(lines=lines):
                return Group(*(Text.from_ansi(line) for line in lines))

    def _divider(self, block: DividerBlock) -> RenderableType:
        """Draw a line across the screen, and below it the lines of the block."""
        title = shorten(one_line(tidy(block.title)), self.columns - 6)
        line = f"── {title} ".ljust(self.columns, "─")
        below = [Text(one_line(tidy(text)), style=TONES[block.tone]) for text in block.lines]
        return Group(
            Text(line, style=TONES[block.tone], no_wrap=True), *(Padding(text, (0, 0, 0, 3)) for text in below)
        )

    def _tool_call(self, block: ToolBlock) -> RenderableType:
        """Draw a call in one line; of a failure also the first line of its message."""
        call, detail = block.call, call_detail(block.call)
        task = f" · task {call.task[:SHORT_ID]}" if call.task else ""
        rest = f"{f' · {detail}' if detail else ''} · {duration(call.duration_ms or 0)}{task} · [{block.number}]"
        ending = f" · {call.state}{rest}"
        what = call_line(call.tool, call.arguments, self.columns - len(ending) - 2)
        line = Text.assemble(
            ("⚙ ", "dim"), what, (" · ", "dim"), (call.state, COLORS.get(call.state, "none")),
            (rest, "dim"),
        )  # fmt: skip
        if call.state in ("done", "started"):
            return line
        said = _last_line(call.output) if detail else one_line(tidy(call.output))
        why = shorten(said, self.columns - 4)
        return Group(line, Text(f"  {why}", style="dim")) if why else line


def _last_line(output: str) -> str:
    """Return the last line that a command printed; its exit code is shown anyway."""
    lines = [line for line in map(one_line, tidy(output).split("\n")) if line]
    if lines and lines[-1].startswith("[") and lines[-1].endswith("]"):
        lines.pop()
    return lines[-1] if lines else ""


def call_line(tool: str, arguments: str, limit: int) -> str:
    """Return a tool and its arguments, shortened."""
    return shorten(f"{one_line(tool)} {arguments_text(arguments)}".rstrip(), max(8, limit))


def thinking_text(thought: ThinkingBlock) -> str:
    """Return how long the model thought, or how much."""
    if thought.ms is not None:
        return f"thought for {duration(thought.ms)}"
    return f"thought ({plural(len(thought.text.split()), 'word')})"


def _note(text: str) -> RenderableType:
    """Mark text that no person wrote."""
    whole = tidy(text).strip("\n")
    first, _, more = whole[:MESSAGE_CHARACTERS].partition("\n")
    parts: list[RenderableType] = [Text(first), *([Text(more, style="dim")] if more else [])]
    return _marked("note ", "magenta", parts)


def _user_message(block: UserBlock) -> RenderableType:
    whole = tidy(block.text).strip("\n")
    shown = "\n".join(whole[:MESSAGE_CHARACTERS].split("\n")[:MESSAGE_LINES])
    parts: list[RenderableType] = [Text(shown, style="bold")]
    lines = whole.count("\n") - shown.count("\n")
    if len(shown) < len(whole):
        left_out = plural(lines, "more line") if lines else plural(len(whole) - len(shown), "more character")
        parts.append(Text(f"… {left_out}", style="dim"))
    if block.note:
        parts.append(Text(f"({tidy(block.note)})", style="dim"))
    return _marked(f"{MARK} ", "bold cyan", parts)


def _question(block: QuestionBlock) -> RenderableType:
    wait = block.wait
    reason = tidy(wait.reason) if wait.purpose == "question" else one_line(tidy(wait.reason))
    parts: list[RenderableType] = [Text(reason, style="bold")]
    if block.arguments:
        lines = argument_lines(block.arguments, most=ARGUMENT_LINES)
        shown = [shorten(line, ARGUMENT_COLUMNS) for line in lines]
        parts += [Text(line, style="dim") for line in shown]
        cut = len(lines) > ARGUMENT_LINES or shown != lines
        parts += [Text("/open shows all of it", style="dim")] if cut else []
    if wait.shown:
        whole = shown_lines(wait.shown)
        lines = _at_most([shorten(tidy(line), ARGUMENT_COLUMNS) for line in whole], APPROVAL_LINES)
        parts += [Text(line, style=_diff_style(line)) for line in lines]
        if is_cut(wait.shown) or len(lines) > APPROVAL_LINES or any(len(line) > ARGUMENT_COLUMNS for line in whole):
            parts.append(Text("/open shows all of it", style="dim"))
    for number, choice in enumerate(wait.choices, 1):
        if wait.purpose == "approval":
            note = "" if wait.means else choice_note(choice, wait.pattern)
            parts.append(Text.assemble((f"{number} ", "cyan"), f"{one_line(choice):9}", (note, "dim")))
        else:
            parts.append(Text.assemble((f"{number} ", "cyan"), one_line(choice)))
    return _marked("? ", "bold yellow", parts)


def _diff_style(line: str) -> str:
    """Colour the lines of a diff, which follow a bar."""
    return {"│ +": "green", "│ -": "red", "│ @": "cyan"}.get(line[:3], "dim")


def _marked(mark: str, style: str, parts: list[RenderableType]) -> RenderableType:
    """Put the parts below each other, with the mark before the first line and the others indented."""
    from rich.table import Table

    grid = Table.grid(padding=0)
    grid.add_column(width=len(mark), no_wrap=True)
    grid.add_column(overflow="fold")
    for index, part in enumerate(parts):
        grid.add_row(Text(mark if index == 0 else "", style=style), part)
    return grid


def argument_lines(arguments: str, *, most: int) -> list[str]:
    """Return the arguments of a call for reading: one name per line, long texts below it."""
    try:
        found = json.loads(arguments)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        return _at_most(tidy(arguments).split("\n"), most)
    lines: list[str] = []
    for name, value in found.items():
        text = tidy(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        inside = text.rstrip("\n").split("\n")
        if len(inside) == 1:
            lines.append(f"{one_line(name)}: {inside[0]}")
        else:
            lines += [f"{one_line(name)}:", *(f"│ {line}" for line in inside)]
    return _at_most(lines, most)


def _at_most(lines: list[str], most: int) -> list[str]:
    left_out = len(lines) - most
    return lines if left_out <= 0 else [*lines[:most], f"… {plural(left_out, 'more line')}"]


# --- Markdown: without raw HTML and hidden links, with plain headings and code; line breaks stay -------

# Without `reference`: a line like `[1]: https://…` would be taken for a definition and not be drawn at all.
_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
_PARSER.disable("reference")


class _LeftHeading(Heading):
    """A heading at the margin, however large."""

    LEVEL_ALIGN: ClassVar = dict.fromkeys(Heading.LEVEL_ALIGN, "left")


class _IndentedCode(CodeBlock):
    """Code without a background, so that it can be copied and reads well on any palette."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console, options
        code = str(self.text).rstrip()
        syntax = Syntax(code, self.lexer_name, theme=self.theme, word_wrap=True, background_color="default")
        yield Padding(syntax, (0, 0, 0, 2))


class _ShortRule(HorizontalRule):
    """A line that survives a narrower terminal."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console, options
        yield Text("─" * 8, style="dim")


class RenderedMarkdown(Markdown):
    """A piece of markdown."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _LeftHeading,
        "fence": _IndentedCode,
        "code_block": _IndentedCode,
        "hr": _ShortRule,
    }

    def __init__(self, text: str) -> None:
        super().__init__("", code_theme=CODE_THEME, hyperlinks=False)
        self.markup = text
        self.parsed = _PARSER.parse(text)
        _keep_breaks(self.parsed)


def _keep_breaks(tokens: list[Token]) -> None:
    for token in tokens:
        if token.type == "softbreak":
            token.type = "hardbreak"
        _keep_breaks(token.children or [])
