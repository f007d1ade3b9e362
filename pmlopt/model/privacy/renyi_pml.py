"""PML of finite order: the Renyi divergence of the posterior from the prior, outcome by outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pmlopt.core.arrays import FloatArray, nonnegative, real
from pmlopt.data.mechanism import MechanismLike, paired
from pmlopt.data.prior import Prior, PriorLike
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy.requirement import LARGEST_EXPONENT, Declared, Requirement, Witness, below, shaped
from pmlopt.model.uncertainty.columns import Family

if TYPE_CHECKING:
    import cvxpy as cp

LARGEST_WHOLE_ORDER = 64
"""Whole orders of up to this much are checked in integers; others in decimals."""

DIGITS, LAST_DIGITS = 60, Decimal(10) ** -45
"""Decimals of the check, and what their rounding may hide of a sum of logarithms."""

HALVINGS, DOUBLINGS = 100, 60
"""Of the interval in which a threshold is searched, and of how far it is looked for below the gains."""


@dataclass(frozen=True)
class OfOrder(Requirement):
    """What bounds of a finite order alpha above 1 share, of each outcome or of their mean.

    Attributes:
        alpha: above 1 and finite.
        epsilon: in nats.
    """

    alpha: float
    epsilon: float
    infinite: ClassVar[str]
    """The requirement of order infinity, by its name."""

    def __post_init__(self) -> None:
        alpha = real(self.alpha, "alpha", PrivacyError)
        if not 1 < alpha < math.inf:
            raise PrivacyError(
                f"alpha is {alpha:g}: give an order above 1, or {self.infinite} for order infinity"
            )
        object.__setattr__(self, "alpha", alpha)
        object.__setattr__(self, "epsilon", nonnegative(self.epsilon, "epsilon", PrivacyError))

    @property
    def scope(self) -> str:
        return f"of order {self.alpha:g}"

    def auxiliary(self, prior: Prior, matrix: FloatArray) -> dict[str, FloatArray]:
        return {}

    def _largest_norm(self, prior: Prior) -> float:
        """`e^((alpha - 1) epsilon / alpha)`, for epsilon up to what can be told at all."""
        return math.exp(min(self.epsilon, self._most_told(prior)) * (self.alpha - 1) / self.alpha)

    def _most_told(self, prior: Prior) -> float:
        return prior.max_leakage

    def _is_free(self, weights: Any, power: Callable[[float], Any]) -> bool:
        """Whether no mechanism exceeds it: a divergence is at most the logarithm of 1 / min p."""
        free = self.epsilon > LARGEST_EXPONENT or power(self.epsilon) * weights.min() >= weights.sum()
        return bool(free)


@dataclass(frozen=True)
class RenyiPML(OfOrder):
    """PML of order alpha: `D_alpha(P(X | Y = y) || p) <= epsilon` for every outcome y, alpha in (1, inf).

    With the lift `lam[x] = P[x,y] / q[y]` it is `log(sum_x p[x] lam[x]^alpha) / (alpha - 1)`. It grows with
    alpha, from the divergence of Kullback and Leibler at 1 to the pointwise maximal leakage at infinity: a
    moment of the lift in place of its maximum, so that what is told of a rare letter counts less.

    Args:
        alpha: above 1 and finite.
        epsilon: in nats.

    Raises:
        PrivacyError: alpha is not above 1, or epsilon is negative; or one of them is not finite.

    Source: [saeidian2023pointwise] for order infinity; [krokhmal2007higher] for the bound on a utility, the
    dual form of a higher-moment risk measure.

    Examples:
        >>> even = [0.5, 0.5]
        >>> response = [[0.75, 0.25], [0.25, 0.75]]
        >>> round(math.exp(RenyiPML(2, 1.0).level(even, response)), 12)  # (1.5^2 + 0.5^2) / 2
        1.25
        >>> RenyiPML(2, 0.3).holds(even, response), RenyiPML(50, 0.3).holds(even, response)
        (True, False)
    """

    name: ClassVar[str] = "renyi-pml"
    meaning: ClassVar[str] = (
        "In a mean of the order over letters, no outcome makes them more than e^{limit} times as likely."
    )
    infinite: ClassVar[str] = "PML"

    @property
    def limits(self) -> dict[str, float]:
        return {"renyi_pml": self.epsilon}

    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        p, m = paired(prior, mechanism)
        columns = m.matrix[:, m.support]
        logs = np.log(norms(p.pmf, columns, self.alpha)) - np.log(p.pmf @ columns)
        return {"renyi_pml": max(0.0, float(logs.max()) * self.alpha / (self.alpha - 1))}

    def declare(self, prior: Prior, mechanism: cp.Expression, law: cp.Variable) -> Declared:
        import cvxpy as cp

        factor = below(1 / self._largest_norm(prior))
        roots = prior.pmf ** (1 / self.alpha)
        if self.alpha == 2:
            lengths = cp.norm(cp.multiply(roots[:, None], mechanism), 2, axis=0)
            return Declared({"renyi_pml": factor * lengths <= law[0]})
        return Declared(
            {
                f"renyi_pml {y}": factor
                * cp.pnorm(cp.multiply(roots, mechanism[:, y]), self.alpha, approx=False)
                <= law[0, y]
                for y in range(mechanism.shape[1])
            }
        )

    def excess(self, weights: Any, matrix: Any, power: Callable[[float], Any]) -> Any:
        if self._is_free(weights, power):
            return 0 * matrix.max(axis=0)
        if matrix.dtype != object:
            total = weights.sum()
            share = (self.alpha - 1) / self.alpha
            return norms(weights / total, matrix, self.alpha) - power(share * self.epsilon) * (
                weights @ matrix / total
            )
        if self.alpha == int(self.alpha) <= LARGEST_WHOLE_ORDER:
            order = int(self.alpha)
            most = power((order - 1) * self.epsilon)
            return weights @ matrix**order * weights.sum() ** (order - 1) - most * (weights @ matrix) ** order
        return np.array([self._decimal_excess(weights, column) for column in matrix.T], dtype=object)

    def _decimal_excess(self, weights: Any, column: Any) -> Decimal:
        """The divergence less epsilon, in units of alpha - 1, rounded up; 0 of a constant column."""
        if (column == column[0]).all():
            return Decimal(0)
        with localcontext(Context(prec=DIGITS)):
            alpha, total = Decimal(self.alpha), Decimal(int(weights.sum()))
            masses, entries = [Decimal(int(w)) for w in weights], [Decimal(int(v)) for v in column]
            top = max(entries)
            moment = moment_of(masses, entries, alpha)
            mean = sum(map(lambda mass, entry: mass * entry / top, masses, entries), Decimal(0))
            logs = (moment / total).ln() - alpha * (mean / total).ln()
            return logs - (alpha - 1) * Decimal(self.epsilon) + LAST_DIGITS

    def relaxation(self, prior: Prior, gains: FloatArray) -> float:
        return self.proved(prior, gains, self.witness(prior, gains))

    def witness(self, prior: Prior, gains: FloatArray) -> Witness:
        """The thresholds of the columns: (M,), where `_worth` is least."""
        p, most, beta = prior.pmf, self._largest_norm(prior), self.alpha / (self.alpha - 1)
        high = gains.max(axis=0)
        low = reach = np.maximum(high - gains.min(axis=0), 1e-300)
        low = high - 2 * reach
        for _ in range(DOUBLINGS):
            rising = _slope(p, gains, low, most, beta) > 0
            if not rising.any():
                break
            reach = np.where(rising, 2 * reach, reach)
            low = high - 2 * reach
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            rising = _slope(p, gains, middle, most, beta) > 0
            low, high = np.where(rising, low, middle), np.where(rising, middle, high)
        return {
            "thresholds": high
        }  # exact where it never moved: below it, large norms lift what rounding leaves

    def proved(self, prior: Prior, gains: FloatArray, witness: Witness) -> float:
        """For any threshold t, `<p g, lam> <= t + K (sum p max(g - t, 0)^beta)^(1/beta)`, by Hoelder's
        inequality.

        Here `1 / alpha + 1 / beta = 1`, and K is the largest norm `(sum p lam^alpha)^(1/alpha)` within
        epsilon.
        """
        thresholds = shaped(witness, "thresholds", (gains.shape[1],))
        beta = self.alpha / (self.alpha - 1)
        above = norms(prior.pmf, np.maximum(gains - thresholds, 0.0), beta)
        with np.errstate(over="ignore"):  # an infinite bound is true
            return float((thresholds + self._largest_norm(prior) * above).max())

    def columns(self, prior: Prior) -> tuple[Family, ...]:
        raise PrivacyError(
            "the columns within PML of finite order are no polytope, and sub-convex utilities need its "
            "corners: use PML, LDP or LIP"
        )


def moment_of(masses: Sequence[Decimal], entries: Sequence[Decimal], alpha: Decimal) -> Decimal:
    """`sum_x mass[x] (v[x] / max v)^alpha` of entries that are not all zero."""
    top, pairs = max(entries), zip(masses, entries, strict=True)
    return sum((mass * (alpha * (entry / top).ln()).exp() for mass, entry in pairs if entry), Decimal(0))


def norms(p: FloatArray, matrix: FloatArray, order: float) -> FloatArray:
    """(M,) `(sum_x p[x] v[x]^order)^(1/order)` of columns v >= 0."""
    top = matrix.max(axis=0)
    shares = matrix / np.where(top > 0, top, 1.0)
    return np.asarray(top * (p @ shares**order) ** (1 / order))


def _slope(p: FloatArray, gains: FloatArray, thresholds: FloatArray, most: float, beta: float) -> FloatArray:
    """(M,) the slope, in the thresholds, of what `proved` bounds the columns by."""
    over = np.maximum(gains - thresholds, 0.0)
    top = over.max(axis=0)
    shares = over / np.where(top > 0, top, 1.0)
    norms = (p @ shares**beta) ** (1 / beta)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # past all floats it falls
        return np.where(top > 0, 1 - most * (p @ shares ** (beta - 1)) / norms ** (beta - 1), 1.0)
