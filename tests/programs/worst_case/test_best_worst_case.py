"""The highest threshold within a level: against every single solve, and the paper's breakpoints."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike
from oracles.designs import random_prior
from programs.least_leakage.test_least_leakage import (
    EXAMPLE,
    ROTATED,
    assert_proved,
    counting_order,
)

from pmlopt import (
    AllPriors,
    ConvexHull,
    ExpectedGain,
    ExpectedLoss,
    L1Ball,
    MinimumMass,
    Prior,
    best_worst_case,
    certify,
    least_leakage,
    solve,
    worst_case_utility,
)
from pmlopt.model.uncertainty import leakage_capacity
from pmlopt.model.utility import highest_threshold, utility_order
from pmlopt.programs import Status, best_guaranteed_utility
from pmlopt.programs.least_leakage.certificate import LevelCertificate
from pmlopt.programs.result import Result


def chain(prior: Prior, order: ArrayLike) -> dict[int, Result[LevelCertificate]]:
    """The least leakage at every threshold, each from the one above, whose pairs are allowed below too."""
    found: dict[int, Result[LevelCertificate]] = {}
    last = None
    for threshold in range(highest_threshold(order), 0, -1):
        last = solve(
            worst_case_utility(prior, order, threshold),
            warm_start=None if last is None else last.restart,
        )
        found[threshold] = last
    return dict(sorted(found.items()))


# ---------------------------------------------------------------- the curve


@pytest.mark.parametrize("seed", range(4))
def test_the_curve_is_every_single_solve(seed: int) -> None:
    rng = np.random.default_rng([913, seed])
    n = int(rng.integers(2, 9))
    prior = Prior(random_prior(rng, n, 0.5), [f"letter {x}" for x in range(n)])
    order = utility_order(rng.integers(0, n, (n, n)), ("first", "grouped")[seed % 2])
    points = chain(prior, order)
    assert list(points) == list(range(1, highest_threshold(order) + 1))
    for threshold, result in points.items():
        program = worst_case_utility(prior, order, threshold)
        assert_proved(program, result)
        assert result.value == pytest.approx(solve(program).value, abs=2e-9)
    assert points[1].value == 0
    assert all(b.value >= a.value for a, b in itertools.pairwise(points.values()))
    steps = (-1e-6, 0.0, 1e-6)
    for epsilon in [0.0, *(result.value + step for result in points.values() for step in steps)]:
        if epsilon < 0:
            continue
        best = solve(best_worst_case(prior, order, epsilon))
        assert best.certificate.verify()
        scan = [h for h, result in points.items() if result.value <= epsilon + 2e-9]
        sure = [h for h, result in points.items() if result.value <= epsilon - 2e-9 or h == 1]
        assert sure[-1] <= best.value <= scan[-1]
        assert best.level <= epsilon
        assert best.value <= best.bound
        if best.status is not Status.OPTIMAL:
            continue
        beyond = best.certificate.next_bound
        assert beyond > epsilon
        if best.value < len(points):
            assert beyond == pytest.approx(points[int(best.value) + 1].bound, abs=2e-9)
        else:
            assert beyond == math.inf


def test_ends_of_the_search() -> None:
    prior = [0.6, 0.2, 0.2]
    none = solve(best_worst_case(prior, EXAMPLE, 0.0))
    assert (none.value, none.level, none.status) == (1, 0, Status.OPTIMAL)
    assert math.exp(none.certificate.next_bound) == pytest.approx(2, abs=1e-8)
    tied = solve(best_worst_case(prior, [[2, 2, 2], [3, 3, 3], [3, 2, 3]], 50.0))
    assert (tied.value, tied.status) == (2, Status.OPTIMAL)
    flat = solve(best_guaranteed_utility([0.5, 0.5], ExpectedGain([[2.0, 2.0], [2.0, 2.0]]), 0.0))
    assert (flat.value, flat.bound, flat.level) == (2, 2, 0)
    assert highest_threshold([[3, 2, 1], [2, 2, 2]]) == 2


def test_a_matrix_from_elsewhere_is_judged_by_the_lowest_rank_that_it_emits() -> None:
    program = best_worst_case([0.6, 0.2, 0.2], EXAMPLE, math.log(2))
    safe = certify(program, [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    assert (safe.value, safe.bound, safe.status) == (2, 3, Status.UNPROVED)
    claimed = solve(best_worst_case([0.6, 0.2, 0.2], EXAMPLE, 1.0)).certificate.mechanism.matrix
    noisy = claimed + np.where(np.array(EXAMPLE) == 1, 1e-17, 0.0)
    assert certify(best_worst_case([0.6, 0.2, 0.2], EXAMPLE, 1.0), noisy).value == 2.0


# ---------------------------------------------------------------- at the levels themselves


@pytest.mark.parametrize(
    ("prior", "order", "ratio", "threshold"),
    [
        ([0.6, 0.2, 0.2], EXAMPLE, 2, 2),
        ([0.98, 0.01, 0.01], EXAMPLE, 2, 2),
        ([0.1, 0.1, 0.1, 0.7], ROTATED, 1.5, 2),
        (Prior.uniform(7), counting_order(), 2, 5),
        (Prior.uniform(7), counting_order(), 3.5, 6),
        (Prior.uniform(7), counting_order(), 7, 7),
    ],
)
def test_a_threshold_is_kept_at_its_own_level(
    prior: Any, order: ArrayLike, ratio: float, threshold: int
) -> None:
    best = solve(best_worst_case(prior, order, math.log(ratio)))
    assert (best.value, best.bound, best.status) == (threshold, threshold, Status.OPTIMAL)
    assert best.level == pytest.approx(math.log(ratio), abs=1e-15)
    assert best.certificate.verify()
    just_below = solve(best_worst_case(prior, order, math.log(ratio) - 1e-12))
    assert just_below.value == threshold - 1
    assert not replace(best.certificate, epsilon=math.log(ratio) - 1e-14).verify()


# ---------------------------------------------------------------- utilities for ranks


@pytest.mark.parametrize("seed", range(4))
def test_the_best_worst_utility_is_that_of_a_search_over_floors(seed: int) -> None:
    rng = np.random.default_rng([914, seed])
    n, m = (int(size) for size in rng.integers(2, 6, 2))
    prior = Prior(random_prior(rng, n))
    gains = rng.integers(-3, 4, (n, m)) * 1e-3
    epsilon = float(rng.uniform(0.1, 0.9) * prior.max_leakage)
    kept = []
    for value in np.unique(gains):
        if (gains.max(axis=1) >= value).all():
            floor = least_leakage(prior, ExpectedGain(gains), worst=float(value), outputs=m)
            kept += [value] if solve(floor).value <= epsilon else []
    best = solve(best_guaranteed_utility(prior, ExpectedGain(gains), epsilon, m))
    least = solve(best_guaranteed_utility(prior, ExpectedLoss(-gains), epsilon, m))
    assert best.value == best.bound == max(kept) == -least.value
    assert best.status is least.status is Status.OPTIMAL
    for result in (best, least):
        assert result.certificate.verify()
        assert gains[result.mechanism.matrix > 0].min() == max(kept)
        assert result.level <= epsilon + 1e-12
    claim = best.certificate
    assert not replace(claim, value=best.value + 1e-4).verify()  # no utility of the table
    if best.value < gains.max(axis=1).min():
        above = float(np.unique(gains)[claim.threshold])
        assert not replace(claim, value=above, bound=above).verify()
        assert not replace(claim, utilities=np.zeros(len(np.unique(gains)))).verify()
    problem = best_guaranteed_utility(prior, ExpectedGain(gains), epsilon, m).problem
    assert problem.solve(solver="HIGHS") == pytest.approx(best.value, abs=1e-6)


# ---------------------------------------------------------------- over a set of priors


@pytest.mark.parametrize("seed", range(2))
def test_over_a_set_it_is_the_highest_threshold_of_the_least_levels(seed: int) -> None:
    rng = np.random.default_rng([91, seed])
    p, order = random_prior(rng, 4, 3.0), utility_order(rng.normal(size=(4, 5)))
    point = rng.dirichlet(np.full(4, 3.0))
    for over in (L1Ball(p, float(p.min())), ConvexHull([p, point]), MinimumMass(4, 0.05)):
        levels = [solve(worst_case_utility(p, order, h, 5, over=over)).value for h in range(1, 6)]
        assert (np.diff(levels) >= -1e-9).all()
        for epsilon in (0.3, 1.7):
            program = best_worst_case(p, order, epsilon, 5, over=over)
            result = solve(program)
            assert result.value == result.bound == sum(level <= epsilon for level in levels)
            assert result.certificate.verify()
            assert leakage_capacity(over, result.mechanism) <= epsilon + 1e-12
    program.problem.solve(solver="HIGHS")
    assert float(program.problem.value) == pytest.approx(result.value)


def test_over_all_priors_a_rank_needs_an_output_for_all_letters() -> None:
    order = [[3, 2, 1], [1, 3, 2], [1, 2, 3]]  # output 1 has rank 2 and more for each letter
    free, every = Prior.uniform(3), AllPriors(3)
    result = solve(best_worst_case(free, order, 50.0, over=every))
    assert (result.value, result.bound, result.level) == (2, 2, 0)
    assert result.certificate.verify()
    assert not replace(result.certificate, bound=1.0).verify()
    gain = ExpectedGain([[5.0, 3.0, 0.0], [0.0, 5.0, 3.0], [0.0, 3.0, 5.0]])
    assert solve(best_guaranteed_utility(free, gain, 50.0, over=every)).value == 3.0
