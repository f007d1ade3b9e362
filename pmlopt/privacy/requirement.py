"""The interface of privacy requirements: levels, constraints on a variable, and what a proof needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from pmlopt.arrays import FloatArray
from pmlopt.backends.structured.band import Band
from pmlopt.mechanism import MechanismLike
from pmlopt.prior import Prior, PriorLike
from pmlopt.uncertainty.column_families import Family
from pmlopt.uncertainty.cone import Cone

if TYPE_CHECKING:
    import cvxpy as cp


@dataclass(frozen=True)
class Declared:
    """A requirement as cvxpy constraints: the constraints by name, and the variables they brought."""

    constraints: Mapping[str, cp.Constraint]
    variables: Mapping[str, cp.Variable] = field(default_factory=dict)


class Requirement(ABC):
    """A convex bound on the leakage of a mechanism, satisfied by every constant mechanism.

    The number and the constraint are twins: `holds` is true iff the matrix satisfies `constraints`.
    Beside them stand the two things a proof needs: `excess`, the bound in arithmetic of any kind,
    and `relaxation`, the support function that turns multipliers into a bound on the utility.
    """

    name: ClassVar[str]

    @property
    @abstractmethod
    def limits(self) -> dict[str, float]:
        """The claimed bounds by name, in nats."""

    @property
    def scope(self) -> str:
        """The priors or the slack of the bound in words; empty where it is for the given prior."""
        return ""

    @property
    def details(self) -> dict[str, Any]:
        """The parameters of the bound besides its limits, as plain data."""
        return {}

    @abstractmethod
    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        """The levels of a mechanism in nats, under the same names as `limits`."""

    @abstractmethod
    def constraints(self, prior: Prior, mechanism: cp.Variable, law: cp.Variable) -> Declared:
        """The requirement on an (N, M) variable and its (1, M) output law, in sparse form."""

    @abstractmethod
    def auxiliary(self, prior: Prior, matrix: FloatArray) -> dict[str, FloatArray]:
        """The values that the variables brought by `constraints` take at a given matrix."""

    def band(self, prior: Prior) -> Band | None:
        """The bound on one column by itself as a `Band`; None where it is not one, or has no interior."""
        return None

    @abstractmethod
    def excess(self, weights: Any, matrix: Any, power: Callable[[float], Any]) -> Any:
        """Violations of the bound: numbers that are all at most 0 iff the requirement holds.

        Homogeneous in `weights` (the prior up to a factor) and in `matrix` (rows up to one common
        sum), and written in operations that numpy floats, Python integers and Fractions share, so
        that one formula serves floating-point and exact arithmetic.

        Args:
            weights: (N,) proportional to the prior.
            matrix: (N, M) with equal row sums.
            power: x >= 0 -> e^x, or a lower bound of it.
        """

    @abstractmethod
    def relaxation(self, prior: Prior, gains: FloatArray) -> float:
        """The support function of the bound: max sum_xy p[x] gains[x,y] P[x,y] over P >= 0 within it.

        The rows need not sum to one, only the law q does (under maximal leakage, not even that). A
        rounding-level error is allowed for by the caller.
        """

    @abstractmethod
    def columns(self, prior: Prior) -> tuple[Family, ...] | Cone:
        """The extreme columns of mean one that the bound allows, as families or as those of a cone.

        Designs with a sub-convex utility are made of them.

        Raises:
            PrivacyError: the bound is not on each column by itself.
        """

    def level(self, prior: PriorLike, mechanism: MechanismLike) -> float:
        """The largest of `levels`, in nats."""
        return max(self.levels(prior, mechanism).values())

    def holds(self, prior: PriorLike, mechanism: MechanismLike) -> bool:
        """Whether each level is within its limit, in floating-point arithmetic without tolerance."""
        levels = self.levels(prior, mechanism)
        return all(levels[name] <= limit for name, limit in self.limits.items())


LARGEST_EXPONENT = 700.0
"""The largest level in nats whose exponential is used as a float; floats overflow from 709.8 on."""

MARGIN = 2.0**-40
"""Share by which constraints on a variable are stricter than the claim: 9e-13, far above the rounding of a
matrix entry (2^-53) and far below the tolerances of solvers (1e-9 to 1e-7)."""


def below(factor: float) -> float:
    """A factor e^-eps <= 1 for constraints on a variable, stricter by 2^-40 where there is room.

    A vertex then satisfies the claim after its entries are rounded to floats, zeros and all: without the
    margin its tight entries would need a repair, which fills the zeros. The share is far
    below any solver's tolerance, and so is what it costs the utility.
    """
    return min(1.0, factor * (1 + MARGIN))
