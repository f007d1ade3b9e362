"""Pointwise maximal cost: the bound on the information density from below."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from commands import run_fully
from scipy.optimize import linprog

from pmlopt import LIP, PMC, PML, ExpectedGain, MutualInformation, Prior, design, solve, verify_file
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import PrivacyError
from pmlopt.measures import cost_level, lip_levels, pointwise_cost


def largest_gain(p: FloatArray, epsilon: float, gains: FloatArray) -> float:
    """Return the optimum of the linear program of the definition, `q[y] <= e^epsilon P[x,y]`."""
    n, m = gains.shape
    rows = np.zeros((n * m, n * m))
    for row, (x, y) in enumerate(product(range(n), range(m))):
        rows[row, y::m] = p
        rows[row, x * m + y] -= math.exp(epsilon)
    equal = np.kron(np.eye(n), np.ones(m))
    found = linprog(
        -(p[:, None] * gains).ravel(), rows, np.zeros(n * m), equal, np.ones(n), method="highs"
    )
    return -float(found.fun)


@pytest.mark.parametrize("seed", range(4))
def test_designs_are_those_of_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    prior = Prior(rng.dirichlet(np.ones(4)))
    epsilon, gains = float(rng.uniform(0.1, 1.5)), rng.normal(size=(4, 3))
    result = solve(design(prior, PMC(epsilon), ExpectedGain(gains), 3))
    assert result.value == pytest.approx(largest_gain(prior.pmf, epsilon, gains), abs=1e-7)
    matrix = result.mechanism.matrix[:, result.mechanism.support]
    assert (prior.pmf @ matrix <= math.exp(epsilon) * matrix.min(axis=0) * (1 + 1e-12)).all()
    # with an upper limit that never binds, two-sided information privacy is the same
    wide = solve(design(prior, LIP(epsilon, 600.0), ExpectedGain(gains), 3))
    assert wide.value == pytest.approx(result.value, abs=1e-7)


def test_levels_are_the_lower_ones_of_information_privacy() -> None:
    rng = np.random.default_rng(0)
    prior, matrix = Prior([0.5, 0.3, 0.2]), rng.dirichlet(np.ones(4), 3)
    expected = np.log(prior.pmf @ matrix / matrix.min(axis=0))
    assert pointwise_cost(prior, matrix) == pytest.approx(expected, abs=1e-13)
    assert (
        cost_level(prior, matrix) == PMC(1.0).level(prior, matrix) == lip_levels(prior, matrix)[0]
    )
    assert pointwise_cost(prior, np.eye(3)).tolist() == [math.inf] * 3
    assert pointwise_cost(prior, [[1, 0], [1, 0], [1, 0]]).tolist() == [0.0, -math.inf]


def test_the_least_cost_of_any_adversary_falls_by_no_more() -> None:
    rng = np.random.default_rng(1)
    prior, matrix = Prior([0.5, 0.3, 0.2]), rng.dirichlet(np.ones(4), 3)
    factors = np.exp(pointwise_cost(prior, matrix))
    posteriors = prior.pmf[:, None] * matrix / (prior.pmf @ matrix)
    for _ in range(50):
        costs = rng.exponential(size=(5, 3))
        assert (
            factors * (costs @ posteriors).min(axis=0) >= (costs @ prior.pmf).min() * (1 - 1e-12)
        ).all()


def test_information_has_a_certified_design() -> None:
    result = solve(design([0.5, 0.3, 0.2], PMC(0.5), MutualInformation()))
    assert result.status.value == "optimal"
    assert result.certificate.verify()
    assert cost_level([0.5, 0.3, 0.2], result.mechanism) <= 0.5 + 1e-12
    # the bound on how likely a letter becomes, which the others leave
    p = np.array([0.5, 0.3, 0.2])
    upper = np.log((1 - math.exp(-0.5) * (1 - p)) / p).max()
    within = solve(design(p, PMC(0.5) & PML(upper + 1e-9), MutualInformation()))
    assert within.value == pytest.approx(result.value, abs=1e-6)


def test_an_infinite_side_of_information_privacy_names_the_one_sided_bound() -> None:
    with pytest.raises(PrivacyError, match=r"PMC\(lower\)"):
        LIP(0.5, math.inf)
    with pytest.raises(PrivacyError, match=r"PML\(upper\)"):
        LIP(math.inf, 0.5)
    for bad in (-0.1, math.nan, math.inf, 701.0):
        with pytest.raises(PrivacyError):
            PMC(bad)


def test_the_command_line_takes_it_by_name(tmp_path: Path) -> None:
    (tmp_path / "prior.csv").write_text("letter,probability\na,0.5\nb,0.3\nc,0.2\n")
    target = str(tmp_path / "found.json")
    run = run_fully(
        "design", "--prior", str(tmp_path / "prior.csv"), "--epsilon", "0.2", "--utility", "hamming",
        "--privacy", "pmc", "-o", target,
    )  # fmt: skip
    assert run.exit_code == 0
    assert verify_file(target).holds
