"""The best sub-convex utility by full enumeration, from the definitions: all extreme columns, one LP."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from oracles import designs as oracles
from oracles.designs import FloatArray
from scipy.special import xlogy

from pmlopt import LDP, LIP, PML, FInformation, L1Ball, MutualInformation, Prior, SubConvex
from pmlopt.core.numbers.arrays import DefaultLabels
from pmlopt.model.privacy import Requirement
from pmlopt.model.utility import ChiSquare, GuessingProbability, Hellinger, TotalVariation
from pmlopt.programs import Status
from pmlopt.programs.result import Result
from pmlopt.programs.subconvex.certificate import ColumnCertificate
from pmlopt.programs.subconvex.program import ColumnDesign

Worth = Callable[[FloatArray, FloatArray], FloatArray]
"""mu: (N,) prior and (N, K) columns of mean one -> (K,)."""


@dataclass(frozen=True)
class Optimum:
    """The optimal utility, the columns, their weights, and multipliers of the rows over the prior."""

    value: float
    lifts: FloatArray
    weights: FloatArray
    multipliers: FloatArray


def optimum(p: FloatArray, privacy: Requirement, worth: Worth) -> Optimum:
    """The best utility: a linear program in the weights of all extreme columns."""
    lifts = extreme_columns(p, privacy)
    return best_weights(p, lifts, worth(p, lifts))


MANY = 5_000
"""More columns than this are not handed over all at once."""


def best_weights(p: FloatArray, lifts: FloatArray, worths: FloatArray) -> Optimum:
    """The linear program over the columns given.

    Of many columns a part is solved first, and those that its multipliers undervalue join it until none is
    left: weights sum to one, so that a column is worth at most its excess over them to any mechanism.
    """
    if lifts.shape[1] <= MANY:
        return _best_weights(p, lifts, worths)
    chosen = np.zeros(lifts.shape[1], dtype=bool)
    chosen[:: lifts.shape[1] // 1_000] = True  # the first is the constant: always feasible
    while True:
        part = _best_weights(p, lifts[:, chosen], worths[chosen])
        excess = worths - (p * part.multipliers) @ lifts
        if excess.max() <= 1e-10:
            weights = np.zeros(lifts.shape[1])
            weights[chosen] = part.weights
            return Optimum(part.value, lifts, weights, part.multipliers)
        chosen[np.argsort(excess)[-500:]] = True


def _best_weights(p: FloatArray, lifts: FloatArray, worths: FloatArray) -> Optimum:
    answer = oracles.linear_program(-worths, A_eq=lifts, b_eq=np.ones(len(p)))
    return Optimum(-float(answer.fun), lifts, answer.x, -np.asarray(answer.eqlin.marginals) / p)


def extreme_columns(p: FloatArray, privacy: Requirement) -> FloatArray:
    """(N, K) the extreme points of the columns of mean one that the requirement allows, and the constant."""
    if isinstance(privacy, LDP):
        return _two_valued(p, math.exp(privacy.epsilon))
    if isinstance(privacy, PML) and isinstance(privacy.over, L1Ball):
        return _in_the_ball(p, math.exp(privacy.epsilon), privacy.over.radius)
    if isinstance(privacy, PML):
        return _filled(p, 0.0, math.exp(privacy.epsilon))
    assert isinstance(privacy, LIP)
    return _filled(p, math.exp(-privacy.lower), math.exp(privacy.upper))


def _subsets(n: int) -> FloatArray:
    return np.array(list(itertools.product([0.0, 1.0], repeat=n)))


def _two_valued(p: FloatArray, ratio: float) -> FloatArray:
    columns = 1 + (ratio - 1) * _subsets(len(p))
    return np.asarray((columns / (columns @ p)[:, None]).T)


def _in_the_ball(p: FloatArray, ratio: float, radius: float) -> FloatArray:
    """max v <= c (1 + radius/2 min v): two-valued with a floor m > 0, or filled up to c from a floor of 0."""
    top = ratio / (1 + radius * ratio / 2)
    sets = _subsets(len(p)).T
    mass = p @ sets
    floor = (1 - top * mass) / (1 - mass + top * radius / 2 * mass)
    above = floor > 0
    stairs = np.where(sets > 0, top * (1 + radius / 2 * floor), floor)[:, above]
    return np.hstack([stairs, _filled(p, 0.0, top)]) if top > 1 else stairs


def _filled(p: FloatArray, low: float, high: float) -> FloatArray:
    """`high` on a set, between at one letter, `low` on the rest."""
    if high <= 1 or low >= 1:
        return np.ones((len(p), 1))
    chosen, step = _subsets(len(p)), high - low
    rest = 1 - low - step * (chosen @ p)
    extra = np.maximum(rest, 0.0)[:, None] / p
    fits = (chosen == 0) & (rest >= -1e-13)[:, None] & (extra <= step * (1 + 1e-12))
    sets, letters = np.nonzero(fits)
    columns = low + step * chosen[sets]
    columns[np.arange(len(sets)), letters] += extra[sets, letters]
    _, first = np.unique(columns.round(11), axis=0, return_index=True)
    return np.hstack([np.ones((len(p), 1)), columns[first].T])


# ---------------------------------------------------------------- utilities


def information(p: FloatArray, lifts: FloatArray) -> FloatArray:
    """`sum_x p lam log lam`, which is mutual information in nats."""
    return np.asarray(p @ xlogy(lifts, lifts))


def triangular(lifts: FloatArray) -> FloatArray:
    """A generator that the package does not know."""
    return np.asarray((lifts - 1) ** 2 / (lifts + 1))


def deviation(column: FloatArray, p: FloatArray) -> float:
    """A sub-convex function that is no sum over letters: the standard deviation of a column."""
    return math.sqrt(float(p @ (column - p @ column) ** 2))


def _deviations(p: FloatArray, lifts: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(p @ (lifts - p @ lifts) ** 2))


UTILITIES: dict[str, tuple[SubConvex, Worth]] = {
    "mutual information": (MutualInformation(), information),
    "total variation": (TotalVariation(), lambda p, lifts: p @ np.abs(lifts - 1) / 2),
    "chi-square": (ChiSquare(), lambda p, lifts: p @ lifts**2 - 1),
    "hellinger": (Hellinger(), lambda p, lifts: 2 - 2 * (p @ np.sqrt(lifts))),
    "guessing": (GuessingProbability(), lambda p, lifts: (lifts.T * p).max(axis=1)),
    "own generator": (FInformation(triangular), lambda p, lifts: p @ triangular(lifts)),
    "own function": (SubConvex(deviation), _deviations),
}
"""Each utility of the package with its definition."""


# ---------------------------------------------------------------- random problems


@dataclass(frozen=True)
class Case:
    """A prior and a level in nats."""

    prior: Prior
    epsilon: float

    @property
    def p(self) -> FloatArray:
        return self.prior.pmf

    def inside(self) -> Case:
        """The same a hair past its level: away from the end of a region, where the rounding of the level
        itself decides which columns have zeros; utilities with an infinite slope at 0 feel that by 1e-8."""
        return Case(self.prior, self.epsilon + 1e-6)


def random_case(*seed: int) -> Case:
    """A prior on 2 to 9 letters and a level in any privacy region; the last seed decides the kinds."""
    rng = np.random.default_rng(list(seed))
    n = 2 + seed[-1] % 8
    prior = Prior(_random_law(rng, n, seed[-1] // 8 % 4))
    return Case(prior, random_level(rng, prior.pmf))


def counted_case(*seed: int) -> Case:
    """The same with a prior of whole counts."""
    rng = np.random.default_rng(list(seed))
    counts = rng.integers(1, int(rng.choice([4, 30, 300])), 2 + seed[-1] % 8)
    prior = Prior.from_counts(counts.tolist(), DefaultLabels(len(counts)))
    return Case(prior, random_level(rng, prior.pmf))


def _random_law(rng: np.random.Generator, n: int, kind: int) -> FloatArray:
    if kind == 3:  # repeated letters
        weights = rng.integers(1, 4, n) + rng.choice([0.0, 0.37])
        return np.asarray(weights / weights.sum())
    return oracles.random_prior(rng, n, (0.3, 1.0, 10.0)[kind])


def random_level(rng: np.random.Generator, p: FloatArray) -> float:
    """A level in one of the regions, at one of their ends, near to zero or past the maximum."""
    ends = [
        *-np.log(np.cumsum(np.sort(p)[::-1])[::-1]),
        -math.log(p.min()),
        -1.5 * math.log(p.min()),
    ]
    ends[0] = 0.0
    region = int(rng.integers(len(ends) - 1))
    share = float(rng.choice([0.0, 1e-3, *rng.uniform(0.0, 1.0, 8)]))
    return float((1 - share) * ends[region] + share * ends[region + 1])


@st.composite
def small_cases(draw: st.DrawFn) -> tuple[Case, np.random.Generator]:
    """A random problem on 2 to 6 letters, and a generator for more."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    n, kind = draw(st.integers(2, 6), label="letters"), draw(st.integers(0, 3), label="kind")
    prior = Prior(_random_law(rng, n, kind))
    return Case(prior, random_level(rng, prior.pmf)), rng


# ---------------------------------------------------------------- what every answer must be


def assert_proved(program: ColumnDesign, result: Result[ColumnCertificate], gap: float) -> None:
    """What is claimed of the mechanism holds: the requirement in exact arithmetic, the value, the gap."""
    prior, matrix = program.prior, result.mechanism.matrix
    assert result.status is Status.OPTIMAL, (
        result.gap,
        program.scale,
        program.rounding_gap,
        result.solver,
    )
    assert result.certificate.verify()
    assert oracles.is_stochastic(matrix)
    assert oracles.meets(prior, program.privacy, matrix)
    assert all(
        result.certificate.levels[name] <= limit for name, limit in program.privacy.limits.items()
    )
    assert result.value == program.utility.value(prior, result.mechanism)
    assert result.value <= result.bound
    assert result.gap == result.bound - result.value
    assert result.gap <= gap
    assert matrix.shape[1] <= prior.size or program.outputs is not None


def assert_optimal(
    program: ColumnDesign, results: Sequence[Result[ColumnCertificate]], best: float
) -> None:
    """Each result is proved, and reaches what full enumeration reaches."""
    n = program.prior.size
    told, nothing = (
        program.utility.value(program.prior, matrix) for matrix in (np.eye(n), np.ones((n, 1)))
    )
    for result in results:
        assert_proved(program, result, max(1e-7 * (told - nothing), program.rounding_gap))
        assert abs(result.value - best) <= 1e-8
        assert result.bound >= best - 1e-9
