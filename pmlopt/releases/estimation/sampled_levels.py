"""The level of a black box from samples of its output: from both sides, with confidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from pmlopt.core.arrays import FloatArray, Label, Positions, nonnegative, real
from pmlopt.data.mechanism import MechanismLike, paired
from pmlopt.data.prior import Prior, PriorLike, as_prior
from pmlopt.data.tables.labelled import Numbers, table
from pmlopt.errors import InputError, MechanismError, PrivacyError
from pmlopt.model.uncertainty.confidence import binomial_intervals
from pmlopt.releases.estimation.intervals import confidence_of, whole_counts

Measure = Literal["pml", "ldp"]
SampleTable: TypeAlias = Numbers

MOST_PLANNED = 10**15
"""Samples at each letter past which a plan is refused."""

_ROUNDING = 1e-12
"""By this much each end is moved outward, for rounding of the logarithms."""


@dataclass(frozen=True, eq=False)
class SampledLevel:
    """An interval that holds the level of a black box, with confidence.

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
        """Whether the black box leaks more than epsilon: a test whose error is 1 - confidence at most."""
        return self.lower > nonnegative(epsilon, "epsilon", PrivacyError)

    def confirms(self, epsilon: float) -> bool:
        """Whether the black box leaks epsilon at most, with the confidence of the interval."""
        return self.upper <= nonnegative(epsilon, "epsilon", PrivacyError)


def level_from_samples(
    prior: PriorLike, counts: SampleTable, confidence: float = 0.95, measure: Measure = "pml"
) -> SampledLevel:
    """Bound the level of a black box from how often each output was drawn at each letter.

    Simultaneous Clopper-Pearson intervals `l <= P <= u` of all N M entries (each end wrong with probability
    `(1 - confidence) / (2 N M)`) give, for any number of samples,

        level <= max_xy log u[x,y] / (p[x] u[x,y] + sum_{x' != x} p[x'] l[x',y])

    and the same with l and u exchanged from below; for LDP `log u[x,y] / l[x',y]`. Outputs must be fixed
    before the samples are seen: one that is not among them is not bounded, and one that was never drawn
    leaves the upper end at `-log min p`, or infinite for LDP.

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

    Source: [clopper1934confidence]; the bounds follow since each ratio is monotone in every entry.

    Examples:
        >>> found = level_from_samples([0.5, 0.5], [[7500, 2500], [2500, 7500]])
        >>> round(found.lower, 4), round(found.upper, 4)  # the level is log 1.5 = 0.4055
        (0.3907, 0.4197)
        >>> found.refutes(0.3), found.refutes(0.4), found.confirms(0.5)
        (True, False, True)
    """
    known, share = as_prior(prior), confidence_of(confidence)
    _check_measure(measure)
    drawn, outputs = _table(known, counts)
    lower, upper = _entries(drawn.astype(float), share)
    least, most = _ratios(known.pmf, lower, upper, measure), _ratios(known.pmf, upper, lower, measure)
    x, y = np.unravel_index(int(least.argmax()), least.shape)
    return SampledLevel(
        lower=max(0.0, float(least.max()) - _ROUNDING),
        upper=max(0.0, float(most.max())) + _ROUNDING,
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
    """Samples at each letter with which a mechanism is caught that breaks its claim.

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
        225
    """
    known, m = paired(prior, mechanism)
    share, chance = confidence_of(confidence), real(power, "the power", InputError)
    if not 0 < chance < 1:
        raise InputError(f"the power is {chance:g}: give a probability in (0, 1), such as 0.95")
    _check_measure(measure)
    claim = nonnegative(epsilon, "epsilon", PrivacyError)
    with np.errstate(divide="ignore"):
        exact = _ratios(known.pmf, m.matrix[:, m.support], m.matrix[:, m.support], measure)
    x, y = np.unravel_index(int(exact.argmax()), exact.shape)
    if exact[x, y] <= claim:
        raise PrivacyError(
            f"the mechanism leaks {exact[x, y]:.9g} nats and keeps its claim of {claim:g}: nothing is to be "
            "caught; give a lower epsilon"
        )
    column, here = m.matrix[:, m.support][:, y], np.arange(known.size) == x
    end = (1 - share) / (2 * known.size * len(m.outputs))

    def enough(samples: int) -> bool:
        """Whether the lower end is above the claim with counts that are just within their quantiles."""
        from scipy.stats import binom

        tail = (1 - chance) / known.size
        counts = np.where(here, binom.ppf(tail, samples, column), binom.isf(tail, samples, column))
        lower, upper = binomial_intervals(counts, samples - counts, end)
        return bool(_ratios(known.pmf, lower[:, None], upper[:, None], measure)[x, 0] > claim)

    few_samples, many = 0, 1
    while not enough(many):
        few_samples, many = many, 2 * many
        if many > MOST_PLANNED:
            raise PrivacyError(
                f"more than {MOST_PLANNED:.0e} samples would be needed: the claim is too near to the level"
            )
    while many - few_samples > 1:
        middle = (few_samples + many) // 2
        few_samples, many = (few_samples, middle) if enough(middle) else (middle, many)
    return many


def _ratios(p: FloatArray, own: FloatArray, others: FloatArray, measure: Measure) -> FloatArray:
    """(N, M) the level of each letter and output, its own entry from one table and the others' from another.

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


def _entries(counts: FloatArray, confidence: float) -> tuple[FloatArray, FloatArray]:
    """(N, M) the ends of the intervals of all entries, which hold together."""
    rest = counts.sum(axis=1, keepdims=True) - counts
    lower, upper = binomial_intervals(counts.ravel(), rest.ravel(), (1 - confidence) / (2 * counts.size))
    return lower.reshape(counts.shape), upper.reshape(counts.shape)


def _table(prior: Prior, counts: SampleTable) -> tuple[np.ndarray, tuple[Label, ...]]:
    """(N, M) the counts in the order of the prior's letters, and the outputs."""
    found = table(counts, "the counts", MechanismError, absent=0).along(0, prior.labels, MechanismError)
    numbers = whole_counts(found.values, 2)
    empty = np.flatnonzero(numbers.sum(axis=1) == 0)
    if len(empty):
        raise MechanismError(
            f"nothing was drawn at the letter {prior.labels[empty[0]]!r}: draw at each letter of the prior"
        )
    return numbers, found.axes[1] or Positions(numbers.shape[1])


def _check_measure(measure: str) -> None:
    if measure not in get_args(Measure):
        raise InputError(f"the measure {measure!r} is not known: use 'pml' or 'ldp'")
