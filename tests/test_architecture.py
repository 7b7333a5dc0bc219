"""The shape of the source tree, checked on every run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from holdfast.domain.events.task import TaskEvent

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "holdfast"
MODULE_LINES = 400
STANDS_ALONE = {"processes/keeper.py"}
"""It imports nothing of ours, since one runs beside every command, so it cannot be cut into modules."""
FUNCTION_LINES = 60
PATCHING = {"test_migration.py"}
"""A migration is never changed, so what it does at once cannot become an argument."""
EMPTY_NAMES = {"utils", "common", "helpers", "core", "manager", "misc", "base"}
LONG_BY_NATURE = {("domain/card.py", "evolve_card")}
"""A match over a closed union has one arm per member."""


def modules() -> Iterator[tuple[str, str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield path.relative_to(SOURCE).as_posix(), path.read_text("utf-8")


def functions(text: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_the_turn_is_short() -> None:
    assert (SOURCE / "runtime" / "turn.py").read_text().count("\n") <= 260


def test_modules_and_functions_are_small() -> None:
    long_modules = [
        (name, text.count("\n"))
        for name, text in modules()
        if text.count("\n") > MODULE_LINES and name not in STANDS_ALONE
    ]
    assert not long_modules
    long_functions = [
        (name, node.name)
        for name, text in modules()
        for node in functions(text)
        if (node.end_lineno or 0) - node.lineno > FUNCTION_LINES and (name, node.name) not in LONG_BY_NATURE
    ]
    assert not long_functions


def test_packages_are_named_after_what_they_do() -> None:
    names = {part for name, _ in modules() for part in name.removesuffix(".py").split("/")}
    assert not names & EMPTY_NAMES


def test_every_module_says_what_it_is() -> None:
    silent = [name for name, text in modules() if not ast.get_docstring(ast.parse(text))]
    assert not silent


def test_files_that_prose_names_exist() -> None:
    code = [*SOURCE.rglob("*"), *(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").glob("*"), *ROOT.glob("*/*.py")]
    known = {path.relative_to(ROOT).as_posix() for path in code}
    prose = [*SOURCE.rglob("*.py"), *SOURCE.rglob("*.sql"), *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    missing = [
        (path.relative_to(ROOT).as_posix(), name)
        for path in prose
        for name in re.findall(r"`([\w/.]+\.(?:py|sql))`", path.read_text("utf-8"))
        if not any(file == name or file.endswith(f"/{name}") for file in known)
    ]
    assert not missing


def reads_a_row_as_stored(node: ast.AST) -> bool:
    match node:
        case ast.Subscript(value=ast.Name(id="row"), slice=ast.Constant(value=str())):
            return True
        case ast.Call(func=ast.Name(id="str" | "int" | "bool"), args=[ast.Attribute(value=ast.Name(id="row"))]):
            return True
        case _:
            return False


def test_rows_of_the_store_are_read_by_their_fields() -> None:
    """A row has its types from the store: nobody else asks for a column by name or converts it."""
    readers = [(name, text) for name, text in modules() if not name.startswith(("store/", "cli/"))]  # cli reads JSON
    found = [name for name, text in readers for node in ast.walk(ast.parse(text)) if reads_a_row_as_stored(node)]
    assert not found


def test_only_config_reads_the_environment() -> None:
    readers = {name for name, text in modules() if re.search(r"\bos\.(environ|getenv)\b", text)}
    assert readers <= {"config.py"}


def test_no_marks_of_unfinished_work() -> None:
    words = re.compile(
        r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"]) + r")\b|NotImplementedError"
    )
    assert not [name for name, text in modules() if words.search(text)]


def test_no_error_is_swallowed() -> None:
    swallowed = []
    for name, text in modules():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ExceptHandler) and all(isinstance(line, ast.Pass) for line in node.body):
                swallowed.append(f"{name}:{node.lineno}")
    assert not swallowed


def test_nobody_names_the_machine_it_was_written_on() -> None:
    hosts = re.compile(r"/root/|/home/(?!agent/)\w+/|/work/")
    tracked = [path for pattern in ("*.md", "src/**/*.py", "docs/*.md") for path in ROOT.glob(pattern)]
    assert not [path.name for path in tracked if hosts.search(path.read_text("utf-8"))]


def test_only_the_task_log_builds_the_events_of_tasks() -> None:
    events = {event.__name__ for event in get_args(TaskEvent)} | {"TaskPruned"}
    builders = {
        name
        for name, text in modules()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in events
    }
    assert builders == {"tasks/log.py"}


def type_definitions(text: str, module: str) -> Iterator[tuple[str, str]]:
    """Classes and aliases of a module by name; an alias that says the same elsewhere is the same type."""
    for node in ast.parse(text).body:
        match node:
            case ast.ClassDef(name=name):
                yield name, module
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name[0].isupper() and not name.isupper():
                yield name, ast.dump(value)
            case _:
                pass


def test_a_type_name_means_one_thing() -> None:
    meanings: dict[str, set[str]] = {}
    for module, text in modules():
        for name, meaning in type_definitions(text, module):
            meanings.setdefault(name, set()).add(meaning)
    assert not {name: found for name, found in meanings.items() if len(found) > 1 and not name.startswith("_")}


def test_tests_set_no_constant_of_a_module() -> None:
    """What they vary is passed in: a constant that is patched by its name binds tests to where it is defined."""
    patches = re.compile(
        r"""setattr\((?:"holdfast\.[\w.]+\.|\w+, ")[A-Z][A-Z_]+"|^\s*[a-z_.]+\.[A-Z][A-Z_]+ = """, re.MULTILINE
    )
    tests = sorted((ROOT / "tests").rglob("*.py"))
    assert not [path.name for path in tests if path.name not in PATCHING and patches.search(path.read_text("utf-8"))]
