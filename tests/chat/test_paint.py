"""What is drawn, and that nothing foreign ever commands the terminal."""

from __future__ import annotations

import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.chat.blocks import (
    Block,
    NoticeBlock,
    QuestionBlock,
    TextBlock,
    ThinkingBlock,
    ToolBlock,
    UserBlock,
    needs_blank_line,
)
from holdfast.cli.chat.paint import Painter, argument_lines, tidy
from holdfast.domain.events.session import Purpose
from holdfast.domain.transcript_items import CallState, ToolCallView, WaitItem

SGR = re.compile(r"\x1b\[[0-9;]*m")
HOSTILE = "a\x1b[31mb\x1b]0;title\x07c\x9b2Jd\x1b]8;;http://x\x1b\\e\u202ef\u2066g\x00\x08h\x1b(0i\rj\x7fk"


def draw(block: Block, columns: int = 80) -> list[str]:
    return Painter(columns, colors=False, styled=False).block(block)


def called(number: int, tool: str, arguments: str, state: CallState, output: str, ms: int) -> ToolBlock:
    call = ToolCallView(call="c", tool=tool, arguments=arguments, state=state, output=output, duration_ms=ms)
    return ToolBlock(number, call)


def asked(
    purpose: Purpose, reason: str, choices: tuple[str, ...], arguments: str = "", pattern: str = ""
) -> QuestionBlock:
    wait = WaitItem(
        version=1, at=0, wait="w", turn=1, purpose=purpose, reason=reason, choices=[*choices], pattern=pattern
    )
    return QuestionBlock(wait, arguments)


EVERYWHERE: list[Block] = [
    UserBlock(HOSTILE, HOSTILE),
    TextBlock(HOSTILE),
    TextBlock(f"# {HOSTILE}\n\n`{HOSTILE}`\n\n```{HOSTILE}\n{HOSTILE}\n```\n\n| {HOSTILE} |\n|---|\n| {HOSTILE} |"),
    TextBlock("&#27;[31m &#x9b;2J &#x202e;x &#8238;y [a](http://x/&#x202e;b) ![i](http://y/\u202ez)"),
    ThinkingBlock(1, HOSTILE),
    called(1, HOSTILE, json.dumps({HOSTILE: HOSTILE}), "failed", HOSTILE, 5),
    called(1, "x", HOSTILE, "done", HOSTILE, 5),
    asked("question", HOSTILE, (HOSTILE,)),
    asked("approval", HOSTILE, ("allow", HOSTILE), json.dumps({HOSTILE: HOSTILE + "\n" + HOSTILE}), HOSTILE),
    NoticeBlock(HOSTILE, "bad"),
]


def foreign(line: str) -> list[str]:
    """Characters that are not text, besides our own styling."""
    rest = SGR.sub("", line)
    bidi = {chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
    return [character for character in rest if unicodedata.category(character) == "Cc" or character in bidi]


@pytest.mark.parametrize("block", EVERYWHERE, ids=lambda block: type(block).__name__)
@pytest.mark.parametrize("columns", [20, 80, 120])
def test_no_foreign_control_character_reaches_the_terminal(block: Block, columns: int) -> None:
    for line in Painter(columns, colors=True).block(block):
        assert foreign(line) == []


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_whatever_an_agent_says(text: str) -> None:
    painter = Painter(40, colors=True)
    for block in (TextBlock(text), UserBlock(text), called(1, "t", text, "failed", text, 1), NoticeBlock(text)):
        assert all(foreign(line) == [] for line in painter.block(block))


def test_whole_escape_sequences_are_removed_and_an_open_one_hides_nothing() -> None:
    assert tidy("\x1b[1;31mred\x1b[0m") == "red"
    assert tidy("\x1b]0;title\x07text") == "text"
    assert tidy("\x1b]0;never ends text") == "]0;never ends text"
    assert tidy("a\tb\r\nc") == "a   b\nc"


def test_markdown_is_drawn_without_html_and_with_visible_links() -> None:
    assert draw(TextBlock("a <b>c</b> [here](https://x.y)\nnew line")) == ["a <b>c</b> here (https://x.y)", "new line"]
    assert draw(TextBlock("# Title")) == ["Title"]
    assert draw(TextBlock("- a\n- b")) == [" • a", " • b"]
    assert draw(TextBlock("3. a\n4. b")) == [" 3 a", " 4 b"]
    assert draw(TextBlock("```py\nx = 1\n\ny = 2\n```")) == ["  x = 1", "", "  y = 2"]


def test_markdown_hides_nothing_that_was_said() -> None:
    assert draw(TextBlock("see [1]\n\n[1]: https://x.y")) == ["see [1]", "", "[1]: https://x.y"]


def test_a_call_is_one_line_and_fits() -> None:
    long = json.dumps({"path": "p" * 200, "content": "c" * 200})
    for columns in (40, 80, 120):
        (line,) = draw(called(3, "write", long, "done", "", 12), columns)
        assert line.endswith("· done · 12 ms · [3]")
        assert len(line) <= columns
    line, why = draw(called(3, "write", "{}", "failed", "no such\nfile", 12))
    assert why == "  no such file"


def test_an_approval_says_all_that_it_covers() -> None:
    block = asked("approval", "write a\n9 fake", ("allow", "session"), '{"path": "a", "content": "1\\n2"}', "write:*")
    assert draw(block) == [
        "? write a 9 fake",
        "  path: a",
        "  content:",
        "  │ 1",
        "  │ 2",
        "  1 allow    this call, once",
        "  2 session  write:* in this session",
    ]


def test_long_arguments_are_cut_and_say_so() -> None:
    shown = argument_lines(json.dumps({"content": "\n".join(map(str, range(100)))}), most=12)
    assert shown[-1] == "… 89 more lines"
    assert argument_lines("not json", most=3) == ["not json"]
    shown = draw(asked("approval", "write a", ("allow",), json.dumps({"content": "x" * 100_000})))
    assert len(shown) < 12
    assert "  /open shows all of it" in shown


def test_a_message_keeps_its_lines() -> None:
    assert draw(UserBlock("one\ntwo")) == ["› one", "  two"]  # noqa: RUF001
    shown = draw(UserBlock("\n".join("x" * 100)))
    assert shown[-1] == "  … 60 more lines"
    shown = draw(UserBlock("x" * 1_000_000))
    assert shown[-1] == "  … 996,000 more characters"
    assert len(shown) < 60


def test_how_long_it_thought() -> None:
    assert draw(ThinkingBlock(1, "a b", 3100)) == ["✻ thought for 3.1 s"]
    assert draw(ThinkingBlock(1, "a b")) == ["✻ thought (2 words)"]


def test_blank_lines_separate_speakers() -> None:
    call, said, spoke = called(1, "t", "", "done", "", 1), UserBlock("x"), TextBlock("y")
    assert needs_blank_line(said, spoke)
    assert needs_blank_line(spoke, spoke)
    assert needs_blank_line(spoke, call)
    assert not needs_blank_line(call, call)
    assert not needs_blank_line(spoke, TextBlock("z", joined=True))
    assert not needs_blank_line(None, said)


def test_without_colours_there_are_none() -> None:
    shown = "\n".join(Painter(80, colors=False).block(called(1, "t", "", "failed", "x", 1)))
    assert set(re.findall(r"\x1b\[([0-9;]*)m", shown)) <= {"0", "1", "2", "3", "4", "1;4", "2;3"}
