"""Two terminals and a program on one session: the same messages in the same order, each once."""

from __future__ import annotations

import re
from pathlib import Path

from holdfast.cli.chat.keep import Cursors
from tests.chat.listener import Listener
from tests.chat.seat import PROMPT, sit_down
from tests.cli.commandline import CommandLine
from tests.e2e.gateway import GatewayProcess, check_whole, of_kind, until
from tests.provider.loopback import Call, Hang, Loopback, Reply, Text

PROFILE = """
[providers.loop]
base_url = "{url}"
[profiles.together]
model = "loop:loopback"
"""
TIMES = re.compile(r"[\d.]+ m?s\b")
CONVERSATION = f"""\
{PROMPT} hello

Ready.

{PROMPT} read it

I will read it.

⚙ read path=README.md · done · TIME · [1]

It says # Read me.

And this is

resumed after TIME away: the gateway was killed or crashed

It says # Read me.

And this is whole.

{PROMPT} typed while it spoke

The second.

{PROMPT} typed while away

The third.

{PROMPT} from the other one

The fourth."""


def test_all_see_the_same_also_through_a_kill(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    with Loopback() as server:
        with (gateway.home / "config.toml").open("a") as file:
            file.write(PROFILE.format(url=server.openai_url))
        server.script(Reply("Ready."))
        with sit_down(cli, "chat", "--profile", "together", cwd=cwd, columns=120) as one:
            one.until("together/loop:loopback · idle")
            one.enter("hello")
            one.until_idle("\n\nReady.")
            (row,) = gateway.get("/v1/sessions")["sessions"]
            read = Cursors(gateway.home / "chat")
            until(lambda: read.get(row["id"]) == row["version"], "it is known that all of this was read")
            with sit_down(cli, cwd=cwd, columns=120) as two, Listener(gateway, row["id"]) as program:
                two.until_idle("\n\nReady.")

                server.script(
                    Reply(Text(["I will ", "read it."]), Call("read", {"path": "README.md"})),
                    Reply(Text(["It says # Read me.\n\n", "And this ", "is "]), Hang()),
                )
                one.enter("read it")
                one.until("\n\nAnd this is\n")
                one.enter("typed while it spoke")
                for seat in (one, two):
                    seat.until("\n\nAnd this is\n", "queued 1 typed while it spoke", "· 1 queued")
                until(lambda: program.spoken.endswith("And this is "), "the program has heard it too")

                gateway.kill9()
                for seat in (one, two):
                    seat.until("gateway away, waiting…")
                one.enter("typed while away")
                one.until("not sent yet typed while away")
                server.script(
                    Reply(Text(["It says # Read me.\n\n", "And this ", "is ", "whole."])),
                    Reply("The second."),
                    Reply(Text(["The ", "third."])),
                )
                gateway.start()
                for seat in (one, two):
                    seat.until_idle("\n\nThe third.")

                server.script(Reply("The fourth."))
                two.enter("from the other one")
                for seat in (one, two):
                    shown = seat.until_idle("\n\nThe fourth.")
                    assert TIMES.sub("TIME", seat.conversation) == CONVERSATION, shown

                stored = gateway.until_rest(row["id"])
                until(lambda: len(program.records) >= len(stored), "the program has heard all")
                assert program.records == stored
                assert (program.wrong, program.connections) == ([], 2)
    check_whole(stored)
    assert len(of_kind(stored, "InputReceived")) == 5
