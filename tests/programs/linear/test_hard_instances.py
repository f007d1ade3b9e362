"""Random programs at the ends of every scale: each is solved, proved, and exact."""

from __future__ import annotations

import numpy as np
import pytest
from programs.linear.test_structured import some_prior, some_table

from pmlopt import (
    LDP,
    LIP,
    PML,
    ExpectedGain,
    ExpectedLoss,
    MaximalLeakage,
    Prior,
    RatioBound,
    Secret,
    design,
    solve,
)
from pmlopt.model.privacy import Requirement
from pmlopt.model.uncertainty import AllPriors
from pmlopt.programs import Status

Generator = np.random.Generator


def random_prior(rng: Generator, size: int) -> Prior:
    """As for the interior point; or from counts, or over twelve orders of magnitude."""
    kind = rng.integers(3)
    if kind == 0:
        return Prior.from_counts([int(count) for count in rng.integers(1, 20, size)])
    weights = np.maximum(10.0 ** rng.uniform(-12, 0, size), 1e-14)
    return some_prior(rng, size) if kind == 1 else Prior(weights / weights.sum())


def random_requirement(rng: Generator, prior: Prior) -> Requirement:
    """Any requirement, at levels of 0, 1e-18, ..., the largest leakage and one step of a float below it."""
    most = prior.max_leakage
    singular = np.log(prior.size / rng.integers(1, prior.size + 1))
    levels = (0.0, 1e-18, 1e-12, 1e-6, most, max(0.0, np.nextafter(most, 0)), singular, rng.exponential())
    epsilon = float(rng.choice(levels))
    kinds = (
        PML(epsilon),
        LDP(min(epsilon, 30.0)),
        LIP(float(rng.choice([0.0, 0.3, epsilon])), epsilon),
        MaximalLeakage(epsilon),
    )
    return kinds[rng.integers(4)]


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_at_the_ends_of_every_scale(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(25):
        size, outputs = (int(count) for count in rng.integers(1, 10, 2))
        prior = random_prior(rng, size)
        privacy, table = random_requirement(rng, prior), some_table(rng, size, outputs)
        utility = (ExpectedGain if rng.random() < 0.5 else ExpectedLoss)(table)
        result = solve(design(prior, privacy, utility), tolerance=1e-6)
        assert result.status is Status.OPTIMAL
        assert result.certificate.verify()
        assert privacy.holds(prior, result.mechanism)
        ahead = result.bound - result.value
        assert (ahead if utility.maximised else -ahead) >= 0


@pytest.mark.parametrize("seed", [7, 13, 26, 39])
def test_bounds_on_ratios_are_sharp_beside_a_rare_letter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, outputs, pairs = (int(rng.integers(*ends)) for ends in ((3, 6), (2, 5), (2, 6)))
    weights = rng.dirichlet(np.ones(size))
    rare = rng.integers(size)
    weights[rare] = 10.0 ** -rng.integers(7, 10)
    shares = rng.dirichlet(np.ones(size), size=pairs) * (rng.random((pairs, size)) < 0.7) + 1e-3
    below = rng.dirichlet(np.ones(size), size=pairs)
    requirement = RatioBound(shares / shares.sum(axis=1, keepdims=True), below, float(rng.uniform(0.1, 2)))
    prior, gains = Prior(weights / weights.sum()), ExpectedGain(rng.normal(size=(size, outputs)))
    result = solve(design(prior, requirement, gains))
    assert result.status is Status.OPTIMAL
    assert result.gap <= 1e-9
    assert result.certificate.verify()


@pytest.mark.parametrize("seed", [5, 14])
def test_a_second_bound_that_hardly_binds_costs_no_utility(seed: int) -> None:
    rng = np.random.default_rng(seed)
    secret = Secret.from_counts(rng.integers(1, 60, size=(2, 4)))
    about, gains = PML(1.0, about=secret), ExpectedGain(rng.normal(size=(4, 3)))
    alone = solve(design(secret.prior, about, gains))
    both = solve(design(secret.prior, about & PML(50.0, over=AllPriors(4)), gains))
    assert both.status is Status.OPTIMAL
    assert both.value == pytest.approx(alone.value, abs=1e-6)
    assert both.certificate.verify()
