"""Mixtures of columns by formula under bounds on pairs of letters, by a linear program of the size of a row.

The columns `e^-d[z,x]` with a peak at a letter z are within the bounds, and so is the larger of two of
them, entry by entry, and the smaller of one and `e^d[x,z]` times a number, which has a dent at z. A linear
program of a row for each letter finds the best mechanism of such columns, each on the output where it gains
most. Its prices of rows tell which columns would lower the cost: those in use are raised and lowered at one
letter after another, and come in, round by round. On roads no mixture of peaks has rows that sum to one
without the dents, but for a constant; nor has one of peaks and dents where letters in a plane are near one
another, which is why other columns are taken in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pmlopt.core.lazy_imports import sparse
from pmlopt.core.numbers.arrays import FloatArray, IntArray
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.solvers import highs
from pmlopt.solvers.solver_result import Deadline, MethodOptions
from pmlopt.solvers.structured.dense_simplex import DenseVertex, solve_dense_lp


def choose_search_seconds(program: LinearDesign) -> float:
    """Choose the seconds of a search over the first one: three on 300 letters, twenty on a thousand."""
    values = program.prior.size * program.table.size
    return max(2e-8 * values, min(3.0, 1e-7 * values))


def limit_search(program: LinearDesign) -> MethodOptions:
    """Limit a search that begins now to its seconds."""
    return MethodOptions(Deadline.after(1 + choose_search_seconds(program)), 1e-9)


def find_peak_mixture(
    program: LinearDesign,
    exponents: FloatArray,
    options: MethodOptions,
    others: FloatArray | None = None,
    start: FloatArray | None = None,
) -> FloatArray | None:
    """Find an (N, M) mechanism of columns with few peaks and dents, near the best of all.

    Args:
        program: the design.
        exponents: (N, N) in nats, by which the logarithm of a ratio of two rows is bounded, of shortest ways.
        options: with the deadline.
        others: (N, K) more columns that are within the bounds.
        start: (N, M) a mechanism within the bounds. Its columns are some, too. Where they are as many as
            letters and independent, the search starts from it if it finds nothing from the peaks in half of
            the time: what is found then is at least as good.

    Returns:
        None where none is found in time.
    """
    columns = _list_peak_columns(exponents)
    # the peaks are the first columns after the constant
    bases = [1 + np.arange(len(columns))]
    for more in (others, start):
        if more is not None:
            used = more[:, more.max(axis=0) > 0]
            columns = np.hstack([columns, used / used.max(axis=0)])
            if more is start and used.shape[1] == len(columns):
                bases.append(columns.shape[1] - len(columns) + np.arange(len(columns)))
    pool = _Pool.build(program, columns)
    vertex = None
    for place, basis in enumerate(bases):
        deadline = options.deadline.fraction(1 / (len(bases) - place))
        if vertex is None:
            vertex = solve_dense_lp(columns, pool.costs, basis, deadline)
    weights: FloatArray | None
    if vertex is not None:
        pool, weights = _grow_pool(pool, vertex, exponents, options.deadline)
    else:
        weights = _solve_by_highs(columns, pool.costs, options)
    if weights is None:
        return None
    found = np.zeros(program.table.shape)
    np.add.at(found.T, pool.outputs, (pool.columns * weights).T)
    return found


@dataclass(frozen=True, eq=False)
class _Pool:
    """Columns, each on the output where it costs least.

    Attributes:
        table: (N, M) the costs of entries, such that no column costs more than one in size at first.
        columns: (N, K) within the bounds, of at most one.
        outputs, costs: (K,) of each column.
    """

    table: FloatArray
    columns: FloatArray
    outputs: IntArray
    costs: FloatArray

    @classmethod
    def build(cls, program: LinearDesign, columns: FloatArray) -> _Pool:
        """Build the pool of some columns of a design."""
        table = -program.prior.pmf[:, None] * program.centered_gains
        scale = float(np.abs((columns.T @ table).min(axis=1)).max()) or 1.0
        return cls.place(table / scale, columns)

    @classmethod
    def place(cls, table: FloatArray, columns: FloatArray) -> _Pool:
        """Place each column on the output where it costs least."""
        costs = columns.T @ table
        return cls(table, columns, costs.argmin(axis=1), costs.min(axis=1))

    def __add__(self, other: _Pool) -> _Pool:
        """Join two pools of one table."""
        return _Pool(
            self.table,
            np.hstack([self.columns, other.columns]),
            np.concatenate([self.outputs, other.outputs]),
            np.concatenate([self.costs, other.costs]),
        )


LEAST_SAVING, MAX_COLUMNS = 1e-4, 30
"""Share of the cost over that without privacy which a round of new columns must save for another, and up to
how many columns for each letter there are more rounds."""


def _grow_pool(
    pool: _Pool, vertex: DenseVertex, exponents: FloatArray, deadline: Deadline
) -> tuple[_Pool, FloatArray]:
    """Add columns that the prices of rows call for, until they save little or the time is over.

    Returns:
        The columns, with their (K,) weights.
    """
    free = float(pool.table.min(axis=1).sum())
    while not deadline.expired and len(pool.costs) < MAX_COLUMNS * len(exponents):
        value = float(pool.costs @ vertex.weights)
        added = _improve_columns(pool, vertex, exponents, deadline)
        if added is None:
            break
        grown = pool + added
        better = solve_dense_lp(grown.columns, grown.costs, vertex.basis, deadline)
        saved = -np.inf if better is None else value - float(grown.costs @ better.weights)
        if better is None or saved <= 0:
            break
        pool, vertex = grown, better
        if saved < LEAST_SAVING * (value - free):
            break
    return pool, vertex.weights


CHANGES, NEIGHBORS, MOVES = (1.3, 2.0, 3.0), 30, 6
"""Factors by which an entry is raised or lowered, at how many letters around the peak, and how often."""


def _improve_columns(
    pool: _Pool, vertex: DenseVertex, exponents: FloatArray, deadline: Deadline
) -> _Pool | None:
    """Build columns that cost less than the prices of rows, from those in use; None without any."""
    shares = np.exp(-exponents)
    with np.errstate(over="ignore"):
        rises = np.exp(exponents)
    near = np.argsort(exponents, axis=1)[:, : NEIGHBORS + 1]
    found = []
    for place in vertex.basis[vertex.weights[vertex.basis] > 0]:
        if deadline.expired:
            break
        column, output = pool.columns[:, place], pool.outputs[place]
        costs = pool.table[:, output] - vertex.prices
        least = start = float(costs @ column)
        for _ in range(MOVES):
            letters = near[column.argmax()]
            letters = letters[column[letters] > 0]
            tops = column[letters][:, None]
            moved = np.vstack(
                [np.maximum(column, change * tops * shares[letters]) for change in CHANGES]
                + [np.minimum(column, tops / change * rises[:, letters].T) for change in CHANGES]
            )
            moved /= moved.max(axis=1)[:, None]
            values = moved @ costs
            best = int(values.argmin())
            if values[best] >= least - 1e-12:
                break
            least, column = float(values[best]), moved[best]
        if least < start - 1e-9:
            found.append(column)
    return _Pool.place(pool.table, np.array(found).T) if found else None


def _solve_by_highs(
    columns: FloatArray, costs: FloatArray, options: MethodOptions
) -> FloatArray | None:
    """Find the (K,) weights by HiGHS, where letters so near one another leave the peaks no inverse."""
    if options.deadline.expired:
        return None
    ends = np.ones(len(columns)), np.ones(len(columns))
    model = highs.build_sparse_model(costs, (0.0, np.inf), ends, sparse.csc_array(columns))
    limits = {**highs.METHOD_OPTIONS["highs"], "presolve": "off", **highs.build_options(options)}
    solver = highs.load_model(model, limits)
    solver.run()
    weights = np.maximum(np.array(solver.getSolution().col_value), 0.0)
    if len(weights) != len(costs) or np.abs(columns @ weights - 1).max() > 1e-6:
        return None
    return np.asarray(weights)


def _list_peak_columns(exponents: FloatArray) -> FloatArray:
    """List (N, K) columns: a constant, a peak at each letter, two at neighbours, and peaks with a dent."""
    size = len(exponents)
    peaks = np.exp(-exponents)
    # more neighbours lead to hardly better mechanisms
    count = min(3, size - 1)
    apart = np.where(np.eye(size, dtype=bool), np.inf, exponents)
    near = (
        np.argpartition(apart, count - 1, axis=1)[:, :count] if count else np.zeros((size, 0), int)
    )
    both = np.stack([np.repeat(np.arange(size), count), near.ravel()])
    low, high = np.unique(np.sort(both, axis=0), axis=1)
    twins = np.maximum(peaks[low], peaks[high])
    top, dent = both[:, np.isfinite(exponents[both[0], both[1]])][::-1]
    # at the dent the peak at its neighbour is lowered by as much as it has fallen there
    floors = 2 * exponents[top, dent][:, None] - exponents.T[dent]
    dents = np.exp(-np.maximum(exponents[top], floors))
    return np.hstack([np.ones((size, 1)), peaks.T, twins.T, dents.T])
