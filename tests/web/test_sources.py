"""What can be said of the dashboard without a browser: its sources keep the rules, its first load is small."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.seat import STATIC

WEB = Path(__file__).parents[2] / "web"
FIRST_LOAD = 160 * 1024


def sources() -> Iterator[tuple[str, str]]:
    for path in sorted((WEB / "src").rglob("*.*")):
        yield path.relative_to(WEB).as_posix(), path.read_text("utf-8")


def test_colours_have_names() -> None:
    raw = re.compile(r"#[0-9a-fA-F]{3,8}\b(?![^\n]*\$\{)|\brgba?\(")
    found = [name for name, text in sources() if name.endswith((".css", ".tsx")) and raw.search(text)]
    assert found == ["src/styles/tokens.css"]


def test_nothing_is_untyped_and_nothing_is_html() -> None:
    never = re.compile(r"(?:: |as |<)any\b|@ts-|dangerouslySetInnerHTML|innerHTML|\beval\(")
    assert [name for name, text in sources() if name.endswith((".ts", ".tsx")) and never.search(text)] == []


def test_nothing_is_remote() -> None:
    files = [*WEB.glob("*.html"), *(WEB / "public").iterdir(), *(WEB / "src").rglob("*.*")]
    addresses = [found for path in files for found in re.findall(r"https?://[^\s\"'`$)]+", path.read_text("utf-8"))]
    assert set(addresses) <= {"http://www.w3.org/2000/svg"}


def test_no_inline_script_or_style() -> None:
    page = (WEB / "index.html").read_text("utf-8")
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=", page)


def test_files_are_small() -> None:
    long = [(name, text.count("\n")) for name, text in sources() if text.count("\n") > 600]
    assert [name for name, _ in long if not name.endswith((".gen.ts", ".css"))] == []


def test_the_first_load_is_small() -> None:
    page = STATIC / "index.html"
    if not page.exists():
        pytest.skip("the dashboard is not built: make web")
    text = page.read_text("utf-8")
    files = [STATIC / name for name in re.findall(r"(?:src|href)=\"/([^\"]+\.(?:js|css))\"", text)]
    assert len(files) >= 3
    assert sum(len(gzip.compress(path.read_bytes(), 6)) for path in files) + len(text) < FIRST_LOAD
