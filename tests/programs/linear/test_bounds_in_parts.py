"""Parts of bounds and repairs of linear designs: shares that mend, allowances for rounding, and prices."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from pmlopt import LDP, PML, CoordinateLoss, ExpectedGain, IIDPrior, Prior, design
from pmlopt.programs.linear import columns as columns_module
from pmlopt.programs.linear.added_rows import AddedConstraintRows
from pmlopt.programs.linear.build_certificate import (
    _BoundProof,
    _certify_multipliers,
    _needed_orbit_shares,
    build_lagrangian,
)
from pmlopt.programs.linear.columns import DenseColumns

P = np.array([0.5, 0.3, 0.2])
GAINS = np.array([[1.0, 0.2, 0.0], [0.1, 0.9, 0.3], [0.0, 0.4, 1.2]])


def test_a_column_is_mixed_as_far_as_its_violation_vanishes() -> None:
    """Linearly from what it breaks the bound by to what the constant has to spare."""
    lifts, means, output = np.array([1.0, 2.0, 3.0]), np.array([5.0, 6.0, 7.0]), np.arange(3)
    over, spare = np.array([0.3, -0.2, 0.4]), np.array([0.1, 0.1, -0.5])

    def max_violations(values: Any) -> Any:
        return over if values is lifts else -spare

    stub: Any = SimpleNamespace(
        orbits=SimpleNamespace(output=output), max_violations=max_violations
    )
    shares = _needed_orbit_shares(stub, lifts, means)
    assert shares[0] * -spare[0] + (1 - shares[0]) * over[0] == pytest.approx(0.0)
    assert shares[1:].tolist() == [0.0, 1.0]  # nothing to mend, and nothing that would


@pytest.mark.parametrize(("worse", "taken"), [(-0.1, True), (1e-10, True), (3e-10, False)])
def test_a_dual_certificate_may_cost_a_share_of_the_range(
    monkeypatch: pytest.MonkeyPatch, worse: float, taken: bool
) -> None:
    """Of 1e-10, where the range is 2; it never proves less than is known."""
    rho, witness = np.zeros(3), {"shares": np.ones(1)}
    columns = SimpleNamespace(dual_certificate=lambda gains, rho: witness)
    program: Any = SimpleNamespace(columns=columns, scale=2.0)
    proof = _BoundProof(0.7 + worse, rho, witness)
    monkeypatch.setattr(_BoundProof, "compute", lambda *_: proof)
    found = _certify_multipliers(program, GAINS, rho, 0.7)
    assert bool(found.witness) is taken
    assert found.bound == (max(0.7, 0.7 + worse) if taken else 0.7)


def test_the_allowance_for_rounding_is_of_the_sizes_of_gains_and_multipliers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(columns_module, "bound_sum_rounding", lambda terms, size: size)
    rho = np.array([0.4, -0.7, 0.2])
    columns = DenseColumns(Prior(P), PML(1.0))
    sizes = np.abs(GAINS) + np.abs(rho)[:, None]
    assert sizes.max() < 4 * float(P @ sizes.max(axis=1))
    assert columns.bound_rounding(GAINS, rho) == pytest.approx(P @ np.abs(rho) + sizes.max())


def test_a_program_by_orbits_has_the_loss_of_the_uniform_mechanism() -> None:
    """Both outputs of each of the three bits are as likely."""
    loss = CoordinateLoss([[0.5, 1], [3, 2.5]])
    program = design(IIDPrior([0.7, 0.3], 3), LDP(1.0), loss)
    lifts = program.variables["orbits"]
    rows = program.constraints["rows"].args[0]
    lifts.value = np.ones(lifts.size)
    lifts.value = np.full(lifts.size, 1 / float(rows.value[0]))
    assert rows.value == pytest.approx(np.ones(len(rows.value)))
    found = float(program.problem.objective.args[0].value)
    assert found == pytest.approx(3 * (0.7 * 0.75 + 0.3 * 2.75))


@pytest.mark.parametrize("multiplier", [0.0, 0.6, 2.0])
def test_prices_of_the_output_law_are_taken_off_the_gains(multiplier: float) -> None:
    """For every mechanism the Lagrangian is its gain less the price of what it breaks the bound by."""
    program = design(P, PML(1.0), ExpectedGain(GAINS))
    law = program.variables["output_law"]
    program = program.with_constraints(law=law[0, 0] ** 2 + law[0, 1] <= 0.5)
    random = np.random.default_rng(0)
    matrix = random.dirichlet(np.ones(3), 3)
    program.assign_variables(matrix)
    program.added["law"].dual_variables[0].save_value(np.array(multiplier))
    gains, constant = build_lagrangian(program)
    q = P @ matrix
    for other in (matrix, *random.dirichlet(np.ones(3), (5, 3))):
        law_ = P @ other
        linear = q[0] ** 2 + 2 * q[0] * (law_[0] - q[0]) + law_[1] - 0.5
        centred = float((P[:, None] * program.centered_gains * other).sum())
        found = float((P[:, None] * gains * other).sum()) + constant
        assert found == pytest.approx(centred - multiplier * linear, abs=1e-9)
    assert math.isfinite(constant)


def test_prices_of_added_rows_are_taken_off_the_gains_and_of_what_they_start_from() -> None:
    """For every matrix the gain less the multipliers times what the rows are at."""
    random = np.random.default_rng(2)
    coefficients, offset = random.normal(size=(2, 9)), random.normal(size=2)
    none = np.zeros(2, dtype=bool)
    rows = AddedConstraintRows((), sparse.csr_array(coefficients), offset, none, none, (3, 3))
    multipliers = np.array([0.7, 1.3])
    gains, constant = rows.price_out(GAINS, Prior(P), multipliers)
    for matrix in random.dirichlet(np.ones(3), (4, 3)):
        at = coefficients @ matrix.ravel() + offset
        expected = float((P[:, None] * GAINS * matrix).sum() - multipliers @ at)
        assert float((P[:, None] * gains * matrix).sum()) + constant == pytest.approx(expected)
