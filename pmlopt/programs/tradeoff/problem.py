"""Problems 2 and 3 of ENT: the data, the closed-form ends, and how a mechanism is made feasible."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.arrays import FloatArray, Label
from pmlopt.errors import InfeasibleError
from pmlopt.mechanism import Mechanism
from pmlopt.programs.tradeoff.certificate import TradeoffProof, tradeoff_bound
from pmlopt.programs.tradeoff.relaxation import Sense, Tradeoff
from pmlopt.queries import Orbits, Query, orbits
from pmlopt.queries.distortion import loss_table

SAME = 1e-12
"""A limit within this share of an end is that end."""


@dataclass(frozen=True, eq=False)
class Task:
    """What is minimised, within which limit, against whom.

    Attributes:
        orbits: the classes of datasets that the mechanism tells apart.
        outputs: its M outputs.
        losses: (K, M) the probability of each class times d(f, y).
        entropy: b, in nats.
        sense: "leakage" (Problem 2) or "distortion" (Problem 3).
        limit: D, or L in nats.
    """

    orbits: Orbits
    outputs: tuple[Label, ...]
    losses: FloatArray
    entropy: float
    sense: Sense
    limit: float

    @cached_property
    def tradeoff(self) -> Tradeoff:
        """The losses; at the least distortion, rows on their cheapest outputs alone."""
        if self.sense == "leakage" and self.limit <= self.least * (1 + SAME):
            cheap = self.losses.min(axis=1, keepdims=True)
            return Tradeoff(self.losses, self.losses <= cheap * (1 + SAME))
        return Tradeoff(self.losses, np.ones(self.losses.shape, dtype=bool))

    @property
    def least(self) -> float:
        """The least expected distortion of all mechanisms."""
        return math.fsum(self.losses.min(axis=1).tolist())

    @property
    def trivial(self) -> float:
        """The least expected distortion of a constant, which leaks nothing."""
        return float(self.losses.sum(axis=0).min())

    @cached_property
    def cheapest(self) -> FloatArray:
        """(K, M) each class's output of the least loss, the first of equals."""
        matrix = np.zeros(self.losses.shape)
        matrix[np.arange(len(matrix)), self.losses.argmin(axis=1)] = 1.0
        return matrix

    @cached_property
    def constant(self) -> FloatArray:
        """(K, M) the best output for all classes."""
        matrix = np.zeros(self.losses.shape)
        matrix[:, int(self.losses.sum(axis=0).argmin())] = 1.0
        return matrix

    @property
    def floor(self) -> float:
        """What is spent in any case: the least distortion, or no leakage."""
        return self.least if self.sense == "distortion" else 0.0

    def bound(self, proof: TradeoffProof) -> float:
        """What no mechanism can better; at least the distortion that is spent in any case."""
        return max(self.floor, tradeoff_bound(self.tradeoff, self.sense, self.limit, proof))

    def repaired(self, matrix: FloatArray) -> FloatArray:
        """The mechanism nearest to a solver's matrix; in Problem 2 mixed until its distortion is within D."""
        found = np.where(self.tradeoff.allowed, np.maximum(matrix, 0.0), 0.0)
        found = np.where(found > 1e-12, found, 0.0)
        found /= found.sum(axis=1, keepdims=True)
        if self.sense == "distortion":
            return found
        return self._within(found)

    def _within(self, matrix: FloatArray) -> FloatArray:
        """Mixed with the cheapest mechanism as far as the limit on the distortion needs."""
        if not self.tradeoff.allowed.all():  # all that is allowed is as cheap, up to rounding
            return matrix
        spent = self.tradeoff.distortion(matrix)
        if spent <= self.limit:
            return matrix
        share = (spent - self.limit) / max(spent - self.least, 1e-300)
        for more in (0.0, 1e-15, 1e-14, 1e-13, 1e-12):
            mixed = self.mixed(matrix, self.cheapest, min(1.0, share + more))
            if self.tradeoff.distortion(mixed) <= self.limit:
                return mixed
        return self.cheapest

    @staticmethod
    def mixed(matrix: FloatArray, other: FloatArray, share: float) -> FloatArray:
        """Both, the other with a probability."""
        return np.asarray((1 - share) * matrix + share * other)

    def mechanism(self, matrix: FloatArray) -> Mechanism:
        """With the labels of the classes and outputs."""
        return Mechanism(matrix, self.orbits.query.values, self.outputs)


def task_of(
    query: Query, loss: ArrayLike | None, law: ArrayLike | None, entropy: float, sense: Sense, limit: float
) -> Task:
    """The data of a problem from what a person gives.

    Raises:
        UtilityError: the loss is no matrix with a row for each value of the query, or is negative.
        QueryError: the values are not numbers and no loss is given.
        PriorError: the law is none.
    """
    table, outputs = loss_table(query, loss)
    classes = orbits(query, law)
    losses = classes.masses[:, None] * table[classes.values]
    return Task(classes, outputs, losses, entropy, sense, limit)


def check_feasible(task: Task) -> None:
    """Raise an InfeasibleError where no mechanism has so small a distortion."""
    if task.sense == "leakage" and task.limit < task.least * (1 - SAME):
        raise InfeasibleError(
            f"no mechanism has an expected distortion of {task.limit!r} or less: the least is {task.least!r}"
        )
