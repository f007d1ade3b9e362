"""No trade-off is worse than mechanisms with a row for each value; many records; time limits; no leakage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracles.designs import FloatArray
from scipy.optimize import linprog

from pmlopt import distortion_leakage, leakage_distortion, record_leakage, solve
from pmlopt.model.queries import Explicit, ModularSum, Quadratic, Query, Weight, expected_distortion
from pmlopt.programs import Status
from pmlopt.programs.tradeoff.grouped_rows import MOST_GROUPS, families, searched_rows, within_distortion

LOG2 = math.log(2)


def majority(records: int) -> Weight:
    return Weight(records, lambda weight: int(2 * weight > records))


@pytest.mark.parametrize("seed", range(4))
def test_small_queries_are_never_worse_than_a_row_for_each_value(seed: int) -> None:
    """Random queries, losses and laws: random mechanisms of the distortion D, and those of both families."""
    random = np.random.default_rng(seed)
    shape = [(2, 2), (2, 3), (3, 2), (2, 2)][seed]
    query = Explicit(random.integers(0, 3, shape))
    outputs = len(query.values)
    law = random.dirichlet(np.ones(math.prod(shape))).reshape(shape)
    loss = random.uniform(0, 1, (outputs, outputs)) * (1 - np.eye(outputs))
    entropy = random.uniform(0, query.log_size)
    trivial = expected_distortion(query, np.full((outputs, outputs), 1 / outputs), loss, law)
    program = leakage_distortion(query, 0.4 * trivial, entropy, loss=loss, law=law)
    result = solve(program, gap=1e-3)
    coarse = searched_rows(program)[0]
    rivals = [within_distortion(coarse, family)[coarse.first] for family in families(coarse)]
    noise = random.dirichlet(np.ones(outputs), outputs)
    share = min(1.0, 0.4 * trivial / expected_distortion(query, noise, loss, law))
    rivals.append((1 - share) * np.eye(outputs) + share * noise)
    for rows in rivals:
        assert expected_distortion(query, rows, loss, law) <= 0.4 * trivial * (1 + 1e-9)
        assert result.value <= solve(record_leakage(query, rows, entropy), gap=1e-3).bound + 1e-3


MANY: list[tuple[Query, float, float]] = [
    (ModularSum(30, 3), 0.2, 18.0),
    (ModularSum(100, 3), 0.2, 99.5 * LOG2),
    (ModularSum(1000, 3), 0.2, 999.5 * LOG2),
    (majority(300), 0.1, 299.5 * LOG2),
    (majority(10_000), 0.1, 9999.5 * LOG2),
]


@pytest.mark.parametrize(("query", "distortion", "entropy"), MANY)
def test_many_records_in_little_time(query: Query, distortion: float, entropy: float) -> None:
    """Never worse than what one relaxation proves of the symmetric channel, and with a bound."""
    program = leakage_distortion(query, distortion, entropy)
    rows = searched_rows(program)[0]
    symmetric = within_distortion(rows, families(rows)[0])[rows.first]
    quick = solve(record_leakage(query, symmetric, entropy), time_limit=1e-3)
    result = solve(program, time_limit=0.1)
    assert result.value <= quick.bound + 1e-6
    assert 0.1 < result.bound <= result.value
    assert result.certificate.violation == 0
    assert result.mechanism.matrix.shape[0] == len(program.losses)


def test_many_classes_share_rows() -> None:
    """Groups refine the values, are few, and have about the same probability."""
    program = leakage_distortion(majority(2001), 0.1, 10.0)
    coarse, fine = searched_rows(program)
    assert coarse.count == 2
    assert coarse.count < fine.count <= MOST_GROUPS
    for group in range(fine.count):
        assert len(np.unique(program.orbits.values[fine.groups == group])) == 1
    assert fine.tradeoff.losses.sum(axis=0) == pytest.approx(program.losses.sum(axis=0))
    joint = np.random.default_rng(0).dirichlet(np.ones(2 * fine.count)).reshape(2, -1)
    joint[np.isneginf(fine.log_counts[0])] = 0
    joint /= joint.sum()
    assert fine.merged(fine.spread(joint, 0)) == pytest.approx(joint, abs=1e-12)


def silent_optimum(query: Query) -> float:
    """The least distortion of a mechanism on all datasets that tells nothing of a record, by scipy."""
    table = query.table()
    outputs = len(query.values)
    numbers = np.array(query.values, dtype=float)
    losses = np.abs(numbers[table.ravel()][:, None] - numbers) / table.size
    rows: list[FloatArray] = []
    for record, size in enumerate(query.alphabets):
        letters = np.indices(query.alphabets)[record].ravel()
        for letter in range(size):
            away = (letters == letter) / (letters == letter).sum() - 1 / table.size
            rows += [np.outer(away, np.eye(outputs)[y]).ravel() for y in range(outputs)]
    sums = np.kron(np.eye(table.size), np.ones(outputs))
    found = linprog(
        losses.ravel(),
        A_eq=np.vstack([sums, *rows]),
        b_eq=np.concatenate([np.ones(table.size), np.zeros(len(rows))]),
    )
    return float(found.fun)


@pytest.mark.parametrize(
    "query",
    [ModularSum(3, 3), ModularSum(3, 2), Quadratic(4), ModularSum(2, 2, 3), Explicit([[0, 1, 2], [1, 2, 4]])],
)
def test_no_leakage_of_a_uniform_dataset_is_a_linear_program(query: Query) -> None:
    result = solve(distortion_leakage(query, 0.0, query.log_size))
    assert result.status is Status.OPTIMAL
    assert result.value == pytest.approx(silent_optimum(query), abs=1e-9)
    assert result.certificate.leakage < 1e-14
    assert result.certificate.verify()


def test_a_distortion_is_bounded_in_little_time() -> None:
    """A constant is wrong by 0.5; the symmetric channel is a start for what leaks 0.1."""
    result = solve(distortion_leakage(majority(301), 0.1, 300.5 * LOG2), time_limit=0.5)
    assert result.value < 0.4
    assert result.certificate.leakage <= 0.1


def test_the_penalty_method_keeps_the_time_and_starts_from_a_mechanism() -> None:
    program = leakage_distortion(Quadratic(8), 0.2, 1.0)
    first = solve(program, "penalty", time_limit=0.01)
    assert not first.warm_started
    parity = leakage_distortion(ModularSum(3, 2), 0.2, 1.5)
    good = solve(parity)
    again = solve(parity, "penalty", good, time_limit=0.5)
    assert again.warm_started
    assert again.value <= good.value + 0.05  # what an audit cut short proves of it
