"""`make mutants`: would the tests notice? Changes one place at a time in the modules that carry the promises.

Each mutant is made in a temporary copy of the tree, which is removed in the end: the tree itself is never changed.
First all tests run once, to record which of them execute which lines (`tests/executed_lines.py`). For a mutant, only
the tests that execute its lines run, the quickest first, until one fails; then those that start whole gateways. What
survives is printed as a diff. The sample depends on the seed only; of the survivors, a person decides which mean the
same as the original. The goal is to notice 95 % of the others.
"""

from __future__ import annotations

import argparse
import ast
import copy
import difflib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path("src/holdfast")
COPIED = ("src", "tests", "benchmarks", "docs", "web/src/generated", "pyproject.toml", "README.md")
PACKAGES = (
    "board",
    "client",
    "domain",
    "gateway",
    "lifecycle",
    "models",
    "notify",
    "processes",
    "rules",
    "runtime",
    "store",
    "tasks",
)
SINGLE = ("git.py", "periodic.py", "profiles.py", "secrets.py", "sessions.py")
LEFT_OUT = (
    "gateway/dashboard_files.py",
    "gateway/openapi.py",
    "gateway/welcome.py",
    "models/demo.py",
    "models/detect.py",
)
"""They carry no promise: how things look, the documentation of the API, the model of the demonstration."""
TESTS = (
    *("domain", "store", "lifecycle", "runtime", "tools", "board", "processes", "provider", "gateway", "client"),
    *("agents", "attacks", "notify", "tasks", "test_periodic.py", "test_edit_settings.py"),
)
"""Not `e2e`, `crash`, `cli`, `chat`, `web`: whole gateways are slow, and what they execute is not recorded."""
WHOLE_GATEWAYS = ("tests/gateway", "tests/cli", "tests/chat", "tests/e2e")
"""What is left out of the first run: for mutants that the tests which execute them do not notice."""
OTHER_PROCESSES = {
    "gateway/": ["gateway"],
    "processes/keeper": ["processes"],
    "runtime/mcp/die_with_parent": ["tools/test_mcp.py"],
    "runtime/tools/scan": ["tools/test_searching.py"],
}
"""What runs in processes of its own, where lines are not recorded, with its tests."""
DEFAULTS = "tests/domain/test_golden.py::test_every_field_has_the_limits_and_the_default_that_it_had"
"""It looks at every default, but they are executed before it runs."""
QUICK = 40
"""So many of the quickest tests run first: most mutants are noticed by them."""
MANY = 100
RECORD = "executed_lines"
HANG = "its tests do not end"
SWAPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


@dataclass(frozen=True)
class Mutant:
    """A change of one node."""

    module: str
    line: int
    last_line: int
    what: str
    start: int
    """Where the changed text begins, in bytes of the module."""
    end: int
    text: str
    on_import: bool
    """Whether it is executed while its module is imported: a constant, or a default."""


@dataclass(frozen=True)
class RecordedTest:
    """A test that passes without a mutant, and what it executes."""

    id: str
    seconds: float
    lines: dict[str, set[int]]
    """By module."""


@dataclass(frozen=True)
class Verdict:
    """Whether a test failed, and which."""

    noticed: bool
    by: str


class Finder(ast.NodeVisitor):
    """Finds the mutants of a module."""

    def __init__(self, module: str, source: bytes) -> None:
        self.found: list[Mutant] = []
        self._module = module
        self._on_import = True
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def _add(self, node: ast.expr | ast.stmt, what: str, new: ast.AST | str) -> None:
        assert node.end_lineno is not None and node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[node.end_lineno - 1] + node.end_col_offset
        text = new if isinstance(new, str) else f"({ast.unparse(ast.fix_missing_locations(new))})"
        self.found.append(Mutant(self._module, node.lineno, node.end_lineno, what, start, end, text, self._on_import))

    def visit_If(self, node: ast.If) -> None:
        if not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            self._negated(node.test)
            self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._negated(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negated(node.test)
        self.generic_visit(node)

    def _negated(self, test: ast.expr) -> None:
        if not isinstance(test, ast.Constant | ast.Compare | ast.NamedExpr):
            self._add(test, "a condition is negated", ast.UnaryOp(ast.Not(), test))

    def visit_Compare(self, node: ast.Compare) -> None:
        for place, operator in enumerate(node.ops):
            changed = copy.deepcopy(node)
            changed.ops[place] = SWAPPED[type(operator)]()
            self._add(node, "a comparison is changed", changed)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for place in range(len(node.values)):
            if any(isinstance(value, ast.NamedExpr) for value in ast.walk(node.values[place])):
                continue  # what follows needs its name
            rest = [value for number, value in enumerate(node.values) if number != place]
            left = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
            self._add(node, "an operand is left out", left)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        other = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult}.get(type(node.op))
        is_text = any(isinstance(side, ast.JoinedStr) or _is_text(side) for side in (node.left, node.right))
        if other is not None and not is_text:
            self._add(node, "an operator is changed", ast.BinOp(node.left, other(), node.right))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._add(node, "a constant is changed", str(not node.value))
        elif isinstance(node.value, int):
            self._add(node, "a constant is changed", str(node.value + 1))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """The words of messages are not mutated."""

    def visit_Module(self, node: ast.Module) -> None:
        for statement in node.body:
            if not (isinstance(statement, ast.Assign) and _is_number(statement.value)):  # tuned: one more is no fault
                self.visit(statement)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)  # and not the annotation

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for statement in node.body:  # and not `frozen=True`, which the type checker notices
            self.visit(statement)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not isinstance(node.value, ast.Constant):  # None is as good as False
            self._add(node, "the return value is dropped", "return None")
        self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._add(node, "continue becomes break", "break")

    def visit_Break(self, node: ast.Break) -> None:
        self._add(node, "break becomes continue", "continue")

    def visit_Raise(self, node: ast.Raise) -> None:
        self._add(node, "a statement is removed", "pass")

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return  # a docstring
        called = ast.unparse(node.value)
        if not called.startswith(("log.", "assert_never(")):
            self._add(node, "a statement is removed", "pass")
            self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        before, self._on_import = self._on_import, False
        for statement in node.body:
            self.visit(statement)
        self._on_import = before


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def _is_number(node: ast.expr) -> bool:
    """Say whether it is a number, or several, or calculated from numbers alone."""
    return all(
        isinstance(one, ast.Constant | ast.Tuple | ast.BinOp | ast.operator | ast.Load) for one in ast.walk(node)
    )


def modules() -> list[str]:
    """The modules that carry the promises."""
    package = ROOT / PACKAGE
    found = [path for name in PACKAGES for path in (package / name).rglob("*.py")]
    names = [str(path.relative_to(package)) for path in found if path.name != "__init__.py"]
    return sorted(name for name in (*names, *SINGLE) if name not in LEFT_OUT)


def mutants_of(module: str) -> list[Mutant]:
    source = (ROOT / PACKAGE / module).read_bytes()
    finder = Finder(module, source)
    finder.visit(ast.parse(source))
    return finder.found


def sample(chosen_from: list[str], *, seed: int, count: int) -> list[Mutant]:
    """Choose mutants, as many as asked for; the module is drawn first, so that small ones count, too."""
    dice = random.Random(seed)
    pools = {module: mutants_of(module) for module in chosen_from}
    chosen: list[Mutant] = []
    while len(chosen) < count and (left := sorted(module for module, pool in pools.items() if pool)):
        pool = pools[dice.choice(left)]
        chosen.append(pool.pop(dice.randrange(len(pool))))
    return chosen


def mutated(mutant: Mutant, source: bytes) -> bytes:
    return source[: mutant.start] + mutant.text.encode() + source[mutant.end :]


def difference(mutant: Mutant) -> Iterator[str]:
    """The lines that differ."""
    source = (ROOT / PACKAGE / mutant.module).read_bytes()
    before, after = (text.decode().splitlines() for text in (source, mutated(mutant, source)))
    for line in difflib.unified_diff(before, after, n=0, lineterm=""):
        if not line.startswith(("---", "+++", "@@")):
            yield line


def run_pytest(tree: Path, *arguments: str, seconds: float) -> tuple[int, str]:
    """Run pytest in the copy; return its exit code (-1 if it took too long) and what it said."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=line"]
    environment = os.environ | {
        "PYTHONPATH": str(tree / "src"),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(tree / ".hypothesis"),
        "EXECUTED_LINES": str(tree / RECORD),
    }
    process = subprocess.Popen(
        [*command, *arguments],
        cwd=tree,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        return -1, ""
    finally:
        if process.poll() is None:
            _end(process)
    return process.returncode, said


def record_lines(tree: Path, *, workers: int) -> None:
    """Run all tests in the copy once, and write down what they execute."""
    (tree / RECORD).mkdir()
    tests = [f"tests/{test}" for test in TESTS]
    _, said = run_pytest(
        tree, "-p", "tests.executed_lines", "-n", str(workers), "--dist", "worksteal", *tests, seconds=7200
    )
    print("\n".join(line for line in said.splitlines()[-20:] if not line.startswith(".")), flush=True)


def read_record(tree: Path) -> list[RecordedTest]:
    found = []
    for path in sorted((tree / RECORD).iterdir()):
        for line in path.read_text().splitlines():
            read = json.loads(line)
            lines = {module: set(numbers) for module, numbers in read["lines"].items()}
            found.append(RecordedTest(read["test"], read["seconds"], lines))
    return found


def judging_tests(mutant: Mutant, tests: list[RecordedTest]) -> Iterator[list[str]]:
    """Yield the tests that may notice a mutant, in rounds: the quickest that execute it; the others, file by file, with
    those of other processes; whole gateways.
    """
    lines = set(range(mutant.line, mutant.last_line + 1))
    found = [test for test in tests if lines & test.lines.get(mutant.module, set())]
    if mutant.on_import:
        found = [test for test in tests if mutant.module in test.lines]
    quickest = [test.id for test in sorted(found, key=lambda test: test.seconds)[:QUICK]]
    yield [*([DEFAULTS] if mutant.on_import else []), *quickest]
    files: dict[str, list[RecordedTest]] = {}
    for test in found:
        if test.id not in quickest:
            files.setdefault(test.id.partition("::")[0], []).append(test)
    quick_first = sorted(files.values(), key=lambda file: sum(test.seconds for test in file) / len(file))
    others = next((names for start, names in OTHER_PROCESSES.items() if mutant.module.startswith(start)), [])
    if not found and not others:
        others = [mutant.module.partition("/")[0]]
    others = [name for name in others if (ROOT / "tests" / name).exists()]
    yield [*(test.id for file in quick_first for test in file), *(f"tests/{name}" for name in others)]
    yield list(WHOLE_GATEWAYS)


def run_tests(tree: Path, tests: list[str], *, without: Iterable[str] = (), seconds: float) -> Verdict:
    """Run tests in the copy until one fails; many of them side by side."""
    is_many = len(tests) > MANY or any("::" not in test for test in tests)
    workers = ("-n", str((os.cpu_count() or 1) + 2), "--dist", "worksteal") if is_many else ()
    (tree / "chosen_tests").write_text("\n".join([*tests, *(f"--deselect={test}" for test in without)]))
    code, said = run_pytest(tree, "-x", "--timeout", "60", *workers, "@chosen_tests", seconds=seconds)
    failed = [line.split(" - ")[0] for line in said.splitlines() if line.startswith(("FAILED tests/", "ERROR tests/"))]
    if failed:
        return Verdict(noticed=True, by=failed[0].partition(" ")[2])
    if code in (-1, 1):  # a test that hangs ends pytest with 1, and is not named
        return Verdict(noticed=True, by=HANG)
    return Verdict(noticed=False, by=f"{len(tests)} tests pass" if code == 0 else f"pytest ended with {code}")


def _end(process: subprocess.Popen[str]) -> None:
    """Let pytest end what its tests have started; kill it if it does not."""
    process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def copy_tree(target: Path) -> None:
    for name in COPIED:
        source, copied = ROOT / name, target / name
        copied.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copied, ignore=shutil.ignore_patterns("__pycache__", "static"))
        elif source.exists():
            shutil.copy2(source, copied)


def judge(tree: Path, mutant: Mutant, tests: list[str], *, seconds: float) -> Verdict:
    """Say whether one of these tests notices a mutant: it fails with it and passes without it."""
    path = tree / PACKAGE / mutant.module
    source = path.read_bytes()
    fail_anyway: list[str] = []
    while True:
        _write(path, mutated(mutant, source))
        try:
            verdict = run_tests(tree, tests, without=fail_anyway, seconds=seconds)
            if verdict.noticed and verdict.by != HANG and not run_tests(tree, [verdict.by], seconds=seconds).noticed:
                fail_anyway.append(verdict.by)  # now it passes: it fails now and then
                continue
        finally:
            _write(path, source)
        hang = verdict.by == HANG
        if not verdict.noticed or not run_tests(tree, tests if hang else [verdict.by], seconds=seconds).noticed:
            return verdict
        if hang:
            return Verdict(noticed=False, by="its tests do not end in time without it either")
        fail_anyway.append(verdict.by)


def _write(path: Path, source: bytes) -> None:
    """Write a module, and forget its bytecode: the time of a file is too coarse to notice every change."""
    path.write_bytes(source)
    Path(cache_from_source(path)).unlink(missing_ok=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=None, help="replay a sample")
    parser.add_argument("--count", type=int, default=40, help="how many mutants")
    parser.add_argument(
        "--module",
        action="append",
        choices=modules(),
        metavar="MODULE",
        help="only of this module, such as domain/queue.py",
    )
    parser.add_argument("--seconds", type=float, default=600.0, help="the most that the tests of one mutant may take")
    parser.add_argument("--copy", type=Path, help="keep the copy and its record in this directory, for the next sample")
    parser.add_argument("--workers", type=int, default=2, help="how many processes run the tests of the first run")
    asked = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if asked.seed is None else asked.seed
    chosen = sample(asked.module or modules(), seed=seed, count=asked.count)
    print(f"{len(chosen)} mutants; replay with --seed {seed} --count {asked.count}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # so that the copy is removed
    survived = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        tree = asked.copy or Path(directory)
        if not (tree / RECORD).exists():
            copy_tree(tree)
            record_lines(tree, workers=asked.workers)
        if any((tree / PACKAGE / m.module).read_bytes() != (ROOT / PACKAGE / m.module).read_bytes() for m in chosen):
            sys.exit(f"{tree} is the copy of another version.")
        tests = read_record(tree)
        for mutant in chosen:
            began = time.monotonic()
            verdict = Verdict(noticed=False, by="no test executes it")
            for names in filter(None, judging_tests(mutant, tests)):
                verdict = judge(tree, mutant, names, seconds=asked.seconds)
                if verdict.noticed:
                    break
            survived += not verdict.noticed
            took, place = time.monotonic() - began, f"{PACKAGE / mutant.module}:{mutant.line}"
            print(f"{'noticed ' if verdict.noticed else 'SURVIVED'} {took:4.0f} s  {place}  {mutant.what}")
            lines = [verdict.by] if verdict.noticed else [verdict.by, *difference(mutant)]
            print("\n".join(f"    {line}" for line in lines), flush=True)
    share = 100 * (len(chosen) - survived) / max(1, len(chosen))
    print(f"{len(chosen) - survived} of {len(chosen)} were noticed ({share:.0f} %); seed {seed}")


if __name__ == "__main__":
    main()
