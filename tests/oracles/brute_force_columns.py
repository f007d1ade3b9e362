"""Columns from the definitions: every set of letters and every letter between, in rationals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import strategies as st

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.data.prior import Prior
from pmlopt.model.privacy import Requirement
from pmlopt.model.uncertainty.columns import BoxFamily, Family, StaircaseFamily
from pmlopt.model.utility import (
    ChiSquare,
    FInformation,
    Hellinger,
    MutualInformation,
    TotalVariation,
)
from pmlopt.programs.subconvex.columns import ColumnFamily, ColumnUtility

Column = tuple[Fraction, ...]
Scalar = Callable[[float], float]
Make = Callable[[], FInformation]

UTILITIES: Mapping[Make, Scalar] = {
    MutualInformation: lambda t: t * math.log(t) if t > 0 else 0.0,
    TotalVariation: lambda t: abs(t - 1) / 2,
    ChiSquare: lambda t: (t - 1) ** 2,
    Hellinger: lambda t: (math.sqrt(t) - 1) ** 2,
}
"""The utilities that add up over letters, and their generators one number at a time."""


def proper_sets(n: int) -> Iterator[tuple[int, ...]]:
    """Every set of letters but the full one."""
    for size in range(n):
        yield from combinations(range(n), size)


def box_columns(p: Sequence[Fraction], low: Fraction, high: Fraction) -> set[Column]:
    """high on a set, low off it but at one letter at most, the mean one."""
    found = set()
    for chosen in proper_sets(len(p)):
        rest = 1 - low - (high - low) * sum(p[x] for x in chosen)
        for letter in set(range(len(p))).difference(chosen) if rest >= 0 else ():
            if low + rest / p[letter] <= high:
                column = [high if x in chosen else low for x in range(len(p))]
                column[letter] += rest / p[letter]
                found.add(tuple(column))
    return found


def stair_columns(p: Sequence[Fraction], base: Fraction, slope: Fraction) -> set[Column]:
    """m > 0 off a set that is neither empty nor full, base + slope m on it, the mean one."""
    found = set()
    for chosen in proper_sets(len(p)):
        mass = sum((p[x] for x in chosen), Fraction(0))
        if mass > 0 and base * mass < 1:
            low = (1 - base * mass) / (1 - mass + slope * mass)
            found.add(tuple(base + slope * low if x in chosen else low for x in range(len(p))))
    return found


def extreme(p: Sequence[Fraction], family: Family) -> set[Column]:
    """The extreme columns of a family whose only column is not the constant."""
    if isinstance(family, BoxFamily):
        return box_columns(p, Fraction(family.low), Fraction(family.high))
    return stair_columns(p, Fraction(family.base), Fraction(family.slope))


def rounded(columns: set[Column] | FloatArray) -> list[tuple[float, ...]]:
    """The columns to nine digits, sorted; of a set of rationals each once."""
    if isinstance(columns, np.ndarray):
        return sorted(tuple(column) for column in (columns.T.round(9) + 0.0).tolist())
    return sorted({tuple(round(float(v), 9) + 0.0 for v in column) for column in columns})


def reduced(
    p: Sequence[float], phi: Scalar, rho: Sequence[float], column: Sequence[float]
) -> float:
    """What a column is worth beyond its cost."""
    assert min(column) >= -1e-12  # rounding may leave a zero just below
    return math.fsum(w * (phi(max(v, 0.0)) - r * v) for w, r, v in zip(p, rho, column, strict=True))


@dataclass(frozen=True)
class Problem:
    """Multipliers to price at, under a prior of whole counts, a utility and what the columns may be."""

    counts: tuple[int, ...]
    families: tuple[Family, ...]
    utility: Make
    rho: FloatArray

    @property
    def exact(self) -> list[Fraction]:
        return [Fraction(count, sum(self.counts)) for count in self.counts]

    @property
    def p(self) -> FloatArray:
        return np.array(self.counts) / sum(self.counts)

    @property
    def kernel(self) -> ColumnUtility:
        return ColumnUtility(self.p, self.utility().phi)

    @property
    def size(self) -> float:
        """What errors are measured against."""
        steep = 100.0 if self.utility is Hellinger else 1.0  # its slope at 0 is infinite
        return steep * (1.0 + float(np.abs(self.rho).max()) + float((1 / self.p).max()))

    def value(self, column: Sequence[float]) -> float:
        """What a column is worth beyond its cost."""
        return reduced(self.p.tolist(), UTILITIES[self.utility], self.rho.tolist(), column)

    def best(self, families: Sequence[Family] | None = None) -> float:
        """The largest value of any extreme column."""
        every = [c for family in families or self.families for c in extreme(self.exact, family)]
        return max(self.value([float(v) for v in column]) for column in every)

    def largest(self, found: Sequence[ColumnFamily]) -> float:
        """The largest value among columns that were found."""
        return max(
            self.value(column) for part in found for column in part.build_lifts(self.p).T.tolist()
        )


def assert_allowed(p: FloatArray, lifts: FloatArray, family: Family, within: float = 1e-11) -> None:
    """Each column is of mean one and within the bounds of its family, up to an error."""
    assert p @ lifts == pytest.approx(np.ones(lifts.shape[1]), rel=1e-11)
    low, high = lifts.min(axis=0), lifts.max(axis=0)
    if isinstance(family, BoxFamily):
        assert (low >= family.low - within).all()
        assert (high <= family.high * (1 + within)).all()
    else:
        assert (low >= 0).all()
        assert (high <= (family.base + family.slope * low) * (1 + within)).all()


def ball(epsilon: float, beta: float) -> tuple[Family, ...]:
    """What the l1 ball of EMP, Proposition 2, allows a column to be: some letter zero, or none."""
    base = math.exp(epsilon) / (1 + beta * math.exp(epsilon) / 2)
    stairs = StaircaseFamily(base, base * beta / 2)
    return (BoxFamily(0.0, base), stairs) if base > 1 else (stairs,)


def families_of(rng: np.random.Generator, p: FloatArray, kind: str) -> tuple[Family, ...]:
    """Families of a kind at a random level between none and the largest of use."""
    most = -math.log(p.min())
    epsilon = float(rng.uniform(0.02, 1.0)) * most
    if kind == "pml":
        return (BoxFamily(0.0, math.exp(epsilon)),)
    if kind == "tied":  # some set of letters fits exactly
        chosen = rng.permutation(len(p))[: rng.integers(1, len(p))]
        return (BoxFamily(0.0, 1 / float(p[chosen].sum())),)
    if kind == "lip":
        return (BoxFamily(math.exp(-float(rng.uniform(0.05, 3.0))), math.exp(epsilon)),)
    if kind == "ldp":
        return (StaircaseFamily(0.0, math.exp(float(rng.uniform(0.05, 4.0)))),)
    return ball(epsilon, float(rng.uniform(0.1, 1.9)) * p.min())


KINDS = ("pml", "tied", "lip", "ldp", "ball")


@st.composite
def problems(
    draw: st.DrawFn, kinds: Sequence[str] = KINDS, min_size: int = 2, max_size: int = 7
) -> Problem:
    """Random problems, some with equal letters, and multipliers from none to large."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    n = draw(st.integers(min_size, max_size), label="letters")
    most = draw(st.sampled_from([1, 3, 40]), label="largest count")
    counts = tuple(rng.integers(1, most + 1, size=n).tolist())
    p = np.array(counts) / sum(counts)
    families = families_of(rng, p, draw(st.sampled_from(kinds), label="kind"))
    scale = draw(st.sampled_from([0.0, 0.1, 1.0, 10.0]), label="scale")
    rho = scale * rng.normal(size=n) + draw(st.sampled_from([0.0, 1.0])) * np.minimum(
        -np.log(p), 1.0
    )
    return Problem(counts, families, draw(st.sampled_from(sorted(UTILITIES, key=str))), rho)


def families_under(requirement: Requirement, prior: Prior) -> tuple[Family, ...]:
    """The families that a requirement allows, where it has some."""
    allowed = requirement.extreme_columns(prior)
    assert isinstance(allowed, tuple)
    return allowed
