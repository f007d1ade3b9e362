"""Random designs, each claim held against exact levels and independent linear programs."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, permutations
from typing import Any

import numpy as np
from fuzzing.independent import (
    Pair,
    error_of_estimates,
    information,
    largest_gain,
    log_excess,
    meets_pairs,
    share,
    to_means,
    unit,
)
from oracles.designs import exact_prior, is_stochastic

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.data.prior import Prior
from pmlopt.data.symmetry.independent import IIDPrior
from pmlopt.model.privacy import LDP, PML, GuessLeakage
from pmlopt.model.uncertainty import ConvexHull, L1Ball
from pmlopt.model.utility import (
    CoordinateLoss,
    EstimationError,
    ExpectedGain,
    MutualInformation,
    utility_order,
)
from pmlopt.programs.certificate import Status
from pmlopt.programs.designs import design
from pmlopt.programs.least_leakage.program import least_leakage, worst_case_utility
from pmlopt.programs.result import Result
from pmlopt.programs.solving import solve
from pmlopt.programs.worst_case.program import best_worst_case

SLACK = 1e-7
"""How far an independent program in floats may be off, per unit of the gain's range and of its level."""


class FalseClaimError(AssertionError):
    """A claim that an independent computation contradicts."""


def demand(holds: bool, claim: str) -> None:
    """Raise where what must hold does not; the message says what."""
    if not holds:
        raise FalseClaimError(claim)


def random_prior(rng: np.random.Generator, size: int | None = None) -> Prior:
    """A prior of 1 to 6 letters: even, skewed, with rare letters, even of 1e-299, or from counts."""
    n = int(rng.integers(1, 7)) if size is None else size
    kind = rng.integers(5)
    if kind == 0:
        return Prior.uniform(n)
    if kind == 1:
        return Prior.from_counts([int(c) for c in rng.integers(1, 1000, n)])
    if kind == 2:
        weights = 10.0 ** rng.uniform(-9, 0, n)
        return Prior(weights / weights.sum())
    if kind == 3:
        weights = 10.0 ** rng.uniform(-299, 0, n)
        weights[rng.integers(n)] = 1.0
        return Prior(weights / weights.sum())
    return Prior(rng.dirichlet(np.ones(n)))


def random_epsilon(rng: np.random.Generator, prior: Prior) -> float:
    """A level: 0, tiny, ordinary, just at a breakpoint, or past the maximum."""
    end, one, other = prior.max_leakage, rng.uniform(0, 3), rng.uniform(0, 3)
    return float(rng.choice([0.0, 1e-9, one, other, math.log(rng.integers(1, 6)), end, end + 1]))


def linear(rng: np.random.Generator) -> Result[Any]:
    """A design with a random gain under PML."""
    prior = random_prior(rng)
    epsilon = random_epsilon(rng, prior)
    gains = random_gains(rng, prior.size)
    utility = ExpectedGain(gains if rng.random() < 0.7 else _in_another_order(rng, prior, gains))
    result = solve(design(prior, PML(epsilon), utility, gains.shape[1]))
    pairs = to_means([exact_prior(prior)], epsilon)
    check_pairs(result, pairs)
    check_gain(result, pairs, gains, prior)
    return result


def _in_another_order(rng: np.random.Generator, prior: Prior, gains: FloatArray) -> Any:
    """The gains as a table with labels, whose rows and columns are in another order."""
    import pandas as pd

    rows, columns = rng.permutation(prior.size), rng.permutation(gains.shape[1])
    return pd.DataFrame(
        gains[np.ix_(rows, columns)], [prior.labels[x] for x in rows], columns.tolist()
    )


def robust(rng: np.random.Generator) -> Result[Any]:
    """A design under PML over an l1 ball below 2 min p, or over a few priors."""
    n = int(rng.integers(2, 5))
    center = Prior(rng.dirichlet(np.full(n, 3.0)))
    if rng.random() < 0.5:
        radius = float(rng.uniform(0, 2 * center.pmf.min()))
        priors: Any = L1Ball(center, radius)
        moves = [np.eye(n)[i] - np.eye(n)[j] for i in range(n) for j in range(n) if i != j]
        laws = [center.pmf + radius / 2 * move for move in moves]
    else:
        laws = [center.pmf, *rng.dirichlet(np.full(n, 3.0), 2)]
        priors = ConvexHull(laws)
    epsilon, gains = float(rng.uniform(0.05, 3)), random_gains(rng, n)
    result = solve(design(center, PML(epsilon, over=priors), ExpectedGain(gains), gains.shape[1]))
    pairs = to_means([share(law.tolist()) for law in laws], epsilon)
    if isinstance(priors, ConvexHull):
        check_pairs(result, pairs)
    demand(result.certificate.verify(), "the exact check fails")
    check_gain(result, pairs, gains, center)
    return result


def local(rng: np.random.Generator) -> Result[Any]:
    """A design with a random gain under LDP."""
    prior = random_prior(rng)
    epsilon, gains = float(rng.choice([0.0, rng.uniform(0, 5)])), random_gains(rng, prior.size)
    result = solve(design(prior, LDP(epsilon), ExpectedGain(gains), gains.shape[1]))
    letters, bound = [unit(x, prior.size) for x in range(prior.size)], Fraction(epsilon)
    pairs = [(one, other, bound) for one, other in permutations(letters, 2)]
    check_pairs(result, pairs)
    check_gain(result, pairs, gains, prior)
    return result


def several_guesses(rng: np.random.Generator) -> Result[Any]:
    """A design whose bound is on k guesses, beside the bounds for all sets of k letters."""
    prior = random_prior(rng, int(rng.integers(1, 6)))
    guesses, epsilon = int(rng.integers(1, prior.size + 2)), random_epsilon(rng, prior)
    gains = random_gains(rng, prior.size)
    result = solve(
        design(prior, GuessLeakage(guesses, epsilon), ExpectedGain(gains), gains.shape[1])
    )
    p = exact_prior(prior)
    before = sum(sorted(p)[-guesses:])
    claimed = result.certificate.privacy.limits["guess_leakage"]
    demand(
        claimed <= epsilon,
        f"{claimed} nats are claimed, and {epsilon} were asked for",
    )
    sets = combinations(range(prior.size), min(guesses, prior.size))
    below, level = [before * one for one in p], Fraction(claimed)
    pairs: list[Pair] = [
        ([p[x] if x in chosen else Fraction(0) for x in range(prior.size)], below, level)
        for chosen in sets
    ]
    check_pairs(result, pairs)
    check_gain(result, pairs, gains, prior)
    return result


def mutual_information(rng: np.random.Generator) -> Result[Any]:
    """A design for mutual information under PML, its bound beside what random mechanisms tell."""
    prior = random_prior(rng)
    epsilon = random_epsilon(rng, prior)
    result = solve(design(prior, PML(epsilon), MutualInformation()))
    pairs = to_means([exact_prior(prior)], epsilon)
    check_pairs(result, pairs)
    most = float(prior.pmf @ np.minimum(epsilon, -np.log(prior.pmf)))
    demand(
        result.value <= most + SLACK, f"the value is {result.value}, above the closed bound {most}"
    )
    check_information(rng, result, pairs, prior)
    return result


def least(rng: np.random.Generator) -> Result[Any]:
    """A least leakage under a floor on the expected gain, the worst rank, or both."""
    prior = random_prior(rng, int(rng.integers(2, 5)))
    gains = rng.random((prior.size, int(rng.integers(2, 5))))
    if rng.random() < 0.5:
        order = utility_order(gains)
        program = worst_case_utility(
            prior, order, int(rng.integers(1, gains.shape[1] + 1)), gains.shape[1]
        )
    else:
        low = float((prior.pmf @ gains).max())
        high = float(prior.pmf @ gains.max(axis=1))
        floor = low + rng.uniform(0, 0.99) * (high - low)
        program = least_leakage(prior, ExpectedGain(gains), expected=floor, outputs=gains.shape[1])
    result = solve(program)
    matrix = result.mechanism.matrix
    check_pairs(result, to_means([exact_prior(prior)], result.value))
    demand(bool((matrix[~program.allowed] == 0).all()), "a forbidden pair occurs")
    if program.floor is not None:
        reached = float((prior.pmf[:, None] * gains * matrix).sum())
        demand(
            reached >= program.floor.expected.value - SLACK,
            f"the floor {program.floor.expected.value} is not met: {reached}",
        )
        if result.bound > 2e-6:  # a little below the bound the floor is out of reach
            below = to_means([exact_prior(prior)], result.bound - 1e-6)
            most = largest_gain(prior.pmf, below, gains)
            demand(
                most <= program.floor.expected.value + SLACK,
                f"{most} can be reached below the bound",
            )
    return result


def worst_case(rng: np.random.Generator) -> Result[Any]:
    """A highest threshold within a level: what is kept is kept, and the next one is out of reach."""
    n, m = int(rng.integers(2, 5)), int(rng.integers(2, 6))
    prior, order = Prior(rng.dirichlet(np.full(n, 2.0))), utility_order(rng.random((n, m)))
    epsilon = float(rng.uniform(0.05, 1.2) * prior.max_leakage)
    result = solve(best_worst_case(prior, order, epsilon, m))
    matrix = result.mechanism.matrix
    check_pairs(result, to_means([exact_prior(prior)], epsilon + 1e-12))
    demand(order[matrix > 0].min() >= result.value, f"a rank below {result.value} occurs")
    if result.bound < order.max():
        below = (order <= result.bound) / prior.pmf[:, None]
        least = -largest_gain(prior.pmf, to_means([exact_prior(prior)], epsilon - 1e-6), -below)
        demand(least >= 1e-9, f"a threshold above {result.bound} can be kept but for {least}")
    return result


def estimation(rng: np.random.Generator) -> Result[Any]:
    """A design for estimates of the frequencies, its bound beside what random mechanisms allow."""
    n = int(rng.integers(2, 5))
    prior, epsilon = Prior(rng.dirichlet(np.full(n, 3.0))), float(rng.uniform(0.1, 2))
    criterion: Any = rng.choice(["A", "D"])
    result = solve(design(prior, PML(epsilon), EstimationError(criterion=criterion)))
    pairs = to_means([exact_prior(prior)], epsilon)
    check_pairs(result, pairs)
    own = error_of_estimates(prior.pmf, result.mechanism.matrix, criterion)
    near = 1e-9 * max(1.0, abs(own))
    demand(abs(own - result.value) <= near, f"the value is {result.value}, of the matrix {own}")
    for _ in range(5):
        other = error_of_estimates(prior.pmf, random_within(rng, pairs, prior.pmf), criterion)
        demand(other >= result.bound - SLACK, f"a mechanism has the error {other}, below the bound")
    return result


def symmetric(rng: np.random.Generator) -> Result[Any]:
    """A design on the tuples of records that are independent and alike, beside the program of all letters."""
    records, letters = int(rng.integers(2, 4)), 2
    one = IIDPrior(rng.dirichlet(np.full(letters, 3.0)), records)
    losses, epsilon = rng.random((letters, letters)), float(rng.uniform(0.05, 2))
    result = solve(design(one, PML(epsilon), CoordinateLoss(losses)))
    demand(result.certificate.verify(), "the exact check fails")
    orbits: Any = result.mechanism
    prior, mechanism = one.listed(), orbits.listed()
    rows: Any = prior.labels
    table = np.array([[losses[x, y].sum() for y in rows] for x in rows])
    # the listed prior has the products to the nearest float
    pairs = to_means([exact_prior(prior)], epsilon + 1e-12)
    demand(meets_pairs(pairs, mechanism.matrix), "the listed mechanism exceeds its level")
    own = float((prior.pmf[:, None] * table * mechanism.matrix).sum())
    demand(abs(own - result.value) <= SLACK, f"the value is {result.value}, of the matrix {own}")
    best = -largest_gain(prior.pmf, to_means([exact_prior(prior)], epsilon), -table)
    demand(result.bound - SLACK <= best <= result.value + SLACK, f"the least loss is {best}")
    return result


def random_gains(rng: np.random.Generator, size: int) -> FloatArray:
    """Gains of one to five outputs, of any size from 1e-3 to 1e3."""
    scale = 10.0 ** rng.integers(-3, 4)
    return np.asarray(scale * rng.normal(size=(size, int(rng.integers(1, 6)))))


def random_within(rng: np.random.Generator, pairs: list[Pair], p: FloatArray) -> FloatArray:
    """A mechanism of sharp rows, mixed with its own output law until it keeps the bounds on pairs."""
    sharp = rng.dirichlet(np.full(len(p), 0.3), len(p))
    low, high = 0.0, 1.0  # the share of the law that is too little, and one that is enough
    for _ in range(40):
        middle = (low + high) / 2
        within = log_excess(pairs, (1 - middle) * sharp + middle * (p @ sharp)) <= 0
        low, high = (low, middle) if within else (middle, high)
    return np.asarray((1 - high) * sharp + high * (p @ sharp))


def check_pairs(result: Result[Any], pairs: list[Pair]) -> None:
    """The bounds on pairs, in fractions, and the certificate's own check."""
    demand(is_stochastic(result.mechanism.matrix), "a row does not sum to exactly one")
    demand(meets_pairs(pairs, result.mechanism.matrix), "a pair is exceeded in fractions")
    demand(result.certificate.verify(), "the exact check fails on what is returned")


def check_information(
    rng: np.random.Generator, result: Result[Any], pairs: list[Pair], prior: Prior
) -> None:
    """The value as the matrix says, and the bound beside mechanisms drawn towards the constant."""
    told = information(prior.pmf, result.mechanism.matrix)
    demand(
        abs(told - result.value) <= SLACK,
        f"the value is {result.value}, and the mechanism tells {told}",
    )
    for _ in range(5):
        other = information(prior.pmf, random_within(rng, pairs, prior.pmf))
        demand(
            other <= result.bound + SLACK,
            f"a mechanism tells {other}, above the bound {result.bound}",
        )


def check_gain(result: Result[Any], pairs: list[Pair], gains: FloatArray, prior: Prior) -> None:
    """Value and bound on the two sides of an independent optimum, value as the matrix says."""
    best = largest_gain(prior.pmf, pairs, gains)
    size = float(np.abs(gains).max()) or 1.0
    own = float((prior.pmf[:, None] * gains * result.mechanism.matrix).sum())
    demand(
        abs(own - result.value) <= SLACK * size, f"the value is {result.value}, of the matrix {own}"
    )
    demand(
        result.value <= best + SLACK * size, f"the value {result.value} is above the optimum {best}"
    )
    demand(
        result.bound >= best - SLACK * size, f"the bound {result.bound} is below the optimum {best}"
    )
    if result.status is Status.OPTIMAL:
        allowed = SLACK * size + 1e-7 * float(prior.pmf @ np.ptp(gains, axis=1))
        demand(result.value >= best - allowed, f"called optimal at {result.value}, and {best} is")
