"""Added constraints on the largest of affine expressions are kept as these, and so are proved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from pmlopt import PML, ExpectedLoss, design, load, solve
from pmlopt.programs import Status
from pmlopt.programs.linear.affine_pieces import split_constraint

Build = Callable[[Any], cp.Constraint]
BENT: dict[str, tuple[Build, Build]] = {
    "max": (lambda p: cp.max(p) <= 0.8, lambda p: p <= 0.8),
    "max over an axis": (lambda p: cp.max(p, axis=0) <= [0.8, 0.7, 0.6],
                         lambda p: np.tile([0.8, 0.7, 0.6], (3, 1)) >= p),
    "max over rows": (lambda p: cp.max(p, axis=1) <= 0.8, lambda p: p <= 0.8),
    "min": (lambda p: cp.min(p) >= 0.1, lambda p: p >= 0.1),
    "a multiple": (lambda p: -3 * cp.min(p, axis=1) <= -0.3, lambda p: p >= 0.1),
    "maximum": (lambda p: cp.maximum(p[0, 0], p[1, 1], 0.2) <= 0.7, lambda p: cp.diag(p)[:2] <= 0.7),
    "minimum": (lambda p: cp.minimum(p[0, 0], 0.5) >= p[1, 1],
                lambda p: p[1, 1] <= cp.hstack([p[0, 0], 0.5])),
    "abs": (lambda p: cp.abs(p - 0.4) <= 0.3, lambda p: cp.vstack([p - 0.4, 0.4 - p]) <= 0.3),
    "norm": (lambda p: cp.norm(p[0] - p[1], "inf") <= 0.2,
             lambda p: cp.hstack([p[0] - p[1], p[1] - p[0]]) <= 0.2),
    "range": (lambda p: cp.ptp(p[:, 0]) <= 0.4,
              lambda p: cp.hstack([p[x, 0] - p[z, 0] for x in range(3) for z in range(3)]) <= 0.4),
    "a maximum of others": (lambda p: cp.maximum(cp.max(p[0]), cp.abs(p[1, 1])) + p[2, 2] <= 1.1,
                            lambda p: cp.hstack([p[0], p[1, 1]]) + p[2, 2] <= 1.1),
}  # fmt: skip
"""A constraint with kinks, and the affine inequalities that it is."""


def build() -> Any:
    return design([0.5, 0.3, 0.2], PML(0.5), ExpectedLoss(1 - np.eye(3)))


@pytest.mark.parametrize("name", BENT)
def test_a_design_within_the_largest_of_affine_expressions_is_proved(
    name: str, tmp_path: Path
) -> None:
    bent, affine = BENT[name]
    program, same = build(), build()
    result = solve(program.with_constraints(own=bent(program.mechanism)))
    assert result.status is Status.OPTIMAL
    expected = solve(same.with_constraints(own=affine(same.mechanism)), "clarabel")
    assert result.value == pytest.approx(expected.value, abs=1e-7)
    assert all(one.holds for one in result.certificate.checks())
    result.save(tmp_path / "r.json")
    assert all(one.holds for one in load(tmp_path / "r.json").certificate.checks())


@pytest.mark.parametrize("name", BENT)
def test_the_pieces_have_the_constraint_as_their_maximum(name: str) -> None:
    p = cp.Variable((3, 3))
    constraint = BENT[name][0](p)
    pieces = split_constraint(constraint)
    assert pieces is not None
    assert pieces.expr.is_affine()
    for seed in range(20):
        p.value = np.random.default_rng(seed).normal(size=(3, 3))
        assert pieces.expr.value.max() == pytest.approx(np.max(constraint.expr.value), abs=1e-12)


@pytest.mark.parametrize(
    "bend",
    [cp.norm1, lambda p: cp.sum_largest(p, 2), cp.norm2, lambda p: cp.sum(cp.abs(p))],
)
def test_a_bound_that_is_not_proved_says_why(bend: Callable[[Any], Any]) -> None:
    program = build()
    matrix = program.mechanism - 0.3
    assert split_constraint(bend(matrix[0]) <= 0.4) is None
    result = solve(program.with_constraints(own=bend(matrix[0]) <= 0.4))
    (claim,) = (one for one in result.certificate.checks() if one.holds is None)
    assert "one is not affine in the mechanism alone. At a kink one multiplier" in claim.detail
