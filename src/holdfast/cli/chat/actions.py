"""The slash commands: they return blocks to show, or another session to switch to.

Those that need the gateway (`run_slash`) run in a thread beside the conversation: they only read what they are given.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from holdfast.cli.chat import attach
from holdfast.cli.chat.attach import AttachedSession
from holdfast.cli.chat.blocks import Block, ListingBlock, NoticeBlock
from holdfast.cli.chat.connection import SessionRef, begin
from holdfast.cli.chat.local_state import ReadCursors
from holdfast.cli.chat.paint import argument_lines, tidy
from holdfast.cli.chat.passthrough import ThisSession, run_command
from holdfast.cli.chat.slash import BY_NAME, COMMANDS, Slash
from holdfast.cli.chat.view import View
from holdfast.cli.errors import CliError
from holdfast.cli.hints import error_text, program
from holdfast.cli.render.sessions import running_tasks_table
from holdfast.cli.screen import SHORT_ID, dim, one_line, plural, terminal_width, wrap
from holdfast.client.client import Client
from holdfast.client.errors import ApiError, GatewayNotRunning
from holdfast.client.launch import ensure
from holdfast.domain.command import MODES, SessionMode
from holdfast.domain.errors import HoldfastError
from holdfast.domain.transcript_items import ToolCallView
from holdfast.domain.transcript_text import call_result
from holdfast.schemas.chapters import RunningTaskView

MOST_LINES = 400
KEYS = (
    ("Enter", "send; while the agent works, the message waits in the queue"),
    ("Alt-Enter", "a new line (also Esc, Enter)"),
    ("@", "insert a file of the session's directory; Tab completes"),
    ("Ctrl-C", "stop the turn; if none is running, clear the line"),
    ("Ctrl-D", "leave; the agent continues"),
    ("Ctrl-O  Ctrl-T", "show the last tool call, the last thinking"),
)
NOTHING_SAID = NoticeBlock("This session has no messages yet.")


@dataclass(frozen=True, slots=True)
class Detached:
    """The turn became a task; `task` is its id, or empty if the turn had ended already."""

    task: str


@dataclass(frozen=True, slots=True)
class RunningPrompt:
    """Something is still running: show it, ask whether to keep or stop it, then run the command again."""

    blocks: list[Block]
    slash: Slash


SlashOutcome = list[Block] | AttachedSession | Detached | RunningPrompt


def run_slash(client: Client, cursors: ReadCursors, ref: SessionRef, view: View, slash: Slash) -> SlashOutcome:
    """Carry out a slash command; an error becomes a block."""
    try:
        return _run(client, cursors, ref, view, slash)
    except GatewayNotRunning as error:
        return [NoticeBlock(f"{error.message} /start starts one.", "bad")]
    except HoldfastError as error:
        return [NoticeBlock(error_text(error), "bad")]


def _run(client: Client, cursors: ReadCursors, ref: SessionRef, view: View, slash: Slash) -> SlashOutcome:
    name, argument = slash.name, slash.argument
    match name:
        case "stop":
            return _still_running(client, ref.session)
        case "background":
            return _start_agent(client, ref, view, argument)
        case "detach":
            return Detached(_detach(client, ref.session))
        case "start":
            address = ensure(client).address
            return [NoticeBlock(f"a gateway is running at {address.url} (pid {address.pid})")]
        case "resume":
            return attach.attach(client, argument.lower(), cursors)
        case "new":
            return _new(client, ref, view, slash)
        case "profile" | "model" if not argument:
            return _run_command(client, ref, view, f"{name}s")
        case "profile" if not ref.session:
            return attach.new_session(client, view.cwd, argument)
        case "profile":
            client.sessions.choose_agent(ref.session, profile=argument)
        case "model":
            client.sessions.choose_agent(_begin(client, ref), model="" if argument == "default" else argument)
        case "mode" if not argument:
            mode = view.transcript.mode
            return [NoticeBlock(f"the mode is: {MODES.get(mode, mode)} (/mode profile, ask or read changes it)")]
        case "mode" if argument not in MODES:
            return [NoticeBlock(f"{one_line(argument)!r} is no mode; the modes are: {', '.join(MODES)}", "bad")]
        case "mode":
            client.sessions.choose_mode(_begin(client, ref), cast("SessionMode", argument))
        case "reset" | "fork" | "export" if not ref.session:
            return [NOTHING_SAID]
        case "reset":
            return _reset(client, ref.session, view, slash)
        case "fork":
            return _fork(client, cursors, ref.session, argument)
        case "export":
            return _run_command(client, ref, view, _export_line(ref.session, argument))
        case _:
            return _run_shorthand(client, ref, view, slash)
    return []


def _run_shorthand(client: Client, ref: SessionRef, view: View, slash: Slash) -> list[Block]:
    """Run a command of the command line. Changes of this session are shown by its events, so not here as well."""
    line = BY_NAME[slash.name].runs
    if slash.name == "rename" or (slash.name == "card" and slash.argument.startswith("add")):
        _begin(client, ref)
    if "SESSION" in line and not ref.session:
        return [NOTHING_SAID]
    blocks = _run_command(client, ref, view, f"{line.replace('SESSION', ref.session)} {slash.argument}")
    return [block for block in blocks if not slash.changes or not isinstance(block, ListingBlock)]


def _run_command(client: Client, ref: SessionRef, view: View, line: str) -> list[Block]:
    return run_command(str(client.home.path), line, here=ThisSession(ref.session, view.profile))


def _export_line(session: str, name: str) -> str:
    """Build the command that exports the conversation to a file that does not exist yet."""
    try:
        path = Path(name or f"holdfast-{session[:SHORT_ID]}.md").expanduser()
    except RuntimeError as error:  # `~name` of an unknown user
        raise CliError(f"{name}: {error}") from error
    if path.is_file():
        raise CliError(f"{path} exists already; name another file.")
    form = "jsonl" if path.suffix == ".jsonl" else "markdown"
    return f'sessions export --format {form} --output "{path}" {session}'


def _begin(client: Client, ref: SessionRef) -> str:
    """Return the id of the session, and create it first if it has no message yet."""
    with ref.lock:
        if not ref.session:
            begin(client, ref)
    return ref.session


def _start_agent(client: Client, ref: SessionRef, view: View, prompt: str) -> list[Block]:
    """Start an agent in the background; this session is notified when it ends."""
    session = _begin(client, ref)
    task = client.tasks.start_agent(prompt, session=session, cwd=view.cwd, profile=view.profile or None).task[:SHORT_ID]
    return [NoticeBlock(f"task {task} is running; this session is notified when it ends (/tasks show {task})")]


def _still_running(client: Client, session: str) -> list[Block]:
    """List the background tasks that a stop of the turn does not end; nothing if the gateway cannot be reached."""
    try:
        found = client.tasks.list(state="running", session=session).tasks
    except HoldfastError:
        return []
    return [
        NoticeBlock(f"still running: {task.kind} {task.id[:SHORT_ID]} {one_line(task.title)} (/tasks stop ID)")
        for task in found
        if task.worker != session
    ]


def _stop_commands(client: Client, found: list[RunningTaskView]) -> list[Block]:
    """Stop commands without waiting for the 5 s that they get to end by themselves."""
    commands = [task for task in found if task.kind == "process"]
    for task in commands:
        client.tasks.stop(task.task)
    named = ", ".join(f"{task.task[:SHORT_ID]} {one_line(task.title)}" for task in commands)
    return [NoticeBlock(f"asked to end: {named}")] if named else []


def _new(client: Client, ref: SessionRef, view: View, slash: Slash) -> SlashOutcome:
    """Switch to a new session. Commands of the old one keep running unless the user wants them stopped."""
    running = _running(client, ref.session) if slash.running != "keep" else []
    if running and not slash.running:
        return _choose(running, slash, "k keep: it continues in the old session · s stop · c cancel")
    stopped = _stop_commands(client, running)
    attached = attach.new_session(client, view.cwd, view.profile or ref.profile)
    attached.blocks += [(0, block) for block in stopped]
    return attached


def _reset(client: Client, session: str, view: View, slash: Slash) -> SlashOutcome:
    """Reset the session. First ask about running commands, unless the reset would be refused anyway."""
    if view.turn is not None or view.queue:
        return [NoticeBlock("A turn is running. Wait for its end, or /stop it first.", "warning")]
    running = [] if slash.running else client.sessions.reset_status(session).running
    if running:
        return _choose(running, slash, "k keep: handed over to the new chapter · s stop · c cancel")
    client.sessions.reset(session, running=slash.running, note=slash.argument == "note")
    return []


def _running(client: Client, session: str) -> list[RunningTaskView]:
    """List the running tasks of a session; none if it was deleted or has not begun."""
    try:
        found = client.sessions.reset_status(session).running if session else []
    except ApiError as error:
        if not error.is_not_found:
            raise
        return []
    return found


def _choose(running: list[RunningTaskView], slash: Slash, hint: str) -> RunningPrompt:
    agents = "; agents continue in both cases" if any(task.kind == "agent" for task in running) else ""
    hints = map(dim, wrap(f"still running: {hint}{agents}", terminal_width()))
    return RunningPrompt([ListingBlock([*running_tasks_table(running).split("\n"), *hints])], slash)


def _fork(client: Client, cursors: ReadCursors, session: str, version: str) -> SlashOutcome:
    if version and not (version.isascii() and version.isdecimal()):
        return [NoticeBlock(f"{version!r} is not a version; `{program()} sessions log` shows them.", "warning")]
    fork = client.sessions.fork(session, version=int(version) if version else None)
    return attach.attach(client, fork.session, cursors)


def _detach(client: Client, session: str) -> str:
    """Return the id of the task that the turn became, now or earlier; empty if no turn runs."""
    try:
        return client.tasks.detach(session).task
    except ApiError as error:
        if error.status != 409:
            raise
    found = client.tasks.list(kind="agent", state="running", session=session).tasks
    return next((task.id for task in found if task.worker == session), "")


# --- without the gateway: the help, and unfolded tool calls and thinking ----------------------------


def help_blocks() -> list[Block]:
    """Every slash command and every key."""
    left = [f"/{verb.name} {verb.takes}".rstrip() for verb in COMMANDS] + [key for key, _ in KEYS]
    right = [verb.does for verb in COMMANDS] + [does for _, does in KEYS]
    column = max(map(len, left)) + 2
    room = max(20, terminal_width() - column)
    lines = []
    for name, does in zip(left, right, strict=True):
        first, *more = wrap(does, room)
        lines += [f"{name:{column}}{dim(first)}", *(" " * column + dim(line) for line in more)]
        lines += [""] if name == f"/{COMMANDS[-1].name}" else []
    return [ListingBlock(lines)]


def call_block(view: View, which: str) -> Block:
    """A tool call by its number, by default the last."""
    calls = {str(one.number): one for one in view.calls}
    if not calls:
        return NoticeBlock("There is no tool call to open.")
    found = calls.get(which.strip("[]")) if which else list(calls.values())[-1]
    if found is None:
        return NoticeBlock(f"There is no tool call {one_line(which)}; there is 1 to {len(calls)}.")
    return ListingBlock(
        [f"[{found.number}] {one_line(found.call.tool)} · {_outcome(found.call)}", *_indented(_inside(found.call))]
    )


def thinking_block(view: View, which: str) -> Block:
    """Thinking by its number, by default the last."""
    thoughts = view.answer_stream.thoughts
    if not thoughts:
        return NoticeBlock("The agent has shown no thinking here.")
    if not which:
        number = len(thoughts)
    elif which.isascii() and which.isdecimal() and 1 <= int(which) <= len(thoughts):
        number = int(which)
    else:
        return NoticeBlock(f"There is no thought {one_line(which)}; there is 1 to {len(thoughts)}.")
    return ListingBlock(["✻ thought", *_indented(tidy(thoughts[number - 1]).split("\n"))])


def _outcome(call: ToolCallView) -> str:
    return "not started" if call.state == "pending" else call_result(call)


def _inside(call: ToolCallView) -> list[str]:
    lines = argument_lines(call.arguments, most=MOST_LINES) if call.arguments else []
    if call.output.strip():
        lines += ["→", *tidy(call.output).rstrip("\n").split("\n")]
    return lines


def _indented(lines: list[str]) -> list[str]:
    shown = [part for line in lines for part in wrap(line, terminal_width() - 2)]
    more = len(shown) - MOST_LINES
    cut = [f"… {plural(more, 'more line')}; `{program()} sessions export` has all"] if more > 0 else []
    return [dim(f"  {line}") for line in [*shown[:MOST_LINES], *cut]]
