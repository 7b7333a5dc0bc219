"""Texts on a screen: widths, tables, spans of time."""

from __future__ import annotations

import click
import pytest
from wcwidth import wcswidth

from holdfast.cli.screen import Column, clean, duration, one_line, shorten, table, width, wrap


def test_wide_characters_take_two_columns_and_combining_ones_none() -> None:
    assert width("abc") == 3
    assert width("日本") == 4
    assert width("e\u0301") == 1
    assert width("👍") == 2


@pytest.mark.parametrize(
    "text",
    [
        "👍🏽",
        "☝🏽",
        "❤️",
        "⚙️",
        "1️⃣",
        "🇩🇪",
        "👨‍👩‍👧",
        "🏳️‍🌈",
        "🧑🏽‍💻",
        "👩‍⚕️",
        "\U0001fae9",
        "a👍🏽b",
        "❤",
        "क्‍ष",
        "e\u0301\u0302",
    ],
)
def test_an_emoji_is_as_wide_as_a_terminal_shows_it(text: str) -> None:
    assert width(text) == wcswidth(text)


def test_an_emoji_of_several_characters_is_not_cut() -> None:
    family = "👨‍👩‍👧"
    assert wrap(family * 3, 4) == [family * 2, family]
    assert shorten("👍🏽👍🏽👍🏽", 5) == "👍🏽👍🏽…"


def test_shortening_never_exceeds_and_says_so() -> None:
    for text in ("hello world", "日本語日本語", "a日b本c語"):
        for limit in range(1, 14):
            shown = shorten(text, limit)
            assert width(shown) <= limit
            assert shown == text or shown.endswith("…")


def test_wrapping_loses_nothing() -> None:
    text = "the quick brown fox\n    indented code\n\n日本語の長い文章です averyveryverylongword"
    for limit in range(2, 40):
        lines = wrap(text, limit)
        assert max(map(width, lines)) <= limit
        assert "".join("".join(lines).split()) == "".join(text.split())


def test_control_and_reordering_characters_are_removed() -> None:
    assert clean("a\x1b[31mb\x9b\x07\r\u202ec\td\n") == "a[31mbc\td\n"
    assert one_line(" a \n\t b ") == "a b"


def test_a_table_shortens_the_flexible_column_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    columns = (Column("ID"), Column("N", right=True), Column("TITLE", flexible=True))
    lines = table(columns, [["12345678", "7", "a long title that does not fit"], ["1", "10", "x\ny"]]).splitlines()
    assert [click.unstyle(line) for line in lines] == [
        "ID         N  TITLE",
        "12345678   7  a long title th…",
        "1         10  x y",
    ]


def test_a_narrow_terminal_shows_an_id_that_can_be_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "16")
    columns = (Column("ID"), Column("STATE"), Column("TITLE", flexible=True))
    assert click.unstyle(table(columns, [["12345678", "running", "a title"]])).splitlines()[1] == "12345678  run…  a t…"


def test_durations_are_shown_in_the_unit_that_fits() -> None:
    hour = 3_600_000
    spans = {3: "3 ms", 999: "999 ms", 1_000: "1.0 s", 1_500: "1.5 s", 60_000: "1 min 0 s", 61_000: "1 min 1 s"}
    spans |= {hour - 1: "59 min 59 s", hour: "1 h 0 min", 48 * hour - 1: "47 h 59 min", 48 * hour: "2 d 0 h"}
    spans |= {3_660_000: "1 h 1 min", 200_000_000: "2 d 7 h"}
    assert {ms: duration(ms) for ms in spans} == spans
