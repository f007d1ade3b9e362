"""Bounds of a finite order: their ends, their exact checks, and designs beside programs of norms and cuts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from oracles.designs import random_prior
from oracles.finite_orders import (
    largest_gain_between,
    largest_gain_for_every_prior,
    largest_gain_of_order,
    sibson,
    worst_of_two,
    worst_prior,
)
from strategies import pairs

from pmlopt import (
    PML,
    AllPriors,
    Box,
    ConvexHull,
    ExpectedGain,
    ExpectedLoss,
    IIDPrior,
    L1Ball,
    MaximalAlphaLeakage,
    MaximalLeakage,
    Prior,
    RenyiPML,
    Secret,
    SibsonLeakage,
    design,
    leakage_level,
    maximal_leakage,
    mutual_information,
    solve,
)
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import PrivacyError
from pmlopt.measures import channel_capacity
from pmlopt.model.privacy import Requirement
from pmlopt.model.utility import CoordinateLoss
from pmlopt.programs.exact.rounding import is_met_exactly, round_rows_to_grid

SECRET = Secret(
    [[[0.1, 0.2, 0.1], [0.4, 0.1, 0.1]], [[0.2, 0.2, 0.1], [0.2, 0.2, 0.1]]],
    values=["ill", "well"],
    name="health",
)
VIEWS = [(law.sum(axis=1), law / law.sum(axis=1, keepdims=True)) for law in SECRET.joint]

TWO = ConvexHull([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])

EVEN = Prior.from_counts([1, 1])
RESPONSE = np.array([[0.75, 0.25], [0.25, 0.75]])


@pytest.mark.parametrize("kind", [RenyiPML, SibsonLeakage])
@pytest.mark.parametrize(("letters", "alpha"), [(2, 2.0), (6, 1.2), (6, 50.0), (12, 5.0)])
def test_designs_gain_what_the_program_as_written_does(
    kind: Any, letters: int, alpha: float
) -> None:
    rng = np.random.default_rng([letters, int(10 * alpha)])
    p, gains, epsilon = (
        random_prior(rng, letters),
        rng.random((letters, 4)),
        float(rng.uniform(0.05, 0.8)),
    )
    found = solve(design(Prior(p), kind(alpha, epsilon), ExpectedGain(gains)))
    best = largest_gain_of_order(p, alpha, epsilon, gains, mean=kind is SibsonLeakage)
    assert found.value == pytest.approx(best, abs=1e-7)
    assert found.gap <= 1e-7
    assert found.certificate.verify()
    assert is_met_exactly(Prior(p), kind(alpha, epsilon), found.matrix)


@pytest.mark.parametrize("alpha", [1.2, 2.0, 50.0])
def test_designs_for_every_prior_gain_what_cuts_at_priors_do(alpha: float) -> None:
    rng = np.random.default_rng(int(10 * alpha))
    for letters, epsilon in ((2, 0.2), (4, 0.5)):
        p, gains = random_prior(rng, letters), rng.random((letters, 3))
        found = solve(design(Prior(p), MaximalAlphaLeakage(alpha, epsilon), ExpectedGain(gains)))
        low, high = largest_gain_for_every_prior(p, gains, alpha, epsilon)
        assert high - low <= 1e-6
        assert low - 1e-7 <= found.bound
        assert found.value <= high + 1e-7
        assert found.gap <= 1e-7
        assert found.certificate.verify()
    # rows at one divergence from a centre, more than there are outputs: the worst prior is not unique
    p, gains = random_prior(rng, 6), rng.random((6, 3))
    found = solve(design(p, MaximalAlphaLeakage(alpha, 0.3), ExpectedGain(gains)))
    assert found.level == pytest.approx(0.3, abs=1e-6)
    assert worst_prior(found.matrix, alpha)[1] == pytest.approx(found.level, abs=1e-6)


@settings(max_examples=20, deadline=None)
@given(pairs(min_size=2, tiny=False))
def test_levels_grow_from_the_information_to_those_of_the_order_infinity(
    pair: tuple[FloatArray, FloatArray],
) -> None:
    p, matrix = pair
    occurring = matrix[:, matrix.max(axis=0) > 0]
    lifts = occurring / (p @ occurring)
    divergences = (p[:, None] * lifts * np.log(np.where(lifts > 0, lifts, 1.0))).sum(axis=0)
    ends = {
        RenyiPML: (divergences.max(), leakage_level(p, matrix)),
        SibsonLeakage: (mutual_information(p, matrix), maximal_leakage(matrix)),
        MaximalAlphaLeakage: (channel_capacity(matrix)[0], maximal_leakage(matrix)),
    }
    found = {}
    for kind, (least, most) in ends.items():
        levels = [kind(alpha, 1.0).level(p, matrix) for alpha in (1 + 1e-7, 1.5, 2, 5, 1e8)]
        assert levels[0] == pytest.approx(least, abs=1e-6)
        assert levels[-1] == pytest.approx(most, abs=1e-6)
        assert np.diff(levels).min() > -1e-7
        found[kind] = np.array(levels[1:-1])
    assert (found[SibsonLeakage] <= found[RenyiPML] + 1e-12).all()
    assert (found[SibsonLeakage] <= found[MaximalAlphaLeakage] + 1e-12).all()


AT_INFINITY: dict[str, tuple[Callable[[float], Requirement], Requirement]] = {
    "each": (lambda alpha: RenyiPML(alpha, 0.2), PML(0.2)),
    "about": (lambda alpha: RenyiPML(alpha, 0.05, about=SECRET), PML(0.05, about=SECRET)),
    "over": (lambda alpha: RenyiPML(alpha, 0.3, over=TWO), PML(0.3, over=TWO)),
    "mean": (lambda alpha: SibsonLeakage(alpha, 0.2), MaximalLeakage(0.2)),
    "every prior": (lambda alpha: MaximalAlphaLeakage(alpha, 0.2), MaximalLeakage(0.2)),
}


@pytest.mark.parametrize("form", AT_INFINITY)
def test_large_orders_allow_what_the_order_infinity_does(form: str) -> None:
    rng, (at_order, limit) = np.random.default_rng(5), AT_INFINITY[form]
    p, gains, matrix = SECRET.prior, rng.random((3, 3)), rng.dirichlet(np.ones(3), 3)
    assert at_order(1e7).level(p, matrix) == pytest.approx(limit.level(p, matrix), abs=1e-6)
    far, end = (solve(design(p, one, ExpectedGain(gains))) for one in (at_order(1e7), limit))
    assert far.value == pytest.approx(end.value, abs=1e-6)
    assert far.certificate.verify()


# at order 2 and the even prior, the worst one, 3/4 and 1/4 have the moment 5/4;
# the worst prior of the box is (0.4, 0.6), where it is 0.2625 / 0.45^2 = 35 / 27
BOUNDARIES: dict[str, tuple[Callable[[float], Requirement], float, float]] = {
    "each": (lambda level: RenyiPML(2, level), math.log(1.25), 4e-16),
    "no whole order": (
        lambda level: RenyiPML(1.5, level),
        RenyiPML(1.5, 1.0).level(EVEN, RESPONSE),
        1e-15,
    ),
    "over": (
        lambda level: RenyiPML(2, level, over=Box([0.4, 0.4], [0.6, 0.6])),
        math.log(35 / 27),
        1e-14,
    ),
    "mean": (lambda level: SibsonLeakage(2, level), math.log(1.25), 1e-15),
    "every prior": (lambda level: MaximalAlphaLeakage(2, level), math.log(1.25), 4e-16),
}


@pytest.mark.parametrize("form", BOUNDARIES)
def test_the_check_is_exact_at_the_boundary(form: str) -> None:
    requirement, level, step = BOUNDARIES[form]
    for inside, holds in ((step, True), (-step, False)):
        assert is_met_exactly(EVEN, requirement(level + inside), RESPONSE) is holds


@pytest.mark.parametrize(
    ("kind", "alpha"),
    [
        (SibsonLeakage, 1.5),
        *((kind, alpha) for kind in (RenyiPML, MaximalAlphaLeakage) for alpha in (1.5, 2, 1000.0)),
    ],
)
def test_constants_meet_every_order_and_ordinary_ends_are_no_exception(
    kind: Any, alpha: float
) -> None:
    for epsilon in (0.0, 1e-4, 800.0):
        requirement, constant = (
            kind(alpha, epsilon),
            round_rows_to_grid(np.full((3, 2), [0.3, 0.7])),
        )
        for p in ([1e-300, 0.5, 0.5], [0.2, 0.3, 0.5]):
            assert requirement.holds(p, constant)
            assert is_met_exactly(Prior(p), requirement, constant)
            designed = (alpha, epsilon) in ((1.5, 0.0), (2, 800.0), (1000.0, 1e-4))
            if designed and (kind is MaximalAlphaLeakage or (kind is RenyiPML and min(p) < 1e-9)):
                found = solve(design(p, requirement, ExpectedGain(np.eye(3))))
                assert found.level <= epsilon
                assert found.gap <= 1e-5 or (min(p) < 1e-9 and kind is not RenyiPML)
    assert solve(
        design([1.0], kind(alpha, 0.3), ExpectedGain([[1.0, 2.0]]))
    ).value == pytest.approx(2)


def test_the_mean_for_every_prior_bounds_that_of_each() -> None:
    rng = np.random.default_rng(5)
    p, gains = random_prior(rng, 4), rng.random((4, 4))
    own, every = SibsonLeakage(2, 0.5), MaximalAlphaLeakage(2, 0.5)
    found = solve(design(p, every, ExpectedGain(gains)))
    assert own.holds(p, found.mechanism)
    assert found.value <= solve(design(p, own, ExpectedGain(gains))).value + 1e-7
    for alpha in (1.2, 2.0, 50.0):
        matrix = rng.dirichlet(np.full(4, 0.5), 3)
        level = MaximalAlphaLeakage(alpha, 1.0).level(np.full(3, 1 / 3), matrix)
        assert level == pytest.approx(worst_prior(matrix, alpha)[1], abs=1e-6)
        assert (
            level
            >= max(sibson(law, matrix, alpha) for law in rng.dirichlet(np.ones(3), 20)) - 1e-12
        )


@pytest.mark.parametrize("alpha", [1.5, 2.0])
def test_about_a_secret_it_is_the_bound_on_the_letters_of_the_secret(alpha: float) -> None:
    rng = np.random.default_rng(int(10 * alpha))
    prior, requirement = SECRET.prior, RenyiPML(alpha, 0.05, about=SECRET)
    matrix, gains = rng.dirichlet(np.ones(3), 3), rng.random((3, 3))
    levels = [RenyiPML(alpha, 1.0).level(law, each @ matrix) for law, each in VIEWS]
    assert requirement.levels(prior, matrix) == {
        "renyi_pml_about_health": pytest.approx(max(levels), abs=1e-12)
    }
    found = solve(design(prior, requirement, ExpectedGain(gains)))
    best = largest_gain_of_order(prior.pmf, alpha, 0.05, gains, about=VIEWS)
    assert found.value == pytest.approx(best, abs=1e-7)
    assert found.gap <= 1e-7
    assert found.level <= 0.05
    assert found.certificate.verify()


@pytest.mark.parametrize("alpha", [1.5, 2.0])
def test_over_a_set_it_is_the_bound_for_its_worst_prior(alpha: float) -> None:
    rng = np.random.default_rng(int(10 * alpha))
    p, gains, matrix = TWO.laws[0], rng.random((3, 3)), rng.dirichlet(np.ones(3), 3)
    level = RenyiPML(alpha, 1.0, over=TWO).level(p, matrix)
    most = math.exp((alpha - 1) / alpha * level)
    worst = [worst_of_two(TWO.laws, column, alpha, most)[0] for column in matrix.T]
    assert level == pytest.approx(
        max(RenyiPML(alpha, 1.0).level(law, matrix) for law in worst), abs=1e-9
    )
    found = solve(design(p, RenyiPML(alpha, 0.2, over=TWO), ExpectedGain(gains)))
    low, high = largest_gain_between(p, gains, alpha, 0.2, TWO.laws)
    assert low - 1e-7 <= found.bound
    assert found.value <= high + 1e-7
    assert found.gap <= 1e-7
    assert found.certificate.verify()


def test_a_secret_that_is_the_data_and_a_set_of_one_prior_change_nothing() -> None:
    p, gains, still = (
        np.array([0.5, 0.3, 0.2]),
        np.random.default_rng(3).random((3, 3)),
        np.full((3, 2), 0.5),
    )
    own = solve(design(p, RenyiPML(3, 0.2), ExpectedGain(gains))).value
    for form in ({"about": Secret(np.diag(p))}, {"over": ConvexHull([p])}):
        assert solve(
            design(p, RenyiPML(3, 0.2, **form), ExpectedGain(gains))
        ).value == pytest.approx(own, abs=1e-7)
        nothing = RenyiPML(3, 0.0, **form)
        assert nothing.holds(p, still)
        assert is_met_exactly(Prior(p), nothing, still)
        one_output = solve(design(p, RenyiPML(3, 0.2, **form), ExpectedGain(gains[:, :1])))
        assert (one_output.status.value, one_output.gap) == ("optimal", 0)


def test_forms_that_do_not_fit_are_refused() -> None:
    over = RenyiPML(2, 1.0, over=AllPriors(2))
    assert (
        over.level([0.5, 0.5], np.eye(2)) == math.inf
    )  # a prior of the set may never see a column
    with pytest.raises(PrivacyError, match="one of them"):
        RenyiPML(2, 1.0, over=AllPriors(2), about=Secret([[0.5, 0.5]]))
    with pytest.raises(PrivacyError, match="no set of priors"):
        RenyiPML(2, 1.0, over=[0.5, 0.5])  # type: ignore[arg-type]
    with pytest.raises(PrivacyError, match="no secret"):
        RenyiPML(2, 1.0, about=[0.5, 0.5])  # type: ignore[arg-type]


def test_on_records_alike_it_is_solved_by_orbits() -> None:
    bits, loss = IIDPrior([0.7, 0.3], 2), CoordinateLoss([[0, 1], [1, 0]])
    listed = bits.listed()
    letters: list[tuple[int, ...]] = list(listed.labels)  # type: ignore[arg-type]
    table = np.array(
        [[sum(a != b for a, b in zip(x, y, strict=True)) for y in letters] for x in letters]
    )
    found = solve(design(bits, RenyiPML(2, 0.4), loss))
    other = solve(design(listed, RenyiPML(2, 0.4), ExpectedLoss(table.astype(float))))
    assert found.value == pytest.approx(other.value, abs=1e-6)
    assert found.gap <= 1e-7
    assert found.certificate.verify()
    ball = RenyiPML(2, 0.4, over=L1Ball(bits, 0.05))
    assert solve(design(bits, ball, loss)).value >= found.value - 1e-9
