"""Multipliers of ratio bounds: of all columns by one linear program, and on a line of letters by formula."""

from __future__ import annotations

from typing import Any

import numpy as np

from pmlopt.core.lazy_imports import sparse
from pmlopt.core.numbers.arrays import FloatArray, IntArray, bound_sum_rounding


def compress_rows(rows: FloatArray) -> sparse.csr_array:
    """Return the rows of a matrix without their zeros."""
    row, column = np.nonzero(rows)
    starts = np.append(0, np.cumsum(np.bincount(row, minlength=len(rows))))
    return sparse.csr_array((rows[row, column], column, starts), rows.shape)


def find_row_sizes(rows: sparse.csr_array) -> FloatArray:
    """Find the largest absolute entry of each row."""
    found = np.zeros(rows.shape[0])
    row = np.repeat(np.arange(len(found)), np.diff(rows.indptr))
    np.maximum.at(found, row, np.abs(rows.data))
    return found


def find_joint_multipliers(pairs: Any, p: FloatArray, gains: FloatArray) -> FloatArray | None:
    """Find (K, M) optimal pair multipliers of `max sum_xy p[x] g[x,y] P[x,y]` by one LP.

    `pairs P <= 0`, `sum_y P[x,y] = 1`, `P >= 0`. Next to rare letters these are sharper than multipliers of
    single columns: what HiGHS leaves of a letter counts by its probability there.

    Args:
        pairs: (K, N) sparse, numerators less e^eps times denominators, none of them zero.
        p: (N,) the prior.
        gains: (N, M).

    Returns:
        None where HiGHS has no multipliers.
    """
    from pmlopt.solvers import highs

    k, n = pairs.shape
    m = gains.shape[1]
    unit = find_row_sizes(pairs)
    costs = (p[:, None] * gains).T.ravel()
    scale = float(np.abs(costs).max()) or 1.0
    scaled_pairs = sparse.diags_array(1 / unit) @ pairs
    pair_rows = sparse.kron(sparse.eye_array(m), scaled_pairs)
    sum_rows = sparse.kron(np.ones((1, m)), sparse.eye_array(n))
    system = sparse.vstack([pair_rows, sum_rows])
    lower = np.append(np.full(k * m, -np.inf), np.ones(n))
    upper = np.append(np.zeros(k * m), np.ones(n))
    model = highs.build_sparse_model(-costs / scale, (0.0, np.inf), (lower, upper), system)
    with highs.lend_solver(model, highs.RESTART_OPTIONS) as solver:
        solver.run()
        duals = np.array(solver.getSolution().row_dual)
    if len(duals) != k * m + n or not np.isfinite(duals).all():
        return None
    multipliers = np.maximum(-duals[: k * m], 0.0).reshape(m, k).T
    return np.asarray(multipliers * scale / unit[:, None])


def find_line_weights(
    p: FloatArray, gains: FloatArray, rises: FloatArray, falls: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Find optimal weights of bounds between neighbours on a line, for each column g.

    The largest `<p g, v>` over columns with `<p, v> = 1`, `v[x] <= e^rise v[x+1]` and
    `v[x+1] <= e^fall v[x]` is the least t for which weights of the bounds cover `p (g - t)`. From both ends
    to a center, each letter covers what its outer neighbour leaves: a need d > 0 by the weight d of one
    bound, which adds e^rise d to the need of the next letter; a surplus by that of the other, which takes
    e^-fall of it off. The bounds in use are tight for a column v, whose value is the next t, as in Newton's
    method. The center is the likeliest letter under p v: there roundings at other letters count least. A
    little more is covered than that, so that of the allowance for rounding in a bound a rare letter has
    none to pay.

    Args:
        p: (N,) the prior.
        gains: (N, M) the columns g.
        rises: (N - 1,) exponents of the bounds of a letter by the next one.
        falls: (N - 1,) of the next one by the letter.

    Returns:
        The weights of both kinds of bounds, (N - 1, M) each; None where numbers overflow.
    """
    place = np.arange(len(p))[:, None]
    columns = np.arange(gains.shape[1])
    levels = p @ gains
    centers = gains.argmax(axis=0)
    smallest_step = 1e-15 * float(np.abs(gains).max())
    rise = rises[:, None]
    fall = falls[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(100):
            left, right = _pass_needs_inward(p[:, None] * (gains - levels), rise, fall)
            masses = p[:, None] * _list_tight_columns(left, right, centers, rise, fall)
            reached = (masses * gains).sum(axis=0) / masses.sum(axis=0)
            # letters about as likely as the center are as good
            far = masses.max(axis=0) > 4 * masses[centers, columns]
            if (reached <= levels + smallest_step).all() and not far.any():
                break
            levels = np.fmax(levels, reached)
            centers = np.where(far, masses.argmax(axis=0), centers)
        outside = place[:-1] < centers
        # what a letter left of the center needs, and has too much, is its own; right of it, the next one's
        left_need = np.maximum(left[:-1], 0)
        left_surplus = np.maximum(-left[:-1], 0)
        right_need = np.maximum(right[1:], 0)
        right_surplus = np.maximum(-right[1:], 0)
        rise_weights = np.where(outside, left_need, np.exp(-rise) * right_surplus)
        fall_weights = np.where(outside, np.exp(-fall) * left_surplus, right_need)
    if np.isfinite(rise_weights).all() and np.isfinite(fall_weights).all():
        return rise_weights, fall_weights
    return None


def _pass_needs_inward(
    need: FloatArray, rise: FloatArray, fall: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Pass the needs (N, M) of letters on from either end; return what each letter has to cover then.

    Returns:
        (N, M) with what comes from the left, and with what comes from the right.
    """
    largest = float(max(rise.max(), fall.max()))
    more = bound_sum_rounding(2 * len(rise), 2 + 2 * largest)
    # from the left, and from the right with the letters in reverse
    grown = np.exp(np.stack([rise, fall[::-1]], axis=1))
    relieved = np.exp(np.stack([-fall, -rise[::-1]], axis=1))
    both = np.stack([need, need[::-1]], axis=1)
    for x in range(len(need) - 1):
        outer = both[x]
        outer += more * np.abs(outer)
        passed = np.where(outer > 0, grown[x], relieved[x]) * outer
        both[x + 1] += passed + more * np.abs(passed)
    return both[:, 0], both[::-1, 1]


def _list_tight_columns(
    left: FloatArray, right: FloatArray, centers: IntArray, rise: FloatArray, fall: FloatArray
) -> FloatArray:
    """List the (N, M) columns, of largest entry one, for which the bounds in use are tight."""
    # logarithms of v[x] / v[x+1] left of the center, and of v[x+1] / v[x] right of it, added up
    up = np.zeros_like(left)
    down = np.zeros_like(left)
    left_steps = np.where(left[:-1] > 0, rise, -fall)
    right_steps = np.where(right[1:] > 0, fall, -rise)
    np.cumsum(left_steps, axis=0, out=up[1:])
    np.cumsum(right_steps, axis=0, out=down[1:])
    place = np.arange(len(left))[:, None]
    columns = np.arange(left.shape[1])
    from_left = up[centers, columns] - up
    from_right = down - down[centers, columns]
    shape = np.where(place <= centers, from_left, from_right)
    return np.asarray(np.exp(shape - shape.max(axis=0)))
