"""The page on solvers has the methods that the code has, and problems that show them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from documents import ROOT, module

from pmlopt import library, solve
from pmlopt.programs.registry import list_registries

METHODS = module("methods")
PROBLEMS = [
    (*key, shown) for key, shown in METHODS.EVIDENCE.items() if not shown.startswith("benchmarks/")
]


def test_the_page_of_solvers_gets_the_methods_of_the_code() -> None:
    page = METHODS.PAGE.read_text("utf-8")
    shown = METHODS.on_page_markdown(
        page, SimpleNamespace(file=SimpleNamespace(src_uri="solvers.md"))
    )
    ids = [method.id for one in list_registries() for method in one.methods if method.automatic]
    assert len(ids) > 25
    assert [one for one in ids if f"| `{one}` |" not in shown] == []
    assert page.count(METHODS.PLACE) == 1
    assert METHODS.PLACE not in shown
    other = SimpleNamespace(file=SimpleNamespace(src_uri="noise.md"))
    assert METHODS.on_page_markdown(METHODS.PLACE, other) == METHODS.PLACE


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
