"""A text in an output: whatever its case, wherever the pieces are cut, whatever stands between its letters."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.schemas.tasks import OutputMatch
from holdfast.tasks.output_search import OVERLAP, OutputSearch
from holdfast.tasks.plain_text import stripped

ANY = 10**9


def matches(data: bytes, text: str, *, step: int = 1 << 18, offset: int = 0, limit: int = ANY) -> list[OutputMatch]:
    """All matches, as a client gets them that goes on at `next` whenever the limit was reached."""
    found: list[OutputMatch] = []
    while True:
        search = OutputSearch(text, offset=offset, context=20)
        page: list[OutputMatch] = []
        at = search.read_from
        while True:
            piece = data[at : at + step]
            last = at + step >= len(data)
            page += search.feed(piece, at=at, last=last, ended=True, limit=limit - len(page))
            at += step
            if last or len(page) >= limit:
                break
        found += page
        if len(page) < limit:
            return found
        offset = search.next


def spans(data: bytes, text: str, *, step: int = 1 << 18, offset: int = 0, limit: int = ANY) -> list[tuple[int, int]]:
    return [(match.offset, match.end) for match in matches(data, text, step=step, offset=offset, limit=limit)]


@pytest.mark.parametrize(
    ("data", "text", "found"),
    [
        (b"one Needle\ntwo nEEDLE", "needle", [(4, 10), (15, 21)]),
        (b"aaaa", "aa", [(0, 2), (2, 4)]),
        ("größe GRÖSSE größe".encode(), "GRÖSSE", [(8, 15)]),
        ("größe GRÖSSE".encode(), "größe", [(0, 7), (8, 15)]),
        (b"ne\x1b[1;31med\x1b[0mle", "needle", [(0, 17)]),
        (b"ne\x1b]8;;http://a.needle/\x1b\\ed\x07le", "needle", [(0, 30)]),
        (b"\x1b[31mred", "31", []),
        (b"\x1b[31mred", "mred", []),
        (b"\x1b]0;needle\x07 needle", "needle", [(12, 18)]),
        (b"ne\nedle", "needle", []),
        (b"ne\redle", "needle", []),
        (b"10%\r20%\r30%\n", "20%", [(4, 7)]),
        (b"\xff\xfeneedle\xff \xc3needle", "needle", [(2, 8), (11, 17)]),
        (b"n\x00e\x00e\x00d\x00l\x00e\x00", "needle", [(0, 11)]),
        (b"a.c abc", "a.c", [(0, 3)]),
    ],
)
def test_text_is_found_as_it_is_seen(data: bytes, text: str, found: list[tuple[int, int]]) -> None:
    assert spans(data, text) == found
    for step in (1, 3, 7):
        assert spans(data, text, step=step) == found, f"in pieces of {step} bytes"
        assert spans(data, text, limit=1) == found, "one match a page"


PIECES = st.sampled_from(
    [b"needle", b"NEE", b"dle", b"\x1b[31m", b"\n", b"x", "ü".encode(), b"\xff", b"\r", b"\x00", b"n"]
)


@given(st.lists(PIECES, max_size=30), st.integers(1, 40), st.integers(1, 3))
@settings(max_examples=200, deadline=None)
def test_cuts_and_pages_change_nothing(pieces: list[bytes], step: int, limit: int) -> None:
    data = b"".join(pieces)
    whole = spans(data, "needle")
    assert spans(data, "needle", step=step) == whole
    assert spans(data, "needle", step=step, limit=limit) == whole
    lines = re.split(r"[\r\n]", stripped(data.replace(b"\r", b"\n")))
    assert len(whole) == sum(len(re.findall("needle", line, re.IGNORECASE)) for line in lines)


def test_long_line_is_searched_to_its_end() -> None:
    data = b"y" * 3_000_000 + b"needle" + b"y" * 1_000_000 + b"needle\n"
    assert [match.offset for match in matches(data, "needle")] == [3_000_000, 4_000_006]
    (first, _) = matches(data, "needle")
    assert (first.line, first.before, first.text, first.after) == (None, "y" * 20, "needle", "y" * 20)


def test_match_has_its_line_in_clean_text() -> None:
    (match,) = matches(b"first\nthe \x1b[1mnee\x1b[0mdle here\nlast", "needle")
    assert (match.line, match.before, match.text, match.after) == (6, "the ", "needle", " here")


def test_nothing_is_found_across_dropped_bytes() -> None:
    search = OutputSearch("needle", offset=0)
    assert search.feed(b"needle nee", at=0, last=False, ended=True, limit=9) == []
    found = search.feed(b"dle needle", at=1000, last=True, ended=True, limit=9)
    assert [(match.offset, match.line) for match in found] == [(0, 0), (1004, 1000)]


def test_running_command_is_searched_on_from_its_unfinished_line() -> None:
    search = OutputSearch("needle", offset=0)
    assert [m.offset for m in search.feed(b"needle\nneedle nee", at=0, last=True, ended=False, limit=9)] == [0, 7]
    data = b"needle\nneedle needle"
    assert spans(data, "needle", offset=search.next) == [(14, 20)], "neither twice nor left out"
    colour = OutputSearch("31", offset=0)
    assert colour.feed(b"\x1b[31", at=0, last=True, ended=False, limit=9) == [], "it is not known what this will be"


def test_memory_does_not_grow_with_the_output() -> None:
    search = OutputSearch("needle", offset=0)
    for at in range(0, 64 * OVERLAP, OVERLAP):
        search.feed(b"z" * OVERLAP, at=at, last=False, ended=False, limit=9)
    assert len(search._buffer) < 4 * OVERLAP
