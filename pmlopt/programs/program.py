"""A declared problem: the cvxpy problem, the names in it, and the scale of its gap."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Generic

from pmlopt.core.arrays import Label
from pmlopt.core.display import facts_html
from pmlopt.core.guesses import Guessed
from pmlopt.programs.certificate import C_co
from pmlopt.solvers.through_cvxpy import write_mps

if TYPE_CHECKING:
    import cvxpy as cp


def problem_of(objective: cp.Minimize | cp.Maximize, constraints: Mapping[str, cp.Constraint]) -> cp.Problem:
    """A cvxpy problem whose constraints carry their names as labels."""
    import cvxpy as cp

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
        """The declaration: the `declare` of a program that is declared already."""
        return self


@dataclass(frozen=True, eq=False, kw_only=True)
class Program(Guessed, ABC, Generic[C_co]):
    """A problem that is declared and not yet solved: what every kind of question shares.

    `problem` is an ordinary cvxpy problem whose parts have names; `solve` answers it with a `Result` whose
    certificate is of the kind that the program names.

    Attributes:
        declare: makes the cvxpy side, when it is first asked for: some methods do without.
        added: the constraints that came in with `with_constraints`.
        maximised: whether more of the value is better.
        tolerance: the largest certified gap to accept where a person says nothing, as a share of `scale`.
    """

    GUESSES: ClassVar[Mapping[str, str]] = {
        "solve": "pmlopt.solve(program)", "value": "pmlopt.solve(program).value",
        "run": "pmlopt.solve(program)", "matrix": "pmlopt.solve(program).matrix",
        "result": "pmlopt.solve(program)", "add": ".with_constraints(name=constraint)",
    }  # fmt: skip

    declare: Callable[[], Declaration]
    added: Mapping[str, cp.Constraint] = field(default_factory=dict)
    tolerance: ClassVar[float] = 1e-7

    @property
    @abstractmethod
    def maximised(self) -> bool:
        """Whether more of the value is better."""

    @property
    def scale(self) -> float:
        """What a tolerance is a share of, in units of the value: one nat, one rank, or a utility's range."""
        return 1.0

    @property
    def rounding(self) -> float:
        """The gap that rounding alone may leave, where that does not shrink with the scale."""
        return 0.0

    def allowed_gap(self, tolerance: float) -> float:
        """The gap, in units of the value, up to which an answer counts as optimal at a tolerance."""
        return max(tolerance * self.scale, self.rounding)

    @property
    def sides(self) -> tuple[tuple[Label, ...] | None, tuple[Label, ...] | None]:
        """The labels of the rows and columns of the matrix that is sought; None where they are free."""
        return None, None

    @cached_property
    def declared(self) -> Declaration:
        """The cvxpy variables, constraints and objective, declared when first looked at."""
        return self.declare()

    @property
    def problem(self) -> cp.Problem:
        """The problem as cvxpy has it, to look at, change or solve by hand."""
        return self.declared.problem

    @property
    def variables(self) -> Mapping[str, cp.Variable]:
        """The variables of the problem, by name."""
        return self.declared.variables

    @property
    def constraints(self) -> Mapping[str, cp.Constraint]:
        """The constraints of the problem, by name."""
        return self.declared.constraints

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

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def _repr_html_(self) -> str:
        """What is asked, and how large the problem is, as a notebook shows it."""
        sense = "maximise" if self.maximised else "minimise"
        facts = {"sense": sense, "scale of the gap": f"{self.scale:.6g}", "tolerance": f"{self.tolerance:g}"}
        facts |= {f"variable {name}": str(variable.shape) for name, variable in self.variables.items()}
        constraints = {**self.constraints, **self.added}
        facts |= {f"constraint {name}": f"{one.size} rows" for name, one in constraints.items()}
        return facts_html(repr(self).strip("<>"), facts)
