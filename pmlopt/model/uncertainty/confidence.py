"""Confidence sets for the true distribution of a sample."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pmlopt.core.lazy_imports import special
from pmlopt.core.numbers.arrays import (
    BoolArray,
    FloatArray,
    Label,
    Labels,
    check_in_interval,
    check_integer,
    check_probability,
    compute_subset_sums,
)
from pmlopt.core.numbers.roots import bisect_intervals
from pmlopt.data.chain import Chain, count_moves, smooth_counts
from pmlopt.data.prior import Prior, PriorLike, as_prior, read_count_table
from pmlopt.errors import PriorError, PrivacyError
from pmlopt.model.uncertainty.boxes import Box
from pmlopt.model.uncertainty.center import Center
from pmlopt.model.uncertainty.l1_ball import L1Ball
from pmlopt.model.uncertainty.likelihood_region import LikelihoodRegion, multinomial_radius
from pmlopt.model.uncertainty.prior_set import PriorSet

CONFIDENCE_RTOL = 1e-9
"""By this share an end of an interval is moved outward, for rounding of the incomplete beta function."""

MAX_BISECTIONS = 64
"""Halvings of the interval of an end: more than a float has digits."""


def binomial_intervals(
    successes: FloatArray, failures: FloatArray, tail: float
) -> tuple[FloatArray, FloatArray]:
    """Compute Clopper-Pearson interval ends, each with error probability `tail`.

    They are rounded outward, and looked for by the binomial's tails: SciPy's inverse of them can be far off
    in large samples.

    Args:
        successes: (K,) how often each event was seen.
        failures: (K,) how often it was not; together at least one trial.
        tail: the probability with which each end may be wrong, in (0, 1).

    Source: [clopper1934confidence].

    Examples:
        >>> lower, upper = binomial_intervals(np.array([5.0]), np.array([5.0]), 0.025)
        >>> lower.round(4), upper.round(4)
        (array([0.1871]), array([0.8129]))
    """
    return (
        find_interval_end(successes, failures, tail, is_upper=False),
        find_interval_end(successes, failures, tail, is_upper=True),
    )


def find_interval_end(
    successes: FloatArray, failures: FloatArray, tail: float, is_upper: bool
) -> FloatArray:
    """Find the lower or the upper ends of `binomial_intervals`.

    SciPy's inverse of the tail is taken where the tails just outside and just inside of it confirm it.

    Examples:
        >>> find_interval_end(np.array([5.0]), np.array([5.0]), 0.025, is_upper=True).round(4)
        array([0.8129])
    """
    # floats: counts beyond 2^63 must not overflow in the sum
    k, rest = successes, failures
    draws = k + rest
    # a wider interval holds the true probability at least as often
    if is_upper:
        # bisection is of logarithms: an end for no successes cannot start at 0
        start = np.maximum(k, 0.5) / draws
        end = _find_ends(
            start,
            np.where(rest > 0, special.betainccinv(k + 1, rest, tail), 1.0),
            1 - np.log(start),
            lambda end: special.betaincc(k + 1, rest, end) <= tail,
        )
        return np.minimum(end * (1 + CONFIDENCE_RTOL), 1.0)
    end = _find_ends(
        k / draws,
        np.where(k > 0, special.betaincinv(k, rest + 1, tail), 0.0),
        np.full(len(k), -750.0),
        lambda end: special.betainc(k, rest + 1, end) <= tail,
    )
    return end * (1 - CONFIDENCE_RTOL)


def _find_ends(
    start: FloatArray,
    guess: FloatArray,
    furthest: FloatArray,
    right: Callable[[FloatArray], BoolArray],
) -> FloatArray:
    """Find (K,) the nearest valid interval ends, by bisection of their logarithms where a guess is wrong.

    Args:
        start: (K,) where the ends are too near.
        guess: (K,) where they may be.
        furthest: (K,) what to add to the logarithms of the starts for ends that are right for sure.
        right: whether each end is.
    """
    is_upper = furthest > 0
    guess = np.where(is_upper, np.maximum(guess, start), np.minimum(guess, start))
    outward = np.where(is_upper, 1e-12, -1e-12)
    outside = np.minimum(guess * (1 + outward), 1.0)
    inside = np.minimum(guess * (1 - outward), 1.0)
    # 0 and 1 are right whatever was seen
    is_whole = outside == np.where(is_upper, 1.0, 0.0)
    if (is_whole | (right(outside) & ~right(inside))).all():
        return np.asarray(outside)

    def move_ends(logs: FloatArray) -> FloatArray:
        return np.minimum(start * np.exp(logs), 1.0)

    return move_ends(
        bisect_intervals(
            lambda logs: ~right(move_ends(logs)), np.zeros(len(start)), furthest, MAX_BISECTIONS
        )[1]
    )


def weissman_radius(samples: int, size: int, delta: float, kappa: float = 0.5) -> float:
    """Compute the l1 distance that the empirical distribution exceeds with probability delta (Weissman).

    `2 sqrt((log(2^N - 2) - log delta) / (m deviation_exponent(kappa)))`, at most 2, with
    `deviation_exponent(t) = log((1 - t) / t) / (1 - 2 t)` and phi(1/2) = 2. Without kappa it holds for every
    distribution: `sqrt(2/m (log(2^N - 2) - log delta))`.

    Args:
        samples: m, independent draws.
        size: N, the number of letters.
        delta: in (0, 1).
        kappa: in (0, 1/2], at least `weissman_kappa` of the true distribution, where that is known.

    Returns:
        A radius in [0, 2]; 0 for one letter, which has one distribution only.

    Raises:
        PrivacyError: samples or size is not a whole number of at least 1, delta is outside (0, 1), or kappa
            outside (0, 1/2].

    Source: [grosse2025empirical, Theorem 2 and eq. (7)] (whose root belongs over the logarithm too);
    Weissman et al., Inequalities for the L1 deviation of the empirical distribution, HPL-2003-97.

    Examples:
        >>> round(weissman_radius(1000, 2, 0.01) ** 2, 12) == round(2 / 1000 * math.log(200), 12)
        True
    """
    draws = check_integer(samples, "the number of samples", PrivacyError)
    letters = check_integer(size, "the size of the alphabet", PrivacyError)
    # a union bound over the 2^N - 2 events, in logarithms: 2^N is no float from N = 1024 on
    terms = log_event_count(letters) - math.log(check_probability(delta))
    return min(2.0, 2 * math.sqrt(max(0.0, terms) / draws / deviation_exponent(kappa)))


def weissman_samples(radius: float, size: int, delta: float, kappa: float = 0.5) -> int:
    """Compute the sample size for which `weissman_radius` is at most a radius.

    `4 (log(2^N - 2) - log delta) / (deviation_exponent(kappa) radius^2)`, rounded up.

    Args:
        radius: in (0, 2].
        size: N, the number of letters.
        delta: in (0, 1).
        kappa: in (0, 1/2], at least `weissman_kappa` of the true distribution, where that is known.

    Raises:
        PrivacyError: an argument is outside its range, or no float number of samples is enough.

    Source: [grosse2025empirical, Theorem 2 and eq. (7)], solved for m.

    Examples:
        >>> weissman_samples(0.1, 20, 1e-5)
        5076
        >>> weissman_radius(5075, 20, 1e-5) > 0.1 >= weissman_radius(5076, 20, 1e-5)
        True
    """
    wanted = check_in_interval(radius, "(0, 2]", "the radius", PrivacyError)
    return find_min_samples(
        wanted / 2,
        size,
        delta,
        kappa,
        lambda samples: weissman_radius(samples, size, delta, kappa) <= wanted,
        f"the radius is {wanted:g}: no sample is large enough: give a larger one",
    )


def weissman_delta(radius: float, samples: int, size: int, kappa: float = 0.5) -> float:
    """Bound the probability that the empirical distribution is further than a radius from the truth.

    At most `(2^N - 2) exp(-m deviation_exponent(kappa) radius^2 / 4)`, and at most one. For more than one
    letter it is at least the smallest normal float, 2.2e-308.

    Args:
        radius: in (0, 2].
        samples: m, independent draws.
        size: N, the number of letters.
        kappa: in (0, 1/2], at least `weissman_kappa` of the true distribution, where that is known.

    Raises:
        PrivacyError: an argument is outside its range.

    Source: [grosse2025empirical, Theorem 2].

    Examples:
        >>> round(weissman_delta(weissman_radius(1000, 5, 0.01), 1000, 5), 12)
        0.01
    """
    return weissman_tail(
        check_in_interval(radius, "(0, 2]", "the radius", PrivacyError) / 2, samples, size, kappa
    )


def weissman_tail(half: float, samples: int, size: int, kappa: float) -> float:
    """Compute the tail bound of `weissman_delta` at half a radius."""
    draws = check_integer(samples, "the number of samples", PrivacyError)
    letters = check_integer(size, "the size of the alphabet", PrivacyError)
    # multiplied in this order: half^2 could underflow where the product does not
    exponent = deviation_exponent(kappa) * (float(draws) * half * half)
    if letters == 1:
        return 0.0
    return max(sys.float_info.min, math.exp(min(0.0, log_event_count(letters) - exponent)))


def find_min_samples(
    half: float, size: int, delta: float, kappa: float, enough: Callable[[int], bool], none: str
) -> int:
    """Find the least sufficient sample size, starting from its asymptotic formula.

    Raises:
        PrivacyError: an argument is outside its range, or, in the words of `none`, no number is enough.
    """
    letters = check_integer(size, "the size of the alphabet", PrivacyError)
    terms = max(0.0, log_event_count(letters) - math.log(check_probability(delta)))
    # two divisions: half^2 may underflow to 0
    needed = terms / deviation_exponent(kappa) / half / half if half > 0 else math.inf
    if not needed < 1e308:
        raise PrivacyError(none)
    # one too few, so that rounding up cannot step over the least number
    samples = max(1, math.ceil(needed) - 1)
    while not enough(samples):
        samples += max(1, samples >> 50)  # rounding is a few units in the last place
    return samples


def deviation_exponent(kappa: float) -> float:
    """Compute the exponent constant `log((1 - k) / k) / (1 - 2 k)` of Weissman's inequality.

    Raises:
        PrivacyError: kappa is outside (0, 1/2].

    Source: [grosse2025empirical, Section II-B].

    Examples:
        >>> deviation_exponent(0.5), round(deviation_exponent(0.25), 12) == round(2 * math.log(3), 12)
        (2.0, True)
    """
    k = check_in_interval(kappa, "(0, 1/2]", "kappa", PrivacyError)
    # at k = 1/2 both log and gap vanish; their quotient has the limit 2
    gap = 1 - 2 * k
    if k < 0.1:
        return (math.log1p(-k) - math.log(k)) / gap
    # log((1 - k) / k) = 2 artanh(1 - 2 k)
    return 2 * math.atanh(gap) / gap if gap > 1e-8 else 2.0


def weissman_kappa(prior: PriorLike) -> float:
    """Compute `max_A min(p(A), 1 - p(A))` over events A, the constant of Weissman's inequality.

    Exact up to 20 letters, and for any number where one letter has half the mass or more; else the upper
    bound 1/2, which is safe in `weissman_radius`. One letter cannot be halved: 0.

    Args:
        prior: N letters.

    Source: [grosse2025empirical, Section II-B].

    Examples:
        >>> weissman_kappa([0.5, 0.3, 0.2]), round(weissman_kappa([0.6, 0.3, 0.1]), 12)
        (0.5, 0.4)
    """
    p = as_prior(prior).pmf
    # an event with a letter of half the mass has at least half: the best is its complement
    largest = int(p.argmax())
    if p[largest] >= 0.5:
        return float(np.delete(p, largest).sum())
    # Letters up to which `weissman_kappa` looks at every event: there are 2^20 of them then.
    if len(p) > 20:
        return 0.5
    # (2^N,): the mass of every event
    masses = compute_subset_sums(p)
    return min(0.5, float(np.minimum(masses, masses.max() - masses).max()))


def confidence_ball(
    counts: Prior | Mapping[Any, int] | Sequence[int], delta: float, kappa: float = 0.5
) -> L1Ball:
    """Build the l1 ball around an empirical distribution that contains the true one except with probability
    delta.

    Args:
        counts: of a sample on letters that were fixed before it, without pseudo-counts: a prior with a sample
            size, a mapping from label to count, or N counts. Letters that were not seen have the count 0; the
            prior of the design can then be any on the same letters.
        delta: in (0, 1), over the sample.
        kappa: in (0, 1/2], at least `weissman_kappa` of the true distribution, where that is known.

    Raises:
        PriorError: the prior has no sample size, a count is negative or not a whole number, or all are 0.
        PrivacyError: delta is outside (0, 1), or kappa outside (0, 1/2].

    Source: [grosse2025empirical, eq. (7)] (`weissman_radius`).

    Examples:
        >>> ball = confidence_ball(Prior.from_counts({"a": 700, "b": 300}), 0.01)
        >>> ball.radius == weissman_radius(1000, 2, 0.01), ball.delta
        (True, 0.01)
        >>> confidence_ball({"a": 700, "b": 300, "unseen": 0}, 0.01).center.counts
        (700, 300, 0)
    """
    center, samples = _read_center(counts)
    return L1Ball(center, weissman_radius(samples, center.size, delta, kappa), delta)


def confidence_box(counts: Prior | Mapping[Any, int] | Sequence[int], delta: float) -> Box:
    """Build Clopper-Pearson intervals that contain every letter's true probability at once, except with
    delta.

    For two letters it is the one exact interval at delta; for N > 2 each has delta / N (Bonferroni). A letter
    that was not seen has the lower bound 0; the prior of the design can then be any on the same letters.

    Args:
        counts: of a sample on letters that were fixed before it, without pseudo-counts: a mapping from label
            to count, N counts (0 for letters that were not seen), or a prior made from counts.
        delta: in (0, 1), over the sample.

    Raises:
        PriorError: the prior was not made from counts, a count is negative or not a whole number, all are
            0, or they are too large for floats.
        PrivacyError: delta is outside (0, 1).

    Source: Clopper and Pearson, Biometrika 26 (1934).

    Examples:
        >>> confidence_box(Prior.from_counts([5, 5]), 0.05).lower.round(4)
        array([0.1871, 0.1871])
        >>> confidence_box({"seen": 10, "unseen": 0}, 0.05).upper.round(4)
        array([1.    , 0.3085])
    """
    labels, seen = _check_counts(counts)
    # with two letters one interval is the mirror image of the other, and delta is used once
    confidence_delta = check_probability(delta)
    size = len(seen)
    if size == 1:
        return Box([1.0], [1.0], confidence_delta, labels)
    lower, upper = _compute_intervals(
        seen, confidence_delta / 2 if size == 2 else confidence_delta / (2 * size)
    )
    return Box(lower, upper, confidence_delta, labels)


def confidence_region(
    counts: Prior | Mapping[Any, int] | Sequence[int], delta: float
) -> LikelihoodRegion:
    """Build the region of priors under which a sample is likely enough to contain the true one except with
    probability delta.

    Args:
        counts: of a sample on letters that were fixed before it, without pseudo-counts: a prior with a sample
            size, a mapping from label to count, or N counts. Letters that were not seen have the count 0; the
            prior of the design can then be any on the same letters.
        delta: in (0, 1), over the sample.

    Raises:
        PriorError: the prior has no sample size, a count is negative or not a whole number, or all are 0.
        PrivacyError: delta is outside (0, 1).

    Source: [agrawal2020finite, Theorem I.2] (`multinomial_radius`).

    Examples:
        >>> region = confidence_region(Prior.from_counts({"a": 700, "b": 300}), 0.01)
        >>> region.radius == multinomial_radius(1000, 2, 0.01), region.delta
        (True, 0.01)
        >>> confidence_region({"a": 700, "b": 300, "unseen": 0}, 0.01).center.counts
        (700, 300, 0)
    """
    center, samples = _read_center(counts)
    return LikelihoodRegion(center, multinomial_radius(samples, center.size, delta), delta)


def _read_center(
    counts: Prior | Mapping[Any, int] | Sequence[int],
) -> tuple[Prior | Center, int]:
    """Return the empirical distribution of a sample, and its size."""
    if isinstance(counts, Prior):
        return counts, _get_sample_size(counts)
    labels, seen = _check_counts(counts)
    center = Prior.from_counts(seen, labels) if all(seen) else Center.of_counts(seen, labels)
    return center, sum(seen)


def confidence_chain(
    sequences: Iterable[Sequence[Label]],
    delta: float,
    smoothing: float = 0.5,
    labels: Iterable[Label] | None = None,
) -> Chain:
    """Build the Markov chain of counted transitions with confidence bounds on its kernel.

    The number of moves from a state depends on where they lead, so that an interval for a fixed number of
    moves would not have its confidence. Those of Clopper and Pearson hold here for every number of moves up
    to the K that are counted in all, each end with `delta / (2 N^2 K)`. The law of the first state is taken
    as known.

    Args:
        sequences: the states of each person, in their order in time, of lengths that were fixed before.
        delta: in (0, 1), over the sequences.
        smoothing: as that of `Chain.from_sequences`.
        labels: the states; without them those that occur, of which the bounds then know that no other does.

    Raises:
        PriorError: as `Chain.from_sequences`.
        PrivacyError: delta is outside (0, 1).

    Source: [clopper1934confidence], and a sum over the numbers of moves.

    Examples:
        >>> chain = confidence_chain([["a", "b"] * 50], 0.05)
        >>> round(float(chain.over[0, 0, 0, 1]), 3)  # (0.05 / (2 * 4 * 99))^(1/50): all fifty moves lead to b
        0.824
    """
    names, firsts, moves = count_moves(sequences, labels)
    initial, kernel = smooth_counts(names, firsts, moves, smoothing)
    # a union bound over two ends, N^2 moves and each number of moves that could have occurred
    tail = check_probability(delta) / (2 * moves.size * max(1.0, moves.sum()))
    # a state that was never left has no trial: its bounds stay 0 and 1
    known = moves.sum(axis=1) > 0
    ends = np.stack([np.zeros(moves.shape), np.ones(moves.shape)])
    rest = moves[known].sum(axis=1, keepdims=True) - moves[known]
    found = binomial_intervals(moves[known].ravel(), rest.ravel(), tail)
    ends[:, known] = np.stack(found).reshape(2, *rest.shape)
    # smoothing may move the kernel outside of an interval, and it must be in its own set
    over = (np.minimum(ends[0], kernel), np.maximum(ends[1], kernel))
    return Chain(initial, kernel, names, over)


def _compute_intervals(counts: tuple[int, ...], tail: float) -> tuple[FloatArray, FloatArray]:
    """Compute (N,) Clopper-Pearson interval ends from counts."""
    draws = sum(counts)
    try:
        float(draws)
        k, rest = np.array([[count, draws - count] for count in counts], dtype=float).T
    except OverflowError:
        raise PriorError(
            "the counts are too large for floats: give whole numbers below 1e308"
        ) from None
    return binomial_intervals(k, rest, tail)


REGIONS: Mapping[str, Callable[[Prior | Mapping[Any, int], float], PriorSet]] = {
    "l1-ball": confidence_ball,
    "clopper-pearson": confidence_box,
    "likelihood": confidence_region,
}
"""The sets that hold the true distribution with confidence, by name."""


def log_event_count(size: int) -> float:
    """Return log(2^N - 2), the log-number of nontrivial events; -inf for one letter.

    Examples:
        >>> log_event_count(2) == math.log(2), round(log_event_count(2000) / math.log(2), 9)
        (True, 2000.0)
    """
    if size == 1:
        return -math.inf
    return size * math.log(2) + math.log1p(-(2.0 ** (1 - size)))


def _check_counts(
    counts: Prior | Mapping[Any, int] | Sequence[int],
) -> tuple[Labels, tuple[int, ...]]:
    """Validate sample counts, and return labels and counts."""
    if isinstance(counts, Prior):
        _get_sample_size(counts)
        if counts.counts is None:
            raise PriorError(
                "the prior has a sample size and no counts: make it by Prior.from_counts or "
                "Prior.from_samples"
            )
        return counts.labels, counts.counts
    labels, seen = read_count_table(counts)
    if not any(seen):
        raise PriorError("the counts are all 0: without a sample nothing is known, take AllPriors")
    return labels, seen


def _get_sample_size(prior: Prior) -> int:
    """Return the sample size of an empirical prior; raise an error for others."""
    if not isinstance(prior, Prior) or prior.samples is None:
        raise PriorError(
            "the prior has no sample size, so nothing is known of its error: make it by Prior.from_counts or "
            "Prior.from_samples, or give the size as Prior(..., samples=m)"
        )
    return prior.samples
