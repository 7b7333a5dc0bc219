"""What `why` says: sentences, each with the event that it rests on."""

from __future__ import annotations

from holdfast.cli.hints import with_home
from holdfast.cli.screen import clean, dim, format_datetime, terminal_width, wrap
from holdfast.schemas.gateway import Statement, Why


def why_lines(sentences: list[Statement]) -> list[str]:
    """The sentences, each with the event below it."""
    lines: list[str] = []
    for sentence in sentences:
        first, *more = wrap(clean(with_home(sentence.text)), max(20, terminal_width() - 2))
        where = f"event {sentence.version} of {sentence.stream}" if sentence.version else sentence.stream
        lines += [first, *(f"  {line}" for line in more), dim(f"  {where}, {format_datetime(sentence.at)}")]
    return lines


def render_why(found: Why) -> str:
    """All that `why` found."""
    return "\n".join(why_lines(found.sentences))
