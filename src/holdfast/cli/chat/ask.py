"""The slash commands that ask the gateway: blocks to be shown, or another session to go to.

They run in a thread beside the conversation, so they only read what they are given.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.cli.chat import attach, look, tasks
from holdfast.cli.chat.attach import Opening
from holdfast.cli.chat.blocks import Block, Remark
from holdfast.cli.chat.keep import Cursors
from holdfast.cli.chat.outbox import Place, begin
from holdfast.cli.chat.slash import Slash
from holdfast.cli.chat.view import View
from holdfast.cli.errors import CONFLICT, Refused
from holdfast.cli.gateway import Gateway
from holdfast.cli.start import ensure

NEEDS_WORDS = ("why", "context", "export", "undo", "fork")


@dataclass(frozen=True, slots=True)
class Detached:
    """The turn is a task now; `task` is its id, empty when there is no turn any more."""

    task: str


Done = list[Block] | Opening | Detached


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
        case "tasks":
            return tasks.about_tasks(gateway, argument)
        case "background":
            return tasks.start(gateway, place, view, argument)
        case "detach":
            return Detached(_detach(gateway, place.session))
        case "start":
            address = ensure(gateway)
            return [Remark(f"a gateway runs at {address.url} (pid {address.pid})")]
        case "resume":
            return attach.attach(gateway, argument, cursors)
        case "new":
            return attach.new(gateway, view.cwd, place.profile)
        case "profile" if not place.session:
            return attach.new(gateway, view.cwd, argument)
        case name if name in NEEDS_WORDS and not place.session:
            return [Remark("Nothing was said here yet.")]
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
        case "model":
            gateway.command("POST", f"{target}/agent", {"model": "" if argument == "default" else argument})
        case "profile":
            gateway.command("POST", f"{target}/agent", {"profile": argument})
        case _:
            raise AssertionError(slash.name)
    return []


def _fork(gateway: Gateway, cursors: Cursors, session: str, version: str) -> Done:
    if version and not (version.isascii() and version.isdecimal()):
        return [Remark(f"{version!r} is not a version; `holdfast sessions log` shows them.", "warning")]
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
