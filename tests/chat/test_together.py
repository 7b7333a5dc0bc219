"""Two terminals and a program on one session: the same messages in the same order, each once."""

from __future__ import annotations

import re
from pathlib import Path

from holdfast.cli.chat.local_state import ReadCursors
from tests.chat.listener import Listener
from tests.chat.terminal import ALT_ENTER, CTRL_C, PROMPT, on_terminal
from tests.cli.commandline import CommandLine
from tests.e2e.gateway import GatewayProcess, check_whole, of_kind, until

TIMES = re.compile(r"(less than )?[\d.]+ m?s\b")
SCRIPT = ("say I will read it.", "read README.md", "say And this is", "slow 9000 never said")
CONVERSATION = f"""\
{PROMPT} say Ready.

Ready.

{PROMPT} say I will read it.
  read README.md
  say And this is
  slow 9000 never said

I will read it.

⚙ read path=README.md · done · TIME · [1]

read done: # Read me
And this is

Turn 2 resumed after TIME, attempt 1: the gateway was killed or crashed.

read done: # Read me
And this is

Turn 2 was stopped by cli.

{PROMPT} say typed while it spoke

typed while it spoke

{PROMPT} slow 0.3 typed while away

typed while away

{PROMPT} say from the other one

from the other one"""


def test_all_see_the_same_also_through_a_kill(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    with on_terminal(cli, cwd=cwd, columns=120) as one:
        one.until("· idle")
        one.enter("say Ready.")
        one.until_idle("\n\nReady.")
        (row,) = gateway.get("/v1/sessions")["sessions"]
        read = ReadCursors(gateway.home / "chat")
        until(lambda: read.get(row["id"]) == row["version"], "it is known that all of this was read")
        with on_terminal(cli, cwd=cwd, columns=120) as two, Listener(gateway, row["id"]) as program:
            two.until_idle("\n\nReady.")

            one.enter(ALT_ENTER.join(SCRIPT))
            one.until("read done: # Read me\nAnd this is\n")
            one.enter("say typed while it spoke")
            for chat in (one, two):
                chat.until("read done: # Read me\nAnd this is\n", " say typed while it spoke\n", "· 1 queued")
            until(lambda: program.spoken.endswith("\nAnd this is"), "the program has heard it too")

            gateway.kill9()
            for chat in (one, two):
                chat.until("gateway away, waiting…")
            one.enter("slow 0.3 typed while away")
            one.until("not sent yet slow 0.3 typed while away")
            gateway.start()
            for chat in (one, two):
                chat.until("resumed after", "· 2 queued")
                chat.until("crashed.\n\nread done: # Read me\nAnd this is\n")

            two.type(CTRL_C)
            for chat in (one, two):
                chat.until_idle("\n\ntyped while away")
            two.enter("say from the other one")
            for chat in (one, two):
                shown = chat.until_idle("\n\nfrom the other one")
                said = chat.conversation[chat.conversation.index(PROMPT) :]
                assert TIMES.sub("TIME", said) == CONVERSATION, shown

            stored = gateway.until_rest(row["id"])
            until(lambda: len(program.records) >= len(stored), "the program has heard all")
            assert program.records == stored
            assert (program.wrong, program.connections) == ([], 2)
    check_whole(stored)
    assert len(of_kind(stored, "InputReceived")) == 5
