"""The page on solvers has the methods that the code has, and problems that show them."""

from __future__ import annotations

import pytest
from documents import ROOT, module

from pmlopt import library, solve
from pmlopt.programs.registry import list_registries

METHODS = module("methods")
PROBLEMS = [
    (*key, shown) for key, shown in METHODS.EVIDENCE.items() if not shown.startswith("benchmarks/")
]


def test_the_table_is_that_of_the_code() -> None:
    page = METHODS.PAGE.read_text("utf-8")
    assert page == METHODS.rewritten(page), "run docs/methods.py"


def test_every_method_is_seen_somewhere() -> None:
    assert set(METHODS.EVIDENCE) == {
        (one.program.__name__, name) for one in list_registries() for name in one.own_names
    }
    for shown in METHODS.EVIDENCE.values():
        assert not shown.startswith("benchmarks/") or (ROOT / shown).is_file(), shown


@pytest.mark.parametrize(("kind", "method", "problem"), PROBLEMS)
def test_the_problem_named_is_solved_by_the_method(kind: str, method: str, problem: str) -> None:
    program = library.find(problem).program()
    assert type(program).__name__ == kind
    assert solve(program).solver == method
