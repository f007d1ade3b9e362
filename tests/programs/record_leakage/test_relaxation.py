"""The relaxation on a cell: above every prior in the cell, and as good as its multipliers."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.designs import FloatArray

from pmlopt.model.queries.record_leakage_measures import dataset_entropy, record_information
from pmlopt.programs.record_leakage.adversary import cell_relaxation
from pmlopt.programs.record_leakage.branch_and_bound import proof_of
from pmlopt.programs.record_leakage.output_cells import first_cell, row_space
from pmlopt.programs.record_leakage.proof import sharpened


def problem(seed: int, letters: int, outputs: int) -> tuple[FloatArray, FloatArray]:
    random = np.random.default_rng(seed)
    rows = random.dirichlet(np.ones(outputs), size=4)
    counts = random.integers(1, 20, size=(letters, 4)).astype(float)
    counts[0, 3] = counts[-1, 0] = 0
    with np.errstate(divide="ignore"):
        return rows, np.log(counts)


def log_size(log_counts: FloatArray) -> float:
    return float(np.log(np.exp(log_counts).sum()))


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
@pytest.mark.parametrize(("seed", "letters", "outputs"), [(0, 2, 2), (1, 2, 3), (2, 3, 2), (3, 3, 4)])
def test_the_first_cell_holds_every_prior(seed: int, letters: int, outputs: int, share: float) -> None:
    rows, log_counts = problem(seed, letters, outputs)
    entropy = share * log_size(log_counts)
    cell = first_cell(rows, log_counts)
    program = cell_relaxation(rows, log_counts, entropy, [len(part) for part in cell])
    program.set_cell(cell)
    value = float(program.problem.solve(solver="CLARABEL"))
    _, bound = sharpened(rows, log_counts, entropy, cell, proof_of(program))
    assert bound == pytest.approx(value, abs=1e-7)
    random = np.random.default_rng(seed)
    used, seen = np.isfinite(log_counts), 0
    for _ in range(300):
        joint = np.where(used, random.gamma(10 ** random.uniform(-1.5, 0.5), size=used.shape) + 1e-12, 0.0)
        joint /= joint.sum()
        if dataset_entropy(joint, log_counts) >= entropy:
            seen += 1
            assert record_information(joint, rows) <= bound
    assert seen > 10
    own = program.joint
    assert own is not None
    assert own.sum() == pytest.approx(1, abs=1e-12)
    assert dataset_entropy(own, log_counts) >= entropy - 1e-6
    assert record_information(own, rows) <= bound + 1e-9


@pytest.mark.parametrize("width", [1.0, 0.3, 0.03])
def test_a_cell_around_a_prior(width: float) -> None:
    """The narrower, the nearer to what a prior inside leaks when the entropy leaves that one alone."""
    rows, log_counts = problem(5, 2, 2)
    program = cell_relaxation(rows, log_counts, 0.0, [2, 2])
    random = np.random.default_rng(1)
    for _ in range(5):
        joint = np.where(np.isfinite(log_counts), random.gamma(0.5, size=(2, 4)), 0.0)
        joint /= joint.sum()
        laws = joint @ rows / joint.sum(axis=1, keepdims=True)
        ends = rows[[rows[:, 0].argmin(), rows[:, 0].argmax()]]
        cell = [law + width * (ends - law) for law in laws]
        program.set_cell(cell)
        value = float(program.problem.solve(solver="CLARABEL"))
        assert value >= record_information(joint, rows) - 1e-8
        _, bound = sharpened(rows, log_counts, 0.0, tuple(cell), proof_of(program))
        assert bound == pytest.approx(value, abs=1e-7)


def test_a_cell_that_holds_no_prior_of_the_entropy() -> None:
    rows = np.array([[0.9, 0.1], [0.1, 0.9]])
    log_counts = np.log([[4.0, 4.0], [4.0, 4.0]])
    program = cell_relaxation(rows, log_counts, 2.7, [1, 1])
    program.set_cell([rows[:1], rows[1:]])  # X_1 = T leaves log 8 nats of entropy
    value = float(program.problem.solve(solver="CLARABEL"))
    assert value == pytest.approx(0.368064 - 100 * (2.7 - np.log(8)), rel=1e-6)


def test_directions_in_which_rows_do_not_differ() -> None:
    rows = np.array([[0.2, 0.3, 0.5], [0.4, 0.1, 0.5], [0.3, 0.2, 0.5]])
    basis = row_space(rows)
    assert basis.shape == (3, 2)
    assert basis.T @ basis == pytest.approx(np.eye(2), abs=1e-12)
    assert rows @ basis @ basis.T == pytest.approx(rows, abs=1e-12)
