"""ENT's Algorithm 1: alternating optimisation over all datasets, with restarts."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from pmlopt.arrays import FloatArray, IntArray, whole
from pmlopt.backends.outcome import Options
from pmlopt.errors import PrivacyError, QueryError
from pmlopt.programs.record_leakage.adversary import Adversary
from pmlopt.programs.record_leakage.alternating_steps import (
    best_units,
    conditional_step,
    entropies,
    information,
    marginal_step,
    outputs,
)
from pmlopt.programs.record_leakage.certificate import RecordCertificate
from pmlopt.queries import Query, RecordChannel
from pmlopt.result import RecordResult, Status, Timings

LARGEST = 2**14
"""Datasets that the alternating method takes at most: it goes through all of them."""
_ROUNDS = 60


@dataclass(frozen=True)
class LocalOptimum:
    """A prior of the dataset, and the record that it leaks most of."""

    value: float
    prior: FloatArray
    record: int


def alternating(
    channel: RecordChannel, entropy: float, options: Options, seed: int, restarts: int
) -> RecordResult:
    """The best of several runs of Algorithm 1, each from a random prior within the entropy bound.

    See `record_leakage`. Nothing is proved: the bound is infinite.
    """
    begin = time.perf_counter()
    count = whole(restarts, "the number of restarts", PrivacyError)
    check_listed(channel.query)
    deadline = math.inf if options.time_limit is None else begin + options.time_limit
    table = channel.table()
    climb = Climb(table, channel.rows[table], entropy, options.tolerance)
    random = np.random.default_rng(seed)
    found: list[LocalOptimum] = []
    while len(found) < count and (not found or time.perf_counter() < deadline):
        found.append(climb.run(random))
    best = max(found, key=lambda one: one.value)
    adversary = Adversary(channel.rows, channel.log_counts(best.record), entropy, channel.query.log_size)
    joint = adversary.allowed(joint_of(best.prior, best.record, table))
    seconds = time.perf_counter() - begin
    certificate = RecordCertificate(
        mechanism=channel.mechanism,
        value=adversary.leaked(joint),
        bound=math.inf,
        gap=math.inf,
        channel=channel,
        entropy=entropy,
        record=best.record,
        joint=joint,
        proofs=(),
    )
    return RecordResult(
        status=Status.UNPROVED if len(found) == count else Status.STOPPED,
        certificate=certificate,
        solver="alternating",
        reason=f"ENT's Algorithm 1, the best of {len(found)} starts: a local optimum, and no bound",
        attempts=(),
        iterations=len(found),
        warm_started=False,
        timings=Timings(compile=0.0, solve=seconds, certify=0.0, total=seconds),
        closed_form=None,
    )


@dataclass(frozen=True)
class Climb:
    """Algorithm 1 on one mechanism.

    Attributes:
        table: (k_1, ..., k_n) the class of every dataset.
        rows: (k_1, ..., k_n, M) its row.
    """

    table: IntArray
    rows: FloatArray
    entropy: float
    tolerance: float

    def run(self, random: np.random.Generator) -> LocalOptimum:
        """From one random prior to where no record's step gains."""
        best = LocalOptimum(-math.inf, self._start(random), -1)
        for _ in range(_ROUNDS):
            last = best.value
            for record in range(self.table.ndim):
                tried = self._steps(best.prior, record)
                if tried.value > best.value:
                    best = tried
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
        low, high = 0.0, 1.0
        if float(entropies(prior)) < self.entropy:
            for _ in range(60):
                middle = (low + high) / 2
                mixed = middle / size + (1 - middle) * prior
                low, high = (low, middle) if float(entropies(mixed)) >= self.entropy else (middle, high)
            prior = high / size + (1 - high) * prior
        return np.asarray(prior.reshape(self.table.shape))


def joint_of(prior: FloatArray, record: int, table: IntArray) -> FloatArray:
    """(A, T) the law of (X_i, T) under a prior of the dataset, T the class in a table."""
    letters = np.indices(table.shape, dtype=int)[record]
    joint = np.zeros((table.shape[record], int(table.max()) + 1))
    np.add.at(joint, (letters.ravel(), table.ravel()), prior.ravel())
    return np.asarray(joint / joint.sum())


def check_listed(query: Query) -> None:
    """Complain where there are too many datasets to go through."""
    if query.log_size > math.log(LARGEST) + 1e-9:
        raise QueryError(
            f"this method goes through all e^{query.log_size:.6g} datasets, and takes at most {LARGEST:,}: "
            "use the exact method"
        )
