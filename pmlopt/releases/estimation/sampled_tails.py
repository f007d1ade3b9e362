"""Guaranteed bounds on what a program leaks, from samples of its outputs at a fixed number of samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.arrays import (
    DefaultLabels,
    FloatArray,
    Label,
    check_in_interval,
    check_integer,
    check_nonnegative,
    check_probability,
    copy_float_array,
    indices_of,
    make_label_key,
)
from pmlopt.core.roots import find_min_integer
from pmlopt.data.labelled import Numbers, read_column, read_labelled_table
from pmlopt.data.prior import Prior, PriorLike, as_prior
from pmlopt.errors import InputError, MechanismError, PrivacyError
from pmlopt.measures.trace_counts import TraceLeakage, leakage_of_counts, read_labelled_numbers
from pmlopt.model.uncertainty.confidence import binomial_intervals
from pmlopt.releases.estimation.intervals import check_confidence, check_counts
from pmlopt.releases.estimation.outcome_limits import find_spending_lower, find_spending_upper


@dataclass(frozen=True, eq=False)
class SampledLeakage:
    """One-sided bounds on what a program leaks, from a sample whose size was fixed before.

    Each bound is wrong with probability `1 - confidence` at most. None is a statement on the leakage of an
    outcome that was not seen: such outcomes count in the tail, by their probability.

    Attributes:
        outcomes: those that were seen.
        counts: (K,) how often.
        lower, upper: (K,) limits of the leakage of each outcome, in nats, on which the bounds rest: at any
            level, all outcomes are on the right side of theirs but with probability `(1 - confidence) / 2`.
        samples: the number of samples.
        confidence: of each bound.
        min_level: a lower bound on the leakage level, in nats.
        max_leakage: what no outcome exceeds, in nats: infinite where the secret's prior is not known.
    """

    outcomes: tuple[Label, ...]
    counts: FloatArray
    lower: FloatArray
    upper: FloatArray
    samples: int
    confidence: float
    min_level: float
    max_leakage: float

    def bound_tail(self, epsilon: float) -> tuple[float, float]:
        """Bound the probability `P(l(Y) > epsilon)` from below and from above.

        Outcomes that leak more are among those whose upper limit is above epsilon, so that they were seen as
        often as all of these at most; the upper bound is Clopper and Pearson's for that number. The lower
        bound is that for the outcomes whose lower limit is above epsilon.

        Args:
            epsilon: a level in nats.

        Returns:
            The two bounds; each is wrong with probability `1 - confidence` at most.

        Raises:
            PrivacyError: the level is negative or no number.

        Source: [clopper1934confidence] for the counts; the limits of the outcomes are pmlopt's, proved in
        docs/theory/programs.md.

        Examples:
            >>> found = leakage_from_samples(counts={"a": 500, "b": 499, "rare": 1})
            >>> lower, upper = found.bound_tail(1.0)
            >>> lower <= 0.001 <= upper < 0.008
            True
        """
        level = check_nonnegative(epsilon, "epsilon", PrivacyError)
        tail = (1 - self.confidence) / 2
        if level >= self.max_leakage:
            return 0.0, 0.0
        seen = np.array([self.counts[ends > level].sum() for ends in (self.lower, self.upper)])
        lower, upper = binomial_intervals(seen, self.samples - seen, tail)
        return float(lower[0]) if seen[0] else 0.0, float(upper[1])

    def bound_quantile(self, delta: float) -> float:
        """Bound the level that is exceeded with probability delta at most, from above.

        The least level at which the upper bound of `bound_tail` is at most delta. It is wrong with
        probability `1 - confidence` at most, although it is looked for: the outcomes that leak as much as the
        true quantile or more decide whether it is.

        Args:
            delta: in (0, 1).

        Returns:
            A level in nats; `max_leakage` where the sample is too small for delta.

        Raises:
            PrivacyError: delta is not in (0, 1).

        Examples:
            >>> found = leakage_from_samples(counts={"a": 500, "b": 500})
            >>> math.log(2) < found.bound_quantile(0.01) < 0.9, found.bound_quantile(0.001)
            (True, inf)
        """
        allowed = check_probability(delta)
        levels = np.unique(self.upper[np.isfinite(self.upper)])
        # the samples whose outcome may leak more than each of the levels
        over = np.array([self.counts[self.upper > level].sum() for level in levels])
        ends = binomial_intervals(over, self.samples - over, (1 - self.confidence) / 2)[1]
        kept = levels[ends <= allowed]
        return float(kept[0]) if len(kept) else self.max_leakage


def leakage_from_samples(
    samples: Any = None,
    *,
    counts: Numbers | None = None,
    prior: PriorLike | None = None,
    confidence: float = 0.95,
    edges: Sequence[float] | int | None = None,
) -> SampledLeakage:
    """Bound what a program leaks, from samples of its outputs.

    Without a prior the program is deterministic, and only its outputs Y are sampled, of secrets drawn from
    their law: `l(y) = -log P(y)`. With a prior it may be randomised, and pairs of a secret and an output are
    sampled: `l(y) = max_x log(P(x | y) / p[x])`, where the secrets of an outcome are draws from P(x | y).
    Outcomes need not be known before. Of a deterministic program one of probability P(y) uses up the error
    `a P(y)` at most; of pairs each that was seen uses up the same part of a, since the secrets are
    independent given the outputs.

    Args:
        samples: the outputs, one for each run, or pairs of a letter and an output: a list, an array, a
            series, or a frame of one or two columns.
        counts: instead of them how often each output was seen; of pairs a table of letters and outputs, as
            `level_from_samples` takes it.
        prior: N letters, from which the secrets of the pairs were drawn.
        confidence: of each bound, in (0, 1).
        edges: for outputs that are numbers: the edges of the cells that an observer can tell apart, fixed
            before the samples are seen (`cut_outputs`); or the number of cells, whose edges are then
            quantiles of the first half of the samples, of which only the second half is counted.

    Raises:
        InputError: samples and counts are both given, or neither; edges are given with counts; or the
            confidence is outside (0, 1).
        MechanismError: there are no samples, a letter is not of the prior, or a count is no whole number.

    Source: docs/theory/programs.md has the proof; [clopper1934confidence].

    Examples:
        >>> found = leakage_from_samples(["fast"] * 60 + ["slow"] * 40)
        >>> found.bound_tail(1.5)[1] < 0.04 < found.bound_tail(0.6)[1]
        True
        >>> pairs = {"x": {"u": 900, "v": 100}, "z": {"u": 100, "v": 900}}
        >>> leakage_from_samples(counts=pairs, prior={"x": 0.5, "z": 0.5}).min_level < math.log(1.8)
        True
    """
    share = check_confidence(confidence)
    if (samples is None) == (counts is None) or (samples is None and edges is not None):
        raise InputError(
            "give samples, with edges or without, or how often each output was seen by counts="
        )
    known = None if prior is None else as_prior(prior)
    count = _read_counts if samples is None else _count_samples
    outcomes, table = count(counts if samples is None else samples, known, edges)
    seen, error = table.sum(axis=1), (1 - share) / 2
    if not seen.sum():
        raise MechanismError("there are no samples: give at least one")
    outcomes = [outcomes[k] for k in np.flatnonzero(seen).tolist()]
    table, seen = table[seen > 0], seen[seen > 0]
    total = np.full(len(seen), seen.sum())
    with np.errstate(divide="ignore"):
        if known is None:
            lower = -np.log(find_spending_upper(seen, float(total[0]), error))
            upper = -np.log(find_spending_lower(seen, total, error))
        else:
            flat, draws = table.ravel(), np.repeat(seen, known.size)
            least = find_spending_lower(flat, draws, error / len(seen)).reshape(table.shape)
            most = binomial_intervals(flat, draws - flat, error / len(seen))[1].reshape(table.shape)
            lower, upper = (np.log(ends / known.pmf).max(axis=1) for ends in (least, most))
    # of K outcomes of a deterministic program one has a probability of 1/K at most
    level = max(lower.max(), 0.0 if known else math.log(len(seen)))
    return SampledLeakage(
        tuple(outcomes), seen, np.maximum(lower, 0.0), np.maximum(upper, 0.0), int(seen.sum()), share,
        float(level), known.max_leakage if known else math.inf,
    )  # fmt: skip


def samples_needed(
    epsilon: float,
    delta: float,
    law: Numbers | TraceLeakage,
    confidence: float = 0.95,
    power: float = 0.95,
) -> int:
    """Compute the sample size that is needed to confirm a tail of a deterministic program.

    A number n at which `leakage_from_samples(...).bound_tail(epsilon)` is at most delta with at least the
    probability `power`, if the outputs have a given law: every outcome that is relied on is seen as often as
    its limit needs, and the others no more often than their quantile. It is the least such n up to the
    unevenness of whole counts.

    Args:
        epsilon: the level, in nats.
        delta: the tail that is to be confirmed, in (0, 1).
        law: the suspected law of the outputs, as `leakage_of_counts` takes it, or what that returns.
        confidence: of the bound.
        power: the probability with which it shall succeed.

    Raises:
        PrivacyError: the law has a larger tail, or too many samples would be needed.
        InputError: the confidence or the power is outside (0, 1).

    Examples:
        >>> samples_needed(1.0, 0.01, [1, 1])  # log(0.025) / log(0.99) is 367.03
        368
    """
    level, allowed = check_nonnegative(epsilon, "epsilon", PrivacyError), check_probability(delta)
    chance = check_in_interval(power, "(0, 1)", "the power", InputError, ", such as 0.95")
    known = law if isinstance(law, TraceLeakage) else leakage_of_counts(law)
    if known.compute_tail(level) > allowed:
        raise PrivacyError(
            f"the law leaks more than {level:g} nats with probability {float(known.compute_tail(level)):g}, "
            f"which is more than {allowed:g}: nothing is to be confirmed"
        )
    from scipy.stats import binom

    error, limit = (1 - check_confidence(confidence)) / 2, math.exp(-level)
    common = [one for one in known.classes if one.probability > limit]
    masses = np.array([float(one.probability) for one in common])
    numbers = np.array([float(one.traces) for one in common])
    risk = (1 - chance) / 2 / max(1.0, numbers.sum())

    def is_enough(samples: int) -> bool:
        """Return whether counts within their quantiles confirm the tail."""
        whole = np.full(len(masses), float(samples))
        relied = find_spending_lower(binom.ppf(risk, samples, masses), whole, error) >= limit
        rest = max(0.0, 1.0 - float((masses * numbers)[relied].sum()))
        missed = binom.isf((1 - chance) / 2, samples, rest) if rest > 1e-15 else 0.0
        ends = binomial_intervals(np.array([missed]), np.array([samples - missed]), error)
        return bool(ends[1][0] <= allowed)

    # a plan of more samples is refused
    if (needed := find_min_integer(is_enough, 10**12)) is None:
        raise PrivacyError(
            "more than 1e12 samples would be needed: the tail or the level is too near to that of the law"
        )
    return needed


def fit_edges(values: ArrayLike, cells: int) -> tuple[float, ...]:
    """Compute the edges of cells that hold the same number of values each, where values do not repeat.

    Args:
        values: (n,) a sample that is not used for anything else.
        cells: how many, at least 1.

    Returns:
        (cells - 1,) inner edges or fewer, distinct and ascending.

    Raises:
        InputError: the values are no numbers, or the number of cells is none.

    Examples:
        >>> fit_edges([1.0, 2.0, 3.0, 4.0], 2)
        (2.5,)
    """
    numbers = copy_float_array(values, 1, "the outputs", InputError)
    count = check_integer(cells, "the number of cells", InputError)
    inner = np.quantile(numbers, np.arange(1, count) / count)
    return tuple(np.unique(inner).tolist())


def cut_outputs(values: ArrayLike, edges: Sequence[float]) -> list[str]:
    """Cut numbers into the cells between edges, `[low, high)`.

    What is computed for cells is about an observer who sees the cell. It is no bound for one who sees the
    number itself, but for the level, which is at least that of the cells (data processing).

    Args:
        values: (n,) numbers.
        edges: ascending and distinct.

    Raises:
        InputError: the values or the edges are no finite numbers, or the edges do not ascend.

    Examples:
        >>> cut_outputs([0.5, 1.0, 7.0], [1.0, 2.0])
        ['[-inf, 1.0)', '[1.0, 2.0)', '[2.0, inf)']
    """
    numbers = copy_float_array(values, 1, "the outputs", InputError)
    inner = copy_float_array(edges, 1, "the edges", InputError) if len(edges) else np.zeros(0)
    if (np.diff(inner) <= 0).any():
        raise InputError(f"the edges {list(edges)} must ascend: give each once, in order")
    ends = [-math.inf, *inner.tolist(), math.inf]
    names = [f"[{low}, {high})" for low, high in pairwise(ends)]
    return [names[place] for place in np.searchsorted(inner, numbers, side="right").tolist()]


def read_samples(
    samples: Any, prior: Prior | None, edges: Sequence[float] | int | None
) -> tuple[list[int], list[Label]]:
    """Read samples as indices of letters, zeros without a prior, and outputs, cut into cells.

    Where cells are fitted to the first half of the samples, the second half is returned.
    """
    drawn = read_column(samples, "the samples", MechanismError)
    rows = [0] * len(drawn)
    if prior is not None:
        wrong = [pair for pair in drawn if not isinstance(pair, tuple | list) or len(pair) != 2]
        if wrong:
            raise MechanismError(
                f"with a prior, samples are pairs of a letter and an output, not {wrong[0]!r}"
            )
        letters, drawn = [pair[0] for pair in drawn], [pair[1] for pair in drawn]
        rows = indices_of(letters, prior.labels, "the letters of the samples", MechanismError)
    if isinstance(edges, int | np.integer):
        fitted = len(drawn) // 2
        if not fitted:
            raise MechanismError("the first half of the samples gives the cells: give at least two")
        edges, rows, drawn = fit_edges(drawn[:fitted], int(edges)), rows[fitted:], drawn[fitted:]
    return rows, drawn if edges is None or not drawn else list(cut_outputs(drawn, edges))


def find_place(places: dict[Any, int], outcome: Any) -> int:
    """Return the index of an outcome among those before it; a new one is added.

    Raises:
        MechanismError: it cannot be the key of a mapping.
    """
    try:
        return places.setdefault(make_label_key(outcome), len(places))
    except TypeError:
        raise MechanismError(
            f"the output {outcome!r} cannot be counted: give text, a number or a tuple of these"
        ) from None


def _count_samples(
    samples: Any, prior: Prior | None, edges: Sequence[float] | int | None
) -> tuple[Sequence[Label], FloatArray]:
    """Count samples: the outcomes, and (K, N) how often each was seen with each letter."""
    rows, outputs = read_samples(samples, prior, edges)
    places: dict[Any, int] = {}
    codes = [find_place(places, outcome) for outcome in outputs]
    table = np.zeros((len(places), 1 if prior is None else prior.size))
    np.add.at(table, (np.array(codes, dtype=int), np.array(rows, dtype=int)), 1.0)
    first = dict(reversed(list(zip(codes, outputs, strict=True))))
    return [first[code] for code in range(len(places))], table


def _read_counts(
    counts: Any, prior: Prior | None, _: Sequence[float] | int | None
) -> tuple[Sequence[Label], FloatArray]:
    """Read counts: the outcomes, and (K, N) how often each was seen with each letter."""
    if prior is None:
        labels, values = read_labelled_numbers(counts, "the counts")
        if not len(values):
            return (), np.zeros((0, 1))
        return labels, check_counts(values, 1)[:, None].astype(float)
    found = read_labelled_table(counts, "the counts", MechanismError, absent=0)
    found = found.reorder_axis(0, prior.labels, MechanismError, absent=0)
    table = check_counts(found.values, 2).T.astype(float)
    return found.axes[1] or DefaultLabels(len(table)), table
