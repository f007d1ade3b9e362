"""PML with a budget for each letter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from pmlopt.arrays import FloatArray, few, nonnegative
from pmlopt.errors import PrivacyError
from pmlopt.prior import Prior
from pmlopt.privacy.ratio_bound import RatioRequirement
from pmlopt.privacy.ratios import Ratios, mean_ratios
from pmlopt.symmetry.pair_orbits import Cells


class LetterBudgets(RatioRequirement):
    """A bound on the information density of each letter: `P[x,y] <= e^(epsilon_x) q[y]` for each outcome y.

    See `PML([...])`, which is the public name.
    """

    name: ClassVar[str] = "pml"
    is_form: ClassVar[bool] = True
    over: ClassVar[None] = None
    about: ClassVar[None] = None

    def __init__(self, epsilon: Sequence[float]) -> None:
        self.epsilon = tuple(nonnegative(value, f"the budget of letter {place}", PrivacyError)
                             for place, value in enumerate(epsilon))  # fmt: skip
        if not self.epsilon:
            raise PrivacyError("there is no budget: give one for each letter")

    def __repr__(self) -> str:
        return f"PML({list(self.epsilon)})"

    @property
    def limits(self) -> dict[str, float]:
        return {"pml_above_budget": 0.0}

    def on_cells(self, cells: Cells) -> RatioRequirement:
        """With a budget for each orbit of letters, or for each letter where letters are listed."""
        if len(self.epsilon) == len(cells.orbits):
            return LetterBudgets([self.epsilon[orbit] for orbit in cells.letters.tolist()])
        if cells.classes is None:
            raise PrivacyError(
                f"there are {len(self.epsilon)} budgets: give one for each of the {len(cells.orbits)} orbits "
                "of letters"
            )
        return super().on_cells(cells)

    def check(self, prior: Prior) -> None:
        if prior.size != len(self.epsilon):
            raise PrivacyError(
                f"there are {len(self.epsilon)} budgets, and the prior has {prior.size} letters "
                f"{few(prior.labels)}: give one budget for each"
            )

    def measured(self, log_ratios: FloatArray, ratios: Ratios) -> dict[str, float]:
        return {"pml_above_budget": float((log_ratios - np.array(self.epsilon)[:, None]).max())}

    def ratios(self, weights: Any) -> Ratios:
        return mean_ratios(weights, np.minimum(np.array(self.epsilon), _most(weights)))


def _most(weights: Any) -> float:
    """No letter tells more than -log(min p); a little above, so that nothing that binds is lost."""
    return math.log(float(sum(weights)) / float(min(weights))) + 1e-6
