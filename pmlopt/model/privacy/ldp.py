"""Local differential privacy as a requirement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pmlopt.core.arrays import nonnegative
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy.mean_bounds import Bound, MeanBounds, Side
from pmlopt.model.privacy.requirement import LARGEST_EXPONENT


@dataclass(frozen=True)
class LDP(MeanBounds):
    """epsilon-LDP: `P[x,y] <= e^epsilon P[x',y]` for all x, x', y; it is epsilon-PML for every prior.

    Args:
        epsilon: the bound on the log-ratio, in nats.

    Raises:
        PrivacyError: epsilon is negative, NaN, infinite, or past 700, where e^epsilon is no float.

    Source: [grosse2025empirical, Remark 3] (LDP is PML for the set of all priors).

    Examples:
        >>> import math
        >>> LDP(math.log(3)).holds([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
        True
    """

    epsilon: float
    name: ClassVar[str] = "ldp"
    meaning: ClassVar[str] = (
        "No outcome is more than e^{limit} times as likely for one person's data as for another's."
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", nonnegative(self.epsilon, "epsilon", PrivacyError))
        if self.epsilon > LARGEST_EXPONENT:
            raise PrivacyError(f"an LDP level of {self.epsilon} nats is past 700: no float holds e^epsilon")

    @property
    def bounds(self) -> tuple[Bound, ...]:
        return (Bound("ldp", Side.LETTERS, Side.LETTERS, self.epsilon),)
