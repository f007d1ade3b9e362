"""Second implementations, written from the definitions alone: what the package is compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from pmlopt import LDP, LIP, PML, ApproximatePML, MaximalLeakage, Prior
from pmlopt.model.privacy import Requirement

FloatArray = NDArray[np.float64]

_TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True)
class Optimum:
    """The optimal expected gain, a mechanism that reaches it, and the multipliers of the row sums."""

    value: float
    matrix: FloatArray
    multipliers: FloatArray


# ---------------------------------------------------------------- the dense linear programs


def linear_program(cost: FloatArray, **constraints: Any) -> Any:
    """The optimum of a linear program that has one; presolve calls a few tight ones infeasible, so twice."""
    for options in (_TIGHT, {**_TIGHT, "presolve": False}):
        answer = linprog(cost, **constraints, method="highs", options=options)
        if answer.status == 0:
            return answer
    raise AssertionError(answer.message)


def pml_rows(p: FloatArray, m: int, epsilon: float) -> FloatArray:
    """`e^-eps P[x,y] - sum_i p[i] P[i,y] <= 0` for each x and y, N^2 M coefficients of the matrix by rows."""
    return np.kron(np.exp(-epsilon) * np.eye(len(p)) - p, np.eye(m))


def ldp_rows(p: FloatArray, m: int, epsilon: float) -> FloatArray:
    """`e^-eps P[x,y] - P[z,y] <= 0` for each pair x, z and each y."""
    letters = np.eye(len(p))
    own, other = np.repeat(letters, len(p), axis=0), np.tile(letters, (len(p), 1))
    return np.kron(np.exp(-epsilon) * own - other, np.eye(m))


def lip_rows(p: FloatArray, m: int, lower: float, upper: float) -> FloatArray:
    """`e^-lower q[y] <= P[x,y] <= e^upper q[y]`."""
    return np.vstack(
        [pml_rows(p, m, upper), np.kron(np.exp(-lower) * p - np.eye(len(p)), np.eye(m))]
    )


def optimum(
    p: FloatArray,
    requirement: Requirement,
    gains: FloatArray,
    extra_rows: FloatArray | None = None,
    extra_right: FloatArray | None = None,
) -> Optimum:
    """The best expected gain over mechanisms that meet the requirement and `extra_rows P <= extra_right`."""
    n, m = gains.shape
    if isinstance(requirement, MaximalLeakage):
        rows, right, more = _peak_rows(n, m, requirement.epsilon)
    elif isinstance(requirement, ApproximatePML):
        rows, right, more = _slack_rows(p, m, requirement)
    else:
        rows, more = _column_rows(p, m, requirement), 0
        right = np.zeros(len(rows))
    if extra_rows is not None and extra_right is not None:
        rows = np.vstack([rows, np.hstack([extra_rows, np.zeros((len(extra_rows), more))])])
        right = np.concatenate([right, extra_right])
    equal = np.hstack([np.kron(np.eye(n), np.ones((1, m))), np.zeros((n, more))])
    cost = np.concatenate([-(p[:, None] * gains).ravel(), np.zeros(more)])
    answer = linear_program(cost, A_ub=rows, b_ub=right, A_eq=equal, b_eq=np.ones(n))
    matrix = np.asarray(answer.x[: n * m]).reshape(n, m)
    return Optimum(-float(answer.fun), matrix, -np.asarray(answer.eqlin.marginals) / p)


def _column_rows(p: FloatArray, m: int, requirement: Requirement) -> FloatArray:
    if isinstance(requirement, PML):
        assert requirement.over is None
        return pml_rows(p, m, requirement.epsilon)
    if isinstance(requirement, LDP):
        return ldp_rows(p, m, requirement.epsilon)
    assert isinstance(requirement, LIP)
    return lip_rows(p, m, requirement.lower, requirement.upper)


def _peak_rows(n: int, m: int, epsilon: float) -> tuple[FloatArray, FloatArray, int]:
    """`P[x,y] <= u[y]`, `sum_y u[y] <= e^eps`, with the M numbers u after the matrix."""
    peaks = np.hstack([np.eye(n * m), -np.tile(np.eye(m), (n, 1))])
    total = np.concatenate([np.zeros(n * m), np.ones(m)])
    right = np.concatenate([np.zeros(n * m), [np.exp(epsilon)]])
    return np.vstack([peaks, total]), right, m


def _slack_rows(
    p: FloatArray, m: int, privacy: ApproximatePML
) -> tuple[FloatArray, FloatArray, int]:
    """`e^-eps (P[x,y] - s[x,y]) <= q[y]`, `sum_y s[x,y] <= delta`, with N M numbers s after the matrix."""
    n, down = len(p), np.exp(-privacy.epsilon) * np.eye(len(p) * m)
    sums = np.kron(np.eye(n), np.ones((1, m)))
    rows = np.block([[pml_rows(p, m, privacy.epsilon), -down], [np.zeros((n, n * m)), sums]])
    return rows, np.concatenate([np.zeros(n * m), np.full(n, privacy.delta)]), n * m


def support(p: FloatArray, requirement: Requirement, gains: FloatArray) -> float:
    """The best `sum_x p[x] g[x] v[x]` of one normalised column, `<p, v> = 1`, by one small LP a column."""
    rows = _column_rows(p, 1, requirement)
    best = -np.inf
    for column in gains.T:
        answer = linear_program(
            -p * column, A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=p[None, :], b_eq=[1.0]
        )
        best = max(best, -float(answer.fun))
    return best


def joint_support(
    p: FloatArray,
    privacy: MaximalLeakage | ApproximatePML,
    gains: FloatArray,
    with_mass: bool = True,
) -> float:
    """The same where a bound is on all columns together; `with_mass`: `sum_y q[y] = 1`."""
    n, m = gains.shape
    if isinstance(privacy, MaximalLeakage):
        rows, right, more = _peak_rows(n, m, min(privacy.epsilon, float(np.log(n))))
    else:
        rows, right, more = _slack_rows(p, m, privacy)
    mass = np.concatenate([np.repeat(p, m), np.zeros(more)])[None, :]
    answer = linear_program(
        np.concatenate([-(p[:, None] * gains).ravel(), np.zeros(more)]),
        A_ub=rows,
        b_ub=right,
        A_eq=mass if with_mass else None,
        b_eq=[1.0] if with_mass else None,
    )
    return -float(answer.fun)


def violation(prior: Prior, requirement: Requirement, matrix: FloatArray) -> float:
    """The largest violation of the constraints on variables that hold the matrix."""
    mechanism = cp.Variable(matrix.shape, nonneg=True)
    law = cp.Variable((1, matrix.shape[1]), nonneg=True)
    declared = requirement.to_cvxpy(prior, mechanism, law)
    mechanism.value, law.value = matrix, (prior.pmf @ matrix)[None, :]
    for name, value in requirement.auxiliary_values(prior, matrix).items():
        declared.variables[name].value = value
    return max(
        float(np.max(constraint.violation())) for constraint in declared.constraints.values()
    )


# ---------------------------------------------------------------- exact arithmetic


def power_under(exponent: float) -> Fraction:
    """A rational below e^exponent by less than 1e-80 of it: Taylor's series, every term rounded down.

    Past 800 it is that of 800, which is below too, and above every ratio of probabilities in floats.
    """
    unit = 2**400
    x = Fraction(min(exponent, 800.0))
    total = term = unit
    order = 0
    while term:
        order += 1
        term = term * x.numerator // (x.denominator * order)
        total += term
    return Fraction(total, unit)


def exact_prior(prior: Prior) -> list[Fraction]:
    """The prior as rationals that sum to one."""
    known = prior.counts if prior.counts is not None else prior.probabilities.tolist()
    weights = [Fraction(value) for value in known]
    return [weight / sum(weights) for weight in weights]


def is_stochastic(matrix: FloatArray) -> bool:
    """Whether each row is non-negative and sums to exactly one."""
    return all(min(row) >= 0 and sum(map(Fraction, row)) == 1 for row in matrix.tolist())


def meets(prior: Prior, requirement: Requirement, matrix: FloatArray) -> bool:
    """Whether the numbers in the matrix meet the requirement, from its definition, as rationals."""
    p = exact_prior(prior)
    columns = [[Fraction(value) for value in column] for column in matrix.T.tolist()]
    if isinstance(requirement, MaximalLeakage):
        return sum(max(column) for column in columns) <= power_under(requirement.epsilon)
    occurring = [column for column in columns if max(column) > 0]
    return all(test(p, column) for column in occurring for test in _tests(requirement))


_Test = Callable[[Sequence[Fraction], Sequence[Fraction]], bool]


def _tests(requirement: Requirement) -> list[_Test]:
    if isinstance(requirement, PML):
        upper = power_under(requirement.epsilon)
        return [lambda p, v: max(v) <= upper * _mean(p, v)]
    if isinstance(requirement, LDP):
        ratio = power_under(requirement.epsilon)
        return [lambda p, v: max(v) <= ratio * min(v)]
    assert isinstance(requirement, LIP)
    above, below = power_under(requirement.upper), power_under(requirement.lower)
    return [lambda p, v: max(v) <= above * _mean(p, v), lambda p, v: _mean(p, v) <= below * min(v)]


def _mean(p: Sequence[Fraction], v: Sequence[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(p, v, strict=True)), Fraction(0))


# ---------------------------------------------------------------- random problems


@dataclass(frozen=True)
class Case:
    """A prior, a mechanism with all entries at least 0.01, and gains of a few units."""

    prior: Prior
    matrix: FloatArray
    gains: FloatArray
    rng: np.random.Generator


@st.composite
def cases(draw: st.DrawFn, max_size: int = 6) -> Case:
    """Random problems of up to `max_size` letters and outputs."""
    n = draw(st.integers(2, max_size), label="letters")
    m = draw(st.integers(2, max_size), label="outputs")
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    spread = draw(st.sampled_from([0.3, 1.0, 10.0]), label="concentration")
    return random_case(rng, n, m, spread)


def random_case(rng: np.random.Generator, n: int, m: int, spread: float = 1.0) -> Case:
    """One random problem."""
    prior = Prior(random_prior(rng, n, spread))
    matrix = mixed(rng.dirichlet(np.full(m, spread), n), 0.1 * np.full((n, m), 1 / m))
    return Case(prior, matrix, rng.normal(size=(n, m)), rng)


def random_prior(rng: np.random.Generator, n: int, spread: float = 1.0) -> FloatArray:
    """A Dirichlet prior, each entry at least about 1e-3 / N."""
    p = rng.dirichlet(np.full(n, spread)) + 1e-3 / n
    return np.asarray(p / p.sum())


def mixed(matrix: FloatArray, floor: FloatArray) -> FloatArray:
    """Rows of `matrix + floor` divided by their sums."""
    total = matrix + floor
    return np.asarray(total / total.sum(axis=1, keepdims=True))


def requirement_at(kind: str, levels: dict[str, float], factor: float) -> Requirement:
    """The requirement of a kind whose every limit is `factor` times the level of a mechanism."""
    limits = [factor * level for level in levels.values()]
    if kind == "lip":
        return LIP(*limits)
    return bounded(kind, limits[0])


def bounded(kind: str, limit: float) -> Requirement:
    """The requirement of a kind with the bound; of LIP, that from below, the one from above being 1."""
    makers: dict[str, Callable[[float], Requirement]] = {
        "pml": PML,
        "ldp": LDP,
        "lip": lambda lower: LIP(lower, 1.0),
        "maximal-leakage": MaximalLeakage,
    }
    return makers[kind](limit)


KINDS = ("pml", "ldp", "lip", "maximal-leakage")


def levels_of(kind: str, prior: Prior, matrix: FloatArray) -> dict[str, float]:
    """The levels of a matrix, from the definitions."""
    q = prior.pmf @ matrix
    upper, lower = np.log(matrix.max(axis=0) / q).max(), -np.log(matrix.min(axis=0) / q).min()
    return {
        "pml": {"pml": float(upper)},
        "ldp": {"ldp": float(np.log(matrix.max(axis=0) / matrix.min(axis=0)).max())},
        "lip": {"lip_lower": float(lower), "lip_upper": float(upper)},
        "maximal-leakage": {"maximal_leakage": float(np.log(matrix.max(axis=0).sum()))},
    }[kind]
