"""Markdown as the HTML that Telegram shows. What it does not know stays text."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

OPENED = {"strong_open": "<b>", "em_open": "<i>", "s_open": "<s>", "heading_open": "<b>"}
CLOSED = {"strong_close": "</b>", "em_close": "</i>", "s_close": "</s>", "heading_close": "</b>\n\n"}
SCHEMES = ("http://", "https://", "tg://", "mailto:")


def as_html(markdown: str) -> str:
    """Return a text in Markdown as HTML for Telegram, without anything that was HTML before."""
    return "".join(_blocks(_parser().parse(markdown))).strip("\n")


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # only once somebody uses Telegram: it takes a while to import

    return (
        MarkdownIt("commonmark", {"html": False}).enable("strikethrough").disable(["image", "html_block", "reference"])
    )


def _blocks(tokens: list[Token]) -> Iterator[str]:
    lists: list[int] = []
    """For each list that is open: the number of its next item, or 0 if it has no numbers."""
    quoted = 0
    for token in tokens:
        match token.type:
            case "inline":
                yield from _inline(token.children or [])
            case "paragraph_close":
                yield "\n" if token.hidden or lists else "\n\n"
            case "fence" | "code_block":
                language = escape(token.info.strip().split(" ")[0])
                inside = escape(token.content.rstrip("\n"), quote=False)
                code = f'<code class="language-{language}">{inside}</code>' if language else inside
                yield f"<pre>{code}</pre>\n\n"
            case "bullet_list_open" | "ordered_list_open":
                lists.append(int(token.attrGet("start") or 1) if token.type.startswith("ordered") else 0)
            case "bullet_list_close" | "ordered_list_close":
                lists.pop()
                yield "" if lists else "\n"
            case "list_item_open":
                yield "  " * (len(lists) - 1) + (f"{lists[-1]}. " if lists[-1] else "• ")
                lists[-1] += bool(lists[-1])
            case "blockquote_open":  # Telegram has no quote in a quote
                quoted += 1
                yield "<blockquote>" if quoted == 1 else ""
            case "blockquote_close":
                quoted -= 1
                yield "</blockquote>\n" if quoted == 0 else ""
            case "hr":
                yield "———\n\n"
            case kind:
                yield OPENED.get(kind, "") or CLOSED.get(kind, "")


def _inline(tokens: list[Token]) -> Iterator[str]:
    links: list[bool] = []
    for token in tokens:
        match token.type:
            case "code_inline":
                yield f"<code>{escape(token.content, quote=False)}</code>"
            case "softbreak" | "hardbreak":
                yield "\n"
            case "link_open":
                target = str(token.attrGet("href") or "")
                links.append(target.startswith(SCHEMES))
                yield f'<a href="{escape(target)}">' if links[-1] else ""
            case "link_close":
                yield "</a>" if links.pop() else ""
            case kind if kind in OPENED or kind in CLOSED:
                yield OPENED.get(kind, "") or CLOSED.get(kind, "")
            case _:
                yield escape(token.content, quote=False)
