"""`make mutants` itself: what it names exists, and each mutant is another program."""

from __future__ import annotations

import ast
from dataclasses import replace
from itertools import chain

from tests.mutants import (
    DEFAULTS,
    LEFT_OUT,
    OTHER_PROCESSES,
    PACKAGE,
    QUICK,
    ROOT,
    SINGLE,
    TESTS,
    WHOLE_GATEWAYS,
    RecordedTest,
    judging_tests,
    modules,
    mutants_of,
    mutated,
    sample,
)


def test_modules_and_tests_that_are_named_exist() -> None:
    paths = [ROOT / PACKAGE / module for module in (*LEFT_OUT, *SINGLE)]
    paths += [ROOT / "tests" / test for test in (*TESTS, *chain(*OTHER_PROCESSES.values()))]
    assert [path for path in paths if not path.exists()] == []


def test_every_module_of_the_rules_can_be_mutated() -> None:
    assert {"domain/queue.py", "store/sqlite/writer.py", "processes/keeper_server.py", "sessions.py"} < set(modules())


def test_a_mutant_is_a_valid_program_that_differs() -> None:
    module = "domain/queue.py"
    source = (ROOT / PACKAGE / module).read_bytes()
    whole, found = ast.dump(ast.parse(source)), mutants_of(module)
    assert len(found) > 20
    for mutant in found:
        assert ast.dump(ast.parse(mutated(mutant, source))) != whole, mutant


def test_a_seed_gives_the_same_sample() -> None:
    names = ["domain/queue.py", "domain/resume.py"]
    assert sample(names, seed=1, count=20) == sample(names, seed=1, count=20) != sample(names, seed=2, count=20)


def test_a_mutant_is_judged_by_the_tests_that_execute_it() -> None:
    mutant = next(one for one in sample(["domain/queue.py"], seed=1, count=9) if not one.on_import)
    slow = RecordedTest("tests/a.py::slow", 9.0, {"domain/queue.py": {mutant.last_line}})
    quick = RecordedTest("tests/b.py::quick", 1.0, {"domain/queue.py": {mutant.line}, "domain/resume.py": {1}})
    other = RecordedTest("tests/c.py::other", 0.1, {"domain/queue.py": {mutant.last_line + 1}})
    elsewhere = RecordedTest("tests/d.py::elsewhere", 0.1, {"domain/resume.py": {mutant.line}})
    first, others, gateways = judging_tests(mutant, [slow, quick, other, elsewhere])
    assert (first, others, gateways) == ([quick.id, slow.id], [], [*WHOLE_GATEWAYS])
    first, others, _ = judging_tests(mutant, [other, elsewhere])
    assert (first, others) == ([], ["tests/domain"]), "perhaps a whole gateway executes it"
    on_import = replace(mutant, on_import=True)
    first, *_ = judging_tests(on_import, [slow, other, elsewhere])
    assert first == [DEFAULTS, other.id, slow.id], "concerns the whole module"


def test_the_quickest_tests_that_execute_a_mutant_run_before_the_others() -> None:
    mutant = next(one for one in sample(["domain/queue.py"], seed=1, count=9) if not one.on_import)
    lines = {"domain/queue.py": {mutant.line}}
    slow = [RecordedTest(f"tests/a.py::{number}", 9.0, lines) for number in range(3)]
    quick = [RecordedTest(f"tests/b.py::{number}", 1.0, lines) for number in range(QUICK)]
    first, others, _ = judging_tests(mutant, [*slow, *quick])
    assert (first, others) == ([test.id for test in quick], [test.id for test in slow])
