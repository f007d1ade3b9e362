"""Banded designs from the definitions: the laws of each set one by one, and dense linear programs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from oracles.designs import FloatArray, linear_program

from pmlopt import LDP, LIP, PML, AllPriors, Box, ConvexHull, L1Ball, MinimumMass, Prior
from pmlopt.model.privacy import Requirement
from pmlopt.model.uncertainty import PriorSet

KINDS = (
    "pml",
    "ldp",
    "lip",
    "ball",
    "other centre",
    "all by ball",
    "mass",
    "all",
    "one law",
    "box",
)
"""The requirements that are bands."""


@dataclass(frozen=True, eq=False)
class Shape:
    """What a requirement asks of a column v, written out.

    Attributes:
        laws: (K, N) `max v <= e^epsilon <Q, v>` for each row Q: the extreme points of the set.
        prior: (N,) of the design.
        lower: `<prior, v> <= e^lower min v`, or None.
    """

    laws: FloatArray
    prior: FloatArray
    lower: float | None = None


@dataclass(frozen=True, eq=False)
class Bounded:
    """A requirement of a kind, and what it says."""

    kind: str
    prior: Prior
    shape: Shape
    over: PriorSet | None = None

    def at(self, epsilon: float, lower: float = 1.0) -> Requirement:
        """The requirement at a level."""
        if self.kind == "ldp":
            return LDP(epsilon)
        if self.kind == "lip":
            return LIP(lower, epsilon)
        return PML(epsilon, self.over)


def bounded(
    kind: str, prior: Prior, rng: np.random.Generator, share: float | None = None
) -> Bounded:
    """A requirement of a kind; `share`: of the largest radius or least mass that is of the kind."""
    p, n = prior.pmf, prior.size
    unit = np.eye(n)
    portion = float(rng.uniform(0.05, 0.95)) if share is None else share
    law = np.asarray((rng.dirichlet(np.ones(n)) + 0.05) / (1 + 0.05 * n))
    law = law / math.fsum(law)
    if kind in ("pml", "lip"):
        return Bounded(kind, prior, Shape(p[None, :], p, 1.0 if kind == "lip" else None))
    if kind == "ldp":
        return Bounded(kind, prior, Shape(unit, p))
    if kind == "ball":
        half = portion * float(p.min())
        moves = [half * (unit[x] - unit[z]) for x in range(n) for z in range(n)]
        return Bounded(kind, prior, Shape(p + np.array(moves), p), L1Ball(prior, 2 * half))
    if kind == "other centre":
        return Bounded(kind, prior, Shape(law[None, :], p), L1Ball(law, 0.0))
    if kind == "all by ball":
        return Bounded(kind, prior, Shape(unit, p), L1Ball(prior, 2.0))
    if kind == "mass":
        mass = portion / n
        return Bounded(kind, prior, Shape(mass + (1 - n * mass) * unit, p), MinimumMass(n, mass))
    if kind == "all":
        return Bounded(kind, prior, Shape(unit, p), AllPriors(n))
    if kind == "one law":
        return Bounded(kind, prior, Shape(law[None, :], p), ConvexHull([law]))
    low = portion * law
    return Bounded(kind, prior, Shape(low + (1 - portion) * unit, p), Box(low, np.ones(n)))


def least_cost(shape: Shape, costs: FloatArray, epsilon: float, lower: float = 1.0) -> float:
    """min <costs, P> over the mechanisms that meet the requirement: an LP with the maxima of the columns."""
    n, m = costs.shape
    keep, k = math.exp(-epsilon), len(shape.laws)
    # the variables are P, row by row, and then the maxima
    tops = np.hstack([np.eye(n * m), -np.tile(np.eye(m), (n, 1))])
    means = np.hstack([-np.kron(shape.laws, np.eye(m)), keep * np.tile(np.eye(m), (k, 1))])
    rows = np.vstack([tops, means])
    if shape.lower is not None:
        floor = math.exp(-lower) * np.kron(np.tile(shape.prior, (n, 1)), np.eye(m)) - np.eye(n * m)
        rows = np.vstack([rows, np.hstack([floor, np.zeros((n * m, m))])])
    sums = np.hstack([np.kron(np.eye(n), np.ones((1, m))), np.zeros((n, m))])
    cost = np.concatenate([costs.ravel(), np.zeros(m)])
    return float(
        linear_program(cost, A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=sums, b_eq=np.ones(n)).fun
    )


def support(shape: Shape, costs: FloatArray, keep: float) -> float:
    """max <costs, v> over one column with `keep max v <= <Q, v>` for each law and a mean of one."""
    n, k = len(costs), len(shape.laws)
    tops = np.hstack([np.eye(n), -np.ones((n, 1))])
    means = np.hstack([-shape.laws, np.full((k, 1), keep)])
    mean = np.append(shape.prior, 0.0)[None, :]
    rows = np.vstack([tops, means])
    answer = linear_program(
        np.append(-costs, 0.0), A_ub=rows, b_ub=np.zeros(n + k), A_eq=mean, b_eq=[1.0]
    )
    return -float(answer.fun)
