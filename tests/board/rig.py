"""A board without HTTP: real store, cards, dispatcher and tools. Workers are the demo agent, or driven by the test."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import msgspec

from holdfast.clock import Clock
from holdfast.domain.card import Card
from holdfast.domain.commands import CardCommand, CreateCard, CreateSession, SessionCommand
from holdfast.domain.events import AnyEvent, Record, card_stream, session_stream
from holdfast.domain.events.actor import Actor
from holdfast.domain.events.card import RunStarted
from holdfast.domain.events.parts import Call, Usage
from holdfast.domain.events.problem import Problem, ProblemCode
from holdfast.domain.events.session import (
    InputsJoined,
    ModelRequested,
    ModelResponded,
    Outcome,
    ToolCallFinished,
    ToolCallStarted,
    TurnStarted,
)
from holdfast.domain.next_step import Finish, Partial, closing_events
from holdfast.domain.session import Session
from holdfast.profiles import Profiles
from holdfast.runtime.tools.tool import ToolOutput
from holdfast.sessions import Caller
from holdfast.store.contract import Append, Appended, CommandKey, Lease, Store, Write
from holdfast.timings import USUAL, Timings
from tests.actors import person
from tests.rig import GatewayRig

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}
ANN = person("ann")


class BoardRig(GatewayRig):
    """One life of a gateway on a home. Made on a running loop; without `start` everything is done by hand."""

    def __init__(
        self,
        home: Path,
        *,
        store: Store | None = None,
        clock: Clock | None = None,
        config: str = "",
        timings: Timings = USUAL,
    ) -> None:
        home.mkdir(mode=0o700, exist_ok=True)
        if config:
            (home / "config.toml").write_text(config)
        super().__init__(home, Profiles(home / "config.toml"), store=store, clock=clock, timings=timings)
        self._ids = itertools.count(1)

    async def start(self) -> BoardRig:
        await self.tasks.start()
        await self.runner.start()
        await self.dispatcher.start()
        return self

    # --- people ---------------------------------------------------------------------------------

    def caller(self, id: str | None = None, by: Actor = ANN) -> Caller:
        return Caller(CommandKey(id or f"command-{next(self._ids)}-{id_of(self)}", "digest"), by)

    async def create(self, card: str, body: str = "", *, id: str | None = None, **more: object) -> str:
        wanted = {"title": f"card {card}", "body": body, "profile": "demo"} | more
        command = msgspec.convert(wanted, CreateCard)
        await self.cards.create(command, card=card, caller=self.caller(id))
        return card

    async def tell(self, card: str, command: CardCommand, *, id: str | None = None, by: str = "ann") -> Appended:
        return await self.cards.execute(card, command, self.caller(id, person(by)))

    async def new_session(self, session: str, cwd: Path | None = None) -> str:
        await self.sessions.create(
            CreateSession(), session=session, profile="demo", cwd=str(cwd or self.home), caller=self.caller()
        )
        return session

    async def say(self, session: str, command: SessionCommand) -> Appended:
        return await self.sessions.execute(session, command, self.caller())

    # --- looking --------------------------------------------------------------------------------

    async def look(self) -> None:
        await self.dispatcher.run_once()
        await self.dispatcher.clean_workspaces()

    async def card(self, card: str) -> Card:
        return await self.cards.get(card)

    async def records(self, card: str) -> list[Record]:
        return await self.store.load(card_stream(card), after=0)

    async def events(self, card: str) -> list[AnyEvent]:
        return [record.event for record in await self.records(card)]

    async def until(self, card: str, enough: Callable[[Card], bool]) -> Card:
        """Wait until the card is so."""
        return await self.until_stream(card_stream(card), lambda: self.cards.get(card), enough)

    async def rest(self, session: str) -> Session:
        """Wait until nobody works in a session."""
        return await self.until_session(session, lambda state: state.activity == "idle")

    async def worker(self, card: str) -> ManualWorker:
        """Play the worker of the open run."""
        run = (await self.cards.get(card)).run
        assert run is not None
        return await ManualWorker(self, run.started).take()


def id_of(rig: BoardRig) -> str:
    return f"{id(rig):x}"


class ManualWorker:
    """A worker that a test drives by hand: it writes what a worker writes, under its lease, step by step."""

    def __init__(self, rig: BoardRig, run: RunStarted) -> None:
        self.rig = rig
        self.run = run
        self.session = run.session
        self._lease: Lease | None = None
        self.called: Call | None = None
        """Its last tool call."""

    async def take(self) -> ManualWorker:
        self._lease = await self.rig.store.claim(session_stream(self.session), holder="hand")
        return self

    async def state(self) -> Session:
        return await self.rig.sessions.get(self.session)

    async def write(self, *events: AnyEvent) -> None:
        append = Append((Write(session_stream(self.session), events),), self.rig.clock.now(), lease=self._lease)
        await self.rig.store.append(append)

    async def begin(self) -> str:
        """Start a turn with what is queued; what it was told."""
        state = await self.state()
        first = state.queue[0].event
        await self.write(TurnStarted(turn=state.turns + 1, inputs=[first.input], profile=state.profile))
        return first.text

    async def join(self) -> list[str]:
        """Hear what people said meanwhile."""
        state = await self.state()
        heard = [queued.event for queued in state.queue if queued.event.mode == "steer"]
        if heard:
            await self.write(InputsJoined(turn=state.turns, inputs=[event.input for event in heard]))
        return [event.text for event in heard]

    async def wants(self, tool: str, **arguments: object) -> Call:
        """The model asks for a tool, and the intent is written."""
        state = await self.state()
        assert state.turn is not None
        turn, step = state.turn.number, state.turn.step + 1
        call = Call(call=f"{turn}.{step}.0", tool=tool, arguments=msgspec.json.encode(arguments).decode())
        answered = ModelResponded(
            turn=turn,
            step=step,
            text="",
            thinking="",
            calls=[call],
            finish_reason="tool_calls",
            usage=Usage(),
            duration_ms=1,
        )
        asked = ModelRequested(turn=turn, step=step, attempt=1, model="hand", context_version=state.version)
        await self.write(asked, answered, ToolCallStarted(turn=turn, call=call.call, tool=tool, effect="keyed"))
        self.called = call
        return call

    async def carry_out(self, call: Call) -> ToolOutput:
        """The tool itself; nothing of it is written to the session yet."""
        state = await self.state()
        agent = await self.rig.agents.of(state)
        return await (await agent.tools())[call.tool].call(agent.tool_context(state, call.call), call.arguments)

    async def calls(self, tool: str, **arguments: object) -> ToolOutput:
        """All of it."""
        call = await self.wants(tool, **arguments)
        result = await self.carry_out(call)
        state = await self.state()
        await self.write(
            ToolCallFinished(
                turn=state.turns,
                call=call.call,
                tool=tool,
                outcome=result.outcome,
                output=result.output,
                duration_ms=1,
            )
        )
        return result

    async def end(self, outcome: Outcome = "done", code: ProblemCode | None = None) -> None:
        """The turn is over."""
        state = await self.state()
        problem = Problem(code=code, message=f"It was {code}.") if code else None
        finish = Finish(state.turns, outcome, problem.message if problem else "no more to do", problem)
        await self.write(*closing_events(state, finish, Partial(), now=self.rig.clock.now()))
