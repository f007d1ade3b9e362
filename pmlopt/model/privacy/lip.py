"""Local information privacy as a requirement."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pmlopt.core.arrays import FloatArray, nonnegative
from pmlopt.data.mechanism import MechanismLike
from pmlopt.data.prior import Prior, PriorLike
from pmlopt.data.symmetry.prior import Cells
from pmlopt.errors import PrivacyError
from pmlopt.measures import lip_levels
from pmlopt.model.privacy.ratios import Ratios, mean_ratios, together
from pmlopt.model.privacy.requirement import LARGEST_EXPONENT, Declared, Requirement, below
from pmlopt.model.uncertainty.columns import Box, Family
from pmlopt.model.uncertainty.support_functions import top_mean
from pmlopt.solvers.structured.block import Block

if TYPE_CHECKING:
    import cvxpy as cp


@dataclass(frozen=True)
class LIP(Requirement):
    """Local information privacy: `-lower <= i(x; y) <= upper`, that is `e^-lower q <= P <= e^upper q`.

    Args:
        lower: the bound on what an outcome may exclude, in nats.
        upper: the bound on what an outcome may reveal, in nats; the same bound as PML's.

    Raises:
        PrivacyError: a bound is negative, NaN, infinite, or past 700.

    Source: [jiang2021context]; with two bounds, [zarrabian2022asymmetric].

    Examples:
        >>> LIP(math.log(2), math.log(1.5)).holds([0.5, 0.5], [[0.7, 0.3], [0.3, 0.7]])
        True
    """

    lower: float
    upper: float
    name: ClassVar[str] = "lip"

    def __post_init__(self) -> None:
        for side in ("lower", "upper"):
            bound = nonnegative(getattr(self, side), f"the {side} bound", PrivacyError)
            if bound > LARGEST_EXPONENT:
                raise PrivacyError(f"the {side} bound {bound} is past 700 nats: no float holds e^{side}")
            object.__setattr__(self, side, bound)

    def on_cells(self, cells: Cells) -> LIP:
        return self

    @property
    def limits(self) -> dict[str, float]:
        return {"lip_lower": self.lower, "lip_upper": self.upper}

    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        lower, upper = lip_levels(prior, mechanism)
        return {"lip_lower": lower, "lip_upper": upper}

    def declare(self, prior: Prior, mechanism: cp.Expression, law: cp.Variable) -> Declared:
        rows = np.ones((prior.size, 1)) @ law
        return Declared(
            {
                "lip_lower": below(math.exp(-self.lower)) * rows <= mechanism,
                "lip_upper": below(math.exp(-self.upper)) * mechanism <= rows,
            }
        )

    def auxiliary(self, prior: Prior, matrix: FloatArray) -> dict[str, FloatArray]:
        return {}

    def block(self, prior: Prior) -> Block | None:
        lower = below(math.exp(-self.lower))
        upper = 1 / below(math.exp(-min(self.upper, prior.max_leakage)))
        if lower >= 1 or upper <= 1:
            return None
        return Block(np.array([lower]), np.array([upper]), np.ones(1), prior.pmf[None, :], np.ones((1, 1)))

    def excess(self, weights: Any, matrix: Any, power: Callable[[float], Any]) -> Any:
        total, law = weights.sum(), weights @ matrix
        above = matrix.max(axis=0) * total - power(self.upper) * law
        # in the units of the other side: the repair mixes in what the larger one asks for
        under = law / power(self.lower) - matrix.min(axis=0) * total
        return np.maximum(above, under)

    def relaxation(self, prior: Prior, gains: FloatArray) -> float:
        # a normalised column lies between a and b with mean 1: a everywhere, the rest on the best
        p, a = prior.pmf, math.exp(-self.lower)
        rest, above = -math.expm1(-self.lower), math.expm1(min(self.upper, prior.max_leakage))
        mass = rest / (rest + above) if rest > 0 else 0.0
        spread = top_mean(p, gains, mass) if mass > 0 else 0.0
        return float((a * (p @ gains) + rest * spread).max())

    @property
    def has_ratios(self) -> bool:
        return True

    def ratios(self, weights: Any) -> Ratios:
        ends = (
            mean_ratios(weights, np.array(self.lower), reverse=True),
            mean_ratios(weights, np.array(self.upper)),
        )
        return together(ends)

    def columns(self, prior: Prior) -> tuple[Family, ...]:
        return (Box(math.exp(-self.lower), math.exp(min(self.upper, prior.max_leakage))),)
