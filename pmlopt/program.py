"""A declared design problem: the cvxpy problem and the names in it."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import cvxpy as cp

from pmlopt.arrays import Label
from pmlopt.backends.mps import write_mps
from pmlopt.prior import Prior
from pmlopt.privacy import Requirement
from pmlopt.utility import Utility


def problem_of(objective: cp.Minimize | cp.Maximize, constraints: Mapping[str, cp.Constraint]) -> cp.Problem:
    """A cvxpy problem whose constraints carry their names as labels."""
    for name, constraint in constraints.items():
        constraint.set_label(name)
    return cp.Problem(objective, list(constraints.values()))


@dataclass(frozen=True, eq=False)
class Declaration:
    """The cvxpy side of a program: the problem, and its parts by name."""

    problem: cp.Problem
    variables: Mapping[str, cp.Variable]
    constraints: Mapping[str, cp.Constraint]

    def itself(self) -> Declaration:
        """The `declare` of a program that is declared already."""
        return self


@dataclass(frozen=True, eq=False, kw_only=True)
class Program(ABC):
    """A problem over mechanisms, declared and not yet solved: what every kind shares.

    `problem` is an ordinary cvxpy problem whose parts have names.

    Attributes:
        declare: makes the cvxpy side, when it is first asked for: some solvers do without.
        prior: what it was declared from.
        outputs: the labels of the outputs; None where the solution decides how many there are.
        added: the constraints that came in with `with_constraints`.
    """

    declare: Callable[[], Declaration]
    prior: Prior
    outputs: tuple[Label, ...] | None
    added: Mapping[str, cp.Constraint] = field(default_factory=dict)

    @cached_property
    def declared(self) -> Declaration:
        """The cvxpy side."""
        return self.declare()

    @property
    def problem(self) -> cp.Problem:
        """The cvxpy problem."""
        return self.declared.problem

    @property
    def variables(self) -> Mapping[str, cp.Variable]:
        """The variables of the problem, by name."""
        return self.declared.variables

    @property
    def constraints(self) -> Mapping[str, cp.Constraint]:
        """The constraints of the problem, by name."""
        return self.declared.constraints

    @property
    @abstractmethod
    def mechanism(self) -> cp.Expression:
        """The mechanism matrix, as a cvxpy expression of the variables."""

    def write_mps(self, path: str | os.PathLike[str]) -> None:
        """Write the linear program in the MPS format, columns named after the variables.

        Raises:
            ProgramError: the program has constraints that are not linear, or only a part of its columns.
            FileFormatError: the file cannot be written.

        Examples:
            >>> import tempfile, pathlib
            >>> from pmlopt import ExpectedLoss, PML, design
            >>> program = design([0.5, 0.5], PML(0.4), ExpectedLoss([[0, 1], [1, 0]]))
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     program.write_mps(pathlib.Path(folder) / "lp.mps")
            ...     "mechanism(1,0)" in (pathlib.Path(folder) / "lp.mps").read_text()
            True
        """
        write_mps(self.problem, path)

    def __str__(self) -> str:
        """The cvxpy problem, with the size and the names of its parts."""
        parts = [f"variable {name}: {variable.shape}" for name, variable in self.variables.items()]
        parts += [
            f"constraint {name}: {constraint.size} rows"
            for name, constraint in {**self.constraints, **self.added}.items()
        ]
        return "\n".join([str(self.problem), *parts])


@dataclass(frozen=True, eq=False, kw_only=True)
class Design(Program):
    """The best utility over the mechanisms that meet a requirement.

    Attributes:
        privacy, utility: what it was declared from, with the prior.
    """

    privacy: Requirement
    utility: Utility

    @property
    @abstractmethod
    def range(self) -> float:
        """The most that the choice of a mechanism can change the utility; the scale of a gap."""

    @property
    def rounding(self) -> float:
        """The gap that rounding alone may leave, where that does not shrink with the range."""
        return 0.0

    @abstractmethod
    def with_constraints(self, **constraints: cp.Constraint) -> Design:
        """The same program with constraints of your own, each under a name.

        Raises:
            ProgramError: a constraint cannot be taken.
        """
