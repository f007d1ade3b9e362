"""Pointwise maximal leakage as a requirement, for one prior or for all priors of a set."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pmlopt.checks import FloatArray, nonnegative
from pmlopt.columns import Box, Family, Staircase
from pmlopt.errors import PrivacyError
from pmlopt.measures import leakage_level
from pmlopt.mechanism import MechanismLike, paired
from pmlopt.prior import Prior, PriorLike
from pmlopt.privacy.requirement import Declared, Requirement, below, top_mean
from pmlopt.uncertainty import L1Ball

if TYPE_CHECKING:
    import cvxpy as cp


@dataclass(frozen=True)
class PML(Requirement):
    """epsilon-PML: `P[x,y] <= e^epsilon q[y]` for all x, y, with q = p P (EMP, Definition 2).

    Over a set of priors it holds for each of them: `max_x P[x,y] <= e^epsilon min_Q sum_x Q[x] P[x,y]`
    (EMP, eq. (1)).

    Args:
        epsilon: the bound on the pointwise maximal leakage of every outcome, in nats; past
            -log(min p) it binds nothing under one prior.
        over: the priors for which it must hold; left out, the prior of the design alone.

    Raises:
        PrivacyError: epsilon is negative, NaN or infinite, or `over` is no set of priors.

    Examples:
        >>> requirement = PML(math.log(1.5))
        >>> requirement.holds([0.5, 0.5], [[0.7, 0.3], [0.3, 0.7]])
        True
        >>> requirement.holds([0.5, 0.5], [[0.8, 0.2], [0.2, 0.8]])
        False
        >>> near = PML(math.log(1.5), over=L1Ball([0.5, 0.5], 0.2))
        >>> near.holds([0.5, 0.5], [[0.7, 0.3], [0.3, 0.7]])
        False
    """

    epsilon: float
    over: L1Ball | None = None
    name: ClassVar[str] = "pml"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", nonnegative(self.epsilon, "epsilon", PrivacyError))
        if self.over is not None and not isinstance(self.over, L1Ball):
            raise PrivacyError(f"`over` is {self.over!r}: give a set of priors such as L1Ball(prior, 0.1)")

    @property
    def limits(self) -> dict[str, float]:
        return {"pml": self.epsilon}

    @property
    def scope(self) -> str:
        if self.over is None:
            return ""
        return f"for every prior within l1 distance {self.over.radius:g} of the given one"

    @property
    def details(self) -> dict[str, Any]:
        if self.over is None:
            return {}
        return {"l1_ball": {"radius": self.over.radius, "center": self.over.center.probabilities.tolist()}}

    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        if self.over is None:
            return {"pml": leakage_level(prior, mechanism)}
        p, m = paired(prior, mechanism)
        occurring = m.matrix[:, m.support]
        # log(max / least mean) by what the least mean is short of the maximum: 0 for constants, not 1e-16
        peaks = occurring.max(axis=0)
        short = -self._set(p).least_mean(occurring - peaks)
        return {"pml": float(-np.log1p(-short / peaks).min()) + 0.0}

    def constraints(self, prior: Prior, mechanism: cp.Variable, law: cp.Variable) -> Declared:
        import cvxpy as cp

        ones = np.ones((prior.size, 1))
        if self.over is None:
            # 3 N M nonzeros with the law as a variable, against N^2 M with the sum inside
            factor = below(math.exp(-min(self.epsilon, prior.max_leakage)))
            return Declared({"pml": factor * mechanism <= ones @ law})
        # EMP, Proposition 2, with the least and the largest entry of a column as variables: 2 N M + M rows
        half, shape = self._set(prior).half, (1, mechanism.shape[1])
        least = cp.Variable(shape, nonneg=True, name="column_minimum")
        largest = cp.Variable(shape, nonneg=True, name="column_maximum")
        return Declared(
            {
                "column_minimum": ones @ least <= mechanism,
                "column_maximum": mechanism <= ones @ largest,
                "pml": (below(math.exp(-min(self.epsilon, 700.0))) + half) * largest <= law + half * least,
            },
            {"column_minimum": least, "column_maximum": largest},
        )

    def auxiliary(self, prior: Prior, matrix: FloatArray) -> dict[str, FloatArray]:
        if self.over is None:
            return {}
        return {
            "column_minimum": matrix.min(axis=0, keepdims=True),
            "column_maximum": matrix.max(axis=0, keepdims=True),
        }

    def excess(self, weights: Any, matrix: Any, power: Callable[[float], Any]) -> Any:
        total = weights.sum()
        if self.over is not None:
            least = self.over.least_sum(weights, matrix)
            return matrix.max(axis=0) * total - power(min(self.epsilon, 700.0)) * least
        # P[x,y] <= q[y] / p[x] always: past max_leakage the smaller factor says the same
        # (700 nats are past every prior's maximum, for no letter has less than 1e-300)
        if self.epsilon > 700 or power(self.epsilon) * weights.min() >= total:
            return 0 * matrix.max(axis=0)
        return matrix.max(axis=0) * total - power(self.epsilon) * (weights @ matrix)

    def relaxation(self, prior: Prior, gains: FloatArray) -> float:
        p = prior.pmf
        if self.over is None:
            return float(top_mean(p, gains, math.exp(-min(self.epsilon, prior.max_leakage))).max())
        # an extreme column of the ball is a box's, or two-valued and high on the letters of largest gain
        order = np.argsort(-gains, axis=0, kind="stable")
        mass = np.cumsum(p[order], axis=0)
        worth = np.cumsum(p[order] * np.take_along_axis(gains, order, axis=0), axis=0)
        best = float((p @ gains).max())
        for family in self.columns(prior):
            if isinstance(family, Box):
                best = max(best, float(top_mean(p, gains, family.capacity).max()))
            else:
                inside = mass < min(family.capacity, 1.0)
                low, step, _ = family.fill(np.where(inside, mass, 0.0), np.zeros(mass.shape))
                best = max(best, float((low * (p @ gains) + step * worth)[inside].max(initial=-math.inf)))
        return best

    def columns(self, prior: Prior) -> tuple[Family, ...]:
        if self.over is None or self.over.radius == 0:
            return (Box(0.0, math.exp(min(self.epsilon, prior.max_leakage))),)
        half = self._set(prior).half
        high = 1 / (math.exp(-min(self.epsilon, 700.0)) + half)
        stairs = Staircase(high, high * half)
        return (Box(0.0, high), stairs) if high > 1 else (stairs,)

    def _set(self, prior: Prior) -> L1Ball:
        assert self.over is not None
        if self.over.center.size != prior.size or (self.over.center.pmf != prior.pmf).any():
            raise PrivacyError(
                "the centre of the l1 ball is another prior than that of the design: make them the same"
            )
        return self.over
