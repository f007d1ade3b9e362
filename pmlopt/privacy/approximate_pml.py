"""Approximate PML as a requirement: PML up to a slack that survives post-processing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pmlopt.arrays import FloatArray, nonnegative, probability
from pmlopt.errors import PrivacyError
from pmlopt.measures import approximate_pml_level
from pmlopt.mechanism import MechanismLike
from pmlopt.prior import Prior, PriorLike
from pmlopt.privacy.requirement import LARGEST_EXPONENT, MARGIN, Declared, Requirement, below
from pmlopt.uncertainty.column_families import Family

if TYPE_CHECKING:
    import cvxpy as cp


@dataclass(frozen=True)
class ApproximatePML(Requirement):
    """(epsilon, delta)-approximate PML: `P(E | x) <= e^epsilon P(E) + delta` for every letter x and event E.

    That is `psi_2(epsilon) = max_x sum_y max(0, P[x,y] - e^epsilon q[y]) <= delta`. Post-processing keeps it.
    It is no bound on the probability of a leakage above epsilon: for that see `envelope`.

    Args:
        epsilon: in nats.
        delta: the slack, in (0, 1).

    Raises:
        PrivacyError: epsilon is negative, NaN or infinite, or delta is not in (0, 1).

    Source: [saeidian2026envelopes, Section III], psi_2, and [saeidian2026envelopes, Theorem 1 (ii)].

    Examples:
        >>> halves = [[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]]
        >>> ApproximatePML(math.log(3), 0.051).holds([0.25] * 4, halves)
        True
        >>> ApproximatePML(math.log(3), 0.049).holds([0.25] * 4, halves)
        False
    """

    epsilon: float
    delta: float
    name: ClassVar[str] = "approximate-pml"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", nonnegative(self.epsilon, "epsilon", PrivacyError))
        object.__setattr__(self, "delta", probability(self.delta))

    @property
    def limits(self) -> dict[str, float]:
        return {"approximate_pml": self.epsilon}

    @property
    def scope(self) -> str:
        return f"with slack {self.delta:g}"

    @property
    def details(self) -> dict[str, Any]:
        return {"delta": self.delta}

    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        return {"approximate_pml": approximate_pml_level(prior, mechanism, self.delta)}

    def constraints(self, prior: Prior, mechanism: cp.Variable, law: cp.Variable) -> Declared:
        import cvxpy as cp

        over = cp.Variable(mechanism.shape, nonneg=True, name="excess")
        factor = below(math.exp(-min(self.epsilon, prior.max_leakage)))
        return Declared(
            {
                "excess": factor * mechanism - factor * over <= np.ones((prior.size, 1)) @ law,
                "approximate_pml": cp.sum(over, axis=1) <= self.delta * (1 - MARGIN),
            },
            {"excess": over},
        )

    def auxiliary(self, prior: Prior, matrix: FloatArray) -> dict[str, FloatArray]:
        law = prior.pmf @ matrix
        factor = below(math.exp(-min(self.epsilon, prior.max_leakage)))
        return {"excess": np.maximum(matrix - law / factor, 0.0)}

    def excess(self, weights: Any, matrix: Any, power: Callable[[float], Any]) -> Any:
        total, row = weights.sum(), matrix[0].sum()
        # P[x,y] <= q[y] / p[x] always: past max_leakage nothing is above
        if self.epsilon > LARGEST_EXPONENT or power(self.epsilon) * weights.min() >= total:
            return 0 * matrix.max(axis=0)
        over = matrix * total - power(self.epsilon) * (weights @ matrix)
        numerator, denominator = self.delta.as_integer_ratio()
        return (over * (over > 0)).sum(axis=1).max() * denominator - numerator * total * row

    def relaxation(self, prior: Prior, gains: FloatArray) -> float:
        # with prices m >= 0 of the slack: columns apart again, see _priced; the prices of a linear program
        return min(_priced(prior, gains, self, prices) for prices in _prices(prior, gains, self))

    def columns(self, prior: Prior) -> tuple[Family, ...]:
        raise PrivacyError(
            "approximate PML bounds all columns of a mechanism together, and sub-convex utilities need a "
            "bound on each: use PML, LDP or LIP"
        )


def _priced(prior: Prior, gains: FloatArray, privacy: ApproximatePML, prices: FloatArray) -> float:
    """Upper bound on the gains from multipliers m >= 0 of the slack constraints.

    `delta sum m + max_y max sum_x p g lam - m (lam - e^eps)^+` over columns lam of mean one.

    The largest of one column takes letters by descending gain up to e^eps each, or without a limit at the
    price `g[x] - m[x] / p[x]`. It is the least of `c + e^eps <p, (g - c)^+>` over c from the best price on.
    """
    p, up = prior.pmf, math.exp(min(privacy.epsilon, prior.max_leakage))
    order = np.argsort(-gains, axis=0, kind="stable")
    filled = np.cumsum(p[order], axis=0)
    last = np.minimum((filled * up < 1).sum(axis=0), len(p) - 1)
    edge = np.take_along_axis(gains, np.take_along_axis(order, last[None, :], axis=0), axis=0)[0]
    best = (gains - (prices / p)[:, None]).max(axis=0)
    cost = np.maximum(edge, best)
    worth = cost + up * (p @ np.maximum(gains - cost, 0.0))
    return privacy.delta * float(prices.sum()) + float(worth.max())


def _prices(prior: Prior, gains: FloatArray, privacy: ApproximatePML) -> list[FloatArray]:
    """Multipliers of the slack constraints: so large that no slack pays, and those of the linear program."""
    import cvxpy as cp

    n, m = gains.shape
    p = prior.pmf
    scale = float(np.abs(gains).max(initial=0.0)) or 1.0
    none = 2 * scale * np.ones(n)
    matrix = cp.Variable((n, m), nonneg=True)
    law = cp.Variable((1, m), nonneg=True)
    over = cp.Variable((n, m), nonneg=True)
    down = math.exp(-min(privacy.epsilon, prior.max_leakage))
    budget = cp.sum(over, axis=1) <= privacy.delta
    problem = cp.Problem(
        cp.Maximize(cp.sum(cp.multiply(p[:, None] * gains / scale, matrix))),
        [
            down * (matrix - over) <= np.ones((n, 1)) @ law,
            p[None, :] @ matrix == law,
            cp.sum(law) == 1,
            budget,
        ],
    )
    try:
        problem.solve(solver=cp.HIGHS)
    except cp.SolverError:
        return [none]
    if budget.dual_value is None:
        return [none]
    return [none, np.maximum(np.asarray(budget.dual_value), 0.0) * scale]
