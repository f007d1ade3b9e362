"""Random releases: envelopes, leakage per record and trade-offs, held against sums over all datasets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from fuzzing.independent import largest_gain, leaking_mass, to_means
from fuzzing.random_designs import demand, random_prior
from oracles import records
from oracles.designs import exact_prior

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.data.prior import Prior
from pmlopt.model import queries
from pmlopt.model.utility import ExpectedGain
from pmlopt.programs.envelope.program import envelope as envelope_of
from pmlopt.programs.envelope_design.program import envelope_design
from pmlopt.programs.record_leakage.program import record_leakage as leakage_of
from pmlopt.programs.result import Result
from pmlopt.programs.solving import solve
from pmlopt.programs.tradeoff.builders import distortion_leakage, leakage_distortion

SLACK = 1e-6
"""How far sums in floats and a solver may be off, in nats and in probability."""

DIGITS = 1e-12
"""The share by which an exponential and sums in floats may be off."""

PRIORS = 20
"""Random priors of the dataset that each claim about records is held against."""


def envelope(rng: np.random.Generator) -> Result[Any]:
    """An envelope of a random channel, some entries zero, between two linear programs in fractions."""
    prior = random_prior(rng, int(rng.integers(2, 6)))
    outputs = int(rng.integers(2, 7))
    matrix = _channel(rng, prior.size, outputs)
    delta = float(rng.choice([1e-12, 1e-6, 0.01, 0.5, rng.uniform(0.01, 0.99)]))
    result = solve(envelope_of(prior, matrix, delta))
    demand(result.certificate.verify(), "the exact check fails")
    demand(
        result.value <= result.bound, f"the value {result.value} is above the bound {result.bound}"
    )
    below, above = math.exp(result.value) * (1 - DIGITS), math.exp(result.bound) * (1 + DIGITS)
    reached = leaking_mass(prior, matrix, max(1.0, below))
    demand(
        reached >= delta, f"at the value only {float(reached)} leaks as much, and delta is {delta}"
    )
    left = leaking_mass(prior, matrix, above)
    demand(left < delta, f"past the bound {float(left)} still leaks as much, and delta is {delta}")
    attacked = matrix @ result.certificate.attack.matrix
    law = prior.pmf @ attacked
    bad = (attacked >= below * law).any(axis=0)
    told = float(law[bad].sum())
    demand(told >= delta * (1 - DIGITS), f"the attack leaks as much with probability {told} only")
    for _ in range(3):
        processed = matrix @ _channel(rng, outputs, int(rng.integers(2, 5)))
        law = prior.pmf @ processed
        bad = (processed > above * law).any(axis=0)
        most = delta * (1 + DIGITS)
        demand(law[bad].sum() <= most, "a random post-processing leaks more than the bound")
    return result


def designed_envelope(rng: np.random.Generator) -> Result[Any]:
    """A design within an envelope: what leaks more, in fractions, and the bound beside designs within PML."""
    n = int(rng.integers(2, 4))
    prior, gains = Prior(rng.dirichlet(np.full(n, 2.0))), rng.random((n, int(rng.integers(2, 4))))
    epsilon, delta = (
        float(rng.uniform(0.05, 0.9) * prior.max_leakage),
        float(rng.uniform(0.01, 0.3)),
    )
    result = solve(envelope_design(prior, epsilon, delta, ExpectedGain(gains)))
    demand(result.certificate.verify(), "the check of the proof fails")
    matrix = result.mechanism.matrix
    more = leaking_mass(prior, matrix, math.exp(epsilon) * (1 + DIGITS))
    demand(
        more <= delta,
        f"more than epsilon leaks with probability {float(more)}, and delta is {delta}",
    )
    own = float((prior.pmf[:, None] * gains * matrix).sum())
    demand(abs(own - result.value) <= SLACK, f"the value is {result.value}, of the matrix {own}")
    least = largest_gain(prior.pmf, to_means([exact_prior(prior)], epsilon), gains)
    demand(
        result.value >= least - SLACK, f"PML alone gains {least}, and the value is {result.value}"
    )
    for _ in range(5):
        other = _channel(rng, n, gains.shape[1])
        gained = float((prior.pmf[:, None] * gains * other).sum())
        if leaking_mass(prior, other, math.exp(epsilon)) <= delta:
            demand(gained <= result.bound + SLACK, f"a mechanism gains {gained}, above the bound")
    return result


def record_leakage(rng: np.random.Generator) -> Result[Any]:
    """The leakage per record of a random mechanism, between its own worst prior and random ones."""
    query = _query(rng)
    mechanism = _channel(rng, len(query.values), int(rng.integers(2, 4)))
    least = float(rng.uniform(0, 0.98) * query.log_size)
    result = solve(leakage_of(query, mechanism, least), tolerance=1e-4, time_limit=20)
    demand(result.certificate.verify(), "the check of the proof fails")
    channel = mechanism[query.table()]
    worst = result.certificate.prior()
    demand(abs(worst.sum() - 1) <= SLACK, f"the worst prior sums to {worst.sum()}")
    uncertain = records.entropy(worst)
    demand(
        uncertain >= least - SLACK, f"the worst prior has the entropy {uncertain}, and b is {least}"
    )
    told = records.information(_datasets(channel), result.certificate.record, worst.ravel())
    near = abs(told - result.value) <= SLACK
    demand(near, f"the worst prior leaks {told}, and the value is {result.value}")
    _check_bound(rng, channel, least, result.bound)
    return result


def tradeoff(rng: np.random.Generator) -> Result[Any]:
    """A trade-off on a small query: the mechanism's own claims, and the bound beside other mechanisms."""
    query = _query(rng, largest=3)
    least = float(rng.uniform(0, 0.98) * query.log_size)
    values = np.asarray(query.values, dtype=float)
    loss = np.abs(np.subtract.outer(values, values))
    masses = np.bincount(query.table().ravel(), minlength=len(values)) / query.table().size
    trivial = float((masses @ loss).min())
    if rng.random() < 0.5:
        limit = float(rng.uniform(0, 1.1) * trivial)
        result = solve(leakage_distortion(query, limit, least), tolerance=1e-3, time_limit=20)
        reached = result.certificate.distortion
    else:
        limit = float(rng.uniform(0, 1) * math.log(2))
        result = solve(distortion_leakage(query, limit, least), tolerance=1e-3, time_limit=20)
        reached = result.certificate.leakage
    demand(reached <= limit + SLACK, f"{reached} is above the limit {limit}")
    demand(result.certificate.verify(), "the check of the proof fails")
    matrix = result.mechanism.matrix
    channel = matrix[query.table()] if len(matrix) == len(values) else _by_dataset(result)
    own = float((channel * loss[query.table()]).sum() / query.table().size)
    demand(
        abs(own - result.certificate.distortion) <= SLACK, f"the matrix has the distortion {own}"
    )
    _check_bound(rng, channel, least, result.certificate.leakage)
    other = _channel(rng, len(values), len(values))
    if result.certificate.sense == "leakage":
        spent = float(masses @ (other * loss).sum(axis=1))
        share = min(1.0, limit / spent) if spent > 0 else 1.0
        tried = (1 - share) * np.eye(len(values)) + share * other
        leaked = solve(leakage_of(query, tried, least), tolerance=1e-3, time_limit=20).bound
        demand(
            result.bound <= leaked + SLACK,
            f"a mechanism leaks {leaked}, below the bound {result.bound}",
        )
    else:
        best = loss[:, (masses @ loss).argmin()]
        demand(
            result.bound <= float(masses @ best) + SLACK, "a constant distorts less than the bound"
        )
    return result


def _by_dataset(result: Result[Any]) -> FloatArray:
    """q(y|x) for every dataset."""
    query = result.certificate.audit.channel.query
    rows = result.certificate.by_dataset().matrix
    return np.asarray(rows.reshape(*query.alphabets, rows.shape[1]))


def _check_bound(rng: np.random.Generator, channel: FloatArray, least: float, bound: float) -> None:
    """That no random prior with the entropy leaks more about any record than the bound."""
    data = _datasets(channel)
    for _ in range(PRIORS):
        spread = float(rng.choice([0.05, 0.3, 1.0]))
        law = records.feasible(rng.dirichlet(np.full(len(data.rows), spread)), least)
        for record in range(channel.ndim - 1):
            told = records.information(data, record, law)
            demand(
                told <= bound + SLACK, f"a prior leaks {told} about record {record}, above {bound}"
            )


def _datasets(channel: FloatArray) -> records.Datasets:
    """A mechanism (k_1, ..., k_n, M), dataset by dataset."""
    return records.datasets(channel.shape[:-1], channel.reshape(-1, channel.shape[-1]))


def _query(rng: np.random.Generator, largest: int = 4) -> queries.Query:
    records = int(rng.integers(1, largest + 1))
    kind = rng.integers(3)
    if kind == 0:
        return queries.ModularSum(records, int(rng.integers(2, 4)), int(rng.integers(2, 4)))
    if kind == 1:
        return queries.Weight(records)
    return queries.Quadratic(records)


def _channel(rng: np.random.Generator, rows: int, columns: int) -> FloatArray:
    """Random rows, in half of all cases with zeros."""
    matrix = rng.dirichlet(np.full(columns, float(rng.choice([0.3, 1.0]))), rows)
    if rng.random() < 0.5:
        kept = np.where(rng.random(matrix.shape) < 0.3, 0.0, matrix)
        kept[np.arange(rows), rng.integers(0, columns, rows)] += 0.1
        matrix = kept / kept.sum(axis=1, keepdims=True)
    return np.asarray(matrix)
