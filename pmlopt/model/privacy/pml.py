"""Pointwise maximal leakage as a requirement, for one prior or for all priors of a set."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pmlopt.core.arrays import FloatArray, few, nonnegative
from pmlopt.data.mechanism import MechanismLike, paired
from pmlopt.data.prior import Prior, PriorLike
from pmlopt.data.secret import Secret
from pmlopt.data.symmetry.prior import Cells
from pmlopt.errors import PrivacyError
from pmlopt.measures import leakage_level
from pmlopt.model.privacy.ratio_bound import RatioRequirement
from pmlopt.model.privacy.ratios import Ratios, mean_ratios
from pmlopt.model.privacy.requirement import Declared, Requirement, Witness, below, shaped
from pmlopt.model.privacy.secret_leakage import RobustSecretPML, SecretPML
from pmlopt.model.uncertainty import ChoquetSet, Cone, L1Ball, PriorSet, pointwise_capacity
from pmlopt.model.uncertainty.columns import NEGLIGIBLE_LEVEL, Box, Family, Staircase
from pmlopt.model.uncertainty.joint_laws import JointLaws
from pmlopt.model.uncertainty.support_functions import top_mean
from pmlopt.solvers.structured.block import Block, mean_block

if TYPE_CHECKING:
    import cvxpy as cp


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
    return math.log(sum(weights)) - math.log(min(weights)) + 1e-6


@dataclass(frozen=True, init=False)
class PML(Requirement):
    """epsilon-PML: `P[x,y] <= e^epsilon q[y]` for all letters x and outcomes y, with q = p P.

    Over a set of priors it holds for each of them: `max_x P[x,y] <= e^epsilon min_Q sum_x Q[x] P[x,y]`.

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
        >>> near = PML(math.log(1.5), over=L1Ball([0.5, 0.5], 0.2))
        >>> near.holds([0.5, 0.5], [[0.7, 0.3], [0.3, 0.7]])
        False
        >>> PML([math.log(1.4), math.log(1.2)]).holds([0.5, 0.5], [[0.7, 0.3], [0.4, 0.6]])
        False
    """

    epsilon: float
    over: PriorSet | None = None
    name: ClassVar[str] = "pml"
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
    def limits(self) -> dict[str, float]:
        return {"pml": self.epsilon}

    @property
    def scope(self) -> str:
        return "" if self.over is None else self.over.scope

    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        p, m = paired(prior, mechanism)
        priors = self.priors(p)
        level = leakage_level(p, m) if priors is None else float(pointwise_capacity(priors, m).max())
        return {"pml": level}

    def declare(self, prior: Prior, mechanism: cp.Expression, law: cp.Variable) -> Declared:
        import cvxpy as cp

        ones, priors = np.ones((prior.size, 1)), self.priors(prior)
        if priors is None:
            # 3 N M nonzeros with the law as a variable, against N^2 M with the sum inside
            factor = below(math.exp(-min(self.epsilon, prior.max_leakage)))
            return Declared({"pml": factor * mechanism <= ones @ law})
        largest = cp.Variable((1, mechanism.shape[1]), nonneg=True, name="column_maximum")
        least = priors.declare(mechanism, largest)
        return Declared(
            {
                "column_maximum": mechanism <= ones @ largest,
                **least.constraints,
                "pml": below(self._keep) * largest <= least.value,
            },
            {"column_maximum": largest, **least.variables},
        )

    def auxiliary(self, prior: Prior, matrix: FloatArray) -> dict[str, FloatArray]:
        priors = self.priors(prior)
        if priors is None:
            return {}
        return {"column_maximum": matrix.max(axis=0, keepdims=True), **priors.auxiliary(matrix)}

    def block(self, prior: Prior) -> Block | None:
        priors = self.priors(prior)
        if priors is None:
            return mean_block(prior.pmf, below(math.exp(-min(self.epsilon, prior.max_leakage))))
        return priors.block(below(self._keep))

    def excess(self, weights: Any, matrix: Any, power: Callable[[float], Any]) -> Any:
        if self.over is not None:
            least, total = self.over.least_sum(matrix)
            return matrix.max(axis=0) * total - power(min(self.epsilon, 700.0)) * least
        total = weights.sum()
        # P[x,y] <= q[y] / p[x] always: past max_leakage the smaller factor says the same
        # (700 nats are past every prior's maximum, for no letter has less than 1e-300)
        if self.epsilon > 700 or power(self.epsilon) * weights.min() >= total:
            return 0 * matrix.max(axis=0)
        return matrix.max(axis=0) * total - power(self.epsilon) * (weights @ matrix)

    def relaxation(self, prior: Prior, gains: FloatArray) -> float:
        priors = self.priors(prior)
        if priors is not None:
            return priors.relaxation(prior.pmf, gains, self._keep)
        return float(top_mean(prior.pmf, gains, math.exp(-min(self.epsilon, prior.max_leakage))).max())

    def witness(self, prior: Prior, gains: FloatArray) -> Witness:
        """Over a set of priors the theta of each column, see `PriorSet.thetas`; else nothing."""
        priors = self.priors(prior)
        return {} if priors is None else {"theta": priors.thetas(prior.pmf, gains, self._keep)}

    def proved(self, prior: Prior, gains: FloatArray, witness: Witness) -> float:
        priors = self.priors(prior)
        if priors is None:
            return self.relaxation(prior, gains)
        theta = shaped(witness, "theta", (priors.theta_rows, gains.shape[1]))
        return priors.proved_gain(prior.pmf, gains, self._keep, theta)

    @property
    def has_ratios(self) -> bool:
        return self.over is None

    def ratios(self, weights: Any) -> Ratios | None:
        return None if self.over is not None else mean_ratios(weights, np.array(self.epsilon))

    def columns(self, prior: Prior) -> tuple[Family, ...] | Cone:
        priors = self.priors(prior)
        if priors is None:
            return (Box(0.0, math.exp(min(self.epsilon, prior.max_leakage))),)
        keep = math.exp(-min(self.epsilon, NEGLIGIBLE_LEVEL))
        if isinstance(priors, ChoquetSet) and priors.vacuous:
            return (Staircase(0.0, 1 / keep),)
        if isinstance(priors, L1Ball) and not priors.empties and (priors.center.pmf == prior.pmf).all():
            return priors.families(keep)
        return Cone(priors, keep)

    def priors(self, prior: Prior) -> PriorSet | None:
        """The set of priors for which the bound must hold; None where it is the given prior alone.

        Raises:
            PrivacyError: they are on other letters than the given one.
        """
        priors = self.over
        if priors is None:
            return None
        priors.check_letters(prior.labels, "the prior of the design")
        if isinstance(priors, L1Ball) and priors.radius == 0 and (priors.center.pmf == prior.pmf).all():
            return None
        return priors

    @property
    def _keep(self) -> float:
        return math.exp(-min(self.epsilon, 700.0))
