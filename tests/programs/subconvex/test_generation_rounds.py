"""Rounds of column generation with a pricer that is given: what is priced, kept, proved, and when it ends."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.model.utility import MutualInformation
from pmlopt.programs.subconvex import column_generation
from pmlopt.programs.subconvex.column_generation import (
    _ColumnGeneration,
    _search_fewer_outputs,
    reduce_outputs,
)
from pmlopt.programs.subconvex.column_spaces import ColumnSpace
from pmlopt.programs.subconvex.columns import ColumnUtility, DenseBatch, PricingResult
from pmlopt.programs.subconvex.split_pricing import SplitPricer
from pmlopt.solvers.parametric_program import MasterProblem
from pmlopt.solvers.solver_result import NO_DEADLINE

P = np.array([0.5, 0.3, 0.2])
UNITS = np.diag(1 / P)
WORTHS = np.array([0.3, 0.5, 0.9])
RHO = np.array([0.9, 0.2, 0.4])


def worths_of(lifts: FloatArray) -> FloatArray:
    return np.asarray(WORTHS @ (P[:, None] * lifts) ** 2)


def work_of(**values: Any) -> Any:
    """A column generation at a value of .4, and a bound of 1.4 at the multipliers RHO."""
    work: Any = object.__new__(_ColumnGeneration)
    utility = SimpleNamespace(column_values=lambda p, lifts: worths_of(lifts))
    work.program = SimpleNamespace(
        prior=SimpleNamespace(pmf=P, size=3), scale=2.0, utility=utility,
        space=SimpleNamespace(column_values=worths_of),
    )  # fmt: skip
    work.master, work.relaxed = (
        MasterProblem(np.hstack([np.ones((3, 1)), UNITS]), np.zeros(4)),
        None,
    )
    work.multipliers, work.bound, work.value, work.deadline = RHO, 1.4, 0.4, NO_DEADLINE
    work.allowed, work.duals, work.rounds = 0.1, P * WORTHS, 0
    vars(work).update(values)
    return work


class Pricer:
    """Gives one batch of columns, their best value and a bound, and keeps what it was asked."""

    def __init__(self, best: float, upper: float, lifts: FloatArray) -> None:
        self.found = PricingResult(best, upper, [DenseBatch(lifts, False)])
        self.asked: list[tuple[FloatArray, float]] = []

    def price_columns(self, rho: FloatArray, count: int, least: float, _: Any) -> Any:
        self.asked.append((rho, least))
        return self.found

    def bound_reduced_values(self, rho: FloatArray, least: float, _: Any) -> float:
        self.asked.append((rho, least))
        return self.found.upper_bound

    def list_near_optimal(self, rho: FloatArray, count: int, least: float, _: Any) -> Any:
        self.asked.append((rho, least))
        return self.found.columns

    def mix_least_loss(self, count: int) -> Any:
        return self.found.columns[0], RHO


# ---------------------------------------------------------------- one round


@pytest.mark.parametrize("smoothing", [0.0, 0.7])
def test_columns_are_priced_between_the_best_multipliers_and_those_of_the_master(
    smoothing: float,
) -> None:
    """Above the value by half of the gap that is allowed; the bound is of any multipliers."""
    rho = smoothing * RHO + (1 - smoothing) * WORTHS
    base = float(P @ rho)
    column = np.array([[0.4], [1.0], [2.5]])
    for best, upper, new in (
        (0.451, 0.45, False),  # the gap is closed
        (0.451, 0.6, True),
        (0.449, 0.6, False),  # too little is gained
        (0.451, 1.5, True),
    ):
        pricer = Pricer(best - base, upper - base, column)
        work = work_of(pricer=pricer)
        work._add_columns = lambda batches, duals=None: True
        assert work._price_once(smoothing) is new
        [(asked, least)] = pricer.asked
        assert asked == pytest.approx(rho)
        assert least == pytest.approx(0.45 - base)
        assert work.bound == pytest.approx(min(1.4, upper))


@pytest.mark.parametrize("gains", [False, True])
def test_with_multipliers_only_columns_come_in_that_gain(gains: bool) -> None:
    column = np.array([[0.4], [1.0], [2.5]])
    cost = float((P * RHO) @ column[:, 0])
    shift = float(worths_of(column)[0]) - cost + (-1e-6 if gains else 1e-6)
    work = work_of()
    assert work._add_columns([DenseBatch(column, False)], P * (RHO + shift)) is gains
    assert len(work.master.worths) == 4 + gains


@pytest.mark.parametrize(("upper", "reached"), [(0.0499, True), (0.1501, False)])
def test_a_mixture_of_counts_is_proved_by_its_multipliers(
    monkeypatch: pytest.MonkeyPatch, upper: float, reached: bool
) -> None:
    """The linear program has what columns are worth beyond their cost, the largest as zero."""
    columns = np.hstack([UNITS, np.array([[0.4], [1.0], [2.5]])])
    value = float(P @ WORTHS)  # of the letters' own columns
    base = float(P @ RHO)
    pricer, given = Pricer(0.0, value - base + upper, columns), []

    def build_master(lifts: FloatArray, worths: FloatArray, size: float) -> MasterProblem:
        given.append((lifts, worths))
        return MasterProblem(lifts, worths, size)

    monkeypatch.setattr(column_generation, "MasterProblem", build_master)
    work = work_of()
    assert work._mix_count_columns(pricer) is reached
    [(lifts, worths)] = given
    beyond = worths_of(lifts) - (P * RHO) @ lifts
    assert worths == pytest.approx(beyond - beyond.max())
    assert work.value == pytest.approx(value)
    assert work.lifts @ work.weights == pytest.approx(np.ones(3))
    [(asked, least)] = pricer.asked
    assert asked == pytest.approx(RHO)
    assert least == pytest.approx(value - base + 0.05)
    assert work.bound == pytest.approx(value + upper)


def test_stages_aim_at_fewer_digits_first_and_end_with_columns_near_the_bound() -> None:
    asked: list[tuple[int, float]] = []
    pricer = Pricer(0.0, 0.0, np.array([[0.4], [1.0], [2.5]]))
    work = work_of()
    work._relax_in_basis = lambda pricer, basis, rounds, digits, share: asked.append(
        (basis.shape[1], digits)
    )
    work._run_stages(pricer)
    assert [digits for _, digits in asked] == pytest.approx([2e-3, 2e-3, 2e-4, 2e-5])
    [(rho, least)] = pricer.asked
    assert rho == pytest.approx(RHO)
    assert least == pytest.approx(1.4 - float(P @ RHO) - 1e-4 * 2.0)
    assert len(work.master.worths) == 5


def test_the_relaxed_columns_nearest_to_being_used_are_kept() -> None:
    """Four for each letter, and the constant."""
    random = np.random.default_rng(0)
    lifts = np.hstack([np.ones((3, 1)), UNITS, random.dirichlet(np.ones(3), 40).T / P[:, None]])
    worths = np.append([0.0, *WORTHS], 0.9 * random.random(40) * 0.2)
    work = work_of(relaxed=(lifts, worths))
    pricer: Any = None
    work._relax_in_basis(pricer, np.eye(3), 1, 9.0, 0.0)
    _, _, duals = MasterProblem(lifts, worths).solve()
    costs = duals @ lifts - worths
    kept = sorted({0, *np.argsort(costs, kind="stable")[:12].tolist()})
    assert work.relaxed[0] == pytest.approx(lifts[:, kept])
    assert work.relaxed[1] == pytest.approx(worths[kept])


# ---------------------------------------------------------------- endings


class Master:
    """A master whose value is .4 at first, and then as given."""

    def __init__(self, *values: float) -> None:
        self.values, self.lifts, self.worths = list(values), UNITS, WORTHS

    def solve(self, deadline: Any) -> tuple[float, FloatArray, FloatArray]:
        value = self.values.pop(0) if len(self.values) > 1 else self.values[0]
        return value, P, P * WORTHS


@pytest.mark.parametrize(
    ("bound", "after", "ending", "rounds"),
    [
        (0.49, 0.49, "gap reached", 1),
        (0.6, 0.49, "gap reached", 2),  # the next solve finds that pricing closed it
        (0.6, 0.51, "no column improves", 1),
    ],
)
def test_rounds_end_where_the_gap_is_reached_or_no_column_improves(
    bound: float, after: float, ending: str, rounds: int
) -> None:
    work = work_of(master=Master(0.4), bound=bound, pricer=Pricer(-1.0, after, UNITS))

    def price(smoothing: float) -> bool:
        work.bound = after
        return False

    work._price_once = price
    assert work.run() == ending
    assert work.rounds == rounds


def test_relaxed_columns_that_close_the_gap_end_the_rounds() -> None:
    pricer: Any = object.__new__(SplitPricer)
    work = work_of(master=Master(0.4), bound=0.6, pricer=pricer)

    def relax(pricer: Any) -> bool:
        work.bound = 0.49
        return False

    work._price_once, work._relax_once = lambda smoothing: False, relax
    assert work.run() == "gap reached"


# ---------------------------------------------------------------- fewer outputs


def test_fewer_outputs_are_looked_for_at_costs_that_follow_the_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those of small weights become dear, and only mechanisms of still fewer outputs are taken."""
    costs: list[FloatArray] = []
    supports = [5, 3, 2, 3, 4, 1]

    class Scripted:
        def __init__(self, lifts: FloatArray, worths: FloatArray) -> None:
            pass

        def solve(self, costs: FloatArray) -> tuple[float, FloatArray, FloatArray]:
            seen.append(-costs)
            size = supports[min(len(seen), len(supports)) - 1]
            weights = np.zeros(6)
            weights[:size] = 1 / size
            return 0.0, weights, np.zeros(3)

    seen = costs
    monkeypatch.setattr(column_generation, "MasterProblem", Scripted)
    monkeypatch.setattr(column_generation, "MAX_CORNERS", 1)
    monkeypatch.setattr(column_generation, "MAX_REWEIGHTINGS", 5)
    found = _search_fewer_outputs(np.ones((3, 6)), 4)
    assert found is not None
    assert found.tolist() == [0, 1]  # not the three that came after it
    weights = np.where(np.arange(6) < 5, 0.2, 0.0)
    follow = costs[0] / (weights + 1 / 6)
    assert costs[1] == pytest.approx(follow / follow.max())


def test_a_smaller_support_has_at_least_one_output_less(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(
        column_generation, "_search_fewer_outputs", lambda lifts, at_most: asked.append(at_most)
    )
    lifts = np.hstack([UNITS, np.diag([0.5, 1.0, 1.0]) @ UNITS @ np.ones((3, 1)) / 3 + 0.1])
    lifts = lifts / (P @ lifts)
    found, weights = reduce_outputs(lifts, P @ lifts, P, np.append(P, 0.0))
    assert asked == [2]
    assert found == pytest.approx(UNITS)
    assert weights == pytest.approx(P)


# ---------------------------------------------------------------- sizes of rounding


def test_the_slope_of_the_utility_is_that_at_the_largest_entries() -> None:
    """For `t log t - t + 1` it is `log t`; without a kernel it is four times the largest value."""
    getter: Any = ColumnSpace.utility_slope.func  # type: ignore[attr-defined]
    caps = np.array([1.5, 2.0, 4.0])
    kernel = ColumnUtility(P, MutualInformation().phi)
    expected = 10 + sum(p * math.log(cap) for p, cap in zip(P, caps, strict=True))
    space: Any = SimpleNamespace(column_utility=kernel, max_entries=caps)
    assert getter(space) == pytest.approx(expected, rel=1e-4)
    assert getter(SimpleNamespace(column_utility=None, max_column_value=-2.5)) == 20.0
