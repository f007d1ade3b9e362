"""Maximal leakage as a requirement."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pmlopt.core.arrays import FloatArray, nonnegative
from pmlopt.data.mechanism import MechanismLike
from pmlopt.data.prior import Prior, PriorLike
from pmlopt.errors import PrivacyError
from pmlopt.measures import maximal_leakage
from pmlopt.model.privacy.requirement import Declared, Requirement, below
from pmlopt.model.uncertainty.columns import Family
from pmlopt.solvers.structured.block import Block, peak_block

if TYPE_CHECKING:
    import cvxpy as cp


@dataclass(frozen=True)
class MaximalLeakage(Requirement):
    """Maximal leakage of at most epsilon, `sum_y max_x P[x,y] <= e^epsilon`: an average over outcomes.

    Args:
        epsilon: the bound in nats; past log(min(N, M)) it binds nothing.

    Raises:
        PrivacyError: epsilon is negative, NaN or infinite.

    Source: [issa2020operational, Theorem 1].

    Examples:
        >>> MaximalLeakage(math.log(1.5)).holds([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
        True
    """

    epsilon: float
    name: ClassVar[str] = "maximal-leakage"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", nonnegative(self.epsilon, "epsilon", PrivacyError))

    @property
    def limits(self) -> dict[str, float]:
        return {"maximal_leakage": self.epsilon}

    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        return {"maximal_leakage": maximal_leakage(mechanism)}

    def declare(self, prior: Prior, mechanism: cp.Expression, law: cp.Variable) -> Declared:
        import cvxpy as cp

        peak = cp.Variable((1, mechanism.shape[1]), nonneg=True, name="column_maximum")
        total = 1 / below(math.exp(-min(self.epsilon, math.log(prior.size))))
        return Declared(
            {
                "column_maximum": mechanism <= np.ones((prior.size, 1)) @ peak,
                "maximal_leakage": cp.sum(peak) <= total,
            },
            {"column_maximum": peak},
        )

    def auxiliary(self, prior: Prior, matrix: FloatArray) -> dict[str, FloatArray]:
        return {"column_maximum": matrix.max(axis=0, keepdims=True)}

    def block(self, prior: Prior) -> Block | None:
        return peak_block(1 / below(math.exp(-min(self.epsilon, math.log(prior.size)))))

    def excess(self, weights: Any, matrix: Any, power: Callable[[float], Any]) -> Any:
        if self.epsilon > math.log(len(weights)):  # sum_y max_x P[x,y] <= N for every mechanism
            return 0 * matrix.max(axis=0)
        # the sum that stands for one is the least of a row, for rows of floats may differ in theirs
        return matrix.max(axis=0).sum() - power(self.epsilon) * matrix.sum(axis=1).min()

    def relaxation(self, prior: Prior, gains: FloatArray) -> float:
        # P[x,y] <= u[y] with sum_y u[y] <= e^eps: all of it on the best output
        total = math.exp(min(self.epsilon, math.log(prior.size)))
        return total * float((prior.pmf @ np.maximum(gains, 0.0)).max())

    def columns(self, prior: Prior) -> tuple[Family, ...]:
        raise PrivacyError(
            "maximal leakage bounds all columns of a mechanism together, and sub-convex utilities need a "
            "bound on each: use PML, LDP or LIP"
        )
