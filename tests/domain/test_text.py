"""Titles and previews: Markdown without its signs."""

from __future__ import annotations

import pytest

from holdfast.domain.session_rules import title_from
from holdfast.domain.text import duration, shorten, size, without_markdown


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("# The plan", "The plan"),
        ("It reads **once per line item** and *then* again.", "It reads once per line item and then again."),
        ("See [the notes](docs/notes.md) and ![a graph](g.png).", "See the notes and a graph."),
        ("Run `make test` first", "Run make test first"),
        ("- [ ] one\n- two\n* three\n1. four", "one two three 1. four"),
        ("> quoted\n\n---\nrest", "quoted rest"),
        ("```python\nprint(1)\n```", "print(1)"),
        ("| version | p95 |\n| --- | ---: |\n| 4.11 | 236 ms |", "version p95 4.11 236 ms"),
        ("~~old~~ new", "old new"),
        ("***both***", "both"),
        ("It is **fixed**. Use *this*.", "It is fixed. Use this."),
    ],
)
def test_the_signs_of_markdown_go(written: str, read: str) -> None:
    assert shorten(without_markdown(written), 120) == read


@pytest.mark.parametrize(
    "text",
    [
        "rename __init__.py",
        "2 * 3 * 4",
        "count src/*.py,*.js",
        "delete *.pyc and *.pyo",
        "a_b_c and snake_case",
        "use a | b in the shell",
        "C# or F#",
        "-1 is not found",
        "what does a ** b do?",
    ],
)
def test_what_only_looks_like_markdown_stays(text: str) -> None:
    assert without_markdown(text) == text


def test_a_title_is_the_first_line_that_says_something() -> None:
    assert title_from("```sh\nmake **all**\n```\nfails") == "make all"
    assert title_from("## Fix the *login*\nplease") == "Fix the login"
    assert title_from("***") == "***"


def test_a_number_of_bytes() -> None:
    assert [size(count) for count in (0, 1023, 1024, 3_500, 17 * 2**20, 3 * 2**30, 20_000 * 2**30)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "3.4 KiB",
        "17 MiB",
        "3.0 GiB",
        "20,000 GiB",
    ]


def test_a_duration_is_shown_in_its_largest_units_up_to_their_limits() -> None:
    second, minute, hour = 1_000, 60_000, 3_600_000
    told = {
        -1: "0 s",
        999: "0 s",
        minute - 1: "59 s",
        minute: "1 min 0 s",
        10 * minute - 1: "9 min 59 s",
        10 * minute: "10 min",
        hour - 1: "59 min",
        hour: "1 h 0 min",
        hour + 61 * second: "1 h 1 min",
        48 * hour - 1: "47 h 59 min",
        48 * hour: "2 days",
        95 * hour: "3 days",
    }
    assert {milliseconds: duration(milliseconds) for milliseconds in told} == told
