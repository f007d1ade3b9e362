"""Means and frequencies from noisy numbers: their intervals hold as often as they should."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pmlopt import Mechanism, Prior, estimate, explore, joint_level, leakage_level
from pmlopt.errors import InputError, MechanismError, PriorError, PrivacyError
from pmlopt.estimation import estimate_noisy_frequencies, estimate_noisy_mean
from pmlopt.releases import Ledger, shuffled_level
from pmlopt.releases.noise import Gaussian, Geometric, Laplace

KINDS: list[Any] = [Laplace(8.0), Gaussian(12.0), Geometric(8.0)]
LETTERS, COUNTS = [20, 40, 60], [600, 1000, 400]
VALUES = np.repeat(LETTERS, COUNTS)


@pytest.mark.parametrize("noise", KINDS)
def test_the_mean_is_in_its_interval_as_often_as_stated(noise: Any) -> None:
    hits, truth = 0, float(VALUES.mean())
    for seed in range(60):
        found = estimate_noisy_mean(noise, noise.sample(VALUES.tolist(), seed), 0.9)
        hits += abs(found.mean - truth) <= found.interval[1] - found.mean
        assert found.deviation == pytest.approx(VALUES.std(), rel=0.15)
    # the people are the same each time, so that only the noise varies: 0.9 or more
    assert hits >= 48


@pytest.mark.parametrize("noise", KINDS)
def test_frequencies_have_no_bias_from_the_noise(noise: Any) -> None:
    truth = np.array(COUNTS) / sum(COUNTS)
    found = [
        estimate_noisy_frequencies(
            noise, LETTERS, noise.sample(VALUES.tolist(), seed), method="linear"
        )
        for seed in range(20)
    ]
    mean = np.mean([one.frequencies for one in found], axis=0)
    error = np.mean([one.standard_errors for one in found], axis=0) / np.sqrt(len(found))
    assert (np.abs(mean - truth) <= 5 * error).all()
    assert all(one.frequencies.sum() == pytest.approx(1) for one in found)


def test_what_cannot_be_estimated() -> None:
    with pytest.raises(PrivacyError, match="two released values"):
        estimate_noisy_mean(Laplace(1.0), [1.0])
    with pytest.raises(PrivacyError, match="finite"):
        estimate_noisy_mean(Laplace(1.0), [1.0, np.nan])
    with pytest.raises(PrivacyError, match="number"):
        estimate_noisy_frequencies(Laplace(1.0), ["a", "b"], [1.0])
    with pytest.raises(PrivacyError, match="positive scale"):
        estimate_noisy_frequencies(Laplace(0.0), [0, 1], [1.0])


def test_where_a_matrix_is_required_a_continuum_of_outcomes_is_refused() -> None:
    prior = Prior([0.5, 0.5], [0, 1])
    for noise, way in ((Laplace(1.0), "bin_outcomes"), (Gaussian(1.0), "bin_outcomes"),
                       (Geometric(1.0), "to_mechanism")):  # fmt: skip
        for ask in (
            lambda n: Ledger(prior).record(n, [0]), lambda n: joint_level(prior, [n]),
            lambda n: shuffled_level(prior, n, 10, 0.1), lambda n: estimate(n, [1, 2]),
            lambda n: leakage_level(prior, n),
        ):  # fmt: skip
            with pytest.raises(MechanismError, match=way):
                ask(noise)


def test_geometric_noise_adds_up_in_the_ledger_and_in_joint_levels() -> None:
    prior = Prior([0.3, 0.7], [0, 2])
    noise = Geometric(3.0)
    mechanism = noise.to_mechanism(prior)
    # twice the same noise: differences over the scale add up
    assert joint_level(prior, [mechanism] * 2) == pytest.approx(
        Geometric(1.5).level(prior), abs=1e-10
    )
    ledger = Ledger(prior)
    ledger.record(mechanism, [0])
    ledger.record(mechanism, [0], allow_duplicate=True)
    assert ledger.level == pytest.approx(Geometric(1.5).level(prior), abs=1e-10)
    with pytest.raises((MechanismError, PriorError)):
        estimate(mechanism, [1, 2])


def test_a_continuum_of_outcomes_cannot_be_explored() -> None:
    for noise in (Laplace(1.0), Geometric(1.0)):
        with pytest.raises(InputError, match="to_mechanism"):
            explore(noise)


PLACES: list[list[Any]] = [[0, 1, 3], [(0, 0), (1, 2), (3, 1)]]


@pytest.mark.parametrize("letters", PLACES)
@pytest.mark.parametrize("ending", ["json", "npz", "csv"])
def test_a_saved_mechanism_of_geometric_noise_is_that_of_the_noise(
    letters: list[Any], ending: str, tmp_path: Path
) -> None:
    prior, noise = Prior([0.5, 0.3, 0.2], letters), Geometric(1.5)
    noise.to_mechanism(prior).save(tmp_path / f"noise.{ending}")
    loaded = Mechanism.load(tmp_path / f"noise.{ending}")
    assert loaded.inputs == prior.labels
    assert leakage_level(prior, loaded) == pytest.approx(noise.level(prior), abs=1e-12)
    ledger = Ledger(prior)
    outcome = loaded.outputs[int(loaded.matrix[0].argmax())]
    ledger.record(loaded, [outcome])
    assert 0 < ledger.level <= noise.level(prior) + 1e-10
    assert explore(ledger).curves
    assert 0 < shuffled_level(prior, loaded, 10, 0.1) < noise.level(prior)
