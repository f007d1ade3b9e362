"""Conformance suites that compare the forms of a requirement, utility or set of priors.

A requirement is a number, a constraint in cvxpy, a bound in exact arithmetic and a support function; a
utility a number and an expression; a set of priors a worst case and its robust counterpart. What holds for
one form must hold for the others, or a certificate that rests on one of them is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np

from pmlopt.core.numbers.arrays import GRID_DENOMINATOR, FloatArray
from pmlopt.data.prior import Prior
from pmlopt.errors import SolverError
from pmlopt.model.privacy import LDP, Requirement
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.model.utility import ExpectedGain, LinearUtility, SubConvex
from pmlopt.programs.certificate import Status
from pmlopt.programs.designs import design
from pmlopt.programs.exact.rounding import is_met_exactly, round_rows_to_grid
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.programs.solving import solve

DEFAULT_INSTANCES = 12
"""Random priors and mechanisms that a suite takes where no one states how many."""


SOLVER_ATOL = 1e-6
"""How far two values that a solver found may differ, of a gain of size one."""

ROUNDING_ATOL = 1e-11
"""How far two forms of one number may differ by the rounding of floats and the margin of constraints."""


class ConformanceError(AssertionError):
    """The error that two forms of one object disagree."""


@dataclass(frozen=True, eq=False)
class _BoundaryCase:
    """A test case at a requirement's boundary: feasible and infeasible mechanism, and a gain."""

    prior: Prior
    inside: FloatArray
    outside: FloatArray | None
    gains: FloatArray


def check_requirement(
    requirement: Requirement,
    prior: Prior | None = None,
    *,
    instances: int = DEFAULT_INSTANCES,
    seed: int = 0,
) -> None:
    """Check that all forms of a requirement agree.

    On random priors and mechanisms just within and just beyond it: the number (`levels`, `limits`, `holds`),
    the constraint (`constraints` with `auxiliary`), exact arithmetic (`excess`), the support function
    (`relaxation`, never below what a mechanism within it gains), convexity, the `block` where there is one;
    and that designs under it are solved with a proof.

    Args:
        requirement: with its limits.
        prior: the prior to check it on, where it is for one only; left out, random ones of 2 to 5 letters.
        instances: how many.
        seed: of the random numbers.

    Raises:
        ConformanceError: two forms disagree.

    Examples:
        >>> from pmlopt import PML
        >>> check_requirement(PML(0.7), instances=3)
    """
    for case in _generate_cases(requirement, prior, instances, seed):
        own = requirement.for_prior(case.prior)
        _check_numbers(own, case)
        _check_convexity(own, case)
        _check_support(own, case)
        _check_design(own, case)


def check_utility(
    utility: LinearUtility | SubConvex,
    prior: Prior,
    *,
    instances: int = DEFAULT_INSTANCES,
    seed: int = 0,
) -> None:
    """Check that a utility's value and design form agree.

    Of a linear one that the expression is the number; of a sub-convex one that it is convex and homogeneous
    on random columns; of both that no random mechanism within epsilon-LDP betters the optimum of its design.

    Args:
        utility: `ExpectedGain`, `ExpectedLoss` or a sub-convex one.
        prior: on whose letters it is defined.
        instances: how many random mechanisms.
        seed: of the random numbers.

    Raises:
        ConformanceError: two forms disagree.
        UtilityError: it fails, or is not convex or homogeneous.

    Examples:
        >>> from pmlopt import MutualInformation
        >>> check_utility(MutualInformation(), Prior([0.5, 0.3, 0.2]), instances=3)
    """
    rng = np.random.default_rng(seed)
    requirement = LDP(1.0)
    program = design(prior, requirement, utility)
    best = solve(program)
    _check_agreement(
        best.status is Status.OPTIMAL, f"the design with {utility!r} ends {best.status.value}"
    )
    sign = 1 if utility.maximised else -1
    columns = len(program.outputs) if program.outputs is not None else prior.size
    for _ in range(instances):
        sharp = rng.dirichlet(np.full(columns, 0.5), prior.size)
        inside = _mix_to_boundary(requirement, prior, sharp)[0]
        if isinstance(utility, LinearUtility):
            value = _check_expression(utility, prior, program.outputs, inside)
        else:
            utility.check(prior)
            value = utility.value(prior, inside)
        _check_agreement(
            sign * value <= sign * best.bound + SOLVER_ATOL * max(1.0, abs(best.bound)),
            f"a mechanism within {requirement} has the utility {value}, above the bound {best.bound}",
        )


def check_prior_set(priors: PriorSet, *, instances: int = DEFAULT_INSTANCES, seed: int = 0) -> None:
    """Check that a set of priors' worst case and robust form agree.

    On random columns: the least mean over the set equals the largest value that the declared constraints
    allow, and the least under the constraints on a prior and on the polytope, where there is one; the
    auxiliary values attain it, integers give the same and never more than a prior of the set has, the worst
    prior has that mean, and the rationals near that prior are near it and in the set. The support function
    bounds what columns within the set gain, and is the largest gain of a convex program.

    Args:
        priors: the set.
        instances: how many random matrices.
        seed: of the random numbers.

    Raises:
        ConformanceError: two forms disagree.

    Examples:
        >>> from pmlopt import L1Ball
        >>> check_prior_set(L1Ball([0.5, 0.3, 0.2], 0.1), instances=3)
    """
    rng = np.random.default_rng(seed)
    for _ in range(instances):
        matrix = round_rows_to_grid(rng.dirichlet(np.full(2, 0.7), priors.size))
        least = priors.min_mean(matrix)
        column = cp.Variable(matrix.shape, nonneg=True)
        largest = cp.Variable((1, 2), nonneg=True)
        declared = priors.to_cvxpy(column, largest)
        fixed = [column == matrix, largest == matrix.max(axis=0, keepdims=True)]
        problem = cp.Problem(
            cp.Maximize(cp.sum(declared.value)), [*fixed, *declared.constraints.values()]
        )
        problem.solve(solver=cp.CLARABEL)
        _check_agreement(
            _are_close(declared.value.value[0], least, SOLVER_ATOL),
            f"the least means of {matrix.tolist()} are {least}, and the constraints allow "
            f"{declared.value.value[0]}",
        )
        column.value = matrix
        largest.value = matrix.max(axis=0, keepdims=True)
        for name, value in priors.auxiliary_values(matrix).items():
            declared.variables[name].value = value
        worst = max(
            (_constraint_violation(one) for one in declared.constraints.values()), default=0.0
        )
        _check_agreement(
            worst <= ROUNDING_ATOL,
            f"the auxiliary values of {matrix.tolist()} break a constraint by {worst}",
        )
        reached = np.asarray(declared.value.value)[0]
        _check_agreement(
            _are_close(reached, least),
            f"the auxiliary values of {matrix.tolist()} give {reached}, and the least means are {least}",
        )
        sums, unit = priors.min_mean_scaled(
            (matrix * GRID_DENOMINATOR).astype(np.int64).astype(object)
        )
        exact = np.array([float(Fraction(int(s), int(unit) * GRID_DENOMINATOR)) for s in sums])
        _check_agreement(
            _are_close(exact, least, ROUNDING_ATOL + priors.mean_atol),
            f"`min_mean_scaled` in integers is {exact} for {matrix.tolist()}, and in floats {least}",
        )
        for y, mean in enumerate(least):
            _check_members(priors, matrix[:, y], float(mean))
            worst_mean = float(priors.minimizer(matrix[:, y]) @ matrix[:, y])
            _check_agreement(
                abs(worst_mean - mean) <= ROUNDING_ATOL + priors.mean_atol,
                f"the worst prior of {matrix[:, y].tolist()} has the mean {worst_mean}, the least is {mean}",
            )


def _check_members(priors: PriorSet, column: FloatArray, mean: float) -> None:
    """Check a least mean against the set as constraints on a prior and as a polytope, and that its minimizer
    is in the set and near a rational member.
    """
    prior = cp.Variable((priors.size, 1), nonneg=True)
    forms = {"constraints on a prior": priors.constrain_measures(prior, np.ones((1, 1)))}
    if (polytope := priors.polytope()) is not None:
        z = cp.Variable((polytope.parts.shape[1], 1), nonneg=True)
        rows = polytope.rows @ z - polytope.right[:, None]
        equal = polytope.equal
        held = [rows[equal] == 0, rows[~equal] <= 0] if equal.any() else [rows <= 0]
        forms["polytope"] = [prior == polytope.parts @ z, *held]
    for name, rules in forms.items():
        problem = cp.Problem(cp.Minimize(cp.sum(column @ prior)), [cp.sum(prior) == 1, *rules])
        problem.solve(solver=cp.CLARABEL)
        _check_agreement(
            problem.value is not None and abs(float(problem.value) - mean) <= SOLVER_ATOL,
            f"the least mean of {column.tolist()} is {mean}, and by its {name} {problem.value}",
        )
    worst = priors.minimizer(column)
    near = priors.project_to_rationals(worst)
    if near is None:
        _check_agreement(
            priors.contains_law(worst), f"the minimizer {worst.tolist()} is not in {priors!r}"
        )
        return
    off = float(np.abs(near.astype(np.float64) - worst).max())
    _check_agreement(
        sum(near) == 1
        and min(near) >= 0
        and off <= ROUNDING_ATOL
        and priors.contains_law(near.astype(np.float64)),
        f"the rationals near {worst.tolist()} are {near.tolist()}, off by {off}",
    )


def _check_names(requirement: Requirement, prior: Prior) -> None:
    """Check that limit and level names agree, and that constants are feasible."""
    constant = np.full((prior.size, 2), 0.5)
    levels = requirement.levels(prior, constant)
    _check_agreement(
        set(levels) == set(requirement.limits),
        f"`levels` are named {sorted(levels)}, and `limits` {sorted(requirement.limits)}",
    )
    _check_agreement(
        requirement.holds(prior, constant),
        f"a constant mechanism does not meet {requirement!r}: its levels are {levels}",
    )


def _check_numbers(requirement: Requirement, case: _BoundaryCase) -> None:
    """Check that levels, violations and exact arithmetic agree at the boundary."""
    inside = round_rows_to_grid(case.inside)
    _check_agreement(
        requirement.holds(case.prior, inside), f"`holds` is false just within {requirement!r}"
    )
    _check_agreement(
        is_met_exactly(case.prior, requirement, inside),
        f"`excess` in integers is positive within {requirement!r}",
    )
    broken = _max_violation(requirement, case.prior, inside)
    _check_agreement(
        broken <= ROUNDING_ATOL, f"`constraints` are broken by {broken} just within {requirement!r}"
    )
    if case.outside is None:
        return
    outside = round_rows_to_grid(case.outside)
    _check_agreement(
        not requirement.holds(case.prior, outside), f"`holds` is true just beyond {requirement!r}"
    )
    _check_agreement(
        not is_met_exactly(case.prior, requirement, outside),
        f"`excess` in integers is at most 0 just beyond {requirement!r}",
    )
    broken = _max_violation(requirement, case.prior, outside)
    _check_agreement(broken > 0, f"`constraints` hold just beyond {requirement!r}")


def _check_convexity(requirement: Requirement, case: _BoundaryCase) -> None:
    """Check that convex combinations of a feasible and a constant mechanism are feasible."""
    constant = np.tile(
        np.full(case.inside.shape[1], 1 / case.inside.shape[1]), (case.prior.size, 1)
    )
    for share in (0.25, 0.5, 0.75):
        mixed = round_rows_to_grid((1 - share) * case.inside + share * constant)
        _check_agreement(
            requirement.holds(case.prior, mixed),
            f"{requirement!r} holds for two mechanisms and not for a convex combination of them",
        )


def _check_support(requirement: Requirement, case: _BoundaryCase) -> None:
    """Check that the support function bounds the gain of a feasible mechanism."""
    law = case.prior.pmf @ case.inside
    lifts = case.inside / np.where(law > 0, law, 1.0)  # what the mechanism itself is good at
    for gains in (case.gains, lifts):
        value = float((case.prior.pmf[:, None] * gains * case.inside).sum())
        above = requirement.support_function(case.prior, gains)
        _check_agreement(
            above >= value - ROUNDING_ATOL,
            f"`relaxation` is {above} under {requirement!r}, and a mechanism within it gains {value}",
        )


def _check_design(requirement: Requirement, case: _BoundaryCase) -> None:
    """Check that a design is solved with proof by cvxpy and by blocks."""
    program = design(case.prior, requirement, ExpectedGain(case.gains), case.gains.shape[1])
    names = ["clarabel"]
    if requirement.cone_block(case.prior) is not None:
        names += ["highs", "block-ipm"]
    for name in names:
        form = "constraints" if name == "clarabel" else "block"
        what = f"a design under {requirement!r} by its `{form}`"
        try:
            result = solve(program, name)
        except SolverError as error:
            raise ConformanceError(f"{what}: {error}") from error
        _check_agreement(
            result.status is Status.OPTIMAL or not _can_close_gap(program),
            f"{what} ends {result.status.value}, with a gap of {result.gap:.3g}",
        )
        _check_agreement(
            result.certificate.verify(), f"a design under {requirement!r} does not verify"
        )


def _can_close_gap(program: LinearDesign) -> bool:
    """Return whether a program is linear with a tight bound."""
    privacy = program.privacy
    block = program.column_block is not None
    if not privacy.is_tight(program.prior) or (
        not block and privacy.has_empty_interior(program.prior)
    ):
        return False
    return block or program.list_ratios() is not None or bool(program.problem.is_lp())


def _check_expression(
    utility: LinearUtility, prior: Prior, outputs: tuple[Any, ...] | None, matrix: FloatArray
) -> float:
    """Check that a utility's cvxpy expression equals its value."""
    assert outputs is not None
    table = utility.evaluate_table(prior.labels, outputs)
    variable = cp.Variable(matrix.shape)
    variable.value = matrix
    value = float((prior.pmf[:, None] * table * matrix).sum())
    twin = float(utility.to_cvxpy(prior, table, variable).value)
    _check_agreement(
        abs(twin - value) <= ROUNDING_ATOL,
        f"the expression of {utility!r} is {twin}, and its number {value}",
    )
    return value


def _generate_cases(
    requirement: Requirement, prior: Prior | None, instances: int, seed: int
) -> Iterator[_BoundaryCase]:
    """Yield random cases at a requirement's boundary."""
    rng = np.random.default_rng(seed)
    for _ in range(instances):
        known = prior or Prior(rng.dirichlet(np.full(int(rng.integers(2, 6)), 2.0)))
        outputs = int(rng.integers(2, 5))
        sharp = rng.dirichlet(np.full(outputs, 0.3), known.size)
        _check_names(requirement, known)
        inside, outside = _mix_to_boundary(requirement, known, sharp)
        yield _BoundaryCase(known, inside, outside, rng.normal(size=sharp.shape))


def _mix_to_boundary(
    requirement: Requirement, prior: Prior, sharp: FloatArray
) -> tuple[FloatArray, FloatArray | None]:
    """Mix a mechanism with its output law to just inside and outside of a requirement."""
    # How far inside or outside of its boundary a mechanism is put, as a share of the way to a constant.
    just = 1e-6
    law = prior.pmf @ sharp

    def mix_with_own_law(share: float) -> FloatArray:
        return (1 - share) * sharp + share * law

    if requirement.holds(prior, sharp):
        return mix_with_own_law(just), None
    low, high = 0.0, 1.0  # beyond, within
    while high - low > just / 10:
        middle = (low + high) / 2
        low, high = (
            (low, middle) if requirement.holds(prior, mix_with_own_law(middle)) else (middle, high)
        )
    beyond = mix_with_own_law(max(0.0, low - just))
    return mix_with_own_law(min(1.0, high + just)), beyond if not math.isclose(low, 0.0) else None


def _max_violation(requirement: Requirement, prior: Prior, matrix: FloatArray) -> float:
    """Compute the largest violation of a requirement's cvxpy constraints at a matrix."""
    mechanism = cp.Variable(matrix.shape, nonneg=True)
    law = cp.Variable((1, matrix.shape[1]), nonneg=True)
    declared = requirement.to_cvxpy(prior, mechanism, law)
    mechanism.value = matrix
    law.value = (prior.pmf @ matrix)[None, :]
    for name, value in requirement.auxiliary_values(prior, matrix).items():
        declared.variables[name].value = value
    return max(map(_constraint_violation, declared.constraints.values()))


def _constraint_violation(constraint: cp.Constraint) -> float:
    """Compute the violation of a cvxpy constraint at current values."""
    if isinstance(constraint, cp.PowCone3D):
        x, y, z = (part.value for part in constraint.args)
        order = constraint.alpha.value
        return float((np.abs(z) - x**order * y ** (1 - order)).max())
    if isinstance(constraint, cp.constraints.ExpCone):
        x, y, z = (part.value for part in constraint.args)
        with np.errstate(divide="ignore", invalid="ignore"):
            powers = np.where(y > 0, y * np.exp(x / np.where(y > 0, y, 1.0)), np.maximum(x, 0.0))
        return float((powers - z).max())
    return float(np.max(constraint.violation()))


def _are_close(one: FloatArray, other: FloatArray, room: float = ROUNDING_ATOL) -> bool:
    """Return whether two arrays agree up to an absolute tolerance."""
    return bool(np.allclose(one, other, atol=room, rtol=0))


def _check_agreement(holds: bool, message: str) -> None:
    """Raise a ConformanceError unless a condition holds."""
    if not holds:
        raise ConformanceError(message)
