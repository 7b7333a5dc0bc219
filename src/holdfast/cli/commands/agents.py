"""`holdfast agents`: external agents that can work on sessions, such as Claude Code or Codex."""

from __future__ import annotations

import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli.context import Cli
from holdfast.cli.errors import FAILED, NOT_FOUND, CliError
from holdfast.cli.groups import NounGroup
from holdfast.cli.hints import program
from holdfast.cli.screen import Column, ago, clean, details_short, one_line, plural, table, unique_length
from holdfast.cli.values import Number
from holdfast.client.errors import ClientError, GatewayNotRunning
from holdfast.client.http import Json
from holdfast.client.lenient import convert
from holdfast.external_agent_files import SESSIONS
from holdfast.external_agents import CATALOGUE
from holdfast.schemas.agents import AgentList, AgentSessions, KnownAgent

if TYPE_CHECKING:
    from holdfast.domain.events import AnyEvent
    from holdfast.domain.events.session import TurnFinished, WaitOpened

AGENTS = (Column("NAME"), Column("AGENT"), Column("VERSION"), Column("PROFILES"), Column("NEXT", flexible=True))
OWN_SESSIONS = (
    Column(""),
    Column("ID"),
    Column("CHANGED"),
    Column("HOLDFAST"),
    Column("TITLE", flexible=True),
    Column("DIRECTORY", flexible=True),
)
NONE_INSTALLED = """
None of them is installed. Install one with its command above, log in with its own command, then:
  {program} agents add NAME"""
FILE, WORD = "hello.txt", "BLUEBERRY27"
PROMPT = (
    f"This is a short test. Remember the word {WORD}. Write the text hello into the file {{file}} and nothing else: "
    "run no command, and read no other file. Then answer with the one word: done"
)
SECOND_PROMPT = "Which word were you asked to remember? Answer with that word alone, and use no tool."

NOT_ASKED = {True: "no: in this mode it writes without asking", False: "no"}


@click.group(cls=NounGroup, default="list")
def agents() -> None:
    """List the external agents that can work on sessions, add one as a profile, test it, and adopt its sessions.

    Without a verb: list.
    """


@agents.verb("Show", "list")
def list_agents(cli: Cli) -> None:
    """List the agents that Holdfast knows, which are installed here, their versions and profiles."""
    cli.show(_known(cli, versions=True), AgentList, _agents_table)


def _known(cli: Cli, *, versions: bool) -> Json:
    """The agents that the gateway finds, or that one started in this terminal would find."""
    try:
        found: Json = cli.client.get("/v1/agents", versions=versions)
    except GatewayNotRunning:
        import asyncio

        import msgspec

        from holdfast.cli.settings_access import read_settings
        from holdfast.runtime.external.installed import list_agents

        found = msgspec.to_builtins(asyncio.run(list_agents(read_settings(cli.home), versions=versions)))
        cli.note("no gateway is running; this is what a gateway started in this terminal would find")
    return found


def _agents_table(found: AgentList) -> str:
    installed_first = sorted(found.agents, key=lambda agent: not agent.program)
    shown = table(AGENTS, [_cells(agent) for agent in installed_first])
    if any(agent.program for agent in found.agents):
        return shown
    return shown + "\n" + NONE_INSTALLED.format(program=program())


def _cells(agent: KnownAgent) -> list[str]:
    if not agent.program:
        version, then = "not installed", agent.install
    else:
        version = one_line(agent.version) or "installed"
        verb = "test" if agent.profiles else "add"
        then = f"{program()} agents {verb} {agent.name}"
        if verb == "add" and not _speaks_protocol(agent):
            then += " --driver command"
    return [agent.name, agent.title, version, ", ".join(agent.profiles), then]


def _speaks_protocol(agent: KnownAgent) -> bool:
    """Whether the program that was found speaks the protocol; else it can only be run as a command."""
    return Path(agent.program).name == CATALOGUE[agent.name].acp[0]


# --- add ------------------------------------------------------------------------------------------


@agents.verb("Change")
@click.argument("name", type=click.Choice(list(CATALOGUE)), metavar="NAME")
@click.option("--profile", metavar="P", help="The name of the profile; by default that of the agent.")
@click.option(
    "--mode", metavar="M", help="The agent's own mode; by default one in which it asks you, where it has one."
)
@click.option(
    "--driver",
    type=click.Choice(["acp", "command"]),
    help="How it is run: by its protocol (acp), or as a command for each turn, which asks nobody.",
)
def add(cli: Cli, name: str, profile: str | None, mode: str | None, driver: str | None) -> None:
    """Add a profile for the agent NAME to the settings; it can be used at once."""
    chosen = profile or name
    values = {"agent": name} | ({"mode": mode} if mode else {}) | ({"driver": driver} if driver else {})
    where = _write_profile(cli, chosen, values)
    done = f"added {chosen} to {where}\ntry: {program()} agents test {chosen}"
    cli.result(done, profile=chosen, **values)
    agent = CATALOGUE[name]
    program_name = agent.command.program[0] if driver == "command" and agent.command is not None else agent.acp[0]
    if shutil.which(program_name) is None:
        cli.hint(f"{agent.title} was not found in this terminal. Install it: {agent.install}")
    elif agent.login:
        cli.hint(f"If you have not logged in to {agent.title} yet: {agent.login}")


def _write_profile(cli: Cli, name: str, values: dict[str, str]) -> str:
    """Add a profile; return where, for people."""
    from holdfast.cli.settings_access import edit_settings
    from holdfast.edit_settings import add_profile

    return edit_settings(cli, add_profile(name, values))


# --- adopt ----------------------------------------------------------------------------------------


@agents.verb("Change")
@click.argument("name", type=click.Choice(list(SESSIONS)), metavar="NAME")
@click.argument("session", required=False)
@click.option("--profile", metavar="P", help="The profile of the new session; by default that of the agent.")
@click.option("--anyway", is_flag=True, help="Adopt it even if it is open elsewhere or was adopted before.")
@click.option("--limit", type=Number(1, 200), default=20, metavar="N", help="List the last N sessions.")
def adopt(cli: Cli, name: str, session: str | None, profile: str | None, anyway: bool, limit: int) -> None:
    """Continue a SESSION that was begun in the own terminal of the agent NAME.

    SESSION is the agent's ID of it, or its first characters; without it, you choose from a list. The history is
    imported. The next message continues a copy that the agent makes; the original stays as it is.
    """
    cli.start_gateway()
    session = session or _choose_session(cli, name, limit)
    if session is None:
        return
    if profile is None:
        _offer_profile(cli, name)
    accepted = cli.client.adopt(name, session, profile=profile, anyway=anyway)
    detail = cli.client.sessions.get(accepted.session)
    turns = plural(len(detail.turns), "turn")
    done = f"adopted from {name}, {turns}: {detail.session.title}"
    cli.accepted(accepted, done, agent=name, profile=detail.session.profile, turns=len(detail.turns))
    short = accepted.session[:8]
    cli.hint(f'continue: {program()} send {short} "…"   or: {program()} chat {short}')


def _choose_session(cli: Cli, name: str, limit: int) -> str | None:
    """The session that somebody chooses; None if nobody can be asked, or wants none."""
    body: Json = cli.client.get(f"/v1/agents/{name}/sessions", limit=limit)
    if cli.json:
        cli.print_json(body)
        return None
    found = convert(body, AgentSessions)
    if not found.sessions:
        title = CATALOGUE[name].title
        raise CliError(f"{title} has no sessions in {clean(found.directory)}.", code=NOT_FOUND)
    cli.echo(_sessions_table(found))
    if not cli.terminal.can_ask:
        cli.hint(f"adopt one: {program()} agents adopt {name} ID")
        return None
    numbers = {str(number): one.id for number, one in enumerate(found.sessions, 1)}
    answer = cli.terminal.prompt(f"Which one? (1 to {len(numbers)}, or none)").strip()
    if answer not in numbers:
        cli.note("Nothing was adopted.")
    return numbers.get(answer)


def _sessions_table(found: AgentSessions) -> str:
    shown = unique_length([one.id for one in found.sessions])
    rows = [
        [str(number), one.id[:shown], ago(one.changed_at), one.session[:8], one_line(one.title), clean(one.cwd)]
        for number, one in enumerate(found.sessions, 1)
    ]
    return table(OWN_SESSIONS, rows)


def _offer_profile(cli: Cli, name: str) -> None:
    """Add a profile for the agent, if there is none and somebody wants one."""
    agent = next(one for one in convert(_known(cli, versions=False), AgentList).agents if one.name == name)
    if agent.profiles or not agent.program or cli.json or not cli.terminal.can_ask:
        return
    if cli.terminal.ask(f"No profile uses {agent.title}. Add the profile {name} to {cli.home.config}?"):
        driver = {} if _speaks_protocol(agent) else {"driver": "command"}
        _write_profile(cli, name, {"agent": name} | driver)


# --- test -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class AgentTest:
    """What was seen of an agent."""

    agent: str = ""
    version: str = ""
    asked: list[str] = field(default_factory=list)
    """What it asked for, with the answer that it got."""
    attached: list[tuple[str, str]] = field(default_factory=list)
    """How each of its processes got its session, and whether it knew the conversation."""
    text: str = ""
    """What it said last."""
    tools: dict[str, str] = field(default_factory=dict)
    """The tools that it called, by call."""
    task: str = ""


@agents.verb("Show", "test")
@click.argument("name")
def test_agent(cli: Cli, name: str) -> int:
    """Let the agent of the profile NAME work in a new directory, and print what it can do.

    It writes one file. Then its process is ended, and the next one must remember the conversation. It may write only
    this file; all other requests are denied. The test makes a few requests to its model.
    """
    cli.start_gateway()
    profile = _profile_to_test(cli, name)
    directory = Path(tempfile.mkdtemp(prefix="holdfast-agents-test-"))
    begun = time.monotonic()
    session, seen = "", AgentTest()
    try:
        accepted = cli.client.sessions.create(
            PROMPT.format(file=directory / FILE), profile=profile, cwd=str(directory), title=f"Test of {profile}"
        )
        session = accepted.session
        cli.note(f"{profile} works in session {session}; its answer may take a minute. Ctrl-C ends the test.")
        first = _one_turn(cli, session, directory / FILE, seen, after=0)
        seconds = time.monotonic() - begun
        written = (directory / FILE).is_file()
        remembers = _after_its_end(cli, session, directory / FILE, seen) if first.outcome == "done" else None
    finally:
        if session:
            _tidy_up(cli, session, seen)
        shutil.rmtree(directory, ignore_errors=True)
    return _report(cli, profile, seen, first, written=written, remembers=remembers, seconds=seconds)


def _profile_to_test(cli: Cli, name: str) -> str:
    """The profile of this name, or the one that has the agent of this name; refuse one that cannot work."""
    known = {agent.name: agent for agent in convert(_known(cli, versions=False), AgentList).agents}
    agent = next((one for one in known.values() if name in one.profiles), known.get(name))
    own = [profile.name for profile in cli.client.profiles().profiles if profile.name == name]
    if agent is None:
        if own:
            raise CliError(
                f"The profile {name} has no agent of the catalogue; run it: {program()} run --profile {name}"
            )
        raise CliError(
            f"There is no external agent {clean(name)}.", hint=f"There are: {', '.join(known)}.", code=NOT_FOUND
        )
    if not agent.profiles:
        raise CliError(f"No profile uses {agent.title}.", hint=f"Add one: {program()} agents add {agent.name}")
    return name if name in agent.profiles else agent.profiles[0]


def _one_turn(cli: Cli, session: str, file: Path, seen: AgentTest, *, after: int) -> TurnFinished:
    """Follow a turn to its end, and answer what the agent asks for."""
    from holdfast.client.events import EventReceived
    from holdfast.domain.events.session import TurnFinished, WaitOpened

    try:
        for item in cli.client.follow(session, after=after):
            if not isinstance(item, EventReceived):
                continue
            _note(item.event, seen)
            if isinstance(item.event, WaitOpened):
                _answer(cli, session, item.event, file, seen)
            if isinstance(item.event, TurnFinished):
                return item.event
    except KeyboardInterrupt:
        cli.client.sessions.stop(session)
        raise CliError("The test was ended.", hint=f"Look at it: {program()} sessions log {session}") from None
    raise AssertionError("a stream has no end")


def _note(event: AnyEvent, seen: AgentTest) -> None:
    from holdfast.domain.events.external_agent import AgentAttached
    from holdfast.domain.events.session import ModelResponded

    match event:
        case AgentAttached():
            seen.agent, seen.version, seen.task = event.agent, event.version, event.task
            seen.attached.append((event.how, event.context))
        case ModelResponded():
            seen.text = event.text.strip() or seen.text
            seen.tools |= {call.call: call.tool for call in event.calls}
        case _:
            pass


def _answer(cli: Cli, session: str, wait: WaitOpened, file: Path, seen: AgentTest) -> None:
    """Allow the file of the test and nothing else; a wait that is no approval ends the turn."""
    if wait.purpose != "approval":
        cli.client.sessions.stop(session)
        return
    is_ours = seen.tools.get(wait.call) == "write" and any(one.value == str(file) for one in wait.shown)
    answer = "allow" if is_ours else "deny"
    seen.asked.append(f"{one_line(wait.reason)} {answer}")
    cli.client.answer(wait.wait, answer)


def _after_its_end(cli: Cli, session: str, file: Path, seen: AgentTest) -> bool:
    """End its process, and ask for the word; return whether it knows it."""
    with suppress(ClientError):  # as a command it ends with each turn
        _end_process(cli, seen)
    seen.text = ""
    accepted = cli.client.sessions.send(session, SECOND_PROMPT)
    end = _one_turn(cli, session, file, seen, after=accepted.version - 1)
    return end.outcome == "done" and WORD in seen.text.upper()


def _tidy_up(cli: Cli, session: str, seen: AgentTest) -> None:
    """End its process, and archive the session."""
    if seen.task:
        with suppress(ClientError):  # it has ended
            _end_process(cli, seen)
    with suppress(ClientError):
        cli.client.sessions.archive(session, running="stop")


def _end_process(cli: Cli, seen: AgentTest) -> None:
    cli.client.tasks.stop(seen.task, force=True)
    cli.client.tasks.wait(seen.task)


def _report(
    cli: Cli,
    profile: str,
    seen: AgentTest,
    end: TurnFinished,
    *,
    written: bool,
    remembers: bool | None,
    seconds: float,
) -> int:
    resumed = "new" if remembers is None else "resume"  # as a command, it is said only if something is new
    if len(seen.attached) > 1:
        resumed = seen.attached[-1][0]
    ok = end.outcome == "done" and written and bool(remembers)
    if cli.json:
        problem = "" if end.problem is None else end.problem.code
        result = {
            "ok": ok,
            "profile": profile,
            "agent": seen.agent,
            "version": seen.version,
            "seconds": round(seconds, 1),
        }
        more = {"outcome": end.outcome, "reason": end.reason, "problem": problem, "written": written}
        cli.print_json(result | more | {"asked": seen.asked, "resumed_by": resumed, "remembers": remembers})
        return 0 if ok else FAILED
    if end.outcome != "done":
        hint = end.problem.hint if end.problem is not None else ""
        raise CliError(f"{profile} did not finish its turn: {clean(end.reason)}", hint=clean(hint), code=FAILED)
    memory = "it did not remember the conversation"
    if remembers:
        memory = "yes, by its own session" if resumed != "new" else "no, but it was given a summary of the conversation"
    rows = [
        ("agent", f"{seen.agent} {one_line(seen.version)}".strip()),
        ("wrote its file", "yes" if written else "no"),
        ("asked before", "; ".join(map(clean, seen.asked)) or NOT_ASKED[written]),
        ("resumes", memory),
        ("took", f"{seconds:.1f} s for the first turn, with its start"),
    ]
    cli.echo(details_short(rows))
    return 0 if ok else FAILED
