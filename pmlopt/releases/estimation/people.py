"""Sample-size planning: the number of people, or level, for a given interval width."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from pmlopt.core.numbers.arrays import (
    FloatArray,
    Label,
    check_integer,
    check_nonnegative,
    check_positive,
)
from pmlopt.core.numbers.roots import bisect, find_min_integer
from pmlopt.data.mechanism import Mechanism, MechanismLike, as_mechanism, pair_with_prior
from pmlopt.data.prior import Prior, PriorLike, as_prior
from pmlopt.errors import InputError, PrivacyError
from pmlopt.measures.estimable import estimable
from pmlopt.model.utility.estimation_error import Workload, build_workload_rows
from pmlopt.releases.estimation.intervals import (
    Intervals,
    check_confidence,
    compute_bernstein_width,
    compute_moments,
    compute_score_ends,
    compute_unbiased_weights,
    normal_quantile,
)
from pmlopt.releases.estimation.tables import format_label

_HALF_WIDTH = "the half-width", InputError


def describe_vague_shares(
    mechanism: Mechanism,
    rows: FloatArray,
    names: Sequence[Label],
    columns: Mapping[str, FloatArray],
    confidence: float,
    intervals: Intervals,
    spread: float = 1.0,
) -> str:
    """Describe shares whose standard errors are above them, with the people that would be needed.

    The people are those of `people_needed` at even frequencies, for intervals of the half-width of an even
    share, or of half the present one where that is less.

    Args:
        mechanism: (N, M).
        rows: (K, N) what is estimated; where they are no sums of frequencies, nothing is described.
        names: of the K rows.
        columns: (K,) the estimates, standard errors and ends of intervals.
        confidence: with which the intervals hold together.
        intervals: their kind.
        spread: how many people of a weighted sample are worth one that is drawn alike.

    Returns:
        A sentence; empty where no share is below its standard error.

    Examples:
        >>> found = {"estimate": [0.7, 0.3], "standard_error": [0.4, 0.4], "lower": [0, 0], "upper": [1, 1]}
        >>> columns = {name: np.array(column) for name, column in found.items()}
        >>> response = Mechanism([[0.52, 0.48], [0.48, 0.52]])
        >>> print(describe_vague_shares(response, np.eye(2), ["no", "yes"], columns, 0.95, "wald"))
        ... # z = 2.2414, and one answer has the variance (1 / 0.08)^2: (2.2414 * 12.5 / 0.25)^2 people
        the standard error of yes is above its share: the estimate itself says nothing. Intervals of plus and
        minus 0.25 take 12,560 people (people-needed --half-width 0.25)
    """
    if rows.min() < -1e-9 or rows.max() > 1 + 1e-9:
        return ""
    half_widths = (columns["upper"] - columns["lower"]) / 2
    # a share that is 0 but for a solver's noise is not vague
    vague = np.flatnonzero((columns["standard_error"] > columns["estimate"]) & (half_widths > 1e-6))
    if not len(vague):
        return ""
    widest = float(half_widths[vague].max())
    even = 1 / rows.shape[1]
    width = float(f"{even if even < widest else widest / 2:.2g}")
    prior = Prior.uniform(rows.shape[1], mechanism.inputs)
    kind = "bernstein" if intervals == "exact" else intervals
    people = math.ceil(spread * people_needed(prior, mechanism, width, confidence, rows, kind))
    labels = [format_label(names[place]) for place in vague.tolist()]
    more = f" and {len(labels) - 3} more" if len(labels) > 3 else ""
    what = f"error of {labels[0]} is above its share: the estimate itself says"
    if len(labels) > 1:
        what = f"errors of {'; '.join(labels[:3])}{more} are above their shares: the estimates themselves say"
    return (
        f"the standard {what} nothing. Intervals of plus and minus {width:g} take "
        f"{people:,} people (people-needed --half-width {width:g})"
    )


def half_width(
    prior: PriorLike,
    mechanism: MechanismLike,
    people: int,
    confidence: float = 0.95,
    workload: Workload = None,
    intervals: Intervals = "score",
) -> float:
    """Compute the largest half-width of confidence intervals for n people.

    It is that of the intervals that `estimate` gives where the outputs have their expected shares: of the
    Wald intervals `z sqrt(max_k V[k,k] / n)`, with the covariance `V = W (J^-1 - p p') W'` of one person at
    the prior and the normal quantile z at `1 - (1 - confidence) / (2 K)`.

    Args:
        prior: N letters, the frequencies that are expected.
        mechanism: (N, M).
        people: n.
        confidence: with which the intervals hold together, in (0, 1).
        workload: as `estimate` takes it.
        intervals: "score", "wald" or "bernstein"; the last with `expected` given to `estimate`.

    Raises:
        MechanismError: the mechanism's rank does not allow what is requested.
        InputError: there are no people, the confidence is outside (0, 1), or the intervals cannot be planned.

    Examples:
        >>> response = [[0.75, 0.25], [0.25, 0.75]]
        >>> round(half_width([0.5, 0.5], response, 1537, workload=[[1, 0]], intervals="wald"), 4)
        0.05
    """
    p, m = pair_with_prior(prior, mechanism)
    count = check_integer(people, "the number of people", InputError)
    return _make_width_function(p, m, confidence, workload, intervals)(count)


def people_needed(
    prior: PriorLike,
    mechanism: MechanismLike,
    half_width: float,
    confidence: float = 0.95,
    workload: Workload = None,
    intervals: Intervals = "score",
) -> int:
    """Compute the least number of people for intervals of a given half-width.

    Of the Wald intervals it is `z^2 max_k V[k,k] / h^2`, rounded up, with the covariance `V = W (J^-1 - p p')
    W'` of one person at the prior and the normal quantile z at `1 - (1 - confidence) / (2 K)`. It is a plan:
    the width of the intervals of the data depends on the data.

    Args:
        prior: N letters, the frequencies that are expected.
        mechanism: (N, M).
        half_width: h, in units of the combinations: of a frequency, 0.01 is one in a hundred.
        confidence: with which the intervals hold together, in (0, 1).
        workload: as `estimate` takes it.
        intervals: those that `estimate` is to give: "score", "wald", or "bernstein", which hold for any
            number of people.

    Raises:
        MechanismError: the mechanism's rank does not allow what is requested.
        InputError: the half-width is not positive, the confidence outside (0, 1), or the intervals cannot be
            planned.

    Examples:
        >>> response = [[0.75, 0.25], [0.25, 0.75]]
        >>> people_needed([0.5, 0.5], response, 0.05, workload=[[1, 0]], intervals="wald")
        1537
        >>> people_needed([0.5, 0.5], response, 0.05, workload=[[1, 0]])  # (1.96 / 0.05)^2 - 1.96^2
        1533
    """
    p, m = pair_with_prior(prior, mechanism)
    widths = _make_width_function(p, m, confidence, workload, intervals)
    width = check_positive(half_width, *_HALF_WIDTH)
    # Of a plan: floats end at 1e308.
    needed = find_min_integer(lambda people: widths(people) <= width, 10**300)
    if needed is None:
        raise InputError(
            f"the half-width {half_width:g} is too small: no number of people is enough"
        )
    return needed


def level_needed(
    prior: PriorLike,
    build: Callable[[float], MechanismLike],
    people: int,
    half_width: float,
    confidence: float = 0.95,
    workload: Workload = None,
    most: float | None = None,
    intervals: Intervals = "score",
) -> tuple[float, Mechanism]:
    """Compute the least leakage level whose mechanism achieves a half-width with n people.

    Found by bisection to a share of 1e-3 of the level; `half_width` of the mechanism that is returned was
    checked. Where it does not fall with the level, there may be a smaller one.

    Args:
        prior: N letters, the frequencies that are expected.
        build: the mechanism for a level in nats, such as
            `lambda e: solve(design(prior, PML(e), EstimationError())).mechanism`.
        people: n.
        half_width: h, as for `people_needed`.
        confidence: with which the intervals hold together, in (0, 1).
        workload: as `estimate` takes it.
        most: the largest level that is tried; left out, `-log min p`, at which PML requires nothing, and
            where that is not enough, as under LDP, up to 64 times as much.
        intervals: as for `people_needed`.

    Returns:
        The level and its mechanism.

    Raises:
        PrivacyError: the mechanism at `most` leaves wider intervals; the message states how many people it
            takes.
        MechanismError: the rank of the mechanism at `most` does not allow what is requested.
        InputError: the half-width is not positive, there are no people, or the confidence is outside (0, 1).

    Examples:
        >>> import math
        >>> def response(level):  # two letters, even prior: 1.96^2 / (4 n (e^level - 1)^2) = h^2
        ...     half = math.exp(level) / 2
        ...     return [[half, 1 - half], [1 - half, half]]
        >>> level, _ = level_needed([0.5, 0.5], response, 1537, 0.05, workload=[[1, 0]], intervals="wald")
        >>> round(level, 2), round(math.log(1.5), 2)
        (0.41, 0.41)
    """
    # How often the level at which PML requires nothing is doubled: LDP requires something at every level.
    doublings = 6
    p = as_prior(prior)
    count = check_integer(people, "the number of people", InputError)
    width = check_positive(half_width, *_HALF_WIDTH)
    highest = p.max_leakage
    if most is not None:
        highest = check_nonnegative(most, "the largest level", PrivacyError)
    combinations = build_workload_rows(workload, p.labels).split()[1]
    share = check_confidence(confidence)
    enough: dict[float, Mechanism] = {}

    def is_narrow(level: float) -> bool:
        mechanism = as_mechanism(build(level))
        possible = estimable(mechanism).includes(combinations).all()
        if (
            possible
            and _make_width_function_of(p, mechanism, share, combinations, intervals)(count)
            <= width
        ):
            enough[level] = mechanism
        return level in enough

    for _ in range(0 if most is not None else doublings):
        if is_narrow(highest):
            break
        highest *= 2
    if not is_narrow(highest):
        needed = people_needed(p, build(highest), width, share, workload, intervals)
        known = "that was given"
        if most is None:
            known = f"that is tried: {2**doublings} times -log min p"
        raise PrivacyError(
            f"at the level {highest:.6g} nats, the largest {known}, a half-width of {width:g} takes {needed} "
            f"people, and there are {count}: give a larger half-width or a lower confidence"
        )
    # Share of the highest level at which a search for the least one begins.
    low = 1e-3 * highest
    # Relative width to which a level is bisected: the half-width then differs by about as much.
    level = low if is_narrow(low) else bisect(is_narrow, low, highest, 1e-3)
    return level, enough[level]


def _make_width_function(
    prior: Prior,
    mechanism: Mechanism,
    confidence: float,
    workload: Workload,
    intervals: Intervals,
) -> Callable[[int], float]:
    """Return the largest interval half-width as a function of the number of people."""
    combinations = build_workload_rows(workload, prior.labels).split()[1]
    estimable(mechanism).check(combinations)
    return _make_width_function_of(
        prior, mechanism, check_confidence(confidence), combinations, intervals
    )


def _make_width_function_of(
    prior: Prior, mechanism: Mechanism, share: float, combinations: FloatArray, intervals: Intervals
) -> Callable[[int], float]:
    """Build the half-width function from validated arguments."""
    if intervals not in ("score", "wald", "bernstein"):
        raise InputError(
            f"the intervals {intervals!r} cannot be planned: use score, wald or bernstein"
        )
    law = prior.pmf @ mechanism.matrix
    count = len(combinations)
    weights = compute_unbiased_weights(mechanism.matrix, combinations, law)
    quantile = normal_quantile(share, count)
    _, variances, skews = compute_moments(weights, law)
    spans = np.ptp(weights[:, mechanism.support], axis=1)

    def compute_half_width(people: int) -> float:
        number = float(people)
        if intervals == "bernstein":
            widths = compute_bernstein_width(variances, spans, number, (1 - share) / count)
        elif intervals == "score":
            ends = compute_score_ends(np.zeros_like(variances), variances, skews, number, quantile)
            widths = np.ptp(ends, axis=1) / 2
        else:
            widths = quantile * np.sqrt(variances / number)
        return float(widths.max())

    return compute_half_width
