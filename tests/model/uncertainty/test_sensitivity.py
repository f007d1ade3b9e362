"""The worst case of a mechanism over a set, and bounds of the literature: by linear programs and samples."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles.designs import FloatArray, random_prior
from oracles.prior_sets import KINDS, Definition, ball_case, random_matrix, random_set
from refusals import refused
from strategies import MODEST

from pmlopt import (
    PML,
    AllPriors,
    Box,
    L1Ball,
    Mechanism,
    MinimumMass,
    MutualInformation,
    Prior,
    closed_forms,
    confidence_box,
    design,
    ldp_level,
    leakage_level,
)
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty import (
    PriorSet,
    distance,
    leakage_capacity,
    leakage_sensitivity,
    level_increase_is_attained,
    level_increase_within_distance,
    level_needed_at_centre,
    level_within_distance,
    lipschitz_bound,
    pointwise_capacity,
)

SEEDS = st.integers(0, 2**32 - 1)


def capacity(defined: Definition, matrix: FloatArray) -> float:
    """The largest leakage of an output that occurs, by a linear program each."""
    least = min(defined.least(column / column.max()) for column in matrix.T if column.max() > 0)
    return -math.log(least) if least > 1e-9 else math.inf


def level_under(q: FloatArray, matrix: FloatArray) -> float:
    """max_y log(max_x P[x,y] / q(y)), from the definition."""
    return float(np.log(matrix.max(axis=0) / (q @ matrix)).max())


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.sampled_from(KINDS))
def test_capacity_is_that_of_the_linear_programs(seed: int, kind: str) -> None:
    """Of each output and of the worst, which is attained by a prior of the set."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    case, matrix = random_set(kind, rng, n), random_matrix(rng, n, 3)
    expected, worst = capacity(case.defined, matrix), leakage_capacity(case.priors, matrix)
    if kind == "all priors":
        assert worst == pytest.approx(ldp_level(matrix), abs=1e-12)
    if math.isinf(expected):
        assert worst > 15
        return
    assert worst == pytest.approx(expected, abs=1e-8 * math.exp(expected))
    each = pointwise_capacity(case.priors, matrix)
    assert float(worst) == each.max() == each[worst.output]
    assert PML(1.0, over=case.priors).level(case.p, matrix) == pytest.approx(
        float(worst), rel=1e-14
    )
    if matrix.min() > 1e-3:
        for y, column in enumerate(matrix.T):
            assert each[y] == pytest.approx(
                math.log(column.max() / case.defined.least(column)), abs=1e-8
            )
        assert case.defined.outside(worst.prior) <= 1e-9
        column = matrix[:, worst.output]
        assert math.log(column.max() / (worst.prior @ column)) == pytest.approx(
            float(worst), abs=1e-12
        )


def test_outputs_that_never_occur_leak_nothing_and_a_letter_may_be_impossible() -> None:
    unused = [[0.5, 0.0, 0.5], [0.25, 0.0, 0.75]]
    assert pointwise_capacity(AllPriors(2), unused)[1] == -math.inf
    assert leakage_capacity(AllPriors(2), unused).output == 0
    worst = leakage_capacity(L1Ball([0.5, 0.5], 1.0), [[1.0, 0.0], [0.5, 0.5]])
    assert worst == math.inf
    assert (worst.prior.tolist(), worst.output) == ([1.0, 0.0], 1)
    assert leakage_capacity(MinimumMass(2, 1e-9), np.eye(2)) == pytest.approx(9 * math.log(10))


# ---------------------------------------------------------------- sensitivity


@pytest.mark.parametrize("seed", range(4))
def test_sensitivity_is_what_the_set_adds_to_the_level(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, matrix = random_prior(rng, 4), rng.dirichlet(np.ones(3), 4) + 0.01
    matrix /= matrix.sum(axis=1, keepdims=True)
    case = ball_case(p, float(rng.uniform(0, 2)))
    added = leakage_sensitivity(p, case.priors, matrix)
    assert added == pytest.approx(capacity(case.defined, matrix) - level_under(p, matrix), abs=1e-8)
    assert added >= 0
    assert added.output == leakage_capacity(case.priors, matrix).output
    corners = case.defined.corners()
    gains = [level_under(q, matrix) - level_under(p, matrix) for q in corners]
    assert max(gains) == pytest.approx(float(added), abs=1e-8)
    assert level_under(added.prior, matrix) - level_under(p, matrix) == pytest.approx(
        float(added), abs=1e-9
    )


def test_what_is_no_set_or_not_of_the_set_is_refused() -> None:
    half, ball, other = [0.5, 0.5], L1Ball([0.5, 0.5], 0.1), [0.9, 0.1]
    for no_set in (None, 0.1, half, "l1-ball"):
        refused(PrivacyError, leakage_capacity, "no set of priors", (no_set, np.eye(2)))
        refused(
            PrivacyError, lipschitz_bound, "no set of priors", (no_set, np.eye(2), half, [0.6, 0.4])
        )
    refused(PrivacyError, leakage_sensitivity, "not in L1Ball", ([0.6, 0.4], ball, np.eye(2)))
    pairs = ((half, other), (other, half))
    refused(
        PrivacyError,
        lipschitz_bound,
        "not in L1Ball",
        *((ball, np.eye(2), *pair) for pair in pairs),
    )
    refused(PrivacyError, distance, "2 and 3 letters", (half, [0.5, 0.3, 0.2]))


@pytest.mark.parametrize(
    "priors",
    [
        L1Ball(Prior([0.7, 0.3], labels=["a", "b"]), 0.1),
        Box([0.6, 0.2], [0.8, 0.4], labels=["a", "b"]),
        confidence_box({"a": 70, "b": 30}, 0.1),
    ],
)
def test_letters_must_be_the_same_in_the_same_order(priors: PriorSet) -> None:
    p = Prior([0.3, 0.7], labels=["b", "a"])
    turned = Mechanism(np.eye(2), ["b", "a"])
    for attempt in (
        lambda: leakage_capacity(priors, turned),
        lambda: pointwise_capacity(priors, turned),
        lambda: leakage_sensitivity(p, priors, turned),
        lambda: leakage_sensitivity(p, priors, np.eye(2)),
        lambda: priors.contains(p),
        lambda: lipschitz_bound(priors, np.eye(2), p, p),
        lambda: design(p, PML(0.5, over=priors), MutualInformation()),
        lambda: PML(0.5, over=priors).level(p, np.eye(2)),
    ):
        with pytest.raises(PrivacyError, match="same in another order"):
            attempt()
    right = p.reordered(["a", "b"])
    assert priors.contains(right)
    assert priors.contains([0.7, 0.3])
    assert leakage_sensitivity(right, priors, np.eye(2)) > 0


# ---------------------------------------------------------------- bounds of the literature


def near(rng: np.random.Generator, p: FloatArray, radius: float) -> FloatArray:
    """A random law of positive probabilities at most the radius away."""
    moved = rng.normal(size=len(p))
    moved -= moved.mean()
    moved *= rng.uniform() * radius / np.abs(moved).sum()
    q = p + moved
    return q if q.min() > 0 else p


def mechanism(rng: np.random.Generator, n: int) -> FloatArray:
    """A random mechanism, in any of the privacy regions."""
    share = float(rng.choice([0.02, 0.2, 1.0]))
    matrix = share * rng.dirichlet(np.full(n, 0.7), n) + (1 - share) * rng.dirichlet(np.ones(n))
    if rng.uniform() < 0.5 and share == 1:
        matrix = np.where(matrix < 0.1, 0.0, matrix) + 1e-3 * np.eye(n)[0]
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))


def test_the_distance_is_that_of_l1() -> None:
    assert distance([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]) == pytest.approx(0.6)
    assert distance([0.5, 0.5], [0.5, 0.5]) == 0
    first, second = Prior([0.7, 0.3], labels=["a", "b"]), Prior([0.3, 0.7], labels=["b", "a"])
    with pytest.raises(PrivacyError, match="same in another order"):
        distance(first, second)
    assert distance(first, second.reordered(["a", "b"])) == 0
    assert distance(first, [0.3, 0.7]) == pytest.approx(0.8)


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.sampled_from(KINDS))
def test_the_levels_under_two_priors_of_a_set_are_within_the_lipschitz_bound(
    seed: int, kind: str
) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    case, matrix = random_set(kind, rng, n), mechanism(rng, n)
    corners = case.defined.corners()
    first, second = (rng.dirichlet(np.full(len(corners), 0.3)) @ corners for _ in range(2))
    if min(first.min(), second.min()) <= 1e-9:
        return
    apart = abs(leakage_level(first, matrix) - leakage_level(second, matrix))
    assert apart <= lipschitz_bound(case.priors, matrix, first, second) + 1e-9


def test_the_lipschitz_bound_is_its_formula() -> None:
    # least means: 0.4 * 0.7 + 0.6 * 0.2 of the first column, 0.6 * 0.3 + 0.4 * 0.8 of the second
    ball, matrix = L1Ball([0.5, 0.5], 0.2), [[0.7, 0.3], [0.2, 0.8]]
    ratio = max(0.7 / 0.4, 0.8 / 0.5)
    assert lipschitz_bound(ball, matrix, [0.5, 0.5], [0.6, 0.4]) == pytest.approx(ratio * 0.1)
    assert lipschitz_bound(ball, matrix, [0.6, 0.4], [0.6, 0.4]) == 0
    # an infinite capacity bounds nothing
    assert lipschitz_bound(AllPriors(2), np.eye(2), [0.5, 0.5], [0.6, 0.4]) == math.inf
    assert lipschitz_bound(AllPriors(2), np.eye(2), [0.5, 0.5], [0.5, 0.5]) == 0
    huge = lipschitz_bound(MinimumMass(2, 1e-300), np.eye(2), [0.5, 0.5], [0.6, 0.4])
    assert huge == pytest.approx(1e299)


@pytest.mark.parametrize("share", [0.5, 0.1, 1e-3])
def test_the_lipschitz_bound_is_approached_by_near_priors(share: float) -> None:
    """Data published as they are: the levels are -log a and -log (a - h), the bound is h / (a - h)."""
    a, h = share, share / 1000
    first, second = [a, 1 - a], [a - h, 1 - a + h]
    between = Box([a - h, 1 - a], [a, 1 - a + h])
    apart = abs(leakage_level(second, np.eye(2)) - leakage_level(first, np.eye(2)))
    bound = lipschitz_bound(between, np.eye(2), first, second)
    assert bound == pytest.approx(h / (a - h))
    assert 0.999 * bound < apart < bound


# ---------------------------------------------------------------- Theorem 4


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.floats(0, 2))
@example(52395434, 1.0)  # the mean is 0, and 1 - radius / 2 e^eps a rounding error
def test_no_mechanism_is_more_sensitive_than_the_bound_at_its_level(
    seed: int, share: float
) -> None:
    """Up to twice the least probability, where the bound may be attained, and from there to all priors."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    p, matrix = random_prior(rng, n, 3.0), mechanism(rng, n)
    twice = 2 * float(Prior(p).pmf.min())
    radius = min(2.0, share * twice if share < 1 else twice + (share - 1) * (2 - twice))
    exact = leakage_sensitivity(p, L1Ball(p, radius), matrix)
    level = leakage_level(p, matrix)
    bound = level_increase_within_distance(p, level, radius)
    assert exact <= bound + 1e-9
    occurring = matrix[:, matrix.max(axis=0) > 0]
    lifts = occurring / (p @ occurring)
    worst = lifts[:, lifts.max(axis=0).argmax()]
    tight = level_increase_is_attained(p, matrix)
    assert (
        tight or worst.min() > 0
    )  # past the first region, where an entry of the worst output is zero
    if share < 0.999 and tight:
        assert exact == pytest.approx(bound, abs=1e-9)
    if share < 0.999 and worst.min() == 0:
        assert exact == pytest.approx(-math.log(1 - radius / 2 * worst.max()), abs=1e-9)


@given(SEEDS, st.floats(0.01, 0.99), st.floats(0, 0.999))
@MODEST
def test_extremal_mechanisms_of_the_first_region_reach_the_bound(
    seed: int, part: float, share: float
) -> None:
    rng = np.random.default_rng(seed)
    p = Prior(random_prior(rng, int(rng.integers(2, 7)), 3.0)).pmf
    least = float(p.min())
    epsilon, radius = -part * math.log1p(-least), share * 2 * least
    extremal = closed_forms.high_privacy(p, epsilon)
    printed = -math.log(1 - radius / 2 * (math.exp(epsilon) - 1) / least)
    assert level_increase_within_distance(p, epsilon, radius) == pytest.approx(printed, abs=1e-12)
    assert level_increase_is_attained(p, extremal)
    assert leakage_sensitivity(p, L1Ball(p, radius), extremal) == pytest.approx(printed, abs=1e-9)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.999])
@pytest.mark.parametrize(("n", "k"), [(2, 1), (3, 2), (5, 3), (10, 9)])
def test_singular_mechanisms_reach_the_bound_past_the_first_region(
    n: int, k: int, share: float
) -> None:
    p, radius = np.full(n, 1 / n), share * 2 / n
    singular = closed_forms.k_singular(n, k)
    printed = -math.log(1 - radius / 2 * n / k)
    assert level_increase_within_distance(p, math.log(n / k), radius) == pytest.approx(
        printed, abs=1e-12
    )
    assert level_increase_is_attained(p, singular)
    assert leakage_sensitivity(p, L1Ball(p, radius), singular) == pytest.approx(printed, abs=1e-12)


# ---------------------------------------------------------------- Corollary 2 and eq. (13)


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.floats(0, 1.5))
def test_the_level_under_a_prior_nearby_is_within_the_bound(seed: int, radius: float) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    p, matrix = random_prior(rng, n, 3.0), mechanism(rng, n)
    q = near(rng, p, radius)
    level, apart = leakage_level(p, matrix), distance(p, q)
    bound = level_within_distance(level, apart)
    of_first_region = level_within_distance(level, apart, float(Prior(p).pmf.min()))
    assert leakage_level(q, matrix) <= of_first_region + 1e-9
    assert of_first_region <= bound + 1e-12
    assert of_first_region - level == pytest.approx(
        level_increase_within_distance(p, level, apart), abs=1e-9
    )


def test_past_its_range_the_level_bound_says_nothing() -> None:
    assert level_within_distance(math.log(4), 0.5) == math.inf
    assert level_within_distance(1.0, 2.0) == math.inf
    assert level_within_distance(800.0, 0.0) == level_needed_at_centre(800.0, 0.0) == 800.0
    assert level_within_distance(800.0, 1e-9) == math.inf
    assert level_within_distance(800.0, 1e-310) == math.inf
    expected = 705 - math.log1p(-math.exp(705 + math.log(5e-311)))
    assert level_within_distance(705.0, 1e-310) == pytest.approx(expected)


@given(st.floats(0, 4), st.floats(0, 2), st.floats(0, 0.999))
@MODEST
def test_the_robust_level_is_the_inverse_of_the_level_bound(
    epsilon: float, radius: float, share: float
) -> None:
    near = share * 2 * math.exp(-epsilon)
    printed = epsilon + math.log(1 / (1 - math.exp(epsilon) * near / 2))
    assert level_within_distance(epsilon, near) == pytest.approx(printed, abs=1e-9)
    inner = level_needed_at_centre(epsilon, radius)
    printed = epsilon - math.log(1 + radius / 2 * math.exp(epsilon))
    assert inner == pytest.approx(printed, abs=1e-12)
    assert inner <= epsilon + 1e-15
    if inner >= 0:
        assert level_within_distance(inner, radius) == pytest.approx(epsilon, abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.floats(0, 1.99))
def test_the_robust_level_at_the_centre_suffices_on_the_whole_ball(
    seed: int, radius: float
) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    p, matrix = random_prior(rng, n, 3.0), mechanism(rng, n)
    epsilon = -math.log(max(math.exp(-leakage_level(p, matrix)) - radius / 2, 1e-12))
    assert (
        level_needed_at_centre(epsilon, radius) <= leakage_level(p, matrix) + 1e-9 or epsilon > 27
    )
    if epsilon < 27:
        assert PML(epsilon + 1e-9, over=L1Ball(p, radius)).holds(p, matrix)


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_whether_it_is_tight_is_told_of_rare_letters_and_entries_next_to_zero(part: float) -> None:
    for least in (1e-3, 1e-6, 1e-9, 1e-12):
        for p in ([least, 1 - least], [least, 0.5, 0.5 - least]):
            assert level_increase_is_attained(
                p, closed_forms.high_privacy(p, -part * math.log1p(-least))
            )
            # the rare letter alone stands out: entries could be 1 / least times as far apart
            step = 0.4 * part * least
            rows = [[0.5 + step, 0.5 - step], *[[0.5, 0.5]] * (len(p) - 1)]
            assert not level_increase_is_attained(p, rows)
    for small, tight in (
        (0.0, True),
        (1e-10, False),
    ):  # past the first region only a zero makes it tight
        matrix = [[1 - small, small], [0.5, 0.5], [0.4, 0.6]]
        assert level_increase_is_attained([0.5, 0.3, 0.2], matrix) == tight
