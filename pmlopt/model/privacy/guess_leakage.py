"""Leakage to an adversary with several guesses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.arrays import MAX_EXPONENT, FloatArray, check_integer, check_nonnegative
from pmlopt.data.mechanism import MechanismLike, pair_with_prior
from pmlopt.data.prior import Prior, PriorLike
from pmlopt.model.privacy.column_cost import ColumnCost, LargestPieceCost
from pmlopt.model.privacy.ratio_blocks import MIN_SLACK_NATS
from pmlopt.model.privacy.requirement import (
    CvxpyConstraints,
    FieldChecks,
    Requirement,
    Witness,
    check_certificate_array,
)
from pmlopt.solvers.solver_result import tighten_factor
from pmlopt.solvers.structured.block_program import ColumnBlock, build_largest_block


@dataclass(frozen=True)
class GuessLeakage(Requirement):
    """A limit on guessing gain: the success probability within k guesses grows by at most `e^epsilon`.

    The sum of the k largest `p[x] P[x,y]` is at most `e^epsilon G q[y]`, with G the sum of the k largest p.
    That is the leakage of the gain function of all sets of k letters, of which there are N over k; here a
    column has N + 1 variables. One guess is the multiplicative leakage of the most likely letter.

    Args:
        guesses: k, at least 1.
        epsilon: in nats.

    Raises:
        PrivacyError: k is no whole number of at least 1, or epsilon is negative, NaN or infinite.

    Source: [alvim2012measuring] (gain functions; this one is theirs for k tries).

    Examples:
        >>> prior = [0.4, 0.3, 0.2, 0.1]
        >>> exposing = [[1, 0], [1, 0], [0, 1], [0, 1]]
        >>> [round(math.exp(GuessLeakage(k, 1.0).level(prior, exposing)), 9) for k in (1, 2, 3)]
        [1.666666667, 1.428571429, 1.111111111]
    """

    guesses: int
    epsilon: float
    name: ClassVar[str] = "guess-leakage"
    field_checks: ClassVar[FieldChecks] = {"guesses": check_integer, "epsilon": check_nonnegative}
    unsupported_hint: ClassVar[str] = (
        "give GainLeakage with a row for each set of letters, or use PML, LDP or LIP"
    )
    meaning: ClassVar[str] = (
        "No outcome makes it more than e^{limit} times as likely to be right within the guesses."
    )

    def has_empty_interior(self, prior: Prior) -> bool:
        """Return whether the feasible set has (nearly) no interior, as with 0 nats about a secret."""
        return self.epsilon < MIN_SLACK_NATS

    @property
    def limits(self) -> dict[str, float]:
        """Return the upper limits on the leakage levels by name, in nats."""
        return {"guess_leakage": self.epsilon}

    @property
    def scope(self) -> str:
        """Return text on the priors or slack of the bound; empty for the given prior only."""
        return f"within {self.guesses} guess{'es' if self.guesses > 1 else ''}"

    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        """Compute a mechanism's leakage levels in nats, by the names of `limits`."""
        p, m = pair_with_prior(prior, mechanism)
        columns = m.matrix[:, np.ptp(m.matrix, axis=0) > 0]  # a constant reveals nothing
        if not columns.size:
            return {"guess_leakage": 0.0}
        ratios = _sum_largest(p.pmf[:, None] * columns, self.guesses) / (p.pmf @ columns)
        return {"guess_leakage": max(0.0, math.log(float(ratios.max()) / self._prior_success(p)))}

    def _prior_success(self, prior: Prior) -> float:
        """Return the guessing success probability before the release."""
        return float(_sum_largest(prior.pmf[:, None], self.guesses)[0])

    def _max_success(self, prior: Prior) -> float:
        """Return the largest allowed guessing success probability after an outcome."""
        return min(1.0, math.exp(min(self.epsilon, MAX_EXPONENT)) * self._prior_success(prior))

    def to_cvxpy(
        self, prior: Prior, mechanism: cp.Expression, law: cp.Variable
    ) -> CvxpyConstraints:
        """Return the requirement as cvxpy constraints on an (N, M) variable and its (1, M) output law."""
        shape = mechanism.shape
        over = cp.Variable(shape, nonneg=True, name="over")
        threshold = cp.Variable((1, shape[1]), nonneg=True, name="threshold")
        before = self._prior_success(prior)
        factor = tighten_factor(before / self._max_success(prior))
        joint = cp.multiply(prior.pmf[:, None], mechanism)
        return CvxpyConstraints(
            {
                "over": joint - np.ones((shape[0], 1)) @ threshold <= over,
                "guess_leakage": factor
                * (self.guesses * threshold + cp.sum(over, axis=0, keepdims=True))
                <= before * law,
            },
            {"over": over, "threshold": threshold},
        )

    def auxiliary_values(self, prior: Prior, matrix: FloatArray) -> dict[str, FloatArray]:
        """Return the values of the auxiliary cvxpy variables of `to_cvxpy` at a mechanism."""
        joint = np.sort(prior.pmf[:, None] * matrix, axis=0)[::-1]
        threshold = (
            joint[self.guesses - 1] if self.guesses <= prior.size else np.zeros(matrix.shape[1])
        )
        over = np.maximum(prior.pmf[:, None] * matrix - threshold, 0.0)
        return {"over": over, "threshold": threshold[None, :]}

    def column_cost(self, prior: Prior) -> ColumnCost | None:
        """Return the cost of each column that is bounded; None where there are many sets of guesses."""
        guesses = min(self.guesses, prior.size)
        # each set of guesses is a row that cuts the columns
        if math.comb(prior.size, guesses) > 2_000:
            return None
        chosen = combinations(range(prior.size), guesses)
        sets = np.array([np.isin(np.arange(prior.size), one) for one in chosen])
        return LargestPieceCost(self._max_success(prior), True, sets * prior.pmf)

    def cone_block(self, prior: Prior) -> ColumnBlock | None:
        """Return the conic constraint on one column as a `ColumnBlock`; None without such a form."""
        if self.has_empty_interior(prior):
            return None
        exp_neg_epsilon = tighten_factor(
            self._prior_success(prior) / self._max_success(prior)
        ) / self._prior_success(prior)
        return build_largest_block(prior.pmf, self.guesses, exp_neg_epsilon)

    def violation(self, weights: Any, matrix: Any, power: Callable[[float], Any]) -> Any:
        """Compute constraint violations of a mechanism: all at most 0 iff the requirement holds."""
        own = weights.reshape(-1, 1)
        law = weights @ matrix
        before = _sum_largest(own, self.guesses)[0]
        if self.epsilon > MAX_EXPONENT:
            return 0 * law
        over = (
            _sum_largest(own * matrix, self.guesses) * weights.sum()
            - power(self.epsilon) * before * law
        )
        # rounding must not give a constant a positive level
        return np.where((matrix == matrix[0]).all(axis=0) & (over > 0), 0 * law, over)

    def support_function(self, prior: Prior, gains: FloatArray) -> float:
        """Compute max sum_xy p[x] gains[x,y] P[x,y] over matrices P >= 0 that meet the requirement."""
        return self.dual_bound(prior, gains, self.dual_certificate(prior, gains))

    def dual_certificate(self, prior: Prior, gains: FloatArray) -> Witness:
        """Return the (M,) optimal dual multipliers, which minimise `dual_bound`.

        Posteriors in the order of the gains are mixtures of even laws on the first j letters. The first k
        have the share `min(1, k / j)` of such a law, and the mean of the first j gains is what it collects.
        The price is the slope, at the share that is allowed, of the least concave function above them.
        """
        means, shares = self._compute_points(gains)
        max_success = self._max_success(prior)
        inside = shares <= max_success
        outside = shares > max_success
        if not inside.any() or not outside.any():
            return {"prices": np.zeros(gains.shape[1])}
        near = np.flatnonzero(inside)
        far = np.flatnonzero(outside)
        rises = means[far][:, None] - means[near][None]
        slopes = rises / (shares[far][:, None] - shares[near][None])[..., None]
        # the bridge over the allowed share is the pair of points whose line is highest there
        heights = means[near][None] + slopes * (max_success - shares[near])[None, :, None]
        flat = heights.reshape(-1, gains.shape[1]).argmax(axis=0)
        bridge = slopes.reshape(-1, gains.shape[1])[flat, np.arange(gains.shape[1])]
        return {"prices": np.maximum(bridge, 0.0)}

    def dual_bound(self, prior: Prior, gains: FloatArray, certificate: Witness) -> float:
        """Compute the Lagrangian bound `max_j mean_j + r (share - share_j)` from multipliers r >= 0."""
        prices = np.maximum(check_certificate_array(certificate, "prices", (gains.shape[1],)), 0.0)
        means, shares = self._compute_points(gains)
        return float((means + prices * (self._max_success(prior) - shares[:, None])).max())

    def _compute_points(self, gains: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute (N, M) means of the j largest gains, and (N,) guessing probabilities for j letters."""
        counts = np.arange(1, len(gains) + 1)
        means = np.cumsum(np.sort(gains, axis=0)[::-1], axis=0) / counts[:, None]
        return means, np.minimum(1.0, self.guesses / counts)


def _sum_largest(columns: Any, count: int) -> Any:
    """Compute the (M,) sums of the `count` largest entries of each column."""
    return np.sort(columns, axis=0)[::-1][:count].sum(axis=0)
