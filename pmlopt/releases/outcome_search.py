"""Branch and bound for the outcome of many releases that leaks most."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pmlopt.core.arrays import FloatArray, IntArray
from pmlopt.errors import MechanismError
from pmlopt.measures.leakage import log_sum
from pmlopt.releases.histories import levels_of

MOST_CANDIDATES = 100_000
"""Choices of the first outputs that are kept at once: with 16 letters 13 MB."""
BLOCK = 2**20
"""Numbers that the bounds of some choices take at once, N^2 for each: 8 MB."""


class OutcomeSearch:
    """The search for the largest `log prod_i P_i[x,y_i] / sum_x' p[x'] prod_i P_i[x',y_i]`.

    For a letter x it is minus the logarithm of a sum of products of the ratios `P_i[x',y_i] / P_i[x,y_i]`.
    With the first outputs chosen it is at most what the least ratio of each further mechanism for each pair
    (x, x') leaves, which is the bound. Choices whose bound is not above the best outcome in hand are
    dropped. Equal mechanisms in a row take their outputs in ascending order, for it makes no difference.

    Args:
        law: (N,) the prior.
        matrices: (N, M_i), without columns of zeros.
    """

    def __init__(self, law: FloatArray, matrices: Sequence[FloatArray]) -> None:
        self.law = law
        with np.errstate(divide="ignore"):
            self.logs = [np.log(matrix / matrix.max(axis=0)) for matrix in matrices]
        self.repeats = [
            place > 0 and np.array_equal(matrices[place - 1], matrix) for place, matrix in enumerate(matrices)
        ]
        least = np.zeros((len(law), len(law)))
        self.ahead = [least]  # of the mechanisms after each place
        for logs in reversed(self.logs):
            least = least + _least_ratios(logs)
            self.ahead.insert(0, least)

    def run(self) -> tuple[float, int, tuple[int, ...]]:
        """The largest leakage, its letter, and the place of the output of each mechanism."""
        best = max((self._climbed(letter) for letter in range(len(self.law))), key=lambda found: found[0])
        columns = np.zeros((1, len(self.law)))
        choices = np.zeros((1, 0), dtype=int)
        for place, logs in enumerate(self.logs):
            columns, choices = self._extended(columns, choices, logs, self.repeats[place])
            keep = self._bounds(columns, self.ahead[place + 1]) > best[0]
            columns, choices = columns[keep], choices[keep]
            if len(choices) > MOST_CANDIDATES:
                raise MechanismError(
                    f"the search for the worst outcome keeps {len(choices)} choices after {place + 1} of "
                    f"{len(self.logs)} mechanisms, more than {MOST_CANDIDATES}: ask for fewer mechanisms, or "
                    "for `chained_level` of blocks of them"
                )
        if len(choices):
            leakages = levels_of(self.law, columns)
            top = int(leakages.argmax())
            if leakages[top] > best[0]:
                best = (float(leakages[top]), int(columns[top].argmax()), tuple(choices[top].tolist()))
        return best

    def _extended(
        self, columns: FloatArray, choices: IntArray, logs: FloatArray, repeats: bool
    ) -> tuple[FloatArray, IntArray]:
        """Each choice with each output of the next mechanism, those that are possible."""
        after = np.arange(logs.shape[1])
        allowed = (after >= choices[:, -1:]) if repeats else np.ones((len(choices), len(after)), dtype=bool)
        rows, outputs = np.nonzero(allowed)
        grown = columns[rows] + logs.T[outputs]
        peaks = grown.max(axis=1, keepdims=True)
        possible = peaks[:, 0] > -np.inf
        grown = grown[possible] - peaks[possible]
        return grown, np.column_stack([choices[rows], outputs])[possible]

    def _bounds(self, columns: FloatArray, ahead: FloatArray) -> FloatArray:
        """What no outcome with these first outputs exceeds."""
        bounds = np.empty(len(columns))
        log_law = np.log(self.law)
        size = max(1, BLOCK // len(log_law) ** 2)
        for start in range(0, len(columns), size):
            block = columns[start : start + size]
            possible = np.isfinite(block)
            with np.errstate(invalid="ignore"):
                terms = block[:, None, :] - block[:, :, None] + (ahead + log_law)  # (block, x, x')
            terms[~possible] = 0.0
            sums = np.where(possible, log_sum(terms, axis=2)[:, :, 0], np.inf)
            bounds[start : start + size] = -sums.min(axis=1)
        return bounds

    def _climbed(self, letter: int) -> tuple[float, int, tuple[int, ...]]:
        """An outcome that leaks much about a letter: one output changed at a time, while that helps."""
        chosen = [int(part[letter].argmax()) for part in self.logs]
        before, value = -np.inf, float(self._value(self._product(chosen)[:, None], letter)[0])
        while value > before:
            before = value
            for place, part in enumerate(self.logs):
                values = self._value(self._product(chosen, but=place)[:, None] + part, letter)
                if values.max() > value:
                    value, chosen[place] = float(values.max()), int(values.argmax())
        column = self._product(chosen)
        leakage = float(levels_of(self.law, (column - column.max())[None])[0])
        return leakage, int(column.argmax()), tuple(chosen)

    def _product(self, chosen: Sequence[int], but: int | None = None) -> FloatArray:
        """The column of an outcome in logarithms, without that of one mechanism where one is named."""
        columns = [part[:, y] for part, y in zip(self.logs, chosen, strict=True)]
        if but is not None:
            del columns[but]
        return np.asarray(np.sum([np.zeros(len(self.law)), *columns], axis=0))

    def _value(self, columns: FloatArray, letter: int) -> FloatArray:
        """The information density of a letter under (N, K) logarithms of columns; -inf where excluded."""
        with np.errstate(invalid="ignore"):
            terms = columns - columns[letter] + np.log(self.law)[:, None]
        possible = np.isfinite(columns[letter])
        found = np.full(columns.shape[1], -np.inf)
        found[possible] = -log_sum(terms[:, possible], axis=0)[0]
        return found


def _least_ratios(logs: FloatArray) -> FloatArray:
    """(x, x') the least `log P[x',y] / P[x,y]` over the outputs y that x can emit."""
    return np.array([(logs[:, own > -np.inf] - own[own > -np.inf]).min(axis=1) for own in logs])
