"""What can be said of the dashboard without a browser: its sources keep the rules, its first load is small."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.user import STATIC

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
    public = [path for path in (WEB / "public").iterdir() if path.suffix != ".png"]
    files = [*WEB.glob("*.html"), *public, *(WEB / "src").rglob("*.*")]
    addresses = [found for path in files for found in re.findall(r"https?://[^\s\"'`$)]+", path.read_text("utf-8"))]
    assert set(addresses) <= {"http://www.w3.org/2000/svg"}


def test_no_inline_script_or_style() -> None:
    page = (WEB / "index.html").read_text("utf-8")
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=", page)


def test_files_are_small() -> None:
    written = [(name, text.splitlines()) for name, text in sources() if not name.endswith((".gen.ts", ".svg"))]
    assert [name for name, lines in written if len(lines) > 400] == []
    assert [f"{name}:{at}" for name, lines in written for at, line in enumerate(lines, 1) if len(line) > 120] == []


def sheets() -> dict[str, str]:
    """The style sheets without their comments."""
    return {name: re.sub(r"/\*.*?\*/", "", text, flags=re.S) for name, text in sources() if name.endswith(".css")}


def classes_in(sheet: str) -> set[str]:
    return {
        name for selector in re.findall(r"[^{};]+(?=\{)", sheet) for name in re.findall(r"\.([a-zA-Z][\w-]*)", selector)
    }


def test_every_class_belongs_to_a_component() -> None:
    """Only tokens, the reset and the order of the layers are global. A class is local to the module that has it."""
    plain = {name: text for name, text in sheets().items() if not name.endswith(".module.css")}
    assert set(plain) == {"src/styles/app.css", "src/styles/reset.css", "src/styles/tokens.css"}
    assert [name for name, text in plain.items() if classes_in(text)] == []
    assert [name for name, text in sheets().items() if ":global" in text] == []
    literal = re.compile(r'className="|className=\{`(?:\$\{[^}]*\}|\s)*[^\s$`]')
    assert [name for name, text in sources() if literal.search(text)] == []


def test_every_class_exists_and_is_used() -> None:
    used: dict[str, set[str]] = {name: set() for name in sheets() if name.endswith(".module.css")}
    by_name: set[str] = set()  # `styles[name]`: which ones is not known here
    for name, text in sources():
        for alias, path in re.findall(r'import (\w+) from "(\.[^"]+\.module\.css)"', text):
            sheet = (WEB / name).parent.joinpath(path).resolve().relative_to(WEB).as_posix()
            used[sheet] |= set(re.findall(rf"(?<![./\w]){alias}\.(\w+)", text))
            if f"{alias}[" in text:
                by_name.add(sheet)
    known = {name: classes_in(text) for name, text in sheets().items()}
    assert {name: found - known[name] for name, found in used.items() if found - known[name]} == {}
    unused = {name: known[name] - found for name, found in used.items() if name not in by_name}
    assert {name: left for name, left in unused.items() if left} == {}


def test_browser_tests_find_nothing_by_a_class() -> None:
    """The names of classes are made by the build. Roles, texts and `data-` attributes are for tests."""
    by_class = re.compile(
        r"""(?:locator|ready=|querySelector(?:All)?|closest)\(?\s*f?(["'])(?:(?!\1).)*?(?<![\w./{\]])\w*\.[a-z]"""
    )
    files = sorted(Path(__file__).parent.glob("*.py"))
    assert [path.name for path in files if by_class.search(path.read_text("utf-8"))] == []


def test_no_style_is_forced() -> None:
    """What is shared is in a layer, so that a component wins over it without `!important`."""
    assert [name for name, text in sheets().items() if "!important" in text] == []
    order = (WEB / "src" / "styles" / "app.css").read_text("utf-8").splitlines()[0]
    assert order == "@layer reset, ui, visibility;"
    layered = [(name, text) for name, text in sheets().items() if "@layer" in text]
    assert [name for name, text in layered if not text.startswith(order)] == []  # whichever is loaded first


def test_tailwind_is_not_used() -> None:
    files = [WEB / "package.json", WEB / "vite.config.ts", *(WEB / "src" / "styles").iterdir()]
    assert [path.name for path in files if "tailwind" in path.read_text("utf-8").lower()] == []


def test_sizes_have_one_set_of_units() -> None:
    """KiB, MiB and GiB, as everywhere else in Holdfast."""
    other = re.compile(r"\b[kKMG]B\b")
    assert [name for name, text in sources() if name.endswith((".ts", ".tsx")) and other.search(text)] == []


def test_the_first_load_is_small() -> None:
    page = STATIC / "index.html"
    if not page.exists():
        pytest.skip("the dashboard is not built: make web")
    text = page.read_text("utf-8")
    files = [STATIC / name for name in re.findall(r"(?:src|href)=\"/([^\"]+\.(?:js|css))\"", text)]
    assert len(files) >= 3
    assert sum(len(gzip.compress(path.read_bytes(), 6)) for path in files) + len(text) < FIRST_LOAD
