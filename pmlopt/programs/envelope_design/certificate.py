"""The certificate of an envelope design: margins that prove what leaks, boxes that bound the gain."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar

import numpy as np

from pmlopt.core.arrays import FloatArray, bound_sum_rounding
from pmlopt.core.records import Range, Shape
from pmlopt.model.privacy import PML
from pmlopt.programs.certificate import (
    RATIONAL,
    Certificate,
    Claim,
    StoredPrior,
    check_bound,
    check_gap,
    check_mechanism,
    check_value,
)
from pmlopt.programs.envelope.masses import bound_leaking_mass
from pmlopt.programs.envelope_design.margin_programs import BoxProof, MarginRange
from pmlopt.programs.exact.repair import RepairRecord
from pmlopt.programs.linear.columns import DenseColumns, round_outward


@dataclass(frozen=True, eq=False, kw_only=True)
class EnvelopeDesignCertificate(Certificate):
    """The claims about a mechanism whose post-processings leak at most epsilon but with probability delta.

    `value` is its expected gain or loss; `bound` is what no such mechanism betters, by `proof`.

    Attributes:
        prior: N letters.
        epsilon: in nats.
        delta: the probability.
        margins: (N,) with which `bound_leaking_mass` is at most delta.
        table: (N, M) the gain or loss.
        maximised: whether the table holds gains.
        proof: of the bound.
        repair: what was done to the solver's matrix.
    """

    kind: ClassVar[str] = "envelope-design"
    arithmetic: ClassVar[str] = RATIONAL
    """Rationals, of what leaks; the bound is a float to which what rounding may hide is added."""

    prior: StoredPrior
    epsilon: Annotated[float, Range(0)]
    delta: Annotated[float, Range(0, 1)]
    margins: Annotated[FloatArray, Shape("N")]
    table: Annotated[FloatArray, Shape("N", "M")]
    maximised: bool
    proof: BoxProof
    repair: RepairRecord

    def recompute_numbers(self) -> tuple[float, float]:
        """Compute the value of the mechanism and the bound of the proof anew, in the unit of the table.

        The bound is on the table without the least entry of each row, which no choice of outputs changes.
        """
        columns = self.columns
        # the range is derived anew from prior and level: the file could claim any
        upper_bound = self.proof.compute_bound(
            MarginRange.from_prior(self.prior, self.epsilon, self.delta), self.centered_gains
        )
        constant = columns.exact_letter_mean(columns.min_by_letter(self.table))
        value = columns.compute_value(self.table, self.maximised, self.mechanism.matrix)
        return value, round_outward(constant, upper_bound, self.maximised)

    @property
    def columns(self) -> DenseColumns:
        """Return the columns of the letters under PML(epsilon), which is enough for the condition."""
        return DenseColumns(self.prior, PML(self.epsilon))

    @property
    def centered_gains(self) -> FloatArray:
        """Return (N, M) the gains with the sign that makes more better, less the least entry of each row."""
        return self.columns.center_table(self.table, self.maximised)

    @property
    def level(self) -> float:
        """Return epsilon, in nats: the level that no post-processing exceeds but with probability delta."""
        return self.epsilon

    @property
    def statement(self) -> str:
        """Return the promise."""
        return (
            f"no post-processing leaks more than {self.epsilon:.9g} nats but with a probability of at most "
            f"{self.delta:g}"
        )

    @property
    def is_maximised(self) -> bool:
        """Return whether more of the value is better, so that the bound is above it."""
        return self.maximised

    @property
    def bound_rounding(self) -> float:
        """Return by how much rounding only may put the value beyond the bound."""
        return self.columns.bound_value_rounding(self.table, self.mechanism.matrix)

    def checks(self) -> tuple[Claim, ...]:
        """Return the claims on the leakage of post-processings, on the value and on the bound.

        What leaks is decided in rational arithmetic, with rows that sum to exactly one; value and bound are
        computed again, and may be off by rounding, the bound only to the side that claims less.
        """
        matrix = self.mechanism.matrix
        if matrix.shape != self.table.shape or self.margins.shape != (len(matrix),):
            return (
                Claim(
                    "shapes", False, RATIONAL, "matrix, table and margins do not fit one another"
                ),
            )
        mechanism = check_mechanism(self.mechanism)
        if not mechanism.holds:
            return (mechanism,)
        # None: with these margins nothing is proved of the mechanism
        mass = bound_leaking_mass(self.prior, matrix, self.epsilon, self.margins)
        kept = mass is not None and mass <= Fraction(self.delta)
        value, bound = self.recompute_numbers()
        near = self.bound_rounding
        # half of the least rounding that the proof allows for: another machine may add in another order
        slack = bound_sum_rounding(len(matrix), float(np.abs(self.centered_gains).max()))
        return (
            mechanism,
            Claim("level", kept, RATIONAL, self.statement if kept else "the margins do not prove the level",
                  self.delta, None if mass is None else float(mass)),
            check_value(self.value, value, near),
            check_bound(self.bound, bound - slack if self.maximised else bound + slack, self.maximised),
            check_gap(self, near, self.is_maximised),
        )  # fmt: skip
