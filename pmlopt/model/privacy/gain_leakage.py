"""Pointwise g-leakage: what an outcome adds to an adversary's expected gain."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from numpy.typing import ArrayLike

from pmlopt.core.arrays import FloatArray, float_array, nonnegative, whole_numbers
from pmlopt.core.records import Shape
from pmlopt.data.prior import Prior
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy.ratio_bound import RatioRequirement
from pmlopt.model.privacy.ratios import Ratios, ratios_of


class GainLeakage(RatioRequirement):
    """epsilon-g-leakage of each outcome: `max_w E[g(w, X) | y] <= e^epsilon max_w E[g(w, X)]`.

    The adversary makes one of W guesses, and gains g(w, x). PML bounds this for every gain function.

    Args:
        epsilon: in nats.
        gain: (W, N) non-negative, the gain of each guess at each letter; some guess must gain something.

    Raises:
        PrivacyError: epsilon or a gain is negative or not finite, or nothing is ever gained.

    Source: [alvim2012measuring]; for each outcome, [saeidian2023pointwise, Definition 2].

    Examples:
        >>> import math
        >>> guessing = GainLeakage(1.0, [[1, 0], [0, 1]])  # one for a right guess
        >>> round(math.exp(guessing.level([0.75, 0.25], [[0.75, 0.25], [0.25, 0.75]])), 12)  # 0.9 for 0.75
        1.2
    """

    name: ClassVar[str] = "g-leakage"
    meaning: ClassVar[str] = "No outcome raises what this adversary expects to gain by more than e^{limit}."
    epsilon: float
    gain: Annotated[FloatArray, Shape("guesses", "letters")]

    def __init__(self, epsilon: float, gain: ArrayLike) -> None:
        self.epsilon = nonnegative(epsilon, "epsilon", PrivacyError)
        self.gain = float_array(gain, 2, "the gains", PrivacyError)
        if (self.gain < 0).any():
            raise PrivacyError(f"a gain is negative, {self.gain.min():g}: add a constant to all of them")
        if not self.gain.any():
            raise PrivacyError("all gains are 0: there is nothing to learn")

    def check(self, prior: Prior) -> None:
        if prior.size != self.gain.shape[1]:
            raise PrivacyError(
                f"the gains are on {self.gain.shape[1]} letters, and the prior on {prior.size}"
            )

    def ratios(self, weights: Any) -> Ratios:
        gain: Any = self.gain
        if weights.dtype == object:
            gain = whole_numbers(gain)[0]
        rows = [row for row in gain * weights if row.any()]
        most, total = max(row.sum() for row in rows), weights.sum()
        above = [(row, most) for row in rows]
        return ratios_of(above, [(weights, total)] * len(rows), [self.epsilon] * len(rows))

    def __repr__(self) -> str:
        return f"GainLeakage(epsilon={self.epsilon}, <{len(self.gain)} guesses>)"
