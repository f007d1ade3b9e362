"""The certificate of an envelope design: margins that prove what leaks, boxes that bound the gain."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from pmlopt.arrays import FloatArray, rounding_of
from pmlopt.core.records import plain
from pmlopt.exact.rationals import GRID
from pmlopt.exact.repair import Repair
from pmlopt.prior import Prior
from pmlopt.programs.claims import bound_claim, gap_claim, mechanism_claim, value_claim
from pmlopt.programs.envelope_design.box_proof import BoxProof
from pmlopt.programs.envelope_design.margins import MarginRange, leaking_mass
from pmlopt.result import RATIONAL, Certificate, Claim, finite
from pmlopt.utility.linear import expectation, row_offsets


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

    prior: Prior
    epsilon: float
    delta: float
    margins: FloatArray
    table: FloatArray
    maximised: bool
    proof: BoxProof
    repair: Repair

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
    def arithmetic(self) -> str:
        """Rationals, of what leaks; the bound is a float to which what rounding may hide is added."""
        return RATIONAL

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
        value, bound = numbers(
            self.prior, self.epsilon, self.delta, self.table, self.maximised, matrix, self.proof
        )
        near = rounding_of(self.table.size, float(np.abs(self.table).max(initial=0.0)))
        proved = bound - near if self.maximised else bound + near
        return (
            mechanism,
            Claim("level", kept, RATIONAL, self.statement if kept else "the margins do not prove the level",
                  self.delta, None if mass is None else float(mass)),
            value_claim(self.value, value, near),
            bound_claim(self.bound, proved, self.maximised),
            gap_claim(self, near, self.maximised),
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a JSON file: enough to check every claim again."""
        return {
            "kind": self.kind,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "utility": {"kind": "gain" if self.maximised else "loss", "table": self.table.tolist()},
            "value": self.value,
            "bound": finite(self.bound),
            "gap": finite(self.gap),
            "prior": plain(self.prior),
            "margins": self.margins.tolist(),
            "bound_from": {
                "letters": self.proof.letters.tolist(),
                "cuts": self.proof.cuts.tolist(),
                "multipliers": self.proof.rows.tolist(),
                "thresholds": self.proof.thresholds.tolist(),
            },
            "repair": self.repair.record(self.mechanism.outputs),
            "denominator": GRID,
            "verified_exactly": self.verify(),
        }


def numbers(
    prior: Prior,
    epsilon: float,
    delta: float,
    table: FloatArray,
    maximised: bool,
    matrix: FloatArray,
    proof: BoxProof,
) -> tuple[float, float]:
    """The value of a mechanism and the bound of a proof, in the unit of the table.

    Both are computed on the table without the least entry of each row, which no choice of outputs changes.

    Args:
        prior: N letters.
        epsilon: in nats.
        delta: the probability.
        table: (N, M) the gain or loss.
        maximised: whether it is a gain.
        matrix: (N, M) the mechanism.
        proof: any; one that is none proves nothing.
    """
    sign = 1.0 if maximised else -1.0
    offsets = row_offsets(table)
    gains = sign * (table - offsets[:, None])
    constant = float(prior.pmf @ offsets)
    value = constant + sign * expectation(prior, gains, matrix)
    bound = constant + sign * proof.bound(MarginRange.of(prior, epsilon, delta), gains)
    return value, bound if math.isfinite(bound) else sign * math.inf
