"""The certificate of an envelope design: margins that prove what leaks, boxes that bound the gain."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar

import numpy as np

from pmlopt.core.arrays import FloatArray, IntArray, rounding_of
from pmlopt.core.records import Range, Shape
from pmlopt.data.prior import Prior
from pmlopt.model.utility.linear import expectation, row_offsets
from pmlopt.programs.certificate import RATIONAL, Certificate, Claim, StoredPrior
from pmlopt.programs.claims import bound_claim, gap_claim, mechanism_claim, value_claim
from pmlopt.programs.envelope.masses import leaking_mass
from pmlopt.programs.envelope_design.margin_programs import MarginRange, gain_bound
from pmlopt.programs.exact.repair import Change


@dataclass(frozen=True, eq=False)
class BoxProof:
    """Boxes that cover all margins, and for each what its mechanisms cannot exceed.

    The box of all margins is cut in two again and again. The nodes of the tree are listed from the root
    on, each before those below it, the lower part first.

    Attributes:
        letters: (T,) across which letter a node is cut, or -1 where it is not.
        cuts: (T,) at which margin; 0 where it is not.
        rows: (K, N) the multipliers rho of `gain_bound` for the boxes that are not cut, in order.
        thresholds: (K, M) theta.
    """

    letters: Annotated[IntArray, Shape("T")]
    cuts: Annotated[FloatArray, Shape("T")]
    rows: Annotated[FloatArray, Shape("K", "N")]
    thresholds: Annotated[FloatArray, Shape("K", "M")]

    def bound(self, margins: MarginRange, gains: FloatArray) -> float:
        """The largest of the bounds on the boxes; inf where this is no proof."""
        boxes = self._boxes(margins.largest)
        n, m = gains.shape
        numbers = np.isfinite(self.rows).all() and np.isfinite(self.thresholds).all()
        if boxes is None or self.rows.shape != (len(boxes[0]), n) or not numbers:
            return float("inf")
        if self.thresholds.shape != (len(boxes[0]), m):
            return float("inf")
        caps, slopes = margins.relaxed(*boxes)
        return float(gain_bound(margins, gains, caps, slopes, self.rows, self.thresholds).max())

    def _boxes(self, largest: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """The lower and the upper corners, (K, N) each, of the boxes that are not cut; None for no tree."""
        if self.letters.shape != self.cuts.shape:
            return None
        ahead, leaves = [(np.zeros(len(largest)), largest)], []
        for letter, cut in zip(self.letters.tolist(), self.cuts.tolist(), strict=True):
            if not ahead:
                return None
            lower, upper = ahead.pop()
            if letter < 0:
                leaves.append((lower, upper))
                continue
            if letter >= len(largest) or not lower[letter] < cut < upper[letter]:
                return None
            middle_up, middle_down = upper.copy(), lower.copy()
            middle_up[letter] = middle_down[letter] = cut
            ahead += [(middle_down, upper), (lower, middle_up)]
        if ahead or not leaves:
            return None
        return np.array([low for low, _ in leaves]), np.array([high for _, high in leaves])


def trivial_proof(gains: FloatArray) -> BoxProof:
    """That no mechanism gains more than the largest gain of each letter."""
    n, m = gains.shape
    return BoxProof(np.array([-1]), np.zeros(1), gains.max(axis=1).reshape(1, n), np.zeros((1, m)))


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

    prior: StoredPrior
    epsilon: Annotated[float, Range(0)]
    delta: Annotated[float, Range(0, 1)]
    margins: Annotated[FloatArray, Shape("N")]
    table: Annotated[FloatArray, Shape("N", "M")]
    maximised: bool
    proof: BoxProof
    repair: Change

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
