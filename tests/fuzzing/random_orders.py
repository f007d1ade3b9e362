"""Random designs under bounds of a finite order, each claim held against decimals and programs of norms."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
from fuzzing.independent import UndecidedError, Weights, dot, order_level, share
from fuzzing.random_designs import demand, random_gains
from fuzzing.random_ratios import random_secret
from oracles import vulnerability
from oracles.designs import exact_prior, is_stochastic
from oracles.finite_orders import (
    largest_gain_between,
    largest_gain_for_every_prior,
    largest_gain_of_order,
    worst_of_two,
    worst_prior,
)

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.data.prior import Prior
from pmlopt.data.secret import Secret
from pmlopt.model.privacy import (
    MaximalAlphaLeakage,
    RenyiPML,
    Requirement,
    SibsonLeakage,
    Vulnerability,
)
from pmlopt.model.uncertainty import Box, ConvexHull, L1Ball, PriorSet
from pmlopt.model.utility import ExpectedGain
from pmlopt.programs.designs import design
from pmlopt.programs.result import Result
from pmlopt.programs.solving import solve

SLACK = 1e-6
"""How far a program of norms may be off, per unit of the largest gain."""


def finite_order(rng: np.random.Generator) -> Result[Any]:
    """A design under PML of finite order or its mean, about the data, a secret, or over a set of priors."""
    prior, (alpha, epsilon) = _prior(rng), _order(rng)
    form = rng.choice(["each", "mean", "about", "over"])
    gains, mean = random_gains(rng, prior.size), bool(form == "mean")
    privacy: Requirement = (SibsonLeakage if mean else RenyiPML)(alpha, epsilon)
    if form == "about":
        secret, laws = random_secret(rng)
        prior, gains = secret.prior, random_gains(rng, secret.prior.size)
        privacy = RenyiPML(alpha, epsilon, about=secret)
    elif form == "over":
        over, ends = _between_two(rng, prior.pmf)
        privacy = RenyiPML(alpha, epsilon, over=over)
    result = solve(design(prior, privacy, ExpectedGain(gains), gains.shape[1]))
    rows, views = _fractions(result.mechanism.matrix), None
    if form == "about":
        _hold_levels(result, epsilon, (_seen(law, rows, alpha) for law in laws))
        views = [(law.sum(axis=1), law / law.sum(axis=1, keepdims=True)) for law in secret.joint]
    elif form == "over":
        most = np.exp((alpha - 1) * epsilon / alpha)
        worst = [worst_of_two(ends, column, alpha, most)[0] for column in result.mechanism.matrix.T]
        # the ends of the set and the priors between them are rounded
        _hold_levels(
            result,
            epsilon + 1e-13,
            (order_level(exact_prior(Prior(one)), rows, alpha) for one in worst),
        )
        _hold_gain(
            result, gains, lambda: largest_gain_between(prior.pmf, gains, alpha, epsilon, ends)
        )
        return result
    else:
        _hold_levels(result, epsilon, [order_level(exact_prior(prior), rows, alpha, mean=mean)])

    def best() -> tuple[float, float]:
        return (
            largest_gain_of_order(prior.pmf, alpha, epsilon, gains, mean=mean, about=views),
        ) * 2

    _hold_gain(result, gains, best)
    return result


def order_of_every_prior(rng: np.random.Generator) -> Result[Any]:
    """A design under maximal alpha-leakage, beside cuts at priors, its level at the worst one."""
    prior, (alpha, epsilon) = _prior(rng), _order(rng)
    gains = random_gains(rng, prior.size)
    result = solve(
        design(prior, MaximalAlphaLeakage(alpha, epsilon), ExpectedGain(gains), gains.shape[1])
    )
    matrix = result.mechanism.matrix
    laws = (worst_prior(matrix, alpha)[0], *rng.dirichlet(np.ones(prior.size), 3))
    rows, priors = _fractions(matrix), (Prior((law + 1e-12) / (law + 1e-12).sum()) for law in laws)
    levels = (order_level(exact_prior(one), rows, alpha, mean=True) for one in priors)
    _hold_levels(result, epsilon, levels)
    _hold_gain(
        result, gains, lambda: largest_gain_for_every_prior(prior.pmf, gains, alpha, epsilon)
    )
    return result


def average_leakage(rng: np.random.Generator) -> Result[Any]:
    """A design under average g-leakage of the data or a secret, beside the program of its definition."""
    about = bool(rng.random() < 0.4)
    prior, epsilon = _prior(rng), float(rng.choice([0.0, 1e-6, rng.uniform(0, 0.5), 3.0]))
    joints = [np.diag(prior.pmf)]
    secret = None
    if about:
        laws = rng.dirichlet(np.ones(3 * prior.size), int(rng.integers(1, 3)))
        secret = Secret(laws.reshape(len(laws), 3, prior.size))
        prior, joints = secret.prior, list(secret.joint)
    plain = bool(rng.random() < 0.5)
    guessed = len(joints[0])
    gain = np.eye(guessed) if plain else rng.random((int(rng.integers(1, 5)), guessed)) + 1e-3
    requirement = Vulnerability(None if plain else gain, epsilon, secret)
    gains = random_gains(rng, prior.size)
    result = solve(design(prior, requirement, ExpectedGain(gains), gains.shape[1]))
    demand(
        vulnerability.leakage(joints, gain, result.mechanism.matrix) <= epsilon + 1e-12,
        f"average leakage is above {epsilon}",
    )

    def best() -> tuple[float, float]:
        return (vulnerability.largest_gain(prior.pmf, joints, gain, epsilon, gains),) * 2

    _hold_gain(result, gains, best)
    return result


def _prior(rng: np.random.Generator) -> Prior:
    return Prior(rng.dirichlet(np.ones(int(rng.integers(1, 6)))))


def _order(rng: np.random.Generator) -> tuple[float, float]:
    """An order and a level."""
    order = rng.choice([1.2, 2.0, 5.0, 50.0, rng.uniform(1.05, 20)])
    return float(order), float(rng.uniform(0.01, 2))


def _between_two(rng: np.random.Generator, p: FloatArray) -> tuple[PriorSet, FloatArray]:
    """A set of priors around p that is an interval, and its (2, N) ends."""
    if len(p) == 2 and rng.random() < 0.5:
        half = rng.uniform(0, 0.9) * min(p)
        ends = p + half * np.array([[1, -1], [-1, 1]])
        return (
            L1Ball(p, 2 * half) if rng.random() < 0.5 else Box(ends.min(axis=0), ends.max(axis=0))
        ), ends
    other = rng.dirichlet(np.ones(len(p)))
    ends = np.array([p, p + rng.uniform(0, 1) * (other - p)])
    return ConvexHull(ends), ends


def _fractions(matrix: FloatArray) -> list[Weights]:
    """The entries of a matrix, row by row."""
    return [[Fraction(v) for v in row] for row in matrix.tolist()]


def _seen(law: list[Weights], rows: list[Weights], alpha: float) -> Decimal:
    """The level about a secret: that of its own letters, of the mechanism from them to the outputs."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    given = [[dot(share(row), column) for column in columns] for row in law]
    return order_level(share([sum(row, Fraction(0)) for row in law]), given, alpha)


def _hold_levels(result: Result[Any], epsilon: float, levels: Iterable[Decimal]) -> None:
    demand(is_stochastic(result.mechanism.matrix), "a row does not sum to exactly one")
    for level in levels:
        demand(level <= Decimal(epsilon), f"the level is {level}, above {epsilon!r}")
    demand(result.certificate.verify(), "the check fails on what is returned")


def _hold_gain(result: Result[Any], gains: FloatArray, ends: Any) -> None:
    """Value and bound beside what a mechanism is known to reach, and what none betters."""
    size = float(np.abs(gains).max()) or 1.0
    try:
        low, high = ends()
    except cp.SolverError as cause:
        raise UndecidedError(str(cause)) from None
    demand(result.value <= high + SLACK * size, f"the value {result.value} is above {high}")
    demand(result.bound >= low - SLACK * size, f"the bound {result.bound} is below {low}")
