"""Approximate PML as a requirement: PML up to a slack that survives post-processing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.arrays import (
    MAX_EXPONENT,
    FloatArray,
    check_nonnegative,
    check_probability,
)
from pmlopt.data.mechanism import Mechanism, MechanismLike
from pmlopt.data.prior import Prior, PriorLike
from pmlopt.measures import approximate_pml_level
from pmlopt.model.privacy.requirement import (
    JOINT_BOUND_HINT,
    CvxpyConstraints,
    FieldChecks,
    Requirement,
    Witness,
    check_certificate_array,
)
from pmlopt.model.uncertainty.support_functions import minimize_on_intervals
from pmlopt.solvers.solver_result import FACTOR_MARGIN_RTOL, tighten_factor
from pmlopt.solvers.structured.block_program import ColumnBlock, build_slack_block


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
    field_checks: ClassVar[FieldChecks] = {"epsilon": check_nonnegative}
    unsupported_hint: ClassVar[str] = JOINT_BOUND_HINT
    meaning: ClassVar[str] = (
        "No event is more than e^{limit} times as likely given anything, but for the slack."
    )

    def describe_violation(self, prior: Prior, mechanism: Mechanism) -> str:
        """Name the letter of which outcomes above epsilon have more than the slack."""
        matrix = mechanism.matrix
        law = prior.pmf @ mechanism.matrix
        over = np.maximum(matrix - math.exp(min(self.epsilon, 700.0)) * law, 0.0).sum(axis=1)
        worst = int(over.argmax())
        return (
            f"the outcomes above {self.epsilon:g} nats have {over[worst]:.6g} more than they may of "
            f"{prior.labels[worst]!r}, and the slack is {self.delta:g}"
        )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "delta", check_probability(self.delta))

    @property
    def limits(self) -> dict[str, float]:
        """Return the upper limits on the leakage levels by name, in nats."""
        return {"approximate_pml": self.epsilon}

    @property
    def scope(self) -> str:
        """Return text on the priors or slack of the bound; empty for the given prior only."""
        return f"with slack {self.delta:g}"

    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        """Compute a mechanism's leakage levels in nats, by the names of `limits`."""
        return {"approximate_pml": approximate_pml_level(prior, mechanism, self.delta)}

    def _exp_neg_epsilon(self, prior: Prior) -> float:
        """Return e^-epsilon, rounded down, with epsilon capped at the largest possible leakage."""
        return tighten_factor(math.exp(-min(self.epsilon, prior.max_leakage)))

    def to_cvxpy(
        self, prior: Prior, mechanism: cp.Expression, law: cp.Variable
    ) -> CvxpyConstraints:
        """Return the requirement as cvxpy constraints on an (N, M) variable and its (1, M) output law."""
        over = cp.Variable(mechanism.shape, nonneg=True, name="excess")
        exp_neg_epsilon = self._exp_neg_epsilon(prior)
        return CvxpyConstraints(
            {
                "excess": exp_neg_epsilon * mechanism - exp_neg_epsilon * over
                <= np.ones((prior.size, 1)) @ law,
                "approximate_pml": cp.sum(over, axis=1) <= self.delta * (1 - FACTOR_MARGIN_RTOL),
            },
            {"excess": over},
        )

    def auxiliary_values(self, prior: Prior, matrix: FloatArray) -> dict[str, FloatArray]:
        """Return the values of the auxiliary cvxpy variables of `to_cvxpy` at a mechanism."""
        return {
            "excess": np.maximum(matrix - prior.pmf @ matrix / self._exp_neg_epsilon(prior), 0.0)
        }

    def cone_block(self, prior: Prior) -> ColumnBlock | None:
        """Return the conic constraint on one column as a `ColumnBlock`; None without such a form."""
        return build_slack_block(
            prior.pmf, self._exp_neg_epsilon(prior), self.delta * (1 - FACTOR_MARGIN_RTOL)
        )

    def violation(self, weights: Any, matrix: Any, power: Callable[[float], Any]) -> Any:
        """Compute constraint violations of a mechanism: all at most 0 iff the requirement holds."""
        total = weights.sum()
        row = matrix[0].sum()
        # P[x,y] <= q[y] / p[x] always: past max_leakage nothing is above
        if self.epsilon > MAX_EXPONENT or power(self.epsilon) * weights.min() >= total:
            return 0 * matrix.max(axis=0)
        over = matrix * total - power(self.epsilon) * (weights @ matrix)
        numerator, denominator = self.delta.as_integer_ratio()
        return (over * (over > 0)).sum(axis=1).max() * denominator - numerator * total * row

    def support_function(self, prior: Prior, gains: FloatArray) -> float:
        """Compute max sum_xy p[x] gains[x,y] P[x,y] over matrices P >= 0 that meet the requirement."""
        return self.dual_bound(prior, gains, self.dual_certificate(prior, gains))

    def dual_certificate(self, prior: Prior, gains: FloatArray) -> Witness:
        """Return the (N,) optimal dual multipliers of the slack constraints."""
        return {"prices": _find_multipliers(prior, gains, self)}

    def dual_bound(self, prior: Prior, gains: FloatArray, certificate: Witness) -> float:
        """Compute the Lagrangian bound from nonnegative multipliers of the slack constraints.

        `delta sum m + max_y max sum_x p g lam - m (lam - e^eps)^+` over columns lam of mean one.

        The largest of one column takes letters by descending gain up to e^eps each, or without a limit at
        the price `g[x] - m[x] / p[x]`. It is the least of `c + e^eps <p, (g - c)^+>` over c from the best
        price on.
        """
        prices = np.maximum(check_certificate_array(certificate, "prices", (prior.size,)), 0.0)
        p = prior.pmf
        up = math.exp(min(self.epsilon, prior.max_leakage))
        order = np.argsort(-gains, axis=0, kind="stable")
        filled = np.cumsum(p[order], axis=0)
        last = np.minimum((filled * up < 1).sum(axis=0), len(p) - 1)
        edge = np.take_along_axis(gains, np.take_along_axis(order, last[None, :], axis=0), axis=0)[
            0
        ]
        cost = np.maximum(edge, (gains - (prices / p)[:, None]).max(axis=0))
        bounds = cost + up * (p @ np.maximum(gains - cost, 0.0))
        return self.delta * float(prices.sum()) + float(bounds.max())


def _find_multipliers(prior: Prior, gains: FloatArray, privacy: ApproximatePML) -> FloatArray:
    """Find the (N,) multipliers of the slack constraints with the least dual bound.

    A column y is worth at most tau iff `g[x,y] - m[x] / p[x] <= c_y(tau)` for all letters x, where c_y(tau)
    is the largest c with `c + e^eps <p, (g - c)^+> <= tau`. So the least m is `p[x] max_y (g[x,y] -
    c_y(tau))^+`, and the bound is convex in tau only.
    """
    p = prior.pmf
    up = math.exp(min(privacy.epsilon, prior.max_leakage))
    order = np.argsort(-gains, axis=0, kind="stable")
    values = np.take_along_axis(gains, order, axis=0)
    weights = p[order]
    mass = np.vstack([np.zeros(gains.shape[1]), np.cumsum(weights, axis=0)])
    sums = np.vstack([np.zeros(gains.shape[1]), np.cumsum(weights * values, axis=0)])
    # A column's share within which letters fill it: e^eps times a mass is known to a few roundings.
    rising = mass[:-1] * up < 1 - 1e-12  # else the rate below is noise
    levels = np.where(rising, values * (1 - up * mass[:-1]) + up * sums[:-1], -np.inf)
    lowest = np.where(rising, levels, np.inf).min(axis=0)
    columns = np.arange(gains.shape[1])

    def evaluate_at(tau: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the multipliers at one tau, the bound, and its slope."""
        above = np.minimum((levels > tau).sum(axis=0), rising.sum(axis=0) - 1)
        rate = 1 / (1 - up * mass[above, columns])
        over = gains - rate * (tau - up * sums[above, columns])
        best = over.argmax(axis=1)
        largest = over[np.arange(len(p)), best]
        paid = np.where(largest > 0, p, 0.0)
        bound = tau + privacy.delta * (paid @ largest)
        return paid * largest, bound, np.asarray(1 - privacy.delta * (paid @ rate[best]))

    low = np.array([lowest.max()])
    high = np.array([gains.max()])
    size = np.array([np.abs(gains).max()])
    return evaluate_at(
        minimize_on_intervals(lambda tau, _: evaluate_at(tau)[1:], low, high, size)[1]
    )[0]
