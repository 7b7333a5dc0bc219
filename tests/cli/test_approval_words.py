"""An approval in the terminal is in words, without the names of arguments."""

from __future__ import annotations

from holdfast.cli.render.inbox import shown_lines
from holdfast.domain.events.parts import ShownArgument


def test_the_directory_and_the_defaults_of_a_call_are_described() -> None:
    shown = [
        ShownArgument(name="command", value="make"),
        ShownArgument(name="cwd", value="/srv/shop"),
        ShownArgument(name="timeout", value="120", usual=True),
        ShownArgument(name="notify", value="false", usual=True),
        ShownArgument(name="background", value="true", usual=True),
    ]
    defaults = "defaults: waits up to 120 s, no notification when it ends, background"
    assert shown_lines(shown) == ["command: make", "in /srv/shop", defaults]
