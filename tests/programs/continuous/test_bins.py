"""Bins of a continuous secret: multipliers, costs, scales and grids for as long as there is time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.stats

from pmlopt import Continuous, DistanceLoss, Prior
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.programs.continuous import certificate, methods
from pmlopt.programs.continuous.certificate import ContinuousCertificate, compute_mean_losses
from pmlopt.programs.continuous.methods import (
    _compute_bin_costs,
    _compute_bound,
    _spread_multipliers,
)
from pmlopt.programs.continuous.program import ContinuousDesign
from pmlopt.solvers.solver_result import Deadline, MethodOptions


def test_bins_without_mass_have_the_multipliers_of_the_nearest_ones_with_some() -> None:
    """Those of losses: the offsets of the gains less the multipliers of what is left of them."""
    masses = np.array([0.2, 0.0, 0.0, 0.5, 0.3, 0.0])
    program: Any = SimpleNamespace(secret=SimpleNamespace(masses=lambda grid: masses))
    design: Any = SimpleNamespace(prior=Prior.uniform(3), row_offsets=np.array([10.0, 20.0, 30.0]))
    grid: Any = SimpleNamespace(size=6)
    found = _spread_multipliers(program, design, grid, np.array([1.0, 2.0, 3.0]))
    assert found.tolist() == [9.0, 9.0, 18.0, 18.0, 27.0, 27.0]


def test_a_bin_costs_what_its_losses_exceed_those_of_the_nearest_points() -> None:
    """As a secret and as an output, by the probability of both."""
    p = np.array([0.6, 0.4])
    matrix, losses = np.array([[0.7, 0.3], [0.2, 0.8]]), np.array([[0.5, 2.0], [1.0, 0.1]])
    least = np.array([[0.0, 1.5], [1.2, 0.0]])
    found: Any = SimpleNamespace(
        grid=SimpleNamespace(compute_min_distances=lambda: least),
        bins=SimpleNamespace(prior=Prior(p), table=losses),
        mechanism=SimpleNamespace(matrix=matrix),
        secret=SimpleNamespace(masses=lambda grid: p),
        utility=SimpleNamespace(evaluate_distances=lambda distances: distances),
    )
    joint = p[:, None] * matrix
    excess = np.array([[0.5, 0.5], [0.0, 0.1]])
    expected = [sum((joint * excess)[:, k]) + sum((joint * excess)[k]) for k in range(2)]
    assert _compute_bin_costs(found) == pytest.approx(expected)


@pytest.mark.parametrize("boxes", [7, 4096])
def test_losses_are_means_over_bins_rounded_up_however_many_boxes_are_taken_at_once(
    monkeypatch: pytest.MonkeyPatch, boxes: int
) -> None:
    """Of distances on the unit interval: between centres, and a quarter of a bin within one."""
    monkeypatch.setattr(certificate, "BOUND_BOXES", boxes)
    secret = Continuous(scipy.stats.uniform(), support=(0, 1))
    table, kept = compute_mean_losses(secret, DistanceLoss(), secret.even(4))
    centres = (np.arange(4) + 0.5) / 4
    exact = np.abs(centres[:, None] - centres) + np.eye(4) / 16
    assert kept.all()
    assert (table >= exact).all()
    assert table == pytest.approx(exact, abs=0.01)


def test_the_scale_is_the_loss_of_the_best_constant_above_the_least_loss() -> None:
    design = SimpleNamespace(prior=Prior([0.6, 0.4]), table=np.array([[-1.0, 2.0], [3.0, 0.0]]))
    given: Any = SimpleNamespace(
        design_on_grid=lambda grid: design, first_grid=None, utility=SimpleNamespace(min_loss=-1.0)
    )
    scale = vars(ContinuousDesign)["scale"].func(given)
    assert scale == pytest.approx(0.6 * -1.0 + 0.4 * 3.0 + 1.0)


class Clock:
    """Seconds that pass where something is done."""

    def __init__(self) -> None:
        self.now = 100.0

    def read(self) -> float:
        return self.now


def test_no_grid_is_begun_that_would_end_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """A finer grid takes longer than the last one, here of ten seconds."""
    clock = Clock()

    def certify(program: object, grid: Any, boxes: int, deadline: Deadline) -> Any:
        clock.now += 10.0
        assert clock.now < 200, "it does not end"
        return SimpleNamespace(proved_gap=1.0, grid=grid)

    monkeypatch.setattr(methods, "certify_on_grid", certify)
    monkeypatch.setattr(methods, "_compute_bin_costs", lambda found: np.ones(2))
    grid: Any = SimpleNamespace(size=2)
    grid.halve_where = lambda costs: grid
    program: Any = SimpleNamespace(compute_allowed_gap=lambda tolerance: 0.1, first_grid=grid)
    method = methods.METHODS.methods[0].run
    options = MethodOptions(Deadline(125.0, clock.read), 1e-3)
    assert method(program, options, None).iterations == 2


@pytest.mark.parametrize(
    ("seconds", "boxes"), [(11.0, [32]), (12.5, [32, 64]), (70.0, [32, 64, 128])]
)
def test_a_bound_is_computed_on_twice_the_boxes_where_there_is_five_times_the_time(
    monkeypatch: pytest.MonkeyPatch, seconds: float, boxes: list[int]
) -> None:
    clock = Clock()
    used: list[int] = []

    def bound(*parts: Any) -> float:
        clock.now += 2.0 * 5 ** len(used)
        used.append(parts[-1])
        return float(len(used))

    monkeypatch.setattr(methods, "bound_loss", bound)
    program: Any = SimpleNamespace(secret=None, privacy=None, utility=None)
    nothing: Any = None
    deadline = Deadline(clock.now + seconds, clock.read)
    found = _compute_bound(program, nothing, nothing, 256, deadline)
    assert used == boxes
    assert found == (float(len(boxes)), boxes[-1])


@pytest.mark.parametrize(("off", "holds"), [(0.0, True), (1e-6, False)])
def test_a_value_is_that_of_the_mean_losses(
    monkeypatch: pytest.MonkeyPatch, off: float, holds: bool
) -> None:
    prior, matrix = Prior([0.6, 0.4]), np.array([[0.7, 0.3], [0.2, 0.8]])
    losses: FloatArray = np.array([[0.5, 2.0], [1.0, 0.1]])
    monkeypatch.setattr(certificate, "compute_mean_losses", lambda *_: (losses, None))
    monkeypatch.setattr(certificate, "bound_loss", lambda *_: 0.1)
    given: Any = SimpleNamespace(
        secret=SimpleNamespace(prior=lambda grid: prior),
        bins=SimpleNamespace(prior=prior, privacy=None),
        utility=None, grid=None, multipliers=None, boxes=1, bound=0.1,
        mechanism=SimpleNamespace(matrix=matrix),
        value=0.6 * (0.7 * 0.5 + 0.3 * 2.0) + 0.4 * (0.2 * 1.0 + 0.8 * 0.1) + off,
    )  # fmt: skip
    law, value, bound = ContinuousCertificate._check_law(given)
    assert (law.holds, value.holds, bound.holds) == (True, holds, True)
