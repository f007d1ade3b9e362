"""The certificate of an envelope design: margins that prove what leaks, boxes that bound the gain."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar

import numpy as np

from pmlopt.core.arrays import FloatArray, rounding_of
from pmlopt.core.records import Range, Shape
from pmlopt.model.utility.linear import expectation, row_offsets
from pmlopt.programs.certificate import (
    RATIONAL,
    Certificate,
    Claim,
    StoredPrior,
    bound_claim,
    gap_claim,
    mechanism_claim,
    value_claim,
)
from pmlopt.programs.envelope.masses import leaking_mass
from pmlopt.programs.envelope_design.margin_programs import BoxProof, MarginRange
from pmlopt.programs.exact.repair import Change


@dataclass(frozen=True, eq=False, kw_only=True)
class EnvelopeDesignCertificate(Certificate):
    """What is claimed of a mechanism whose post-processings leak at most epsilon but with probability delta.

    `value` is its expected gain or loss; `bound` is what no such mechanism betters, by `proof`.

    Attributes:
        prior: N letters.
        epsilon: in nats.
        delta: the probability.
        margins: (N,) with which `leaking_mass` is at most delta.
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
    repair: Change

    def figures(self) -> tuple[float, float]:
        """The value of the mechanism and the bound of the proof, computed anew, in the unit of the table.

        Both on the table without the least entry of each row, which no choice of outputs changes.
        """
        sign = 1.0 if self.maximised else -1.0
        offsets = row_offsets(self.table)
        gains = sign * (self.table - offsets[:, None])
        constant = float(self.prior.pmf @ offsets)
        most = self.proof.bound(MarginRange.of(self.prior, self.epsilon, self.delta), gains)
        value = constant + sign * expectation(self.prior, gains, self.mechanism.matrix)
        return value, constant + sign * most

    @property
    def level(self) -> float:
        """Epsilon, in nats: what no post-processing exceeds but with probability delta."""
        return self.epsilon

    @property
    def statement(self) -> str:
        """The promise."""
        return (
            f"no post-processing leaks more than {self.epsilon:.9g} nats but with a probability of at most "
            f"{self.delta:g}"
        )

    @property
    def is_maximised(self) -> bool:
        return self.maximised

    @property
    def bound_rounding(self) -> float:
        return rounding_of(self.table.size, float(np.abs(self.table).max(initial=0.0)))

    def checks(self) -> tuple[Claim, ...]:
        """That no post-processing leaks more but with probability delta, and that value and bound are right.

        What leaks is decided in rational arithmetic, with rows that sum to exactly one; value and bound are
        computed again, and may be off by rounding, the bound only to the side that claims less.
        """
        matrix = self.mechanism.matrix
        if matrix.shape != self.table.shape or self.margins.shape != (len(matrix),):
            return (Claim("shapes", False, RATIONAL, "matrix, table and margins do not fit one another"),)
        mechanism = mechanism_claim(self.mechanism)
        if not mechanism.holds:
            return (mechanism,)
        mass = leaking_mass(self.prior, matrix, self.epsilon, self.margins)
        kept = mass is not None and mass <= Fraction(self.delta)
        value, bound = self.figures()
        near = self.bound_rounding
        return (
            mechanism,
            Claim("level", kept, RATIONAL, self.statement if kept else "the margins do not prove the level",
                  self.delta, None if mass is None else float(mass)),
            value_claim(self.value, value, near),
            bound_claim(self.bound, bound - near if self.maximised else bound + near, self.maximised),
            gap_claim(self, self.bound_rounding, self.is_maximised),
        )  # fmt: skip
