"""Least means over curved sets of priors with very rare letters, between two bounds in decimals.

A member of the set has a mean that is not below the least one, and each multiplier of the divergence proves a
bound that is not above it. Both are evaluated here from the definitions, with digits enough for letters of
1e-300; where they agree, the least mean is known whatever the multiplier came from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from typing import Any

import numpy as np

from pmlopt import ChiSquareBall, KLBall, LikelihoodRegion
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.model.uncertainty.divergence_ball import DivergenceBall

DIGITS = 700
Law = list[Decimal]


@dataclass(frozen=True)
class CurvedSet:
    """A kind of set by its definition: the divergence, and for each multiplier a member and a bound."""

    make: Callable[[FloatArray, float], DivergenceBall]
    divergence: Callable[[Law, Law], Decimal]
    member: Callable[[Law, Law, Sequence[Decimal]], Law]
    bound: Callable[[Law, Law, Decimal, Sequence[Decimal]], Decimal]


def _dot(left: Law, right: Law) -> Decimal:
    return sum((a * b for a, b in zip(left, right, strict=True)), Decimal(0))


def _normalize(masses: Law) -> Law:
    total = sum(masses, Decimal(0))
    return [mass / total for mass in masses]


def _cut(cuts: Sequence[Decimal]) -> Decimal:
    return sum(cuts, Decimal(0))


def _bound_chi_square(p: Law, v: Law, radius: Decimal, cuts: Sequence[Decimal]) -> Decimal:
    clipped = [min(x, _cut(cuts)) for x in v]
    mean = _dot(p, clipped)
    return mean - (radius * _dot(p, [(x - mean) ** 2 for x in clipped])).sqrt()


def _bound_likelihood(p: Law, v: Law, radius: Decimal, mu: Sequence[Decimal]) -> Decimal:
    logs = _dot(p, [(x - mu[0]).ln() for x in v])
    return mu[0] + (logs - radius).exp()


SETS = {
    "chi-square": CurvedSet(
        ChiSquareBall,
        lambda q, p: sum(((a - b) ** 2 / b for a, b in zip(q, p, strict=True)), Decimal(0)),
        lambda p, v, cuts: _normalize(
            [b * max(_cut(cuts) - x, Decimal(0)) for b, x in zip(p, v, strict=True)]
        ),
        _bound_chi_square,
    ),
    "kl": CurvedSet(
        KLBall,
        lambda q, p: _dot(
            q, [(a / b).ln() if a else Decimal(0) for a, b in zip(q, p, strict=True)]
        ),
        lambda p, v, rate: _normalize(
            [b * (-rate[0] * x).exp() for b, x in zip(p, v, strict=True)]
        ),
        lambda p, v, radius, rate: (
            -(_dot(p, [(-rate[0] * x).exp() for x in v]).ln() + radius) / rate[0]
        ),
    ),
    "likelihood": CurvedSet(
        LikelihoodRegion,
        lambda q, p: (
            Decimal("inf")
            if not all(q)
            else _dot(p, [(b / a).ln() for a, b in zip(q, p, strict=True)])
        ),
        lambda p, v, mu: _normalize([b / (x - mu[0]) for b, x in zip(p, v, strict=True)]),
        _bound_likelihood,
    ),
}


def bracket_min_mean(kind: CurvedSet, ball: Any, column: FloatArray) -> tuple[Decimal, Decimal]:
    """Return a lower and an upper bound on the least mean of a column with a least entry of 0.

    The upper one is the mean of a member: the divergence is convex, so that a prior which rounding has put
    outside of the set becomes one by a little of the centre.
    """
    multipliers = ball.find_multipliers(column[:, None])[:, 0].tolist()
    with localcontext(Context(prec=DIGITS)):
        p = _normalize([Decimal(weight) for weight in ball.center.weights])
        v, radius = [Decimal(x) for x in column.tolist()], Decimal(ball.radius)
        given = [Decimal(x) for x in multipliers]
        least = _normalize([b if x == 0 else Decimal(0) for b, x in zip(p, v, strict=True)])
        if kind.divergence(least, p) <= radius:
            return Decimal(0), Decimal(0)
        member = kind.member(p, v, given)
        reached = kind.divergence(member, p)
        assert reached <= radius * (1 + Decimal("1e-9"))
        outside = max(1 - radius / reached, Decimal(0))
        high = (1 - outside) * _dot(member, v) + outside * _dot(p, v)
        return kind.bound(p, v, radius, given), high


def random_rare_center(rng: np.random.Generator, letters: int) -> FloatArray:
    """Draw a law with letters down to 1e-300."""
    exponents = rng.choice([0, 1, 3, 10, 17, 25, 60, 150, 290, 300], letters)
    masses = rng.uniform(0.1, 1.0, letters) * 10.0**-exponents
    masses[rng.integers(letters)] = 1.0
    return np.asarray(np.maximum(masses / masses.sum(), 1e-300))


def random_rare_radius(rng: np.random.Generator, name: str, center: FloatArray) -> float:
    """Draw a radius that moves a visible mass, to rare letters too."""
    if name == "chi-square":
        return float(rng.choice([1e-9, 0.1, 3.0, 0.3 / center.min(), 0.5 / np.median(center)]))
    # past log 1e-300 a KL ball has all priors, and a likelihood region of much more than 3 all but e^-radius
    return float(rng.choice([1e-9, 0.1, 3.0, rng.uniform(0, 690) if name == "kl" else 1.0]))
