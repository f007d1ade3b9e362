"""Maximal alpha-leakage as a requirement: Sibson's information of order alpha for every prior."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.core.concave import largest_over_laws, power_sum
from pmlopt.data.mechanism import MechanismLike, paired
from pmlopt.data.prior import Prior, PriorLike
from pmlopt.measures.leakage import norms_from, renyi_centre
from pmlopt.model.privacy.of_order import OfOrder, decimals, log_norm
from pmlopt.model.privacy.requirement import LARGEST_EXPONENT, TOGETHER, Declared, Witness, below, shaped

if TYPE_CHECKING:
    import cvxpy as cp

NEAR = 1e-14
"""How near both ends of a support function must be, as a share of its gains."""


@dataclass(frozen=True)
class MaximalAlphaLeakage(OfOrder):
    """Maximal alpha-leakage of at most epsilon: Sibson's information of order alpha, for every prior.

    It is at most epsilon iff there is a law t of the output with `D_alpha(P[x] || t) <= epsilon` for every
    letter x, that is `sum_y P[x,y]^alpha t[y]^(1-alpha) <= e^((alpha-1) epsilon)`: convex in P and t. It
    grows with alpha, from the channel capacity at 1 to the maximal leakage at infinity.

    Args:
        alpha: above 1 and finite.
        epsilon: in nats.

    Raises:
        PrivacyError: alpha is not above 1, or epsilon is negative; or one of them is not finite.

    Source: [liao2019tunable, Theorem 2]; [csiszar1995generalized] for the law of the output.

    Examples:
        >>> even = [0.5, 0.5]
        >>> response = [[0.75, 0.25], [0.25, 0.75]]
        >>> round(math.exp(MaximalAlphaLeakage(2, 1.0).level(even, response)), 9)  # (2 sqrt(0.3125))^2
        1.25
        >>> [MaximalAlphaLeakage(alpha, 0.3).holds(even, response) for alpha in (2, 50)]
        [True, False]
    """

    name: ClassVar[str] = "maximal-alpha-leakage"
    instead: ClassVar[str] = TOGETHER
    meaning: ClassVar[str] = (
        "Whatever the prior, on average over outcomes, in a mean of the order, lifts are at most e^{limit}."
    )
    infinite: ClassVar[str] = "MaximalLeakage"

    @property
    def scope(self) -> str:
        return f"of order {self.alpha:g}, for every prior"

    def _most_told(self, law: FloatArray) -> float:
        return math.log(len(law))

    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        _, m = paired(prior, mechanism)
        if not np.ptp(m.matrix, axis=0).any():
            return {"maximal_alpha_leakage": 0.0}
        return {"maximal_alpha_leakage": renyi_centre(m.matrix, self.alpha)[2]}

    def declare(self, prior: Prior, mechanism: cp.Expression, law: cp.Variable) -> Declared:
        import cvxpy as cp

        shape = mechanism.shape
        centre = cp.Variable((1, shape[1]), nonneg=True, name="centre")
        moments = cp.Variable(shape, nonneg=True, name="moments")
        entries = cp.vec(mechanism, order="F")
        spread = cp.vec(np.ones((shape[0], 1)) @ centre, order="F")
        terms = cp.vec(moments, order="F")
        if self.alpha == 2:  # v^2 <= moment centre
            cones = cp.SOC(terms + spread, cp.vstack([terms - spread, 2 * entries]))
        else:
            cones = cp.PowCone3D(terms, spread, entries, 1 / self.alpha)
        return Declared(
            {
                "moments": cones,
                "centre": cp.sum(centre) <= self._mass(prior),
                "maximal_alpha_leakage": cp.sum(moments, axis=1) <= 1,
            },
            {"centre": centre, "moments": moments},
        )

    def auxiliary(self, prior: Prior, matrix: FloatArray) -> dict[str, FloatArray]:
        centre = self._mass(prior) * renyi_centre(matrix, self.alpha)[0]
        ratios = matrix / np.where(centre > 0, centre, 1.0)
        return {"centre": centre[None, :], "moments": ratios**self.alpha * centre}

    def _mass(self, prior: Prior) -> float:
        """`e^epsilon`, the mass of the law t in constraints, so that moments add up to one at any order."""
        return 1 / below(math.exp(-min(self.epsilon, self._most_told(prior.pmf))))

    def _is_free(self, weights: Any, total: Any, power: Callable[[float], Any]) -> bool:
        return self.epsilon > LARGEST_EXPONENT or bool(power(self.epsilon) >= len(weights))

    def _float_excess(self, p: FloatArray, matrix: FloatArray, most: float) -> Any:
        total = matrix[0].sum()
        centre = renyi_centre(matrix / total, self.alpha)[0]
        return (float(norms_from(centre, matrix / total, self.alpha).max()) - most) * total

    def _exact_excess(self, law: tuple[Any, Any], matrix: Any, power: Callable[[float], Any]) -> Any:
        if (matrix == matrix[0]).all():
            return Decimal(0)
        total = int(matrix[0].sum())
        centre = renyi_centre(np.asarray(matrix / total, dtype=np.float64), self.alpha)[0]
        occurs = centre > 0
        masses = decimals(centre[occurs].tolist())
        masses = [mass / sum(masses) for mass in masses]
        rows = (
            [v / (total * t) for v, t in zip(decimals(row), masses, strict=True)] for row in matrix[:, occurs]
        )
        return self._above(max(log_norm(masses, row, self.alpha) for row in rows))

    def witness(self, prior: Prior, gains: FloatArray) -> Witness:
        """The law of the output at which the rows may collect most: (M,)."""
        support = self._support(prior, gains)
        if support is None:
            return {"centre": np.full(gains.shape[1], 1 / gains.shape[1])}
        return {"centre": largest_over_laws(support, gains.shape[1], NEAR)[0]}

    def proved(self, prior: Prior, gains: FloatArray, witness: Witness) -> float:
        """Around a law t, row x collects at most `K (sum_y t[y] max(g[x,y], 0)^beta)^(1/beta)`, by Hoelder's
        inequality.

        Here `1 / alpha + 1 / beta = 1`, and K is the largest norm of a row within epsilon. The mean over x is
        concave in t, so that its value and slopes at any t bound it everywhere.
        """
        centre = np.maximum(shaped(witness, "centre", (gains.shape[1],)), 1e-300)
        support, law = self._support(prior, gains), centre / centre.sum()
        if support is None:
            return 0.0
        value, slopes, _ = support(law)
        scale = self.largest_norm(prior.pmf) * float(prior.pmf @ np.maximum(gains, 0.0).max(axis=1))
        return float(scale * (value + slopes.max() - law @ slopes))

    def _support(self, prior: Prior, gains: FloatArray) -> Any:
        """What rows around a law of the output collect, as a share of the mean of the largest gains."""
        top = np.maximum(gains, 0.0).max(axis=1)
        some = top > 0
        if not some.any():
            return None
        weights = (prior.pmf * top)[some]
        powers = (np.maximum(gains[some], 0.0) / top[some][:, None]) ** self.beta
        return power_sum(weights / weights.sum(), powers.T, self.beta)
