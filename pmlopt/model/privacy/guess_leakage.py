"""Leakage to an adversary who may guess several times."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from pmlopt.core.arrays import FloatArray, check_integer, check_nonnegative
from pmlopt.core.lazy_imports import cp
from pmlopt.data.mechanism import MechanismLike, pair_with_prior
from pmlopt.data.prior import Prior, PriorLike
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy.column_cost import ColumnCost, LargestPieceCost
from pmlopt.model.privacy.factors import MAX_EXPONENT, tightened
from pmlopt.model.privacy.ratios import MIN_SLACK_NATS
from pmlopt.model.privacy.requirement import (
    CvxpyConstraints,
    Requirement,
    Witness,
    check_certificate_array,
)
from pmlopt.solvers.structured.block_program import ColumnBlock, build_largest_block


@dataclass(frozen=True)
class GuessLeakage(Requirement):
    """A bound on guessing: the chance to be right within k guesses grows by at most `e^epsilon`.

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
    unsupported_hint: ClassVar[str] = (
        "give GainLeakage with a row for each set of letters, or use PML, LDP or LIP"
    )
    meaning: ClassVar[str] = (
        "No outcome makes it more than e^{limit} times as likely to be right within the guesses."
    )

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "guesses", check_integer(self.guesses, "the number of guesses", PrivacyError)
        )
        object.__setattr__(
            self, "epsilon", check_nonnegative(self.epsilon, "epsilon", PrivacyError)
        )

    def has_empty_interior(self, prior: Prior) -> bool:
        """Return whether a constant meets a bound with little slack, such as one of 0 nats about a secret."""
        return self.epsilon < MIN_SLACK_NATS

    @property
    def limits(self) -> dict[str, float]:
        """Return the claimed bounds by name, in nats."""
        return {"guess_leakage": self.epsilon}

    @property
    def scope(self) -> str:
        """Return the priors or the slack of the bound in words; empty where it is for the given prior."""
        return f"within {self.guesses} guess{'es' if self.guesses > 1 else ''}"

    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        """Compute the levels of a mechanism in nats, under the same names as `limits`."""
        p, m = pair_with_prior(prior, mechanism)
        columns = m.matrix[:, np.ptp(m.matrix, axis=0) > 0]  # a constant reveals nothing
        if not columns.size:
            return {"guess_leakage": 0.0}
        ratios = _sum_largest(p.pmf[:, None] * columns, self.guesses) / (p.pmf @ columns)
        return {"guess_leakage": max(0.0, math.log(float(ratios.max()) / self._prior_success(p)))}

    def _prior_success(self, prior: Prior) -> float:
        """Return the chance to be right before anything is released."""
        return float(_sum_largest(prior.pmf[:, None], self.guesses)[0])

    def _max_success(self, prior: Prior) -> float:
        """Return the chance to be right that an outcome may leave, at most one."""
        return min(1.0, math.exp(min(self.epsilon, MAX_EXPONENT)) * self._prior_success(prior))

    def to_cvxpy(
        self, prior: Prior, mechanism: cp.Expression, law: cp.Variable
    ) -> CvxpyConstraints:
        """Return the requirement on an (N, M) variable and its (1, M) output law, in sparse form."""
        shape = mechanism.shape
        over = cp.Variable(shape, nonneg=True, name="over")
        threshold = cp.Variable((1, shape[1]), nonneg=True, name="threshold")
        before = self._prior_success(prior)
        factor = tightened(before / self._max_success(prior))
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
        """Return the values that the variables brought by `to_cvxpy` take at a given matrix."""
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
        """Return what it requires of one column as a `ColumnBlock`; None where it has no such form, or no
        interior.
        """
        if self.has_empty_interior(prior):
            return None
        exp_neg_epsilon = tightened(
            self._prior_success(prior) / self._max_success(prior)
        ) / self._prior_success(prior)
        return build_largest_block(prior.pmf, self.guesses, exp_neg_epsilon)

    def violation(self, weights: Any, matrix: Any, power: Callable[[float], Any]) -> Any:
        """Compute violations of the bound: numbers that are all at most 0 iff the requirement holds."""
        own = weights.reshape(-1, 1)
        law, before = weights @ matrix, _sum_largest(own, self.guesses)[0]
        if self.epsilon > MAX_EXPONENT:
            return 0 * law
        over = (
            _sum_largest(own * matrix, self.guesses) * weights.sum()
            - power(self.epsilon) * before * law
        )
        # rounding must not give a constant a positive level
        return np.where((matrix == matrix[0]).all(axis=0) & (over > 0), 0 * law, over)

    def support_function(self, prior: Prior, gains: FloatArray) -> float:
        """Compute the support function of the bound: max sum_xy p[x] gains[x,y] P[x,y] over P >= 0 within
        it.
        """
        return self.dual_bound(prior, gains, self.dual_certificate(prior, gains))

    def dual_certificate(self, prior: Prior, gains: FloatArray) -> Witness:
        """Return the (M,) multipliers of the bound at which `dual_bound` is least.

        Posteriors in the order of the gains are mixtures of even laws on the first j letters. The first k
        have the share `min(1, k / j)` of such a law, and the mean of the first j gains is what it collects.
        The price is the slope, at the share that is allowed, of the least concave function above them.
        """
        means, shares = self._compute_points(gains)
        max_success = self._max_success(prior)
        inside, outside = shares <= max_success, shares > max_success
        if not inside.any() or not outside.any():
            return {"prices": np.zeros(gains.shape[1])}
        near, far = np.flatnonzero(inside), np.flatnonzero(outside)
        rises = means[far][:, None] - means[near][None]
        slopes = rises / (shares[far][:, None] - shares[near][None])[..., None]
        # the bridge over the allowed share is the pair of points whose line is highest there
        heights = means[near][None] + slopes * (max_success - shares[near])[None, :, None]
        flat = heights.reshape(-1, gains.shape[1]).argmax(axis=0)
        bridge = slopes.reshape(-1, gains.shape[1])[flat, np.arange(gains.shape[1])]
        return {"prices": np.maximum(bridge, 0.0)}

    def dual_bound(self, prior: Prior, gains: FloatArray, witness: Witness) -> float:
        """Return a bound from any multipliers r >= 0: no column collects more than `max_j mean_j + r
        (share - share_j)`.
        """
        prices = np.maximum(check_certificate_array(witness, "prices", (gains.shape[1],)), 0.0)
        means, shares = self._compute_points(gains)
        return float((means + prices * (self._max_success(prior) - shares[:, None])).max())

    def _compute_points(self, gains: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the (N, M) mean of the j largest gains, and (N,) the share of k letters in a uniform law
        on j.
        """
        counts = np.arange(1, len(gains) + 1)
        means = np.cumsum(np.sort(gains, axis=0)[::-1], axis=0) / counts[:, None]
        return means, np.minimum(1.0, self.guesses / counts)


def _sum_largest(columns: Any, count: int) -> Any:
    """Sum (M,) the largest entries of each column, so many."""
    return np.sort(columns, axis=0)[::-1][:count].sum(axis=0)
