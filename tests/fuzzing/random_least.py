"""Random least epsilons over families of requirements, against a plain bisection over designs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from fuzzing.independent import UndecidedError
from fuzzing.random_designs import demand

from pmlopt import (
    LDP,
    LIP,
    PML,
    EstimationError,
    ExpectedGain,
    ExpectedLoss,
    L1Ball,
    MaximalLeakage,
    MetricPrivacy,
    MinimumMass,
    MutualInformation,
    Prior,
    RenyiPML,
    Result,
    Secret,
    SibsonLeakage,
    design,
    least_leakage,
    solve,
)
from pmlopt.errors import ProgramError, SolverError
from pmlopt.model.privacy import Requirement
from pmlopt.model.utility import ChiSquare, GuessingProbability, TotalVariation, Utility

NEAR = 1e-6
"""How near a least epsilon must be to that of the bisection, in nats."""

WIDTH = 1e-7
"""How far the ends of the bisection are apart."""

FLAT = 1e-9
"""The share of the utility by which the end of a bisection may be undecided."""


@dataclass(frozen=True)
class Problem:
    """A least epsilon that is asked for.

    Attributes:
        prior: N letters.
        family: the requirement at a level.
        utility: what must reach the target.
        reach: the target.
    """

    prior: Prior
    family: Callable[[float], Requirement]
    utility: Utility
    reach: float


FAMILIES: Mapping[str, Callable[[Prior], Callable[[float], Requirement]]] = {
    "pml": lambda p: PML,
    "ball": lambda p: lambda level: PML(level, over=L1Ball(p, 0.1 * p.pmf.min())),
    "masses": lambda p: lambda level: PML(level, over=MinimumMass(p.size, 0.5 * p.pmf.min())),
    "ldp": lambda p: LDP,
    "lip": lambda p: lambda level: LIP(level, level),
    "maximal": lambda p: MaximalLeakage,
    "metric": lambda p: lambda level: MetricPrivacy(level, "absolute"),
    "renyi": lambda p: lambda level: RenyiPML(2.0, level),
    "sibson": lambda p: lambda level: SibsonLeakage(2.0, level),
}
"""Families of requirements, each for a prior."""

OF_COLUMNS = ("pml", "ball", "masses", "ldp", "lip", "metric", "secret", "maximal")
"""Those with listed columns, of which designs of utilities that are not linear are made."""


def random_problem(rng: np.random.Generator) -> Problem:
    """Draw a family, a utility and a target between the best constant and the best there is."""
    size = int(rng.integers(2, 5))
    name = str(rng.choice([*FAMILIES, "secret"]))
    family: Callable[[float], Requirement]
    if name == "secret":
        secret = Secret(rng.dirichlet(np.full(2 * size, 2.0)).reshape(2, size))
        prior, family = secret.prior, partial(PML, about=secret)
    else:
        prior = Prior(rng.dirichlet(np.full(size, 3.0)))
        family = FAMILIES[name](prior)
    kinds = ["gain", "loss"]
    if name in OF_COLUMNS:
        kinds += ["information", "variation", "chi-square", "guess"]
    if name in ("pml", "ldp", "lip"):
        kinds += ["error"]
    utility, low, high = _utility(rng, prior, str(rng.choice(kinds)))
    share = float(rng.choice([0.0, rng.uniform(0.02, 0.98), rng.uniform(0.02, 0.98), 0.999]))
    return Problem(prior, family, utility, low + share * (high - low))


def _utility(rng: np.random.Generator, prior: Prior, kind: str) -> tuple[Utility, float, float]:
    """Draw a utility, and return it with its values at the best constant and at the best there is."""
    p, n = prior.pmf, prior.size
    if kind in ("gain", "loss"):
        table = rng.random((n, n)) + np.eye(n)
        if kind == "gain":
            return ExpectedGain(table), float((p @ table).max()), float(p @ table.max(axis=1))
        return ExpectedLoss(-table), -float((p @ table).max()), -float(p @ table.max(axis=1))
    if kind == "error":
        error = EstimationError()
        best = error.value(prior, np.eye(n))
        return error, best * float(rng.uniform(3, 40)), best * 1.05
    known: Mapping[str, Any] = {
        "information": MutualInformation,
        "variation": TotalVariation,
        "chi-square": ChiSquare,
        "guess": GuessingProbability,
    }
    utility = known[kind]()
    return utility, utility.value(prior, np.full((n, n), 1 / n)), utility.value(prior, np.eye(n))


def best_at(problem: Problem, level: float) -> float:
    """Return by how much the best design of a level exceeds the target; negative where it is short of it."""
    sign = 1.0 if problem.utility.maximised else -1.0
    try:
        found = solve(
            design(problem.prior, problem.family(level), problem.utility), tolerance=1e-11
        )
    except SolverError as error:
        raise UndecidedError(str(error)) from None
    except ProgramError:  # no mechanism of this level allows the estimate
        return -math.inf
    return sign * (found.value - problem.reach)


def bisected(problem: Problem) -> tuple[float, float]:
    """Return two levels `WIDTH` apart, of which designs are short of the target at the first only.

    Nothing is used but `design` and its values: no bound, no slope, no start.
    """
    low, high = 0.0, 1.0
    while best_at(problem, high) < 0:
        low, high = high, 2 * high
        if high > 100:
            raise UndecidedError("no level up to 100 reaches the target")
    while high - low > WIDTH:
        middle = (low + high) / 2
        low, high = (low, middle) if best_at(problem, middle) >= 0 else (middle, high)
    return low, high


def least_epsilon(rng: np.random.Generator) -> Result[Any]:
    """A least epsilon of any family and utility, beside a bisection over designs."""
    return checked(random_problem(rng))


def checked(problem: Problem) -> Result[Any]:
    """Return the least epsilon of a problem, held against the bisection and the returned matrix."""
    program = least_leakage(problem.prior, problem.family, problem.utility, problem.reach)
    result = solve(program)
    sign = 1.0 if problem.utility.maximised else -1.0
    rounding = 1e-10 * max(1.0, abs(problem.reach))
    reached = sign * (problem.utility.value(problem.prior, result.mechanism) - problem.reach)
    demand(reached >= -rounding, f"the mechanism misses the target by {-reached}")
    demand(
        problem.family(result.value + 1e-12).holds(problem.prior, result.mechanism),
        f"the mechanism exceeds its level {result.value}",
    )
    demand(result.certificate.verify(), f"the certificate fails: {result.certificate.failures}")
    low, high = bisected(problem)
    demand(result.bound <= high, f"the bound {result.bound} is above a level that reaches: {high}")
    # a lower level is no fault: its mechanism reaches the target, where designs miss it by rounding
    if result.value - high > NEAR and not _is_flat(problem, result.value, high):
        demand(False, f"the least level is {result.value}, and by bisection {high} (from {low})")
    return result


def _is_flat(problem: Problem, one: float, other: float) -> bool:
    """Return whether the utility at two levels differs by rounding only, so that nothing tells them apart."""
    scale = max(1.0, abs(problem.reach))
    return abs(best_at(problem, one) - best_at(problem, other)) <= FLAT * scale
