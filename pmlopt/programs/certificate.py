"""Certificates: the base class, and the checks that decide each claim again from its numbers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
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

from pmlopt.core.arrays import FloatArray
from pmlopt.core.display import format_facts_html
from pmlopt.core.records import INFINITE, Context, ContextReference, to_plain
from pmlopt.data.mechanism import Mechanism, MechanismLike
from pmlopt.data.prior import Prior
from pmlopt.data.symmetry.orbit_mechanism import OrbitMechanism
from pmlopt.model.privacy import Requirement
from pmlopt.model.uncertainty import Box, L1Ball, confidence_box
from pmlopt.model.uncertainty.confidence import deviation_exponent, log_event_count
from pmlopt.model.uncertainty.joint_laws import JointLaws
from pmlopt.programs.exact.arithmetic import has_exact_rows, is_met_exactly
from pmlopt.programs.former_names import FORMER_METHODS, replace_former_method

RATIONAL = "rational arithmetic"
FLOATS = "floating point, rounding allowed for"
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


@dataclass(frozen=True)
class Claim:
    """One claim of a certificate, decided again from its numbers without the solver.

    Attributes:
        name: what was looked at, such as "level".
        holds: whether it is so; None where the certificate does not hold what deciding it needs.
        arithmetic: in which it was decided.
        detail: what was found, in words.
        claimed: the number that is claimed, where it is one.
        recomputed: the number that was found instead, where it is one.
    """

    name: str
    holds: bool | None
    arithmetic: str
    detail: str
    claimed: float | None = None
    recomputed: float | None = None

    @property
    def verdict(self) -> str:
        """Return "holds", "FAILS" or "not checked"."""
        return {True: "holds", False: "FAILS", None: "not checked"}[self.holds]

    @property
    def is_exact(self) -> bool:
        """Return whether the claim was decided in rational arithmetic."""
        return self.arithmetic == RATIONAL

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: what `pmlopt verify --json` prints of the claim."""
        return {
            "part": self.name,
            "holds": self.holds,
            "exact": self.is_exact,
            "arithmetic": self.arithmetic,
            "detail": self.detail,
            "claimed": finite_or_none(self.claimed),
            "recomputed": finite_or_none(self.recomputed),
        }

    def __str__(self) -> str:
        return f"{self.name}: {self.verdict} ({self.arithmetic}): {self.detail}"


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

    mechanism: StoredMechanism
    value: float
    bound: Annotated[float, INFINITE]

    @property
    def listed_prior(self) -> Prior | None:
        """Return the prior of the claim as a list of probabilities; None for a claim without one."""
        found = getattr(self, "prior", None)
        return found if isinstance(found, Prior) else None

    @property
    @abstractmethod
    def is_maximised(self) -> bool:
        """Return whether the objective is maximised, so that the bound is an upper bound on the optimum."""

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

    @property
    def proved_gap(self) -> float:
        """Return the gap; infinite where the value passes the bound by more than rounding."""
        return math.inf if self.is_beyond_bound else max(self.gap, 0.0)

    @property
    @abstractmethod
    def level(self) -> float:
        """Return the mechanism's leakage level, in nats."""

    @property
    @abstractmethod
    def statement(self) -> str:
        """Return the claimed leakage guarantee as a short text."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Give subclasses without an own `repr` the short form of certificates."""
        super().__init_subclass__(**keywords)
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = Certificate.__repr__  # type: ignore[method-assign]

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
            "checked in": self.arithmetic,
        }

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
        if math.isnan(self.value) or math.isnan(
            self.bound
        ):  # no arithmetic compares what is no number
            text = f"the value is {self.value} and the bound {self.bound}: one is no number"
            return (Claim("value", False, FLOATS, text),)
        return tuple(claim for claim in self.checks() if claim.holds is False)

    def to_dict(self) -> dict[str, Any]:
        """Serialize the fields to plain data, from which every claim can be rechecked."""
        found: dict[str, Any] = to_plain(self, make_context(self.mechanism, self.listed_prior))
        return found


C_co = TypeVar("C_co", bound=Certificate, covariant=True)


def finite_or_none(number: float | None) -> float | None:
    """Return the number, or None where it is infinite or missing: JSON has no form for infinity."""
    return number if number is not None and math.isfinite(number) else None


@dataclass(frozen=True)
class Timings:
    """Seconds of wall time: compiling by cvxpy, in the solver, certifying, and the whole call."""

    compile: float
    solve: float
    certify: float
    total: float


@dataclass(frozen=True)
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


@dataclass(frozen=True, eq=False)
class WarmStart:
    """The final iterate of a solve as plain arrays, from which a similar program can be warm-started.

    A start that does not fit the next program is left out, for it claims nothing.

    Attributes:
        solver: which method left it.
        arrays: by name, what that method starts from; "matrix" is a mechanism, where there is one.
    """

    solver: str
    arrays: Mapping[str, NDArray[Any]]

    def __post_init__(self) -> None:
        if self.solver.lower() in FORMER_METHODS:
            object.__setattr__(self, "solver", replace_former_method(self.solver))

    @property
    def matrix(self) -> FloatArray | None:
        """Return the (N, M) mechanism matrix stored in the warm start; None where there is none."""
        return None if "matrix" not in self.arrays else np.asarray(self.arrays["matrix"])


@dataclass(frozen=True)
class Verdict:
    """The rechecked claims of a saved result, each with its outcome.

    Attributes:
        kind: of the certificate.
        statement: what is claimed of the leakage.
        parts: the claims, each checked separately.
    """

    kind: str
    statement: str
    parts: tuple[Claim, ...]

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
    if isinstance(start, SolvedProgram):
        return start.restart
    return start if isinstance(start, WarmStart) else None


def get_mechanism(start: MechanismLike | SolvedProgram) -> MechanismLike:
    """Return the mechanism of an earlier result, or the given mechanism itself."""
    return start.mechanism if isinstance(start, SolvedProgram) else start


VERIFY_ROUNDING_FRACTION = 0.5
"""Of the allowance for rounding in a bound that is requested when it is checked: a claim has all of it."""


def check_mechanism(mechanism: Mechanism) -> Claim:
    """Check the claim that the matrix is a mechanism."""
    holds = has_exact_rows(mechanism.matrix)
    return Claim("mechanism", holds, RATIONAL, "no entry is negative, and each row sums to exactly one"
                 if holds else "an entry is negative, or a row does not sum to exactly one")  # fmt: skip


def check_level(prior: Prior, privacy: Requirement, mechanism: Mechanism, statement: str) -> Claim:
    """Check the claim that the mechanism meets a requirement, and name the outcome that breaks it most."""
    holds = is_met_exactly(prior, privacy, mechanism.matrix)
    scope = f", {privacy.scope}" if privacy.scope else ""
    text = statement + scope if holds else privacy.describe_violation(prior, mechanism)
    return Claim("level", holds, RATIONAL, text)


def check_value(claimed: float, found: float, rounding: float, arithmetic: str = FLOATS) -> Claim:
    """Check the claim that a value follows from the matrix, up to rounding."""
    # equality covers infinite values, whose difference is nan
    holds = (math.isfinite(found) and abs(claimed - found) <= rounding) or claimed == found
    other = "" if holds else f" is claimed, and {found:.12g} follows from the matrix"
    return Claim("value", holds, arithmetic, f"{claimed:.12g}{other}", claimed, found)


def check_bound(
    claimed: float, proved: float | None, maximised: bool, arithmetic: str = FLOATS
) -> Claim:
    """Check the claim of a bound against the one that is proved again; `proved` is None without a proof."""
    if claimed == (math.inf if maximised else -math.inf):
        return Claim("bound", True, arithmetic, "none is claimed", claimed)
    if proved is None:
        return Claim("bound", False, arithmetic, "no multipliers prove it", claimed)
    side = "above" if maximised else "below"
    holds = proved <= claimed if maximised else claimed <= proved
    other = "" if holds else f" is claimed, and {proved:.12g} is proved"
    return Claim(
        "bound", holds, arithmetic, f"nothing is {side} {claimed:.12g}{other}", claimed, proved
    )


def check_gap(certificate: Certificate, rounding: float, maximised: bool) -> Claim:
    """Check the claim that the value is not beyond the bound by more than rounding."""
    beyond = _excess_over_bound(certificate.value, certificate.bound, maximised)
    holds = beyond <= rounding
    text = f"{certificate.gap:.3g}" if holds else f"the value is {beyond:.3g} beyond the bound"
    return Claim("gap", holds, FLOATS, text, certificate.gap)


def _excess_over_bound(value: float, bound: float, maximised: bool) -> float:
    """Compute by how much a value passes its bound; negative where it does not."""
    return value - bound if maximised else bound - value


def check_confidences(privacy: Requirement, prior: Any) -> tuple[Claim, ...]:
    """Check that each set of priors contains the true law with its claimed confidence."""
    return tuple(
        check_confidence(over, prior)
        for over in _iterate_prior_sets(privacy)
        if over.delta is not None
    )


def _iterate_prior_sets(privacy: Requirement) -> Iterator[Any]:
    """Iterate over the sets of priors, or of joint laws, of a requirement."""
    for part in privacy.list_parts():
        if (over := getattr(part, "over", None)) is not None:
            yield over


def check_confidence(over: Any, prior: Any) -> Claim:
    """Check the claim that a set of priors contains the true one except with probability `over.delta`.

    The probability is computed again from the counts and the radius of a ball, and the intervals from the
    counts of the prior. Where the numbers that it takes are not there, or knowledge of the true law that no
    number shows would do (`kappa`), it is not checked.

    Source: [grosse2025empirical, Theorem 2].
    """
    # By what share a probability over a sample may be less than the one that follows: rounding of logarithms.
    near = 1e-9
    delta = over.delta
    if isinstance(over, JointLaws):
        balls, most = (over.law, *over.conditionals), math.log(delta)
        # union bound: each ball misses its law with its own probability
        known = [one for one in balls if isinstance(one, L1Ball) and one.center.counts is not None]
        logs = [_log_miss_probability(one) for one in known]
        holds = len(known) == len(balls) and sum(map(math.exp, logs)) <= math.exp(most) * (1 + near)
        return _make_confidence_claim(delta, holds or None)
    if isinstance(over, L1Ball) and over.center.counts is not None:
        if _log_miss_probability(over) <= math.log(delta) + near:
            return _make_confidence_claim(delta, True)
        largest = float(
            over.center.pmf.max()
        )  # `weissman_kappa` of every law in the ball is at least:
        least = min(max(largest, 1 / 3), 1 - largest) - over.radius / 2
        possible = least <= 0 or _log_miss_probability(over, least) <= math.log(delta) + near
        return _make_confidence_claim(delta, None if possible else False)
    if (
        isinstance(over, Box)
        and getattr(prior, "counts", None) is not None
        and prior.samples is not None
    ):
        made = confidence_box(prior, delta)
        inside = (over.lower <= made.lower + near).all() and (over.upper >= made.upper - near).all()
        return _make_confidence_claim(delta, True if inside else None)
    return _make_confidence_claim(delta, over.is_shown_by_sample())


def _make_confidence_claim(delta: float, holds: bool | None) -> Claim:
    """Build the claim that an uncertainty set covers the true law except with probability delta."""
    text = {
        True: f"the sample shows the set, except with probability {delta:g}",
        False: f"the sample does not show the set, except with probability {delta:g}",
        None: f"that the set misses the true law with probability {delta:g} does not follow from the file",
    }
    return Claim("confidence", holds, FLOATS, text[holds], delta)


def _log_miss_probability(ball: L1Ball, kappa: float = 0.5) -> float:
    """Bound the log-probability that an l1 ball around the empirical law misses the true law (Weissman)."""
    draws = sum(ball.center.counts or ())
    return log_event_count(ball.size) - deviation_exponent(min(kappa, 0.5)) / 4 * (
        draws * ball.radius * ball.radius
    )
