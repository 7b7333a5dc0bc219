"""`make mutants` itself: what it names exists, and each mutant is another program."""

from __future__ import annotations

import ast

from tests.mutants import MODULES, PACKAGE, ROOT, mutants_of, mutated, sample


def test_modules_and_their_tests_exist() -> None:
    paths = [ROOT / PACKAGE / module for module in MODULES]
    paths += [ROOT / "tests" / test for tests in MODULES.values() for test in tests.split()]
    assert [path for path in paths if not path.exists()] == []


def test_a_mutant_is_a_valid_program_that_differs() -> None:
    module = "domain/queue.py"
    source = (ROOT / PACKAGE / module).read_bytes()
    whole, found = ast.dump(ast.parse(source)), mutants_of(module)
    assert len(found) > 20
    for mutant in found:
        assert ast.dump(ast.parse(mutated(mutant, source))) != whole, mutant


def test_a_seed_gives_the_same_sample() -> None:
    modules = ["domain/queue.py", "domain/resume.py"]
    assert sample(modules, seed=1, count=20) == sample(modules, seed=1, count=20) != sample(modules, seed=2, count=20)
