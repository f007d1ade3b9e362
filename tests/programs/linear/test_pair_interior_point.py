"""The interior point by pairs of letters: optima, all pairs, bounds at every stop, and its proof."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles.designs import FloatArray
from oracles.ratio_bounds import broken_pairs

from pmlopt import (
    ExpectedGain,
    ExpectedLoss,
    MetricPrivacy,
    Prior,
    design,
    solve,
)
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy.ratio_bound import RatioBound
from pmlopt.model.privacy.requirement import read_pair_weights
from pmlopt.programs import Status
from pmlopt.programs.linear import pair_interior_point
from pmlopt.programs.linear.certificate import LinearCertificate
from pmlopt.programs.program import MethodError
from pmlopt.solvers.solver_result import Deadline, MethodOptions
from pmlopt.verification.verify_saved import load_saved

EPSILON = 1.5


def draw_plane(size: int, seed: int = 1) -> FloatArray:
    """Return the distances of random points of a square with a point for each unit of area."""
    points = np.random.default_rng(seed).random((size, 2)) * size**0.5
    apart = np.linalg.norm(points[:, None] - points, axis=2)
    return np.asarray(np.maximum(apart, apart.T))


def lay_grid(*sides: int) -> FloatArray:
    """Return the distances along the streets of a grid."""
    places = np.array(list(np.ndindex(*sides)))
    return np.asarray(np.abs(places[:, None] - places).sum(axis=2).astype(float))


def on_points(distance: FloatArray, seed: int = 0) -> Any:
    prior = Prior(np.random.default_rng(seed).dirichlet(np.full(len(distance), 3.0)))
    return design(prior, MetricPrivacy(EPSILON, distance), ExpectedLoss(distance))


@pytest.mark.parametrize("distance", [draw_plane(18), draw_plane(23, 4), lay_grid(6, 7)])
def test_the_optimum_is_that_of_the_simplex(distance: FloatArray) -> None:
    program = on_points(distance)
    result, other = solve(program, "pair-ipm", tolerance=1e-9), solve(program, "highs")
    assert result.status is Status.OPTIMAL
    assert result.value == pytest.approx(other.value, abs=1e-7)
    assert result.bound <= other.value + 1e-9
    assert not broken_pairs(EPSILON, distance, result.mechanism.matrix)
    assert result.certificate.verify()


@pytest.mark.parametrize("outputs", [[0], [3, 11, 17]])
def test_outputs_that_are_left_out_at_first_come_in_by_their_prices(
    outputs: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def choose(table: Any) -> Any:
        return np.isin(np.arange(table.costs.shape[1]), outputs)

    monkeypatch.setattr(pair_interior_point._CostTable, "choose_outputs", choose)
    program = on_points(draw_plane(23, 4))
    result, other = solve(program, "pair-ipm", tolerance=1e-9), solve(program, "highs")
    assert result.status is Status.OPTIMAL
    assert result.value == pytest.approx(other.value, abs=1e-7)
    assert result.bound <= other.value + 1e-9
    assert result.certificate.verify()


def test_gains_and_two_metrics_at_once() -> None:
    """Of two bounds on one pair the tighter one counts, and its multiplier is at its place."""
    first, second = draw_plane(18), draw_plane(18, 6)
    both = MetricPrivacy(1.0, first) & MetricPrivacy(1.0, second)
    gains = np.random.default_rng(8).random((18, 12))
    program = design(Prior.uniform(18), both, ExpectedGain(gains))
    result, other = solve(program, "pair-ipm", tolerance=1e-9), solve(program, "highs")
    assert result.value == pytest.approx(other.value, abs=1e-7)
    assert result.bound >= other.value - 1e-9
    for distance in (first, second):
        assert not broken_pairs(1.0, distance, result.mechanism.matrix)


def test_few_bounds_on_pairs_of_more_letters_than_the_simplex_takes_are_solved_by_pairs() -> None:
    """A grid of 6 by 6 has 60 edges: 4,320 bounds on its columns, and 1,296 entries."""
    corners = np.indices((6, 6)).reshape(2, -1).T
    distance = np.abs(corners[:, None] - corners).sum(axis=2).astype(float)
    prior = Prior(np.random.default_rng(3).dirichlet(np.full(36, 2.0)))
    program = design(prior, MetricPrivacy(1.0, distance), ExpectedLoss(distance))
    result, other = solve(program, tolerance=1e-7), solve(program, "highs", tolerance=1e-7)
    assert result.solver == "pair-ipm"
    assert result.value == pytest.approx(other.value, abs=2e-7 * program.scale)
    assert result.certificate.verify()


def test_letters_in_no_pair_and_pairs_bounded_one_way_have_entries_of_at_least_zero() -> None:
    """The simplex, which has signs of their own for the entries, finds the same."""
    size, random = 26, np.random.default_rng(0)
    above, below = np.array([(a, b) for a in range(2, size) for b in range(a + 1, size)]).T
    requirement = RatioBound(np.eye(size)[above], np.eye(size)[below], 0.3 + 0.1 * (below - above))
    prior, gains = random.dirichlet(np.full(size, 2.0)), random.random((size, size))
    program = design(Prior(prior), requirement, ExpectedGain(gains))
    result, other = solve(program, tolerance=1e-8), solve(program, "highs")
    assert result.solver == "pair-ipm"
    assert result.mechanism.matrix.min() >= 0
    assert result.value == pytest.approx(other.value, abs=1e-8)
    assert result.certificate.verify()


def test_a_letter_in_no_pair_takes_its_best_output() -> None:
    distance = np.full((19, 19), np.inf)
    distance[:18, :18] = draw_plane(18)
    distance[18, 18] = 0.0
    loss = draw_plane(19)
    program = design(Prior.uniform(19), MetricPrivacy(EPSILON, distance), ExpectedLoss(loss))
    result = solve(program, "pair-ipm", tolerance=1e-9)
    assert result.mechanism.matrix[18, loss[18].argmin()] == pytest.approx(1, abs=1e-6)
    assert result.certificate.verify()


@pytest.mark.parametrize("limit", [1e-3, 0.3])
def test_a_stop_leaves_a_mechanism_within_all_pairs_and_a_gap_that_holds(limit: float) -> None:
    distance = draw_plane(49)
    program = on_points(distance)
    result = solve(program, time_limit=limit)
    constant = float((program.prior.pmf @ program.table).min())
    assert result.value <= constant + 1e-12
    assert not broken_pairs(EPSILON, distance, result.mechanism.matrix)
    assert result.certificate.verify()
    assert -1e-9 <= result.bound <= result.value


def test_no_step_begins_where_the_proof_takes_the_rest_of_the_time() -> None:
    """The clock stands still: it is the time for the proof of 30^3 ratios that is not there."""
    program = on_points(draw_plane(30))
    ratios = program.pair_bounds
    options = MethodOptions(Deadline(1e-4, lambda: 0.0), 1e-9)
    with pytest.raises(MethodError, match="the proof of a mechanism takes longer"):
        pair_interior_point.solve_pairs(program, ratios, options)


def test_with_few_letters_for_each_output_the_bound_is_one_and_the_mechanism_feasible(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    distance = draw_plane(25)
    program = on_points(distance)
    whole = solve(program, "pair-ipm")

    def choose(*_: object) -> Any:
        return np.sort(np.argsort(distance, axis=0)[:19], axis=0).T.copy()

    monkeypatch.setattr(pair_interior_point, "_choose_members", choose)
    result = solve(program, "pair-ipm")
    assert result.status is Status.UNPROVED
    assert result.bound <= whole.value + 1e-9
    # a relaxation of 19 of 25 letters leaves some percent
    assert result.bound >= 0.9 * whole.value
    assert whole.bound - 1e-9 <= result.value <= 1.03 * whole.value
    assert not broken_pairs(EPSILON, distance, result.mechanism.matrix)
    assert result.certificate.verify()


def test_a_saved_proof_is_checked_again_and_a_spoilt_one_fails(tmp_path: Path) -> None:
    result = solve(on_points(draw_plane(18)), "pair-ipm")
    path = tmp_path / "mechanism.json"
    result.save(path)
    certificate = load_saved(path).certificate
    assert isinstance(certificate, LinearCertificate)
    assert certificate.verify()
    assert set(certificate.witness) == {"pairs", "outputs", "weights"}
    spoilt = dict(certificate.witness, weights=0.5 * certificate.witness["weights"])
    assert not replace(certificate, witness=spoilt).verify()


@pytest.mark.parametrize(
    "change",
    [{"pairs": [0.0, 5.0]}, {"outputs": [0.0, -1.0]}, {"pairs": [0.5, 1.0]}, {"outputs": [0.0]},
     {"weights": [[1.0, 1.0]]}, {"weights": [1.0, np.nan]}],
)  # fmt: skip
def test_listed_weights_that_fit_no_pair_are_refused(change: dict[str, Any]) -> None:
    listed = {"pairs": [0.0, 4.0], "outputs": [2.0, 1.0], "weights": [1.0, 3.0]}
    arrays = {name: np.array(values) for name, values in listed.items()}
    found = read_pair_weights(arrays, (5, 3)).toarray()
    assert found[0, 2] == 1.0
    assert found[4, 1] == 3.0
    assert found.sum() == 4.0
    spoilt = {**arrays, **{name: np.array(values) for name, values in change.items()}}
    with pytest.raises(PrivacyError):
        read_pair_weights(spoilt, (5, 3))
