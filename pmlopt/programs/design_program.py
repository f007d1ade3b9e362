"""What both kinds of design share: a prior, a requirement, a utility, and the best mechanism within it."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pmlopt.arrays import Label
from pmlopt.prior import Prior
from pmlopt.privacy import Requirement
from pmlopt.program import Program
from pmlopt.result import C_co
from pmlopt.utility import Utility

if TYPE_CHECKING:
    import cvxpy as cp


@dataclass(frozen=True, eq=False, kw_only=True)
class Design(Program[C_co]):
    """The best utility over the mechanisms that meet a requirement.

    Attributes:
        prior, privacy, utility: what it was declared from.
        outputs: the labels of the outputs; None where the solution decides how many there are.
    """

    prior: Prior
    privacy: Requirement
    utility: Utility
    outputs: tuple[Label, ...] | None

    @property
    def maximised(self) -> bool:
        """Whether more of the utility is better."""
        return self.utility.maximised

    @property
    def sides(self) -> tuple[tuple[Label, ...] | None, tuple[Label, ...] | None]:
        """The letters of the prior and the outputs."""
        return self.prior.labels, self.outputs

    @property
    @abstractmethod
    def scale(self) -> float:
        """The most that the choice of a mechanism can change the utility."""

    @property
    @abstractmethod
    def mechanism(self) -> cp.Expression:
        """The mechanism matrix, as a cvxpy expression of the variables."""

    @abstractmethod
    def with_constraints(self, **constraints: cp.Constraint) -> Design[C_co]:
        """The same program with constraints of your own, each under a name.

        Raises:
            ProgramError: a constraint cannot be taken.
        """

    def __repr__(self) -> str:
        return f"<{type(self).__name__} under {self.privacy}>"
