"""Support functions of column constraints, by sorting or nested one-dimensional searches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.lazy_imports import hashlib
from pmlopt.core.numbers.arrays import BoolArray, FloatArray, bound_sum_rounding
from pmlopt.data.prior import find_edges
from pmlopt.solvers.structured.factors import solve_positive

_MAX_ITERATIONS = 200
"""Iterations after which a search ends with its current bound, which is valid; a dozen are usual."""


@dataclass(frozen=True, eq=False)
class ThetaPiece:
    """A convex, piecewise linear function of the multiplier theta.

    `sum_x (a[x] + theta weights[x])^+ + theta (rate - sum(weights))`.

    Computed as `sum_x a[x] + theta rate` plus the negative parts: nothing large cancels at a large theta.

    Attributes:
        weights: (N,), or None for weights so large that no term is negative: `sum_x a[x] + theta rate`.
        rate: a number.
    """

    weights: FloatArray | None
    rate: float

    def evaluate_at(
        self, costs: FloatArray, theta: FloatArray, exp_neg_epsilon: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return (M,) values less theta e^-eps, and (M,) slopes, for each column of costs."""
        # the difference of the coefficients first: at a large theta the products would cancel
        rate = self.rate - exp_neg_epsilon
        values = costs.sum(axis=0) + theta * rate
        if self.weights is None:
            return values, np.full(len(theta), rate)
        # (N, M): a theta for each column of costs
        inner = self.weights[:, None] * theta
        inner += costs
        slopes = rate - self.weights @ (inner < 0)
        # z^+ = z + z^-: the sum of z is in `values`, and a negative z is taken off
        return values - np.minimum(inner, 0.0, out=inner).sum(axis=0), slopes


def max_gain(
    pieces: Sequence[ThetaPiece], p: FloatArray, gains: FloatArray, exp_neg_epsilon: float
) -> float:
    """Compute the support function of PML over a set of priors: the largest gain of an allowed column.

    `max <p g, v>` over g, and over v >= 0 with `<p, v> = 1` and `e^-eps max v <= min_Q <Q, v>`.

    It is the least tau for which `<p (g - tau), v> <= 0` on all such v and for all g, and by duality
    `max_v <a, v> <= min_{theta >= 0} max_i piece_i(a, theta) - theta e^-eps` for v with entries up to one.
    Every tau at which the right side is at most 0 is a bound: nothing rests on how the searches ended.

    Args:
        pieces: convex functions of theta whose largest is `min_Q sum_x (a[x] + theta Q[x])^+`.
        p: (N,).
        gains: (N, M) the columns g.
        exp_neg_epsilon: in (0, 1].

    Examples:
        >>> uniform = (ThetaPiece(np.full(4, 0.25), 1.0),)  # one prior: the mean over the largest half
        >>> round(max_gain(uniform, np.full(4, 0.25), np.array([[4.0], [2.0], [1.0], [0.0]]), 0.5), 9)
        3.0
    """
    # the constant v collects the mean, and no law more than the maximum: they enclose tau
    # e^-eps = 1 makes v constant, so that every column collects its mean
    if exp_neg_epsilon >= 1:
        return float((p @ gains).max())
    # the bound of the same multipliers is asked for by the solver, the certificate and its dual variables
    question = _compute_digest(pieces, p, gains, exp_neg_epsilon)
    found = _KNOWN_GAINS.get(question)
    if found is None:
        if len(_KNOWN_GAINS) >= 64:
            _KNOWN_GAINS.clear()
        found = _KNOWN_GAINS[question] = _find_max_gain(pieces, p, gains, exp_neg_epsilon)
    return found


_KNOWN_GAINS: dict[bytes, float] = {}
"""The last values of `max_gain`, by what they are of."""


def _compute_digest(
    pieces: Sequence[ThetaPiece], p: FloatArray, gains: FloatArray, exp_neg_epsilon: float
) -> bytes:
    """Compute a digest of the arguments of `max_gain`."""
    found = hashlib.blake2b(repr((gains.shape, exp_neg_epsilon)).encode())
    for piece in pieces:
        found.update(repr((piece.rate, piece.weights is None)).encode())
    weights = [piece.weights for piece in pieces if piece.weights is not None]
    for array in (p, gains, *weights):
        found.update(np.ascontiguousarray(array).data)
    return found.digest()


def _find_max_gain(
    pieces: Sequence[ThetaPiece], p: FloatArray, gains: FloatArray, exp_neg_epsilon: float
) -> float:
    """Find the value of `max_gain`."""
    known, columns = float((p @ gains).max()), np.arange(gains.shape[1])
    if pieces[0].weights is not None and np.array_equal(pieces[0].weights, p):
        known, columns = _find_columns_beyond_peaks(pieces, p, gains, exp_neg_epsilon)

    def compute_excess(tau: float, columns: NDArray[np.intp]) -> FloatArray:
        costs = p[:, None] * (gains[:, columns] - tau)
        value, theta = _minimize_pieces(pieces, costs, exp_neg_epsilon)
        # raised by its rounding, so that a tau at which it is not positive is a proof
        return value + _bound_rounding(costs, theta)

    if not columns.size:
        return known
    return _find_largest_root(compute_excess, columns, known, float(gains.max()))


def _find_columns_beyond_peaks(
    pieces: Sequence[ThetaPiece], p: FloatArray, gains: FloatArray, exp_neg_epsilon: float
) -> tuple[float, NDArray[np.intp]]:
    """Find what constants gain and columns that are largest on some mass and zero elsewhere.

    They are those of the first piece, which is of p; their multipliers prove the others for most gains.

    Returns:
        the most that they gain, rounded up, and the numbers of the g for which that is not proved.
    """
    mass = 1 - pieces[0].rate + exp_neg_epsilon
    edges = find_edges(p, gains, mass)  # a mass above 1 is that of constants only
    peaks = np.maximum(edges + p @ np.maximum(gains - edges, 0.0) / mass, p @ gains)
    known = float(peaks.max())
    rounding = _bound_rounding(p[:, None] * (gains - known), np.maximum(known - edges, 0.0))
    known = float((peaks + 1.1 * rounding / mass).max())  # so that rounding cannot undo it
    theta = np.maximum(known - edges, 0.0)
    costs = p[:, None] * (gains - known)
    values = [piece.evaluate_at(costs, theta, exp_neg_epsilon)[0] for piece in pieces]
    return known, np.flatnonzero(np.max(values, axis=0) + _bound_rounding(costs, theta) > 0)


def find_mixture_thetas(
    laws: FloatArray, p: FloatArray, gains: FloatArray, exp_neg_epsilon: float
) -> tuple[FloatArray, FloatArray]:
    """Find the (K, M) optimal multipliers theta for a convex hull of (K, N) laws, and their (M,) bounds.

    Here theta has a coordinate for each law, and minimises
    `sum_x (p (g - tau) + theta laws)^+ - e^-eps theta`; the multipliers of that are a column, and its mean
    the next tau (Dinkelbach's method). Nothing rests on how well: only theta is used, and any would do.
    It takes e^-eps < 1.
    """
    weights = p[:, None]
    low = p @ gains
    high = gains.max(axis=0)
    columns = np.arange(gains.shape[1])
    best = np.zeros((len(laws), len(columns)))
    for _ in range(_MIXTURES):
        gain = gains[:, columns]
        theta, column = _minimize_over_mixtures(
            laws, weights * (gain - low[columns]), exp_neg_epsilon
        )
        # the tau that this theta proves, an upper bound by weak duality
        root = _find_roots(
            _make_excess(laws.T @ theta, theta.sum(axis=0), p, gain, exp_neg_epsilon),
            low[columns],
            high[columns],
        )
        best[:, columns] = np.where(root < high[columns], theta, best[:, columns])
        # every bound that was proved stays valid, so the least counts
        high[columns] = np.minimum(high[columns], root)
        low[columns] = np.maximum(
            low[columns], (weights * gain * column).sum(axis=0) / (p @ column)
        )
        columns = np.flatnonzero(
            (high > low.max()) & (high - low > _SHARP * (np.abs(high) + np.abs(low)))
        )
        if not len(columns):
            break
    return best, high


def find_best_thetas(
    pieces: Sequence[ThetaPiece], p: FloatArray, gains: FloatArray, exp_neg_epsilon: float
) -> FloatArray:
    """Find the (1, M) optimal multipliers theta of `max_gain`."""
    # theta is best at the zero of the dual value, which the search for tau has found
    tau = max_gain(pieces, p, gains, exp_neg_epsilon)
    return _minimize_pieces(pieces, p[:, None] * (gains - tau), exp_neg_epsilon)[1][None, :]


def bound_gain(
    pieces: Sequence[ThetaPiece],
    p: FloatArray,
    gains: FloatArray,
    exp_neg_epsilon: float,
    theta: FloatArray,
) -> float:
    """Compute the upper bound on `max_gain` proved by (1, M) multipliers.

    Examples:
        >>> uniform = (ThetaPiece(np.full(4, 0.25), 1.0),)
        >>> gains = np.array([[4.0], [2.0], [1.0], [0.0]])
        >>> round(bound_gain(uniform, np.full(4, 0.25), gains, 0.5, np.array([[1.0]])), 9)
        3.0
        >>> bound_gain(uniform, np.full(4, 0.25), gains, 0.5, np.array([[0.0]]))  # proves what needs no proof
        4.0
    """
    if exp_neg_epsilon >= 1:
        return float((p @ gains).max())
    # weak duality needs theta >= 0 and nothing more of it
    multipliers = np.maximum(theta[0], 0.0)

    def compute_excess(tau: FloatArray | float, columns: NDArray[np.intp]) -> FloatArray:
        costs = p[:, None] * (gains[:, columns] - tau)
        some = multipliers[columns]
        values = [piece.evaluate_at(costs, some, exp_neg_epsilon)[0] for piece in pieces]
        return np.asarray(np.max(values, axis=0) + _bound_rounding(costs, some))

    # at the bound of the columns that are worst most others are seen to have no larger one
    tops, columns = gains.max(axis=0), np.arange(gains.shape[1])
    bound = float((p @ gains).max())
    while True:
        values = compute_excess(bound, columns)
        is_above = (values > 0) & (tops[columns] > bound)
        if not is_above.any():
            return bound
        falling = np.argsort(-values[is_above])
        some, columns = np.split(columns[is_above][falling], [16])
        low = np.full(len(some), bound)
        bound = float(_find_roots(partial(compute_excess, columns=some), low, tops[some]).max())


def bound_gain_by_mixtures(
    laws: FloatArray, p: FloatArray, gains: FloatArray, exp_neg_epsilon: float, theta: FloatArray
) -> float:
    """Compute the upper bound on the gain proved by (K, M) multipliers of the hull's vertices."""
    # weak duality needs theta >= 0 and nothing more of it
    multipliers = np.maximum(theta, 0.0)
    masses = multipliers.sum(axis=0)
    return bound_gain_by_measures(laws.T @ multipliers, masses, p, gains, exp_neg_epsilon)


def bound_gain_by_measures(
    measures: FloatArray,
    masses: FloatArray,
    p: FloatArray,
    gains: FloatArray,
    exp_neg_epsilon: float,
) -> float:
    """Compute the upper bound on the gain proved by (N, M) measures on the set.

    Args:
        measures: (N, M) the priors of the set, times the masses.
        masses: (M,) at least 0.
        p: (N,) the prior of the design.
        gains: (N, M) the columns g.
        exp_neg_epsilon: in (0, 1].
    """
    if exp_neg_epsilon >= 1:
        return float((p @ gains).max())
    excess = _make_excess(measures, masses, p, gains, exp_neg_epsilon)
    return float(_find_roots(excess, p @ gains, gains.max(axis=0)).max())


def sharpen_measures(
    measures: FloatArray,
    columns: FloatArray,
    p: FloatArray,
    gains: FloatArray,
    exp_neg_epsilon: float,
    find_worst: Callable[[FloatArray], FloatArray],
) -> FloatArray:
    """Find (N, M) measures on a set of priors that together prove about the least gain, from ones near.

    What they prove is the gain of one column, the largest: only such columns are looked at.

    Args:
        measures: (N, M) priors of the set times their masses.
        columns: (N, M) columns that gain about what the measures prove.
        p: (N,) the prior of the design.
        gains: (N, M) the columns g.
        exp_neg_epsilon: in (0, 1].
        find_worst: a prior of the set at which the mean of a column is least.
    """
    if exp_neg_epsilon >= 1:
        return measures
    sharp = measures.copy()
    excess = _make_excess(measures, measures.sum(axis=0), p, gains, exp_neg_epsilon)
    bounds = _find_roots(excess, p @ gains, gains.max(axis=0))
    unseen = np.ones(len(bounds), dtype=bool)
    while unseen[y := int(bounds.argmax())]:
        unseen[y] = False
        bounds[y], sharp[:, y] = _sharpen_measure(
            (float(bounds[y]), sharp[:, y]),
            columns[:, y],
            p,
            gains[:, y],
            exp_neg_epsilon,
            find_worst,
        )
    return sharp


def _sharpen_measure(
    proof: tuple[float, FloatArray],
    column: FloatArray,
    p: FloatArray,
    gains: FloatArray,
    exp_neg_epsilon: float,
    find_worst: Callable[[FloatArray], FloatArray],
) -> tuple[float, FloatArray]:
    """Find the measure of one column, and what it proves, by cutting planes.

    A best mixture of the priors found so far names a column. The next prior is the worst of the column
    halfway between that and the best one that is allowed: near the optimum it cuts off more.
    """
    high, best = proof
    flat = float(p @ gains)
    top = float(gains.max())
    size = top - flat
    low = flat
    allowed = np.ones(len(p))
    laws = [best / best.sum()] if best.any() else []
    for place in range(_MAX_CUTS):
        worst = find_worst(column)
        before = low
        short = exp_neg_epsilon * column.max() - worst @ column
        mean = float(p @ column)
        # mixed with a constant of its mean, whose slack is known, the column is allowed
        share = max(short, 0.0) / (max(short, 0.0) + mean * (1 - exp_neg_epsilon) + _TINY)
        gain = (1 - share) * float(p @ (gains * column)) / (mean + _TINY) + share * flat
        if gain > low:
            low = gain
            allowed = (1 - share) * column / (mean + _TINY) + share
        is_new = not laws or short > 0
        if high - low <= _NEAR * size or (place and not (is_new or low > before)):
            break
        laws += [worst] if is_new else []
        pool = np.array(laws)
        theta, columns = _minimize_over_mixtures(
            pool, p[:, None] * (gains[:, None] - low), exp_neg_epsilon
        )
        named = columns[:, 0]
        measure = pool.T @ theta
        column = (allowed + named / (p @ named)) / 2
        excess = _make_excess(measure, theta.sum(axis=0), p, gains[:, None], exp_neg_epsilon)
        (bound,) = _find_roots(excess, np.array([low]), np.array([top])).tolist()
        if bound < high:
            high = bound
            best = measure[:, 0]
    return high, best


_MAX_CUTS, _NEAR, _TINY = 60, 1e-9, 1e-300
"""Priors that a measure is mixed of at most; how near bounds are together in the end; what is above 0."""

_MIXTURES, _SHARP = 8, 1e-13
"""How often theta follows tau at most, four times are usual; and the relative width at which it ends."""

_SYSTEM = "ix,jx,xy->ijy"
"""The products of all pairs of laws, weighted by each column."""


def _make_excess(
    measures: FloatArray,
    masses: FloatArray,
    p: FloatArray,
    gains: FloatArray,
    exp_neg_epsilon: float,
) -> Callable[[FloatArray], FloatArray]:
    """Return the dual function of measures as a function of the bound tau."""

    def compute_excess(tau: FloatArray) -> FloatArray:
        # (N, M) costs, and the weights of all laws together for the rounding
        costs = p[:, None] * (gains - tau)
        value = np.maximum(costs + measures, 0.0).sum(axis=0) - masses * exp_neg_epsilon
        return np.asarray(value + _bound_rounding(costs, masses))

    return compute_excess


def _minimize_over_mixtures(
    laws: FloatArray, costs: FloatArray, exp_neg_epsilon: float
) -> tuple[FloatArray, FloatArray]:
    """Minimise `sum_x (costs + theta laws)^+ - e^-eps theta` approximately over theta (K, M) >= 0.

    They are the multipliers of `max <costs, v>` over 0 <= v <= 1 with `laws v >= e^-eps`: by a primal-dual
    path from a point inside, for all columns at once, with a step length for each. The v (N, M) come too.
    """
    # in units of the largest cost; a column of zeros must not divide by 0
    units = np.abs(costs).max(axis=0) + np.finfo(float).tiny
    # strictly inside: the entries are equal, so every law has a mean between e^-eps and 1
    v = np.full(costs.shape, (1 + exp_neg_epsilon) / 2)
    rest = np.full(costs.shape, (1 - exp_neg_epsilon) / 2)
    theta = np.ones((len(laws), len(units)))
    spare = (1 - exp_neg_epsilon) / 2 * theta
    reduced = costs / units + laws.T @ theta
    low = np.maximum(-reduced, 0.0) + 1
    high = np.maximum(reduced, 0.0) + 1
    able = np.ones(len(units), dtype=bool)
    path = np.einsum_path(_SYSTEM, laws, laws, v, optimize=True)[0]
    for _ in range(60):
        # the sum of the complementary products is the duality gap
        gap = (low * v + high * rest).sum(axis=0) + (theta * spare).sum(axis=0)
        if not able.any():
            break
        # a tenth of the mean product is aimed at
        target = 0.1 * gap / (2 * len(v) + len(laws))
        # the bounds 0 <= v <= 1 are eliminated: a system with a row for each law remains
        psi = 1 / (low / v + high / rest)
        push = psi * (target / v - target / rest + high - low)
        system = np.einsum(_SYSTEM, laws, laws, psi, optimize=path)
        system[np.diag_indices(len(laws))] += spare / theta
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            dtheta = solve_positive(system, target / theta - spare - laws @ push)
        # a column that converged or has a singular system stays where it is, the others go on
        able = np.isfinite(dtheta).all(axis=0) & (gap > 1e-13)
        dtheta = np.where(able, dtheta, 0.0)
        push = np.where(able, push, 0.0)
        dv = push + psi * (laws.T @ dtheta)
        steps = (
            (v, dv),
            (rest, -dv),
            (spare, laws @ dv),
            (low, (target - low * dv) / v - low),
            (high, (target + high * dv) / rest - high),
            (theta, dtheta),
        )
        # the largest relative decrease among all variables of a column bounds its step length:
        # 0.99 of the way to the boundary
        shortest = np.min([(step / at).min(axis=0) for at, step in steps], axis=0)
        length = -0.99 / np.minimum(shortest, -0.99) * able
        v, rest, spare, low, high, theta = (at + length * step for at, step in steps)
    return theta * units, v


def _find_largest_root(
    function: Callable[[float, NDArray[np.intp]], FloatArray],
    columns: NDArray[np.intp],
    low: float,
    high: float,
) -> float:
    """Find the largest root of decreasing functions, rounded up.

    Columns whose function is not positive at the left end are left out.
    """

    def evaluate_largest(tau: FloatArray) -> FloatArray:
        nonlocal columns
        values = function(float(tau[0]), columns)
        if (values > 0).any():  # no zero further left is looked for
            columns = columns[values > 0]
        return np.asarray(values.max(keepdims=True))

    return float(_find_roots(evaluate_largest, np.array([low]), np.array([high]))[0])


def _bound_rounding(costs: FloatArray, theta: FloatArray) -> FloatArray:
    """Bound the rounding error of a sum of N terms of costs and multiplier."""
    return np.asarray(
        bound_sum_rounding(len(costs), 1.0) / 16 * (np.abs(costs).sum(axis=0) + theta)
    )


def _find_roots(
    function: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray
) -> FloatArray:
    """Find (M,) roots of decreasing functions, rounded up.

    Regula falsi with halved weights, the Illinois method [dowell1971modified]; ends at a relative width of
    1e-15, or where nothing moves.
    """
    # bounds at both ends: a root between them has a sign change
    at_low = function(low)
    at_high = function(high)
    # the function decreases: not positive at the left end means that the zero is not further right
    high = np.where(at_low <= 0, low, high)
    side = np.zeros(len(low))
    size = np.abs(low) + np.abs(high)
    for _ in range(_MAX_ITERATIONS):
        open_ = (high - low > 4e-16 * size) & (at_low > 0) & (at_high < 0)
        if not open_.any():
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            middle = low + (high - low) * at_low / (at_low - at_high)
        # rounding may put the secant's zero outside the interval: it is halved there instead
        middle = np.where(open_ & (middle > low) & (middle < high), middle, (low + high) / 2)
        value = function(middle)
        above = value > 0
        # an end kept twice in a row would stay for long: half its value moves the secant towards it
        at_high = np.where(open_ & above & (side > 0), at_high / 2, at_high)
        at_low = np.where(open_ & ~above & (side < 0), at_low / 2, at_low)
        low = np.where(open_ & above, middle, low)
        at_low = np.where(open_ & above, value, at_low)
        high = np.where(open_ & ~above, middle, high)
        at_high = np.where(open_ & ~above, value, at_high)
        side = np.where(above, 1.0, -1.0)
    # the right end, where the function is not positive: a valid bound however the search ended
    return high


def _minimize_pieces(
    pieces: Sequence[ThetaPiece], costs: FloatArray, exp_neg_epsilon: float
) -> tuple[FloatArray, FloatArray]:
    """Minimise the maximum of pieces less theta e^-eps over theta >= 0."""

    def evaluate_at(theta: FloatArray, columns: BoolArray) -> tuple[FloatArray, FloatArray]:
        some = costs if columns.all() else costs[:, columns]
        values, slopes = zip(
            *(piece.evaluate_at(some, theta, exp_neg_epsilon) for piece in pieces), strict=True
        )
        stacked = np.array(values)
        rates = np.array(slopes)
        largest = stacked.max(axis=0)
        # where pieces tie, the largest slope is the right-hand derivative of their maximum
        return largest, np.where(stacked >= largest, rates, -np.inf).max(axis=0)

    left = np.zeros(costs.shape[1])
    # Q sums to one: `sum_x (a + theta Q)^+ >= sum_x a + theta`, which less theta e^-eps is, from here on,
    # at least the value at theta = 0: by convexity a minimum is not further right
    right = np.maximum(-costs, 0.0).sum(axis=0) / (1 - exp_neg_epsilon) * (1 + 1e-9)
    return minimize_on_intervals(evaluate_at, left, right, np.abs(costs).sum(axis=0))


def minimize_on_intervals(
    at: Callable[[FloatArray, BoolArray], tuple[FloatArray, FloatArray]],
    left: FloatArray,
    right: FloatArray,
    size: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Minimise (M,) convex functions on intervals.

    Cutting planes: the next point is where the lines at both ends cross.

    Args:
        at: the (K,) values and slopes at (K,) points of the functions that an (M,) mask selects.
        left: (M,) one end of each interval.
        right: (M,) the other.
        size: (M,) the unit of the values: 1e-16 of it is not looked for.
    """
    every = np.ones(len(left), dtype=bool)
    (f_left, d_left), (f_right, d_right) = at(left, every), at(right, every)
    best = np.where(f_right < f_left, right, left)
    lowest = np.minimum(f_left, f_right)
    for _ in range(_MAX_ITERATIONS):
        with np.errstate(divide="ignore", invalid="ignore"):
            theta = (f_left - f_right + d_right * right - d_left * left) / (d_right - d_left)
            # convexity: the crossing of the tangents is below the function between both ends
            promised = f_left + d_left * (theta - left)
        open_ = (d_left < 0) & (d_right > 0) & (theta > left) & (theta < right)
        open_ &= lowest - promised > 1e-16 * size
        if not open_.any():
            break
        value, slope = np.zeros((2, len(left)))
        value[open_], slope[open_] = at(theta[open_], open_)
        better = open_ & (value < lowest)
        best = np.where(better, theta, best)
        lowest = np.where(better, value, lowest)
        falls = open_ & (slope < 0)
        rises = open_ & ~falls
        left, f_left, d_left = (np.where(falls, new, old) for new, old in
                                ((theta, left), (value, f_left), (slope, d_left)))  # fmt: skip
        right, f_right, d_right = (np.where(rises, new, old) for new, old in
                                   ((theta, right), (value, f_right), (slope, d_right)))  # fmt: skip
    return lowest, best


def max_gain_ldp(p: FloatArray, gains: FloatArray, exp_neg_epsilon: float) -> float:
    """Compute the largest gain `<p g, v>` over columns that LDP allows.

    The columns have `<p, v> = 1` and `e^-eps max v <= min v`. The extreme ones take two values, and the best
    is high on the k letters of largest gain for some k.

    Args:
        p: (N,).
        gains: (N, M) the columns g.
        exp_neg_epsilon: in [0, 1].

    Examples:
        >>> round(max_gain_ldp(np.full(4, 0.25), np.array([[4.0], [2.0], [1.0], [0.0]]), 0.5), 9)
        2.2
    """
    order = np.negative(gains).argsort(axis=0, kind="stable")
    weights = p[order]
    values = weights * gains[order, np.arange(gains.shape[1])]
    mass = exp_neg_epsilon + (1 - exp_neg_epsilon) * weights.cumsum(axis=0)
    sums = values.cumsum(axis=0)
    total = exp_neg_epsilon * sums[-1] + (1 - exp_neg_epsilon) * sums
    # the mean is the case of k = N: taken directly, it has no rounding of the cumulative sums
    return max(float((total / mass).max()), float((p @ gains).max()))
