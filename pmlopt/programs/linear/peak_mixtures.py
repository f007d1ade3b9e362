"""Mixtures of columns by formula under bounds on pairs of letters, by a linear program of the size of a row.

The columns `e^-d[z,x]` with a peak at a letter z are within the bounds, and so is the larger of two of them,
entry by entry, and the smaller of one and `e^d[x,z]` times a number, which has a dent at z. A linear program
of a row for each letter finds the best mechanism of such columns, each on the output where it gains most. It
costs about a hundredth more than the best of all where letters are about as far apart as epsilon sees. On
roads no mixture of peaks has rows that sum to one without the dents, but for a constant; nor has one of peaks
and dents where letters in a plane are near one another, which is why other columns are taken in.
"""

from __future__ import annotations

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.core.lazy_imports import sparse
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.solvers import highs
from pmlopt.solvers.solver_result import MethodOptions
from pmlopt.solvers.structured.dense_simplex import solve_dense_lp


def find_peak_mixture(
    program: LinearDesign,
    exponents: FloatArray,
    options: MethodOptions,
    others: FloatArray | None = None,
    start: FloatArray | None = None,
) -> FloatArray | None:
    """Find the (N, M) best mechanism of columns with one peak or two, and a constant.

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
    # (K, M): what each column gains on each output
    gains = (program.prior.pmf[:, None] * columns).T @ program.centered_gains
    outputs = gains.argmax(axis=1)
    best = gains.max(axis=1)
    scale = float(np.abs(best).max()) or 1.0
    weights = None
    for place, basis in enumerate(bases):
        deadline = options.deadline.fraction(1 / (len(bases) - place))
        if weights is None:
            weights = solve_dense_lp(columns, -best / scale, basis, deadline)
    if weights is None:
        weights = _solve_by_highs(columns, -best / scale, options)
    if weights is None:
        return None
    found = np.zeros(program.table.shape)
    np.add.at(found.T, outputs, (columns * weights).T)
    return found


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
