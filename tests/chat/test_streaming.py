"""Markdown in the making: pieces come as early as possible and never depend on how the text was chopped."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.chat.blocks import TextBlock
from holdfast.cli.chat.streaming import CODE_LINES, MarkdownSplitter

LINES = [
    "",
    "text",
    "**bold** text",
    "# heading",
    "- item",
    "  nested",
    "1. one",
    "```python",
    "```",
    "~~~",
    "  ```",
    "| a |",
]


def pieces(*chunks: str) -> list[TextBlock]:
    splitter = MarkdownSplitter()
    for chunk in chunks:
        splitter.feed(chunk)
    splitter.finish()
    return splitter.pieces


def markdown(*chunks: str) -> list[str]:
    return [piece.markdown for piece in pieces(*chunks)]


def test_paragraphs_headings_lists_and_code_are_pieces() -> None:
    text = "# Title\nfirst\nsame\n\n\n- a\n- b\n\n  inside b\n\nlast\n```sh\nls\n\npwd\n```\nend"
    assert markdown(text) == [
        "# Title",
        "first\nsame",
        "- a\n- b\n\n  inside b",
        "last",
        "```sh\nls\n\npwd\n```",
        "end",
    ]


def test_a_piece_is_there_as_soon_as_it_cannot_change() -> None:
    splitter = MarkdownSplitter()
    assert splitter.feed("one\n") == []
    assert splitter.feed("\n") == []  # what follows may be indented and belong to it
    assert splitter.rest.markdown == "one"
    assert splitter.feed("t") == [TextBlock("one")]
    assert splitter.rest.markdown == "t"
    assert splitter.feed("\n## two\n") == [TextBlock("t"), TextBlock("## two")]


def test_code_in_a_list_stays_with_its_list() -> None:
    text = "- a\n\n  ```\n  x\n\n  y\n  ```\n- b\n\nend"
    assert markdown(text) == ["- a\n\n  ```\n  x\n\n  y\n  ```\n- b", "end"]


def test_long_code_comes_in_joined_pieces_that_are_code_themselves() -> None:
    code = [f"line {number}" for number in range(100)]
    found = pieces("```py\n" + "\n".join(code) + "\n```\nend")
    assert [piece.joined for piece in found] == [False, True, True, False]
    assert all(piece.markdown.startswith("```py\n") and piece.markdown.endswith("\n```") for piece in found[:3])
    inside = [line for piece in found[:3] for line in piece.markdown.split("\n")[1:-1]]
    assert inside == code
    assert len(found[0].markdown.split("\n")) == CODE_LINES + 2


def test_inline_backticks_open_no_block() -> None:
    assert markdown("```not a fence``` here\n\nnext") == ["```not a fence``` here", "next"]


def test_code_without_an_end_is_code_to_the_end() -> None:
    assert markdown("```\na\n\nb") == ["```\na\n\nb"]


@given(st.lists(st.sampled_from(LINES), max_size=30), st.data())
def test_the_pieces_do_not_depend_on_the_chunks(lines: list[str], data: st.DataObject) -> None:
    text = "\n".join(lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    chunks = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert pieces(*chunks) == pieces(text)


@given(st.lists(st.sampled_from(LINES), max_size=30))
def test_nothing_is_lost(lines: list[str]) -> None:
    text = "\n".join(lines)
    kept = "\n".join(markdown(text)).split()
    assert kept == text.split()
