"""Saying something and waiting for the answer: what `run` and `send` have in common."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, assert_never

from holdfast.cli.context import Cli
from holdfast.cli.errors import FAILED, INTERRUPTED, CliError
from holdfast.cli.hints import program
from holdfast.cli.render.inbox import is_cut, shown_lines
from holdfast.cli.screen import clean, clock
from holdfast.client.events import RecordReceived, TextDelta, follow_records
from holdfast.client.http import Json, new_id
from holdfast.client.reconnect import UNREACHABLE, Disconnected, Reconnect, Reconnected

if TYPE_CHECKING:  # only who waits for an answer pays for the events
    from holdfast.cli.render.answer import AnswerPrinter, AnswerWatch
    from holdfast.domain.transcript_items import WaitItem

SAY_SECONDS = 30.0
BEFORE = 2
"""So many records before the accepted version the message itself is among those that are read."""


def say(cli: Cli, target: str, body: Json, *, id: str | None = None, shown_by: str = "holdfast sessions") -> Json:
    """Send a message, starting a gateway when none runs. A retry carries the same id, so it is stored once."""
    id = id or new_id()
    reconnect = Reconnect(patience=SAY_SECONDS)
    try:
        while True:
            cli.start_gateway()
            try:
                return cli.client.command("POST", target, body, id=id)
            except UNREACHABLE as error:
                reconnect.failed()
                reconnect.wait(error)
    except KeyboardInterrupt:
        raise CliError(
            "Interrupted before the gateway answered: whether it was stored is not known.",
            hint=f"`{shown_by}` shows it if it was.",
            code=130,
        ) from None


def tell_accepted(cli: Cli, accepted: Json) -> None:
    """The message is stored; say where to look."""
    session = accepted["session"]
    if cli.json:
        cli.print_json({key: accepted[key] for key in ("session", "input", "version", "seq")})
        return
    print(session)
    card = card_of(accepted)
    if card:
        print(f"a comment on card {card}: its worker hears it at its next step", file=sys.stderr)
    print(f"the answer: {program()} sessions log {session} --follow", file=sys.stderr)


def card_of(accepted: Json) -> str:
    """The card on which a message became a comment; empty when it is a message."""
    stream = str(accepted["stream"])
    return stream.removeprefix("card/") if stream.startswith("card/") else ""


def tell_task(cli: Cli, accepted: Json) -> None:
    """The agent task is stored; its session has the same id. Say where to look."""
    session = str(accepted["session"])
    if cli.json:
        first = _first_message(cli, session)
        kept = {"session": session, "task": accepted["task"], "seq": accepted["seq"]}
        cli.print_json(kept | {"input": first["event"]["input"], "version": first["version"]})
        return
    print(session)
    print(f"the answer: {program()} sessions log {session} --follow", file=sys.stderr)
    print(f"its end:    {program()} tasks wait {session}", file=sys.stderr)


def _first_message(cli: Cli, session: str) -> Json:
    """The record of what it was told, where a follower begins."""
    records: list[Json] = cli.client.get(f"/v1/sessions/{session}/events", limit=10)["events"]
    return next(record for record in records if record["event"]["kind"] == "InputReceived")


def tell_answer(cli: Cli, accepted: Json, *, patience: float) -> int:
    """Follow the session until the turn of this message is over, and print its answer. The exit code."""
    from holdfast.cli.render.answer import AnswerPrinter, AnswerWatch

    session = str(accepted["session"])
    watch = AnswerWatch(str(accepted["input"]))
    live = AnswerPrinter(cli) if sys.stdout.isatty() and not cli.json else None
    try:
        after = 0 if card_of(accepted) else max(0, int(accepted["version"]) - BEFORE)
        _follow(cli, session, after, watch, live, patience)
    except KeyboardInterrupt:
        print(f"\ndetached; the work goes on: {program()} sessions log {session} --follow", file=sys.stderr)
        if not cli.json:
            return 0
        watch.reason = "detached by Ctrl-C; the work goes on"
        cli.print_json(_as_json(session, watch))
        return INTERRUPTED
    if cli.json:
        cli.print_json(_as_json(session, watch))
    elif live is None and watch.text:
        print(watch.text)
    if watch.outcome != "done":
        raise _not_done(session, watch)
    return 0


def _as_json(session: str, watch: AnswerWatch) -> Json:
    return {
        "session": session,
        "turn": watch.turn,
        "outcome": watch.outcome,
        "reason": watch.reason,
        "text": watch.text,
        "version": watch.version,
        "profile": watch.profile,
        "model": watch.model,
    }


def _follow(
    cli: Cli, session: str, after: int, watch: AnswerWatch, live: AnswerPrinter | None, patience: float
) -> None:
    from holdfast.cli.render.answer import opened_wait

    for seen in follow_records(cli.client, session, after=after, patience=patience):
        match seen:
            case RecordReceived():
                known = watch.model
                changes = watch.apply(seen.record)
                if watch.model != known:
                    _remark(live, who_answers(watch.profile, watch.model))
                for change in changes:
                    if live is not None:
                        live.show(change)
                    if (wait := opened_wait(change)) is not None:  # in a pipe too
                        _remark(live, _waits(session, wait))
                if watch.outcome is not None:
                    return
            case TextDelta() if live is not None:
                for change in watch.apply_delta(seen):
                    live.show(change)
            case TextDelta():
                pass
            case Disconnected() | Reconnected():
                _remark(live, str(seen))


def who_answers(profile: str, model: str) -> str:
    """The agent and the model that a person talks to."""
    of = f" (profile {profile})" if profile else ""
    return f"the demo agent answers{of}: a script, no AI" if model == "demo" else f"{model} answers{of}"


def _waits(session: str, item: WaitItem) -> str:
    """Why the turn waits, and what somebody can do about it."""
    answer = f"{program()} answer {item.wait}"
    match item.purpose:
        case "retry":
            return f"the turn tries again by itself at {clock(item.until or item.at)}: {item.reason}"
        case "question":
            choices = f" ({', '.join(item.choices)})" if item.choices else ""
            return f"the agent asks: {item.reason}{choices}\nanswer with: {answer} TEXT"
        case "compaction":
            return f"the turn waits for you: {item.reason}\nanswer with: {answer} 'try again' or {answer} digest"
        case "approval":
            lines = "\n".join(shown_lines(item.shown))
            rule = f"\n--session or --always would allow: {item.pattern}" if item.pattern else ""
            more = f"\n{program()} inbox {item.wait} shows all of it" if is_cut(item.shown) else ""
            grants = f"answer with: {answer} --allow, --call, --session, --always or --deny"
            return f"{item.reason}\n{lines}{more}{rule}\n{grants}"
        case "resume":
            return f"the turn waits for you: {item.reason}; to go on: {program()} send {session} TEXT"
        case _ as never:
            assert_never(never)


def _remark(live: AnswerPrinter | None, text: str) -> None:
    if live is not None:
        live.note(text)
    else:
        print(clean(text), file=sys.stderr)


def _not_done(session: str, watch: AnswerWatch) -> CliError:
    if watch.problem is not None:
        hint = watch.problem.hint or f"`holdfast why {session}`"
        return CliError(watch.problem.message, hint=hint, code=FAILED)
    what = "turn" if watch.turn is not None else "message"
    return CliError(
        f"The {what} was {watch.outcome}: {watch.reason}.",
        hint=f"what there is: holdfast sessions log {session}",
        code=FAILED,
    )
