"""Points of the gallery's figures are computed again, and compared with the kept ones or with formulas."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping

import numpy as np
import pytest
from documents import ROOT

from pmlopt import (
    LDP,
    PML,
    EstimationError,
    L1Ball,
    Ledger,
    MutualInformation,
    Prior,
    closed_forms,
    design,
    envelope,
    joint_level,
    leakage_distortion,
    leakage_level,
    mutual_information,
    queries,
    record_leakage,
    shuffled_level,
    solve,
    worst_case_utility,
)
from pmlopt.model.privacy import Requirement
from pmlopt.noise import Gaussian, LaplaceHistogram
from pmlopt.releases import shuffled_failure
from pmlopt.uncertainty import (
    level_increase_within_distance,
    level_within_distance,
    true_level_with_confidence,
    weissman_radius,
)

SHARES = (0.4, 0.3, 0.2, 0.1)


def find_point(file: str, where: Mapping[str, str | float]) -> dict[str, str]:
    """Find the only kept row of a file with these entries."""

    def is_there(row: Mapping[str, str]) -> bool:
        return all(
            row[name] == value if isinstance(value, str) else abs(float(row[name]) - value) < 1e-6
            for name, value in where.items()
        )

    with (ROOT / "benchmarks" / "data" / file).open(encoding="utf-8", newline="") as lines:
        (found,) = [row for row in csv.DictReader(lines) if is_there(row)]
    return found


def test_information_at_one_nat() -> None:
    prior = Prior.from_counts([4253, 10501, 7291, 2449, 5355, 2712])
    kept = find_point("information.csv", {"epsilon": 1.0})
    requirements: dict[str, Requirement] = {
        "optimal under PML": PML(1.0),
        "optimal under robust PML": PML(1.0, over=L1Ball(prior, 0.1)),
        "optimal under LDP": LDP(1.0),
    }
    for name, requirement in requirements.items():
        value = solve(design(prior, requirement, MutualInformation())).value
        assert value == pytest.approx(float(kept[name]), abs=1e-5)


def test_a_variance_of_five_shares_is_five_times_as_large_under_ldp() -> None:
    prior = Prior([0.4, 0.3, 0.15, 0.1, 0.05])
    known, unknown = (
        solve(design(prior, privacy, EstimationError())) for privacy in (PML(1.0), LDP(1.0))
    )
    assert known.status.value == unknown.status.value == "optimal"
    assert 1000 * unknown.value / known.value == pytest.approx(5100, abs=50)


def test_a_small_mean_identifies_one_of_a_thousand() -> None:
    exposing = np.zeros((1000, 2))
    exposing[:, 1] = 1.0
    exposing[0] = [1.0, 0.0]
    even = np.full(1000, 0.001)
    binary_entropy = -(0.001 * math.log(0.001) + 0.999 * math.log(0.999))
    assert mutual_information(even, exposing) == pytest.approx(binary_entropy, rel=1e-9)
    assert leakage_level(even, exposing) == pytest.approx(math.log(1000), rel=1e-12)


def test_releases_reveal_more_than_the_sum_and_a_ledger_refuses_the_second() -> None:
    mechanism = solve(design(SHARES, PML(0.5), EstimationError())).mechanism
    levels = [joint_level(SHARES, [mechanism] * count) for count in (1, 2, 3, 4, 5)]
    assert all(levels[count - 1] > 0.5 * count for count in (2, 3, 4))
    assert levels[3] == pytest.approx(2.30, abs=5e-3)
    assert levels[4] < -math.log(0.1) < 0.5 * 5
    ledger = Ledger(SHARES, people=1, total=1.0)
    ledger.record(mechanism, mechanism.sample([3], seed=1))
    assert not ledger.allows(mechanism)


def test_a_histogram_of_many_people_reveals_little_of_one() -> None:
    mechanism = solve(design(SHARES, PML(1.0), "estimation-error")).mechanism
    assert shuffled_failure(SHARES, mechanism, 100, 0.51) <= 1e-6
    assert shuffled_failure(SHARES, mechanism, 10_000, 0.063) <= 1e-6
    few, many = (shuffled_level(SHARES, mechanism, people, 1e-6) for people in (100, 10_000))
    assert few / many == pytest.approx(10, rel=0.05)


def test_bounds_for_estimated_priors() -> None:
    bound = level_increase_within_distance(Prior.uniform(10), math.log(5), 0.1)
    assert bound == pytest.approx(-math.log(1 - 0.05 * 5), rel=1e-12)
    sampled = find_point("estimation/figure-3b.csv", {"samples": 1_000.0})
    level = true_level_with_confidence(1_000, 20, math.log(5), 1e-5)
    assert level == pytest.approx(float(sampled["epsilon=log 5"]), abs=1e-5)


def test_gaussian_noise_is_sharper_than_published() -> None:
    radius = weissman_radius(1_000, 2, 1e-6)
    sharp = Gaussian(1.5).promise(
        Prior([0.5, 0.5], [-1, 1]), 0.8, L1Ball([0.5, 0.5], radius), delta=1e-6
    )
    kept = find_point("noise/figure-7.csv", {"epsilon": 0.8})
    published = level_within_distance(sharp.epsilon, radius)
    assert published == pytest.approx(float(kept["published epsilon m=1000"]), abs=1e-5)
    assert published > sharp.epsilon


def test_a_histogram_under_pml_needs_less_noise() -> None:
    private = LaplaceHistogram.calibrate(epsilon=0.5, min_mass=0.0)
    aware = LaplaceHistogram.calibrate(epsilon=0.5, min_mass=0.05)
    assert private.scale == pytest.approx(2 / 0.5)
    assert aware.scale < private.scale
    assert aware.level == pytest.approx(0.5, abs=1e-12)


def test_an_envelope_holds_where_a_quantile_does_not() -> None:
    mechanism = [[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]]
    result = solve(envelope([0.25] * 4, mechanism, 0.1))
    assert result.value == pytest.approx(math.log(4), abs=1e-8)


@pytest.mark.parametrize(
    ("file", "prior", "delta"),
    [
        ("envelope/figure-2a.csv", [0.2, 0.3, 0.5], 0.4),
        ("envelope/figure-skewed.csv", [0.02, 0.03, 0.05, 0.45, 0.45], 0.8),
    ],
)
def test_the_envelope_of_randomized_response(file: str, prior: list[float], delta: float) -> None:
    kept = find_point(file, {"delta": delta})
    exact = closed_forms.randomized_response_envelope(prior, 1.0, delta)
    assert exact == pytest.approx(float(kept["exact"]), abs=1e-5)
    lower = closed_forms.randomized_response_lower_bound(prior, 1.0, delta)
    assert lower == pytest.approx(float(kept["h_delta"]), abs=1e-5)
    result = solve(envelope(prior, closed_forms.randomized_response(len(prior), 1.0), delta))
    assert result.value - 1e-9 <= exact <= result.bound + 1e-9


def test_three_rare_letters() -> None:
    order = [[4, 3, 2, 1], [1, 4, 3, 2], [2, 1, 4, 3], [3, 2, 1, 4]]
    prior = [1 - 3 * 0.02, 0.02, 0.02, 0.02]
    kept = find_point("worst_case/figure-3.csv", {"p_min": 0.02})
    found = solve(worst_case_utility(prior, np.array(order), 2))
    assert found.certificate.verify()
    assert found.value == pytest.approx(float(kept["h=2 optimal"]), abs=1e-5)
    safe = closed_forms.utility_safe_level(prior, np.array(order), 2)
    assert safe == pytest.approx(float(kept["h=2 safe"]), abs=1e-5)


def test_parity_about_a_record() -> None:
    parity = queries.ModularSum(4, 2)
    kept = find_point("records/figure-3-4.csv", {"p": 0.1, "b": 0.0})
    found = solve(record_leakage(parity, queries.symmetric_channel(parity, 0.1), 0.0))
    assert found.value == pytest.approx(float(kept["certified, from"]), abs=1e-6)
    noisy = queries.laplace(parity, 1.0)
    assert noisy.matrix[0, 1] == pytest.approx(math.exp(-0.5) / 2, abs=1e-9)
    designed = solve(leakage_distortion(parity, 0.2, 0.0))
    row = find_point(
        "distortion/figure-5-designed-4.csv",
        {"mechanism": "designed", "D, or epsilon": 0.2, "b": 0.0},
    )
    assert float(row["at least"]) - 1e-5 <= designed.value <= float(row["leaks at most"]) + 1e-5
