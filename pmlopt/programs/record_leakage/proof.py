"""The proof of an upper bound on a record's leakage, and its check in decimal arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, IntArray
from pmlopt.core.records.fields import INFINITE, Shape
from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import InputError
from pmlopt.model.queries import RecordChannel, record_channel
from pmlopt.programs.exact.decimals import (
    DECIMAL_ATOL,
    DECIMAL_DIGITS,
    DecimalRows,
    dot_decimals,
    has_entropy,
    log_sum_exp_decimals,
    mix_decimal_rows,
    negative_entropy,
    normalize_decimal_rows,
    normalize_log_law,
    sum_decimals,
    to_decimal_rows,
)
from pmlopt.programs.record_leakage.closed_bounds import (
    bound_near_uniform,
    compute_entropy_slack,
    list_class_choices,
)

UNSPLIT_CELL = -1
"""In place of the simplex at which a cell is split, for one that is not."""

MIN_HULL_WIDTH = 1e-6
"""Rows of two outputs that differ by less get the hull of all laws: no number is divided by little."""

CellPart = Literal["posteriors", "laws", "classes"]
"""Of which the simplices of a cell are: the laws of X_i given each output, of Y given each letter, or of the
class T given each letter."""


def get_cell_shape(part: CellPart, letters: int, rows: Sequence[int]) -> tuple[int, int, int]:
    """Return (P, D, R) of a cell: numbers of simplices, corners and entries of rho."""
    classes, outputs = rows
    if part == "posteriors":
        return outputs, letters, 0
    return letters, classes if part == "classes" else outputs, outputs


@dataclass(frozen=True, eq=False)
class CellTree:
    """The branch-and-bound tree of cells; each cell has P simplices of D corners.

    Cell 0 has all laws: unit vectors as corners, or of laws of two outputs the least and the largest row that
    a letter meets. A cell is split at a point of an edge of one simplex, which
    takes the place of one of the edge's ends in its first part, of the other in its second: the cells that
    are not split hold every law, whatever the points. Those have what proves their bounds.

    Attributes:
        of: what the simplices are of.
        simplex: (N,) the one that is split; `UNSPLIT_CELL` for none.
        first, second: (N,) the ends of the edge.
        share: (N,) of the first end in the point.
        part: (N,) the place of the first part, the second follows it; both after the cell itself.
        price: (N,) s > 0, of the entropy.
        majorant: (N, P, D) mu: linear functions that become majorants of phi by a constant.
        log_law: (N, R) rho: logarithms of a law of Y up to a constant; none for posteriors.
    """

    of: CellPart
    simplex: Annotated[IntArray, Shape("cells")]
    first: Annotated[IntArray, Shape("cells")]
    second: Annotated[IntArray, Shape("cells")]
    share: Annotated[FloatArray, Shape("cells")]
    part: Annotated[IntArray, Shape("cells")]
    price: Annotated[FloatArray, Shape("cells")]
    majorant: Annotated[FloatArray, Shape("cells", "P", "D")]
    log_law: Annotated[FloatArray, Shape("cells", "R")]

    def __len__(self) -> int:
        return len(self.simplex)


@dataclass(frozen=True, eq=False)
class RecordKindProof:
    """The proof of an upper bound for all records of one kind.

    Attributes:
        record: one of them.
        bound: the largest bound of the cells that count.
        cells: the tree of cells, None where the bound rests on something else.
        laws: (R, M) laws of Y, in place of cells: for each choice of one class t_a for each letter a there is
            one from which no row W[t_a] diverges by more than the bound. Without cells and laws the entropy
            leaves next to nothing but the uniform dataset.
    """

    record: int
    bound: Annotated[float, INFINITE]
    cells: CellTree | None = None
    laws: Annotated[FloatArray, Shape("R", "M")] | None = None


def is_channel_of(channel: RecordChannel, mechanism: Mechanism) -> bool:
    """Return whether a channel belongs to its query and the given mechanism."""
    try:
        again = record_channel(channel.query, mechanism)
    except InputError:
        return False
    return np.array_equal(again.rows, channel.rows) and np.array_equal(
        again.classes, channel.classes
    )


def leaks_at_least(
    channel: RecordChannel, entropy: float, record: int, joint: FloatArray, value: float
) -> bool:
    """Return whether a joint law meets the entropy bound, up to rounding, and leaks at least a value."""
    if not (
        0 <= record < channel.query.records and math.isfinite(value) and np.isfinite(joint).all()
    ):
        return False
    log_counts = channel.log_counts(record)
    if joint.shape != log_counts.shape:
        return False
    with localcontext() as context:
        context.prec = DECIMAL_DIGITS
        if not has_entropy(joint, log_counts, entropy, channel.query.log_size):
            return False
        leaked = _compute_leakage(
            normalize_decimal_rows(joint.reshape(1, -1))[0], normalize_decimal_rows(channel.rows)
        )
        return leaked >= Decimal(value) - DECIMAL_ATOL


def proves_bound(
    channel: RecordChannel, entropy: float, proofs: Sequence[RecordKindProof], bound: float
) -> bool:
    """Return whether the proofs of all kinds of records confirm an upper bound."""
    # a kind without a proof may leak anything
    if not {proof.record for proof in proofs} >= set(channel.query.kinds):
        return False
    with localcontext() as context:
        context.prec = DECIMAL_DIGITS
        rows = normalize_decimal_rows(channel.rows)
        return all(_is_kind_proved(channel, entropy, kind, bound, rows) for kind in proofs)


def _compute_leakage(joint: Sequence[Decimal], rows: DecimalRows) -> Decimal:
    """Compute I(X_i; Y) of a joint law in decimal arithmetic."""
    # the law is flat, letter after letter: one slice of T entries for each
    width = len(rows)
    parts = [joint[at : at + width] for at in range(0, len(joint), width)]
    whole = [*map(sum_decimals, zip(*parts, strict=True))]
    return sum_decimals(
        negative_entropy(mix_decimal_rows(part, rows)) for part in parts
    ) - negative_entropy(mix_decimal_rows(whole, rows))


def _is_kind_proved(
    channel: RecordChannel, entropy: float, kind: RecordKindProof, bound: float, rows: DecimalRows
) -> bool:
    """Return whether the bound of one kind of record is proved."""
    if not 0 <= kind.record < channel.query.records:
        return False
    log_counts = channel.log_counts(kind.record)
    if len(rows) == 1 or len(log_counts) == 1:
        return bound >= 0
    if kind.cells is not None:
        return is_tree_valid(kind.cells, log_counts, entropy, bound, rows)
    if kind.laws is not None:
        return are_laws_valid(kind.laws, log_counts, bound, rows)
    room = compute_entropy_slack(channel.query.alphabets, entropy)
    return bound_near_uniform(channel.rows, log_counts, room) <= Decimal(bound) + DECIMAL_ATOL


def are_laws_valid(
    laws: FloatArray, log_counts: FloatArray, bound: float, rows: DecimalRows
) -> bool:
    """Return whether each choice of one class per letter has a dual output law that proves the bound.

    By joint convexity a record leaks at most the largest capacity of the channels that the choices make, and
    `C <= max_a D(W[t_a] || r)` for any law r.
    """
    if laws.ndim != 2 or laws.shape[1] != len(rows[0]):
        return False
    if not (np.isfinite(laws).all() and (laws >= 0).all() and laws.any(axis=1).all()):
        return False
    # (K, A): every choice has to be covered by one of the laws
    choices = list_class_choices(log_counts)
    missing = np.ones(len(choices), dtype=bool)
    largest = Decimal(bound) - DECIMAL_ATOL
    for law in normalize_decimal_rows(laws):
        # a law of 0 diverges from any row with mass there: D is infinite
        logs = [mass.ln() if mass else None for mass in law]
        missing &= ~np.array([_compute_divergence(row, logs) <= largest for row in rows])[
            choices
        ].all(axis=1)
    return not missing.any()


def _compute_divergence(row: list[Decimal], logs: list[Decimal | None]) -> Decimal:
    """Compute the divergence `D(W || r)` from the logarithms of r, None for those of 0."""
    if any(x and log is None for x, log in zip(row, logs, strict=True)):
        return Decimal("Infinity")
    return sum_decimals(x * (x.ln() - (log or 0)) for x, log in zip(row, logs, strict=True) if x)


@dataclass(frozen=True)
class _SimplexCorner:
    """A corner of a simplex in exact and decimal form, with its value of phi."""

    exact: tuple[Fraction, ...]
    law: list[Decimal]
    height: Decimal


@dataclass(frozen=True)
class _CellTreeCheck:
    """A cell tree with the data needed to recheck its bounds in decimal arithmetic."""

    tree: CellTree
    counts: list[list[Decimal | None]]
    entropy: Decimal
    rows: DecimalRows

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return the expected (P, D, R): numbers of simplices, corners and entries of rho."""
        return get_cell_shape(self.tree.of, len(self.counts), (len(self.rows), len(self.rows[0])))

    @property
    def is_well_formed(self) -> bool:
        """Return whether all arrays are finite and of consistent shapes, with positive prices."""
        tree = self.tree
        count = len(self.tree)
        lines = tree.simplex, tree.first, tree.second, tree.share, tree.part, tree.price
        return (
            count > 0
            and tree.of in ("posteriors", "laws", "classes")
            and all(array.shape == (count,) for array in lines)
            and tree.majorant.shape == (count, *self.shape[:2])
            and tree.log_law.shape == (count, self.shape[2])
            and all(np.isfinite(array).all() for array in (*lines, tree.majorant, tree.log_law))
            and bool((tree.price[tree.simplex == UNSPLIT_CELL] > 0).all())
        )

    def make_corner(self, exact: tuple[Fraction, ...]) -> _SimplexCorner:
        """Build a corner with its decimal values from exact coordinates."""
        law = [Decimal(x.numerator) / x.denominator for x in exact]
        return _SimplexCorner(
            exact,
            law,
            negative_entropy(
                mix_decimal_rows(law, self.rows) if self.tree.of == "classes" else law
            ),
        )

    def build_root(self) -> tuple[tuple[_SimplexCorner, ...], ...]:
        """Build the root cell that contains all joint laws."""
        count, size, _ = self.shape
        units = tuple(
            self.make_corner(tuple(map(Fraction, row))) for row in np.eye(size, dtype=int).tolist()
        )
        if self.tree.of != "laws" or size != 2:
            return (units,) * count
        cell = []
        for counts in self.counts:
            met = [
                Fraction(row[0]) for row, n in zip(self.rows, counts, strict=True) if n is not None
            ]
            ends = max(met), min(met)
            hull = tuple(self.make_corner((end, 1 - end)) for end in ends)
            cell.append(hull if ends[0] - ends[1] > MIN_HULL_WIDTH else units)
        return tuple(cell)

    def is_proof_of(self, largest: Decimal) -> bool:
        """Return whether the leaves cover all laws, each with a bound at most a number."""
        tree = self.tree
        count, size, _ = self.shape
        waiting = [(0, self.build_root())]
        # each node is visited once: a tree with cycles or orphans fails at the end
        for _ in range(len(tree)):
            if not waiting:
                return False
            place, cell = waiting.pop()
            simplex = int(tree.simplex[place])
            part = int(tree.part[place])
            if simplex == UNSPLIT_CELL:
                if self.compute_bound(place, cell) > largest:
                    return False
                continue
            ends = int(tree.first[place]), int(tree.second[place])
            # floats are exact fractions: parts meet at the same point, without a gap between
            fraction = Fraction(float(tree.share[place]))
            # parts come after the cell itself, so that the walk ends
            known = 0 <= simplex < count and place < part < len(tree) - 1 and 0 <= fraction <= 1
            if not (known and 0 <= min(ends) < max(ends) < size):
                return False
            corners = cell[simplex]
            between = zip(*(corners[end].exact for end in ends), strict=True)
            point = self.make_corner(tuple(fraction * x + (1 - fraction) * y for x, y in between))
            for end in ends:
                moved = (*corners[:end], point, *corners[end + 1 :])
                waiting.append(
                    (part + ends.index(end), (*cell[:simplex], moved, *cell[simplex + 1 :]))
                )
        return not waiting

    def compute_bound(self, place: int, cell: tuple[tuple[_SimplexCorner, ...], ...]) -> Decimal:
        """Compute a leaf's dual bound in decimals, with its majorant shifted to be valid at all corners."""
        tree = self.tree
        price = Decimal(float(self.tree.price[place]))
        slopes = []
        for slope, corners in zip(to_decimal_rows(tree.majorant[place]), cell, strict=True):
            # phi is convex: a linear function above it at the corners is above it on the simplex
            lift = max(corner.height - dot_decimals(slope, corner.law) for corner in corners)
            slopes.append([mu + lift for mu in slope])
        if tree.of == "posteriors":
            # for each letter, over the outputs
            slopes = [list(value) for value in zip(*slopes, strict=True)]
        surprises = [Decimal(0)] * len(self.rows)
        if self.shape[2]:
            law = normalize_log_law(tree.log_law[place])
            surprises = [dot_decimals(row, law) for row in self.rows]
        outer = price + (not self.shape[2])
        sums = []
        for slope, counts in zip(slopes, self.counts, strict=True):
            worths = (
                slope if tree.of == "classes" else [dot_decimals(row, slope) for row in self.rows]
            )
            pairs = [
                (value - surprise) / price
                for value, surprise in zip(worths, surprises, strict=True)
            ]
            terms = [
                count + gain for count, gain in zip(counts, pairs, strict=True) if count is not None
            ]
            # letters that have no dataset in a class contribute nothing to the log-sum
            sums.append(price / outer * log_sum_exp_decimals(terms))
        return outer * log_sum_exp_decimals(sums) - price * self.entropy


def is_tree_valid(
    tree: CellTree, log_counts: FloatArray, entropy: float, bound: float, rows: DecimalRows
) -> bool:
    """Return whether a cell tree covers all joint laws and proves a bound.

    The corners are followed as fractions: that the cells hold every law is exact. The bounds are computed in
    the decimals of the context.
    """
    counts = [
        [Decimal(x) if np.isfinite(x) else None for x in part] for part in log_counts.tolist()
    ]
    cells = _CellTreeCheck(tree, counts, Decimal(entropy), rows)
    return cells.is_well_formed and cells.is_proof_of(Decimal(bound) - DECIMAL_ATOL)
