"""Local differential privacy as a requirement."""

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
from pmlopt.measures import ldp_level
from pmlopt.model.privacy.ratios import Ratios, letter_ratios
from pmlopt.model.privacy.requirement import LARGEST_EXPONENT, Declared, Requirement, below
from pmlopt.model.uncertainty.columns import NEGLIGIBLE_LEVEL, Family, Staircase
from pmlopt.model.uncertainty.support_functions import two_values
from pmlopt.solvers.structured.block import Block, ratio_block

if TYPE_CHECKING:
    import cvxpy as cp


@dataclass(frozen=True)
class LDP(Requirement):
    """epsilon-LDP: `P[x,y] <= e^epsilon P[x',y]` for all x, x', y; it is epsilon-PML for every prior.

    Args:
        epsilon: the bound on the log-ratio, in nats.

    Raises:
        PrivacyError: epsilon is negative, NaN, infinite, or past 700, where e^epsilon is no float.

    Source: [grosse2025empirical, Remark 3] (LDP is PML for the set of all priors).

    Examples:
        >>> LDP(math.log(3)).holds([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
        True
    """

    epsilon: float
    name: ClassVar[str] = "ldp"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", nonnegative(self.epsilon, "epsilon", PrivacyError))
        if self.epsilon > LARGEST_EXPONENT:
            raise PrivacyError(f"an LDP level of {self.epsilon} nats is past 700: no float holds e^epsilon")

    def on_cells(self, cells: Cells) -> LDP:
        return self

    @property
    def limits(self) -> dict[str, float]:
        return {"ldp": self.epsilon}

    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        return {"ldp": ldp_level(mechanism)}

    def declare(self, prior: Prior, mechanism: cp.Expression, law: cp.Variable) -> Declared:
        import cvxpy as cp

        # column minima m: m <= P <= e^eps m, 2 N M rows instead of N (N-1) M
        floor = cp.Variable((1, mechanism.shape[1]), nonneg=True, name="column_minimum")
        rows = np.ones((prior.size, 1)) @ floor
        return Declared(
            {
                "ldp_floor": rows <= mechanism,
                "ldp_ceiling": below(math.exp(-self.epsilon)) * mechanism <= rows,
            },
            {"column_minimum": floor},
        )

    def auxiliary(self, prior: Prior, matrix: FloatArray) -> dict[str, FloatArray]:
        return {"column_minimum": matrix.min(axis=0, keepdims=True)}

    def block(self, prior: Prior) -> Block | None:
        return ratio_block(below(math.exp(-self.epsilon)))

    def excess(self, weights: Any, matrix: Any, power: Callable[[float], Any]) -> Any:
        return matrix.max(axis=0) - power(self.epsilon) * matrix.min(axis=0)

    def relaxation(self, prior: Prior, gains: FloatArray) -> float:
        return two_values(prior.pmf, gains, math.exp(-self.epsilon))

    @property
    def has_ratios(self) -> bool:
        return True

    def ratios(self, weights: Any) -> Ratios:
        return letter_ratios(weights, np.argwhere(~np.eye(len(weights), dtype=bool)), np.array(self.epsilon))

    def columns(self, prior: Prior) -> tuple[Family, ...]:
        return (Staircase(0.0, math.exp(min(self.epsilon, NEGLIGIBLE_LEVEL))),)
