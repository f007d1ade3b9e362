"""The likelihoods of the letters after what was released, in logarithms, for many people at once.

A history y_1, ..., y_t has the likelihoods `L[x] = sum_i log P_i[x, y_i]`, kept with the largest at 0, so
that nothing underflows. The lift of a letter is `e^L[x] / sum_x' p[x'] e^L[x']`, and its logarithm the
information density of all that was released.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pmlopt.core.arrays import FloatArray, IntArray
from pmlopt.measures.leakage import log_quotient, log_sum

CHUNK = 1000
"""Histories that are looked at at once: the numbers of 16 letters stay in the cache of a core."""
EPS = float(np.finfo(float).eps)
SMALLEST_MASS = 1e-280
"""Below, the mass of an outcome or a letter may have lost digits to underflow."""


@dataclass(frozen=True)
class Histories:
    """What was released on each person: people with the same history share a row of numbers.

    Attributes:
        likelihoods: (K, N) logarithms for each history, the largest of each 0; -inf for excluded letters.
        rounding: (K,) bounds on how far they are off.
        place: (people,) which one each person has.
    """

    likelihoods: FloatArray
    rounding: FloatArray
    place: IntArray

    @classmethod
    def begun(cls, letters: int, people: int) -> Histories:
        """The one history of people of whom nothing was released."""
        return cls(np.zeros((1, letters)), np.zeros(1), np.zeros(people, dtype=np.int64))

    def groups(self) -> list[IntArray]:
        """The people by history."""
        order = np.argsort(self.place, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(self.place[order])) + 1)

    def of(self, members: IntArray) -> IntArray:
        """The histories of some people, each once."""
        return _distinct(self.place[members], len(self.likelihoods))[0]

    def off(self, person: int, levels: Any) -> Any:
        """How far these levels, or budgets, of a person may be off by rounding."""
        units = (self.likelihoods.shape[1] + 8) * EPS * np.maximum(1.0, np.abs(levels))
        return units + 2 * self.rounding[self.place[person]]

    def extended(self, matrix: FloatArray, columns: IntArray, members: IntArray) -> Histories:
        """The histories with one more outcome for some people; off by infinity where it is impossible."""
        outputs, held = matrix.shape[1], self.place[members]
        pairs, own = _distinct(held * outputs + columns, len(self.likelihoods) * outputs)
        rows, taken = np.divmod(pairs, outputs)
        logs, off = log_steps(matrix)
        grown = np.empty((len(pairs), matrix.shape[0]))
        rounding = self.rounding[rows] + off[taken]
        for start in range(0, len(pairs), CHUNK):
            part = slice(start, start + CHUNK)
            sums = self.likelihoods[rows[part]]
            sums += logs[taken[part]]
            peaks = sums.max(axis=1)
            with np.errstate(invalid="ignore"):
                np.subtract(sums, peaks[:, None], out=grown[part])
            # the sum and its difference from the peak are rounded, each by half a unit in its last place
            lows = grown[part].min(axis=1, where=sums > -np.inf, initial=0.0)
            rounding[part] -= EPS * (peaks / 2 + lows)
        place = np.empty_like(self.place)
        outside = np.ones(len(place), dtype=bool)
        outside[members] = False
        place[members] = own
        if outside.any():
            kept, at = _distinct(self.place[outside], len(self.likelihoods))
            place[outside] = len(grown) + at
            grown = np.concatenate([grown, self.likelihoods[kept]])
            rounding = np.concatenate([rounding, self.rounding[kept]])
        return Histories(grown, rounding, place)


def log_lifts(law: FloatArray, likelihoods: FloatArray) -> FloatArray:
    """The (K, N) logarithms of the lifts; -inf for letters that are excluded."""
    return likelihoods + levels_of(law, likelihoods)[:, None]


def levels_of(law: FloatArray, likelihoods: FloatArray) -> FloatArray:
    """The (K,) leakages of histories, in nats; law is the prior, and likelihoods (K, N)."""
    return log_quotient(np.exp(likelihoods) @ law, -np.expm1(likelihoods) @ law)


def levels_after(law: FloatArray, likelihoods: FloatArray, matrix: FloatArray) -> FloatArray:
    """(K,) the largest leakage of each history after one more release, whatever its outcome, in nats.

    Examples:
        >>> response = np.array([[0.75, 0.25], [0.25, 0.75]])
        >>> np.exp(levels_after(np.array([0.5, 0.5]), np.log([[1.0, 1.0], [1.0, 1 / 3]]), response)).round(12)
        array([1.5, 1.8])
    """
    found = np.empty(len(likelihoods))
    with np.errstate(divide="ignore"):
        log_matrix = np.log(matrix)
    for start in range(0, len(likelihoods), CHUNK):
        block = likelihoods[start : start + CHUNK]
        found[start : start + CHUNK] = _block_after(law, block, matrix, log_matrix)
    return found


def log_steps(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What each outcome adds to the likelihoods, with the largest entry of a column 0, and how far it is off.

    (M, N) logarithms, -inf where the outcome is impossible, and (M,) bounds on their rounding: none
    where all finite entries are 0.
    """
    columns = np.ascontiguousarray(matrix.T)
    peaks = columns.max(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        all_logs = np.log(columns)
        logs = np.where(columns == peaks, 0.0, all_logs - np.log(peaks))
    possible = columns > 0
    logs[~possible] = -np.inf
    # two logarithms are off by a unit in their last place each, and their difference by half of one
    lowest = all_logs.min(axis=1, where=possible, initial=0.0)
    varied = ((columns != peaks) & possible).any(axis=1)
    return logs, np.where(varied, -3 * EPS * lowest, 0.0)


def _block_after(
    law: FloatArray, block: FloatArray, matrix: FloatArray, log_matrix: FloatArray
) -> FloatArray:
    shares = np.exp(block)
    masses = (shares * law) @ matrix  # (K, M)
    by_letter = np.ascontiguousarray(shares.T)
    best = np.zeros(len(block))
    scratch = np.empty(len(block))
    for y in range(matrix.shape[1]):
        peaks = np.zeros(len(block))
        for x in np.flatnonzero(matrix[:, y]):
            np.maximum(peaks, np.multiply(by_letter[x], matrix[x, y], out=scratch), out=peaks)
        mass = masses[:, y]
        rare = mass < SMALLEST_MASS
        np.maximum(best, np.divide(peaks, mass, out=scratch, where=~rare), out=best, where=~rare)
        if rare.any():
            best[rare] = np.maximum(best[rare], _rare_lifts(law, block[rare] + log_matrix[:, y]))
    return np.asarray(np.log(best))


def _rare_lifts(law: FloatArray, grown: FloatArray) -> FloatArray:
    """The largest lift after an outcome, in logarithms up to the end; 0 where it cannot come."""
    found = np.zeros(len(grown))
    possible = grown.max(axis=1) > -np.inf
    terms = grown[possible]
    found[possible] = np.exp(terms.max(axis=1) - log_sum(terms + np.log(law), axis=1)[:, 0])
    return found


def _distinct(keys: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """The distinct keys below a size in ascending order, and the place of each key among them."""
    if size > 32 * len(keys):  # a table would be too large
        return np.unique(keys, return_inverse=True)
    present = np.zeros(size, dtype=bool)
    present[keys] = True
    return np.flatnonzero(present), (np.cumsum(present, dtype=np.int32) - 1)[keys].astype(np.int64)
