"""Sibson's information of order alpha as a requirement: the mean over outcomes beside PML of finite order."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.data.mechanism import MechanismLike, paired
from pmlopt.data.prior import Prior, PriorLike
from pmlopt.measures.leakage import norms
from pmlopt.model.privacy.of_order import OfOrder, decimals, declared_norms, log_norm
from pmlopt.model.privacy.requirement import TOGETHER, Declared, below

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
    instead: ClassVar[str] = TOGETHER
    meaning: ClassVar[str] = "On average over outcomes, in a mean of the order, lifts are at most e^{limit}."
    infinite: ClassVar[str] = "MaximalLeakage"

    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        p, m = paired(prior, mechanism)
        if not np.ptp(m.matrix, axis=0).any():
            return {"sibson_leakage": 0.0}
        total = math.fsum(norms(p.pmf, m.matrix, self.alpha))
        return {"sibson_leakage": max(0.0, math.log(total) * self.beta)}

    def declare(self, prior: Prior, mechanism: cp.Expression, law: cp.Variable) -> Declared:
        import cvxpy as cp

        lengths = declared_norms(prior.pmf, mechanism, self.alpha)
        return Declared({"sibson_leakage": below(1 / self.largest_norm(prior.pmf)) * cp.sum(lengths) <= 1})

    def _float_excess(self, p: FloatArray, matrix: FloatArray, most: float) -> Any:
        return norms(p, matrix, self.alpha).sum() - most * matrix[0].sum()

    def _exact_excess(self, law: tuple[Any, Any], matrix: Any, power: Callable[[float], Any]) -> Any:
        if (matrix == matrix[0]).all():
            return Decimal(0)
        masses = decimals(*law)
        columns = [decimals(column) for column in matrix.T if column.any()]
        total = sum((log_norm(masses, column, self.alpha).exp() for column in columns), Decimal(0))
        return self._above((total / int(matrix[0].sum())).ln())

    def relaxation(self, prior: Prior, gains: FloatArray) -> float:
        """`<p g, P> <= K max_y (sum_x p[x] max(g[x,y], 0)^beta)^(1/beta)`, by Hoelder's inequality.

        Here `1 / alpha + 1 / beta = 1`, and K is what the norms of the columns may add up to.
        """
        lengths = norms(prior.pmf, np.maximum(gains, 0.0), self.beta)
        return self.largest_norm(prior.pmf) * float(lengths.max())
