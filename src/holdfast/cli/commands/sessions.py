"""`holdfast sessions`: read conversations, change what the model sees."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli.commands.still_running import ask_running_policy, running_option
from holdfast.cli.context import Cli
from holdfast.cli.errors import NOT_FOUND, CliError
from holdfast.cli.groups import NounGroup, TextCommand
from holdfast.cli.hints import program
from holdfast.cli.render import sessions as render
from holdfast.cli.screen import SHORT_ID, clean, escaped_json, one_line, plural, shorten
from holdfast.cli.values import SESSION, TEXT, Number, before_option, limit_option, patience_option
from holdfast.client.client import Client
from holdfast.client.events import RecordItem, follow_records, stored_records
from holdfast.client.http import quote
from holdfast.client.sessions import WhatRuns
from holdfast.domain.command import MODES, SessionMode
from holdfast.schemas.sessions import Accepted, SearchPage, SessionDetail, SessionPage

if TYPE_CHECKING:
    from holdfast.domain.events.chapter import ChapterOpened

OUTPUTS = "the outputs of the commands that it waited for"
"""They are stored in the results of its calls, and nowhere else."""
session_argument = click.argument("session", type=SESSION)
yes_option = click.option(
    "--yes", is_flag=True, help="Do not ask for confirmation. If commands are running, add --running."
)


@click.group(cls=NounGroup, default="list")
def sessions() -> None:
    """List, read, search, reset, rename, archive, delete and export sessions. Without a verb: list."""


# --- look -----------------------------------------------------------------------------------------


@sessions.verb("Show", "list")
@click.option("--archived", is_flag=True, help="List archived sessions instead.")
@click.option(
    "--kind",
    type=click.Choice(["mine", "worker", "background"]),
    help="Only yours, those of workers on the board, or those of agents in the background.",
)
@limit_option
@before_option
def list_sessions(cli: Cli, archived: bool, kind: str | None, limit: int, before: str | None) -> None:
    """List the sessions, newest first."""

    def text(page: SessionPage) -> str:
        if page.sessions:
            return render.sessions_table(page.sessions)
        if before:
            return "No more sessions."
        if kind:
            return "No session of this kind is archived." if archived else "No session is of this kind."
        none = f'No sessions yet. Try: {program()} run --profile demo "say hello"'
        return "No session is archived." if archived else none

    body = cli.client.get("/v1/sessions", archived=archived, kind=kind, limit=limit, before=before)
    if cursor := cli.show(body, SessionPage, text).next:
        chosen = (" --archived" if archived else "") + (f" --kind {kind}" if kind else "")
        cli.hint(f"more: holdfast sessions list{chosen} --before {cursor}")


@sessions.verb("Show")
@session_argument
def show(cli: Cli, session: str) -> None:
    """Show SESSION with its turns and its queue."""
    found = cli.client.get(_path(session))
    cli.show(found, SessionDetail, lambda one: render.session_text(one, cli.client.sessions.reset_status(session)))


@sessions.verb("Show")
@session_argument
@click.option("--follow", "-f", "stay", is_flag=True, help="Keep printing new entries; Ctrl-C stops watching.")
@click.option("--after", type=Number(min=0), default=0, metavar="N", help="Only entries after version N.")
@patience_option
def log(cli: Cli, session: str, stay: bool, after: int, patience: float) -> None:
    """Print the conversation of SESSION. Each entry has its version in the log and its time.

    With --json: the stored records, one per line.
    """
    id = cli.client.sessions.get(session).session.id
    if not stay:
        _print_log(cli, stored_records(cli.client, id, after=after), live=False)
        return
    try:
        _print_log(cli, follow_records(cli.client, id, after=after, patience=patience), live=sys.stdout.isatty())
    except KeyboardInterrupt:
        cli.note("")


def _print_log(cli: Cli, items: Iterator[RecordItem], *, live: bool) -> None:
    from holdfast.cli.render.transcript import LogPrinter

    printer = LogPrinter(cli, live=live)
    for item in items:
        printer.show(item)
    printer.end()


@sessions.verb("Change")
@session_argument
@click.option("--profile", metavar="NAME", help="The profile from now on; see `holdfast profiles`.")
@click.option("--model", metavar="MODEL", help="The model from now on; '' is the one of the profile.")
def agent(cli: Cli, session: str, profile: str | None, model: str | None) -> None:
    """Let SESSION continue with another profile or model; a running turn does so from its next step."""
    if profile is None and model is None:
        raise click.UsageError("Give --profile, --model or both.")
    accepted = cli.client.sessions.choose_agent(session, profile=profile, model=model)
    row = cli.client.sessions.get(accepted.session).session
    with_model = f" and {clean(row.model)}" if row.model else ""
    done = f"continues with profile {clean(row.profile)}{with_model}"
    cli.result(done, session=row.id, profile=row.profile, model=row.model)


@sessions.verb("Change")
@session_argument
@click.argument("mode", type=click.Choice(list(MODES)), required=False)
def mode(cli: Cli, session: str, mode: SessionMode | None) -> None:
    """Show what the agent of SESSION may do, or choose it: profile, ask or read.

    ask: a person is asked before every change and command. read: it changes nothing and runs no command.
    """
    if mode is None:
        cli.show(cli.client.get(_path(session)), SessionDetail, lambda detail: MODES.get(detail.mode, detail.mode))
        return
    accepted = cli.client.sessions.choose_mode(session, mode)
    cli.result(MODES[mode], session=accepted.session, mode=mode)


@sessions.verb("Change")
@session_argument
@click.option("--node", required=True, metavar="NAME", help="The node, or a label of such nodes; '' is any.")
def move(cli: Cli, session: str, node: str) -> None:
    """Let SESSION run on another node. Refused if only one node has its directory or its agent."""
    moved = cli.client.sessions.choose_node(session, node)
    cli.result(f"runs on {clean(node) or 'any node'}", session=moved.session, node=node)


@sessions.verb("Show", cls=TextCommand)
@click.argument("text", type=TEXT)
@limit_option
def search(cli: Cli, text: str, limit: int) -> None:
    """Search all conversations for TEXT, newest first."""
    cli.show(cli.client.get("/v1/search", q=text, limit=limit), SearchPage, render.search_table)


@sessions.verb("Show")
@session_argument
def context(cli: Cli, session: str) -> None:
    """Show what the model sees of SESSION, and its size.

    Also shows how many tokens are left, the chapter, whether a summary replaces older turns, and when the next one
    is written.
    """
    from holdfast.schemas.chapters import ModelContext

    cli.show(cli.client.get(f"{_path(session)}/context"), ModelContext, render.context_text)


@sessions.verb("Show")
@session_argument
@click.option("--mode", type=click.Choice(["none", "idle", "daily", "both"]), help="Which rule resets it; none: never.")
@click.option("--idle-minutes", type=Number(1), metavar="N", help="For idle: after N minutes without user activity.")
@click.option("--at-hour", type=Number(0, 23), metavar="N", help="For daily: at this hour.")
@click.option(
    "--timezone", metavar="TZ", help='Of that hour, such as Europe/Berlin; "" is the time zone of this machine.'
)
@click.option("--max-postpone", metavar="TIME", help="A working command postpones a reset for at most TIME: 90m, 2h.")
@click.option("--process-max-age", metavar="TIME", help="Commands older than TIME postpone nothing: 12h, 7d.")
@click.option(
    "--on-live-process",
    type=click.Choice(["hand_over", "stop_idle", "stop"]),
    help="What happens to commands that are still running.",
)
@click.option(
    "--hand-over-note/--no-hand-over-note", default=None, help="The agent first writes a note for the next chapter."
)
@click.option("--notify/--no-notify", default=None, help="Send browser notifications.")
@click.option("--clear", is_flag=True, help="Remove the settings of this session, so that those of its profile apply.")
def policy(cli: Cli, /, session: str, clear: bool, **options: object) -> None:
    """Show or change when SESSION is reset automatically. Also where each setting comes from, and what postpones it.

    Options change the settings of this session only. Settings that you do not name stay as they are.
    """
    from holdfast.schemas.chapters import ResetOutlook

    row = cli.client.sessions.get(session).session
    chosen = {name: value for name, value in options.items() if value is not None}
    if chosen or clear:
        accepted = cli.client.post(Accepted, f"{_path(row.id)}/reset/policy", policy=chosen, merge=not clear)
        if cli.json:
            cli.accepted(accepted, "")
            return
    body = {"session": row.id} | cli.client.get(f"{_path(row.id)}/reset")
    cli.show(body, ResetOutlook, partial(render.policy_text, session=row))


@sessions.verb("Show")
@session_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(["markdown", "jsonl"]),
    default="markdown",
    show_default=True,
    help="markdown: to read; jsonl: every stored record.",
)
@click.option("--output", "-o", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write to FILE.")
def export(cli: Cli, session: str, form: str, output: Path | None) -> None:
    """Print the conversation of SESSION, or write it to a file."""
    id = cli.client.sessions.get(session).session.id
    content = cli.client.text(f"{_path(id)}/export", format=form)
    fields: dict[str, object] = {"session": id, "format": form, "bytes": len(content)}
    text = content.decode("utf-8", "replace")
    if output is not None:
        output.write_bytes(content)
        cli.result(f"{output}: {len(content):,} bytes of {form}", **fields, file=str(output))
    elif cli.json:
        cli.print_json(fields | {"content": text})
    elif sys.stdout.isatty():
        cli.echo(escaped_json(text) if form == "jsonl" else clean(text), nl=False)
    else:
        cli.echo(content, nl=False)


# --- change ---------------------------------------------------------------------------------------


@sessions.verb("Change")
@session_argument
@click.option("--at", "version", type=Number(1), help="Copy only up to this version; by default everything.")
@click.option("--title", type=TEXT, help="Title of the new session.")
def fork(cli: Cli, session: str, version: int | None, title: str | None) -> None:
    """Start a new session with a copy of SESSION. Later messages in one do not affect the other."""
    new = cli.client.sessions.fork(session, version=version, title=title)
    cli.result(new.session, session=new.session, version=new.version, seq=new.seq)
    cli.hint(f"open it: holdfast chat {new.session}")


@sessions.verb("Change")
@session_argument
def undo(cli: Cli, session: str) -> None:
    """Hide the last turn of SESSION from the model.

    It stays in the log. Changes that it made, for example to files, are not reverted.
    """
    done = "the last turn is hidden from the model; it stays in the log"
    cli.accepted(cli.client.sessions.undo(session), done)


@sessions.verb("Change", cls=TextCommand)
@session_argument
@click.argument("text", type=TEXT, required=False)
@click.option("--turn", type=Number(1), metavar="N", help="Turn N and all later ones; by default the last.")
def repeat(cli: Cli, session: str, text: str | None, turn: int | None) -> None:
    """Undo the last turn of SESSION and send its message again, or TEXT instead.

    The turn stays in the log, and what it did to files is not taken back.
    """
    accepted = cli.client.sessions.repeat(session, text, turn=turn)
    cli.accepted(accepted, "sent again; the model does not see what it answered before")
    cli.hint(f"the answer: holdfast sessions log {accepted.session} --follow")


@sessions.verb("Change")
@session_argument
@click.argument("number", type=Number(1), required=False)
def withdraw(cli: Cli, session: str, number: int | None) -> None:
    """Take back a queued message of SESSION: the last one, or message NUMBER.

    `holdfast sessions show SESSION` lists them with their numbers. A message that a turn has taken stays.
    """
    queue = cli.client.sessions.get(session).queue
    if not queue:
        raise CliError("No message waits in the queue of this session.", code=NOT_FOUND)
    message = next((one for one in reversed(queue) if number in (None, one.version)), None)
    if message is None:
        waiting = ", ".join(str(one.version) for one in queue)
        raise CliError(f"Message {number} is not in the queue of this session. Waiting: {waiting}.", code=NOT_FOUND)
    accepted = cli.client.sessions.withdraw(session, message.input)
    cli.accepted(accepted, f"withdrew the message: {shorten(one_line(message.text), 60)}", input=message.input)


@sessions.verb("Change")
@session_argument
@running_option
@click.option("--note", is_flag=True, help="The agent first writes a hand-over note for the next chapter.")
@yes_option
def reset(cli: Cli, session: str, running: WhatRuns | None, note: bool, yes: bool) -> None:
    """Start a new chapter of SESSION, with an empty context.

    ID, link and log stay, and nothing is deleted; `sessions undo-reset` reverts it. If background commands of
    the session are running, it lists them and asks: keep, stop or cancel.
    """
    row = cli.client.sessions.get(session).session
    running = ask_running_policy(cli, row, running, ask=not yes)
    accepted = cli.client.sessions.reset(row.id, running=running, note=note)
    opened = chapter_opened(cli.client, row.id, accepted.version)
    done = "\n".join([f"chapter {opened.chapter} begins", *render.survivor_lines(opened)])
    kept, stopped = [task.task for task in opened.kept], [task.task for task in opened.stopped]
    cli.accepted(accepted, done, chapter=opened.chapter, kept=kept, stopped=stopped)
    cli.hint(f"undo: holdfast sessions undo-reset {row.id[:SHORT_ID]}")


@sessions.verb("Change")
@session_argument
def undo_reset(cli: Cli, session: str) -> None:
    """Undo the last reset of SESSION. Commands that the reset stopped stay stopped.

    The model sees the previous chapter again, and all messages since.
    """
    done = "the model sees the previous chapter again, and all messages since"
    cli.accepted(cli.client.sessions.undo_reset(session), done)


@sessions.verb("Change", cls=TextCommand)
@session_argument
@click.argument("instructions", type=TEXT, required=False)
def compact(cli: Cli, session: str, instructions: str | None) -> None:
    """Summarise the older turns of SESSION for the model. The turns stay in the log and in the search.

    INSTRUCTIONS say what the summary must keep.
    """
    accepted = cli.client.sessions.compact(session, instructions=instructions or "")
    cli.accepted(accepted, "summary requested")
    cli.hint(f"progress: holdfast why {accepted.session}")
    cli.hint(f"what the model sees: holdfast sessions context {accepted.session}")


@sessions.verb("Change", cls=TextCommand)
@session_argument
@click.argument("title", type=TEXT)
def rename(cli: Cli, session: str, title: str) -> None:
    """Change the title of SESSION to TITLE."""
    cli.accepted(cli.client.sessions.rename(session, title), f"renamed to “{title}”")


@sessions.verb("Change")
@session_argument
@running_option
def archive(cli: Cli, session: str, running: WhatRuns | None) -> None:
    """Hide SESSION from the list; nothing is deleted. A message restores it.

    If background commands of the session are running, it lists them and asks: keep, stop or cancel.
    """
    row = cli.client.sessions.get(session).session
    accepted = cli.client.sessions.archive(row.id, running=ask_running_policy(cli, row, running))
    cli.accepted(accepted, f"archived; undo: {program()} sessions restore {row.id[:SHORT_ID]}")


@sessions.verb("Change")
@session_argument
def restore(cli: Cli, session: str) -> None:
    """Show an archived SESSION in the list again."""
    cli.accepted(cli.client.sessions.restore(session), "restored to the list")


@sessions.verb("Change")
@session_argument
@running_option
@yes_option
def delete(cli: Cli, session: str, running: WhatRuns | None, yes: bool) -> None:
    """Delete SESSION with all its events, for good. Refused while a turn is running.

    The outputs of commands that its turns waited for are deleted too; those of background commands stay with
    their tasks. If background commands are running, it lists them and asks: keep, stop or cancel.
    """
    row = cli.client.sessions.get(session).session
    running = ask_running_policy(cli, row, running, ask=not yes)
    title = one_line(row.title)
    question = f"Delete {row.id} “{title}” with {plural(row.version, 'event')} and {OUTPUTS}, for good?"
    cli.confirm(question, yes=yes, declined="Nothing was deleted.")
    cli.accepted(cli.client.sessions.delete(row.id, running=running), f"deleted “{title}”")


def chapter_opened(client: Client, session: str, version: int) -> ChapterOpened:
    """The event of a reset, by its version."""
    from holdfast.domain.events.chapter import ChapterOpened

    event = next(client.events(session, after=version - 1, page=1)).event
    assert isinstance(event, ChapterOpened)
    return event


def _path(session: str) -> str:
    return f"/v1/sessions/{quote(session)}"
