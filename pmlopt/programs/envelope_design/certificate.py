"""The certificate of an envelope design: margins that bound the leakage, boxes that bound the gain."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, bound_sum_rounding
from pmlopt.core.records.fields import Range, Shape
from pmlopt.model.privacy import PML
from pmlopt.programs.certificate import Certificate, StoredPrior
from pmlopt.programs.claims import RATIONAL, Claim, check_bound, check_mechanism, check_value
from pmlopt.programs.envelope.masses import bound_leaking_mass
from pmlopt.programs.envelope_design.margin_programs import BoxProof, MarginRange
from pmlopt.programs.exact.rounding import RepairRecord
from pmlopt.programs.linear.columns import DenseColumns, round_outward


@dataclass(frozen=True, eq=False, kw_only=True)
class EnvelopeDesignCertificate(Certificate):
    """The certificate that leakage after post-processing exceeds epsilon with probability delta at most.

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
        """Recompute the mechanism's value and the proved bound, in the unit of the utility table.

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
        """Return the column system under PML(epsilon), which is sufficient for the envelope condition."""
        return DenseColumns(self.prior, PML(self.epsilon))

    @property
    def centered_gains(self) -> FloatArray:
        """Return (N, M) signed gains with each row's minimum subtracted."""
        return self.columns.center_table(self.table, self.maximised)

    @property
    def level(self) -> float:
        """Return epsilon in nats, which post-processings exceed with probability delta at most."""
        return self.epsilon

    @property
    def statement(self) -> str:
        """Return the guarantee (level and exception probability) as text."""
        return (
            f"no post-processing leaks more than {self.epsilon:.9g} nats but with a probability of at most "
            f"{self.delta:g}"
        )

    @property
    def bound_rounding(self) -> float:
        """Return the floating-point allowance by which the value may pass its bound."""
        return self.columns.bound_value_rounding(self.table, self.mechanism.matrix)

    @property
    def value_name(self) -> str:
        """Return what the value is, in words."""
        return "expected gain" if self.maximised else "expected loss"

    def checks(self) -> tuple[Claim, ...]:
        """Recheck the leakage under post-processing, the value and the bound.

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
            check_value(self.value, value, near, name=self.value_name),
            check_bound(self.bound, bound - slack if self.maximised else bound + slack, self.maximised),
            self._check_gap(),
        )  # fmt: skip
