"""Pointwise maximal leakage as a requirement, for one prior or for all priors of a set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pmlopt.core.arrays import few, nonnegative
from pmlopt.data.prior import Prior
from pmlopt.data.secret import Secret
from pmlopt.data.symmetry.prior import Cells
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy.mean_bounds import Bound, MeanBounds, Side
from pmlopt.model.privacy.ratio_bound import RatioRequirement
from pmlopt.model.privacy.ratios import Ratios, mean_ratios
from pmlopt.model.privacy.requirement import Requirement
from pmlopt.model.privacy.secret_leakage import GUESSES, RobustSecretPML, SecretPML
from pmlopt.model.uncertainty import PriorSet
from pmlopt.model.uncertainty.joint_laws import JointLaws


class LetterBudgets(RatioRequirement):
    """A bound on the information density of each letter: `P[x,y] <= e^(epsilon_x) q[y]` for each outcome y.

    See `PML([...])`, which is the public name.
    """

    name: ClassVar[str] = "pml"
    meaning: ClassVar[str] = "Each letter has a budget of its own, and no outcome makes it likelier by more."
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
    def limit(self) -> str:
        return "pml_above_budget"

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

    def ratios(self, weights: Any) -> Ratios:
        # no letter tells more than -log(min p); a little above, so that nothing that binds is lost
        most = math.log(sum(weights)) - math.log(min(weights)) + 1e-6
        return mean_ratios(weights, np.minimum(np.array(self.epsilon), most))


@dataclass(frozen=True, init=False)
class PML(MeanBounds):
    """epsilon-PML: `P[x,y] <= e^epsilon q[y]` for all letters x and outcomes y, with q = p P.

    Over a set of priors it holds for each of them: `max_x P[x,y] <= e^epsilon min_Q sum_x Q[x] P[x,y]`.

    Budgets of single outcomes are `constraints.OutcomeLeakage({"yes": 0.2})` beside it: a requirement is on
    columns, and knows no labels of outputs.

    About a secret S that the data tells of it is `P(y | s) <= e^epsilon P(y)` for each value s of S.

    Args:
        epsilon: the bound on the pointwise maximal leakage of every outcome, in nats; past
            -log(min p) it binds nothing under one prior. Or a budget for each letter x, the bound on
            `log P[x,y] / q[y]`; these are compared with 0 after they were taken off.
        over: the priors for which it must hold, or about a secret the `JointLaws`; left out, the law of the
            design alone.
        about: the `Secret` that is protected in place of the data.

    Raises:
        PrivacyError: epsilon is negative, NaN or infinite, `over` is no set of priors, `about` is no secret,
            budgets and one of `over` and `about` are given together, or `over` does not fit `about`.

    Source: [grosse2025empirical, Definition 2]; over a set, [grosse2025empirical, eq. (1)].

    Examples:
        >>> requirement = PML(math.log(1.5))
        >>> requirement.holds([0.5, 0.5], [[0.7, 0.3], [0.3, 0.7]])
        True
        >>> requirement.holds([0.5, 0.5], [[0.8, 0.2], [0.2, 0.8]])
        False
        >>> from pmlopt import L1Ball
        >>> near = PML(math.log(1.5), over=L1Ball([0.5, 0.5], 0.2))
        >>> near.holds([0.5, 0.5], [[0.7, 0.3], [0.3, 0.7]])
        False
        >>> PML([math.log(1.4), math.log(1.2)]).holds([0.5, 0.5], [[0.7, 0.3], [0.4, 0.6]])
        False
    """

    epsilon: float
    over: PriorSet | None = None
    name: ClassVar[str] = "pml"
    meaning: ClassVar[str] = GUESSES
    about: ClassVar[None] = None

    def __new__(
        cls,
        epsilon: float | Sequence[float] = 0.0,
        over: PriorSet | JointLaws | None = None,
        about: Secret | None = None,
    ) -> Any:
        """The requirement of the form that is asked for: a `PML` where it is one epsilon, about the data."""
        if hasattr(epsilon, "is_dcp"):
            raise PrivacyError(
                f"epsilon is {epsilon!r:.60}, of cvxpy: give a number, or take "
                "privacy.parametric_constraints, on a matrix of your own"
            )
        if np.ndim(epsilon) > 0 and (over is not None or about is not None):
            raise PrivacyError("budgets for letters, `over` and `about` are forms of PML: give one of them")
        if isinstance(over, JointLaws) != (over is not None and about is not None):
            raise PrivacyError(
                "PML about a secret is over a set of joint laws, JointLaws.confidence(secret, delta) or "
                "JointLaws.ball(secret, radius), and without one over a set of priors: give `over` and "
                "`about` that fit"
            )
        if about is not None and isinstance(over, JointLaws):
            return RobustSecretPML(float(np.asarray(epsilon)), about, over)
        if about is not None:
            return SecretPML(float(np.asarray(epsilon)), about)
        return LetterBudgets(list(np.asarray(epsilon))) if np.ndim(epsilon) else super().__new__(cls)

    def __init__(
        self,
        epsilon: float | Sequence[float],
        over: PriorSet | JointLaws | None = None,
        about: Secret | None = None,
    ) -> None:
        assert about is None  # `__new__` has made another object
        object.__setattr__(self, "epsilon", nonnegative(epsilon, "epsilon", PrivacyError))  # type: ignore[arg-type]
        if over is not None and not isinstance(over, PriorSet):
            raise PrivacyError(f"`over` is {over!r}: give a set of priors such as L1Ball(prior, 0.1)")
        object.__setattr__(self, "over", over)

    @classmethod
    def from_fields(
        cls,
        epsilon: float | tuple[float, ...],
        over: PriorSet | JointLaws | None = None,
        about: Secret | None = None,
    ) -> Requirement:
        """In any of its forms, as a file has it."""
        return cls(epsilon, over, about)

    def on_cells(self, cells: Cells) -> PML:
        return self if self.over is None else PML(self.epsilon, self.over.on_cells(cells))

    @property
    def bounds(self) -> tuple[Bound, ...]:
        return (Bound("pml", Side.LETTERS, Side.MEAN if self.over is None else self.over, self.epsilon),)

    def priors(self, prior: Prior) -> PriorSet | None:
        """The set of priors for which the bound must hold; None where it is the given prior alone.

        Raises:
            PrivacyError: they are on other letters than the given one.
        """
        least = self.under(prior)[0].least
        return least if isinstance(least, PriorSet) else None
