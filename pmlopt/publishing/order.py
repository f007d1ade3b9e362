"""Tests whether a released file's rows are in random order.

Of a uniformly random order every column has the law of its cells put into a random order. Two tests are made
of each column. The number of runs (Wald and Wolfowitz, for several values Mood) finds neighbours that are
too often alike, or too seldom. The largest distance between where the rows of a value stand and where the
others do (Kolmogorov and Smirnov, for two samples) finds values that gather in a part of the file: it is far
better at rows that were sorted before they were randomized.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pmlopt.core.numbers.arrays import IntArray, join_words, make_order_key
from pmlopt.programs.claims import FLOATS, Claim
from pmlopt.publishing.folder import IN_ORDER, ReleaseFile
from pmlopt.tables.reading import FolderTable, Table, TableBatch, find_column, open_table
from pmlopt.tables.streams import CsvFormat

FALSE_WARNING_PROBABILITY = 1e-3
"""The probability at most, about, with which rows in a random order are warned of."""


@dataclass(frozen=True)
class RowOrderTest:
    """The evidence about the row order.

    Attributes:
        p_value: of the column that is least likely, for all columns at once; about an upper bound.
        columns: those that differ from a random order on their own at the rate `FALSE_WARNING_PROBABILITY`.
    """

    p_value: float
    columns: tuple[str, ...]


def refutes_random_order(p_value: float) -> bool:
    """Return whether a p-value refutes a stated random order: below 1e-6.

    A random order has one so small less than once in 1,000 releases: once in a million by the laws of the
    tests, of which that of the number of runs is a normal approximation whose tail may be off by a factor.
    """
    return p_value < 1e-6


def compute_runs_p_value(codes: IntArray) -> float:
    """Compute the two-sided p-value of the Wald-Wolfowitz runs test.

    Of n rows, n_k of which have the value k, in a random order, with `s_j = sum_k n_k^j`, the mean is
    `n + 1 - s_2 / n` and the variance `(s_2 (s_2 + n (n + 1)) - 2 n s_3 - n^3) / (n^2 (n - 1))`.

    Examples:
        >>> halves = np.repeat([0, 1], 200)
        >>> compute_runs_p_value(halves) < 1e-9
        True
        >>> compute_runs_p_value(np.random.default_rng(0).permutation(halves)) > 0.01
        True
    """
    n = len(codes)
    if n < 2:
        return 1.0
    # floats: n^3 of many rows is beyond 64 bits
    counts = np.bincount(codes).astype(float)
    s2 = float((counts**2).sum())
    s3 = float((counts**3).sum())
    variance = (s2 * (s2 + n * (n + 1)) - 2 * n * s3 - float(n) ** 3) / (float(n) ** 2 * (n - 1))
    # Variance of the number of runs from which on its law is near enough to the normal one at
    # `FALSE_WARNING_PROBABILITY`.
    if variance < 25.0:
        return 1.0
    runs = 1 + int((codes[1:] != codes[:-1]).sum())
    # continuity correction: the number of runs is whole, and the normal law is not
    distance = max(0.0, abs(runs - (n + 1 - s2 / n)) - 0.5)
    return math.erfc(distance / math.sqrt(2 * variance))


def compute_drift_p_value(codes: IntArray) -> float:
    """Bound the p-value of a test for drift in each value's row positions.

    The distance D between the shares of the m rows of a value and of the n - m others that stand before a
    place exceeds d with a probability of at most `e exp(-2 d^2 m (n - m) / n)` at any place.

    Examples:
        >>> compute_drift_p_value(np.repeat([0, 1, 2], 50)) < 1e-9
        True
        >>> compute_drift_p_value(np.tile([0, 1, 2], 50))
        1.0
    """
    n = len(codes)
    counts = np.bincount(codes)
    # a code that does not occur would divide by 0
    counts = counts[counts > 0]
    # one value shows no order
    if len(counts) < 2:
        return 1.0
    # stable: the rows of each value in their order in the file, value after value
    places = np.argsort(codes, kind="stable") + 1
    m = np.repeat(counts, counts)
    # (n,): the number of each row among the rows of its value
    rank = np.arange(n) - np.repeat(np.cumsum(counts) - counts, counts) + 1
    after = rank / m - places / n
    before = (places - 1) / n - (rank - 1) / m
    # the share of all rows is a mean of both: the distance to that of the others is larger by n / (n - m)
    largest = (
        np.maximum.reduceat(np.maximum(after, before), np.cumsum(counts) - counts)
        * n
        / (n - counts)
    )
    exponent = 2 * largest**2 * counts * (n - counts) / n
    return min(1.0, len(counts) * math.exp(1 - float(exponent.max())))


def compare_with_random_order(columns: Mapping[str, Sequence[IntArray]]) -> RowOrderTest:
    """Test columns for non-random row order.

    Args:
        columns: by name, the codes of the values in each part of the file that has an order of its own.
    """
    found = {
        name: min(
            min(
                1.0, 2 * len(parts) * min(compute_runs_p_value(codes), compute_drift_p_value(codes))
            )
            for codes in parts
        )
        for name, parts in columns.items()
        if parts
    }
    # Bonferroni over the columns, which may depend on each other
    least = min(1.0, len(found) * min(found.values(), default=1.0))
    return RowOrderTest(
        least,
        tuple(name for name, p in found.items() if p * len(found) < FALSE_WARNING_PROBABILITY),
    )


def make_order_claim(
    data: Path, form: CsvFormat, described: ReleaseFile, released: Sequence[str]
) -> Claim:
    """Build the claim on the row order of a released file: a stated random order may be refuted.

    Args:
        data: the file, or the folder of files.
        form: of a CSV file.
        described: what is stated of it.
        released: the columns that mechanisms wrote; all others are in clear.
    """
    with open_table(data, form) as table:
        found = compare_with_random_order(
            _encode_columns(table, [*released, *described.kept], set(released), described.rows)
        )
    looks = "no column looks sorted"
    if found.columns:
        looks = f"{join_words(found.columns)} look{'' if len(found.columns) > 1 else 's'} sorted or clustered"
    often = (
        f"a random order has one below {FALSE_WARNING_PROBABILITY:g} about once in "
        f"{1 / FALSE_WARNING_PROBABILITY:,.0f} times"
    )
    text = f"{looks}: the p-value is {found.p_value:.3g}; {often}"
    if described.order == IN_ORDER:
        text = f"warning: rows keep the order of the data, which no level counts; {text}"
        return Claim("order", None, FLOATS, text, None, found.p_value)
    if refutes_random_order(found.p_value):
        text = (
            f"rows are stated to be in a random order, and {looks}: the p-value is {found.p_value:.3g}, "
            "refused below 1e-06: of releases in a random order fewer than 1 in 1,000 are refused"
        )
        return Claim("order", False, FLOATS, text, None, found.p_value)
    if found.columns:
        text = f"warning: rows are stated to be in a random order, and {text}"
        return Claim("order", None, FLOATS, text, None, found.p_value)
    return Claim("order", True, FLOATS, text, None, found.p_value)


def _encode_columns(
    table: Table, names: Sequence[str], released: set[str], rows: int
) -> dict[str, list[IntArray]]:
    """Encode columns as integer codes, per part with its own order."""
    places = {name: find_column(table.names, name, table.where) for name in names}
    # Rows of a column in clear that are tested, evenly spaced: it may have a value of its own in each.
    step = -(-max(1, rows) // (2**18))
    parts: dict[tuple[Any, ...], dict[str, _CodedColumn]] = {}
    first = 0
    partitions = table.partitions if isinstance(table, FolderTable) else ()
    named = [find_column(table.names, name, table.where) for name in partitions]
    for batch in table.batches():
        key = tuple(batch.column_texts(place)[0] for place in named)
        part = parts.setdefault(
            key, {name: _CodedColumn() for name in names if name not in partitions}
        )
        for name, coded in part.items():
            coded.add_batch(batch, places[name], 1 if name in released else step, first)
        first += batch.size
    return {
        name: [part[name].compute_codes() for part in parts.values()]
        for name in names
        if name not in partitions
    }


class _CodedColumn:
    """A column's incremental integer encoding."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._codes: list[IntArray] = []

    def add_batch(self, batch: TableBatch, place: int, step: int, first: int) -> None:
        """Add every step-th row of a batch."""
        values, codes = batch.encode_column(place)
        own = codes[-first % step :: step]
        used = np.unique(own)
        numbers = np.zeros(len(values), dtype=np.int64)
        for code in used.tolist():
            numbers[code] = self._numbers.setdefault(_make_key(values[code]), len(self._numbers))
        self._codes.append(numbers[own])

    def compute_codes(self) -> IntArray:
        """Return the codes, by value ranges where values are many."""
        codes = np.concatenate([np.zeros(0, dtype=np.int64), *self._codes])
        # Values of a column that are distinguished; where there are more, ranges of values are.
        if len(self._numbers) <= 64:
            return codes
        order = sorted(self._numbers, key=make_order_key)
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[[self._numbers[key] for key in order]] = np.arange(len(order))
        return np.asarray(ranks[codes] * 16 // len(order))


def _make_key(value: Any) -> Any:
    """Return a hashable form of a value."""
    return repr(value) if isinstance(value, list | dict) else value
