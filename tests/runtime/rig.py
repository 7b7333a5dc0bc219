"""A gateway without its doors whose model is scripted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Self

import msgspec

from holdfast.clock import Clock
from holdfast.config import Home
from holdfast.domain.command import InputMode
from holdfast.domain.commands import CreateSession, SendMessage, SessionCommand, StopTurn
from holdfast.domain.events import Record, session_stream
from holdfast.domain.events.problem import Problem
from holdfast.domain.events.session import Effect
from holdfast.domain.history import UserMessage
from holdfast.domain.next_step import TurnLimits
from holdfast.domain.session import Session
from holdfast.models.model import ModelAnswer, ModelDelta, ModelError, ModelRequest, WantedCall
from holdfast.models.registry import ModelRegistry
from holdfast.network_mounts import NetworkMounts
from holdfast.profiles import Profiles
from holdfast.runtime.agents import Agent, Agents
from holdfast.runtime.tools import READ, WRITE
from holdfast.runtime.tools.context import ToolContext
from holdfast.runtime.tools.tool import AnyTool, Tool, ToolOutput
from holdfast.runtime.work_time import HeartbeatFile
from holdfast.secrets import Secrets
from holdfast.sessions import Caller
from holdfast.store.contract import Appended, CommandKey, Store
from holdfast.timings import USUAL, Timings
from tests.actors import person
from tests.rig import GatewayRig

ID = "0123456789abcdef"
STREAM = session_stream(ID)
SECRET = "the-key-of-a-provider"
PROBLEM = Problem(code="demo_failed", message="The script says so.")
RETRY_MS = 30
"""What the scripted provider asks for before it is tried again."""


# --- the model ------------------------------------------------------------------------------------


class ScriptModel:
    """Carries out the user's lines, one answer a line; where it stands follows from the conversation.

    say TEXT · slow WORDS (long enough to be saved) · hold TEXT (until `go` is set) ·
    call TOOL JSON [& TOOL JSON …] · fail · again TEXT (fails once, after half of it) ·
    bug · summary ok|fail|too_long|hang|empty|echo|bug (how the next ones go)
    """

    name = "script"

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.failed_once = False
        self.hangs = asyncio.Event()
        """Somebody waits for a summary that hangs."""

    async def window(self) -> int | None:
        return None

    async def _summary(self, request: ModelRequest) -> ModelAnswer:
        users = [message.text for message in request.about if isinstance(message, UserMessage)]
        lines = [line for text in users for line in text.splitlines() if line.startswith("summary ")]
        match lines[-1].removeprefix("summary ") if lines else "ok":
            case "fail":
                raise ModelError(PROBLEM)
            case "too_long":
                raise ModelError(Problem(code="context_too_long", message="It is too long."))
            case "bug":
                raise RuntimeError("a bug in the model's adapter")
            case "hang":
                self.hangs.set()
                await self.go.wait()
            case "empty":
                return ModelAnswer(" ")
            case _:
                pass
        [told] = [message.text for message in request.messages if isinstance(message, UserMessage)]
        if lines and lines[-1] == "summary echo":
            return ModelAnswer(told)
        return ModelAnswer(f"in short: {len(told)} characters")

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelDelta | ModelAnswer, None]:
        if request.about:
            yield await self._summary(request)
            return
        turn = [message for message in request.messages if message.turn == request.turn]
        lines = [line for message in turn if isinstance(message, UserMessage) for line in message.text.splitlines()]
        answered = request.step - 1
        verb, _, rest = (lines[answered] if answered < len(lines) else "say that is all").partition(" ")
        match verb:
            case "fail":
                yield ModelDelta("before the failure")
                raise ModelError(PROBLEM)
            case "again" if not self.failed_once:
                self.failed_once = True
                yield ModelDelta(rest[: len(rest) // 2])
                raise ModelError(PROBLEM, retry=True, after_ms=RETRY_MS)
            case "bug":
                yield ModelDelta("before the bug")
                raise RuntimeError("a bug in the model's adapter")
            case "call":
                calls = [WantedCall(*call.strip().split(" ", 1)) for call in rest.split("&")]
                yield ModelAnswer("", calls=calls, finish_reason="tool_calls")
                return
            case "slow":
                for number, word in enumerate(rest.split()):
                    yield ModelDelta(word if number == 0 else f" {word}")
                    await asyncio.sleep(0.13)
            case "hold":
                yield ModelDelta(rest)
                await self.go.wait()
            case _:
                yield ModelDelta(rest)
        yield ModelAnswer(rest)


def call(tool: str, **arguments: object) -> str:
    """A tool call as a script writes it."""
    return f"{tool} {json.dumps(arguments)}"


# --- a tool that must not be repeated -------------------------------------------------------------


class PostArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    letter: str


async def _post(context: ToolContext, arguments: PostArguments) -> ToolOutput:
    with (context.cwd / "posted").open("a") as box:
        box.write(arguments.letter + "\n")
    return ToolOutput("posted")


async def _stall(context: ToolContext, arguments: PostArguments) -> ToolOutput:
    await _post(context, arguments)
    await asyncio.Event().wait()
    return ToolOutput("")


async def _break(_: ToolContext, arguments: PostArguments) -> ToolOutput:
    raise RuntimeError(f"a bug in a tool: {arguments.letter}")


Post = Callable[[ToolContext, PostArguments], Coroutine[None, None, ToolOutput]]


def _tool(name: str, description: str, effect: Effect, run: Post) -> AnyTool:
    return Tool(name, description, effect, PostArguments, run, default_policy="ask", file_changes="unknown")


TOOLS: list[AnyTool] = [
    READ,
    WRITE,
    _tool("post", "Post a letter: it cannot be taken back.", "unsafe", _post),
    _tool("stall", "Post a letter and never come back.", "unsafe", _stall),
    _tool("break", "Has a bug.", "pure", _break),
]


class ScriptedAgents(Agents):
    """One agent for every profile."""

    def __init__(self, profiles: Profiles, limits: TurnLimits) -> None:
        super().__init__(profiles, ModelRegistry(profiles), tools=TOOLS)
        self.model = ScriptModel()
        self.limits = limits
        self.summary_seconds = 60.0
        self.tools: list[AnyTool] = TOOLS
        self.mounts = NetworkMounts()

    async def of(self, session: Session) -> Agent:
        return Agent(
            self.model,
            self.limits,
            rules={"*": "allow"},
            own_tools=self.tools,
            mounts=self.mounts,
            secrets=self._profiles.secrets,
            summary_seconds=self.summary_seconds,
        )


# --- the whole ------------------------------------------------------------------------------------


class Rig(GatewayRig):
    """One life of a gateway whose agents all have the scripted model. `start` lets it work."""

    agents: ScriptedAgents

    def __init__(
        self,
        home: Path,
        *,
        store: Store | None = None,
        limits: TurnLimits | None = None,
        clock: Clock | None = None,
        heartbeat: HeartbeatFile | None = None,
        profiles: Profiles | None = None,
        timings: Timings = USUAL,
    ) -> None:
        profiles = profiles or Profiles(Home(home).config)
        profiles.secrets = Secrets({"A_KEY": SECRET})
        agents = ScriptedAgents(profiles, limits or TurnLimits(resume_attempts=100))
        super().__init__(home, profiles, store=store, clock=clock, agents=agents, heartbeat=heartbeat, timings=timings)
        self.agents = agents

    @property
    def model(self) -> ScriptModel:
        return self.agents.model

    async def start(self) -> Self:
        await self.runner.start()
        return self

    # --- a client -------------------------------------------------------------------------------

    async def create(self, text: str | None = None, *, session: str = ID) -> Appended:
        command = CreateSession(text=text)
        caller = Caller(CommandKey(f"create {session}", "d"), person("ann"))
        return await self.sessions.create(command, session=session, profile="script", cwd=str(self.home), caller=caller)

    async def tell(self, command: SessionCommand, id: str, *, session: str = ID) -> Appended:
        return await self.sessions.execute(session, command, Caller(CommandKey(id, "d"), person("ann")))

    async def say(self, text: str, id: str, mode: InputMode = "queue", *, session: str = ID) -> Appended:
        return await self.tell(SendMessage(text=text, mode=mode), id, session=session)

    async def stop_turn(self, id: str = "stop") -> Appended:
        return await self.tell(StopTurn(), id)

    # --- waiting --------------------------------------------------------------------------------

    async def records(self, session: str = ID) -> list[Record]:
        return await self.store.load(session_stream(session), after=0)

    async def until(self, enough: Callable[[Sequence[Record]], bool], *, session: str = ID) -> list[Record]:
        """Wait until the log says so."""
        return await self.until_stream(session_stream(session), lambda: self.records(session), enough)

    async def until_state(self, enough: Callable[[Session], bool], *, session: str = ID) -> Session:
        """Wait until the session is so."""
        return await self.until_session(session, enough)

    async def rest(self, *, session: str = ID) -> list[Record]:
        """Wait until there is nothing left to do."""
        await self.until_state(lambda state: state.exists and state.activity == "idle", session=session)
        return await self.records(session)


def seen(kind: type, count: int = 1) -> Callable[[Sequence[Record]], bool]:
    """A condition for `until`: so many events of this kind are in the log."""
    return lambda records: sum(isinstance(record.event, kind) for record in records) >= count


def kinds(records: Sequence[Record]) -> list[str]:
    return [type(record.event).__name__ for record in records]


def only(records: Sequence[Record], kind: type) -> list[object]:
    return [record.event for record in records if isinstance(record.event, kind)]
