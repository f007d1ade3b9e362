"""Local information privacy as a requirement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pmlopt.core.arrays import nonnegative
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy.mean_bounds import Bound, MeanBounds, Side
from pmlopt.model.privacy.requirement import LARGEST_EXPONENT


@dataclass(frozen=True)
class LIP(MeanBounds):
    """Local information privacy: `-lower <= i(x; y) <= upper`, that is `e^-lower q <= P <= e^upper q`.

    Args:
        lower: the bound on what an outcome may exclude, in nats.
        upper: the bound on what an outcome may reveal, in nats; the same bound as PML's.

    Raises:
        PrivacyError: a bound is negative, NaN, infinite, or past 700.

    Source: [jiang2021context]; with two bounds, [zarrabian2022asymmetric].

    Examples:
        >>> import math
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

    @property
    def meanings(self) -> tuple[str, ...]:
        sides = (("less", self.lower), ("more", self.upper))
        return tuple(
            f"No outcome makes anything {word} likely by a factor of more than e^{limit:.6g}."
            for word, limit in sides
        )

    @property
    def bounds(self) -> tuple[Bound, ...]:
        return (
            Bound("lip_lower", Side.MEAN, Side.LETTERS, self.lower),
            Bound("lip_upper", Side.LETTERS, Side.MEAN, self.upper),
        )
