"""Confidence bounds on the leakage level of a black-box mechanism from samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, get_args

import numpy as np

from pmlopt.core.lazy_imports import special
from pmlopt.core.numbers.arrays import (
    DefaultLabels,
    FloatArray,
    Label,
    Labels,
    check_in_interval,
    check_nonnegative,
)
from pmlopt.core.numbers.roots import find_min_integer
from pmlopt.data.labelled import Numbers, read_labelled_table
from pmlopt.data.mechanism import MechanismLike, pair_with_prior
from pmlopt.data.prior import Prior, PriorLike, as_prior
from pmlopt.errors import InputError, MechanismError, PrivacyError
from pmlopt.model.uncertainty.confidence import (
    CONFIDENCE_RTOL,
    MAX_BISECTIONS,
    binomial_intervals,
    find_interval_end,
)
from pmlopt.releases.estimation.intervals import check_confidence, check_counts

Measure = Literal["pml", "ldp"]
SampleTable: TypeAlias = Numbers


@dataclass(frozen=True, eq=False)
class SampledLevel:
    """A confidence interval of a black box's leakage level.

    Attributes:
        lower, upper: its ends, in nats; `upper` may be infinite for LDP.
        confidence: with which both ends are right.
        measure: "pml" or "ldp".
        letter, output: where the black box leaks `lower`.
        samples: (N,) how many were drawn at each letter.
    """

    lower: float
    upper: float
    confidence: float
    measure: Measure
    letter: Label
    output: Label
    samples: tuple[int, ...]

    def refutes(self, epsilon: float) -> bool:
        """Return whether the level exceeds epsilon at the interval's confidence."""
        return self.lower > check_nonnegative(epsilon, "epsilon", PrivacyError)

    def confirms(self, epsilon: float) -> bool:
        """Return whether the level is at most epsilon at the interval's confidence."""
        return self.upper <= check_nonnegative(epsilon, "epsilon", PrivacyError)


def level_from_samples(
    prior: PriorLike, counts: SampleTable, confidence: float = 0.95, measure: Measure = "pml"
) -> SampledLevel:
    """Compute confidence bounds on the leakage level from output counts by letter.

    A letter and an output are a cell, whose level `log P[x,y] / sum_x' p[x'] P[x',y]` (for LDP a pair of
    letters and `log P[x,y] / P[x',y]`) is tested by Fisher's combination of the exact binomial tests of its m
    entries: `T_x(q)` is the chance of a count at least as extreme as the one that was seen, upwards for x and
    downwards for the others, if the entry is q, and

        min { level of q : - sum_x log T_x(q[x]) <= c(a) },    c(a) the upper a-quantile of Gamma(m, 1),

    is at most the cell's level with probability 1 - a, for any number of samples; so is the maximum with the
    tests turned round at least it. The lower end is the largest of them at `a = (1 - confidence) / 2 K` over
    the K cells (Bonferroni); the upper end is the largest at `a = (1 - confidence) / 2`, for it is wrong only
    where the cell of the true level is. Outputs must be fixed before the samples are seen: one that is not
    among them is not bounded, and one that was never drawn leaves the upper end at `-log min p`, or infinite
    for LDP.

    Args:
        prior: N letters. LDP does not depend on it.
        counts: a mapping from letter to a mapping from output to count, without a gap in the letters; a frame
            of pandas with the letters in its index and the outputs in its columns, such as a crosstab, or one
            of Polars or Arrow with the letters in its first column; the path of a file of such a table; or
            (N, M) numbers without labels.
        confidence: of both ends together, in (0, 1).
        measure: "pml" or "ldp".

    Raises:
        PriorError: a count is negative or not a whole number.
        MechanismError: there are other letters than the prior's, or one from which nothing was drawn.
        InputError: the confidence is outside (0, 1), or the measure is unknown.

    Source: [fisher1932statistical] for the combination, [berger1982multiparameter] for the upper end (an
    intersection-union test). The sets are convex, since binomial tails are log-concave in q.

    Examples:
        >>> found = level_from_samples([0.5, 0.5], [[7500, 2500], [2500, 7500]])
        >>> round(found.lower, 4), round(found.upper, 4)  # the level is log 1.5 = 0.4055
        (0.3924, 0.416)
        >>> found.refutes(0.3), found.refutes(0.4), found.confirms(0.5)
        (True, False, True)
    """
    known = as_prior(prior)
    share = check_confidence(confidence)
    _check_measure(measure)
    drawn, outputs = _check_table(known, counts)
    test = _CellTest(known.pmf, drawn.astype(float), measure)
    tail = (1 - share) / 2
    lower, x, y = test.find_largest(tail / test.cells, 1)
    upper, _, _ = test.find_largest(tail, -1)
    return SampledLevel(
        lower=max(0.0, lower),
        upper=max(0.0, upper),
        confidence=share,
        measure=measure,
        letter=known.labels[x],
        output=outputs[y],
        samples=tuple(int(n) for n in drawn.sum(axis=1)),
    )


def samples_to_refute(
    prior: PriorLike,
    mechanism: MechanismLike,
    epsilon: float,
    confidence: float = 0.95,
    power: float = 0.95,
    measure: Measure = "pml",
) -> int:
    """Compute the sample size per letter needed to refute a false leakage claim.

    A number n at which `level_from_samples(...).refutes(epsilon)` has at least the probability `power`: with
    that probability the counts of the worst output are within their binomial quantiles at
    `(1 - power) / N`, and with counts that are just within, the lower end is above epsilon. It is the least
    such n up to the unevenness of whole counts.

    Args:
        prior: N letters.
        mechanism: (N, M) the one that shall be caught, of a level above epsilon.
        epsilon: the claim, in nats.
        confidence: of the audit.
        power: the probability with which it shall succeed.
        measure: "pml" or "ldp".

    Raises:
        PrivacyError: the mechanism keeps its claim, or too many samples would be needed.
        InputError: the confidence or the power is outside (0, 1).

    Examples:
        >>> samples_to_refute([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]], 0.2)  # it leaks 0.4055
        176
    """
    # Samples at each letter past which a plan is refused.
    most_planned = 10**15
    known, m = pair_with_prior(prior, mechanism)
    share = check_confidence(confidence)
    chance = check_in_interval(power, "(0, 1)", "the power", InputError, ", such as 0.95")
    _check_measure(measure)
    claim = check_nonnegative(epsilon, "epsilon", PrivacyError)
    matrix = m.matrix[:, m.support]
    with np.errstate(divide="ignore"):
        exact = _compute_ratios(known.pmf, matrix, matrix, measure)
    x, y = np.unravel_index(int(exact.argmax()), exact.shape)
    if exact[x, y] <= claim:
        raise PrivacyError(
            f"the mechanism leaks {exact[x, y]:.9g} nats and keeps its claim of {claim:g}: nothing is to be "
            "caught; give a lower epsilon"
        )
    column = matrix[:, y]
    others = (k for k in range(known.size) if k != x)
    other = min(others, key=lambda k: column[k], default=x)
    cell = np.arange(known.size) if measure == "pml" else np.array([x, other])
    upward = cell == x
    end = (1 - share) / 2 / _count_cells(known.size, len(m.outputs), measure)

    def is_enough(samples: int) -> bool:
        """Return whether the lower end is above the claim with counts that are just within their
        quantiles.
        """
        from scipy.stats import binom

        tail = (1 - chance) / len(cell)
        seen = np.zeros(known.size)
        few = binom.ppf(tail, samples, column[cell])
        many = binom.isf(tail, samples, column[cell])
        seen[cell] = np.where(upward, few, many)
        drawn = np.stack([seen, samples - seen], axis=1)
        test = _CellTest(known.pmf, drawn, measure)
        return test.compute_end(int(x), int(cell[-1]), 0, end, 1) > claim

    if (needed := find_min_integer(is_enough, most_planned)) is None:
        raise PrivacyError(
            f"more than {most_planned:.0e} samples would be needed: the claim is too near to the level"
        )
    return needed


def _compute_ratios(
    p: FloatArray, own: FloatArray, others: FloatArray, measure: Measure
) -> FloatArray:
    """Compute the (N, M) cell levels from separate tables for own and other entries.

    -inf where the own entry is 0, inf where only it is not.
    """
    with np.errstate(divide="ignore"):
        if measure == "pml":
            rest = p @ others - p[:, None] * others
            return np.log(own) - np.log(p[:, None] * own + np.maximum(rest, 0.0))
        least = np.empty_like(others)
        for x in range(len(p)):
            least[x] = np.delete(others, x, axis=0).min(axis=0, initial=np.inf)
        return np.where(own > 0, np.log(own) - np.log(np.where(own > 0, least, 1.0)), -np.inf)


def _count_cells(letters: int, outputs: int, measure: Measure) -> int:
    """Return the number of simultaneously tested cells."""
    return outputs * (letters if measure == "pml" else max(1, letters * (letters - 1)))


class _CellTest:
    """The level bounds of each cell, by Fisher's combination of exact binomial tests.

    An end is 1 for the lower bound (its letter's entry is tested upwards, the others downwards), -1 for the
    upper.
    """

    def __init__(self, p: FloatArray, drawn: FloatArray, measure: Measure) -> None:
        self._p = p
        self._measure = measure
        self._seen = drawn
        self._missed = drawn.sum(axis=1, keepdims=True) - drawn
        self.cells = _count_cells(len(drawn), drawn.shape[1], measure)
        self._entries = min(len(p), 2) if measure == "ldp" else len(p)  # of a cell

    def find_largest(self, tail: float, end: Literal[1, -1]) -> tuple[float, int, int]:
        """Find the largest bound over all cells at a tail probability, and its cell.

        Cells are visited in the order of what their bound cannot exceed, until none can be larger.
        """
        most = self._compute_floors(tail) if end == 1 else self._compute_ceilings(tail)
        found = (-math.inf, 0, 0)
        for place in np.argsort(-most, axis=None):
            other, x, y = (int(k) for k in np.unravel_index(place, most.shape))
            if most[other, x, y] <= found[0]:
                break
            found = max(found, (self.compute_end(x, other, y, tail, end), x, y))
        return found

    @np.errstate(divide="ignore", invalid="ignore")
    def compute_end(self, x: int, other: int, y: int, tail: float, end: Literal[1, -1]) -> float:
        """Compute the bound of one cell at a tail probability.

        The ratio of the entry to the sum of the others is quasilinear and the set convex: its extreme is
        where the slopes of the logarithms of all tails are a multiple mu of those of the ratio, a root.
        """
        letters = np.arange(len(self._p))
        if self._measure == "pml":
            rest = letters[letters != x]
            weights = self._p[rest]
            own_mass = self._p[x]
        else:
            rest = letters[(letters != x) & (letters == other)]
            weights = np.ones(len(rest))
            own_mass = 0.0
        if len(rest) == 0:
            return 0.0
        own = _BinomialTails(self._seen[[x], y], self._missed[[x], y], end == 1)
        others = _BinomialTails(self._seen[rest, y], self._missed[rest, y], end == -1)
        if end == 1 and own.seen[0] == 0:
            return -math.inf
        if end == -1 and not others.seen.any():
            return -math.log(own_mass) if own_mass else math.inf
        budget = self._compute_budget(tail)
        own_span = own.search_span(budget, elastic=True)
        span = others.search_span(budget)
        mine = own_span[0]
        q = span[0]

        def spend_budget(log_mu: float) -> tuple[float, float]:
            """Move the entries to where slopes have a multiple; return what they spend, and its slope."""
            nonlocal mine, q
            q, rates = others.find_by_slope(log_mu + np.log(weights), span, q)
            whole = weights @ q
            own_slope = np.array([log_mu + math.log(whole)])
            mine, rate = own.find_by_slope(own_slope, own_span, mine, elastic=True)
            own_rise = abs(rate[0]) * (1 + weights @ rates / whole) * whole / mine[0]
            rise = weights @ np.abs(rates) + own_rise
            spent = -own.log_tail(mine).sum() - others.log_tail(q).sum()
            return float(spent) - budget, math.exp(log_mu) * float(rise)

        miss = abs(_solve_increasing(spend_budget))
        if miss > 1e-7:  # T is a power of the entry, and any entry has the slope
            left = budget + float(others.log_tail(q).sum())
            mine = own.furthest_probability(math.exp(-max(left, 0.0)))
        level = math.log(mine[0]) - math.log(own_mass * mine[0] + weights @ q)
        return level - end * (CONFIDENCE_RTOL + 10 * min(miss, 1e-7))

    def _compute_budget(self, tail: float) -> float:
        """Compute the upper quantile of a sum of unit exponentials."""
        return float(special.gammainccinv(self._entries, tail))

    def _compute_boxes(self, tail: float) -> tuple[FloatArray, FloatArray]:
        """Compute the (N, M) exact intervals of all entries."""
        lower, upper = binomial_intervals(self._seen.ravel(), self._missed.ravel(), tail)
        return lower.reshape(self._seen.shape), upper.reshape(self._seen.shape)

    def _compute_floors(self, tail: float) -> FloatArray:
        """Compute upper limits of the cells' lower bounds, for pruning."""
        share = self._compute_budget(tail) / self._entries
        own, others = self._compute_boxes(math.exp(-share))
        if self._measure == "pml":
            return _compute_ratios(self._p, own, others, "pml")[None]
        return _log_pairs(own, others)

    def _compute_ceilings(self, tail: float) -> FloatArray:
        """Compute upper limits of the cells' upper bounds, for pruning.

        For LDP the level of the box around the cell's set. For PML the largest ratio over the box and the
        tangents of `log T` at the point that splits the budget evenly, by Dinkelbach's iterations.
        """
        budget = self._compute_budget(tail)
        parts = self._entries
        lowest, highest = self._compute_boxes(math.exp(-budget))
        if self._measure == "ldp":
            return _log_pairs(highest, lowest)
        below, above = self._compute_boxes(math.exp(-budget / parts))
        with np.errstate(divide="ignore", invalid="ignore"):
            rise = np.exp(_BinomialTails(self._seen, self._missed, True).log_slope(below))
            fall = np.exp(_BinomialTails(self._seen, self._missed, False).log_slope(above))
            most = np.where(rise > 0, below + budget / parts / rise, 0.0)
        found = np.full((1, *fall.shape), np.inf)
        for x in range(len(found[0])):
            weights = self._p[:, None].copy()
            weights[x] = 0.0
            slopes = np.where(weights > 0, rise, 0.0)
            ratio = _max_ratio((above[x], fall[x]), (below, slopes), (lowest, most), weights)
            with np.errstate(invalid="ignore"):
                level = np.log(ratio) - np.log1p(self._p[x] * ratio)
            found[0, x] = np.where(np.isfinite(ratio), level, np.inf)
        return found


def _max_ratio(
    own: tuple[FloatArray, FloatArray],
    others: tuple[FloatArray, FloatArray],
    box: tuple[FloatArray, FloatArray],
    weights: FloatArray,
) -> FloatArray:
    """Maximise the (K,) ratio of own entry to weighted sum by Dinkelbach's iterations.

    It is over all others in a box and the own entry that their tangents allow.

    Args:
        own: (K,) the own entry at the point of the tangents, and the slope of its tail.
        others: (m, K) the other entries, and their slopes.
        box: (m, K) the least and largest others.
        weights: (m, K) or (m, 1).
    """
    (mine, fall), (q0, rise) = own, others
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = np.where(weights > 0, rise / fall, 0.0)
        ratio = mine / (weights * q0).sum(axis=0)
        for _ in range(MAX_BISECTIONS):
            q = np.where(rates - ratio * weights > 0, box[1], box[0])
            whole = np.where(fall > 0, mine + (rates * (q - q0)).sum(axis=0), 1.0)
            new = np.clip(whole, 0.0, 1.0) / (weights * q).sum(axis=0)
            better = new > ratio
            if not better.any():
                break
            ratio = np.where(better, new, ratio)
    return np.asarray(ratio)


def _solve_increasing(compute: Callable[[float], tuple[float, float]]) -> float:
    """Find the root of an increasing function of a log-multiplier by Newton's method; return its last value.

    Args:
        compute: from a number to the function's value and derivative there.
    """
    low = -math.inf
    high = math.inf
    at = 0.0
    step = 2.0
    while True:
        value, slope = compute(at)
        low, high = (at, high) if value < 0 else (low, at)
        if abs(value) <= 1e-12 or high - low <= 1e-13:
            return value
        new = at - value / slope if slope > 0 else math.nan
        if not max(low, at - step) < new < min(high, at + step):
            # steps double: the multiple may be off by orders of magnitude from the start
            new = at + math.copysign(step, -value)
            step *= 2
            if not low < new < high:
                new = (low + high) / 2
        at = new


def _log_pairs(own: FloatArray, others: FloatArray) -> FloatArray:
    """Return the (N, N, M) log-entries of letter pairs; -inf on the diagonal."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(own)[None] - np.log(others)[:, None]
    found[np.arange(len(own)), np.arange(len(own))] = -np.inf
    return np.where(own > 0, found, -np.inf)


class _BinomialTails:
    """The binomial tail probabilities T(q) of observed counts as functions of q.

    Upward `P(K >= seen)`, which rises with q, else `P(K <= seen)`, which falls; both are log-concave.
    """

    NEWTON_STEPS: ClassVar[int] = 20
    """Of Newton's method, before an interval is halved."""

    def __init__(self, seen: FloatArray, missed: FloatArray, upward: bool) -> None:
        self.seen = seen
        self.missed = missed
        self.upward = upward
        # a binomial tail is an incomplete beta integral, exact for any counts
        self._tail = special.betainc if upward else special.betaincc
        self._powers = np.maximum(seen - upward, 0), np.maximum(missed - (not upward), 0)
        self._log_scale = special.betaln(self._powers[0] + 1, self._powers[1] + 1)
        self.is_varying = (seen if upward else missed) > 0
        """(m,) where T depends on q."""

    def log_tail(self, q: FloatArray) -> FloatArray:
        """Compute the (m,) log tail probabilities log T(q)."""
        a, b = self._powers
        return np.where(self.is_varying, np.log(self._tail(a + 1, b + 1, q)), 0.0)

    def furthest_probability(self, tail: float) -> FloatArray:
        """Compute the (m,) probabilities q at which T(q) equals `tail`, rounded outward."""
        if tail >= 1:
            return np.full(len(self.seen), float(self.upward))
        return find_interval_end(self.seen, self.missed, tail, is_upper=not self.upward)

    def search_span(self, budget: float, elastic: bool = False) -> tuple[FloatArray, ...]:
        """Return the (m,) search interval of q for a tail budget, and the slopes at its ends."""
        end = self.furthest_probability(math.exp(-budget))
        if self.upward:
            ends = (end, np.ones_like(end))
        else:
            ends = (2.0 ** -(self.NEWTON_STEPS + MAX_BISECTIONS) * end, end)
        return *ends, *(self.log_slope_and_bend(q, elastic)[0] for q in ends)

    def find_by_slope(
        self,
        log_slope: FloatArray,
        span: tuple[FloatArray, ...],
        start: FloatArray,
        elastic: bool = False,
    ) -> tuple[FloatArray, FloatArray]:
        """Find the (m,) q at which the tail's log-slope has a given value, and how it moves with that.

        By Newton's method for the logarithms of the odds, in which the slopes are nearly straight, kept
        within an interval that shrinks; where even an end of the span is not far enough, it is that end.
        """
        # log-concave tails have a monotone slope, so its sign decides which half has the root
        sign = 1.0 if self.upward else -1.0
        least, most, at_least, at_most = span
        low = np.where(sign * (at_most - log_slope) > 0, most, least)
        high = np.where(sign * (at_least - log_slope) <= 0, least, most)
        q = np.clip(start, low, high)
        at_end = (q == low) | (q == high)
        q = np.where(at_end, (low + high) / 2, q)
        for k in range(self.NEWTON_STEPS + MAX_BISECTIONS):
            slope, bend = self.log_slope_and_bend(q, elastic)
            miss = slope - log_slope
            newton_step = -miss / (bend * q * (1 - q))
            odds = np.exp(np.clip(newton_step, -50.0, 50.0))
            new = q * odds / (q * odds + (1 - q))
            enough = 1e-12 * q * (1 - q)
            if ((low == high) | (np.abs(new - q) <= enough)).all():
                break
            # the bracket shrinks at every step, even where Newton's point is outside of it
            onward = sign * miss > 0
            low = np.where(onward, q, low)
            high = np.where(onward, high, q)
            is_inside = (new > low) & (new < high) & (k < self.NEWTON_STEPS)
            new = np.where(is_inside, new, (low + high) / 2)
            if (np.abs(new - q) <= enough).all():
                break
            q = new
        is_between = (q > least) & (q < most)
        return q, np.where(is_between, 1 / bend, 0.0)

    def log_slope(self, q: FloatArray) -> FloatArray:
        """Compute log `|d log_tail T / d q|`: beta density over its tail."""
        a, b = self._powers
        density = special.xlogy(a, q) + special.xlog1py(b, -q) - self._log_scale
        return np.where(self.is_varying, density - self.log_tail(q), -np.inf)

    def log_slope_and_bend(
        self, q: FloatArray, elastic: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """Compute (m,) `log_slope`, by q or by its logarithm, and its derivatives."""
        a, b = self._powers
        slope = self.log_slope(q)
        own = np.exp(slope)
        bend = a / q - b / (1 - q) - (own if self.upward else -own)
        if elastic:
            return slope + np.log(q), bend + 1 / q
        return slope, bend


def _check_table(prior: Prior, counts: SampleTable) -> tuple[np.ndarray, Labels]:
    """Align the (N, M) count table with the prior's letters."""
    found = read_labelled_table(counts, "the counts", MechanismError, absent=0).reorder_axis(
        0, prior.labels, MechanismError
    )
    numbers = check_counts(found.values, 2)
    empty = np.flatnonzero(numbers.sum(axis=1) == 0)
    if len(empty):
        raise MechanismError(
            f"nothing was drawn at the letter {prior.labels[empty[0]]!r}: draw at each letter of the prior"
        )
    return numbers, found.axes[1] or DefaultLabels(numbers.shape[1])


def _check_measure(measure: str) -> None:
    """Raise an error for an unknown leakage measure."""
    if measure not in get_args(Measure):
        raise InputError(f"the measure {measure!r} is not known: use 'pml' or 'ldp'")
