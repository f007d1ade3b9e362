"""Bounds from multipliers with their rounding, and limits that are met up to rounding."""

from __future__ import annotations

import math
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pmlopt import distortion_leakage, leakage_distortion
from pmlopt.errors import InfeasibleError
from pmlopt.model.queries import ModularSum
from pmlopt.programs.tradeoff import build_certificate, methods
from pmlopt.programs.tradeoff.build_certificate import _build_proof, solve_curve_end
from pmlopt.programs.tradeoff.proof import (
    PriorCut,
    TradeoffLosses,
    TradeoffProof,
    allows_only_constants,
    bound_in_decimals,
    compute_tradeoff_bound,
    is_bound_proved,
    is_limit_kept,
    sum_cuts,
)
from pmlopt.solvers.solver_result import NO_DEADLINE

PARITY = ModularSum(2, 3)
LOSS = np.array([[0.1, 1.0], [1.0, 0.3], [0.6, 0.5]])
"""Of three values and two outputs: the least is .3 in the mean, the best constant costs 17/30 or .6."""


def free(losses: list[list[float]]) -> TradeoffLosses:
    return TradeoffLosses(np.array(losses), np.ones(np.shape(losses), dtype=bool))


def test_rate_distortion_is_bounded_by_its_multipliers() -> None:
    """The bound is log 2 - h(.1) at a price of log 9, and that of a float is below by its rounding."""
    posterior = np.array([[0.9, 0.1], [0.1, 0.9]])
    cut = PriorCut(0, np.eye(2) / 2, posterior, 1.0)
    losses = free([[0.0, 0.5], [0.5, 0.0]])
    optimum = math.log(2) + 0.1 * math.log(0.1) + 0.9 * math.log(0.9)
    proof = TradeoffProof((cut,), math.log(9))
    exact = bound_in_decimals(losses, "leakage", 0.1, proof)
    assert float(exact) == pytest.approx(optimum, abs=1e-14)
    assert optimum - 1e-12 < compute_tradeoff_bound(losses, "leakage", 0.1, proof) < exact


@pytest.mark.parametrize("price", [1.0, 1e5])
def test_a_bound_is_below_by_the_rounding_of_each_of_its_terms(price: float) -> None:
    """Terms are the losses, the cuts and the limit; each may be rounded by half an ulp."""
    even = price > 1  # then the cut is nothing, and the limit takes off what the losses add
    posterior = np.full((2, 2), 0.5) if even else np.array([[0.9, 0.2], [0.1, 0.8]])
    cut = PriorCut(0, np.eye(2) / 2, posterior, 1.0)
    _, sizes = sum_cuts((cut,), (2, 2))
    losses = free((np.ones((2, 2)) if even else sizes).tolist())
    limit = 2 - 1e-6 if even else 0.0
    proof = TradeoffProof((cut,), price)
    exact = bound_in_decimals(losses, "leakage", limit, proof)
    found = compute_tradeoff_bound(losses, "leakage", limit, proof)
    size = float((price * losses.losses + sizes).max(axis=1).sum()) + price * limit
    assert found > 0
    assert exact - Decimal(found) >= 32 * Decimal(size) * Decimal(2) ** -53


def test_the_size_of_a_sum_of_cuts_is_at_least_that_of_its_terms() -> None:
    posterior = np.array([[math.exp(-6), 0.4], [1 - math.exp(-6), 0.6]])
    cuts = [PriorCut(0, np.array([[0.5, 0.0], [0.2, 0.3]]), posterior, weight) for weight in (1, 2)]
    gains, sizes = sum_cuts(cuts, (2, 2))
    logs = np.log(posterior / 0.5)
    assert gains == pytest.approx(3 * cuts[0].joint.T @ logs)
    assert (sizes >= 3 * cuts[0].joint.T @ np.abs(logs)).all()


def test_a_common_part_of_multipliers_changes_no_proof() -> None:
    """It is a multiplier of the sum of all letters, which deviates by nothing."""
    joint = np.array([[0.3, 0.1], [0.2, 0.4]])
    slope = np.array([[0.2, -0.1], [-0.3, 0.25]])
    known = _build_proof({0: joint}, [slope]).cuts[0]
    shifted = slope + 40 * joint.sum(axis=1, keepdims=True)
    found = _build_proof({0: joint}, [shifted]).cuts[0]
    assert found.weight == pytest.approx(known.weight)
    assert found.posterior == pytest.approx(known.posterior, abs=1e-15)


def test_only_where_the_dataset_may_be_no_other_is_more_than_a_constant_silent() -> None:
    size = PARITY.log_size
    assert not allows_only_constants(PARITY, size)
    assert not allows_only_constants(PARITY, size * (1 - 1e-12))
    assert allows_only_constants(PARITY, size - 1e-6)


def test_the_distortion_of_a_constant_is_proved_to_its_rounding() -> None:
    losses = free([[0.1, 0.2], [0.3, 0.1]])
    nothing = TradeoffProof((), 0.0)
    least = 0.2 + 0.1
    for bound, proved in ((least, True), (least * (1 - 1e-9), True), (least * (1 + 1e-9), False)):
        assert is_bound_proved(losses, "distortion", 0.0, nothing, PARITY, 0.3, bound) is proved


@pytest.mark.parametrize(("share", "kept"), [(1.0, True), (1 + 5e-12, True), (1 + 1e-9, False)])
def test_outputs_are_excluded_at_the_least_distortion_alone(share: float, kept: bool) -> None:
    losses = np.array([[0.1, 0.4], [0.5, 0.2]])
    tradeoff = TradeoffLosses(losses, np.eye(2, dtype=bool))
    assert is_limit_kept(tradeoff, "leakage", tradeoff.min_distortion * share, np.eye(2)) is kept


def test_the_least_distortion_is_a_limit_up_to_rounding() -> None:
    least = leakage_distortion(PARITY, 1.0, 0.7, loss=LOSS).min_distortion
    assert least == pytest.approx(0.3)
    for limit in (least, math.nextafter(least, 0.0)):
        assert not leakage_distortion(PARITY, limit, 0.7, loss=LOSS).tradeoff.allowed.all()
    with pytest.raises(InfeasibleError, match="no mechanism has an expected distortion"):
        leakage_distortion(PARITY, least * (1 - 1e-9), 0.7, loss=LOSS)


def test_a_constant_is_optimal_from_its_distortion_on() -> None:
    trivial = leakage_distortion(PARITY, 1.0, 0.7, loss=LOSS).constant_distortion
    for limit in (trivial, math.nextafter(trivial, 0.0)):
        end = solve_curve_end(leakage_distortion(PARITY, limit, 0.7, loss=LOSS), 0, NO_DEADLINE)
        assert end is not None
        assert end.certificate.value == pytest.approx(0, abs=1e-9)
    less = leakage_distortion(PARITY, trivial * (1 - 1e-9), 0.7, loss=LOSS)
    assert solve_curve_end(less, 0, NO_DEADLINE) is None


@pytest.mark.parametrize(("value", "tolerance"), [(0.1, 0.2), (0.3 - 1e-9, 1e-7)])
def test_an_undecided_audit_is_repeated_as_finely_as_the_limit_asks(
    monkeypatch: pytest.MonkeyPatch, value: float, tolerance: float
) -> None:
    tried: list[float] = []

    def audit(program: Any, matrix: Any, tolerance: float, **_: Any) -> SimpleNamespace:
        tried.append(tolerance)
        return SimpleNamespace(value=value, bound=0.5)

    monkeypatch.setattr(build_certificate, "audit_leakage", audit)
    program = distortion_leakage(PARITY, 0.3, 0.7)
    assert solve_curve_end(program, 0, NO_DEADLINE) is None
    assert tried == pytest.approx([1e-7, tolerance], rel=1e-12)


def test_a_given_matrix_is_mixed_to_below_the_limit_by_the_gap_of_an_audit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Aimed at is a quarter of the tolerance less than the limit, so that the next audit may prove it."""
    aims: list[float] = []

    def mix(program: Any, matrix: Any, audit: Any, aim: float) -> Any:
        aims.append(aim)
        return program.constant_matrix

    monkeypatch.setattr(methods, "mix_within_leakage", mix)
    monkeypatch.setattr(methods, "audit_leakage", lambda *_, **__: SimpleNamespace(bound=0.2))
    monkeypatch.setattr(methods, "certify_tradeoff", lambda *_: None)
    monkeypatch.setattr(methods, "wrap_given_certificate", lambda certificate: certificate)
    program = distortion_leakage(PARITY, 0.1, 0.7)
    methods._certify_given_matrix(program, program.least_distortion_matrix, None)
    assert aims == pytest.approx([0.1 - 1e-6 / 4], rel=1e-12)
