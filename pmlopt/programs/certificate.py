"""Certificates: the base class, and the checks that decide each claim again from its numbers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cached_property
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
    runtime_checkable,
)

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.display import format_facts_html
from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.core.records.fields import (
    INFINITE,
    Context,
    ContextReference,
    Shape,
    have_equal_content,
)
from pmlopt.data.mechanism import Mechanism, MechanismLike
from pmlopt.data.prior import Prior
from pmlopt.data.symmetry.orbit_mechanism import OrbitMechanism
from pmlopt.model.privacy import Requirement
from pmlopt.programs.claims import (
    FLOATS,
    RATIONAL,
    Claim,
    check_confidences,
    check_level,
    check_mechanism,
)
from pmlopt.programs.exact.rounding import RepairRecord

DECIMAL = "decimal arithmetic of 50 digits"


class Status(StrEnum):
    """The way in which a solve ended."""

    OPTIMAL = "optimal"
    """The certified gap is within the tolerance."""
    UNPROVED = "unproved"
    """The method finished, and the gap is what could be proved: the tolerance is below what floats allow,
    constraints were added whose part in the bound is not sharp, a search found nothing better and no proof
    that there is nothing, or the method proves no bound at all."""
    LIMIT_REACHED = "limit_reached"
    """A limit on time or rounds ended the search, or every solver failed; the mechanism meets its limits, and
    its gap is above the tolerance."""
    VIOLATED = "violated"
    """The method ended at a mechanism that breaks a limit; the certificate states by how much."""


def make_context(mechanism: Mechanism, prior: Prior | None) -> Context:
    """Build the data shared by writing and reading a certificate: mechanism, labels and prior.

    Those are the mechanism, its inputs as the labels, and the prior; one by orbits has its prior in it.
    """
    if isinstance(mechanism, OrbitMechanism):
        return Context(given={"mechanism": mechanism, **mechanism.space.prior.context.given})
    given = {"mechanism": mechanism, "labels": mechanism.inputs} | (
        {} if prior is None else {"prior": prior}
    )
    return Context(given=given, sizes=dict(zip(("N", "M"), mechanism.matrix.shape, strict=True)))


StoredMechanism = Annotated[Mechanism, ContextReference("mechanism", only=True)]
StoredPrior = Annotated[Prior, ContextReference("prior", only=True)]
"""The mechanism and the prior of a file, of which its certificate has the words only."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Certificate(ABC):
    """The claims about a mechanism, and the means to check them without the solver.

    The fields of each kind are its file format; what follows from them is computed and never stored.

    Attributes:
        mechanism: what the claim is about.
        value: what is optimised, recomputed from the mechanism, in its own units.
        bound: what nothing under the same constraints can better: at least the value where it is maximised,
            at most the value where it is minimised. Infinite where nothing is proved.
    """

    kind: ClassVar[str]
    """The name of this kind of certificate in files."""
    arithmetic: ClassVar[str]
    """The arithmetic in which the level is decided, in words, such as "rational arithmetic"."""
    is_of_design: ClassVar[bool] = True
    """Whether the mechanism was found for what is claimed; else it was given, and may come from elsewhere."""

    mechanism: StoredMechanism
    value: float
    bound: Annotated[float, INFINITE]

    @property
    def listed_prior(self) -> Prior | None:
        """Return the prior of the claim as a list of probabilities; None for a claim without one."""
        found = getattr(self, "prior", None)
        return found if isinstance(found, Prior) else None

    @property
    def level_certificate(self) -> Certificate:
        """Return the certificate that states the level of the mechanism: this one, or a part of it."""
        return self

    @property
    def is_maximised(self) -> bool:
        """Return whether the objective is maximised, so that the bound is an upper bound on the optimum.

        A kind follows its `maximised`, which is a field or an attribute of the class.
        """
        return bool(getattr(self, "maximised", True))

    @property
    def bound_rounding(self) -> float:
        """Return the floating-point allowance by which the value may pass its bound."""
        return 0.0

    @property
    def gap(self) -> float:
        """Return the absolute gap between value and bound; negative where the value passes the bound."""
        return self.bound - self.value if self.is_maximised else self.value - self.bound

    @property
    def is_beyond_bound(self) -> bool:
        """Return whether the value passes its bound by more than rounding, so that one of them is wrong."""
        beyond = _excess_over_bound(self.value, self.bound, self.is_maximised)
        # negated, so that nan counts as beyond the bound
        return not (beyond <= 0 or beyond <= self.bound_rounding)

    @cached_property
    def proved_gap(self) -> float:
        """Return the gap; infinite where the value passes the bound by more than rounding."""
        return math.inf if self.is_beyond_bound else max(self.gap, 0.0)

    @property
    @abstractmethod
    def level(self) -> float:
        """Return the mechanism's leakage level, in nats."""

    @property
    def value_name(self) -> str:
        """Return what the value is, in words."""
        return "value"

    @property
    @abstractmethod
    def statement(self) -> str:
        """Return the claimed leakage guarantee as a short text."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Give subclasses without an own `repr` the short form of certificates."""
        super().__init_subclass__(**keywords)
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = Certificate.__repr__  # type: ignore[method-assign]

    def __eq__(self, other: object) -> bool:
        """Return whether two certificates claim the same with the same proof."""
        return type(other) is type(self) and all(
            have_equal_content(getattr(self, one.name), getattr(other, one.name))
            for one in fields(self)
        )

    def __hash__(self) -> int:
        return hash((type(self), self.value))

    def __repr__(self) -> str:
        """Return the claim in a line."""
        return f"<{type(self).__name__}: value {self.value:.9g}, bound {self.bound:.9g}; {self.statement}>"

    def _repr_html_(self) -> str:
        """Return the claim as a notebook shows it."""
        return format_facts_html(type(self).__name__, self.facts)

    @property
    def facts(self) -> dict[str, str]:
        """Return the claimed facts as text, keyed by name."""
        return {
            "value": f"{self.value:.9g}",
            "bound": f"{self.bound:.9g} (gap {self.gap:.1e})",
            "leakage": self.statement,
            "checked in": self.level_arithmetic,
        }

    @property
    def level_arithmetic(self) -> str:
        """Return the arithmetic in which the level of this mechanism is decided, in words."""
        return self.arithmetic

    @property
    def violation(self) -> float:
        """Return the constraint violation of the mechanism; 0 unless the method ended outside a limit."""
        return 0.0

    def with_bound_from(self, other: Self) -> Self:
        """Return a copy with the better bound of another certificate of the same program, if any."""
        return self

    @abstractmethod
    def checks(self) -> tuple[Claim, ...]:
        """Recheck every claim without the solver: mechanism, level, value, bound and gap."""

    def _check_gap(self) -> Claim:
        """Check the claim that the value is not beyond the bound by more than rounding."""
        return check_gap(self, self.bound_rounding, self.is_maximised)

    def verify(self) -> bool:
        """Return whether no claim of `checks` is false.

        A claim for which the certificate lacks what deciding it needs (a function that is a user's own, a
        constraint that is not affine) is not checked, and does not count; `checks` names it. What is checked
        of a level, and of a value or a bound where `checks` states "rational arithmetic", is then proved for
        exactly the numbers in the certificate.
        """
        return not self.failures

    @property
    def failures(self) -> tuple[Claim, ...]:
        """Return the claims of `checks` that are false."""
        # no arithmetic compares what is no number
        if math.isnan(self.value) or math.isnan(self.bound):
            text = f"the value is {self.value} and the bound {self.bound}: one is no number"
            return (Claim("value", False, FLOATS, text),)
        return tuple(claim for claim in self.checks() if claim.holds is False)

    def to_dict(self) -> dict[str, Any]:
        """Serialize the fields to plain data, from which every claim can be rechecked."""
        from pmlopt.core.records.converters import to_plain

        found: dict[str, Any] = to_plain(self, make_context(self.mechanism, self.listed_prior))
        return found


C_co = TypeVar("C_co", bound=Certificate, covariant=True)


@light_dataclass(frozen=True)
class Timings:
    """Seconds of wall time: compiling by cvxpy, in the solver, certifying, and the whole call."""

    compile: float
    solve: float
    certify: float
    total: float


@light_dataclass(frozen=True)
class ClosedForm:
    """An analytically known optimal mechanism or value, to compare with the solver's result.

    Attributes:
        name: the function of `pmlopt.model.closed_forms`.
        value: its value.
        difference: the solver's value minus it.
    """

    name: str
    value: float
    difference: float


@light_dataclass(frozen=True, eq=False)
class WarmStart:
    """The final iterate of a solve as plain arrays, from which a similar program can be warm-started.

    A start that does not fit the next program is left out, for it claims nothing.

    Attributes:
        solver: which method left it.
        arrays: by name, what that method starts from; "matrix" is a mechanism, where there is one.
    """

    solver: str
    arrays: Mapping[str, NDArray[Any]]

    @property
    def matrix(self) -> FloatArray | None:
        """Return the (N, M) mechanism matrix stored in the warm start; None where there is none."""
        return None if "matrix" not in self.arrays else np.asarray(self.arrays["matrix"])


@light_dataclass(frozen=True)
class Verdict:
    """The rechecked claims of a saved result, each with its outcome.

    Attributes:
        kind: of the certificate.
        statement: what is claimed of the leakage.
        parts: the claims, each checked separately.
        warnings: what the reader should know although the claims hold.
        notes: what no check of the file or folder can show.
    """

    kind: str
    statement: str
    parts: tuple[Claim, ...]
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def from_certificate(cls, certificate: Certificate, *more: Claim) -> Verdict:
        """Build a verdict from the rechecked claims of a certificate and any additional claims."""
        return cls(certificate.kind, certificate.statement, (*certificate.checks(), *more))

    @property
    def holds(self) -> bool | None:
        """Return whether all claims hold: False if one fails, None if one was not checked."""
        found = [part.holds for part in self.parts]
        if False in found:
            return False
        return None if None in found else True

    @property
    def failures(self) -> tuple[Claim, ...]:
        """Return the claims that are false."""
        return tuple(part for part in self.parts if part.holds is False)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: what `pmlopt verify --json` prints."""
        return {
            "kind": self.kind,
            "statement": self.statement,
            "holds": self.holds,
            "parts": [part.to_dict() for part in self.parts],
            **({"warnings": [*self.warnings], "notes": [*self.notes]} if self.notes else {}),
        }

    def __str__(self) -> str:
        word = {
            True: "the claim holds",
            False: "the claim FAILS",
            None: "not all of it was checked",
        }
        return "\n".join(
            [f"{self.kind}: {self.statement}", *map(str, self.parts), word[self.holds]]
        )


@runtime_checkable
class SolvedProgram(Protocol):
    """The interface of a solve's result that can warm-start another solve."""

    @property
    def mechanism(self) -> Mechanism:
        """Return the optimized mechanism."""

    @property
    def restart(self) -> WarmStart:
        """Return the final iterate, from which another solve can start."""


WarmStartLike: TypeAlias = MechanismLike | SolvedProgram | WarmStart | Literal[False] | None
"""A warm start: a mechanism, the end of another solve, nothing (False), or what is known (None)."""


def get_warm_start(start: WarmStartLike) -> WarmStart | None:
    """Return the warm-start arrays of an earlier result; None for a plain mechanism."""
    if start is None or isinstance(start, WarmStart):
        return start
    return start.restart if isinstance(start, SolvedProgram) else None


def get_mechanism(start: MechanismLike | SolvedProgram) -> MechanismLike:
    """Return the mechanism of an earlier result, or the given mechanism itself."""
    return start.mechanism if isinstance(start, SolvedProgram) else start


VERIFY_ROUNDING_FRACTION = 0.5
"""Of the allowance for rounding in a bound that is requested when it is checked: a claim has all of it."""


def check_gap(certificate: Certificate, rounding: float, maximised: bool) -> Claim:
    """Check the claim that the value is not beyond the bound by more than rounding."""
    beyond = _excess_over_bound(certificate.value, certificate.bound, maximised)
    holds = beyond <= rounding
    text = f"{certificate.gap:.3g}" if holds else f"the value is {beyond:.3g} beyond the bound"
    return Claim("gap", holds, FLOATS, text, certificate.gap)


def _excess_over_bound(value: float, bound: float, maximised: bool) -> float:
    """Compute by how much a value passes its bound; negative where it does not."""
    return value - bound if maximised else bound - value


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

    @abstractmethod
    def _check_value(self) -> Claim:
        """Check the claim that the value follows from the mechanism."""

    @abstractmethod
    def _check_bound(self) -> Claim:
        """Check the claim that nothing betters the bound."""

    def _check_constraints(self) -> tuple[Claim, ...]:
        """Check what is required of the mechanism in addition to its level."""
        return ()

    def checks(self) -> tuple[Claim, ...]:
        """Recheck the level, what else is required, the value and the bound."""
        return (
            *self.level_claims,
            *self._check_constraints(),
            self._check_value(),
            self._check_gap(),
            self._check_bound(),
        )

    @cached_property
    def levels(self) -> Mapping[str, float]:
        """Return the levels of the mechanism by name, in nats, rounded up.

        What rounding may have taken off a measured level is added to it; where the requirement is proved to
        hold, no level is above its limit.
        """
        measured, relative_error = self.float_levels
        # differences of products up to twice the share count as none: a level next to 0 may hide them
        up = {}
        limits = self.privacy.limits
        above = False
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
    def level_arithmetic(self) -> str:
        """Return the arithmetic in which the level of this mechanism is decided, in words."""
        own = (claim.arithmetic for claim in self.level_claims if claim.name == "level")
        return next(own, self.arithmetic)

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

    @cached_property
    def float_levels(self) -> tuple[Mapping[str, float], float]:
        """Return the leakage levels by name, and the relative rounding error of a probability.

        The error of a least mean over a set of priors has no such bound: its levels are rounded up.
        """
        # it reveals nothing: its levels are exact
        matrix = self.mechanism.matrix
        constant = bool((matrix == matrix[0]).all())
        found = self.privacy.levels(self.prior, self.mechanism)
        found |= self.privacy.bound_levels(self.prior, self.mechanism)
        return found, 0.0 if constant else (self.prior.size + 8) * FLOAT_EPSILON

    @cached_property
    def level_claims(self) -> tuple[Claim, ...]:
        """Check in rational arithmetic that the matrix is a mechanism and meets the requirement.

        Every float is a dyadic rational, the prior is its counts (or its floats over their sum), and
        e^epsilon is replaced by a rational below it.
        """
        limits = format_levels(self.float_levels[0], self.privacy.limits)
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
    shown = (f"{name} {level:.9g} of at most {limits[name]:.9g}" for name, level in levels.items())
    return f"{', '.join(shown)} nats"
