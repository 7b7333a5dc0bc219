"""The slash commands that ask the gateway: blocks to be shown, or another session to go to.

They run in a thread beside the conversation, so they only read what they are given.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.cli.chapters import RUNNING, outlook, running_cells
from holdfast.cli.chat import attach, cards, look, tasks
from holdfast.cli.chat.attach import Opening
from holdfast.cli.chat.blocks import Block, Remark
from holdfast.cli.chat.keep import Cursors
from holdfast.cli.chat.outbox import Place, begin
from holdfast.cli.chat.passthrough import ThisSession, run_command
from holdfast.cli.chat.slash import Slash
from holdfast.cli.chat.view import View
from holdfast.cli.hints import program
from holdfast.client.client import Client
from holdfast.client.errors import ApiError
from holdfast.client.http import Json
from holdfast.client.launch import ensure
from holdfast.client.sessions import NOTE_SECONDS

NEEDS_WORDS = ("why", "context", "export", "undo", "fork", "reset", "undo-reset", "compact")


@dataclass(frozen=True, slots=True)
class Detached:
    """The turn is a task now; `task` is its id, empty when there is no turn any more."""

    task: str


@dataclass(frozen=True, slots=True)
class Choose:
    """Something runs: it is shown, and the command comes again with what becomes of it."""

    blocks: list[Block]
    slash: Slash


Done = list[Block] | Opening | Detached | Choose


def ask(client: Client, cursors: Cursors, place: Place, view: View, slash: Slash) -> Done:
    """Do what was asked for here."""
    argument = slash.argument
    match slash.name:
        case "sessions":
            return look.sessions(client, place.session)
        case "inbox":
            return look.inbox(client, place.session)
        case "profile" | "model" if not argument:
            return _run(client, place, view, Slash(f"{slash.name}s"))
        case "profiles" | "models" | "devices":
            return _run(client, place, view, slash)
        case "stop":
            return tasks.going_on(client, place.session)
        case "stale":
            return tasks.stale(client)
        case "tasks":
            return tasks.about_tasks(client, argument)
        case "board":
            return cards.picture(client, argument)
        case "card":
            return cards.about_card(client, place, view, argument)
        case "background":
            return tasks.start(client, place, view, argument)
        case "detach":
            return Detached(_detach(client, place.session))
        case "start":
            address = ensure(client).address
            return [Remark(f"a gateway runs at {address.url} (pid {address.pid})")]
        case "resume":
            return attach.attach(client, argument.lower(), cursors)
        case "new":
            return _new(client, place, view, slash)
        case "profile" if not place.session:
            return attach.new(client, view.cwd, argument)
        case name if name in NEEDS_WORDS and not place.session:
            return [Remark("Nothing was said here yet.")]
        case "reset":
            return _reset(client, place.session, view, slash)
        case "fork":
            return _fork(client, cursors, place.session, argument)
        case _:
            return _ask_here(client, place, slash)


def _run(client: Client, place: Place, view: View, slash: Slash) -> list[Block]:
    """A command of the command line."""
    here = ThisSession(place.session, view.profile)
    return run_command(str(client.home.path), f"{slash.name} {slash.argument}", here=here)


def _ask_here(client: Client, place: Place, slash: Slash) -> list[Block]:
    """What is about this very session; it begins now if it has not begun."""
    argument = slash.argument
    with place.lock:
        if not place.session:
            begin(client, place)
    target = f"/v1/sessions/{place.session}"
    match slash.name:
        case "why":
            return look.why(client, place.session)
        case "context":
            return look.context(client, place.session)
        case "export":
            return look.export(client, place.session, argument)
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


def _new(client: Client, place: Place, view: View, slash: Slash) -> Done:
    """Leave this session for a new one. What runs for it goes on unless somebody wants it stopped."""
    running = _running(client, place.session) if slash.running != "keep" else []
    if running and not slash.running:
        return _choose(running, slash, "k keep: it goes on in the old session · s stop · c cancel")
    stopped = tasks.stop_commands(client, running)
    opening = attach.new(client, view.cwd, view.profile or place.profile)
    opening.blocks += [(0, block) for block in stopped]
    return opening


def _reset(client: Client, session: str, view: View, slash: Slash) -> Done:
    """A new chapter. Nobody is asked about what runs when it would be refused anyway."""
    if view.turn is not None or view.queue:
        return [Remark("It is at work, and a reset cuts nothing: /stop first, or wait.", "warning")]
    running = [] if slash.running else outlook(client, session)["running"]
    if running:
        return _choose(running, slash, "k keep: handed over to the new chapter · s stop · c cancel")
    body: Json = {"note": slash.argument == "note"} | ({"running": slash.running} if slash.running else {})
    client.command("POST", f"/v1/sessions/{session}/reset", body, seconds=NOTE_SECONDS)
    return []


def _running(client: Client, session: str) -> list[Json]:
    """Nothing runs for a session that was deleted, or that has not begun."""
    try:
        found: list[Json] = outlook(client, session)["running"] if session else []
    except ApiError as error:
        if not error.is_not_found:
            raise
        return []
    return found


def _choose(running: list[Json], slash: Slash, hint: str) -> Choose:
    agents = "; agents go on either way" if any(one["kind"] == "agent" for one in running) else ""
    return Choose([look.listing(RUNNING, running_cells(running), f"still running: {hint}{agents}")], slash)


def _fork(client: Client, cursors: Cursors, session: str, version: str) -> Done:
    if version and not (version.isascii() and version.isdecimal()):
        return [Remark(f"{version!r} is not a version; `{program()} sessions log` shows them.", "warning")]
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
