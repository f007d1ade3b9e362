"""Each requirement is one thing in several forms: number, constraint, exact excess, support function."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles import designs as oracles
from oracles.designs import linear_program, support, violation
from oracles.prior_sets import KINDS, random_set, robust_rows

from pmlopt import (
    LDP,
    LIP,
    PML,
    AllPriors,
    ApproximatePML,
    ExpectedGain,
    ExpectedLoss,
    GuessLeakage,
    MaximalAlphaLeakage,
    MaximalLeakage,
    Mechanism,
    MutualInformation,
    Prior,
    RenyiPML,
    SibsonLeakage,
    design,
    solve,
)
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import PrivacyError
from pmlopt.measures import approximate_pml_level
from pmlopt.model.privacy import Requirement
from pmlopt.model.privacy.mean_bounds import MeanBounds
from pmlopt.programs import Status
from pmlopt.programs.exact.rounding import round_exp_down, round_rows_to_grid, scale_to_integers
from pmlopt.programs.linear.certificate import LinearCertificate, compute_utility_bound
from pmlopt.programs.result import Result

ROUNDING = 1e-13
"""Violations by rounding are below this; those of the matrices built just outside are above."""

MARGIN = 2.0**-39
"""The constraints on a variable may be stricter than the claim by 2^-40, far below any solver's tolerance."""

kinds = pytest.mark.parametrize("kind", oracles.KINDS)


def one_limit_moved(kind: str, levels: dict[str, float], factor: float) -> list[Requirement]:
    """The requirements whose limits are the levels, with one of them multiplied by the factor."""
    if kind != "lip":
        return [oracles.requirement_at(kind, levels, factor)]
    lower, upper = levels["lip_lower"], levels["lip_upper"]
    return [LIP(lower * factor, upper + 1), LIP(lower + 1, upper * factor)]


@kinds
@settings(max_examples=25, deadline=None)
@given(case=oracles.cases())
def test_constraint_and_number_agree_just_inside_and_outside(kind: str, case: oracles.Case) -> None:
    levels = oracles.levels_of(kind, case.prior, case.matrix)
    requirement = oracles.requirement_at(kind, levels, 1.0)
    found = requirement.levels(case.prior, case.matrix)
    assert requirement.name == kind
    assert requirement.limits == levels
    assert list(found) == list(levels)
    assert list(found.values()) == pytest.approx(list(levels.values()), rel=1e-12, abs=1e-14)
    assert requirement.level(case.prior, case.matrix) == max(found.values())
    assume(min(levels.values()) > 1e-2)
    for inside in one_limit_moved(kind, levels, 1 + 1e-6):
        assert inside.holds(case.prior, case.matrix)
        assert np.all(inside.violation(case.prior.pmf, case.matrix, math.exp) <= 0)
        assert oracles.violation(case.prior, inside, case.matrix) <= ROUNDING
    for outside in one_limit_moved(kind, levels, 1 - 1e-6):
        assert not outside.holds(case.prior, case.matrix)
        assert not np.all(outside.violation(case.prior.pmf, case.matrix, math.exp) <= 0)
        assert oracles.violation(case.prior, outside, case.matrix) > ROUNDING


@pytest.mark.parametrize("kind", ["pml", "maximal-leakage"])
@settings(max_examples=25, deadline=None)
@given(case=oracles.cases(), zeros=st.integers(0, 2**32 - 1))
def test_zeros_and_unused_outputs_change_nothing(kind: str, case: oracles.Case, zeros: int) -> None:
    matrix = case.matrix * (np.random.default_rng(zeros).random(case.matrix.shape) < 0.6)
    assume(bool((matrix.sum(axis=1) > 0).all()))
    matrix = np.hstack([matrix / matrix.sum(axis=1, keepdims=True), np.zeros((len(matrix), 1))])
    used = matrix[:, matrix.max(axis=0) > 0]
    peaks = used.max(axis=0)
    level = np.log(peaks / (case.prior.pmf @ used)).max() if kind == "pml" else np.log(peaks.sum())
    assume(level > 1e-2)
    for factor in (1 + 1e-3, 1 - 1e-3):
        requirement = oracles.requirement_at(kind, {kind: float(level)}, factor)
        assert requirement.holds(case.prior, matrix) is (factor > 1)
        assert (oracles.violation(case.prior, requirement, matrix) <= len(matrix) * MARGIN) is (
            factor > 1
        )


@pytest.mark.parametrize("requirement", [LDP(30.0), LIP(30.0, 30.0)])
def test_an_excluded_letter_breaks_every_bound_from_below(requirement: Requirement) -> None:
    matrix = np.array([[0.0, 1.0], [0.5, 0.5]])
    assert not requirement.holds([0.5, 0.5], matrix)
    assert max(requirement.levels([0.5, 0.5], matrix).values()) == math.inf
    assert oracles.violation(Prior([0.5, 0.5]), requirement, matrix) > 0


@settings(max_examples=25, deadline=None)
@given(case=oracles.cases(), epsilon=st.floats(0.0, 3.0))
def test_relaxation_of_maximal_leakage_is_the_joint_linear_program(
    case: oracles.Case, epsilon: float
) -> None:
    privacy, p = MaximalLeakage(epsilon), case.prior.pmf
    expected = oracles.joint_support(p, privacy, case.gains, with_mass=False)
    relaxed = privacy.support_function(case.prior, case.gains)
    assert relaxed == pytest.approx(expected, abs=1e-7)
    assert relaxed >= oracles.joint_support(p, privacy, case.gains) - 1e-7


IMPOSSIBLE = [-1e-9, -1, math.nan, math.inf, -math.inf, "half", None, [1.0, -2.0]]
MADE: dict[str, Callable[[Any], Requirement]] = {
    **{kind: partial(oracles.bounded, kind) for kind in oracles.KINDS},
    "lip upper": lambda bad: LIP(1.0, bad),
    "approximate": lambda bad: ApproximatePML(bad, 0.1),
    "guesses": lambda bad: GuessLeakage(1, bad),
    **{of.name: partial(of, 2.0) for of in (RenyiPML, SibsonLeakage, MaximalAlphaLeakage)},
}
"""Each of its bound in nats."""

OTHERS: list[tuple[Callable[[Any], Requirement], list[Any]]] = [
    (lambda bad: ApproximatePML(0.5, bad), [0, 1, -0.1, 1.1, math.nan, math.inf, "half", None, [0.1], True]),
    (lambda bad: GuessLeakage(bad, 0.1), [0, 1.5, -1, math.nan, "two", None]),
    *((lambda bad, of=of: of(bad, 0.3), [1, 0.5, -2, math.inf, math.nan, "two", None])
      for of in (RenyiPML, SibsonLeakage, MaximalAlphaLeakage)),
]  # fmt: skip


@pytest.mark.parametrize("kind", MADE)
def test_impossible_bounds_are_refused(kind: str) -> None:
    for bad in IMPOSSIBLE:
        with pytest.raises(PrivacyError):
            MADE[kind](bad)


def test_impossible_orders_slacks_guesses_and_exponents_are_refused() -> None:
    for make, every in OTHERS:
        for bad in every:
            with pytest.raises(PrivacyError):
                make(bad)
    for of in (LDP, lambda e: LIP(e, 1.0), lambda e: LIP(1.0, e)):
        of(700)
        with pytest.raises(PrivacyError, match="700"):
            of(700.1)


@pytest.mark.parametrize(
    "privacy",
    [
        RenyiPML(2, 0.5, over=AllPriors(2)), MaximalAlphaLeakage(2, 0.5), ApproximatePML(0.5, 0.1),
        ApproximatePML(0.5, 0.1) & PML(0.5), MaximalLeakage(0.5) & PML(0.5),
    ],
    ids=str,
)  # fmt: skip
def test_without_extreme_columns_sub_convex_utilities_are_refused(privacy: Requirement) -> None:
    with pytest.raises(PrivacyError, match="sub-convex"):
        design([0.5, 0.5], privacy, MutualInformation())


@pytest.mark.parametrize("of", [PML, lambda epsilon: ApproximatePML(epsilon, 1e-12)])
@pytest.mark.parametrize("epsilon", [math.log(10) + 1e-9, 50.0, 800.0])
def test_past_the_largest_leakage_nothing_binds(
    of: Callable[[float], Requirement], epsilon: float
) -> None:
    prior, requirement = Prior.from_counts([1, 9]), of(epsilon)
    exactly = requirement.violation(
        np.array(prior.weights, dtype=object), scale_to_integers(np.eye(2)), round_exp_down
    )
    assert requirement.holds(prior, Mechanism(np.eye(2)))
    assert oracles.violation(prior, requirement, np.eye(2)) <= MARGIN
    assert np.all(exactly <= 0)


SEEDS = st.integers(0, 2**32 - 1)


def drawn(rng: np.random.Generator) -> tuple[Prior, FloatArray, FloatArray, list[MeanBounds]]:
    """A prior, gains, a mechanism, and the requirements that are lists of pairs."""
    n, first, second = int(rng.integers(2, 6)), *rng.uniform(0, 2, 2)
    prior = Prior(rng.dirichlet(np.full(n, 2.0)))
    mixed = rng.uniform(0, 1) * rng.dirichlet(np.ones(3), n)
    matrix = round_rows_to_grid(
        mixed + (1 - mixed.sum(axis=1, keepdims=True)) * rng.dirichlet(np.ones(3))
    )
    return prior, rng.normal(size=(n, 3)), matrix, [PML(first), LDP(first), LIP(first, second)]


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_support_and_check_are_those_of_the_pairs(seed: int) -> None:
    prior, gains, matrix, requirements = drawn(np.random.default_rng(seed))
    weights = np.array(prior.weights, dtype=object)
    for requirement in requirements:
        ratios, exactly = requirement.ratios(prior.pmf), requirement.ratios(weights)
        assert ratios is not None
        assert exactly is not None
        found = requirement.support_function(prior, gains)
        assert found == pytest.approx(ratios.support_function(prior.pmf, gains), abs=1e-9)
        assert found == pytest.approx(support(prior.pmf, requirement, gains), abs=1e-7)
        own = requirement.violation(weights, scale_to_integers(matrix), round_exp_down)
        pairs = exactly.violation(scale_to_integers(matrix), round_exp_down)
        assert (np.asarray(own) > 0).tolist() == (np.asarray(pairs) > 0).tolist()
        rows = ratios.log_ratios(matrix).max(axis=1)
        assert requirement.holds(prior, matrix) == bool((rows <= ratios.exponents).all())


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=12, deadline=None)
@given(seed=SEEDS)
def test_the_support_over_a_set_is_that_of_its_corners_and_of_its_linear_rows(
    kind: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    case = random_set(kind, rng, int(rng.integers(2, 5)))
    epsilon = float(rng.choice([0.02, *rng.uniform(0.05, 3, 5)]))
    prior, gains = Prior(case.p), rng.normal(size=(case.priors.size, 3))
    requirement, p = PML(epsilon, over=case.priors), prior.pmf
    rows = requirement.linear_rows(prior)
    assert rows is not None
    system = np.hstack([rows.on_column.toarray(), rows.on_numbers.toarray()])
    more = np.zeros(system.shape[1] - len(p))
    bounds = [(0.0, None)] * len(p) + [
        (low if math.isfinite(low) else None, None) for low in rows.least
    ]
    corners = robust_rows(case.defined.corners(), 1, epsilon)

    def largest(rows: FloatArray, gain: FloatArray, ends: Any) -> float:
        """The largest `<p g, v>` of a column of mean one, numbers of its own after it."""
        wide = rows.shape[1] - len(p)
        cost, mean = np.append(-p * gain, more[:wide]), np.append(p, more[:wide])[None, :]
        limits = {"A_ub": rows, "b_ub": np.zeros(len(rows)), "A_eq": mean, "b_eq": [1.0]}
        return -float(linear_program(cost, **limits, bounds=ends).fun)

    relaxed = requirement.support_function(prior, gains)
    assert relaxed == pytest.approx(
        max(largest(system, gain, bounds) for gain in gains.T), abs=1e-7
    )
    by_corners = max(largest(corners, gain, (0, None)) for gain in gains.T)
    assert relaxed == pytest.approx(by_corners, abs=2e-8)
    assert relaxed >= by_corners - 1e-9


GAP = 1e-7

DELTAS = st.one_of(st.floats(0.01, 0.99), st.sampled_from([1e-6, 1e-3, 0.999, 1 - 1e-9]))


def assert_proved(result: Result[LinearCertificate], epsilon: float, delta: float) -> None:
    """All that a result claims of itself."""
    privacy = result.certificate.privacy
    matrix, prior = result.mechanism.matrix, result.certificate.prior
    assert result.status is Status.OPTIMAL
    assert result.gap <= GAP
    assert result.certificate.verify()
    assert oracles.is_stochastic(matrix)
    assert privacy.holds(prior, matrix)
    level = approximate_pml_level(prior, matrix, delta)  # rounded up where it is claimed
    assert level <= result.certificate.levels["approximate_pml"] <= level + 1e-12
    assert result.level <= epsilon
    # the slack itself, from the definition
    over = np.maximum(matrix - math.exp(min(epsilon, 50.0)) * (prior.pmf @ matrix), 0.0)
    assert over.sum(axis=1).max() <= delta * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(9))
def test_the_optimum_is_that_of_the_dense_program(seed: int) -> None:
    rng = np.random.default_rng([1301, seed])
    n, m = (int(number) for number in rng.integers(2, 6, 2))
    p = oracles.random_prior(rng, n, (0.3, 1.0, 10.0)[seed % 3])
    if seed >= 6:  # a rare letter
        p = np.append(p * (1 - 1e-6), 1e-6)
    epsilon, gains = float(rng.uniform(0, 1.1)) * -math.log(p.min()), rng.normal(size=(len(p), m))
    delta = float(rng.choice([1e-4, 0.01, 0.1, 0.3, 0.6]))
    utility: ExpectedGain | ExpectedLoss = ExpectedGain(gains) if seed % 2 else ExpectedLoss(-gains)
    result = solve(design(p, ApproximatePML(epsilon, delta), utility))
    assert_proved(result, epsilon, delta)
    sign = 1 if seed % 2 else -1
    best = oracles.optimum(p, ApproximatePML(epsilon, delta), gains).value
    assert sign * result.value == pytest.approx(best, abs=1e-7)
    assert sign * result.bound >= best - 1e-9


@settings(max_examples=40, deadline=None)
@given(
    case=oracles.cases(), epsilon=st.floats(0.0, 3.0), zeros=st.none() | st.integers(0, 2**32 - 1)
)
def test_constraint_number_and_excess_agree_just_inside_and_outside(
    case: oracles.Case, epsilon: float, zeros: int | None
) -> None:
    """The least slack of a mechanism, by definition, decides; also with zeros and with unused outputs."""
    matrix = case.matrix
    if zeros is not None:
        matrix = matrix * (np.random.default_rng(zeros).random(matrix.shape) < 0.6)
        assume(bool((matrix.sum(axis=1) > 0).all()))
        matrix = np.hstack([matrix / matrix.sum(axis=1, keepdims=True), np.zeros((len(matrix), 1))])
    law = case.prior.pmf @ matrix
    least = float(np.maximum(matrix - math.exp(epsilon) * law, 0.0).sum(axis=1).max())
    assume(1e-6 < least < 0.99)
    weights = np.array(case.prior.weights, dtype=object)
    for factor in (1 + 1e-6, 1 - 1e-6):
        requirement = ApproximatePML(epsilon, least * factor)
        assert requirement.holds(case.prior, matrix) is (factor > 1)
        assert (violation(case.prior, requirement, matrix) <= len(matrix) * MARGIN * least) is (
            factor > 1
        )
        in_floats = requirement.violation(case.prior.pmf, matrix, math.exp)
        exactly = requirement.violation(weights, scale_to_integers(matrix), round_exp_down)
        assert bool(np.all(in_floats <= 0)) is (factor > 1)
        assert bool(np.all(exactly <= 0)) is (factor > 1)


# ---------------------------------------------------------------- the support function


@settings(max_examples=30, deadline=None)
@given(case=oracles.cases(), share=st.floats(0.0, 1.2), delta=DELTAS)
def test_relaxation_is_the_support_function(case: oracles.Case, share: float, delta: float) -> None:
    epsilon = share * case.prior.max_leakage
    requirement = ApproximatePML(epsilon, delta)
    expected = oracles.joint_support(case.prior.pmf, requirement, case.gains)
    relaxed = requirement.support_function(case.prior, case.gains)
    assert relaxed >= expected - 1e-9
    assert relaxed == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("delta", [0.01, 0.5, 1 - 1e-9])
def test_at_the_largest_leakage_the_relaxation_is_the_largest_gain(delta: float) -> None:
    rng = np.random.default_rng(8)
    for _ in range(150):  # e^eps times the least mass is 1, or the float below it
        prior = Prior(rng.dirichlet(np.ones(int(rng.integers(2, 6)))))
        gains = rng.normal(size=(prior.size, 3))
        relaxed = ApproximatePML(prior.max_leakage, delta).support_function(prior, gains)
        assert relaxed == pytest.approx(gains.max(), abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(case=oracles.cases(), delta=DELTAS, spread=st.sampled_from([0.0, 1e-3, 1.0, 1e3, 1e9]))
def test_any_multipliers_bound_every_mechanism(
    case: oracles.Case, delta: float, spread: float
) -> None:
    requirement = ApproximatePML(
        approximate_pml_level(case.prior, case.matrix, delta) + 1e-9, delta
    )
    value = float((case.prior.pmf[:, None] * case.gains * case.matrix).sum())
    assert requirement.support_function(case.prior, case.gains) >= value - 1e-12
    multipliers = spread * case.rng.normal(size=case.prior.size)
    assert compute_utility_bound(case.prior, requirement, case.gains, multipliers) >= value
