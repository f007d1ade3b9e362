"""Guaranteed bounds on what a program leaks, from samples of its outputs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import islice, pairwise
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.numbers.arrays import (
    MAX_EXPONENT,
    FloatArray,
    IntArray,
    Label,
    check_in_interval,
    check_integer,
    check_labels_of_size,
    check_nonnegative,
    check_probability,
    copy_float_array,
    indices_of,
    make_label_key,
)
from pmlopt.core.numbers.roots import bisect, find_min_integer
from pmlopt.data.labelled import Numbers, read_column
from pmlopt.data.prior import Prior, PriorLike, as_prior
from pmlopt.errors import InputError, MechanismError, PrivacyError
from pmlopt.measures.trace_counts import TraceLeakage, leakage_of_counts
from pmlopt.releases.estimation.intervals import check_confidence, check_counts
from pmlopt.releases.estimation.outcome_limits import AT_ANY_TIME, AT_SIZE, ShareTests, find_ends

Verdict: TypeAlias = Literal["refuted", "confirmed", "undecided"]


class SampledLeakage:
    """One-sided bounds on what a program leaks, from a sample whose size was fixed before.

    Each bound is wrong with probability `1 - confidence` at most. None is a statement on the leakage of an
    outcome that was not seen: such outcomes count in the tail, by their probability. Without a prior and
    unless the program is deterministic, an outcome may leak nothing, and lower bounds are 0.

    Attributes:
        prior: the N letters, where samples are pairs; else None.
        confidence: of each bound.
        deterministic: whether each secret has one outcome only.
        outcomes: those that were seen, in the order in which they appeared, or all that may occur.
        is_complete: whether no other outcome may occur.
    """

    tests: ClassVar[ShareTests] = AT_SIZE

    def __init__(
        self, prior: PriorLike | None, confidence: float, *, deterministic: bool = False
    ) -> None:
        self.prior = None if prior is None else as_prior(prior)
        if deterministic and self.prior is not None:
            raise InputError(
                "deterministic is for samples of outputs: pairs, with their prior, bound every program"
            )
        self.deterministic = deterministic
        self.confidence = check_confidence(confidence)
        self.outcomes: list[Label] = []
        self.is_complete = False
        self._places: dict[Any, int] = {}
        self._counts = np.zeros((8, 1 if self.prior is None else self.prior.size))

    @property
    def table(self) -> FloatArray:
        """Return how often each outcome was seen with each letter, (K, N); (K, 1) without a prior."""
        return self._counts[: len(self.outcomes)]

    @property
    def samples(self) -> int:
        """Return the number of samples."""
        return int(self.table.sum())

    @property
    def max_leakage(self) -> float:
        """Return what no outcome exceeds, in nats: infinite where the secret's prior is not known."""
        return math.inf if self.prior is None else self.prior.max_leakage

    @property
    def min_level(self) -> float:
        """Return a lower bound on the leakage level, in nats; 0 where outputs alone do not give one."""
        if not self._is_exceeded(0.0):
            return 0.0
        most = min(self.max_leakage, MAX_EXPONENT)
        return -bisect(lambda level: self._is_exceeded(-level), -most, 0.0, 0.0)

    def bound_tail(self, epsilon: float) -> tuple[float, float]:
        """Bound the probability `P(l(Y) > epsilon)` from below and from above.

        Outcomes that leak more are among those that do not surely leak at most epsilon, so that they were
        seen as often as all of these at most; the upper bound is that for this number, and the lower bound
        that for the outcomes that surely leak more.

        Args:
            epsilon: a level in nats.

        Returns:
            The two bounds; each is wrong with probability `1 - confidence` at most.

        Raises:
            PrivacyError: the level is negative or no number.

        Source: [clopper1934confidence] for the counts; the tests of outcomes are pmlopt's, proved in
        docs/theory/leakage.md.

        Examples:
            >>> found = leakage_from_samples(["a", "b", "rare"], times=[500, 499, 1])
            >>> lower, upper = found.bound_tail(1.0)
            >>> lower <= 0.001 <= upper < 0.008
            True
        """
        level = check_nonnegative(epsilon, "epsilon", PrivacyError)
        if level >= self.max_leakage:
            return 0.0, 0.0
        error = (1 - self.confidence) / 2
        leaky, unsafe, _ = self._count_samples(level, error)
        lower, _ = find_ends(self.tests.is_below, leaky, self.samples, error)
        _, upper = find_ends(self.tests.is_below, unsafe, self.samples, error)
        return lower, upper

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
            >>> found = leakage_from_samples(["a", "b"] * 500)
            >>> math.log(2) < found.bound_quantile(0.01) < 0.9, found.bound_quantile(0.001)
            (True, inf)
        """
        allowed = check_probability(delta)
        most = min(self.max_leakage, MAX_EXPONENT)
        if self.decide_claim(most, allowed) != "confirmed":
            return self.max_leakage
        return bisect(
            lambda level: self.decide_claim(level, allowed) == "confirmed", 0.0, most, 0.0
        )

    def decide_claim(self, epsilon: float, delta: float = 0.0) -> Verdict:
        """Decide the claim `P(l(Y) > epsilon) <= delta`; with delta 0 it is on the leakage level.

        Only one of the two verdicts can be wrong, with probability `1 - confidence` at most.

        Args:
            epsilon: a level in nats.
            delta: in [0, 1).

        Raises:
            PrivacyError: the level or delta is out of range.

        Examples:
            >>> found = leakage_from_samples(["fast", "slow"] * 50, deterministic=True)
            >>> found.decide_claim(0.5), found.decide_claim(1.0, 0.1), found.decide_claim(1.0, 0.001)
            ('refuted', 'confirmed', 'undecided')
            >>> leakage_from_samples(["fast", "slow"] * 50).decide_claim(0.5)  # fair coins leak nothing
            'undecided'
        """
        level = check_nonnegative(epsilon, "epsilon", PrivacyError)
        allowed = check_in_interval(delta, "[0, 1)", "delta", PrivacyError)
        if level >= self.max_leakage:
            return "confirmed"
        if allowed == 0:
            refuted = self._is_exceeded(level)
            confirmed = self.is_complete and self._count_samples(level, 1 - self.confidence)[2]
        else:
            n = self.samples
            error = (1 - self.confidence) / 2
            leaky, unsafe, _ = self._count_samples(level, error)
            refuted = bool(self.tests.is_below(n - leaky, n, 1 - allowed, error))
            confirmed = bool(self.tests.is_below(unsafe, n, allowed, error))
        return "refuted" if refuted else "confirmed" if confirmed else "undecided"

    def _is_exceeded(self, level: float) -> bool:
        """Return whether some outcome surely leaks more than a level."""
        seen = int((self.table.sum(axis=1) > 0).sum())
        # of K outcomes of a deterministic program one has a probability of 1/K at most
        many = self.deterministic and seen > 0 and math.log(seen) > level
        return many or self._count_samples(level, 1 - self.confidence)[0] > 0

    def _count_samples(self, level: float, error: float) -> tuple[int, int, bool]:
        """Count samples by what is sure of their outcomes at a level.

        Returns:
            How many have outcomes that surely leak more, how many have others than those that surely do not,
            and whether there are no others.
        """
        table = self.table
        tests = self.tests
        n = self.samples
        if self.prior is None:
            # of many outcomes few are seen differently often
            numbers, times = np.unique(table, return_counts=True)
            limit = math.exp(-level)
            # at most 1 / limit outcomes are as frequent as that; a rare one leaks only if no draw is in it
            rare = tests.is_below(numbers, n, limit, error * limit)
            leaky = rare & self.deterministic
            # P(y | x) <= 1 bounds the leakage by -log P(y), whatever is drawn
            safe = tests.is_above(numbers, n, limit, error)
        else:
            numbers = table.sum(axis=1)
            times = np.ones(len(table), dtype=int)
            draws = numbers[:, None]
            limits = np.exp(level) * self.prior.pmf
            errors = error * self._share_errors()
            possible = limits < 1
            limits = np.where(possible, limits, 0.5)
            leaky = (tests.is_above(table, draws, limits, errors) & possible).any(axis=1)
            safe = (tests.is_below(table, draws, limits, errors) | ~possible).all(axis=1)
        seen = numbers * times
        return int(seen[leaky].sum()), int(seen[~safe].sum()), bool(safe.all())

    def _share_errors(self) -> FloatArray:
        """Return the (K, 1) shares of the error of outcomes of pairs, which sum to one at most."""
        return np.full((len(self.outcomes), 1), 1 / max(1, len(self.outcomes)))

    def _count(self, letters: IntArray, outputs: Sequence[Label], times: Any = 1.0) -> None:
        """Count outputs with the indices of letters."""
        places = []
        for output in outputs:
            try:
                place = self._places.setdefault(make_label_key(output), len(self.outcomes))
            except TypeError:
                raise MechanismError(
                    f"the output {output!r} cannot be counted: give text, a number or a tuple of these"
                ) from None
            if place == len(self.outcomes):
                self.outcomes.append(output)
            places.append(place)
        if (more := len(self.outcomes) - len(self._counts)) > 0:
            self._counts = np.pad(self._counts, ((0, max(more, len(self._counts))), (0, 0)))
        np.add.at(self._counts, (np.array(places, dtype=int), letters), times)


def leakage_from_samples(
    samples: Any,
    *,
    times: ArrayLike | None = None,
    prior: PriorLike | None = None,
    confidence: float = 0.95,
    deterministic: bool = False,
) -> SampledLeakage:
    """Bound what a program leaks, from samples of its outputs.

    Without a prior only its outputs Y are sampled, of secrets drawn from their law: `l(y) <= -log P(y)`, with
    equality for a deterministic program, and samples bound the leakage of any other from above only. With a
    prior pairs of a secret and an output are sampled: `l(y) = max_x log(P(x | y) / p[x])`, where the secrets
    of an outcome are draws from P(x | y).
    Outcomes need not be known before. Of a deterministic program one of probability P(y) uses up the error
    `a P(y)` at most; of pairs each that was seen uses up the same part of a, since the secrets are
    independent given the outputs.

    Args:
        samples: the outputs, one for each run, or pairs of a letter and an output: a list, an array, a
            series, or a frame of one or two columns. Outputs that are numbers are cut into cells before
            (`cut_outputs`).
        times: how often each of them was seen, where they were counted; else once.
        prior: N letters, from which the secrets of the pairs were drawn.
        confidence: of each bound, in (0, 1).
        deterministic: whether the program draws nothing. Outputs do not show it: of a fair coin that leaks
            nothing they are those of a program that leaks log 2.

    Raises:
        InputError: the confidence is outside (0, 1), `times` are not as many as the samples, or the program
            is called deterministic where a prior is given.
        MechanismError: there are no samples, a letter is not of the prior, or a count is no whole number.

    Source: docs/theory/leakage.md has the proof; [clopper1934confidence].

    Examples:
        >>> found = leakage_from_samples(["fast"] * 60 + ["slow"] * 40)
        >>> found.bound_tail(1.5)[1] < 0.04 < found.bound_tail(0.6)[1]
        True
        >>> pairs, times = [("x", "u"), ("x", "v"), ("z", "u"), ("z", "v")], [900, 100, 100, 900]
        >>> found = leakage_from_samples(pairs, times=times, prior={"x": 0.5, "z": 0.5})
        >>> 0.4 < found.min_level < math.log(1.8)
        True
    """
    found = SampledLeakage(prior, confidence, deterministic=deterministic)
    letters, outputs = read_samples(samples, found.prior)
    numbers = np.ones(len(outputs)) if times is None else check_counts(times, 1)
    if len(numbers) != len(outputs):
        raise InputError(f"there are {len(outputs)} samples, and {len(numbers)} numbers of times")
    seen = np.flatnonzero(numbers)
    found._count(letters[seen], [outputs[place] for place in seen.tolist()], numbers[seen])
    if not found.samples:
        raise MechanismError("there are no samples: give at least one")
    return found


class LevelAudit(SampledLeakage):
    """An audit of the claim `P(l(Y) > epsilon) <= delta` that takes samples as they come.

    Whenever it is looked at, and by whatever rule the sampling stops, a verdict is wrong with probability
    `1 - confidence` at most. With delta 0 the claim is on the leakage level: it can be refuted, and confirmed
    only where all outcomes are listed, since no sample bounds the leakage of an outcome that nobody saw.

    Every outcome has a test of its own, a beta-binomial mixture martingale of how often it was seen, or of
    its secrets, whose errors add up to half of `1 - confidence` over all outcomes (by their probabilities; of
    pairs by `1 / (i (i + 1))` in the order in which they appear). The other half is that of a confidence
    sequence for the mass of the outcomes whose test has, or has not, been passed.

    Args:
        epsilon: the level of the claim, in nats.
        delta: the probability with which it may be exceeded, in [0, 1).
        prior: where samples are pairs of a letter and an output: the N letters, as in `leakage_from_samples`;
            without it samples are outputs, which refute a claim on a deterministic program only.
        confidence: in (0, 1).
        outcomes: all that may occur, where they are known.
        deterministic: whether the program draws nothing, as in `leakage_from_samples`.

    Attributes:
        verdict: "refuted", "confirmed" or "undecided".

    Raises:
        PrivacyError: the level or delta is out of range.
        InputError: the confidence is outside (0, 1), or an outcome is listed twice.

    Source: [howard2021time, Section 3.2], [robbins1970statistical]; docs/theory/leakage.md.

    Examples:
        >>> audit = LevelAudit(epsilon=1.0, delta=0.05)
        >>> audit.add_samples(["fast", "slow"] * 20), audit.add_samples(["fast", "slow"] * 100)
        ('undecided', 'confirmed')
        >>> audit = LevelAudit(epsilon=0.5, deterministic=True)
        >>> audit.add_samples(["fast", "slow"])  # two outcomes: one leaks log 2 or more
        'refuted'
    """

    tests = AT_ANY_TIME

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        prior: PriorLike | None = None,
        confidence: float = 0.95,
        outcomes: Sequence[Label] | None = None,
        *,
        deterministic: bool = False,
    ) -> None:
        super().__init__(prior, confidence, deterministic=deterministic)
        self.epsilon = check_nonnegative(epsilon, "epsilon", PrivacyError)
        self.delta = check_in_interval(delta, "[0, 1)", "delta", PrivacyError)
        self.verdict: Verdict = "undecided"
        self.is_complete = outcomes is not None
        known = check_labels_of_size(outcomes or (), None, "the outcomes", InputError)
        self._count(np.zeros(len(known), dtype=int), known, np.zeros(len(known)))

    def add_samples(self, samples: Any) -> Verdict:
        """Add samples, and return the verdict after them; one that was reached stays.

        Args:
            samples: outputs, or pairs of a letter and an output, in any form that `leakage_from_samples`
                takes.

        Raises:
            MechanismError: a letter is not of the prior, or an output is not among the listed outcomes.
        """
        letters, outputs = read_samples(samples, self.prior)
        if self.is_complete:
            indices_of(outputs, self.outcomes, "the outputs of the samples", MechanismError)
        self._count(letters, outputs)
        if self.verdict == "undecided":
            self.verdict = self.decide_claim(self.epsilon, self.delta)
        return self.verdict

    def run(self, samples: Iterable[Any]) -> Verdict:
        """Take samples until the claim is decided or there are no more; return the verdict.

        It is looked at after each sample at first, and then whenever there are 3 in 100 more.

        Examples:
            >>> import itertools
            >>> audit = LevelAudit(epsilon=1.0, delta=0.05)
            >>> audit.run(itertools.cycle(["fast", "slow"])), audit.samples < 300
            ('confirmed', True)
        """
        waiting = iter(samples)
        while self.verdict == "undecided":
            if not (drawn := list(islice(waiting, max(1, self.samples // 32)))):
                break
            self.add_samples(drawn)
        return self.verdict

    def _share_errors(self) -> FloatArray:
        """Return the (K, 1) shares of the error, by the order of outcomes that were not listed before."""
        order = np.arange(1.0, len(self.outcomes) + 1)[:, None]
        return super()._share_errors() if self.is_complete else 1 / (order * (order + 1))


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
    level = check_nonnegative(epsilon, "epsilon", PrivacyError)
    allowed = check_probability(delta)
    chance = check_in_interval(power, "(0, 1)", "the power", InputError, ", such as 0.95")
    known = law if isinstance(law, TraceLeakage) else leakage_of_counts(law)
    if (tail := known.compute_tail(level)) > allowed:
        raise PrivacyError(
            f"the law leaks more than {level:g} nats with probability {float(tail):g}, which is more than "
            f"{allowed:g}: nothing is to be confirmed"
        )
    from scipy.stats import binom

    error = (1 - check_confidence(confidence)) / 2
    limit = math.exp(-level)
    masses = np.array([float(p) for p in known.law.values() if p > limit])
    risk = (1 - chance) / 2 / max(1, len(masses))

    def is_enough(samples: int) -> bool:
        """Return whether counts within their quantiles confirm the tail."""
        relied = AT_SIZE.is_above(binom.ppf(risk, samples, masses), samples, limit, error)
        rest = max(0.0, 1.0 - float(masses[relied].sum()))
        missed = binom.isf((1 - chance) / 2, samples, rest) if rest > 1e-15 else 0.0
        return bool(AT_SIZE.is_below(missed, samples, allowed, error))

    # a plan of more samples is refused
    if (needed := find_min_integer(is_enough, 10**12)) is None:
        raise PrivacyError(
            "more than 1e12 samples would be needed: the tail or the level is too near to that of the law"
        )
    return needed


def cut_outputs(values: ArrayLike, edges: Sequence[float] | int) -> list[str]:
    """Cut numbers into the cells between edges, `[low, high)`.

    What is computed for cells is about an observer who sees the cell. It is no bound for one who sees the
    number itself, but for the level, which is at least that of the cells (data processing).

    Args:
        values: (n,) numbers.
        edges: ascending and distinct, fixed before the values are seen; or the number of cells, whose edges
            are then quantiles of the first half of the values.

    Returns:
        The cell of each value; where the first half of the values gives the edges, those of the second half.

    Raises:
        InputError: the values or the edges are no finite numbers, or the edges do not ascend.

    Examples:
        >>> cut_outputs([0.5, 1.0, 7.0], [1.0, 2.0])
        ['[-inf, 1.0)', '[1.0, 2.0)', '[2.0, inf)']
        >>> cut_outputs([1.0, 2.0, 3.0, 4.0, 2.0, 3.0], 2)  # the median of 1, 2 and 3
        ['[2.0, inf)', '[2.0, inf)', '[2.0, inf)']
    """
    drawn = read_column(values, "the outputs", InputError)
    if isinstance(edges, int | np.integer):
        half = drawn[: len(drawn) // 2]
        drawn = drawn[len(drawn) // 2 :]
        first = copy_float_array(half, 1, "the first half of the outputs", InputError)
        cells = check_integer(edges, "the number of cells", InputError)
        inner = np.unique(np.quantile(first, np.arange(1, cells) / cells))
    else:
        inner = copy_float_array(edges, 1, "the edges", InputError)
    if (np.diff(inner) <= 0).any():
        raise InputError(f"the edges {edges} must ascend: give each once, in order")
    names = [f"[{low}, {high})" for low, high in pairwise([-math.inf, *inner.tolist(), math.inf])]
    numbers = copy_float_array(drawn, 1, "the outputs", InputError)
    return [names[place] for place in np.searchsorted(inner, numbers, side="right").tolist()]


def read_samples(samples: Any, prior: Prior | None) -> tuple[IntArray, list[Any]]:
    """Read samples as indices of letters, zeros without a prior, and outputs."""
    drawn = read_column(samples, "the samples", MechanismError)
    if prior is None:
        return np.zeros(len(drawn), dtype=int), drawn
    wrong = [pair for pair in drawn if not isinstance(pair, tuple | list) or len(pair) != 2]
    if wrong:
        raise MechanismError(
            f"with a prior, samples are pairs of a letter and an output, not {wrong[0]!r}"
        )
    letters = indices_of(
        [pair[0] for pair in drawn], prior.labels, "the letters of the samples", MechanismError
    )
    return np.array(letters, dtype=int), [pair[1] for pair in drawn]
