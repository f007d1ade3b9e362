"""A check of the quotes in a CSV file, over its bytes as they go by.

Arrow takes a quoted cell that goes on behind its closing quote, or never ends, for a whole one; Python's
reader refuses them. Where each quote opens a cell, closes it or is doubled inside, the two read the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_QUOTE = ord('"')


class QuoteCheck:
    """Whether every quote so far opens a cell, closes one, or is doubled inside one.

    Args:
        delimiter: between cells.

    Attributes:
        unusual: whether one does not.
    """

    def __init__(self, delimiter: str) -> None:
        self._ends = np.zeros(256, dtype=bool)
        self._ends[[_QUOTE, ord(delimiter), ord("\n"), ord("\r")]] = True
        self._inside = False
        self._before = ord("\n")
        self._closed_last = False
        self.unusual = False

    def feed(self, chunk: bytes) -> None:
        """Look at the next bytes; none at the end of the file."""
        if not chunk:
            self.unusual |= self._inside
            return
        data = np.frombuffer(chunk, dtype=np.uint8)
        if self._closed_last:
            self.unusual |= not self._ends[data[0]]
        places = np.flatnonzero(data == _QUOTE)
        opens = (np.arange(len(places)) + self._inside) % 2 == 0
        self._closed_last = bool(len(places)) and bool(places[-1] == len(data) - 1) and not opens[-1]
        self.unusual |= not (
            self._good_before(data, places[opens]) and self._good_after(data, places[~opens])
        )
        self._inside ^= bool(len(places) % 2)
        self._before = int(data[-1])

    def _good_before(self, data: NDArray[np.uint8], places: NDArray[np.intp]) -> bool:
        """Whether a cell begins at each opening quote, or the quote before it is its double."""
        first = places[:1] == 0
        before = data[places - 1]
        before[:1][first] = self._before
        return bool(self._ends[before].all())

    def _good_after(self, data: NDArray[np.uint8], places: NDArray[np.intp]) -> bool:
        """Whether a cell ends behind each closing quote, or its double follows."""
        return bool(self._ends[data[places[places + 1 < len(data)] + 1]].all())
