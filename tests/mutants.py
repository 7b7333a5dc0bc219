"""`make mutants`: would the tests notice? Changes one place at a time in the modules that carry the promises.

Each mutant is made in a temporary copy of the tree, which is removed in the end: the tree itself is never changed. The
tests of the module run until one fails. What survives is printed as a diff. The sample depends on the seed only; of the
survivors, a person decides which mean the same as the original. The goal is to notice 95 % of the others.
"""

from __future__ import annotations

import argparse
import ast
import copy
import difflib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path("src/holdfast")
COPIED = ("src", "tests", "benchmarks", "docs", "web/src/generated", "pyproject.toml", "README.md")
MODULES: dict[str, str] = {
    "domain/card.py": "domain board/test_machine.py",
    "domain/card_rules.py": "domain board/test_machine.py",
    "domain/compaction.py": "domain runtime/test_compaction.py",
    "domain/dispatch.py": "domain board",
    "domain/next_step.py": "domain runtime/test_turn.py",
    "domain/queue.py": "domain",
    "domain/reset.py": "domain lifecycle/test_resets.py",
    "domain/resume.py": "domain",
    "domain/session_context.py": "domain",
    "domain/session_fold.py": "domain",
    "domain/session_rules.py": "domain gateway/test_queue.py",
    "domain/summary.py": "domain",
    "domain/turn_fold.py": "domain",
    "board/cards.py": "board",
    "board/dispatcher.py": "board",
    "board/run.py": "board",
    "board/startable.py": "board",
    "lifecycle/reset_service.py": "lifecycle",
    "lifecycle/retention.py": "lifecycle runtime/test_retention.py",
    "processes/evidence.py": "processes",
    "processes/keeper.py": "processes",
    "processes/supervisor.py": "processes",
    "runtime/permissions.py": "runtime/test_permissions.py runtime tools",
    "runtime/runner.py": "runtime",
    "runtime/turn.py": "runtime",
    "runtime/writer.py": "runtime",
    "store/decisions.py": "store",
    "store/projection.py": "store board",
    "store/session_projection.py": "store",
    "tasks/log.py": "tools runtime",
    "tasks/prune.py": "lifecycle runtime/test_retention.py",
}
"""The modules that carry the promises, each with its tests."""
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
SIMPLE = "domain/test_decide.py"
"""A test that passes wherever the copy is complete."""


@dataclass(frozen=True)
class Mutant:
    """A change of one node."""

    module: str
    line: int
    what: str
    start: int
    """Where the changed text begins, in bytes of the module."""
    end: int
    text: str


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
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def _add(self, node: ast.expr | ast.stmt, what: str, new: ast.AST | str) -> None:
        assert node.end_lineno is not None and node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[node.end_lineno - 1] + node.end_col_offset
        text = new if isinstance(new, str) else f"({ast.unparse(ast.fix_missing_locations(new))})"
        self.found.append(Mutant(self._module, node.lineno, what, start, end, text))

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

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)  # and not the annotation

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
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
        for statement in node.body:
            self.visit(statement)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def mutants_of(module: str) -> list[Mutant]:
    source = (ROOT / PACKAGE / module).read_bytes()
    finder = Finder(module, source)
    finder.visit(ast.parse(source))
    return finder.found


def sample(modules: list[str], *, seed: int, count: int) -> list[Mutant]:
    """Choose mutants, as many as asked for; the module is drawn first, so that small ones count, too."""
    dice = random.Random(seed)
    pools = {module: mutants_of(module) for module in modules}
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


def run_tests(tree: Path, tests: list[str], *, seconds: float) -> Verdict:
    """Run tests in the copy until one fails, but no longer than that."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=line", "--timeout", "60"]
    environment = os.environ | {
        "PYTHONPATH": str(tree / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(tree / ".hypothesis"),
    }
    process = subprocess.Popen(
        [*command, *(f"tests/{test}" for test in tests)],
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
        return Verdict(noticed=True, by="they took too long")
    finally:
        if process.poll() is None:
            _end(process)
    failed = [line.split(" - ")[0] for line in said.splitlines() if line.startswith(("FAILED tests/", "ERROR tests/"))]
    return Verdict(
        noticed=process.returncode != 0, by=failed[0] if failed else f"the tests ended with {process.returncode}"
    )


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


def judge(tree: Path, mutant: Mutant, *, seconds: float) -> Verdict:
    """Say whether the tests of its module notice a mutant: one fails with it that passes without it."""
    path = tree / PACKAGE / mutant.module
    source = path.read_bytes()
    path.write_bytes(mutated(mutant, source))
    try:
        verdict = run_tests(tree, MODULES[mutant.module].split(), seconds=seconds)
    finally:
        path.write_bytes(source)
    test = verdict.by.partition(" tests/")[2]
    if test and run_tests(tree, [test], seconds=seconds).noticed:
        return Verdict(noticed=False, by=f"{test} fails without it, too")
    return verdict


def main() -> None:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=None, help="replay a sample")
    parser.add_argument("--count", type=int, default=40, help="how many mutants")
    parser.add_argument("--module", action="append", choices=sorted(MODULES), help="only of these modules")
    parser.add_argument("--seconds", type=float, default=600.0, help="the most that the tests of one mutant may take")
    asked = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if asked.seed is None else asked.seed
    chosen = sample(asked.module or sorted(MODULES), seed=seed, count=asked.count)
    print(f"{len(chosen)} mutants; replay with --seed {seed} --count {asked.count}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # so that the copy is removed
    survived = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        tree = Path(directory)
        copy_tree(tree)
        if (verdict := run_tests(tree, [SIMPLE], seconds=asked.seconds)).noticed:
            sys.exit(f"Even without a mutant the tests fail in the copy: {verdict.by}")
        for mutant in chosen:
            began = time.monotonic()
            verdict = judge(tree, mutant, seconds=asked.seconds)
            survived += not verdict.noticed
            took, place = time.monotonic() - began, f"{PACKAGE / mutant.module}:{mutant.line}"
            print(f"{'noticed ' if verdict.noticed else 'SURVIVED'} {took:4.0f} s  {place}  {mutant.what}")
            lines = [verdict.by] if verdict.noticed else [verdict.by, *difference(mutant)]
            print("\n".join(f"    {line}" for line in lines), flush=True)
    share = 100 * (len(chosen) - survived) / max(1, len(chosen))
    print(f"{len(chosen) - survived} of {len(chosen)} were noticed ({share:.0f} %); seed {seed}")


if __name__ == "__main__":
    main()
