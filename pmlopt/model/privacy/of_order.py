"""What bounds of a finite order share: the order, norms, and their check in decimals."""

from __future__ import annotations

import contextlib
import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from typing import TYPE_CHECKING, Any, ClassVar

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

    def largest_norm(self, prior: Prior) -> float:
        """`e^((alpha - 1) epsilon / alpha)`, for epsilon up to what can be told at all."""
        return math.exp(min(self.epsilon, self._most_told(prior)) / self.beta)

    def _most_told(self, prior: Prior) -> float:
        return prior.max_leakage

    def _is_free(self, weights: Any, power: Callable[[float], Any]) -> bool:
        """Whether no mechanism exceeds it: a divergence is at most the logarithm of 1 / min p."""
        free = self.epsilon > LARGEST_EXPONENT or power(self.epsilon) * weights.min() >= weights.sum()
        return bool(free)

    def excess(self, weights: Any, matrix: Any, power: Callable[[float], Any]) -> Any:
        if self._is_free(weights, power):
            return 0 * matrix.max(axis=0)
        if matrix.dtype != object:
            return self._float_excess(weights / weights.sum(), matrix, power(self.epsilon / self.beta))
        with localcontext(Context(prec=DIGITS)):
            return self._exact_excess(weights, matrix, power)

    @abstractmethod
    def _float_excess(self, p: FloatArray, matrix: FloatArray, most: float) -> Any:
        """The violations in the units of the matrix."""

    @abstractmethod
    def _exact_excess(self, weights: Any, matrix: Any, power: Callable[[float], Any]) -> Any:
        """The violations in whole numbers, or from decimals of the context."""

    def _above(self, log_norm: Decimal) -> Decimal:
        """The level of a norm less epsilon, in units of alpha - 1, rounded up."""
        alpha = Decimal(self.alpha)
        return alpha * log_norm - (alpha - 1) * Decimal(self.epsilon) + LAST_DIGITS


def decimals(numbers: Iterable[Any]) -> list[Decimal]:
    """Whole numbers or floats as decimals."""
    return [Decimal(number) for number in numbers]


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
