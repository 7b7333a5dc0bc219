"""Cards as text: a row of a table, all details, and in a few words why a card is in its column."""

from __future__ import annotations

import re
import time

import click

from holdfast.cli.hints import program
from holdfast.cli.screen import (
    SHORT_ID,
    Column,
    age,
    ago,
    clean,
    clock,
    details,
    dim,
    duration,
    format_datetime,
    format_time,
    one_line,
    plural,
    table,
    terminal_width,
    wrap,
)
from holdfast.client.client import Client
from holdfast.client.http import Json
from holdfast.schemas.cards import CardContext, CardDetail, CardPage, CardView, RunView
from holdfast.schemas.changes import FileChange, FileChanges

STATUSES = ("triage", "todo", "scheduled", "ready", "running", "blocked", "review", "done")
"""The columns of a board, from left to right."""
KINDS = ("needs_input", "dependency", "capability", "transient")
FILE_MARKS = {"added": "A", "changed": "M", "deleted": "D"}
RESUME = ("auto", "resume", "fresh")
PAGE = 5_000
WARNING = "⚠"
CARDS = (
    Column("CARD"),
    Column("STATUS", states=True),
    Column("BOARD", optional=True),
    Column("PROFILE"),
    Column("NODE", optional=True),
    Column("PRIO", right=True, optional=True),
    Column("FOR", right=True),
    Column("TITLE", flexible=True),
    Column("WHY", flexible=True),
)
RUNS = (
    Column("RUN", right=True),
    Column("OUTCOME", states=True),
    Column("SESSION"),
    Column("FROM"),
    Column("TOKENS", right=True),
    Column("COST", right=True, optional=True),
    Column("TOOK", right=True),
    Column("REASON", flexible=True),
)
EXAMPLE = 'card add "Say hello" --body "complete hello" --profile demo'
_COMMAND = re.compile(r"\s*\(`holdfast [^`]*`\)|\s*`holdfast [^`]*`[^.]*\.")


def fetch_cards(client: Client, **filters: object) -> Json:
    """Every card that fits as one page, most urgent first, with why those that wait are not started."""
    found: Json = {"cards": [], "why": {}, "next": 0}
    while found["next"] is not None:
        page = client.get("/v1/cards", limit=PAGE, offset=found["next"], why=True, **filters)
        found["cards"] += page["cards"]
        found["why"] |= page["why"]
        found["next"] = page["next"]
    return found


def card_reason(card: CardView, why: str = "") -> str:
    """Why a card is in its column, in a few words; `why` is the gateway's sentence about why it is not started."""
    match card.status:
        case "blocked":
            return f"{card.block_kind.replace('_', ' ')}: {one_line(card.reason)}"
        case "scheduled":
            return f"at {format_time(card.scheduled_at)}" if card.scheduled_at is not None else ""
        case "ready" if card.retry_at is not None and card.retry_at > now_ms():
            return f"pauses until {clock(card.retry_at)}: {one_line(card.reason)}"
        case "todo" | "ready" if why:
            return without_commands(why).removeprefix("It ")
        case "running":
            return f"run {card.run}"
        case "triage":
            return ""
        case _:
            return one_line(card.reason)


def without_commands(why: str) -> str:
    """A sentence of the gateway without the commands that it names."""
    return one_line(_COMMAND.sub("", why)).rstrip(".")


def card_age(card: CardView) -> str:
    """How long a card has been in its column."""
    return age(now_ms() - card.moved_at)


def now_ms() -> int:
    """Milliseconds since 1970."""
    return int(time.time() * 1000)


# --- tables ---------------------------------------------------------------------------------------


def cards_table(found: CardPage) -> str:
    """Cards, each with why it is in its column. Boards are named where there are several."""
    boards = {card.board for card in found.cards}
    cells = [_card_cells(card, found.why.get(card.id, ""), one_board=len(boards) == 1) for card in found.cards]
    return table(CARDS, cells)


def _card_cells(card: CardView, why: str, *, one_board: bool) -> list[str]:
    return [
        card.label,
        card.status,
        "-" if one_board else card.board,
        card.profile or "-",
        card_node(card) or "-",
        str(card.priority or "-"),
        card_age(card),
        f"{WARNING} {card.title}" if card.warning else card.title,
        card_reason(card, why),
    ]


def card_node(card: CardView) -> str:
    """The node of a card: the one that has it, else the one that it asks for; empty where there is one node."""
    return clean(card.host or card.node)


def runs_table(found: CardDetail) -> str:
    """The runs of a card; without any, why there is none."""
    if not found.runs:
        return f"No run yet. {clean(found.why)}".rstrip()
    return table(RUNS, [_run_cells(run) for run in found.runs])


def _run_cells(run: RunView) -> list[str]:
    return [
        str(run.run),
        run.outcome or "running",
        run.session[:SHORT_ID],
        f"resumes {run.resumes}" if run.resumes else "fresh",
        f"{run.input_tokens + run.output_tokens:,}",
        "-" if run.cost is None else f"${run.cost:.4f}",
        duration((run.finished_at or now_ms()) - run.started_at),
        _run_remarks(run),
    ]


def _run_remarks(run: RunView) -> str:
    fresh = f"{WARNING} new session: {run.fresh_because}" if run.fresh_because else ""
    failure = run.failure.replace("_", " ")
    used = "an attempt is used up" if run.counts else ""
    return "; ".join(filter(None, (failure, run.reason or run.note, fresh, used)))


# --- details --------------------------------------------------------------------------------------


def render_card(found: CardDetail) -> str:
    """All that is known of a card: its details, its body, the comments and the runs."""
    blocks = [details(_card_details(found))]
    if found.body.strip():
        blocks.append(f"{dim('body')}\n{clean(found.body).rstrip()}")
    if found.comments:
        comments = [(f"{one_line(one.by)}, {ago(one.at)}", clean(one.text)) for one in found.comments]
        blocks.append(f"{dim('comments')}\n{details(comments)}")
    if found.runs:
        blocks.append(runs_table(found))
    return "\n\n".join(blocks)


def _nodes(card: CardView) -> str:
    asked = f"asks for {clean(card.node)}" if card.node else "asks for none"
    return f"{clean(card.host)} ({asked})" if card.host else asked


def _card_details(found: CardDetail) -> list[tuple[str, str]]:
    card = found.card
    rows = [
        ("card", f"{card.label} (id {card.id})"),
        ("title", one_line(card.title)),
        ("board", card.board),
        ("status", _status(card)),
        ("profile", card.profile or f"none: {program()} card assign {card.label} PROFILE"),
        ("workspace", _workspace(found)),
        *([("node", _nodes(card))] if card.host or card.node else []),
        ("priority", str(card.priority)),
        ("resume", found.resume or "as set for the profile or [board]"),
        ("attempts", _attempts(found)),
    ]
    if found.max_runtime_ms is not None:
        rows.append(("max runtime", duration(found.max_runtime_ms)))
    if card.warning:
        rows.append(("warning", f"{WARNING} its worker started a new session: {card.warning}"))
    rows.append(("created", f"{format_datetime(card.created_at)} by {card.created_by}"))
    if found.followers:
        rows.append(("notifies", "session " + ", ".join(found.followers)))
    if card.tell != "default":
        rows.append(("notifications", card.tell))
    rows += [("waits for", _named(parent)) for parent in found.parents]
    rows += [("needed by", _named(child)) for child in found.children]
    if card.status == "done" and found.summary:
        rows.append(("summary", clean(found.summary).strip()))
    rows += [(clean(name), clean(value)) for name, value in found.metadata.items()]
    if found.artifacts:
        rows.append(("artifacts", ", ".join(found.artifacts)))
    rows += [("limits", limit) for limit in found.limits]
    if found.why and card.status not in ("running", "done", "archived"):
        rows.append(("why", found.why))
    return rows


def _status(card: CardView) -> str:
    kind = f" ({card.block_kind.replace('_', ' ')})" if card.block_kind else ""
    run = f", run {card.run} in session {card.session}" if card.status == "running" else ""
    return f"{card.status}{kind} since {format_datetime(card.moved_at)}{run}"


def _workspace(found: CardDetail) -> str:
    """What it is; where it is, once a run had it; what of it was kept, once the card is archived."""
    where = found.runs[-1].workspace if found.runs else ""
    words = found.card.workspace + (f", {where}" if where else "")
    if found.card.status != "archived":
        return words
    return f"{words}; kept, because of this: {found.kept}" if found.kept else words


def _attempts(found: CardDetail) -> str:
    of = f" of {found.max_attempts}" if found.max_attempts is not None else ""
    return f"{found.attempts}{of} used up, {plural(len(found.runs), 'run')}"


def _named(card: CardView) -> str:
    return f"{card.label} “{one_line(card.title)}” ({card.status})"


def workspace_outcome(found: CardDetail, kept: str) -> str:
    """What became of the workspace of an archived card, and why."""
    kind = found.card.workspace
    if kept:
        release = f"`{program()} card release {found.card.label}`"
        scratch = kind.partition(":")[0] == "scratch"
        first = "Move or delete the files" if scratch else "Commit, then merge or push"
        return f"its workspace was kept, because of this: {one_line(kept)}. {first}, then run {release}"
    if kind.startswith("dir:"):
        return f"its workspace {kind.removeprefix('dir:')} is your own directory and stays"
    if not found.runs:
        return "it never had a workspace"
    return f"its workspace {found.runs[-1].workspace} was deleted; nothing was lost"


def render_context(found: CardContext) -> str:
    """Which session the next run would use, and the first message of its worker."""
    blocks = [_next_session(found), f"{dim('note from the board')}\n{_wrapped(found.note)}"]
    return "\n\n".join([*blocks, f"{dim('its first message')}\n{_wrapped(found.text)}"])


def render_diff(found: FileChanges) -> str:
    """The changed files, then their lines."""
    heading = dim(f"compared with {found.compared_with}")
    if not found.files:
        return f"No changes; compared with {found.compared_with}." if found.compared_with else "No changes."
    files = [f"{FILE_MARKS.get(file.change, '?')} {one_line(file.path)}{_lines(file)}" for file in found.files]
    left_out = [click.style(found.left_out, fg="yellow")] if found.left_out else []
    return "\n".join([heading, *files, *left_out, "", clean(found.diff).rstrip()]).rstrip()


def _lines(file: FileChange) -> str:
    return "" if file.added is None or file.removed is None else dim(f"  +{file.added} -{file.removed}")


def _wrapped(text: str) -> str:
    return "\n".join(wrap(clean(text), terminal_width()))


def _next_session(found: CardContext) -> str:
    if found.refused:
        return f"It would be blocked: its policy is `resume`, but it cannot resume: {clean(found.refused)}."
    if found.resumes:
        return f"The next run continues session {found.session} of run {found.resumes}."
    because = f": {clean(found.fresh_because)}" if found.fresh_because else ""
    return f"The next run starts a new session{because}."
