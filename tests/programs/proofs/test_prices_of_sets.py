"""Prices of the inequalities of a set of priors, and rows that are relaxed: by programs and by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from pmlopt import Mechanism, Prior
from pmlopt.model.uncertainty import Box, L1Ball, Polytope, PriorSet
from pmlopt.programs.proofs.requirement_rows import MechanismProgram, describe_set

CENTER = Prior.from_counts({"a": 5, "b": 3, "c": 2})
BOX = Box(np.array([0.375, 0.125, 0.0625]), np.array([0.625, 0.5, 0.375]))


OPEN = Box(np.array([0.01, 0.04, 0.05]), np.array([0.36, 1.0, 1.0]))
"""Of two letters no upper limit is below one."""
ROWS = Polytope(np.array([[1.0, -2.0, 0.5], [-1.0, 1.0, 3.0]]), np.array([0.25, 1.0]))


@pytest.mark.parametrize(
    "over", [L1Ball(CENTER, 0.3), BOX, OPEN, ROWS], ids=["ball", "box", "open", "rows"]
)
@pytest.mark.parametrize("values", [[1, 4, 9], [4, 4, 1], [7, 2, 3], [2, 9, 2], [1, 1, 9]])
def test_prices_prove_the_least_mean_over_the_set(over: PriorSet, values: list[int]) -> None:
    """By the dual: `base - <right, prices>` with `base <= v_x + <column x, prices>` for each letter."""
    system = describe_set(over, ["a", "b", "c"])
    rows = system.program.rows
    width = max(max(row.terms) for row in rows) + 1
    matrix = np.zeros((len(rows), width))
    for place, row in enumerate(rows):
        matrix[place, list(row.terms)] = [float(value) for value in row.terms.values()]
    right = np.array([float(row.right) for row in rows])
    costs = np.zeros(width)
    costs[:3] = values
    least = linprog(costs, matrix, right, (np.arange(width) < 3)[None].astype(float), [1.0])
    column = np.array(values, dtype=float)[:, None]
    assert least.fun == pytest.approx(over.min_mean(column)[0])
    prices = np.array([float(one) for one in system.find_prices([Fraction(v) for v in values])])
    assert (prices >= 0).all()
    bounds = costs + prices @ matrix
    assert (bounds[3:] >= -1e-12).all()
    assert bounds[:3].min() - right @ prices == pytest.approx(least.fun)


@pytest.mark.parametrize(("equal", "rights"), [(False, [0.75]), (True, [0.75, -0.5])])
def test_a_row_that_a_mechanism_breaks_is_relaxed_by_that(equal: bool, rights: list[float]) -> None:
    """`P[0,0] - 1/2`, which is a quarter above zero; that it is not below zero is kept."""
    mechanism = Mechanism([[0.75, 0.25], [0.5, 0.5]])
    program = MechanismProgram(Prior.from_counts({0: 1, 1: 1}), mechanism, above=False)
    slack = program.add_affine_rows(
        "own", np.array([[[1.0, 0.0], [0.0, 0.0]]]), [-0.5], equal=equal
    )
    assert slack == Fraction(1, 4)
    added = [row for row in program.rows if row.name.startswith("added")]
    assert [float(row.right) for row in added] == rights
    assert not any(row.equal for row in added)
    met = program.add_affine_rows("met", np.array([[[1.0, 0.0], [0.0, 0.0]]]), [-0.75], equal=equal)
    assert met == 0
    ends = [
        float(row.right)
        for row in program.rows
        if row.name.startswith("added") and "met" in row.name
    ]
    assert ends == [0.75, -0.75][: 1 + equal]
