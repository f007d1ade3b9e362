"""The level of Gaussian noise on numbers, for each letter: a maximum over the outcomes on a line.

With `t_j = (x_j - x_i) / sigma` and the outcome `y = x_i + sigma u` the log-ratios of the densities given x_j
and x_i are `t_j (u - t_j / 2)`. The outcome leaks `-log m(r)` of x_i, r their exponentials and m the least
mean over the priors. Each r_j is convex in u, so that on a cell it is at least its tangent, and at least its
value at one end. Both are affine in u, as m is of a prior: the least mean of these bounds over the cell is at
one of its ends, and the gap is of second order in the width of the cell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.core.numbers.maxima import bound_maximum
from pmlopt.core.numbers.roots import bisect
from pmlopt.releases.noise.laws import UNIT, bound_exponentials
from pmlopt.releases.noise.letters import PlacedLetters


def bound_line_levels(
    letters: PlacedLetters, line: FloatArray, scale: float, unprotected: FloatArray
) -> FloatArray:
    """Bound (N,) what an outcome of Gaussian noise leaks of each letter at most, by at most 1e-12 too much.

    Args:
        letters: N, with their priors.
        line: (N,) their places.
        scale: of the noise.
        unprotected: (N,) what is leaked of each without noise.
    """
    found = [
        LetterLeakage(letters, (line - place) / scale).bound_maximum(most)
        for place, most in zip(line, unprotected.tolist(), strict=True)
    ]
    return np.array(found)


@dataclass(frozen=True)
class LetterLeakage:
    """What outcomes of Gaussian noise leak of one letter.

    Args:
        letters: N, with their priors.
        offsets: (N,) how far they are from the letter, in standard deviations of the noise.
    """

    letters: PlacedLetters
    offsets: FloatArray

    def bound_maximum(self, unprotected: float) -> float:
        """Bound the maximum over all outcomes from above, by at most 1e-12 too much.

        Args:
            unprotected: what is leaked of the letter without noise.
        """
        sizes = np.abs(self.offsets[self.offsets != 0])
        below = self.offsets[self.offsets < 0]
        above = self.offsets[self.offsets > 0]
        # of an outermost letter outcomes far out leak as much as of no noise, and so they do where no float
        # tells the noise from none
        if not (below.size and above.size) or sizes.max() > 1e100 or sizes.min() < 1e-100:
            return unprotected
        ends = -_find_last_place(-below), _find_last_place(above)
        beyond = max(map(self._bound_beyond, ends))
        found = bound_maximum(self._bound_on_cells, self._divide(*ends), lambda best: 1e-12, beyond)
        return min(unprotected, found)

    def _divide(self, first: float, last: float) -> FloatArray:
        """Return the ends of cells between two outcomes, narrow where the mean given one is the letter.

        There the maximum under the prior is; over a set it is near, or the cells are halved.
        """
        weights = self.letters.prior.pmf * self.offsets

        def is_above(place: float) -> bool:
            logs = self._compute_log_ratios(np.array([place]))[:, 0]
            return bool(weights @ np.exp(logs - logs.max()) >= 0)

        middle = bisect(is_above, first, last, 1e-12)
        widths = np.geomspace(1e-6 / np.abs(self.offsets).max(), last - first, 64)
        return np.unique(np.clip(np.append(middle - widths, middle + widths), first, last))

    def _bound_beyond(self, end: float) -> float:
        """Bound what outcomes beyond an end leak: letters on the other side count as impossible."""
        logs = self._compute_log_ratios(np.array([end]))
        return float(
            self._bound_leakage(np.where(self.offsets[:, None] * end < 0, -np.inf, logs))[0]
        )

    def _bound_on_cells(self, left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bound what outcomes in the middle of cells leak, and what any of them in a cell does."""
        half = (right - left) / 2
        logs = self._compute_log_ratios(left + half)
        ends = map(self._bound_leakage, bound_exponentials(logs, self.offsets[:, None] * half))
        return self._bound_leakage(logs), np.maximum(*ends)

    def _compute_log_ratios(self, places: FloatArray) -> FloatArray:
        """Compute (N, K) log-ratios of the densities at outcomes, rounded down."""
        t = self.offsets[:, None]
        rounding = 8 * UNIT * np.abs(t) * (np.abs(places) + np.abs(t))
        return np.asarray(t * (places - t / 2) - rounding)

    def _bound_leakage(self, logs: FloatArray) -> FloatArray:
        """Bound (K,) leakages of the letter from above, for (N, K) log-ratios."""
        # next to larger ratios no float holds that of the letter itself, which is 1
        kept = np.minimum(logs, 700.0)
        top = kept.max(axis=0)
        return np.asarray(self.letters.bound_levels(top - kept) - top)


def _find_last_place(distances: FloatArray) -> float:
    """Find an outcome beyond which each letter at these distances is at least e^700 times as likely."""
    return float((700 / distances + distances / 2).max())
