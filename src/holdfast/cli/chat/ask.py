"""The slash commands that ask the gateway: blocks to be shown, or another session to go to.

They run in a thread beside the conversation, so they only read what they are given.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.cli.chapters import NOTE_SECONDS, RUNNING, outlook, running_cells
from holdfast.cli.chat import attach, cards, look, tasks
from holdfast.cli.chat.attach import Opening
from holdfast.cli.chat.blocks import Block, Remark
from holdfast.cli.chat.keep import Cursors
from holdfast.cli.chat.outbox import Place, begin
from holdfast.cli.chat.slash import Slash
from holdfast.cli.chat.view import View
from holdfast.cli.errors import CONFLICT, NOT_FOUND, Refused
from holdfast.cli.gateway import Gateway, Json
from holdfast.cli.hints import program
from holdfast.cli.start import ensure

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


def ask(gateway: Gateway, cursors: Cursors, place: Place, view: View, slash: Slash) -> Done:
    """Do what was asked for here."""
    argument = slash.argument
    match slash.name:
        case "sessions":
            return look.sessions(gateway, place.session)
        case "inbox":
            return look.inbox(gateway, place.session)
        case "profile" if not argument:
            return look.profiles(gateway, view.profile)
        case "model" if not argument:
            return look.models(gateway)
        case "stop":
            return tasks.going_on(gateway, place.session)
        case "stale":
            return tasks.stale(gateway)
        case "tasks":
            return tasks.about_tasks(gateway, argument)
        case "board":
            return cards.picture(gateway, argument)
        case "card":
            return cards.about_card(gateway, place, view, argument)
        case "background":
            return tasks.start(gateway, place, view, argument)
        case "detach":
            return Detached(_detach(gateway, place.session))
        case "start":
            address = ensure(gateway)
            return [Remark(f"a gateway runs at {address.url} (pid {address.pid})")]
        case "resume":
            return attach.attach(gateway, argument.lower(), cursors)
        case "new":
            return _new(gateway, place, view, slash)
        case "profile" if not place.session:
            return attach.new(gateway, view.cwd, argument)
        case name if name in NEEDS_WORDS and not place.session:
            return [Remark("Nothing was said here yet.")]
        case "reset":
            return _reset(gateway, place.session, view, slash)
        case "fork":
            return _fork(gateway, cursors, place.session, argument)
        case _:
            return _ask_here(gateway, place, slash)


def _ask_here(gateway: Gateway, place: Place, slash: Slash) -> list[Block]:
    """What is about this very session; it begins now if it has not begun."""
    argument = slash.argument
    with place.lock:
        if not place.session:
            begin(gateway, place)
    target = f"/v1/sessions/{place.session}"
    match slash.name:
        case "why":
            return look.why(gateway, place.session)
        case "context":
            return look.context(gateway, place.session)
        case "export":
            return look.export(gateway, place.session, argument)
        case "rename":
            gateway.command("PATCH", target, {"title": argument})
        case "undo":
            gateway.command("POST", f"{target}/undo", {})
        case "undo-reset":
            gateway.command("POST", f"{target}/reset/undo", {})
        case "compact":
            gateway.command("POST", f"{target}/compact", {"instructions": argument})
        case "model":
            gateway.command("POST", f"{target}/agent", {"model": "" if argument == "default" else argument})
        case "profile":
            gateway.command("POST", f"{target}/agent", {"profile": argument})
        case _:
            raise AssertionError(slash.name)
    return []


def _new(gateway: Gateway, place: Place, view: View, slash: Slash) -> Done:
    """Leave this session for a new one. What runs for it goes on unless somebody wants it stopped."""
    running = _running(gateway, place.session) if slash.running != "keep" else []
    if running and not slash.running:
        return _choose(running, slash, "k keep: it goes on in the old session · s stop · c cancel")
    stopped = tasks.stop_commands(gateway, running)
    opening = attach.new(gateway, view.cwd, view.profile or place.profile)
    opening.blocks += [(0, block) for block in stopped]
    return opening


def _reset(gateway: Gateway, session: str, view: View, slash: Slash) -> Done:
    """A new chapter. Nobody is asked about what runs when it would be refused anyway."""
    if view.turn is not None or view.queue:
        return [Remark("It is at work, and a reset cuts nothing: /stop first, or wait.", "warning")]
    running = [] if slash.running else outlook(gateway, session)["running"]
    if running:
        return _choose(running, slash, "k keep: handed over to the new chapter · s stop · c cancel")
    body: Json = {"note": slash.argument == "note"} | ({"running": slash.running} if slash.running else {})
    gateway.command("POST", f"/v1/sessions/{session}/reset", body, seconds=NOTE_SECONDS)
    return []


def _running(gateway: Gateway, session: str) -> list[Json]:
    """Nothing runs for a session that was deleted, or that has not begun."""
    try:
        found: list[Json] = outlook(gateway, session)["running"] if session else []
    except Refused as error:
        if error.code != NOT_FOUND:
            raise
        return []
    return found


def _choose(running: list[Json], slash: Slash, hint: str) -> Choose:
    agents = "; agents go on either way" if any(one["kind"] == "agent" for one in running) else ""
    return Choose([look.listing(RUNNING, running_cells(running), f"still running: {hint}{agents}")], slash)


def _fork(gateway: Gateway, cursors: Cursors, session: str, version: str) -> Done:
    if version and not (version.isascii() and version.isdecimal()):
        return [Remark(f"{version!r} is not a version; `{program()} sessions log` shows them.", "warning")]
    body = {"version": int(version)} if version else {}
    fork = gateway.command("POST", f"/v1/sessions/{session}/fork", body)["session"]
    return attach.attach(gateway, fork, cursors)


def _detach(gateway: Gateway, session: str) -> str:
    """The task that the turn is from now on, or was before; without a turn there is none, and no harm."""
    try:
        return str(gateway.command("POST", f"/v1/sessions/{session}/detach", {})["task"])
    except Refused as error:
        if error.code != CONFLICT:
            raise
    found = gateway.get("/v1/tasks", kind="agent", state="running", session=session)["tasks"]
    return next((str(task["id"]) for task in found if task["worker"] == session), "")
