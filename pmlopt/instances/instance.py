"""One problem of the library, and what is known of its optimum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pmlopt.arrays import FloatArray
from pmlopt.errors import InstanceError
from pmlopt.instances.closed_values import closed_value
from pmlopt.prior import Prior
from pmlopt.program import Program

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


@dataclass(frozen=True, eq=False)
class Instance:
    """One problem of the library: a program that can be declared, and what is known of its optimum.

    Attributes:
        id, title: its names; `id` is the file's name.
        cite, where: the key in references.bib and the place in the source.
        builder: what declares it, such as `pmlopt.design`.
        arguments: what the builder is called with, by name.
    """

    id: str
    title: str
    path: Path
    cite: str
    where: str
    builder: Callable[..., Program[Any]]
    arguments: Mapping[str, Any]
    expected: Expected | None

    def program(self, **changes: Any) -> Program[Any]:
        """Declare it, with other values for some of its arguments where they are given."""
        return self.builder(**{**self.arguments, **changes})

    @property
    def prior(self) -> Prior:
        """The prior of the problem.

        Raises:
            InstanceError: it is about a query, and has none.
        """
        if "prior" not in self.arguments:
            raise InstanceError(f"{self.id} has no prior: it is about every prior of enough entropy")
        prior: Prior = self.arguments["prior"]
        return prior

    @property
    def names_closed_form(self) -> bool:
        """Whether a closed form is said to have the expected value."""
        return self.expected is not None and self.expected.closed_form is not None

    def closed_value(self) -> float | None:
        """The value of the closed form that the instance names, or None."""
        if self.expected is None or self.expected.closed_form is None:
            return None
        return closed_value(self.program(), self.expected.closed_form)
