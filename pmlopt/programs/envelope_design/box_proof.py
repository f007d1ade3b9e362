"""The proof of an upper bound: a tree of boxes of margins, with multipliers for each box that is left."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pmlopt.arrays import FloatArray
from pmlopt.programs.envelope_design.margins import MarginRange, gain_bound


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

    letters: NDArray[np.int64]
    cuts: FloatArray
    rows: FloatArray
    thresholds: FloatArray

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
