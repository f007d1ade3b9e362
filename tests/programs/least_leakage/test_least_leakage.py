"""The least leakage: against the paper, bisection and closed forms, at hard scales, and its curve."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles.designs import FloatArray, exact_prior, is_stochastic, meets, random_prior
from oracles.least_leakage import bisected, feasible
from strategies import priors

from pmlopt import (
    PML,
    Box,
    ExpectedGain,
    ExpectedLoss,
    L1Ball,
    Mechanism,
    Prior,
    Result,
    design,
    leakage_level,
    least_leakage,
    solve,
    worst_case_utility,
)
from pmlopt.core.numbers.arrays import BoolArray, IntArray
from pmlopt.errors import (
    ProgramError,
    SolverUnavailableError,
)
from pmlopt.model.closed_forms import support_bound, utility_safe_level, utility_safe_mechanism
from pmlopt.model.utility.orders import highest_threshold, utility_order
from pmlopt.programs import Status
from pmlopt.programs.least_leakage.program import LeastLeakage

EXAMPLE = [[3, 2, 1], [1, 3, 2], [2, 1, 3]]
"""WCU, eq. (8)."""

HEAVY = [0.6, 0.2, 0.2]

ROTATED = [[4, 3, 2, 1], [1, 4, 3, 2], [2, 1, 4, 3], [3, 2, 1, 4]]
"""WCU, eq. (13)."""

SMALLEST = [0.02, 0.1, 0.2]
"""p_min in WCU, Figs. 2 and 3: both ends, and between."""


def one_low(smallest: float) -> list[float]:
    return [smallest] + [(1 - smallest) / 3] * 3


def three_low(smallest: float) -> list[float]:
    return [smallest] * 3 + [1 - 3 * smallest]


def counting_order() -> IntArray:
    x, y = np.indices((7, 7))
    return utility_order(-((x - y) ** 2) - (y < x))


def programs_in(result: Result[Any]) -> int:
    """How many linear programs the reason tells of."""
    found = re.search(r"after (\d+) linear programs", result.reason)
    assert found is not None
    return int(found.group(1))


def assert_proved(program: LeastLeakage, result: Result[Any], gap: float = 1e-9) -> None:
    """All that a result claims of itself, and holds in exact arithmetic."""
    matrix = result.mechanism.matrix
    assert result.status is Status.OPTIMAL
    assert result.solver == "level-search"
    assert result.certificate.verify()
    assert is_stochastic(matrix)
    assert meets(program.prior, PML(result.value), matrix)
    assert (matrix[~program.allowed] == 0).all()
    assert result.bound <= result.value <= result.bound + gap
    assert result.gap == result.value - result.bound
    # the value is what holds in exact arithmetic: a few units in the last place above the floats' level
    assert result.level <= result.value <= result.level + 4e-15
    assert result.level >= leakage_level(program.prior, result.mechanism)
    law = program.prior.pmf @ matrix
    assert not ((law > 0) & (law < 1e-12)).any()


def close_to(least: float) -> Any:
    """What bisection says: its programs are exact to 1e-10 in the share e^-level."""
    return pytest.approx(least, abs=1e-8 + 1e-9 * math.exp(least))


def random_ranks(seed: int) -> tuple[Prior, FloatArray, int]:
    """Orders by turns: all different, grouped ties, any ranks at all, ties in turn."""
    rng = np.random.default_rng([901, seed])
    n, m = (int(size) for size in rng.integers(2, 10, 2))
    prior = Prior(random_prior(rng, n, (0.3, 1.0, 10.0)[seed % 3]))
    order = [
        lambda: utility_order(rng.random((n, m))),
        lambda: utility_order(rng.integers(0, 3, (n, m)), "grouped"),
        lambda: rng.integers(1, m + 1, (n, m)),
        lambda: utility_order(rng.integers(0, 4, (n, m))),
    ][seed % 4]()
    return prior, np.asarray(order, dtype=float), int(rng.integers(1, highest_threshold(order) + 1))


# ---------------------------------------------------------------- the paper


@pytest.mark.parametrize(
    "p",
    [[0.6, 0.2, 0.2], [0.5, 0.25, 0.25], [0.7, 0.25, 0.05], [0.55, 0.05, 0.4], [0.98, 0.01, 0.01]],
)
def test_example_1_with_a_heavy_letter_drops_the_third_output(p: list[float]) -> None:
    program = worst_case_utility(p, EXAMPLE, 2)
    result = solve(program)
    assert_proved(program, result)
    assert result.value == pytest.approx(math.log(2), abs=1e-9)
    printed = np.array(
        [[(1 - 2 * p[2]) / (2 * p[0]), (1 - 2 * p[1]) / (2 * p[0]), 0], [0, 1, 0], [1, 0, 0]]
    )
    assert leakage_level(p, printed) == pytest.approx(math.log(2), abs=1e-12)
    assert solve(program, warm_start=printed).value == pytest.approx(math.log(2), abs=1e-12)
    if p[1] + p[2] < 0.5:
        assert result.mechanism.matrix[:, 2].tolist() == [0, 0, 0]
        assert result.closed_form is None
        assert result.value < utility_safe_level(p, EXAMPLE, 2)


@pytest.mark.parametrize(
    ("p", "order", "h"),
    [
        *(
            (p, EXAMPLE, 2)
            for p in ([0.5, 0.25, 0.25], [0.4, 0.3, 0.3], [0.45, 0.15, 0.4], [1 / 3] * 3)
        ),
        *((one_low(smallest), ROTATED, h) for smallest in SMALLEST for h in (2, 3)),  # Figure 2
        *((three_low(smallest), ROTATED, 3) for smallest in SMALLEST),  # Figure 3
    ],
)
def test_the_closed_form_is_optimal_where_the_paper_says_so(
    p: list[float], order: Any, h: int
) -> None:
    program = worst_case_utility(p, order, h)
    level = -math.log(p[1] + p[2]) if order is EXAMPLE else utility_safe_level(p, order, h)
    for start in (None, False):
        result = solve(program, warm_start=start)
        assert_proved(program, result)
        assert result.value == pytest.approx(level, abs=1e-9)
        assert result.closed_form is not None
        assert result.closed_form.name == "utility_safe_mechanism"
        assert result.closed_form.value == pytest.approx(level, abs=1e-12)
        assert result.closed_form.difference == result.value - result.closed_form.value


@pytest.mark.parametrize("smallest", SMALLEST)
def test_figure_3_the_closed_form_is_not_optimal_at_2(smallest: float) -> None:
    prior = three_low(smallest)
    program = worst_case_utility(prior, ROTATED, 2)
    result = solve(program)
    assert_proved(program, result)
    assert result.value < utility_safe_level(prior, ROTATED, 2) - 0.1
    assert result.value == pytest.approx(math.log(1.5), abs=1e-9)
    assert result.closed_form is None
    assert (result.mechanism.matrix.max(axis=0) == 0).sum() == 1


def test_the_counting_query_leaks_less_than_the_form() -> None:
    order, prior = counting_order(), Prior.uniform(7)
    levels = []
    for h in range(1, 8):
        program = worst_case_utility(prior, order, h)
        result = solve(program)
        assert_proved(program, result)
        assert result.value == close_to(bisected(prior.pmf, program.allowed))
        assert result.value <= utility_safe_level(prior, order, h) + 1e-12
        levels.append(math.exp(result.value))
    assert levels == pytest.approx([1, 1, 1, 1, 2, 3.5, 7], abs=1e-8)


# ---------------------------------------------------------------- random orders


@pytest.mark.parametrize("seed", range(12))
def test_random_orders_are_optimal(seed: int) -> None:
    prior, order, h = random_ranks(seed)
    m = order.shape[1]
    program = worst_case_utility(prior, order, h, m)
    result = solve(program)
    assert_proved(program, result)
    assert result.value == close_to(bisected(prior.pmf, program.allowed))
    assert result.value <= leakage_level(prior, utility_safe_mechanism(order, h)) + 1e-15
    assert result.bound >= support_bound(prior, order, h) - 1e-12
    assert result.value >= support_bound(prior, order, h) - 1e-12
    cold = solve(program, warm_start=False)
    assert_proved(program, cold)
    assert cold.value == pytest.approx(result.value, abs=1e-9)


# ---------------------------------------------------------------- floors on the utility


def floor_at(
    prior: Prior, gains: FloatArray, share: float, allowed: BoolArray | None = None
) -> float:
    """A share of the way from the best constant's gain, or the least there is, to the largest."""
    can = np.ones(gains.shape, dtype=bool) if allowed is None else allowed
    best = float(prior.pmf @ np.where(can, gains, -np.inf).max(axis=1))
    worst = float(prior.pmf @ np.where(can, gains, np.inf).min(axis=1))
    low = max([worst, *(prior.pmf @ gains)[can.all(axis=0)].tolist()])
    return float(low + share * (best - low))


@pytest.mark.parametrize("seed", range(3))
def test_a_floor_at_the_maximum_leaves_the_best_outputs(seed: int) -> None:
    rng = np.random.default_rng([908, seed])
    n, m = (int(size) for size in rng.integers(2, 7, 2))
    prior, gains = Prior(random_prior(rng, n)), rng.normal(size=(n, m))
    best = np.eye(m)[gains.argmax(axis=1)]
    most = ExpectedGain(gains).value(prior, Mechanism(best, prior.labels))
    for program in (
        least_leakage(prior, ExpectedGain(gains), expected=most, outputs=m),
        least_leakage(prior, ExpectedLoss(-gains), expected=-most, outputs=m),
    ):
        result = solve(program)
        assert_proved(program, result)
        assert result.value == pytest.approx(leakage_level(prior, best), abs=1e-9)
        assert result.mechanism.matrix.tolist() == best.tolist()


THREE = [0.2, 0.3, 0.5]


# ---------------------------------------------------------------- hard scales


@settings(max_examples=30, deadline=None)
@given(priors(1, 6), st.integers(1, 6), st.integers(0, 2**32 - 1))
@example(
    np.array([1.0, 0.5, 1e-6, 1.0, 1.0]) / 3.500001, 6, 3809993
)  # at 1e-10 HiGHS ends with Unknown
def test_any_prior_with_rare_letters_is_solved_in_the_worst_case(
    prior: FloatArray, outputs: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    order = utility_order(rng.integers(0, 4, (len(prior), outputs)), ("first", "grouped")[seed % 2])
    h = int(rng.integers(1, outputs + 1))
    program = worst_case_utility(prior, order, h, outputs)
    assert_proved(program, solve(program))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("rare", [1e-2, 1e-3, 1e-4, 1e-6])
def test_a_floor_about_a_rare_letter_is_proved(rare: float, share: float) -> None:
    # the letter of mass r must be told with probability f: the best level is -log(r (2 - f))
    program = least_leakage(
        [rare, 1 - rare], ExpectedGain(np.eye(2)), expected=1 - rare + share * rare
    )
    result = solve(program)
    assert result.value == pytest.approx(-math.log(rare * (2 - share)), abs=1e-7)
    assert_proved(program, result, 1e-7)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
def test_no_bound_is_above_a_constant_that_reaches_the_floor_in_exact_arithmetic(
    seed: int, offset: float
) -> None:
    rng = np.random.default_rng([910, seed])
    n, m = (int(size) for size in rng.integers(2, 6, 2))
    prior = Prior(random_prior(rng, n))
    gains = rng.normal(size=(n, m)) * 1e-3 + offset
    p = exact_prior(prior)
    most = max(
        sum((a * Fraction(value) for a, value in zip(p, column, strict=True)), Fraction(0))
        for column in gains.T.tolist()
    )
    floor = float(most)
    while Fraction(floor) > most:
        floor = math.nextafter(floor, -math.inf)
    assert solve(least_leakage(prior, ExpectedGain(gains), expected=floor, outputs=m)).bound <= 1e-9


# ---------------------------------------------------------------- edges


@pytest.mark.parametrize("seed", range(3))
def test_the_lowest_threshold_demands_nothing_and_the_highest_everything(seed: int) -> None:
    rng = np.random.default_rng([911, seed])
    n, m = (int(size) for size in rng.integers(2, 8, 2))
    prior, order = Prior(random_prior(rng, n)), utility_order(rng.random((n, m)))
    lowest, highest = worst_case_utility(prior, order, 1, m), worst_case_utility(prior, order, m, m)
    free, told = solve(lowest), solve(highest, warm_start=False)
    assert_proved(lowest, free)
    assert_proved(highest, told)
    assert free.value == 0
    assert told.mechanism.matrix.tolist() == (order == m).astype(float).tolist()
    assert told.value == pytest.approx(leakage_level(prior, told.mechanism), abs=1e-14)


# ---------------------------------------------------------------- how it is asked for


def test_a_start_within_the_demands_is_used() -> None:
    prior = Prior([0.6, 0.2, 0.2], ["a", "b", "c"])
    program = worst_case_utility(prior, EXAMPLE, 2)
    best = solve(program)
    stricter = solve(worst_case_utility(prior, EXAMPLE, 3))
    for start in (
        best,
        best.mechanism,
        best.mechanism.matrix,
        best.mechanism.matrix.tolist(),
        stricter,
    ):
        result = solve(program, warm_start=start)
        assert_proved(program, result)
        assert result.warm_started
        assert result.value == pytest.approx(math.log(2), abs=1e-9)
    assert programs_in(solve(program, warm_start=best)) <= programs_in(
        solve(program, warm_start=False)
    )
    assert not solve(program, warm_start=False).warm_started


HALF_RIGHT = least_leakage([0.25] * 4, ExpectedGain(np.eye(4)), expected=0.5)


def test_a_floor_is_met_from_a_start_or_without_leakage_where_a_constant_meets_it() -> None:
    assert solve(HALF_RIGHT, warm_start=np.eye(4)).value == pytest.approx(math.log(2), abs=1e-9)
    for below in (0.0, 1e-12, 100.0):
        program = least_leakage(THREE, ExpectedGain(np.eye(3)), expected=0.5 - below)
        result = solve(program)
        assert_proved(program, result)
        assert result.value == pytest.approx(0, abs=1e-12)


def test_without_a_start_and_without_time_there_is_a_mechanism() -> None:
    program = worst_case_utility(HEAVY, EXAMPLE, 2)
    found = solve(program, time_limit=1e-9, warm_start=False)
    assert found.certificate.verify()
    assert found.bound - 1e-9 <= solve(program).value <= found.value + 1e-9


# ---------------------------------------------------------------- the program


def declared() -> list[LeastLeakage]:
    low, high = [0.5, 0.1, 0.1], [0.7, 0.4, 0.3]
    p, table = (
        [0.1, 0.2, 0.3, 0.4],
        [[0.9, 0.2, 0.4], [0.1, 0.8, 0.5], [0.3, 0.6, 0.9], [0.5, 0.4, 0.7]],
    )
    return [
        worst_case_utility([0.6, 0.2, 0.2], EXAMPLE, 2),
        worst_case_utility(Prior.uniform(7), counting_order(), 5),
        least_leakage([0.25] * 4, ExpectedGain(np.eye(4)), expected=0.5),
        least_leakage(p, ExpectedLoss(table), expected=0.35, outputs=3),
        least_leakage(p, ExpectedGain(table), expected=0.75, worst=0.35, outputs=3),
        *(
            worst_case_utility(HEAVY, EXAMPLE, 2, over=over)
            for over in (L1Ball(HEAVY, 0.1), Box(low, high))
        ),
    ]


@pytest.mark.parametrize("program", declared(), ids=str)
def test_its_optimum_is_zero_where_the_level_can_be_reached(program: LeastLeakage) -> None:
    result = solve(program)
    p = program.prior.pmf
    for step in (-0.5, -1e-3, 1e-3, 0.5):
        level = result.value + step
        if level < 0:
            continue
        program.exp_neg_epsilon.value = math.exp(-level)
        missing = float(program.problem.solve(solver=cp.HIGHS))
        assert (missing <= 1e-7) == (step > 0)
        if program.over is not None:
            continue
        if program.floor is None:
            assert feasible(p, program.allowed, level) == (step > 0)
        else:
            least = program.floor.min_gain
            assert feasible(p, program.allowed, level, program.floor.normalized_gains, least) == (
                step > 0
            )
        if step > 0:
            matrix = np.asarray(program.mechanism.value)
            assert matrix == pytest.approx(
                program.expand_entries(program.variables["entries"].value)
            )
            assert leakage_level(program.prior, np.maximum(matrix, 0)) <= level + 1e-6
    again = solve(program)  # the share that was left in the parameter changes nothing
    assert again.value == result.value


# ---------------------------------------------------------------- both floors beside a rare letter


def two_floors(rare: float, seed: int) -> LeastLeakage | None:
    """A random problem with both floors and a letter of mass `rare`; None where they are out of reach."""
    rng = np.random.default_rng([4711, seed])
    n, m = (int(size) for size in rng.integers(2, 7, 2))
    prior = Prior([rare, *(rng.dirichlet(np.full(n - 1, (0.3, 1.0, 5.0)[seed % 3])) * (1 - rare))])
    gains = rng.random((n, m)) if seed % 2 else rng.integers(0, 4, (n, m)).astype(float)
    worst = float(rng.uniform(gains.min(), gains.max(axis=1).min()))
    share = (rng.random(), 1 - rng.random() * rare, 1 - 10 ** -rng.uniform(0, 8))[
        int(rng.integers(3))
    ]
    with suppress(ProgramError):
        target = floor_at(prior, gains, share, gains >= worst)
        return least_leakage(prior, ExpectedGain(gains), expected=target, worst=worst, outputs=m)
    return None


@pytest.mark.parametrize(
    ("rare", "gap", "seeds"),
    [(1e-6, 1e-8, [*range(13, 100, 12), 74, 92, 128, 192]), (1e-8, 1e-6, [15, 29, 52, 147, 173]),
     (1e-10, 2e-5, [18, 29, 36, 52, 249])],
)  # fmt: skip
def test_both_floors_beside_a_rare_letter_are_proved(
    rare: float, gap: float, seeds: list[int]
) -> None:
    for seed in seeds:
        program = two_floors(rare, seed)
        assert program is not None
        assert program.floor is not None
        result = solve(program)
        assert result.certificate.verify()
        assert result.gap <= gap, seed
        assert program.floor.compute_slack(result.mechanism.matrix) >= -program.floor.rounding
        assert programs_in(result) <= 80


def test_the_inversion_and_the_linear_programs_agree() -> None:
    n = 24
    prior = Prior(random_prior(np.random.default_rng([922, n]), n))
    table = np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype(float)
    least = float((prior.pmf @ table).min())
    program = least_leakage(prior, ExpectedLoss(table), expected=0.4 * least)
    result = solve(program)
    assert result.solver == "inversion"
    assert result.gap <= 1e-8
    assert result.certificate.verify()
    assert result.value == pytest.approx(solve(program, "level-search").value, abs=2e-8)
    best = design(prior, PML(result.value), ExpectedLoss(table))
    assert solve(best).value == pytest.approx(0.4 * least, abs=1e-7 * least)
    stopped = solve(program, time_limit=1e-3)
    assert stopped.certificate.verify()
    assert stopped.bound <= result.value <= stopped.value
    with pytest.raises(SolverUnavailableError, match="inversion"):
        solve(
            least_leakage(prior, ExpectedLoss(table), worst=5.0, expected=2.0 * least), "inversion"
        )


def test_ranks_by_the_interior_point() -> None:
    rng = np.random.default_rng([923, 0])
    order = utility_order(rng.random((24, 24)))
    program = worst_case_utility(random_prior(rng, 24, 5.0), order, 13)
    result, by_simplex = solve(program, "inversion"), solve(program, "level-search")
    assert result.certificate.verify()
    assert result.certificate.mechanism.matrix[~program.allowed].max() == 0
    assert result.value == pytest.approx(by_simplex.value, abs=1e-6)
    assert result.bound == pytest.approx(by_simplex.value, abs=1e-8)
    assert result.bound <= by_simplex.value


@pytest.mark.parametrize("exponent", [-310, -300, 0, 150])
def test_the_unit_of_the_gains_changes_nothing(exponent: int) -> None:
    prior, gains = Prior([1e-7, 0.3, 0.7 - 1e-7]), np.array([[1.0, 0.0], [1.0, 0.25], [0.0, 0.5]])
    scale = 2.0 ** round(exponent / math.log10(2))
    expected = floor_at(prior, gains, 0.75)
    result = solve(
        least_leakage(prior, ExpectedGain(gains * scale), expected=expected * scale, outputs=2)
    )
    plain = solve(least_leakage(prior, ExpectedGain(gains), expected=expected, outputs=2))
    assert result.value == pytest.approx(plain.value, abs=1e-9)
    reached = ExpectedGain(gains).value(prior, result.mechanism.matrix)
    assert reached >= expected * (1 - 1e-12)
