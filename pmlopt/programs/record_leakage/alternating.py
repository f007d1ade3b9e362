"""Alternating optimisation of a record's leakage over all datasets, with restarts: local optima.

Source: [wu2026entropy, Algorithm 1].
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pmlopt.arrays import FloatArray, IntArray
from pmlopt.backends.clock import FOREVER, Clock
from pmlopt.backends.outcome import Options
from pmlopt.errors import SolverUnavailableError
from pmlopt.programs.question import Found
from pmlopt.programs.record_leakage.adversary import Adversary
from pmlopt.programs.record_leakage.alternating_steps import (
    best_units,
    conditional_step,
    entropies,
    information,
    least_share,
    marginal_step,
    outputs,
)
from pmlopt.programs.record_leakage.certificate import RecordCertificate
from pmlopt.programs.record_leakage.exact_leakage import restart_name
from pmlopt.queries import Query, RecordChannel

LARGEST_LISTED = 2**14
"""Datasets that the alternating method takes at most: it goes through all of them."""
MAX_ROUNDS = 60
"""Rounds of Algorithm 1 over all records, at most: it ends when a round gains less than the tolerance."""


@dataclass(frozen=True)
class LocalOptimum:
    """A prior of the dataset, and the record that it leaks most of."""

    value: float
    prior: FloatArray
    record: int


def alternating(
    channel: RecordChannel, entropy: float, options: Options, seed: int, restarts: int
) -> Found[RecordCertificate]:
    """The best of several runs of Algorithm 1, each from a random prior within the entropy bound.

    Nothing is proved: the bound is infinite.

    Raises:
        SolverUnavailableError: there are more datasets than it can go through.
    """
    begin = time.perf_counter()
    check_listed(channel.query)
    clock = options.clock
    table = channel.table()
    climb = Climb(table, channel.rows[table], entropy, options.tolerance, clock)
    random = np.random.default_rng(seed)
    found = runs([climb] * restarts, random)
    best = max(found, key=lambda one: one.value)
    adversary = Adversary(channel.rows, channel.log_counts(best.record), entropy, channel.query.log_size)
    joint = adversary.allowed(joint_of(best.prior, best.record, table))
    certificate = RecordCertificate(
        mechanism=channel.mechanism,
        value=adversary.leaked(joint),
        bound=math.inf,
        channel=channel,
        entropy=entropy,
        record=best.record,
        joint=joint,
        proofs=(),
    )
    return Found(
        certificate=certificate,
        finished=len(found) == restarts and not clock.late,
        message=f"ended at the best of {len(found)} starts",
        detail=f"the best of {len(found)} starts",
        iterations=len(found),
        solve_seconds=time.perf_counter() - begin,
        arrays={restart_name(best.record): joint},
    )


@dataclass(frozen=True)
class Climb:
    """Algorithm 1 on one mechanism.

    Attributes:
        table: (k_1, ..., k_n) the class of every dataset.
        rows: (k_1, ..., k_n, M) its row.
        entropy: b, in nats.
        tolerance: the rise of the leakage in a round, in nats, at which to stop.
        clock: what is left of the time, after which the step under way is the last.
        first: (k_1, ..., k_n) a prior within the entropy bound to start from; left out, a random one.
    """

    table: IntArray
    rows: FloatArray
    entropy: float
    tolerance: float
    clock: Clock = FOREVER
    first: FloatArray | None = None

    def run(self, random: np.random.Generator) -> LocalOptimum:
        """From one prior to where no record's step gains."""
        first = self._start(random) if self.first is None else self.first
        best = LocalOptimum(-math.inf, first, -1)
        for _ in range(MAX_ROUNDS):
            last = best.value
            for record in range(self.table.ndim):
                tried = self._steps(best.prior, record)
                if tried.value > best.value:
                    best = tried
                if self.clock.late:
                    return best
            if best.value - last < self.tolerance:
                break
        return best

    def _steps(self, prior: FloatArray, record: int) -> LocalOptimum:
        """The marginal, then the conditional step for one record."""
        size = self.table.shape[record]
        joint = np.moveaxis(prior, record, 0).reshape(size, -1)
        channel = np.moveaxis(self.rows, record, 0).reshape(size, joint.shape[1], -1)
        letters = joint.sum(axis=1)
        others = np.where(
            letters[:, None] > 0, joint / np.where(letters > 0, letters, 1.0)[:, None], 1 / joint.shape[1]
        )
        accuracy = self.tolerance / 10
        letters = marginal_step(
            letters, outputs(others, channel), entropies(others), self.entropy, tolerance=accuracy
        )
        if self.entropy > float(entropies(letters)):
            others = conditional_step(letters, others, channel, self.entropy, tolerance=accuracy)
        else:
            others = best_units(letters, channel)
        value = information(letters, outputs(others, channel))
        shape = (size, *(k for place, k in enumerate(self.table.shape) if place != record))
        moved = np.moveaxis((letters[:, None] * others).reshape(shape), 0, record)
        return LocalOptimum(value, moved, record)

    def _start(self, random: np.random.Generator) -> FloatArray:
        """A random prior, mixed with the uniform one until its entropy is b."""
        size = self.table.size
        prior = random.dirichlet(np.full(size, 10.0 ** random.uniform(-1.5, 0)))

        def surplus(share: float) -> float:
            return float(entropies(share / size + (1 - share) * prior)) - self.entropy

        share = least_share(surplus)
        prior = share / size + (1 - share) * prior
        return np.asarray(prior.reshape(self.table.shape))


def runs(climbs: Iterable[Climb], random: np.random.Generator) -> list[LocalOptimum]:
    """Where each climb ends; those after its clock are left out, the first never."""
    found: list[LocalOptimum] = []
    for climb in climbs:
        found.append(climb.run(random))
        if climb.clock.late:
            break
    return found


def joint_of(prior: FloatArray, record: int, table: IntArray) -> FloatArray:
    """(A, T) the law of (X_i, T) under a prior of the dataset, T the class in a table."""
    letters = np.indices(table.shape, dtype=int)[record]
    joint = np.zeros((table.shape[record], int(table.max()) + 1))
    np.add.at(joint, (letters.ravel(), table.ravel()), prior.ravel())
    return np.asarray(joint / joint.sum())


def check_listed(query: Query) -> None:
    """Raise a SolverUnavailableError where there are too many datasets to go through."""
    if query.log_size > math.log(LARGEST_LISTED) + 1e-9:
        raise SolverUnavailableError(
            f"this method goes through all e^{query.log_size:.6g} datasets, and takes at most "
            f"{LARGEST_LISTED:,}: use branch-and-bound"
        )
