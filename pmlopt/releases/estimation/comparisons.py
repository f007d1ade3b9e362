"""The power of comparisons of two groups by what they release, before anybody releases it."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, TypeAlias, get_args

from pmlopt.core.lazy_imports import special
from pmlopt.core.numbers.argument_checks import check_choice
from pmlopt.core.numbers.arrays import Label, check_integer, indices_of
from pmlopt.core.numbers.roots import bisect, find_min_integer
from pmlopt.data.mechanism import MechanismLike, pair_with_prior
from pmlopt.data.prior import Prior, PriorLike
from pmlopt.errors import InputError
from pmlopt.measures.estimable import estimable
from pmlopt.model.utility import EstimationError
from pmlopt.releases.estimation.intervals import check_confidence, normal_quantile

Scale: TypeAlias = Literal["difference", "odds-ratio"]
"""What is compared: the difference between two shares, or the logarithm of their odds ratio."""


def comparison_power(
    first: PriorLike,
    second: PriorLike,
    mechanism: MechanismLike,
    letter: Label,
    people: int,
    *,
    scale: Scale = "difference",
    share: float = 0.5,
    confidence: float = 0.95,
) -> float:
    """Compute the power of the test that two groups have a letter equally often, from what they release.

    With the shares f and g of the letter and the variances U and V of their efficient estimates from one
    person, the power is `Phi(|d| / s - z)`: of the difference, `d = f - g` and
    `s^2 = U / (r n) + V / ((1 - r) n)`; of the odds ratio, d is that of the logits, and U and V are divided
    by `(f (1 - f))^2` and `(g (1 - g))^2`. The other side of the test is left out.

    Args:
        first: N letters, the frequencies in one group.
        second: those in the other.
        mechanism: (N, M), of both groups.
        letter: that is compared.
        people: n, of both groups together.
        scale: "difference" or "odds-ratio".
        share: r, of the people in the first group, in (0, 1).
        confidence: one less the level of the two-sided test.

    Raises:
        InputError: an argument is not as above, or the letter has the share 0 or 1 in a group.
        MechanismError: the mechanism's rank does not allow the estimate.

    Examples:
        >>> response = [[0.75, 0.25], [0.25, 0.75]]
        >>> round(comparison_power([0.7, 0.3], [0.6, 0.4], response, 1, 3000), 3)  # 0.1 / 0.0361 - 1.96
        0.792
    """
    count = check_integer(people, "the number of people", InputError)
    one = _read_group(first, mechanism, letter)
    other = _read_group(second, mechanism, letter)
    return _compute_power(one, other, count, scale, share, check_confidence(confidence))


def people_to_compare(
    first: PriorLike,
    second: PriorLike,
    mechanism: MechanismLike,
    letter: Label,
    *,
    power: float = 0.8,
    scale: Scale = "difference",
    share: float = 0.5,
    confidence: float = 0.95,
) -> int:
    """Compute the least number of people with whom a difference between two groups is found.

    Args:
        first: N letters, the frequencies in one group.
        second: those in the other.
        mechanism: (N, M), of both groups.
        letter: that is compared.
        power: with which it is found.
        scale: as for `comparison_power`.
        share: as there.
        confidence: as there.

    Raises:
        InputError: the groups do not differ, or an argument is not as above.
        MechanismError: the mechanism's rank does not allow the estimate.

    Examples:
        >>> response = [[0.75, 0.25], [0.25, 0.75]]
        >>> people_to_compare([0.7, 0.3], [0.6, 0.4], response, 1)  # ((1.960 + 0.842) / 0.1)^2 3.9
        3062
    """
    wanted = check_confidence(power)
    held = check_confidence(confidence)
    one = _read_group(first, mechanism, letter)
    other = _read_group(second, mechanism, letter)
    needed = None
    if one.share != other.share:
        needed = find_min_integer(
            lambda people: _compute_power(one, other, people, scale, share, held) >= wanted, 10**300
        )
    if needed is None:
        raise InputError(
            f"{letter!r} is as frequent in both groups: no number of people finds a difference"
        )
    return needed


class Detectable(NamedTuple):
    """The least difference between two groups that is found.

    Attributes:
        first: the share in the first group.
        second: the share in the second, nearer to one half.
        odds_ratio: of the second to the first.
    """

    first: float
    second: float
    odds_ratio: float


def detectable_difference(
    prior: PriorLike,
    mechanism: MechanismLike,
    letter: Label,
    people: int,
    *,
    power: float = 0.8,
    confidence: float = 0.95,
) -> Detectable | None:
    """Compute the least difference between two halves of the people that is found; None where none is.

    One half has the letter with the share of the prior; the other has it more often where that is below one
    half, else more rarely, and its other letters in proportion.

    Raises:
        InputError: the letter has the share 0 or 1, or an argument is not as for `comparison_power`.
        MechanismError: the mechanism's rank does not allow the estimate.

    Examples:
        >>> found = detectable_difference([0.7, 0.3], [[0.75, 0.25], [0.25, 0.75]], 1, 3062)
        >>> round(found.second, 3), round(found.odds_ratio, 2)
        (0.4, 1.56)
    """
    p, m = pair_with_prior(prior, mechanism)
    count = check_integer(people, "the number of people", InputError)
    wanted = check_confidence(power)
    place = _find_letter(p, letter)
    start = _read_group(p, m, letter)
    held = check_confidence(confidence)

    def move(share: float) -> Prior:
        law = p.pmf * ((1 - share) / (1 - start.share))
        law[place] = share
        return Prior(law / law.sum(), p.labels)

    def is_found(step: float) -> bool:
        other = _read_group(move(start.share + side * step), m, letter)
        return _compute_power(start, other, count, "difference", 0.5, held) >= wanted

    side = 1 if start.share < 0.5 else -1
    most = (1 - start.share if side > 0 else start.share) * (1 - 1e-9)
    if not is_found(most):
        return None
    second = start.share + side * bisect(is_found, 0.0, most, 1e-4)
    odds = [one / (1 - one) for one in (start.share, second)]
    return Detectable(start.share, second, odds[1] / odds[0])


class _ComparedGroup(NamedTuple):
    """The share of a letter in a group, and the variance of its estimate from one person."""

    share: float
    variance: float


def _find_letter(prior: Prior, letter: Label) -> int:
    """Find the place of a letter."""
    return int(indices_of([letter], prior.labels, "the letter", InputError)[0])


def _read_group(law: PriorLike, mechanism: MechanismLike, letter: Label) -> _ComparedGroup:
    """Read the share of a letter in a group."""
    p, m = pair_with_prior(law, mechanism)
    place = _find_letter(p, letter)
    row = [[float(other == place) for other in range(p.size)]]
    share = float(p.pmf[place])
    if not 0 < share < 1:
        raise InputError(f"{letter!r} has the share {share:g} in a group: give one between 0 and 1")
    estimable(m).check(EstimationError(row).build_combinations(p))
    return _ComparedGroup(share, EstimationError(row).value(p, m))


def _compute_power(
    first: _ComparedGroup,
    second: _ComparedGroup,
    people: int,
    scale: Scale,
    share: float,
    confidence: float,
) -> float:
    """Compute the power of a comparison of two groups."""
    check_choice(scale, get_args(Scale), "the scale", InputError)
    part = check_confidence(share)
    apart = first.share - second.share
    variances = [first.variance, second.variance]
    if scale == "odds-ratio":
        apart = float(special.logit(first.share) - special.logit(second.share))
        variances = [one.variance / (one.share * (1 - one.share)) ** 2 for one in (first, second)]
    error = math.sqrt((variances[0] / part + variances[1] / (1 - part)) / float(people))
    return float(special.ndtr(abs(apart) / error - normal_quantile(confidence, 1)))
