"""Output of commands, clean for a screen: also a megabyte without a single newline, which must not take minutes."""

from __future__ import annotations

import pytest

from holdfast.tasks.plain_text import coloured, plain, whole


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (b"a\r\nb\n", "a\nb\n"),
        (b" 10%\r 50%\r100%\ndone\n", "100%\ndone\n"),
        (b"100%\r\nnext", "100%\nnext"),
        (b"a\r\rb", "b"),
        (b"left\r", "left"),
        (b"\x1b]0;title\x07\x1b[2Jx\x08y\x1b[31mred\x1b[0m", "xyred"),
        ("\u202eevil".encode(), "evil"),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
def test_what_is_shown(written: bytes, shown: str) -> None:
    assert plain(written) == shown


def test_colours_stay_for_a_screen() -> None:
    assert coloured(b"a\x1b[31mred\x1b[0m\x1b]0;t\x07b") == "a\x1b[31mred\x1b[0mb"


@pytest.mark.parametrize(
    ("piece", "shown", "unfinished"),
    [
        (b"x", "x", b""),
        (b"\x1b[", "", b"\x1b["),
        (b"\x1b[1", "1", b"\x1b[1"),
        (b"\x1b]", "", b"\x1b]"),
        (b"\r", "", b""),
        (b"\x9b1", "\ufffd1", b""),
        (b"\xc2\x9b", "", b""),
    ],
)
def test_a_megabyte_of_anything_is_read_in_one_go(piece: bytes, shown: str, unfinished: bytes) -> None:
    count = (1 << 20) // len(piece)
    data = piece * count
    assert plain(data) == coloured(data) == shown * count
    assert whole(data) + unfinished == data


def test_of_a_megabyte_that_was_overwritten_the_last_is_shown() -> None:
    data = b"a\r" * (1 << 19)
    assert plain(data) == coloured(data) == "a"
    assert whole(data) == data


@pytest.mark.parametrize("character", ["a", "é", "—", "\u1000", "\U00010000", "\U0010ffff"])
def test_a_character_that_has_not_come_whole_is_left_for_later(character: str) -> None:
    data = character.encode()
    for there in range(1, len(data)):
        assert whole(b"so far " + data[:there]) == b"so far "
    assert whole(b"so far " + data) == b"so far " + data
    assert whole(data * 2) == data * 2
