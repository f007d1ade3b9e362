"""Random problems at the ends of numbers: orders near 1, levels near 0, large units, rows that are off."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
from fuzzing.independent import order_level
from fuzzing.random_designs import demand, random_gains
from oracles.designs import exact_prior

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.data.chain import Chain
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.data.secret import Secret
from pmlopt.model.privacy import PML, MaximalAlphaLeakage, RenyiPML, Requirement, SibsonLeakage
from pmlopt.model.uncertainty import ConvexHull
from pmlopt.model.utility import EstimationError, ExpectedGain, ExpectedLoss
from pmlopt.programs.certificate import Status
from pmlopt.programs.designs import design
from pmlopt.programs.result import Result
from pmlopt.programs.solving import solve
from pmlopt.programs.streams.stream import Stream

NEAR = 1e-9
"""How far floats may be off, per unit."""


def order_at_the_ends(rng: np.random.Generator) -> Result[Any]:
    """A design under a bound of an order down to 1 + 1e-15, with a level down to 0.

    Its loss is beside what Pinsker's inequality allows: a divergence of order above 1 is at least that of 1,
    so that no posterior mean of a loss is further than `sqrt(epsilon / 2)` of its range from its mean. The
    bound is at most the loss of the best constant.
    """
    prior = Prior(rng.dirichlet(np.ones(int(rng.integers(2, 5)))))
    alpha = float(
        rng.choice([1 + 2.0**-52, 1 + 10.0 ** rng.uniform(-15, -1), 2.0, 7.0, rng.uniform(1.1, 9)])
    )
    epsilon = float(rng.choice([0.0, 10.0 ** rng.uniform(-18, -3), rng.uniform(0.01, 1)]))
    gains, kind = (
        random_gains(rng, prior.size),
        str(rng.choice(["each", "mean", "every", "about", "over"])),
    )
    other = rng.dirichlet(np.ones(prior.size))
    forms: dict[str, Requirement] = {
        "each": RenyiPML(alpha, epsilon),
        "mean": SibsonLeakage(alpha, epsilon),
        "every": MaximalAlphaLeakage(alpha, epsilon),
        "about": RenyiPML(alpha, epsilon, about=Secret(np.diag(prior.pmf))),
        "over": RenyiPML(alpha, epsilon, over=ConvexHull([prior.pmf, other])),
    }
    privacy = forms[kind]
    result = solve(design(prior, privacy, ExpectedGain(gains), gains.shape[1]))
    _hold_status(result, maximised=True)
    rows = [[Fraction(v) for v in row] for row in result.mechanism.matrix.tolist()]
    mean = kind in ("mean", "every")
    # a set of priors and a secret have the prior to the last digits
    slack = 1e-12 if kind in ("about", "over") else 0.0
    level = order_level(exact_prior(prior), rows, alpha, mean=mean)
    demand(
        float(level) <= epsilon * (1 + 1e-12) + slack, f"the level is {level}, above {epsilon!r}"
    )
    constant, size = float((prior.pmf @ gains).max()), float(np.abs(gains).max())
    demand(
        result.bound >= constant - NEAR * size,
        f"the bound {result.bound} is below a constant's {constant}",
    )
    most = constant + float(np.ptp(gains, axis=0).max()) * math.sqrt(epsilon / 2)
    if not mean:
        demand(
            result.value <= most + NEAR * size,
            f"the value {result.value} is above Pinsker's {most}",
        )
    return result


def other_units(rng: np.random.Generator) -> Result[Any]:
    """Estimates of a mean of numbers far from 0 and in other units, beside those of the numbers next to 0.

    With `f` of mass one the mean of `a + b k` is a plus b times that of k, so that the error is b^2 times as
    large, whatever a is, for the numbers as floats have them.
    """
    n, epsilon = int(rng.integers(2, 5)), float(rng.uniform(0.3, 1.5))
    prior = Prior(rng.dirichlet(np.full(n, 3.0)))
    scale, offset = (
        10.0 ** rng.uniform(-12, 12),
        float(rng.choice([0.0, 1.0, -1.0]) * 10.0 ** rng.uniform(0, 18)),
    )
    steps = np.sort(rng.choice(20, n, replace=False)).astype(float)
    numbers = offset + scale * steps
    moved = np.array([float(Fraction(v) - Fraction(float(numbers[0]))) for v in numbers.tolist()])
    width = float(moved.max())
    if width == 0:
        numbers, moved, width = (
            scale * steps,
            scale * (steps - steps[0]),
            float(scale * np.ptp(steps)),
        )
    plain = solve(design(prior, PML(epsilon), EstimationError(moved / width)))
    result = solve(design(prior, PML(epsilon), EstimationError(numbers)))
    _hold_status(result, maximised=False)
    if plain.status is Status.OPTIMAL and result.status is Status.OPTIMAL:
        own, other = result.value / width / width, plain.value
        near = 1e-6 * max(1.0, abs(other))
        demand(
            abs(own - other) <= near,
            f"the error is {own} times the square of the width, and next to 0 {other}",
        )
    return result


def chain_with_float_rows(rng: np.random.Generator) -> Result[Any]:
    """A stream over a chain whose rows are off one by up to 9e-10, beside all paths of the divided chain."""
    n, epsilon = int(rng.integers(2, 4)), float(rng.uniform(0.1, 1.0))
    laws = [_off(rng, rng.dirichlet(np.ones(n))) for _ in range(n + 1)]
    chain = Chain(laws[0], laws[1:])
    stream = Stream(chain, PML(epsilon), ExpectedLoss(rng.uniform(size=(n, n))))
    first = stream.solve()
    state = chain.labels[int(rng.choice(n, p=chain.initial / chain.initial.sum()))]
    emitted = []
    for _ in range(2):
        mechanism: Mechanism = stream.mechanism
        row = mechanism.inputs.index(state)
        output = int(rng.choice(len(mechanism.outputs), p=mechanism.matrix[row]))
        place = [chain.labels.index(x) for x in mechanism.inputs]
        column = [Fraction(0)] * n
        for x, v in zip(place, mechanism.matrix[:, output].tolist(), strict=True):
            column[x] = Fraction(v)
        emitted.append(column)
        stream.record(mechanism.outputs[output])
        own = [_divided(law) for law in laws]
        told = _told(own[0], own[1:], emitted)
        demand(
            abs(stream.level - told) <= 1e-11, f"the level is {stream.level}, by all paths {told}"
        )
        demand(told <= epsilon + 1e-12, f"the level of all paths is {told}, above {epsilon}")
        moves = chain.kernel(1)[chain.labels.index(state)]
        state = chain.labels[int(rng.choice(n, p=moves / moves.sum()))]
    return first


def _hold_status(result: Result[Any], *, maximised: bool) -> None:
    """That a result verifies, and that what is optimal is not beyond its own bound."""
    demand(result.certificate.verify(), f"the check fails on what is {result.status.value}")
    beyond = result.value - result.bound if maximised else result.bound - result.value
    size = max(1.0, abs(result.value)) if maximised else abs(result.value)
    demand(
        result.status is not Status.OPTIMAL or beyond <= NEAR * size,
        f"the value {result.value} is beyond its bound {result.bound}",
    )


def _off(rng: np.random.Generator, law: FloatArray) -> list[float]:
    """A law whose sum is off one by up to 9e-10."""
    return [float(v) for v in law / law.sum() * (1 + rng.uniform(-9e-10, 9e-10))]


def _divided(law: list[float]) -> list[Fraction]:
    exact = [Fraction(v) for v in law]
    return [v / sum(exact) for v in exact]


def _told(
    first: list[Fraction], kernel: list[list[Fraction]], emitted: list[list[Fraction]]
) -> float:
    """The level about each state after these outputs, in nats, by all paths."""
    chances = list(_paths(first, kernel, emitted))
    total, lifts = sum(after for _, _, after in chances), []
    for time, x in product(range(len(emitted)), range(len(first))):
        before = sum((chance for path, chance, _ in chances if path[time] == x), Fraction(0))
        if before:
            after = sum((seen for path, _, seen in chances if path[time] == x), Fraction(0))
            lifts.append(after / total / before)
    return math.log(max(lifts))


def _paths(
    first: list[Fraction], kernel: list[list[Fraction]], emitted: list[list[Fraction]]
) -> Iterator[tuple[tuple[int, ...], Fraction, Fraction]]:
    """Each path, its probability, and that of it with these outputs."""
    for path in product(range(len(first)), repeat=len(emitted)):
        chance = first[path[0]]
        for x, z in pairwise(path):
            chance *= kernel[x][z]
        yield (
            path,
            chance,
            chance * math.prod(column[x] for column, x in zip(emitted, path, strict=True)),
        )
