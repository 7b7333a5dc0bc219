"""`holdfast run`, `send`, `chat` and `stop`: say something to an agent, read the answer, end its turn."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

import click

from holdfast.cli.context import Cli, home_option, pass_cli
from holdfast.cli.errors import CONFLICT, FAILED, INTERRUPTED, NOT_FOUND, USAGE, CliError
from holdfast.cli.groups import TextCommand, verb
from holdfast.cli.hints import program
from holdfast.cli.render.inbox import GRANTS, is_cut, numbered, shown_lines
from holdfast.cli.screen import SHORT_ID, clean, clock, one_line, shorten
from holdfast.cli.values import SESSION, TEXT, node_option, patience_option
from holdfast.client.client import Client
from holdfast.client.errors import ApiError
from holdfast.client.events import RecordReceived, TextDelta, follow_records, stored_records
from holdfast.client.http import Json, quote
from holdfast.config import environment
from holdfast.domain.command import MODES
from holdfast.domain.errors import HoldfastError
from holdfast.schemas.sessions import Accepted
from holdfast.schemas.tasks import TaskAccepted, TaskView

if TYPE_CHECKING:  # only commands that wait for an answer import the events
    from holdfast.cli.render.answer import AnswerPrinter
    from holdfast.client.turn import TurnWatch
    from holdfast.domain.transcript_items import WaitItem

TITLE = 40
profile_option = click.option("--profile", metavar="NAME", help="The profile (agent); see `holdfast profiles`.")
mode_option = click.option(
    "--mode",
    type=click.Choice(list(MODES)),
    default="profile",
    show_default=True,
    help="What the agent may do: as its profile says, ask before every change and command, or only read.",
)
cwd_option = click.option(
    "--cwd",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    help="The agent's working directory; by default the current one.",
)


@verb(cls=TextCommand)
@click.argument("prompt", type=TEXT)
@profile_option
@click.option("--model", metavar="NAME", help="The model, as PROVIDER:MODEL; by default that of the profile.")
@cwd_option
@mode_option
@node_option
@click.option("--detach", is_flag=True, help="Run it in the background: print the ID of its session and return.")
@patience_option
def run(cli: Cli, prompt: str, *, model: str | None, detach: bool, patience: float, **options: str | None) -> int:
    """Start a session with PROMPT and print the answer. `-` reads the prompt from standard input.

    Starts a gateway in the background if none is running. Ctrl-C detaches; the agent continues.
    """
    agent: Json = options | {"cwd": options["cwd"] or str(Path.cwd())}
    if detach and model is not None:
        raise CliError("A task has the model of its profile.", hint="Leave --model or --detach out.", code=USAGE)
    if not detach:
        accepted = cli.send_command(Accepted, "/v1/sessions", text=prompt, model=model, **agent)
        return wait_for_answer(cli, accepted, patience=patience)
    task = cli.send_command(TaskAccepted, "/v1/tasks/agents", prompt=prompt, **agent)
    session = task.session  # it has the id of the task
    if cli.json:
        records = stored_records(cli.client, session, after=0, page=10)
        first = next(item for item in records if item.event["kind"] == "InputReceived")
        message = {"input": first.event["input"], "version": first.record["version"]}
        cli.print_json({"session": session, "task": task.task, "seq": task.seq} | message)
    else:
        cli.echo(session)
        cli.note(f"the answer:  {program()} sessions log {session} --follow")
        cli.note(f"wait for it: {program()} tasks wait {session}")
    return 0


@verb(cls=TextCommand)
@click.argument("session", type=SESSION)
@click.argument("text", type=TEXT)
@click.option(
    "--mode",
    type=click.Choice(["queue", "steer", "interrupt"]),
    default="queue",
    show_default=True,
    help="While a turn is running: wait for its end, join it between two steps, or stop it first.",
)
@click.option("--wait", is_flag=True, help="Wait for the answer and print it, like `run`.")
@patience_option
def send(cli: Cli, session: str, text: str, mode: str, wait: bool, patience: float) -> int:
    """Send TEXT to SESSION, or to the agent of a task. `-` reads the text from standard input.

    Starts a gateway in the background if none is running. With --wait, Ctrl-C detaches; the agent continues.
    """
    try:
        accepted = cli.send_command(Accepted, f"/v1/sessions/{quote(session)}/messages", text=text, mode=mode)
    except ApiError as error:
        if not error.is_not_found:
            raise
        worker = session_of_task(cli.client, session, otherwise=error)
        accepted = cli.send_command(Accepted, f"/v1/sessions/{worker}/messages", text=text, mode=mode)
    if accepted.warning:
        cli.note(accepted.warning)
    if wait:
        return wait_for_answer(cli, accepted, patience=patience)
    fields = {"input": accepted.input, "version": accepted.version, "seq": accepted.seq}
    cli.result(accepted.session, session=accepted.session, **fields)
    if not cli.json:
        if card := _card_of(accepted):
            label = cli.client.cards.get(card).card.label
            cli.note(f"sent as a comment on card {label}: its worker gets it at its next step")
        cli.note(f"the answer:  {program()} sessions log {accepted.session} --follow")
    return 0


def session_of_task(client: Client, id: str, *, otherwise: ApiError) -> str:
    """The session that works on a task; `otherwise` is raised where there is no such task either."""
    try:
        task = client.tasks.get(id)
    except ApiError as error:
        raise otherwise if error.is_not_found else error from None
    if not task.worker:
        raise CliError(
            f"Task {task.id} is a command, not an agent, so it takes no messages.",
            hint=f"`holdfast tasks write {task.id} TEXT` types into it, if it was started with --stdin.",
            code=CONFLICT,
        )
    return task.worker


@click.command
@click.argument("session", type=SESSION, required=False)
@click.option("--new", is_flag=True, help="Start a new session.")
@click.option("--profile", metavar="NAME", help="Start a new session with this profile.")
@cwd_option
@home_option
@pass_cli
def chat(cli: Cli, session: str | None, new: bool, profile: str | None, cwd: str | None) -> int:
    """Chat with an agent: in SESSION, else in the last session of this directory, else in a new one.

    Starts a gateway in the background if none is running. Ctrl-C stops the turn. Ctrl-D, or closing the
    terminal, leaves; the agent continues. /help lists the commands of the chat.
    """
    problem = hint = ""
    if session is not None and (new or profile is not None or cwd is not None):
        problem = "--new, --profile and --cwd are for new sessions, and this one exists."
        hint = "Leave out SESSION to start a new one; in the chat, /profile changes the profile of a session."
    elif not (sys.stdin.isatty() and sys.stdout.isatty()):
        problem = "The chat needs a terminal, but its input or output is a file or a pipe."
        hint = '`holdfast run "…"` sends one message and prints the answer; see `holdfast --help`.'
    elif environment("TERM") in (None, "dumb"):
        problem = "The chat needs a terminal with a movable cursor, which TERM says this one does not have."
        hint = 'Use `holdfast run "…"` to start a session, and `holdfast send ID "…" --wait` to continue it.'
    if problem:
        raise CliError(problem, hint=hint, code=USAGE)
    from holdfast.cli.chat.main import run_chat

    return run_chat(cli, session=session, new=new or profile is not None, profile=profile, cwd=cwd or str(Path.cwd()))


# --- the answer -----------------------------------------------------------------------------------


def wait_for_answer(cli: Cli, accepted: Accepted, *, patience: float) -> int:
    """Follow the session until the turn of this message is over, and print its answer. The exit code."""
    from holdfast.cli.render.answer import AnswerPrinter
    from holdfast.client.turn import TurnWatch, read_after

    session = accepted.session
    watch = TurnWatch(accepted.input or "")
    printer = AnswerPrinter(cli) if sys.stdout.isatty() and not cli.json else None
    try:
        _follow(cli, session, watch, printer, after=read_after(accepted), patience=patience)
    except KeyboardInterrupt:
        cli.note(f"\ndetached; the agent continues: {program()} sessions log {session} --follow")
        if not cli.json:
            return 0
        watch.reason = "detached by Ctrl-C; the agent continues"
        cli.print_json(_answer_json(session, watch))
        return INTERRUPTED
    if cli.json:
        cli.print_json(_answer_json(session, watch))
    elif printer is None and watch.text:
        cli.echo(watch.text.encode())  # as it is: in a pipe click takes colours out of a text
    if watch.outcome != "done":
        raise _not_done(session, watch)
    return 0


def _follow(
    cli: Cli, session: str, watch: TurnWatch, printer: AnswerPrinter | None, *, after: int, patience: float
) -> None:
    from holdfast.cli.render.answer import opened_wait

    def note(text: str) -> None:
        if printer is not None:
            printer.note(text)
        else:
            cli.note(clean(text))

    for item in follow_records(cli.client, session, after=after, patience=patience):
        if isinstance(item, RecordReceived):
            known = watch.model
            changes = watch.apply(item.record)
            if watch.model != known:
                note(_who_answers(session, watch.profile, watch.model))
        elif isinstance(item, TextDelta):
            changes = watch.apply_delta(item)
        else:
            note(str(item))
            continue
        for change in changes:
            if printer is not None:
                printer.show(change)
            if (wait := opened_wait(change)) is not None:  # in a pipe too
                note(_wait_text(session, wait))
        if watch.outcome is not None:
            return


def _answer_json(session: str, watch: TurnWatch) -> Json:
    names = ("turn", "outcome", "reason", "text", "version", "profile", "model")
    return {"session": session} | {name: getattr(watch, name) for name in names}


def _card_of(accepted: Accepted) -> str:
    """The card on which a message became a comment; empty when it is a message."""
    return accepted.stream.removeprefix("card/") if accepted.stream.startswith("card/") else ""


def _who_answers(session: str, profile: str, model: str) -> str:
    of = f" (profile {profile})" if profile else ""
    who = f"the demo agent answers{of}: a script, no AI" if model == "demo" else f"{model} answers{of}"
    return f"session {session[:SHORT_ID]} · {who}"


def _wait_text(session: str, item: WaitItem) -> str:
    """Why the turn waits, and what somebody can do about it."""
    answer = f"{program()} answer {item.wait}"
    match item.purpose:
        case "retry":
            return f"the turn tries again automatically at {clock(item.until or item.at)}: {item.reason}"
        case "question":
            choices = f"\n{numbered(item.choices)}" if item.choices else ""
            what = "NUMBER or TEXT" if item.choices else "TEXT"
            return f"the agent asks: {item.reason}{choices}\nanswer with: {answer} {what}"
        case "compaction":
            return f"the turn waits for you: {item.reason}\nanswer with: {answer} 'try again' or {answer} digest"
        case "login" | "quota":
            when = "" if item.until is None else f"\nit continues by itself at {clock(item.until)}"
            choices = " or ".join(f"{answer} '{choice}'" for choice in item.choices)
            return f"the turn waits for you: {item.reason}{when}\nanswer with: {choices}"
        case "approval":
            lines = "\n".join(shown_lines(item.shown))
            rule = f"\n--session or --always would allow: {item.pattern}" if item.pattern else ""
            if item.means:
                return (
                    f"{item.reason}\n{lines}\n{numbered(item.choices)}\nanswer with: {answer} NUMBER, --allow or --deny"
                )
            more = f"\neverything: {program()} inbox {item.wait}" if is_cut(item.shown) else ""
            return f"{item.reason}\n{lines}{more}{rule}\nanswer with: {answer} {GRANTS}"
        case "resume":
            return f"the turn waits for you: {item.reason}; to continue: {program()} send {session} TEXT"
        case _ as never:
            assert_never(never)


def _not_done(session: str, watch: TurnWatch) -> CliError:
    if watch.problem is not None:
        hint = watch.problem.hint or f"See `holdfast why {session}`."
        return CliError(watch.problem.message, hint=hint, code=FAILED)
    what = "turn" if watch.turn is not None else "message"
    return CliError(
        f"The {what} was {watch.outcome}: {watch.reason}.",
        hint=f"See `holdfast sessions log {session}`.",
        code=FAILED,
    )


@verb()
@click.argument("session", type=SESSION)
def stop(cli: Cli, session: str) -> None:
    """Stop the running turn of SESSION, and the command that it waits for. Queued messages and tasks stay."""
    try:
        id = cli.client.sessions.get(session).session.id
    except ApiError as error:
        raise _perhaps_a_task(cli, session, error) from error
    tasks = cli.client.tasks.list(state="running", session=id, foreground=True, limit=500).tasks
    accepted = cli.client.sessions.stop(id)
    ends = [task for task in tasks if task.foreground or task.worker == id]
    goes_on = [task for task in tasks if task not in ends]
    lines = ["the turn is being stopped", *(f"  ends with it:  {_task(task)}" for task in ends)]
    lines += [f"  keeps running: {_task(task)} ({program()} tasks stop {task.id[:SHORT_ID]})" for task in goes_on]
    cli.accepted(accepted, "\n".join(lines), ends=[one.id for one in ends], goes_on=[one.id for one in goes_on])


def _task(task: TaskView) -> str:
    return f"{task.kind} {task.id[:SHORT_ID]} {shorten(one_line(task.title), TITLE)}"


def _perhaps_a_task(cli: Cli, id: str, error: ApiError) -> HoldfastError:
    if not error.is_not_found:
        return error
    try:
        task = cli.client.tasks.get(id)
    except ApiError:
        return error
    return CliError(f"{task.id} is a task.", hint=f"`holdfast tasks stop {task.id}` ends it.", code=NOT_FOUND)
