"""The columns of a mechanism by orbits: one for each orbit of outputs, each with a prior of its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from pmlopt.core.arrays import FloatArray, rounding_of
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.symmetry.invariant import InvariantPrior
from pmlopt.data.symmetry.prior import Cells, PairOrbits, PairSpace
from pmlopt.model.privacy import Requirement
from pmlopt.model.privacy.ratio_bound import RatioRequirement, check_ratios_invariant
from pmlopt.model.privacy.requirement import Conjunction
from pmlopt.programs.exact.arithmetic import power_below

_FAINT = 2.0**-60
"""The share of a column beside one that tells nothing: the sum of both is 1 in floats."""


class HasCells(Protocol):
    """Pairs in orbits, or in classes on which an optimal mechanism is constant for another reason."""

    @property
    def orbits(self) -> PairOrbits:
        """The orbits, with their sizes."""

    def cells(self, place: int) -> Cells:
        """The cells of an output of the orbit at a place."""


@dataclass(frozen=True, eq=False)
class ReducedColumns:
    """What a requirement asks of a mechanism that is constant on orbits of pairs.

    A column v of it is constant on the cells of its output y. With w the masses of the cells its mean is
    `<w, v>`: it meets PML, LDP or LIP iff the values on the cells do under the prior w. So each orbit of
    outputs has one column, with a prior of its own, and requirements are asked of it as of any other.

    Attributes:
        orbits: of pairs, which stand by outputs.
        cells: those of one output of each orbit.
        privacy: what is asked of each column.
    """

    orbits: PairOrbits
    cells: tuple[Cells, ...]
    privacy: tuple[Requirement, ...]

    @classmethod
    def of(cls, space: HasCells, privacy: Requirement) -> ReducedColumns:
        """The columns of pairs under a requirement.

        Raises:
            PrivacyError: the requirement is not on each column, or not the same for all letters of an orbit.
        """
        cells = tuple(space.cells(place) for place in range(len(space.orbits.outputs)))
        return cls(space.orbits, cells, tuple(privacy.on_cells(own) for own in cells))

    @cached_property
    def weights(self) -> FloatArray:
        """(C,) the masses of the cells, column after column; those of each column sum to one."""
        return np.concatenate([own.prior.pmf for own in self.cells])

    @cached_property
    def rows(self) -> Any:
        """(L, C) sparse: the sums of the rows of the mechanism, from lifts."""
        from scipy import sparse

        places = np.arange(self.orbits.count)
        return sparse.csr_array(
            (self.orbits.shares, (self.orbits.letter, places)), (len(self.orbits.letters), len(places))
        )

    @cached_property
    def means(self) -> Any:
        """(K, C) sparse: the probabilities of the orbits of outputs, from lifts."""
        from scipy import sparse

        places = np.arange(self.orbits.count)
        return sparse.csr_array(
            (self.weights, (self.orbits.output, places)), (len(self.orbits.outputs), len(places))
        )

    def column(self, values: Any, place: int) -> Any:
        """(C_y, 1) the values on the cells of one output."""
        return values[self.orbits.of_output(place)][:, None]

    def excess(self, lifts: FloatArray) -> FloatArray:
        """(K,) the largest violation by each column, in floats; at most 0 where the requirement holds."""
        return np.array(
            [
                np.max(own.excess(cells.prior.pmf, self.column(lifts, place), math.exp))
                for place, (own, cells) in enumerate(zip(self.privacy, self.cells, strict=True))
            ]
        )

    def hold_exactly(self, masses: tuple[int, ...], power: Callable[[float], Any] = power_below) -> bool:
        """Whether masses of orbits of pairs meet the requirement, in whole numbers: a proof, not a test."""
        for place, (own, cells) in enumerate(zip(self.privacy, self.cells, strict=True)):
            part = self.orbits.of_output(place)
            if not any(masses[part]):
                continue  # an output that never occurs
            common = math.lcm(*cells.counts)
            sizes = zip(masses[part], cells.counts, cells.letters.tolist(), strict=True)
            entries = [mass * self.orbits.letters[x] * (common // count) for mass, count, x in sizes]
            weights = np.array(cells.prior.weights, dtype=object)
            if np.any(own.excess(weights, np.array(entries, dtype=object)[:, None], power) > 0):
                return False
        return True

    def levels(self, lifts: FloatArray) -> dict[str, float]:
        """The largest levels of the columns that occur, by name, in nats.

        Each is measured beside a column that tells nothing, which has no larger level than the largest.
        """
        found: dict[str, float] = {}
        for place, (own, cells) in enumerate(zip(self.privacy, self.cells, strict=True)):
            column = self.column(lifts, place)
            if not column.any():
                continue
            pair = Mechanism(np.hstack([column / column.max() * _FAINT, np.ones_like(column)]))
            for name, level in own.levels(cells.prior, pair).items():
                found[name] = max(found.get(name, -math.inf), level)
        return found

    def raw_bound(self, gains: FloatArray, rho: FloatArray) -> float:
        """An upper bound on the expected gain of mechanisms within the requirement, but for rounding.

        `<masses, rho> + max_y relaxation_y(g - rho)`, for any rho in R^L: the probabilities of the orbits of
        outputs sum to one.
        """
        left = gains - rho[self.orbits.letter]
        return float(self.orbits.masses @ rho) + self._largest(left)

    def rounding_in(self, gains: FloatArray, rho: FloatArray) -> float:
        """What rounding may have taken off the bound."""
        sizes = np.abs(gains) + np.abs(rho)[self.orbits.letter]
        scale = float(self.orbits.masses @ np.abs(rho)) + self._largest(sizes)
        return rounding_of(max(own.size for own in self.cells), scale)

    def _largest(self, gains: FloatArray) -> float:
        return max(
            own.relaxation(cells.prior, self.column(gains, place))
            for place, (own, cells) in enumerate(zip(self.privacy, self.cells, strict=True))
        )


def invariant_columns(space: PairSpace, privacy: Requirement) -> ReducedColumns:
    """The columns of pairs under a requirement that the group leaves as it is.

    Raises:
        PrivacyError: it is not invariant, or has no form by orbits.
    """
    prior = space.prior
    if isinstance(prior, InvariantPrior):
        for part in privacy.parts if isinstance(privacy, Conjunction) else (privacy,):
            if isinstance(part, RatioRequirement) and len(prior.moves):
                check_ratios_invariant(part, prior.base, [move[0] for move in prior.moves])
    return ReducedColumns.of(space, privacy)
