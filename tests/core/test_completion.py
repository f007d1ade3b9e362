"""What editors and notebooks complete of an object: the names that users write, and no internal ones."""

from __future__ import annotations

from typing import Any

import pytest
from saved_cases import CASES, REQUIREMENTS

from pmlopt import LDP, PML, ExpectedLoss, L1Ball, MutualInformation, Prior, design, solve
from pmlopt.core.suggestions import is_dunder
from pmlopt.model.privacy import Requirement

OF_REQUIREMENTS = {
    "constraints", "describe_violation", "holds", "level", "levels", "limits", "list_parts", "meanings",
    "name", "scope", "with_epsilon",
}  # fmt: skip


def complete(item: object) -> set[str]:
    return {name for name in dir(item) if not is_dunder(name)}


def test_requirements_complete_their_fields_and_what_users_write() -> None:
    assert complete(PML(0.3)) == {"epsilon", "over"} | OF_REQUIREMENTS
    assert complete(PML(0.3) & LDP(0.5)) == {"parts"} | OF_REQUIREMENTS


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_no_requirement_completes_what_only_solvers_call(name: str) -> None:
    requirement = REQUIREMENTS[name]
    shown = complete(requirement)
    assert shown >= OF_REQUIREMENTS
    internal = {one for one in vars(Requirement) if not is_dunder(one)} - OF_REQUIREMENTS
    assert {"support_function", "to_cvxpy", "violation", "on_cells"} <= internal
    assert shown & internal == set()


def test_what_is_cached_is_not_completed_afterwards() -> None:
    ball = PML(0.3, over=L1Ball([0.5, 0.5], 0.1))
    before = complete(ball), complete(ball.over)
    design([0.5, 0.5], ball, "hamming")
    assert ball.bounds
    assert ball.levels([0.5, 0.5], [[0.6, 0.4], [0.4, 0.6]])
    assert (complete(ball), complete(ball.over)) == before


def test_names_of_other_objects() -> None:
    program = design(Prior([0.5, 0.5]), PML(0.3), "hamming")
    assert complete(program) == {
        "added", "constraints", "maximised", "mechanism", "outputs", "prior", "privacy", "problem", "scale",
        "tolerance", "utility", "variables", "with_constraints", "write_mps",
    }  # fmt: skip
    assert complete(ExpectedLoss([[0, 1], [1, 0]])) == {
        "axes", "kind", "matrix", "maximised", "value",
    }  # fmt: skip
    assert {"value", "maximised"} <= complete(MutualInformation())
    result = solve(program)
    assert {"value", "bound", "summary", "save", "plot"} <= complete(result)
    for item in (result, result.mechanism, Prior([0.5, 0.5]), program):
        assert {name for name in complete(item) if name.startswith("_") or name.isupper()} == set()
    assert {"context", "from_fields"} & complete(Prior([0.5, 0.5])) == set()


PROGRAMS = (
    "pml",
    "information",
    "estimation",
    "least",
    "envelope",
    "record-capacity",
    "types",
    "circle",
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_completed_name_of_a_program_is_an_attribute(name: str) -> None:
    program = CASES[name]()
    shown = complete(program)
    assert len(shown) <= 22
    assert "build_model" not in shown
    assert [
        one for one in shown if not hasattr(type(program), one) and one not in vars(program)
    ] == []


def test_a_class_of_a_user_completes_all_its_public_names() -> None:
    class Half(PML):
        def halve(self) -> float:
            return self.epsilon / 2

        def _help(self) -> None:
            pass

    shown: Any = complete(Half(0.3))
    assert shown == {"epsilon", "over", "halve"} | OF_REQUIREMENTS
