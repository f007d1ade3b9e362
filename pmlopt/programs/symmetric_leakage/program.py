"""Least leakage on a symmetric prior: the smallest PML level at which an expected utility can be promised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pmlopt.core.arrays import FloatArray
from pmlopt.data.symmetry.prior import Cells, PairSpace, SymmetricPrior
from pmlopt.errors import ProgramError
from pmlopt.model.privacy import PML
from pmlopt.model.utility import LinearUtility
from pmlopt.programs.program import Declaration, Program, problem_of
from pmlopt.programs.symmetric.columns import ReducedColumns
from pmlopt.programs.symmetric_leakage.certificate import (
    SymmetricLevelCertificate,
    floor_rounding,
    gains_and_least,
)

if TYPE_CHECKING:
    import cvxpy as cp


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SymmetricLeastLeakage(Program[SymmetricLevelCertificate]):
    """The least PML level at which an expected gain reaches a floor, in orbits of pairs.

    `problem` is the linear program for one level: the largest expected gain, less what the best outputs would
    gain, among mechanisms of level epsilon. `share` is the parameter e^-epsilon. `solve` searches for the
    least level at which that reaches `least`.

    Attributes:
        prior: the symmetric prior.
        utility: the gain or loss.
        space: the pairs.
        cells: of one output of each orbit.
        values: (C,) the gain or loss on orbits of pairs, in the person's units.
        gains: (C,) the gains on orbits of pairs less the best of each letter: at most 0.
        least: what their expectation must reach.
        floor: the same in the person's units.
        share: e^-epsilon, a parameter of `problem`, 1 at first.

    Examples:
        >>> from pmlopt import CoordinateLoss, IIDPrior, least_leakage, solve
        >>> loss = CoordinateLoss([[0, 1], [1, 0]])
        >>> program = least_leakage(IIDPrior([0.7, 0.3], 8), loss, expected=1.9226514289)
        >>> round(solve(program).value, 6)  # the loss that one nat buys
        1.0
    """

    prior: SymmetricPrior
    utility: LinearUtility
    space: PairSpace
    cells: tuple[Cells, ...]
    values: FloatArray
    gains: FloatArray
    least: float
    floor: float
    share: cp.Parameter

    @property
    def maximised(self) -> bool:
        """The level is minimised."""
        return False

    @property
    def rounding_of_floor(self) -> float:
        """What rounding may have taken off the floor and off an expectation."""
        return floor_rounding(self.cells, self.gains, self.least)

    def columns(self, epsilon: float) -> ReducedColumns:
        """The columns within a level."""
        return ReducedColumns(self.space.orbits, self.cells, (PML(epsilon),) * len(self.cells))

    def slack(self, lifts: FloatArray) -> float:
        """By how much the expected gain of a mechanism is above the floor; negative where it is below."""
        return float((self.columns(0.0).weights * lifts) @ self.gains) - self.least

    def __repr__(self) -> str:
        return f"<SymmetricLeastLeakage on {self.prior!r}>"


def symmetric_least_leakage(
    prior: SymmetricPrior, utility: LinearUtility, expected: float
) -> SymmetricLeastLeakage:
    """Declare the search for the least level under a floor on the expected utility; see `least_leakage`.

    Raises:
        ProgramError: no mechanism reaches the floor; the message says how far one gets.
        PriorError, UtilityError: the utility does not fit, or is not invariant.
    """
    import cvxpy as cp

    space = prior.pairs(utility.shape)
    orbits, values = space.orbits, utility.on_orbits(space)
    gains, least = gains_and_least(orbits, values, utility.maximised, expected)
    share = cp.Parameter(nonneg=True, value=1.0, name="share")
    cells = tuple(space.cells(place) for place in range(len(orbits.outputs)))
    program = SymmetricLeastLeakage(
        declare=lambda: _declaration(ReducedColumns(orbits, cells, ()), gains, share),
        prior=prior,
        utility=utility,
        space=space,
        cells=cells,
        values=values,
        gains=gains,
        least=least,
        floor=expected,
        share=share,
    )
    if program.least > program.rounding_of_floor:
        most = expected - least if utility.maximised else expected + least
        raise ProgramError(
            f"no mechanism has an expected {utility.what} of {expected:.12g}: "
            f"the {'largest' if utility.maximised else 'smallest'} is {most + 0.0:.12g}"
        )
    return program


def _declaration(columns: ReducedColumns, gains: FloatArray, share: cp.Parameter) -> Declaration:
    import cvxpy as cp

    orbits = columns.orbits
    lifts = cp.Variable(orbits.count, nonneg=True, name="orbits")
    law = cp.Variable(len(orbits.outputs), nonneg=True, name="output_law")
    constraints = {
        "rows": columns.rows @ lifts == 1,
        "output_law": columns.means @ lifts == law,
        "pml": share * lifts <= law[orbits.output],
    }
    problem = problem_of(cp.Maximize((columns.weights * gains) @ lifts), constraints)
    return Declaration(problem, {"orbits": lifts, "output_law": law}, constraints)
