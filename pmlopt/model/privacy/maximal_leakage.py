"""Maximal leakage as a requirement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pmlopt.core.arrays import nonnegative
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy.mean_bounds import Bound, MeanBounds, Side
from pmlopt.model.privacy.requirement import TOGETHER


@dataclass(frozen=True)
class MaximalLeakage(MeanBounds):
    """Maximal leakage of at most epsilon, `sum_y max_x P[x,y] <= e^epsilon`: an average over outcomes.

    Args:
        epsilon: the bound in nats; past log(min(N, M)) it binds nothing.

    Raises:
        PrivacyError: epsilon is negative, NaN or infinite.

    Source: [issa2020operational, Theorem 1].

    Examples:
        >>> import math
        >>> MaximalLeakage(math.log(1.5)).holds([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
        True
    """

    epsilon: float
    name: ClassVar[str] = "maximal-leakage"
    instead: ClassVar[str] = TOGETHER
    meaning: ClassVar[str] = "On average over outcomes, a guess becomes at most e^{limit} times as likely."

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", nonnegative(self.epsilon, "epsilon", PrivacyError))

    @property
    def bounds(self) -> tuple[Bound, ...]:
        return (Bound("maximal_leakage", Side.LETTERS, Side.ROW, self.epsilon),)
