"""What bounds of a finite order share: the order, norms, and their check in decimals."""

from __future__ import annotations

import contextlib
import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from pmlopt.core.arrays import FloatArray, nonnegative, real
from pmlopt.data.prior import Prior
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy.requirement import LARGEST_EXPONENT, Requirement

if TYPE_CHECKING:
    import cvxpy as cp

DIGITS, LAST_DIGITS = 60, Decimal(10) ** -45
"""Decimals of the check, and what their rounding may hide of a sum of logarithms."""

GOLDEN, SECTIONS = (math.sqrt(5) - 1) / 2, 70
"""Of the interval in which a least value is searched: to 1e-15 of it."""


View: TypeAlias = tuple[Any, Any, Any]
"""Weights p of S letters, the (S, N) mechanism from them to the data, and what the weights are over.

The mechanism is up to one factor; (N,) factors of the rows, or None, stand for a diagonal one.
"""


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
    def limits(self) -> dict[str, float]:
        return {self.name.replace("-", "_"): self.epsilon}

    @property
    def scope(self) -> str:
        return f"of order {self.alpha:g}"

    @property
    def beta(self) -> float:
        """The order of the dual norm: `1 / alpha + 1 / beta = 1`."""
        return self.alpha / (self.alpha - 1)

    def auxiliary(self, prior: Prior, matrix: FloatArray) -> dict[str, FloatArray]:
        return {}

    def relaxation(self, prior: Prior, gains: FloatArray) -> float:
        return self.proved(prior, gains, self.witness(prior, gains))

    def views(self, weights: Any) -> list[View]:
        """What the bound is on, as laws and mechanisms: the data themselves, or each law of a secret."""
        return [(weights, None, weights.sum())]

    def largest_norm(self, law: FloatArray) -> float:
        """`e^((alpha - 1) epsilon / alpha)`, for epsilon up to what can be told at all."""
        return math.exp(min(self.epsilon, self._most_told(law)) / self.beta)

    def _most_told(self, law: FloatArray) -> float:
        return -math.log(law.min())

    def _is_free(self, weights: Any, total: Any, power: Callable[[float], Any]) -> bool:
        """Whether no mechanism exceeds it: a divergence is at most the logarithm of 1 / min p."""
        return self.epsilon > LARGEST_EXPONENT or bool(power(self.epsilon) * weights.min() >= total)

    def excess(self, weights: Any, matrix: Any, power: Callable[[float], Any]) -> Any:
        return np.max([self._excess(view, matrix, power) for view in self.views(weights)], axis=0)

    def _excess(self, view: View, matrix: Any, power: Callable[[float], Any]) -> Any:
        law, given, total = view
        if self._is_free(law, total, power):
            return 0 * matrix.max(axis=0)
        own = seen(given, matrix)
        if matrix.dtype != object:
            return self._float_excess(law / total, own, power(self.epsilon / self.beta))
        with localcontext(Context(prec=DIGITS)):
            return self._exact_excess((law, total), own, power)

    @abstractmethod
    def _float_excess(self, p: FloatArray, matrix: FloatArray, most: float) -> Any:
        """The violations in the units of the matrix."""

    @abstractmethod
    def _exact_excess(self, law: tuple[Any, Any], matrix: Any, power: Callable[[float], Any]) -> Any:
        """The violations in fractions, or from decimals of the context."""

    def _above(self, log_norm: Decimal) -> Decimal:
        """The level of a norm less epsilon, in units of alpha - 1, rounded up."""
        alpha = Decimal(self.alpha)
        return alpha * log_norm - (alpha - 1) * Decimal(self.epsilon) + LAST_DIGITS


def seen(given: Any, matrix: Any) -> Any:
    """(S, M) the mechanism from the letters of a view to the outputs."""
    if given is None:
        return matrix
    if given.ndim == 1 and isinstance(matrix, np.ndarray):
        return given[:, None] * matrix
    return (given if given.ndim == 2 else np.diag(given)) @ matrix


def decimals(numbers: Iterable[Any], total: Any = 1) -> list[Decimal]:
    """Whole numbers, fractions or floats as decimals, over a whole number."""
    found = (Fraction(number) / int(total) for number in numbers)
    return [Decimal(one.numerator) / one.denominator for one in found]


def log_norm(masses: Iterable[Decimal], entries: Iterable[Decimal], alpha: float) -> Decimal:
    """The logarithm of `(sum_x mass[x] v[x]^alpha)^(1/alpha)`, of entries that are not all zero."""
    order, pairs = (
        Decimal(alpha),
        [(mass, entry) for mass, entry in zip(masses, entries, strict=True) if entry],
    )
    top = max(entry for _, entry in pairs)
    moment = sum((mass * (order * (entry / top).ln()).exp() for mass, entry in pairs), Decimal(0))
    return top.ln() + moment.ln() / order


def declared_norms(p: FloatArray, columns: cp.Expression, order: float) -> cp.Expression:
    """(M,) `(sum_x p[x] v[x]^order)^(1/order)` of the columns of a cvxpy expression."""
    import cvxpy as cp

    weighted = cp.multiply((p ** (1 / order))[:, None], columns)
    if order == 2:
        return cp.norm(weighted, 2, axis=0)
    return cp.hstack([cp.pnorm(weighted[:, y], order, approx=False) for y in range(columns.shape[1])])


def minimise(goal: cp.Expression, rules: list[cp.Constraint]) -> None:
    """Set the variables of a convex program to where it is least, as near as Clarabel comes."""
    import cvxpy as cp

    for tolerance in (1e-11, 1e-8):
        tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tolerance)
        with warnings.catch_warnings(), contextlib.suppress(cp.SolverError):
            warnings.simplefilter("ignore")  # where it stops a digit early
            cp.Problem(cp.Minimize(goal), rules).solve(solver="CLARABEL", **tight)
            return


def lowest_point(
    value: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(M,) where functions that fall and then rise are least, and their values there, by golden sections."""
    one, two = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_one, at_two = value(one), value(two)
    for _ in range(SECTIONS):
        left = at_one < at_two
        low, high = np.where(left, low, one), np.where(left, two, high)
        new = np.where(left, high - GOLDEN * (high - low), low + GOLDEN * (high - low))
        at_new = value(new)
        one, two = np.where(left, new, two), np.where(left, one, new)
        at_one, at_two = np.where(left, at_new, at_two), np.where(left, at_one, at_new)
    return np.where(at_one < at_two, one, two), np.minimum(at_one, at_two)
