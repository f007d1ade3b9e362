"""One problem of the library, and what is known of its optimum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pmlopt.arrays import FloatArray
from pmlopt.errors import InstanceError
from pmlopt.instances.problems import Problem, ProgramProblem
from pmlopt.prior import Prior

BASES = ("theorem", "derived", "published", "regression")
RELATIONS: Mapping[str, Callable[[float, float, float], bool]] = {
    "==": lambda optimum, value, slack: abs(optimum - value) <= slack,
    "<=": lambda optimum, value, slack: optimum <= value + slack,
    ">=": lambda optimum, value, slack: optimum >= value - slack,
}


@dataclass(frozen=True)
class Expected:
    """What is known of the optimum: `optimum RELATION value`, within rtol times the value's size.

    Attributes:
        basis: "theorem", "derived" (by another route), "published" (a printed figure) or "regression".
        closed_form: one of the problem's `forms` whose mechanism has this value, or None.
        mechanism: a printed optimal matrix, or None.
    """

    basis: str
    relation: str
    value: float
    rtol: float
    closed_form: str | None
    mechanism: FloatArray | None

    def agrees(self, optimum: float) -> bool:
        """Whether an optimum stands in the relation that is claimed."""
        return RELATIONS[self.relation](optimum, self.value, self.slack)

    @property
    def slack(self) -> float:
        """How far an optimum may be off: rtol times the value's size, or times 1e-3 where it is small."""
        return self.rtol * max(1e-3, abs(self.value))


@dataclass(frozen=True)
class Instance:
    """One problem of the library.

    Attributes:
        id, title: its names; `id` is the file's name.
        cite, where: the key in references.bib and the place in the source.
        problem: what is asked.
    """

    id: str
    title: str
    path: Path
    cite: str
    where: str
    problem: Problem
    expected: Expected | None

    @property
    def prior(self) -> Prior:
        """The prior of the problem.

        Raises:
            InstanceError: it is about a query, and has none.
        """
        if not isinstance(self.problem, ProgramProblem):
            raise InstanceError(f"{self.id} has no prior: it is about every prior of enough entropy")
        return self.problem.prior

    @property
    def names_closed_form(self) -> bool:
        """Whether a closed form is said to have the expected value."""
        return self.expected is not None and self.expected.closed_form is not None

    def closed_value(self) -> float | None:
        """The value of the closed form that the instance names, or None."""
        if self.expected is None or self.expected.closed_form is None:
            return None
        return self.problem.closed_value(self.expected.closed_form)
