"""Whatever else is printed while the chat is on the screen, from any thread, as lines of the conversation.

prompt_toolkit's `patch_stdout` does the same, but it leaves raw mode for each line, and what is typed in that
moment is echoed into the picture.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout


class _Lines(io.TextIOBase):
    """A stream that hands on whole lines."""

    def __init__(self, post: Callable[[str], None]) -> None:
        self._post = post
        self._rest = ""

    def writable(self) -> bool:
        """It is there to be written to."""
        return True

    def write(self, text: str) -> int:
        """Take a piece."""
        *whole, self._rest = (self._rest + text).split("\n")
        for line in whole:
            self._post(line)
        return len(text)


@contextmanager
def caught(post: Callable[[str], None]) -> Iterator[None]:
    """Standard output and standard error, line by line."""
    with redirect_stdout(_Lines(post)), redirect_stderr(_Lines(post)):
        yield
