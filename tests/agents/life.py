"""A gateway with the scripted agent (`scripted_agent.py`) as its external agent, and a client that answers it."""

from __future__ import annotations

import sys
from pathlib import Path

from holdfast.clock import Clock
from holdfast.domain.command import InputMode
from holdfast.domain.commands import AnswerWait, CreateSession, SendMessage
from holdfast.domain.events import AnyEvent, Record, session_stream
from holdfast.domain.events.session import ModelInterrupted, ModelResponded, ToolCallFinished
from holdfast.domain.session import Session
from holdfast.store.contract import Store
from holdfast.timings import ProcessTimings, RuntimeTimings, Timings
from tests.board.rig import BoardRig
from tests.eventually import PATIENCE
from tests.runtime.rig import ID, seen

AGENT = Path(__file__).with_name("scripted_agent.py")
CLI = Path(__file__).with_name("scripted_cli.py")
QUICK = Timings(
    processes=ProcessTimings(follow=0.005),
    runtime=RuntimeTimings(plan=PATIENCE, agent_output=0.005, agent_ready=PATIENCE, agent_stop=PATIENCE),
)


def config(*flags: str, more: str = "") -> str:
    argv = [sys.executable, "-I", "-S", str(AGENT), *flags]
    return f"[profiles.scripted]\nargv = {argv!r}\nenv = []\n{more}\n".replace("'", '"')


def command_config(format: str, *flags: str, more: str = "") -> str:
    """Return the settings of a profile whose agent is `scripted_cli.py`."""
    argv = [sys.executable, "-I", "-S", str(CLI), format, *flags]
    if format != "text":
        return command_profile(f'agent = "{format}"', argv, more=more)
    resume = [*argv, "--resume", "{session}"]
    return command_profile(
        f"unrestricted = true\nresume_argv = {resume!r}", [*argv, "--session", "{session}"], more=more
    )


def command_profile(agent: str, argv: list[str], *, more: str = "") -> str:
    text = f'[profiles.scripted]\ndriver = "command"\n{agent}\nargv = {argv!r}\nenv = ["SCRIPTED_HOME"]\n{more}\n'
    return text.replace("'", '"')


class AgentLife:
    """One life of a gateway."""

    def __init__(
        self,
        directory: Path,
        *flags: str,
        store: Store | None = None,
        more: str = "",
        timings: Timings = QUICK,
        command: str = "",
        settings: str = "",
        clock: Clock | None = None,
    ) -> None:
        """`command` is the format of the scripted command-line agent; by default the agent speaks the
        protocol. `settings` is the whole configuration."""
        self.cwd = directory / "cwd"
        self.cwd.mkdir(parents=True, exist_ok=True)
        home = directory / "home"
        made = command_config(command, *flags, more=more) if command else config(*flags, more=more)
        self.driver = "command" if command else "acp"
        self.rig = BoardRig(home, store=store, config=settings or made, timings=timings, clock=clock)
        self.store = self.rig.store

    async def start(self, *lines: str) -> None:
        """Start the gateway; with lines, a session whose first message they are."""
        await self.rig.start()
        if lines:
            await self.create(*lines)

    async def create(self, *lines: str) -> None:
        await self.rig.sessions.create(
            CreateSession(text="\n".join(lines)),
            session=ID,
            profile="scripted",
            driver=self.driver,
            cwd=str(self.cwd),
            caller=self.rig.caller("create-it"),
        )

    async def say(self, *lines: str, id: str | None = None, mode: InputMode = "queue") -> None:
        await self.rig.sessions.execute(ID, SendMessage(text="\n".join(lines), mode=mode), self.rig.caller(id))

    async def answer(self, answer: str) -> None:
        """Answer what the turn waits for."""
        state = await self.rig.until_session(ID, _waits)
        assert state.turn is not None and state.turn.wait is not None
        command = AnswerWait(wait=state.turn.wait.wait, answer=answer)
        await self.rig.sessions.execute(ID, command, self.rig.caller(f"answer-{state.turn.wait.wait}"))

    async def answer_once(self, answer: str, *, number: int = 1) -> None:
        """Answer what the turn asks with this number, unless somebody did before."""
        state = await self.rig.until_session(
            ID,
            lambda state: (
                (_waits(state) and len(state.answered) == number - 1)
                or len(state.answered) >= number
                or state.turns > 1
            ),
        )
        if len(state.answered) < number and _waits(state):
            await self.answer(answer)

    async def rest(self, turns: int = 1) -> Session:
        """Wait until so many turns have ended."""
        return await self.rig.until_session(
            ID, lambda state: state.activity == "idle" and state.last_turn is not None and state.turns >= turns
        )

    async def until(self, kind: type, count: int = 1) -> list[Record]:
        with self.store.subscribe(session_stream(ID)) as changes:
            while not seen(kind, count)(records := await self.records()):
                await changes.wait()
                changes.drain()
        return records

    async def records(self) -> list[Record]:
        return await self.store.load(session_stream(ID), after=0)

    async def events(self) -> list[AnyEvent]:
        return [record.event for record in await self.records()]

    async def close(self) -> None:
        await self.rig.close()

    async def end(self) -> None:
        """Close the gateway and end what runs. A turn that still ran would start its agent again."""
        await self.rig.runner.stop()
        await self.end_agents()
        await self.close()

    async def end_agents(self) -> None:
        """End the agents; a turn that is running starts its agent again."""
        for row in await self.store.running_tasks():
            await self.rig.tasks.supervisor.kill(row.id, grace=0)


def said(events: list[AnyEvent]) -> list[str]:
    """What the agent said and did, in order."""
    found: list[str] = []
    for event in events:
        match event:
            case ModelResponded(text=text, calls=calls):
                found += [text.strip()] * bool(text.strip()) + [f"call {call.call}" for call in calls]
            case ModelInterrupted(text=text):
                found.append(f"cut {text.strip()}")
            case ToolCallFinished(call=call, outcome=outcome, output=output):
                found.append(f"{outcome} {call} {output}")
            case _:
                continue
    return found


def _waits(state: Session) -> bool:
    return state.turn is not None and state.turn.wait is not None
