"""What is claimed of an answer, decided again without the solver, and where a next solve can start."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
    runtime_checkable,
)

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.arrays import FloatArray
from pmlopt.core.display import facts_html
from pmlopt.core.records import INFINITE, Context, Given, plain
from pmlopt.data.mechanism import Mechanism, MechanismLike
from pmlopt.data.prior import Prior
from pmlopt.data.symmetry.orbit_mechanism import OrbitMechanism

RATIONAL = "rational arithmetic"
FLOATS = "floating point, rounding allowed for"
DECIMAL = "decimal arithmetic of 50 digits"


class Status(StrEnum):
    """How a solve ended."""

    OPTIMAL = "optimal"
    """The certified gap is within the tolerance."""
    UNPROVED = "unproved"
    """The method finished, and the gap is what could be proved: constraints were added whose part in the
    bound is not sharp, a search found nothing better and no proof that there is nothing, or the method proves
    no bound at all."""
    STOPPED = "stopped"
    """Time or rounds gave out; what is in hand meets its limits, and its gap is above the tolerance."""
    VIOLATED = "violated"
    """The method ended at a mechanism that breaks a limit; the certificate says by how much."""


@dataclass(frozen=True)
class Claim:
    """One thing that a certificate claims, decided again from its numbers without the solver.

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
        """In one word or two."""
        return {True: "holds", False: "FAILS", None: "not checked"}[self.holds]

    @property
    def exact(self) -> bool:
        """Whether it was decided without rounding that could matter."""
        return self.arithmetic == RATIONAL

    def to_dict(self) -> dict[str, Any]:
        """Plain data: what `pmlopt verify --json` prints of it."""
        return {
            "part": self.name,
            "holds": self.holds,
            "exact": self.exact,
            "arithmetic": self.arithmetic,
            "detail": self.detail,
            "claimed": finite(self.claimed),
            "recomputed": finite(self.recomputed),
        }

    def __str__(self) -> str:
        return f"{self.name}: {self.verdict} ({self.arithmetic}): {self.detail}"


def context_of(mechanism: Mechanism, prior: Prior | None) -> Context:
    """In which a certificate is written and read: what its file holds beside it, under the words for these.

    Those are the mechanism, its inputs as the labels, and the prior; one by orbits has its prior in it.
    """
    if isinstance(mechanism, OrbitMechanism):
        return Context(given={"mechanism": mechanism, **mechanism.space.prior.context.given})
    given = {"mechanism": mechanism, "labels": mechanism.inputs} | ({} if prior is None else {"prior": prior})
    return Context(given=given, sizes=dict(zip(("N", "M"), mechanism.shape, strict=True)))


StoredMechanism = Annotated[Mechanism, Given("mechanism", only=True)]
StoredPrior = Annotated[Prior, Given("prior", only=True)]
"""The mechanism and the prior of a file, of which its certificate has the words alone."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Certificate(ABC):
    """What is claimed of a mechanism, and the means to check it without the solver.

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
    def about(self) -> Prior | None:
        """The prior that the claim is about, where it is about one that is listed."""
        found = getattr(self, "prior", None)
        return found if isinstance(found, Prior) else None

    @property
    def gap(self) -> float:
        """|bound - value|: how far the value may be from the best there is."""
        return abs(self.bound - self.value)

    @property
    @abstractmethod
    def level(self) -> float:
        """What the mechanism leaks at most, in nats; a certificate says where it is rounded."""

    @property
    @abstractmethod
    def statement(self) -> str:
        """What is claimed of the leakage, in a few words."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        """A dataclass would write all matrices into its `repr`, where the class has none of its own."""
        super().__init_subclass__(**keywords)
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = Certificate.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        """The claim in a line."""
        return f"<{type(self).__name__}: value {self.value:.9g}, bound {self.bound:.9g}; {self.statement}>"

    def _repr_html_(self) -> str:
        """The claim as a notebook shows it."""
        return facts_html(type(self).__name__, self.facts)

    @property
    def facts(self) -> dict[str, str]:
        """What is claimed, by name, as text."""
        return {
            "value": f"{self.value:.9g}",
            "bound": f"{self.bound:.9g} (gap {self.gap:.1e})",
            "leakage": self.statement,
            "checked in": self.arithmetic,
        }

    @property
    def violation(self) -> float:
        """By how much a limit of the program is exceeded: 0 unless the method ended outside it."""
        return 0.0

    @abstractmethod
    def checks(self) -> tuple[Claim, ...]:
        """All that is claimed, each decided again without the solver: mechanism, level, value, bound, gap."""

    def verify(self) -> bool:
        """Whether none of `checks` fails.

        A claim for which the certificate lacks what deciding it needs (a function that is a user's own, a
        constraint that is not affine) is not checked, and does not count; `checks` names it. What is checked
        of a level, and of a value or a bound where `checks` says "rational arithmetic", is then proved for
        exactly the numbers in the certificate.
        """
        if math.isnan(self.value) or math.isnan(self.bound):
            return False  # no arithmetic compares what is no number
        return all(claim.holds is not False for claim in self.checks())

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain data: with the mechanism and the prior, enough to check every claim again."""
        found: dict[str, Any] = plain(self, context_of(self.mechanism, self.about))
        return found


C_co = TypeVar("C_co", bound=Certificate, covariant=True)


def finite(number: float | None) -> float | None:
    """The number, or None where it is infinite, or there is none: JSON has no word for that."""
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
    """A mechanism or value known by formula that is optimal here, beside what the solver found.

    Attributes:
        name: the function of `pmlopt.model.closed_forms`.
        value: its value.
        difference: the solver's value minus it.
    """

    name: str
    value: float
    difference: float


@dataclass(frozen=True, eq=False)
class Restart:
    """Where a method ended, as a start for a program nearby: plain arrays, which pickle and fit into files.

    A start that does not fit the next program is left out, for it claims nothing.

    Attributes:
        solver: which method left it.
        arrays: by name, what that method starts from; "matrix" is a mechanism, where there is one.
    """

    solver: str
    arrays: Mapping[str, NDArray[Any]]

    @property
    def matrix(self) -> FloatArray | None:
        """(N, M) the mechanism, where there is one."""
        return None if "matrix" not in self.arrays else np.asarray(self.arrays["matrix"])


@dataclass(frozen=True)
class Verdict:
    """All claims of a file.

    Attributes:
        kind: of the certificate.
        statement: what is claimed of the leakage.
        parts: the claims, each checked by itself.
    """

    kind: str
    statement: str
    parts: tuple[Claim, ...]

    @classmethod
    def of(cls, certificate: Certificate, *more: Claim) -> Verdict:
        """The claims of a certificate, and more that were decided beside them."""
        return cls(certificate.kind, certificate.statement, (*certificate.checks(), *more))

    @property
    def holds(self) -> bool | None:
        """False where a claim fails; None where none does and one was not checked; else True."""
        found = [part.holds for part in self.parts]
        if False in found:
            return False
        return None if None in found else True

    @property
    def failures(self) -> tuple[Claim, ...]:
        """The claims that are false."""
        return tuple(part for part in self.parts if part.holds is False)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: what `pmlopt verify --json` prints."""
        return {
            "kind": self.kind,
            "statement": self.statement,
            "holds": self.holds,
            "parts": [part.to_dict() for part in self.parts],
        }

    def __str__(self) -> str:
        word = {True: "the claim holds", False: "the claim FAILS", None: "not all of it was checked"}
        return "\n".join([f"{self.kind}: {self.statement}", *map(str, self.parts), word[self.holds]])


@runtime_checkable
class Solved(Protocol):
    """What a solve returned, as far as the next one may start from it."""

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that was found."""

    @property
    def restart(self) -> Restart:
        """Where the method ended."""


WarmStart: TypeAlias = MechanismLike | Solved | Restart | Literal[False] | None
"""A warm start: a mechanism, the end of another solve, nothing (False), or what is known (None)."""


def restart_of(start: WarmStart) -> Restart | None:
    """The restart in a warm start, where it is or carries one."""
    if isinstance(start, Solved):
        return start.restart
    return start if isinstance(start, Restart) else None


def mechanism_of(start: MechanismLike | Solved) -> MechanismLike:
    """The mechanism in a warm start that was given by a person."""
    return start.mechanism if isinstance(start, Solved) else start
