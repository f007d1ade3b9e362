"""What `solve` returns: types only."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pmlopt.arrays import FloatArray
from pmlopt.mechanism import Mechanism, MechanismLike
from pmlopt.programs.design_certificate import Certificate, DesignCertificate, finite
from pmlopt.programs.record_leakage.certificate import RecordCertificate
from pmlopt.programs.tradeoff.certificate import DistortionCertificate


class Status(StrEnum):
    """How a solve ended."""

    OPTIMAL = "optimal"
    """The certified gap is within the tolerance."""
    UNPROVED = "unproved"
    """The solver finished, and the gap is what could be proved: constraints were added whose part in the
    bound is not sharp, or column generation found no better column and no proof that there is none."""
    STOPPED = "stopped"
    """A mechanism that satisfies the requirement is in hand; its gap is above the tolerance."""
    VIOLATED = "violated"
    """The method ended at a mechanism that breaks a bound; the certificate says by how much."""


@dataclass(frozen=True)
class Timings:
    """Seconds of wall time: compiling by cvxpy, in the solver, certifying, and the whole call."""

    compile: float
    solve: float
    certify: float
    total: float


@dataclass(frozen=True)
class ClosedForm:
    """A mechanism known by formula that is optimal here, beside what the solver found.

    Attributes:
        name: the function of `pmlopt.closed_forms`.
        value: its utility.
        difference: the solver's value minus it.
    """

    name: str
    value: float
    difference: float


@dataclass(frozen=True, eq=False)
class Result:
    """What was found, with the proof of what is claimed.

    Attributes:
        status: OPTIMAL where the certified gap is within tolerance.
        certificate: what is claimed, recomputed from the matrix.
        solver: the solver that found the mechanism.
        reason: why the dispatch chose it.
        attempts: one line for each solver tried before it, with what went wrong.
        iterations: the solver's own count, where it tells one.
        warm_started: whether the solver started from a mechanism in hand.
        timings: seconds.
        closed_form: the optimum by formula, where one is known.
    """

    status: Status
    certificate: Certificate
    solver: str
    reason: str
    attempts: tuple[str, ...]
    iterations: int | None
    warm_started: bool
    timings: Timings
    closed_form: ClosedForm | None

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that the claim is about; a designed one satisfies its requirement exactly."""
        return self.certificate.mechanism

    @property
    def value(self) -> float:
        """What is optimised, recomputed: the utility of a designed mechanism."""
        return self.certificate.value

    @property
    def bound(self) -> float:
        """What nothing under the same constraints can better."""
        return self.certificate.bound

    @property
    def gap(self) -> float:
        """|bound - value|."""
        return self.certificate.gap

    @property
    def level(self) -> float:
        """What the mechanism leaks at most, recomputed from its matrix, in nats."""
        return self.certificate.level

    def __str__(self) -> str:
        """One line: how it ended, the value with its bound, what is claimed of the leakage, the solver."""
        return (
            f"{self.status.value}: value {self.value:.9g}, gap {self.gap:.1e}; {self.certificate.statement}; "
            f"{self.solver}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a program: what `--json` prints."""
        return {
            "status": self.status.value,
            "value": self.value,
            "bound": finite(self.bound),
            "gap": finite(self.gap),
            "level": finite(self.level),
            "mechanism": {
                "inputs": list(self.mechanism.inputs),
                "outputs": list(self.mechanism.outputs),
                "matrix": self.mechanism.matrix.tolist(),
            },
            "certificate": self.certificate.to_dict(),
            "solver": self.solver,
            "reason": self.reason,
            "attempts": list(self.attempts),
            "iterations": self.iterations,
            "warm_started": self.warm_started,
            "closed_form": None if self.closed_form is None else asdict(self.closed_form),
            "timings": asdict(self.timings),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the mechanism; JSON and NPZ carry the certificate and the solver's record too."""
        metadata = {key: item for key, item in self.to_dict().items() if key != "mechanism"}
        self.mechanism.save(path, metadata)


@dataclass(frozen=True, eq=False)
class Restart:
    """Where a solver ended, as a start for a program of the same shape nearby: plain arrays, which pickle.

    Attributes:
        solver: which solver left it.
        arrays: "matrix", the (N, M) mechanism, and what that solver itself starts from.
    """

    solver: str
    arrays: Mapping[str, NDArray[Any]]

    @property
    def matrix(self) -> FloatArray:
        """(N, M) the mechanism."""
        return np.asarray(self.arrays["matrix"])


WarmStart: TypeAlias = MechanismLike | Result | Restart | Literal[False] | None
"""A warm start: a mechanism, the end of another solve, nothing (False), or what is known (None)."""


def mechanism_of(start: MechanismLike | Result | Restart) -> MechanismLike:
    """The mechanism in a warm start."""
    if isinstance(start, Result):
        return start.mechanism
    return start.matrix if isinstance(start, Restart) else start


@dataclass(frozen=True, eq=False)
class DesignResult(Result):
    """What `solve` returns: a mechanism that was designed, with its levels in the certificate.

    Attributes:
        restart: a warm start for the next program of the same shape.
    """

    certificate: DesignCertificate
    restart: Restart = field(repr=False)


@dataclass(frozen=True, eq=False)
class RecordResult(Result):
    """What `record_leakage` returns: the worst prior from below, a proved bound from above."""

    certificate: RecordCertificate

    @property
    def record(self) -> int:
        """The record that leaks most, counted from 0; others of its kind leak the same."""
        return self.certificate.record

    @property
    def joint(self) -> FloatArray:
        """(A, T) the law of (X_i, T) under the worst prior found; `certificate.prior()` is that of X."""
        return self.certificate.joint


@dataclass(frozen=True, eq=False)
class DistortionResult(Result):
    """What `leakage_distortion` and `distortion_leakage` return: a mechanism, its audit, a proved bound."""

    certificate: DistortionCertificate

    @property
    def leakage(self) -> float:
        """What no record leaks more than, proved, in nats."""
        return self.certificate.audit.bound

    @property
    def distortion(self) -> float:
        """The expected distortion of the mechanism, recomputed."""
        return self.certificate.distortion
