"""The slash commands that ask the gateway: blocks to be shown, or another session to go to.

They run in a thread beside the conversation, so they only read what they are given.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.cli.chat import attach, cards, look, tasks
from holdfast.cli.chat.attach import AttachedSession
from holdfast.cli.chat.blocks import Block, NoticeBlock
from holdfast.cli.chat.connection import SessionRef, begin
from holdfast.cli.chat.local_state import ReadCursors
from holdfast.cli.chat.passthrough import ThisSession, run_command
from holdfast.cli.chat.slash import Slash
from holdfast.cli.chat.view import View
from holdfast.cli.hints import program
from holdfast.cli.render.sessions import running_tasks_table
from holdfast.client.client import Client
from holdfast.client.errors import ApiError
from holdfast.client.http import Json
from holdfast.client.launch import ensure
from holdfast.client.sessions import NOTE_SECONDS
from holdfast.schemas.chapters import RunningTaskView

NEEDS_WORDS = ("why", "context", "export", "undo", "fork", "reset", "undo-reset", "compact")


@dataclass(frozen=True, slots=True)
class Detached:
    """The turn is a task now; `task` is its id, empty when there is no turn any more."""

    task: str


@dataclass(frozen=True, slots=True)
class RunningChoice:
    """Something runs: it is shown, and the command comes again with what becomes of it."""

    blocks: list[Block]
    slash: Slash


Outcome = list[Block] | AttachedSession | Detached | RunningChoice


def ask(client: Client, cursors: ReadCursors, ref: SessionRef, view: View, slash: Slash) -> Outcome:
    """Do what was asked for here."""
    argument = slash.argument
    match slash.name:
        case "sessions":
            return look.sessions(client, ref.session)
        case "inbox":
            return look.inbox(client, ref.session)
        case "profile" | "model" if not argument:
            return _run(client, ref, view, Slash(f"{slash.name}s"))
        case "profiles" | "models" | "devices":
            return _run(client, ref, view, slash)
        case "stop":
            return tasks.going_on(client, ref.session)
        case "stale":
            return tasks.stale(client)
        case "tasks":
            return tasks.about_tasks(client, argument)
        case "board":
            return cards.picture(client, argument)
        case "card":
            return cards.about_card(client, ref, view, argument)
        case "background":
            return tasks.start(client, ref, view, argument)
        case "detach":
            return Detached(_detach(client, ref.session))
        case "start":
            address = ensure(client).address
            return [NoticeBlock(f"a gateway runs at {address.url} (pid {address.pid})")]
        case "resume":
            return attach.attach(client, argument.lower(), cursors)
        case "new":
            return _new(client, ref, view, slash)
        case "profile" if not ref.session:
            return attach.new_session(client, view.cwd, argument)
        case name if name in NEEDS_WORDS and not ref.session:
            return [NoticeBlock("Nothing was said here yet.")]
        case "reset":
            return _reset(client, ref.session, view, slash)
        case "fork":
            return _fork(client, cursors, ref.session, argument)
        case _:
            return _ask_here(client, ref, slash)


def _run(client: Client, ref: SessionRef, view: View, slash: Slash) -> list[Block]:
    """A command of the command line."""
    here = ThisSession(ref.session, view.profile)
    return run_command(str(client.home.path), f"{slash.name} {slash.argument}", here=here)


def _ask_here(client: Client, ref: SessionRef, slash: Slash) -> list[Block]:
    """What is about this very session; it begins now if it has not begun."""
    argument = slash.argument
    with ref.lock:
        if not ref.session:
            begin(client, ref)
    target = f"/v1/sessions/{ref.session}"
    match slash.name:
        case "why":
            return look.why(client, ref.session)
        case "context":
            return look.context(client, ref.session)
        case "export":
            return look.export(client, ref.session, argument)
        case "rename":
            client.command("PATCH", target, {"title": argument})
        case "undo":
            client.command("POST", f"{target}/undo", {})
        case "undo-reset":
            client.command("POST", f"{target}/reset/undo", {})
        case "compact":
            client.command("POST", f"{target}/compact", {"instructions": argument})
        case "model":
            client.command("POST", f"{target}/agent", {"model": "" if argument == "default" else argument})
        case "profile":
            client.command("POST", f"{target}/agent", {"profile": argument})
        case _:
            raise AssertionError(slash.name)
    return []


def _new(client: Client, ref: SessionRef, view: View, slash: Slash) -> Outcome:
    """Leave this session for a new one. What runs for it goes on unless somebody wants it stopped."""
    running = _running(client, ref.session) if slash.running != "keep" else []
    if running and not slash.running:
        return _choose(running, slash, "k keep: it goes on in the old session · s stop · c cancel")
    stopped = tasks.stop_commands(client, running)
    attached = attach.new_session(client, view.cwd, view.profile or ref.profile)
    attached.blocks += [(0, block) for block in stopped]
    return attached


def _reset(client: Client, session: str, view: View, slash: Slash) -> Outcome:
    """A new chapter. Nobody is asked about what runs when it would be refused anyway."""
    if view.turn is not None or view.queue:
        return [NoticeBlock("It is at work, and a reset cuts nothing: /stop first, or wait.", "warning")]
    running = [] if slash.running else client.sessions.reset_status(session).running
    if running:
        return _choose(running, slash, "k keep: handed over to the new chapter · s stop · c cancel")
    body: Json = {"note": slash.argument == "note"} | ({"running": slash.running} if slash.running else {})
    client.command("POST", f"/v1/sessions/{session}/reset", body, seconds=NOTE_SECONDS)
    return []


def _running(client: Client, session: str) -> list[RunningTaskView]:
    """Nothing runs for a session that was deleted, or that has not begun."""
    try:
        found = client.sessions.reset_status(session).running if session else []
    except ApiError as error:
        if not error.is_not_found:
            raise
        return []
    return found


def _choose(running: list[RunningTaskView], slash: Slash, hint: str) -> RunningChoice:
    agents = "; agents go on either way" if any(task.kind == "agent" for task in running) else ""
    return RunningChoice([tasks.listing(running_tasks_table(running), f"still running: {hint}{agents}")], slash)


def _fork(client: Client, cursors: ReadCursors, session: str, version: str) -> Outcome:
    if version and not (version.isascii() and version.isdecimal()):
        return [NoticeBlock(f"{version!r} is not a version; `{program()} sessions log` shows them.", "warning")]
    fork = client.sessions.fork(session, version=int(version) if version else None)
    return attach.attach(client, fork.session, cursors)


def _detach(client: Client, session: str) -> str:
    """The task that the turn is from now on, or was before; without a turn there is none, and no harm."""
    try:
        return client.tasks.detach(session).task
    except ApiError as error:
        if error.status != 409:
            raise
    found = client.tasks.list(kind="agent", state="running", session=session).tasks
    return next((task.id for task in found if task.worker == session), "")
