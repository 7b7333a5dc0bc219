"""Spans of time, times and sizes on the command line."""

from __future__ import annotations

import time

import click
import pytest

from holdfast.cli.screen import age, details
from holdfast.cli.values import SINCE, SIZE, SPAN, UNTIL


@pytest.mark.parametrize(("text", "ms"), [("90s", 90_000), ("0s", 0), ("1.5h", 5_400_000), (" 7D ", 604_800_000)])
def test_a_span(text: str, ms: int) -> None:
    assert SPAN.convert(text, None, None) == ms


@pytest.mark.parametrize("text", ["", "7", "h", "-1h", "1y", "1h30m", "٣h", "1e9d", "nand"])
def test_what_is_no_span(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a duration"):
        SPAN.convert(text, None, None)


def test_a_span_is_before_or_after_now() -> None:
    now = int(time.time() * 1000)
    assert SINCE.convert("2h", None, None) <= now - 7_190_000
    assert UNTIL.convert("2h", None, None) >= now + 7_200_000


def test_a_date_is_meant_as_the_clock_on_the_wall_shows_it() -> None:
    day = time.mktime((2026, 11, 30, 0, 0, 0, 0, 0, -1)) * 1000
    assert SINCE.convert("2026-11-30", None, None) == day
    assert UNTIL.convert("2026-11-30 18:00", None, None) == day + 18 * 3_600_000
    assert UNTIL.convert("1970-01-02T00:00:00+00:00", None, None) == 86_400_000
    for text in ("yesterday", "2026-13-01", ""):
        with pytest.raises(click.BadParameter, match="is not a time"):
            SINCE.convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "count"),
    [("500", 500), ("20k", 20_000), ("1.5M", 1_500_000), ("1GB", 10**9), ("1Gi", 2**30), ("2t", 2e12)],
)
def test_a_size(text: str, count: float) -> None:
    assert SIZE.convert(text, None, None) == count


@pytest.mark.parametrize("text", ["", "k", "much", "-1", "1x", "1kk"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a size"):
        SIZE.convert(text, None, None)


def test_for_people() -> None:
    assert [age(ms) for ms in (-5, 999, 59_999, 61_000, 11_400_000, 400_000_000)] == [
        "0 s",
        "0 s",
        "59 s",
        "1 min",
        "3 h 10 min",
        "4 d",
    ]


def test_long_values_continue_below(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    assert click.unstyle(details([("a", "one two three four five six seven"), ("longer", "x\ny\x1b[2J")])) == (
        "a       one two three four\n        five six seven\nlonger  x\n        y[2J"
    )
