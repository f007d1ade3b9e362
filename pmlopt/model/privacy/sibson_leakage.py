"""Sibson's information of order alpha as a requirement: the mean over outcomes beside PML of finite order."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.data.mechanism import MechanismLike, paired
from pmlopt.data.prior import Prior, PriorLike
from pmlopt.errors import PrivacyError
from pmlopt.measures.leakage import norms
from pmlopt.model.privacy.of_order import DIGITS, LAST_DIGITS, OfOrder, moment_of
from pmlopt.model.privacy.requirement import Declared, below
from pmlopt.model.uncertainty.columns import Family

if TYPE_CHECKING:
    import cvxpy as cp


@dataclass(frozen=True)
class SibsonLeakage(OfOrder):
    """Sibson's mutual information of order alpha of at most epsilon, alpha in (1, inf).

    `alpha / (alpha - 1) log sum_y (sum_x p[x] P[x,y]^alpha)^(1/alpha) <= epsilon`: a mean over the outcomes
    of what PML of order alpha bounds for each of them, and at most that. It grows with alpha, from the mutual
    information at 1 to the maximal leakage at infinity. Its supremum over priors is the maximal
    alpha-leakage.

    Args:
        alpha: above 1 and finite.
        epsilon: in nats.

    Raises:
        PrivacyError: alpha is not above 1, or epsilon is negative; or one of them is not finite.

    Source: [sibson1969information]; [ding2024leakage] for the mean over outcomes; [liao2019tunable] for the
    supremum over priors.

    Examples:
        >>> even = [0.5, 0.5]
        >>> response = [[0.75, 0.25], [0.25, 0.75]]
        >>> round(math.exp(SibsonLeakage(2, 1.0).level(even, response)), 12)  # (2 sqrt(0.3125))^2
        1.25
        >>> SibsonLeakage(2, 0.3).holds(even, response), SibsonLeakage(50, 0.3).holds(even, response)
        (True, False)
    """

    name: ClassVar[str] = "sibson-leakage"
    meaning: ClassVar[str] = "On average over outcomes, in a mean of the order, lifts are at most e^{limit}."
    infinite: ClassVar[str] = "MaximalLeakage"

    @property
    def limits(self) -> dict[str, float]:
        return {"sibson_leakage": self.epsilon}

    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        p, m = paired(prior, mechanism)
        if not np.ptp(m.matrix, axis=0).any():
            return {"sibson_leakage": 0.0}
        total = math.fsum(norms(p.pmf, m.matrix, self.alpha))
        return {"sibson_leakage": max(0.0, math.log(total) * self.alpha / (self.alpha - 1))}

    def declare(self, prior: Prior, mechanism: cp.Expression, law: cp.Variable) -> Declared:
        import cvxpy as cp

        roots = (prior.pmf ** (1 / self.alpha))[:, None]
        columns = cp.multiply(roots, mechanism)
        if self.alpha == 2:
            lengths = cp.norm(columns, 2, axis=0)
        else:
            lengths = cp.hstack([
                cp.pnorm(columns[:, y], self.alpha, approx=False) for y in range(mechanism.shape[1])
            ])  # fmt: skip
        return Declared({"sibson_leakage": below(1 / self.largest_norm(prior)) * cp.sum(lengths) <= 1})

    def excess(self, weights: Any, matrix: Any, power: Callable[[float], Any]) -> Any:
        if self._is_free(weights, power):  # it is at most the level of the worst outcome
            return 0 * matrix[0].sum()
        if matrix.dtype != object:
            share = (self.alpha - 1) / self.alpha * self.epsilon
            return norms(weights / weights.sum(), matrix, self.alpha).sum() - power(share) * matrix[0].sum()
        if (matrix == matrix[0]).all():
            return Decimal(0)
        with localcontext(Context(prec=DIGITS)):
            alpha, total = Decimal(self.alpha), Decimal(int(weights.sum()))
            masses = [Decimal(int(w)) / total for w in weights]
            lengths = sum((_length(masses, column, alpha) for column in matrix.T), Decimal(0))
            logs = (lengths / Decimal(int(matrix[0].sum()))).ln() * alpha
            return logs - (alpha - 1) * Decimal(self.epsilon) + LAST_DIGITS

    def relaxation(self, prior: Prior, gains: FloatArray) -> float:
        """`<p g, P> <= K max_y (sum_x p[x] max(g[x,y], 0)^beta)^(1/beta)`, by Hoelder's inequality.

        Here `1 / alpha + 1 / beta = 1`, and K is what the norms of the columns may add up to.
        """
        lengths = norms(prior.pmf, np.maximum(gains, 0.0), self.alpha / (self.alpha - 1))
        return self.largest_norm(prior) * float(lengths.max())

    def columns(self, prior: Prior) -> tuple[Family, ...]:
        raise PrivacyError(
            "Sibson's information is a bound on all columns at once, and sub-convex utilities need corners "
            "of single ones: use PML, LDP or LIP"
        )


def _length(masses: list[Decimal], column: Any, alpha: Decimal) -> Decimal:
    """`(sum_x p[x] v[x]^alpha)^(1/alpha)` of a column of whole numbers."""
    entries = [Decimal(int(v)) for v in column]
    top = max(entries)
    if not top:
        return top
    return top * (moment_of(masses, entries, alpha).ln() / alpha).exp()
