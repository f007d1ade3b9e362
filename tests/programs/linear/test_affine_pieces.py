"""Added constraints on the largest of affine expressions are kept as these, and so are proved."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from pmlopt import PML, ExpectedLoss, design, load, solve
from pmlopt.programs import Status
from pmlopt.programs.linear.affine_pieces import lift_constraint, split_constraint

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


SUMS: dict[str, Callable[[Any], Any]] = {
    "two l1 norms": lambda p: cp.norm1(p[0] - p[1]) + cp.norm1(p[1] - p[2]),
    "one l1 norm": lambda p: cp.norm1(p[0] - 0.3),
    "a sum of absolute values": lambda p: cp.sum(cp.abs(p - p.T)),
    "norms by rows": lambda p: cp.norm1(p[:2] - p[1:], axis=1),
    "weighted norms by rows": lambda p: [1, 2] @ cp.norm1(p[:2] - p[1:], axis=1),
    "the largest total variation": lambda p: cp.max(cp.sum(cp.abs(p[1:] - p[:-1]), axis=1)) / 2,
    "the largest of norms": lambda p: cp.maximum(cp.norm1(p[0] - p[1]), cp.norm_inf(p[2] - p[1])),
    "a mixed norm": lambda p: cp.mixed_norm(p[:2] - p[1:], 1, "inf"),
    "less the least": lambda p: 2 * cp.norm(p[0] - p[1], "inf") + cp.tv(p[2]) - cp.min(p, axis=0),
    "columns": lambda p: cp.max(cp.abs(p - 0.4), axis=0, keepdims=True) + cp.abs(p[:1] - 0.2),
}
"""Left sides with so many pieces that new variables take their place."""


@pytest.mark.parametrize("name", SUMS)
def test_a_design_within_a_sum_of_absolute_values_is_proved(name: str) -> None:
    program = build()
    free = solve(program)
    bend = SUMS[name]
    most = 0.8 * float(np.max(bend(cp.Constant(free.mechanism.matrix)).value))
    result = solve(program.with_constraints(own=bend(program.mechanism) <= most))
    assert result.status is Status.OPTIMAL
    assert np.max(bend(cp.Constant(result.mechanism.matrix)).value) <= most + 1e-8
    # cvxpy's own reduction to a cone program, without the package's constraints
    p, law = cp.Variable((3, 3), nonneg=True), np.array([0.5, 0.3, 0.2])
    limits = [p @ np.ones(3) == 1, p <= math.exp(0.5) * np.ones((3, 1)) @ (law @ p)[None, :]]
    loss = cp.sum(cp.multiply(law[:, None] * (1 - np.eye(3)), p))
    expected = cp.Problem(cp.Minimize(loss), [*limits, bend(p) <= most]).solve(solver="CLARABEL")
    assert result.value == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("name", [*SUMS, *BENT])
def test_a_lifted_constraint_projects_to_what_it_was(name: str) -> None:
    p = cp.Variable((3, 3))
    constraint = BENT[name][0](p) if name in BENT else SUMS[name](p) <= 0.8
    lifted = lift_constraint(constraint, [p])
    assert lifted is not None
    assert lifted.expr.is_affine()
    new = [one for one in lifted.variables() if one is not p]
    assert all(np.isfinite(one.get_bounds()).all() for one in new)
    for seed in range(6):
        known = np.random.default_rng(seed).dirichlet(np.ones(3), 3)
        p.value = known
        holds = bool((constraint.expr.value <= 1e-12).all())
        kept = cp.Problem(cp.Minimize(0), [lifted, p == known])
        kept.solve(solver="CLARABEL")
        assert (kept.status == "optimal") == holds


@pytest.mark.parametrize(
    "bend",
    [lambda p: cp.sum_largest(p, 2), cp.norm2, lambda p: cp.norm1(p) + cp.sum_squares(p)],
)
def test_a_bound_that_is_not_proved_says_why(bend: Callable[[Any], Any]) -> None:
    program = build()
    matrix = program.mechanism - 0.3
    constraint = bend(matrix[0]) <= 0.4
    assert split_constraint(constraint) is lift_constraint(constraint, [program.mechanism]) is None
    result = solve(program.with_constraints(own=bend(matrix[0]) <= 0.4))
    (claim,) = (one for one in result.certificate.checks() if one.holds is None)
    assert "one is not affine in the mechanism alone. At a kink one multiplier" in claim.detail
