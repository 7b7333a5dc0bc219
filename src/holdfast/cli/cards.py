"""How a card looks on a terminal: as a line of a table, as all that is known of it, and in a few words.

The command line and the chat both show cards with these, so they never disagree.
"""

from __future__ import annotations

import re
import time

from holdfast.cli.hints import program
from holdfast.cli.screen import (
    SHORT_ID,
    Column,
    age,
    ago,
    clean,
    clock,
    duration,
    moment,
    one_line,
    plural,
    table,
    when,
)
from holdfast.client.client import Client
from holdfast.client.http import Json
from holdfast.client.lenient import convert
from holdfast.schemas.cards import CardDetail, CardView, RunView

STATUSES = ("triage", "todo", "scheduled", "ready", "running", "blocked", "review", "done")
"""The columns of a board, from left to right."""
KINDS = ("needs_input", "dependency", "capability", "transient")
RESUME = ("auto", "resume", "fresh")
PAGE = 5_000
WARNING = "⚠"
CARDS = (
    Column("ID"),
    Column("STATUS", states=True),
    Column("BOARD"),
    Column("PROFILE"),
    Column("PRIO", right=True),
    Column("SINCE", right=True),
    Column("TITLE", flexible=True),
    Column("WHY", flexible=True),
)
RUNS = (
    Column("RUN", right=True),
    Column("OUTCOME", states=True),
    Column("FAILURE"),
    Column("SESSION"),
    Column("FROM"),
    Column("TOKENS", right=True),
    Column("COST", right=True),
    Column("TOOK", right=True),
    Column("REASON", flexible=True),
)
_COMMAND = re.compile(r"\s*\(`holdfast [^`]*`\)|\s*`holdfast [^`]*`[^.]*\.")


def find(client: Client, id: str) -> CardDetail:
    """All that is known of one card, by its id or a unique prefix."""
    return client.cards.get(id)


def listed(client: Client, **wanted: object) -> tuple[list[CardView], dict[str, str]]:
    """Every card that fits, most urgent first; and by their ids, why those that could be started are not."""
    rows, whys = listed_rows(client, **wanted)
    return convert(rows, list[CardView]), whys


def listed_rows(client: Client, **wanted: object) -> tuple[list[Json], dict[str, str]]:
    """The same as the gateway sends it."""
    rows: list[Json] = []
    whys: dict[str, str] = {}
    offset: int | None = 0
    while offset is not None:
        page = client.get("/v1/cards", limit=PAGE, offset=offset, why=True, **wanted)
        rows += page["cards"]
        whys |= page["why"]
        offset = page["next"]
    return rows, whys


# --- in a few words -------------------------------------------------------------------------------


def in_short(card: CardView, why: str = "") -> str:
    """Why it stands where it stands; `why` is what the gateway says about its not being started."""
    match card.status:
        case "blocked":
            return f"{card.block_kind.replace('_', ' ')}: {one_line(card.reason)}"
        case "scheduled":
            return f"at {when(card.scheduled_at)}" if card.scheduled_at is not None else ""
        case "ready" if card.retry_at is not None and card.retry_at > now():
            return f"cools down until {clock(card.retry_at)}: {one_line(card.reason)}"
        case "todo" | "ready" if why:
            return without_commands(why).removeprefix("It ")
        case "running":
            return f"run {card.run}"
        case "triage":
            return ""
        case _:
            return one_line(card.reason)


def without_commands(why: str) -> str:
    """A sentence of the gateway without what can be typed about it."""
    return one_line(_COMMAND.sub("", why)).rstrip(".")


def since(card: CardView) -> str:
    """How long it has been there."""
    return age(now() - card.moved_at)


def now() -> int:
    """Milliseconds since 1970."""
    return int(time.time() * 1000)


def marked(card: CardView) -> str:
    """Its title, marked when its worker began anew where it could have been expected to go on."""
    return f"{WARNING} {card.title}" if card.warning else card.title


# --- lines ----------------------------------------------------------------------------------------


def card_cells(cards: list[CardView], whys: dict[str, str]) -> list[list[str]]:
    """For CARDS."""
    return [
        [
            card.id,
            card.status,
            card.board,
            card.profile or "-",
            str(card.priority),
            since(card),
            marked(card),
            in_short(card, whys.get(card.id, "")),
        ]
        for card in cards
    ]


def run_cells(runs: list[RunView]) -> list[list[str]]:
    """For RUNS."""
    return [
        [
            str(run.run),
            run.outcome or "running",
            run.failure.replace("_", " ") or "-",
            run.session[:SHORT_ID],
            f"resumes {run.resumes}" if run.resumes else "fresh",
            f"{run.input_tokens + run.output_tokens:,}",
            "-" if run.cost is None else f"${run.cost:.4f}",
            duration((run.finished_at or now()) - run.started_at),
            _about(run),
        ]
        for run in runs
    ]


def _about(run: RunView) -> str:
    anew = f"{WARNING} began anew: {run.fresh_because}" if run.fresh_because else ""
    cost = "an attempt is used up" if run.counts else ""
    return "; ".join(filter(None, (anew, run.reason or run.note, cost)))


# --- all of it ------------------------------------------------------------------------------------


def all_facts(found: CardDetail) -> list[tuple[str, str]]:
    """Names and values for a person."""
    card = found.card
    rows = [
        ("card", card.id),
        ("title", one_line(card.title)),
        ("board", card.board),
        ("status", _status(card)),
        ("profile", card.profile or f"none: {program()} card assign {card.id} PROFILE"),
        ("workspace", _workspace(found)),
        ("priority", str(card.priority)),
        ("resume", found.resume or "as the profile and [board] say"),
        ("attempts", _attempts(found)),
    ]
    if found.max_runtime_ms is not None:
        rows.append(("max runtime", duration(found.max_runtime_ms)))
    if card.warning:
        rows.append(("warning", f"{WARNING} its worker began anew: {card.warning}"))
    rows.append(("created", f"{moment(card.created_at)} by {card.created_by}"))
    if found.followers:
        rows.append(("told", "session " + ", ".join(found.followers)))
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
    kind = f" ({card.block_kind})" if card.block_kind else ""
    run = f", run {card.run} in session {card.session}" if card.status == "running" else ""
    return f"{card.status}{kind} since {moment(card.moved_at)}{run}"


def workspace_outcome(found: CardDetail, kept: str) -> str:
    """What became of the workspace of an archived card, and why."""
    kind = found.card.workspace
    if kept:
        release = f"`{program()} card release {found.card.id}`"
        return f"its workspace was kept, since this would be lost: {one_line(kept)}. Save it, then {release}"
    if kind.startswith("dir:"):
        return f"its workspace {kind.removeprefix('dir:')} is yours and stays"
    if not found.runs:
        return "it never had a workspace"
    return f"its workspace {found.runs[-1].workspace} was removed: nothing is lost with it"


def _workspace(found: CardDetail) -> str:
    """What it is; where it is, once a run had it; what of it was kept, once the card is archived."""
    where = found.runs[-1].workspace if found.runs else ""
    words = found.card.workspace + (f", {where}" if where else "")
    if found.card.status != "archived":
        return words
    return f"{words}; kept, since this would be lost: {found.kept}" if found.kept else words


def _attempts(found: CardDetail) -> str:
    of = f" of {found.max_attempts}" if found.max_attempts is not None else ""
    return f"{found.attempts}{of} used up, {plural(len(found.runs), 'run')}"


def _named(card: CardView) -> str:
    return f"{card.id} “{one_line(card.title)}” ({card.status})"


def comment_lines(found: CardDetail) -> list[tuple[str, str]]:
    """Who said what when."""
    return [(f"{one_line(one.by)}, {ago(one.at)}", clean(one.text)) for one in found.comments]


def runs_table(found: CardDetail) -> str:
    """Its runs; not called without any."""
    return table(RUNS, run_cells(found.runs))
