"""The slash commands about the board: the same picture, tables and words as on the command line."""

from __future__ import annotations

from holdfast.cli.chat.blocks import Block, ListingBlock, NoticeBlock
from holdfast.cli.chat.card_words import Asked, Unclear, card
from holdfast.cli.chat.connection import SessionRef, begin
from holdfast.cli.chat.look import LISTED
from holdfast.cli.chat.view import View
from holdfast.cli.hints import program
from holdfast.cli.render.board import fetch_board, render_board
from holdfast.cli.render.cards import (
    cards_table,
    fetch_cards,
    render_card,
    render_context,
    runs_table,
    without_commands,
)
from holdfast.cli.render.why import why_lines
from holdfast.cli.screen import dim, terminal_width, wrap
from holdfast.client.client import Client
from holdfast.client.lenient import convert
from holdfast.schemas.cards import CardAccepted, CardPage

TITLE = 80


def picture(client: Client, name: str) -> list[Block]:
    """The columns."""
    lines = render_board(fetch_board(client, name or None), terminal_width())
    return [ListingBlock([*lines, dim("/card show ID · comment ID TEXT · unblock ID TEXT")])]


def about_card(client: Client, ref: SessionRef, view: View, words: str) -> list[Block]:
    """One of the verbs of /card."""
    asked = card(words)
    assert not isinstance(asked, Unclear)
    match asked.verb:
        case "list":
            return _list(client)
        case "add":
            return _add(client, ref, view, asked.text)
        case "show" | "why" | "runs" | "context":
            return [ListingBlock(_look(client, asked))]
        case _:
            return [NoticeBlock(_now(client, _give(client, asked)), "plain")]


def _give(client: Client, asked: Asked) -> CardAccepted:
    """One of the verbs that change a card."""
    match asked.verb:
        case "comment":
            return client.cards.comment(asked.card, asked.text)
        case "block":
            return client.cards.block(asked.card, asked.text)
        case "unblock":
            return client.cards.unblock(asked.card, asked.text or None)
        case "retry":
            return client.cards.retry(asked.card, asked.text or None)
        case "stop":
            return client.cards.stop(asked.card, reason=asked.text or None)
        case "complete":
            return client.cards.complete(asked.card, summary=asked.text)
        case "archive":
            return client.cards.archive(asked.card)
        case verb:
            raise AssertionError(verb)


def _list(client: Client) -> list[Block]:
    found = convert(fetch_cards(client), CardPage)
    if not found.cards:
        return [NoticeBlock("No card yet. /card add TEXT writes one; an agent works on it beside this session.")]
    hint = "/card show ID · why ID · comment ID TEXT · unblock ID TEXT"
    more = f"; {len(found.cards) - LISTED} more: {program()} card list" if len(found.cards) > LISTED else ""
    lines = cards_table(CardPage(found.cards[:LISTED], None, found.why)).split("\n")
    return [ListingBlock([*lines, dim(hint + more)])]


def _look(client: Client, asked: Asked) -> list[str]:
    found = client.cards.get(asked.card)
    match asked.verb:
        case "why":
            return why_lines(client.why(card=found.card.id).sentences)
        case "context":
            return wrap(render_context(client.cards.context(found.card.id)), terminal_width())
        case "runs":
            return runs_table(found).split("\n")
        case _:
            return render_card(found).split("\n")


def _add(client: Client, ref: SessionRef, view: View, text: str) -> list[Block]:
    """The first line is the title, all of it what is to be done. This session, which begins now if it has not begun,
    is told of its blocks and its end.
    """
    with ref.lock:
        if not ref.session:
            begin(client, ref)
    title = " ".join(text.split("\n", 1)[0].split())
    title = title if len(title) <= TITLE else title[: TITLE - 1] + "…"
    accepted = client.cards.create(title, body=text, session=ref.session, profile=view.profile or None)
    return [NoticeBlock(f"{_now(client, accepted)}; this session is told of its blocks and its end", "plain")]


def _now(client: Client, accepted: CardAccepted) -> str:
    """How it stands after that."""
    found = client.cards.get(accepted.card)
    status, why = found.card.status, without_commands(found.why)
    kept = f"; its workspace was kept (nothing goes that would be lost): {accepted.kept}" if accepted.kept else ""
    known = why if status in ("todo", "ready") and why else f"It is {status}"
    return f"card {accepted.card}: {known}{kept}"
