"""Designs with a linear utility on a symmetric prior: one variable for each orbit of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.data.symmetry.prior import PairSpace, SymmetricPrior
from pmlopt.errors import ProgramError, UtilityError
from pmlopt.model.privacy import Requirement
from pmlopt.model.utility import LinearUtility
from pmlopt.programs.design_program import Outputs
from pmlopt.programs.program import Program
from pmlopt.programs.symmetric.certificate import (
    SymmetricCertificate,
    centred_gains,
    declaration,
    orbit_offsets,
)
from pmlopt.programs.symmetric.columns import ReducedColumns, invariant_columns


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SymmetricDesign(Program[SymmetricCertificate]):
    """A design with expected gain or loss on a symmetric prior: a linear program in orbits of pairs.

    `variables["orbits"]` has one entry for each orbit of pairs, the probability of an output of the orbit
    given a letter of it, times the number of outputs in their orbit; `space.names` names them.
    `variables["output_law"]` has the probability of each orbit of outputs. `constraints["rows"]` says that
    rows of the mechanism sum to one, one for each orbit of letters, and for each orbit of outputs the
    requirement brings its own, named after it.

    Examples:
        >>> from pmlopt import CoordinateLoss, PML, IIDPrior, design
        >>> program = design(IIDPrior([0.7, 0.3], 2), PML(0.4), CoordinateLoss([[0, 1], [1, 0]]))
        >>> program.variables["orbits"].shape, program.space.names[0]
        ((10,), ((0, 0), (0, 2)))
        >>> sorted(program.constraints)
        ['output_law', 'pml of (0, 2)', 'pml of (1, 1)', 'pml of (2, 0)', 'rows']
    """

    prior: SymmetricPrior
    privacy: Requirement
    utility: LinearUtility
    space: PairSpace
    values: FloatArray
    """(C,) the gain or loss on the orbits of pairs, in the person's units."""
    columns: ReducedColumns

    @property
    def maximised(self) -> bool:
        """Whether more of the utility is better."""
        return self.utility.maximised

    @property
    def scale(self) -> float:
        """The most that the choice of outputs can change the expected gain."""
        orbits = self.space.orbits
        highest = np.full(len(orbits.letters), -np.inf)
        np.maximum.at(highest, orbits.letter, self.values)
        return float(orbits.masses @ (highest - self.offsets))

    @cached_property
    def offsets(self) -> FloatArray:
        """(L,) the least value for each orbit of letters, which no choice of outputs can change."""
        return orbit_offsets(self.space.orbits, self.values)

    @cached_property
    def centred(self) -> FloatArray:
        """(C,) the gains less the offsets."""
        return centred_gains(self.space.orbits, self.values, self.utility.maximised)

    @property
    def constant(self) -> float:
        """The expectation of the offsets: the utility is this plus (or less) the expected gain."""
        return float(self.space.orbits.masses @ self.offsets)

    def __repr__(self) -> str:
        return f"<SymmetricDesign on {self.prior!r} under {self.privacy}>"


def symmetric_design(
    prior: SymmetricPrior, privacy: Requirement, utility: LinearUtility, outputs: Outputs
) -> SymmetricDesign:
    """Declare `max (or min) E[f(X, Y)]` over mechanisms by orbits that meet the requirement; see `design`.

    The average of a mechanism over the group is a mechanism with the same expectation, and meets every
    requirement that is convex and invariant: none does better than the best that is constant on orbits.

    Raises:
        ProgramError: outputs are given, which the symmetric prior knows already.
        PriorError, PrivacyError, UtilityError: what is given does not fit, or is not invariant; or there are
            too many orbits of pairs.
    """
    if outputs is not None:
        raise ProgramError(
            f"the outputs of {prior!r} are those on which its group acts: leave them out (Invariant takes "
            "its own)"
        )
    space = prior.pairs(utility.shape)
    values = utility.on_orbits(space)
    if np.abs(values).max() > 1e150:
        raise UtilityError(f"the utility has an entry of size {np.abs(values).max():g}: change its unit")
    columns = invariant_columns(space, privacy)
    return SymmetricDesign(
        declare=partial(declaration, space.output_names, columns, utility.maximised, values),
        prior=prior,
        privacy=privacy,
        utility=utility,
        space=space,
        values=values,
        columns=columns,
    )
