"""The base of all kinds of design, and of their certificates."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Annotated, ClassVar

import numpy as np

from pmlopt.core.arrays import DefaultLabels, FloatArray, Label, check_integer, check_labels_of_size
from pmlopt.core.lazy_imports import cp
from pmlopt.core.records import Shape
from pmlopt.data.prior import Prior
from pmlopt.errors import ProgramError
from pmlopt.model.privacy import Requirement
from pmlopt.model.utility import Utility
from pmlopt.programs.certificate import (
    RATIONAL,
    C_co,
    Certificate,
    Claim,
    StoredPrior,
    check_confidences,
    check_level,
    check_mechanism,
)
from pmlopt.programs.exact.repair import RepairRecord
from pmlopt.programs.program import Program

Outputs = int | Iterable[Label] | None


def resolve_outputs(
    inputs: tuple[Label, ...], columns: int | tuple[Label, ...] | None, outputs: Outputs
) -> tuple[Label, ...]:
    """Return the output labels, after checking their number against the columns of the utility."""
    if outputs is None:
        if columns is None or columns == len(inputs):
            return inputs
        return columns if isinstance(columns, tuple) else DefaultLabels(columns)
    # numpy's integers are Real, too, and no iterables
    if isinstance(outputs, Real):
        return DefaultLabels(check_integer(outputs, "the number of outputs", ProgramError))
    if not isinstance(outputs, Iterable):
        raise ProgramError(f"the outputs are {outputs!r}: give their number or their labels")
    # a generator is read once: its labels are kept
    letters: Sequence[Label] = (
        outputs if isinstance(outputs, str | DefaultLabels) else tuple(outputs)
    )
    if not letters:
        raise ProgramError("there are no outputs: give at least one label")
    return check_labels_of_size(letters, len(letters), "the outputs", ProgramError)


@dataclass(frozen=True, eq=False, kw_only=True)
class Design(Program[C_co]):
    """The program of the best utility over the mechanisms that meet a requirement.

    Attributes:
        prior, privacy, utility: what it was declared from.
        outputs: the labels of the outputs; None where the solution decides how many there are.
    """

    prior: Prior
    privacy: Requirement
    utility: Utility
    outputs: tuple[Label, ...] | None

    @property
    def maximised(self) -> bool:
        """Return whether the utility is maximised."""
        return self.utility.maximised

    @property
    def row_and_column_labels(self) -> tuple[tuple[Label, ...] | None, tuple[Label, ...] | None]:
        """Return the labels of the mechanism's rows (letters) and columns (outputs)."""
        return self.prior.labels, self.outputs

    @property
    @abstractmethod
    def scale(self) -> float:
        """Return the range of the utility over all mechanisms, the unit of relative tolerances."""

    @property
    @abstractmethod
    def mechanism(self) -> cp.Expression:
        """Return the mechanism matrix as a cvxpy expression."""

    def with_constraints(self, **constraints: cp.Constraint) -> Design[C_co]:
        """Return a copy of the program with additional named constraints.

        Raises:
            ProgramError: a constraint cannot be taken. None can where the outputs are a part of the answer.
        """
        raise ProgramError(
            f"{self!r} takes no added constraints: its outputs are not known before it is solved; use "
            "a linear utility such as ExpectedGain"
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} under {self.privacy}>"


@dataclass(frozen=True, eq=False, kw_only=True)
class RequirementCertificate(Certificate):
    """The base of certificates of a mechanism that was optimized under a requirement.

    Attributes:
        privacy: the requirement.
    """

    arithmetic: ClassVar[str] = RATIONAL
    """Integers, of the level; the bound is a float to which what rounding may hide is added."""
    privacy: Requirement

    @property
    @abstractmethod
    def float_levels(self) -> tuple[Mapping[str, float], float]:
        """Return the leakage levels by name in floats, and the relative rounding error of a probability."""

    @property
    @abstractmethod
    def level_claims(self) -> tuple[Claim, ...]:
        """Check in integer arithmetic that the numbers are a mechanism and meet the requirement."""

    @cached_property
    def levels(self) -> Mapping[str, float]:
        """Return the levels of the mechanism by name, in nats, rounded up.

        What rounding may have taken off a measured level is added to it; where the requirement is proved to
        hold, no level is above its limit.
        """
        measured, relative_error = self.float_levels
        # differences of products up to twice the share count as none: a level next to 0 may hide them
        up, limits, above = {}, self.privacy.limits, False
        for name, level in measured.items():
            up[name] = level
            if math.isfinite(level):
                least = 2 * relative_error if level >= 0 else -math.inf
                up[name] = max(level + relative_error * max(1.0, abs(level)), least)
            above |= up[name] > limits[name]
        if above and self._meets_requirement:
            return {name: min(level, limits[name]) for name, level in up.items()}
        return up

    @property
    def _meets_requirement(self) -> bool:
        """Return whether every exact claim on the level holds."""
        return all(claim.holds for claim in self.level_claims if claim.is_exact)

    @property
    def level(self) -> float:
        """Return the largest leakage level, in nats, rounded up."""
        return max(self.levels.values())

    @property
    def statement(self) -> str:
        """Return each leakage level with its limit as text."""
        return format_levels(self.levels, self.privacy.limits)


@dataclass(frozen=True, eq=False, kw_only=True)
class ListedCertificate(RequirementCertificate):
    """The base of certificates of a mechanism stored as an explicit matrix.

    Attributes:
        prior: what the claim is about, with the mechanism and the requirement.
    """

    prior: StoredPrior

    def __post_init__(self) -> None:
        object.__setattr__(self, "privacy", self.privacy.for_prior(self.prior))

    @property
    def float_levels(self) -> tuple[Mapping[str, float], float]:
        """Return the leakage levels by name in floats, and the relative rounding error of a probability."""
        constant = not np.ptp(
            self.mechanism.matrix, axis=0
        ).any()  # it reveals nothing: its levels are exact
        found = self.privacy.levels(self.prior, self.mechanism)
        return found, 0.0 if constant else (self.prior.size + 8) * FLOAT_EPSILON

    @cached_property
    def level_claims(self) -> tuple[Claim, ...]:
        """Check in rational arithmetic that the matrix is a mechanism and meets the requirement.

        Every float is a dyadic rational, the prior is its counts (or its floats over their sum), and
        e^epsilon is replaced by a rational below it.
        """
        limits = format_levels(self.privacy.levels(self.prior, self.mechanism), self.privacy.limits)
        mechanism = self.mechanism
        own = check_level(self.prior, self.privacy, mechanism, limits)
        return check_mechanism(mechanism), own, *check_confidences(self.privacy, self.prior)


@dataclass(frozen=True, eq=False, kw_only=True)
class DesignCertificate(ListedCertificate):
    """The claims about a mechanism that was designed for a prior and a requirement.

    Attributes:
        multipliers: (N,) the rho from which `bound` follows, or None.
        residuals: how far each constraint is violated by the matrix, by name; 0 for those that pmlopt
            declares, up to rounding and a margin of 2^-39. For an added constraint in small units, over
            its largest coefficient.
        repair: what was done to the solver's matrix.
    """

    multipliers: Annotated[FloatArray, Shape("N")] | None
    residuals: Mapping[str, float]
    repair: RepairRecord

    @property
    @abstractmethod
    def has_constant_utility(self) -> bool:
        """Return whether every mechanism has the same utility."""


FLOAT_EPSILON = 2.0**-52
"""The relative distance of floats: a sum of n positive terms is off by less than n of it, as a share."""


def format_levels(levels: Mapping[str, float], limits: Mapping[str, float]) -> str:
    """Format leakage levels with their limits in one line."""
    shown = (f"{name} {level:.9g} <= {limits[name]:.9g}" for name, level in levels.items())
    return f"{', '.join(shown)} nats"
