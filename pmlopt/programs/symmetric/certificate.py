"""The certificate of a mechanism by orbits: its levels, the bound on its utility, and the exact check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from pmlopt.core.arrays import FloatArray, Label, rounding_of
from pmlopt.core.records import INFINITE, Given, Shape
from pmlopt.data.symmetry.orbit_mechanism import OrbitMechanism
from pmlopt.data.symmetry.prior import PairOrbits
from pmlopt.errors import FileFormatError
from pmlopt.model.privacy import Requirement
from pmlopt.programs.certificate import RATIONAL, Claim
from pmlopt.programs.claims import SHARE, bound_claim, confidence_claims, gap_claim, no_bound, value_claim
from pmlopt.programs.design_program import ULP, RequirementCertificate, levels_in_words
from pmlopt.programs.exact.repair import Change
from pmlopt.programs.program import Declaration, problem_of
from pmlopt.programs.symmetric.columns import ReducedColumns, invariant_columns


def declaration(
    names: Sequence[Label], columns: ReducedColumns, maximised: bool, values: FloatArray
) -> Declaration:
    """The linear program with one variable for each orbit of pairs.

    Args:
        names: of the orbits of outputs, after which the constraints of the requirement are named.
        columns: the orbits, and what is asked of them.
        maximised: whether the values are gains.
        values: (C,) the gains or losses on the orbits of pairs.
    """
    import cvxpy as cp

    orbits = columns.orbits
    lifts = cp.Variable(orbits.count, nonneg=True, name="orbits")
    law = cp.Variable(len(orbits.outputs), nonneg=True, name="output_law")
    constraints = {"rows": columns.rows @ lifts == 1, "output_law": columns.means @ lifts == law}
    variables = {"orbits": lifts, "output_law": law}
    for place, (name, own) in enumerate(zip(names, columns.privacy, strict=True)):
        part = orbits.of_output(place)
        column = cp.reshape(lifts[part], (part.stop - part.start, 1), order="F")
        mean = cp.reshape(law[place], (1, 1), order="F")
        declared = own.declare(columns.cells[place].prior, column, mean)
        constraints |= {f"{what} of {name}": one for what, one in declared.constraints.items()}
        variables |= {f"{what} of {name}": one for what, one in declared.variables.items()}
    sense = cp.Maximize if maximised else cp.Minimize
    offsets = orbit_offsets(orbits, values)
    centred = columns.weights * (values - offsets[orbits.letter])
    expression = centred @ lifts + float(orbits.masses @ offsets)
    return Declaration(problem_of(sense(expression), constraints), variables, constraints)


def orbit_offsets(orbits: PairOrbits, values: FloatArray) -> FloatArray:
    """(L,) the least value for each orbit of letters: an offset that no mechanism can change."""
    lowest = np.full(len(orbits.letters), np.inf)
    np.minimum.at(lowest, orbits.letter, values)
    return lowest


def centred_gains(orbits: PairOrbits, values: FloatArray, maximised: bool) -> FloatArray:
    """(C,) the values less the offsets, as gains."""
    centred = values - orbit_offsets(orbits, values)[orbits.letter]
    return centred if maximised else -centred


def columns_of(mechanism: OrbitMechanism, privacy: Requirement, table: FloatArray) -> ReducedColumns:
    """The columns of a mechanism that a file has, under a requirement.

    Raises:
        FileFormatError: it is not by orbits, or the table has another length than its pairs have orbits.
    """
    if not isinstance(mechanism, OrbitMechanism):
        raise FileFormatError("a certificate of this kind is of a mechanism by orbits")
    columns = invariant_columns(mechanism.space, privacy)
    if len(table) != columns.orbits.count:
        raise FileFormatError(f"there are {len(table)} values for {columns.orbits.count} orbits of pairs")
    return columns


StoredOrbits = Annotated[OrbitMechanism, Given("mechanism", only=True)]
"""The mechanism by orbits of a file, of which its certificate has the word alone."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SymmetricCertificate(RequirementCertificate):
    """What is claimed of a mechanism by orbits that was designed for a symmetric prior and a requirement.

    The bound is `constant + raw_bound(gains, multipliers)` and what rounding may hide, negated for a loss. It
    is one on all mechanisms, since none does better than the average over its images under the group.

    Attributes:
        mechanism: in whole numbers.
        columns: what it asks of one output of each orbit.
        multipliers: (L,) the rho from which `bound` follows, one for each orbit of letters.
        table: (C,) the gain or loss on orbits of pairs, in the person's units.
        maximised: whether they are gains, and not losses.
        repair: what was done to the solver's numbers.
    """

    kind: ClassVar[str] = "symmetric"

    mechanism: StoredOrbits
    columns: ReducedColumns
    multipliers: FloatArray | None
    table: FloatArray
    maximised: bool
    repair: Change

    def __post_init__(self) -> None:
        prior = self.mechanism.space.prior
        object.__setattr__(self, "privacy", self.privacy.for_prior(prior))

    @classmethod
    def from_fields(
        cls,
        mechanism: StoredOrbits,
        privacy: Requirement,
        value: float,
        bound: Annotated[float, INFINITE],
        multipliers: Annotated[FloatArray, Shape("L")] | None,
        table: Annotated[FloatArray, Shape("C")],
        maximised: bool,
        repair: Change,
    ) -> SymmetricCertificate:
        """The certificate from what its file says, with the columns of its requirement."""
        return cls(
            mechanism=mechanism, value=value, bound=bound, privacy=privacy,
            columns=columns_of(mechanism, privacy, table), multipliers=multipliers, table=table,
            maximised=maximised, repair=repair,
        )  # fmt: skip

    @property
    def measured(self) -> tuple[Mapping[str, float], float]:
        terms = max(cells.size for cells in self.columns.cells)
        return self.columns.levels(self.mechanism.lifts), (terms + 8) * ULP

    @cached_property
    def level_checks(self) -> tuple[Claim, ...]:
        """That the masses of the orbits are a mechanism that meets the requirement, in whole numbers.

        The orbits are checked to partition the pairs (each output meets each letter in exactly one), rows to
        sum to exactly one, and each column to be within the bound, e^epsilon replaced by a rational below it.
        """
        rows = self.columns.orbits.consistent and self.mechanism.rows_are_exact
        holds = self.columns.hold_exactly(self.mechanism.masses)
        scope = f", {self.privacy.scope}" if self.privacy.scope else ""
        text = levels_in_words(self.measured[0], self.privacy.limits)
        return (
            Claim("mechanism", rows, RATIONAL, "orbits tile the pairs, and rows sum to exactly one"
                  if rows else "the orbits are no mechanism"),
            Claim("level", holds, RATIONAL, f"{text}{scope}" if holds else f"a limit is broken: {text}"),
            *confidence_claims(self.privacy, self.mechanism.space.prior),
        )  # fmt: skip

    @property
    def gains(self) -> FloatArray:
        """(C,) the gains on orbits of pairs less the least of each orbit of letters."""
        return centred_gains(self.columns.orbits, self.table, self.maximised)

    def checks(self) -> tuple[Claim, ...]:
        """Level, value and bound of an expected gain or loss on orbits of pairs."""
        rounding = rounding_of(0, float(np.abs(self.table).max()))
        value = value_claim(self.value, float(self.expected_value), rounding)
        found = (*self.level_checks, value, gap_claim(self, rounding, self.maximised))
        rho, columns, gains = self.multipliers, self.columns, self.gains
        if rho is None or rho.shape != (len(columns.orbits.letters),):
            return (*found, no_bound(self, self.maximised))
        sign = 1.0 if self.maximised else -1.0
        constant = float(columns.orbits.masses @ orbit_offsets(columns.orbits, self.table))
        proved = columns.raw_bound(gains, rho) + SHARE * columns.rounding_in(gains, rho)
        return (*found, bound_claim(self.bound, constant + sign * proved, self.maximised))

    @property
    def expected_value(self) -> Fraction:
        """The expectation of the values by orbits, exact: they are rationals, as are prior and mechanism."""
        orbits, mechanism = self.columns.orbits, self.mechanism
        found = Fraction(0)
        for orbit in range(len(orbits.letters)):
            own = np.flatnonzero(orbits.letter == orbit).tolist()
            total = sum(mechanism.masses[k] * Fraction(float(self.table[k])) for k in own)
            found += orbits.letters[orbit] * orbits.weights[orbit] * total
        return found / (mechanism.total * orbits.total)
