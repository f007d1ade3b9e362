"""What a problem file can ask for: each builder or measure with its data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from pmlopt import closed_forms
from pmlopt.arrays import FloatArray
from pmlopt.closed_forms.by_name import CLOSED_FORMS
from pmlopt.errors import InstanceError, SolverUnavailableError
from pmlopt.measures import leakage_level
from pmlopt.mechanism import Mechanism
from pmlopt.prior import Prior
from pmlopt.privacy import Requirement
from pmlopt.program import Program
from pmlopt.programs.designs import design
from pmlopt.programs.least_leakage.program import least_leakage, worst_case_utility
from pmlopt.programs.record_leakage.closed_form import is_parity, parity_error
from pmlopt.programs.record_leakage.program import record_leakage
from pmlopt.programs.tradeoff.program import distortion_leakage, leakage_distortion
from pmlopt.programs.tradeoff.relaxation import Sense
from pmlopt.queries import Query
from pmlopt.result import Result
from pmlopt.solving import solve
from pmlopt.utility import LinearUtility, SubConvex


class Problem(ABC):
    """What is asked.

    Attributes:
        forms: the closed forms that a file may name for it.
    """

    forms: Collection[str] = ()

    @abstractmethod
    def solve(
        self, solver: str = "auto", *, time_limit: float | None = None, tolerance: float = 1e-7
    ) -> Result:
        """Solve it, from scratch; the arguments are those of `pmlopt.solve`."""

    @abstractmethod
    def closed_value(self, name: str) -> float:
        """The value of a closed form by its name, one of `forms`."""


class ProgramProblem(Problem):
    """A program for a prior.

    Attributes:
        prior: of the secret.
    """

    prior: Prior

    @abstractmethod
    def program(self) -> Program:
        """Declare it."""

    @abstractmethod
    def value(self, mechanism: Mechanism) -> float:
        """What is optimised, at a mechanism."""

    def closed_form(self, name: str) -> Mechanism:
        """A closed form by its name, one of `forms`."""
        raise NotImplementedError(f"there is no closed form {name!r}")

    def solve(
        self, solver: str = "auto", *, time_limit: float | None = None, tolerance: float = 1e-7
    ) -> Result:
        return solve(self.program(), solver, False, time_limit=time_limit, tolerance=tolerance)

    def closed_value(self, name: str) -> float:
        return self.value(self.closed_form(name))


@dataclass(frozen=True)
class DesignProblem(ProgramProblem):
    """`design`: the best utility within a privacy requirement."""

    prior: Prior
    privacy: Requirement
    utility: LinearUtility | SubConvex
    outputs: int | tuple[Any, ...] | None
    forms = tuple(CLOSED_FORMS)

    def program(self) -> Program:
        return design(self.prior, self.privacy, self.utility, self.outputs)

    def value(self, mechanism: Mechanism) -> float:
        return self.utility.value(self.prior, mechanism)

    def closed_form(self, name: str) -> Mechanism:
        outputs = self.prior.labels if self.outputs is None else self.outputs
        labels = tuple(range(outputs)) if isinstance(outputs, int) else outputs
        gains = np.zeros((self.prior.size, 1))
        if isinstance(self.utility, LinearUtility):
            gains = self.utility.gains(self.prior.labels, labels)
        form = CLOSED_FORMS[name](self.prior, self.privacy, gains)
        return Mechanism(form.matrix, self.prior.labels, labels if len(form.outputs) == len(labels) else None)


@dataclass(frozen=True)
class WorstCaseProblem(ProgramProblem):
    """`worst_case_utility`: the least level without an output of a rank below the threshold."""

    prior: Prior
    order: FloatArray
    threshold: int
    forms = ("utility_safe",)

    def program(self) -> Program:
        return worst_case_utility(self.prior, self.order, self.threshold)

    def value(self, mechanism: Mechanism) -> float:
        return leakage_level(self.prior, mechanism)

    def closed_form(self, name: str) -> Mechanism:
        return closed_forms.utility_safe(self.order, self.threshold)


@dataclass(frozen=True)
class LeastLeakageProblem(ProgramProblem):
    """`least_leakage`: the least level under floors on the utility."""

    prior: Prior
    utility: LinearUtility
    expected: float | None
    worst: float | None
    outputs: int | tuple[Any, ...] | None

    def program(self) -> Program:
        return least_leakage(
            self.prior, self.utility, expected=self.expected, worst=self.worst, outputs=self.outputs
        )

    def value(self, mechanism: Mechanism) -> float:
        return leakage_level(self.prior, mechanism)


@dataclass(frozen=True, eq=False)
class TradeoffProblem(Problem):
    """`leakage_distortion` or `distortion_leakage`: the least of one within a limit on the other."""

    query: Query
    entropy: float
    sense: Sense
    limit: float
    loss: FloatArray | None
    forms = ("parity_leakage", "parity_distortion")

    def solve(
        self, solver: str = "auto", *, time_limit: float | None = None, tolerance: float = 1e-7
    ) -> Result:
        _own_method(solver)
        work = leakage_distortion if self.sense == "leakage" else distortion_leakage
        return work(
            self.query, self.limit, self.entropy, loss=self.loss, time_limit=time_limit, tolerance=tolerance
        )

    def closed_value(self, name: str) -> float:
        fits = name == f"parity_{self.sense}"
        if not fits or not is_parity(self.query) or self.loss is not None:
            raise InstanceError(
                f"the closed form {name} is for a parity, its own loss, and one of the two senses"
            )
        if self.sense == "leakage":
            return closed_forms.parity_leakage(self.query.records, min(self.limit, 0.5), self.entropy)
        return closed_forms.parity_distortion(self.query.records, self.limit, self.entropy)


def _own_method(solver: str) -> None:
    """Complain of a solver that is asked for by name."""
    if solver != "auto":
        raise SolverUnavailableError(
            f"the leakage per record has a method of its own, not {solver!r}: use auto"
        )


@dataclass(frozen=True)
class RecordLeakageProblem(Problem):
    """`record_leakage`: the largest leakage per record of a given mechanism."""

    query: Query
    mechanism: Mechanism
    entropy: float
    forms = ("parity_leakage",)

    def solve(
        self, solver: str = "auto", *, time_limit: float | None = None, tolerance: float = 1e-7
    ) -> Result:
        _own_method(solver)
        return record_leakage(
            self.query, self.mechanism, self.entropy, time_limit=time_limit, tolerance=tolerance
        )

    def closed_value(self, name: str) -> float:
        error = parity_error(self.query, self.mechanism)
        if error is None:
            raise InstanceError(f"the closed form {name} is for a parity through a symmetric channel")
        return closed_forms.parity_leakage(self.query.records, error, self.entropy)
