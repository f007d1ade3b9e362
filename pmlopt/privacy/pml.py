"""Pointwise maximal leakage as a requirement."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pmlopt.checks import FloatArray, nonnegative
from pmlopt.errors import PrivacyError
from pmlopt.measures import leakage_level
from pmlopt.mechanism import MechanismLike
from pmlopt.prior import Prior, PriorLike
from pmlopt.privacy.requirement import Declared, Requirement, below, top_mean

if TYPE_CHECKING:
    import cvxpy as cp


@dataclass(frozen=True)
class PML(Requirement):
    """epsilon-PML: `P[x,y] <= e^epsilon q[y]` for all x, y, with q = p P (EMP, Definition 2).

    Args:
        epsilon: the bound on the pointwise maximal leakage of every outcome, in nats; past
            -log(min p) it binds nothing.

    Raises:
        PrivacyError: epsilon is negative, NaN or infinite.

    Examples:
        >>> requirement = PML(math.log(1.5))
        >>> requirement.holds([0.5, 0.5], [[0.7, 0.3], [0.3, 0.7]])
        True
        >>> requirement.holds([0.5, 0.5], [[0.8, 0.2], [0.2, 0.8]])
        False
    """

    epsilon: float
    name: ClassVar[str] = "pml"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", nonnegative(self.epsilon, "epsilon", PrivacyError))

    @property
    def limits(self) -> dict[str, float]:
        return {"pml": self.epsilon}

    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        return {"pml": leakage_level(prior, mechanism)}

    def constraints(self, prior: Prior, mechanism: cp.Variable, law: cp.Variable) -> Declared:
        # 3 N M nonzeros with the law as a variable, against N^2 M with the sum inside
        factor = below(math.exp(-min(self.epsilon, prior.max_leakage)))
        return Declared({"pml": factor * mechanism <= np.ones((prior.size, 1)) @ law})

    def auxiliary(self, prior: Prior, matrix: FloatArray) -> dict[str, FloatArray]:
        return {}

    def excess(self, weights: Any, matrix: Any, power: Callable[[float], Any]) -> Any:
        total = weights.sum()
        # P[x,y] <= q[y] / p[x] always: past max_leakage the smaller factor says the same
        # (700 nats are past every prior's maximum, for no letter has less than 1e-300)
        if self.epsilon > 700 or power(self.epsilon) * weights.min() >= total:
            return 0 * matrix.max(axis=0)
        return matrix.max(axis=0) * total - power(self.epsilon) * (weights @ matrix)

    def relaxation(self, prior: Prior, gains: FloatArray) -> float:
        mass = math.exp(-min(self.epsilon, prior.max_leakage))
        return float(top_mean(prior.pmf, gains, mass).max())
