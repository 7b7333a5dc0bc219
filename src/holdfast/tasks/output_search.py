"""Finds a text in an output of any size, which is handed over piece by piece.

    bytes as they were written → matches by byte offset

A match ignores case, lies within one line, and may have escape sequences and control characters in its middle, since
nobody sees them. A text inside of an escape sequence is no match. Bytes that are not UTF-8 match nothing.
Not here: reading the file (`queries.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from holdfast.schemas.tasks import OutputMatch
from holdfast.tasks.plain_text import stripped, whole

OVERLAP = 16_384
"""A match is found if it takes at most this many bytes, with the escape sequences in it."""
LOOK_BACK = 8192
"""Bytes before a match that are kept, to see whether it is inside of an escape sequence and where its line begins."""
LONGEST_SEQUENCE = 4096 + 4
_SEQUENCE = (
    rb"(?:\x1b\[|\xc2\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor
    rb"|(?:\x1b[\]PX^_]|\xc2[\x90\x98\x9d-\x9f])[^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\|\xc2\x9c)?"  # titles, links
    rb"|\x1b[ -/]*[0-~]?"
)
_UNSEEN = (
    rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]"
    rb"|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]|\xef\xbb\xbf|\xf3\xa0[\x80\x81][\x80-\xbf]"
)
_BETWEEN = b"(?>" + _SEQUENCE + b"|" + _UNSEEN + b")*+"
_ONE_SEQUENCE = re.compile(_SEQUENCE)
_CONTROLS = bytes([*range(9), 11, 12, *range(14, 32), 127])


class OutputSearch:
    """The search for one text, from an offset on."""

    def __init__(self, text: str, *, offset: int, context: int = 0) -> None:
        """`context` is how many bytes of the line on either side a match has."""
        self.next = offset
        """Matches before this offset have been returned."""
        self.read_from = max(0, offset - LOOK_BACK)
        self._text = text
        self._ascii = text.lower().encode() if text.isascii() else b""
        self._context = context
        self._buffer = b""
        self._base = self.read_from
        self._base_is_line = self.read_from == 0

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        return re.compile(_BETWEEN.join(map(_either_case, self._text)))

    def feed(self, data: bytes, *, at: int, last: bool, ended: bool, limit: int) -> list[OutputMatch]:
        """Return at most `limit` matches in the next bytes. `last` is whether nothing follows them for now.

        If the limit is reached, `next` is the end of the last match, and the search cannot continue.
        """
        found: list[OutputMatch] = []
        if at != self._base + len(self._buffer):  # bytes in between were dropped
            found = self._matches(len(self._buffer), limit=limit)
            if len(found) >= limit:
                return found
            self._buffer, self._base, self._base_is_line = b"", at, True
            self.next = max(self.next, at)
        self._buffer += data
        line = self._buffer.rfind(b"\n") + 1
        settled = max(line, len(self._buffer) - OVERLAP)
        end = settled
        if last:
            end = len(self._buffer if ended else whole(self._buffer))
            settled = end if ended else settled
        found += self._matches(end, limit=limit - len(found))
        if len(found) < limit:
            self.next = max(self.next, self._base + settled)
        self._forget(min(settled, self.next - self._base) - LOOK_BACK)
        return found

    def _forget(self, count: int) -> None:
        if count > 0:
            self._base_is_line = self._buffer[count - 1 : count] == b"\n"
            self._buffer = self._buffer[count:]
            self._base += count

    def _matches(self, end: int, *, limit: int) -> list[OutputMatch]:
        """Return the matches that begin before this place in the buffer."""
        found: list[OutputMatch] = []
        for start, stop in self._spans(max(0, self.next - self._base)):
            if len(found) >= limit or start >= end:
                break
            found.append(self._match(start, stop))
            self.next = self._base + stop
        return found

    def _spans(self, at: int) -> Iterator[tuple[int, int]]:
        """Yield where the text is in the buffer, from a place on."""
        buffer = self._buffer
        if self._ascii and buffer.isascii() and len(buffer.translate(None, _CONTROLS)) == len(buffer):
            folded = buffer.lower()  # most outputs: many times as fast as the pattern
            while (start := folded.find(self._ascii, at)) >= 0:
                at = start + len(self._ascii)
                yield start, at
            return
        while (found := self._pattern.search(buffer, at)) is not None:
            start, at = found.span()
            if _in_sequence(buffer, start):
                at = start + 1
            else:
                yield start, at

    def _match(self, start: int, stop: int) -> OutputMatch:
        buffer, base = self._buffer, self._base
        line = buffer.rfind(b"\n", 0, start) + 1
        rest = buffer.find(b"\n", stop)
        before = buffer[max(line, start - self._context) : start]
        after = buffer[stop : min(rest if rest >= 0 else len(buffer), stop + self._context)]
        return OutputMatch(
            offset=base + start,
            end=base + stop,
            line=base + line if line or self._base_is_line else None,
            before=stripped(before),
            text=stripped(buffer[start:stop]),
            after=stripped(after),
        )


def _either_case(character: str) -> bytes:
    """Return a pattern for a character in either case."""
    forms = {form.encode() for form in (character, character.lower(), character.upper(), character.casefold())}
    if all(len(form) == 1 for form in forms):
        return b"[" + b"".join(map(re.escape, sorted(forms))) + b"]"
    return b"(?:" + b"|".join(map(re.escape, sorted(forms))) + b")"


def _in_sequence(buffer: bytes, place: int) -> bool:
    """Return whether a place in the buffer is inside of an escape sequence."""
    since = max(0, place - LONGEST_SEQUENCE)
    starts = [buffer.rfind(introducer, since, place) for introducer in (b"\x1b", b"\xc2")]
    for start in starts:
        found = _ONE_SEQUENCE.match(buffer, start) if start >= 0 else None
        if found is not None and found.end() > place:
            return True
    return False
