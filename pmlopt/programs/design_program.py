"""The base of all kinds of design, and of their certificates."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.arrays import Labels
from pmlopt.data.prior import Prior
from pmlopt.errors import ProgramError
from pmlopt.model.privacy import Requirement
from pmlopt.model.utility import Utility
from pmlopt.programs.certificate import C_co
from pmlopt.programs.program import Program


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
    outputs: Labels | None

    @property
    def maximised(self) -> bool:
        """Return whether the utility is maximised."""
        return self.utility.maximised

    @property
    def row_and_column_labels(self) -> tuple[Labels | None, Labels | None]:
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
